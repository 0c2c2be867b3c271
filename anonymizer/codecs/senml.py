"""SenML packs: records of one number each, which together say where a device is.

`[{"bn": "urn:dev:mac:0024befffe804ff1:", "bt": 1800000000, "n": "lat", "u": "lat", "v": 60.17},
{"n": "lon", "u": "lon", "v": 24.94}]`. Base name, time, unit and value hold for the records from
theirs on. A latitude and a longitude of one device and time are a position; a pack may have several
of either. They are known by the units `lat` and `lon`, or without a unit (or with `deg`) by the end
of their names, `latitude` and so on. The device is what is before that end. The keys may also be
the numbers of SenML in CBOR.

A time below 2^28 is relative to when the pack is read: 0 is then, -60 a minute before, and later
ones are in the future. A half of a position is refused, as are two of one time, and what must be
understood and is not. Records of the same time can say that there is no fix, see `fix_signs`.

Readings: `speed_mps` (any in m/s), `battery_percent` (`%EL`), `accuracy_m` (`accuracy`), and the
other numbers of the same time under the ends of their names.

References
----------
.. [1] RFC 8428, "Sensor Measurement Lists (SenML)", 2018: sections 4.1 to 4.6, tables 1 and 4.
"""

import re
from collections.abc import Sequence
from math import isfinite, isnan
from typing import Any

import msgspec
from msgspec import Raw, structs
from msgspec.json import Decoder

from anonymizer.codecs._fields import (
    UNSTATED,
    Stated,
    is_stated,
    number_or_text,
    read,
    stated_fix,
    too_many,
)
from anonymizer.codecs.coarse import CoarsePoint
from anonymizer.codecs.fix_signs import is_sign, says_no_fix
from anonymizer.codecs.format import Format
from anonymizer.codecs.times import ago
from anonymizer.domain.fixes import ACCURACY, SPEED, Fix
from anonymizer.domain.outcomes import Outcome

_VERSION = 10
_RELATIVE_S = 2.0**28
_LEAST_BYTES = 30
"""Of a record among many."""
_MUST_UNDERSTAND = re.compile(rb'_"\s*:')
_BETWEEN = ":/.-_"
"""What a name may have between the device and what is measured."""
_MAX_NAME_CHARS = 64
_LAT, _LON = "lat", "lon"
_PLACE = frozenset({_LAT, _LON})
_NAMES = dict.fromkeys(("lat", "latitude"), _LAT) | dict.fromkeys(
    ("lon", "lng", "long", "longitude"), _LON
)
_ANGLES = frozenset({None, "deg"})
_OF_UNIT = {"m/s": SPEED, "%EL": "battery_percent"}


class _Record(Stated):
    bver: float | None = None
    bn: str | None = None
    bt: float | None = None
    bu: str | None = None
    bv: float | None = None
    n: str | None = None
    u: str | None = None
    t: float | None = None
    v: Raw = UNSTATED
    vs: Raw = UNSTATED
    vb: Raw = UNSTATED


_LABELS = {"bver": -1, "bn": -2, "bt": -3, "bu": -4, "bv": -5, "n": 0, "u": 1, "v": 2, "vs": 3,
           "vb": 4, "t": 6}  # fmt: skip
_Labelled: Any = msgspec.defstruct(
    "Labelled",
    [(each.name, each.type, each.default) for each in structs.fields(_Record)],
    bases=(Stated,),
    rename={name: str(label) for name, label in _LABELS.items()},
    gc=False,
)
_PACK = Decoder(list[_Record])
_LABELLED_PACK: Decoder[Any] = Decoder(list[_Labelled])


class _Said(Stated):
    """What the records of one device and time say; NaN: null, or no number."""

    lat: float | None = None
    lon: float | None = None
    sensed: dict[str, float] | None = None
    is_null: bool = False
    is_lost: bool = False
    is_wrong: bool = False

    def coordinate(self, what: str, part: Raw, value: float) -> None:
        """Take a latitude or a longitude; a second one makes all of it wrong."""
        is_null = bytes(part) == b"null" if isnan(value) and part is not UNSTATED else False
        self.is_null |= is_null
        self.is_wrong |= getattr(self, what) is not None or (isnan(value) and not is_null)
        setattr(self, what, value)

    def reading(self, name: str, part: Raw, value: float) -> None:
        """Take a reading, unless it states none."""
        if part is not UNSTATED and is_stated(value, part) and 0 < len(name) <= _MAX_NAME_CHARS:
            self.sensed = self.sensed or {}
            self.sensed[name] = value


