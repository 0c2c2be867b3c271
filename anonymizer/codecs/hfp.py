"""HFP, the high-frequency positioning of Helsinki's public transport, versions 1 and 2.

A message is an object with one key, the type of event (VP, DUE, ARR, DEP, ...). Every type
carries the vehicle's position and is read as one. A vehicle without a position sends null or
`loc` "N/A".

The device is `oper/veh`, because vehicle numbers of different operators overlap. Without an
operator there is no id: a second id for the same vehicle would count it twice.

Readings: `speed_mps` (`spd`), `heading_deg` (`hdg`).

Source: https://digitransit.fi/en/developers/apis/5-realtime-api/vehicle-positions/
"""

from collections.abc import Sequence

from msgspec import Raw, field
from msgspec.json import Decoder

from anonymizer.codecs._fields import (
    UNSTATED,
    Number,
    Stated,
    StatedId,
    device_id,
    measured,
    read,
    stated_fix,
)
from anonymizer.codecs.format import Format
from anonymizer.domain.fixes import Fix
from anonymizer.domain.outcomes import Outcome


class _Event(Stated):
    lat: Number | None = None
    lon: Number | None = field(name="long", default=None)
    loc: str | None = None
    tst: Number | None = None
    tsi: Number | None = None
    oper: StatedId = None
    veh: StatedId = None
    spd: Raw = UNSTATED
    hdg: Raw = UNSTATED


_MESSAGE = Decoder(dict[str, _Event])


def decode(payload: bytes) -> Sequence[Fix | Outcome]:
    """Decode one event. The time is `tst` (ms), else `tsi` (s). About 1.6 µs."""
    message = read(_MESSAGE, payload)
    if isinstance(message, Outcome):
        return [message]
    if len(message) != 1:
        return [Outcome.INVALID__SCHEMA]
    (event,) = message.values()
    if event.lat is None or event.lon is None or event.loc == "N/A":
        return [Outcome.INVALID__NO_FIX]
    time = event.tsi if event.tst is None else event.tst
    readings = measured(("speed_mps", event.spd, 1.0), ("heading_deg", event.hdg, 1.0))
    return [
        stated_fix(event.lat, event.lon, time=time, device=_device_of(event), readings=readings)
    ]


def _device_of(event: _Event) -> str | None:
    oper, veh = device_id(event.oper), device_id(event.veh)
    return None if oper is None or veh is None else f"{oper}/{veh}"


FORMAT = Format(decode=decode)
