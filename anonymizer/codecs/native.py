"""The gateway's native format: an object with these members, or an array of such objects.

`lat` and `lon` are WGS84 degrees, `ts` unix seconds, `device` text or an integer, `accuracy_m` how
far away the device may be, `readings` an object of numbers by name; all but `lat` and `lon` may be
missing or null. Beside them may be signs of no fix (`fix_signs`). About 0.5 µs for a single
position, 0.4 µs more for three readings.
"""

import msgspec
from msgspec import Raw

from anonymizer.codecs._fields import (
    UNSTATED,
    Number,
    Stated,
    StatedId,
    measured,
    numbers_in,
    one_or_many,
    stated_fix,
)
from anonymizer.codecs.coarse import CoarsePoint
from anonymizer.codecs.fix_signs import judged, with_signs
from anonymizer.codecs.format import Format
from anonymizer.codecs.layouts import SIGNS, Layout, Member, Role
from anonymizer.domain.fixes import Fix
from anonymizer.domain.outcomes import Outcome


class _Record(Stated):
    lat: Number | None
    lon: Number | None
    ts: Number | None = None
    device: StatedId = None
    accuracy_m: Raw = UNSTATED
    readings: Raw = UNSTATED


def _fix_of(record: _Record) -> Fix | Outcome:
    readings = None if record.readings is UNSTATED else numbers_in(record.readings)
    if record.accuracy_m is not UNSTATED:
        accuracy = measured(("accuracy_m", record.accuracy_m, 1.0))
        readings = {**(accuracy or {}), **(readings or {})} or None
    return stated_fix(
        record.lat, record.lon, time=record.ts, device=record.device, readings=readings
    )


decode = one_or_many(with_signs(_Record), _fix_of, least=len('{"lat":1,"lon":2},'), dec_hook=judged)


def record_of(point: CoarsePoint) -> dict[str, object]:
    """Return a coarse point as a record; `accuracy_m` is its radius."""
    return {
        "lat": point.lat,
        "lon": point.lon,
        "ts": point.time,
        "device": point.pseudonym,
        "accuracy_m": point.radius_m,
    }


def encode(point: CoarsePoint) -> bytes:
    """Write a coarse point."""
    return msgspec.json.encode(record_of(point))


LAYOUT = Layout(
    {
        "lat": Member(Role.LAT),
        "lon": Member(Role.LON),
        "ts": Member(Role.TIME),
        "device": Member(Role.DEVICE_OR_NUMBER),
        "readings": Member(Role.READINGS, "accuracy_m"),
        "accuracy_m": Member(Role.ACCURACY, "accuracy_m"),
        **SIGNS,
    },
    many=True,
)

FORMAT = Format(decode=decode, encode=encode, layout=LAYOUT)