def decode(payload: bytes) -> Sequence[Fix | Outcome]:
    """Decode one pack. About 2 µs a record."""
    pack = read(_PACK, payload)
    if not isinstance(pack, Outcome) and not any(each.n or each.bn for each in pack):
        pack = read(_LABELLED_PACK, payload)
    if isinstance(pack, Outcome):
        return [pack]
    if _MUST_UNDERSTAND.search(payload) or any((each.bver or 0) > _VERSION for each in pack):
        return [Outcome.INVALID__SCHEMA]
    if too_many(len(pack), len(payload), least=_LEAST_BYTES):
        return [Outcome.INVALID__SCHEMA]
    found = [_fix_of(device, time, said) for (device, time), said in _joined(pack).items()]
    no_position = Outcome.INVALID__NOT_A_POSITION if pack else Outcome.INVALID__EMPTY
    return [each for each in found if each is not None] or [no_position]


def _joined(pack: Sequence[_Record]) -> dict[tuple[str, float], _Said]:
    """Return what is said of each device and time, with the base fields that hold there."""
    found: dict[tuple[str, float], _Said] = {}
    base_name, base_unit = "", None
    base_s = base_value = 0.0
    for record in pack:
        base_name = base_name if record.bn is None else record.bn
        base_unit = record.bu or base_unit
        base_s = base_s if record.bt is None else record.bt
        base_value = base_value if record.bv is None else record.bv
        device, end = _split(base_name, record.n or "")
        key = device, base_s + (record.t or 0.0)
        said = found.get(key)
        if said is None:
            said = found[key] = _Said()
        value = number_or_text(record.v) + base_value
        what = _quantity(end, record.u or base_unit)
        take = said.coordinate if what in _PLACE else said.reading
        take(what, record.v, value)
        if what not in _PLACE and is_sign(end):
            said.is_lost |= _says_no_fix(end, record, value)
    return found


def _says_no_fix(end: str, record: _Record, value: float) -> bool:
    """Return whether a record says that there is no fix: by a flag, a text, or a number."""
    said = [part for part in (record.vb, record.vs) if part is not UNSTATED]
    stated = said[0] if said else Raw(msgspec.json.encode(value))
    return says_no_fix({end: stated})


def _split(base_name: str, name: str) -> tuple[str, str]:
    """Return the device, and the end of a name that says what is measured."""
    whole = name or base_name
    begin = 1 + max(whole.rfind(":"), whole.rfind("/"), whole.rfind("."))
    return ((base_name if name else "") + whole[:begin]).rstrip(_BETWEEN), whole[begin:]


def _quantity(end: str, unit: str | None) -> str:
    """Return `lat`, `lon`, or the name of a reading."""
    if unit in _PLACE:
        return str(unit)
    coordinate = _NAMES.get(end.lower())
    if coordinate is not None:  # or in radians, or in steps
        return coordinate if unit in _ANGLES else f"{end}_{unit}"
    if end == "accuracy" and unit in {None, "m"}:
        return ACCURACY
    return _OF_UNIT.get(unit or "", end)


def _fix_of(device: str, time: float, said: _Said) -> Fix | Outcome | None:
    """Return the position of a device at a time; None if nothing is said of a place."""
    if said.lat is None and said.lon is None:
        return None
    if said.lat is None or said.lon is None or said.is_wrong or not isfinite(time):
        return Outcome.INVALID__SCHEMA
    if said.is_null or said.is_lost:
        return Outcome.INVALID__NO_FIX
    if 0.0 < time < _RELATIVE_S:
        return Outcome.INVALID__FUTURE_TIME
    stated = time if time > 0 else ago(-time)
    return stated_fix(said.lat, said.lon, time=stated, device=device, readings=said.sensed)


def encode(point: CoarsePoint) -> bytes:
    """Write a coarse point as a pack of three records; `accuracy` is its radius."""
    first = {"bn": f"device:{point.pseudonym}:", "bt": point.time}
    values = ((_LAT, _LAT, point.lat), (_LON, _LON, point.lon), ("accuracy", "m", point.radius_m))
    records = [{"n": name, "u": unit, "v": value} for name, unit, value in values]
    return msgspec.json.encode([first | records[0], *records[1:]])


FORMAT = Format(decode=decode, encode=encode)
