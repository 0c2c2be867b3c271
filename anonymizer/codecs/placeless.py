"""Payloads without a position, from devices whose place a registry lists.

`{"no2": 12}` is one: the numbers of an object, and those of an object `readings` in it, under their
own names; `ts` and `device` as in the native format. A format may read them in another way:
`Format.readings_of`.
"""

from collections.abc import Mapping, Sequence
from math import nan

from msgspec import Raw
from msgspec.json import Decoder

from anonymizer.codecs import FORMATS
from anonymizer.codecs._fields import (
    UNSTATED,
    Codec,
    Number,
    Stated,
    StatedId,
    device_id,
    is_stated,
    number,
    numbers_in,
    read,
    time_of,
)
from anonymizer.codecs.format import ReadingsAlone
from anonymizer.domain.fixes import Fix, usable
from anonymizer.domain.outcomes import Outcome

_NO_POSITION = frozenset(
    {Outcome.INVALID__SCHEMA, Outcome.INVALID__NO_FIX, Outcome.INVALID__NOT_A_POSITION}
)
"""Why a codec refuses a payload that might only lack its position."""
_NOT_READINGS = frozenset({"ts", "device", "lat", "lon", "readings"})


class _Record(Stated):
    ts: Number | None = None
    device: StatedId = None
    readings: Raw = UNSTATED
    lat: Number | None = None
    lon: Number | None = None


_RECORD = Decoder(_Record)
_PARTS = Decoder(dict[str, Raw])


def or_placeless(name: str, codec: Codec) -> Codec:
    """Return a codec that also accepts a message of readings alone; its fix has no place.

    `name`, `codec`: a codec, and its name in `CODECS`.
    """
    known = FORMATS.get(name)
    own = None if known is None else known.readings_of

    def decode(payload: bytes) -> Sequence[Fix | Outcome]:
        fixes = codec(payload)
        first = fixes[0]
        if len(fixes) == 1 and not isinstance(first, Fix) and first in _NO_POSITION:
            stated = _readings_alone(payload) if own is None else own(payload)
            return [first if stated is None else _fix_without_place(*stated) or first]
        return fixes

    return decode


def _readings_alone(payload: bytes) -> ReadingsAlone | None:
    record, parts = read(_RECORD, payload), read(_PARTS, payload)
    if isinstance(record, Outcome) or record.lat is not None or record.lon is not None:
        return None
    if isinstance(parts, Outcome):
        return None
    named = {
        name: value
        for name, part in parts.items()
        if name not in _NOT_READINGS and is_stated(value := number(part), part)
    }
    named |= numbers_in(record.readings) or {}
    return record.ts, record.device, named


def _fix_without_place(
    ts: Number | None, device: StatedId, readings: Mapping[str, float]
) -> Fix | None:
    """Return the fix, or None if there is nothing to publish of it, or no sound time."""
    when = None if ts is None else time_of(ts)
    numbers, lost = usable(dict(readings))
    if isinstance(when, Outcome) or numbers is None:
        return None
    ts, zoneless = when if isinstance(when, tuple) else (when, False)
    return Fix(nan, nan, ts, device_id(device), numbers, zoneless, lost)
