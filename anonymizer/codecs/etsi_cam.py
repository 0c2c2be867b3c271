"""ETSI cooperative awareness messages (CAM) as JSON, in the forms in which they are published.

- Orange's its-client: `{"type": "cam", "timestamp", "message": {"station_id", "basic_container"}}`,
  versions 1 and 2, in snake case.
- Vanetza-NAP: `{"timestamp", "fields": {"header", "cam": {"camParameters"}}}`.
- The standard's own names: `{"header", "cam": {"camParameters"}}`, or the inside of `cam` alone.

An integer is in the standard's units (1e-7 degrees, 0.01 m/s, 0.1 degrees); a number with a
fraction is in degrees and m/s, as Vanetza-NAP writes it. A station of type 15 is a roadside unit:
it stands still, and is no company for vehicles. The time is the `timestamp` around the message, in
seconds or milliseconds; `generationDeltaTime` is not used, because it names no minute, and some
stations count leap seconds in it and some do not. The device is the id of the station, which is
temporary.

Readings: `speed_mps`, `heading_deg`.

Source: ETSI EN 302 637-2, https://github.com/Orange-OpenSource/its-client/tree/master/schema,
https://github.com/nap-it/vanetza-nap
"""

import re
from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple, TypeAlias

import msgspec
from msgspec import UNSET, Meta, Raw
from msgspec.json import Decoder

from anonymizer.codecs._fields import Readings, StatedId, read_part, stated_fix
from anonymizer.codecs.coarse import CoarsePoint, short_id
from anonymizer.codecs.degrees import coordinate_in
from anonymizer.codecs.format import Format
from anonymizer.codecs.paths import JsonPath, PathReader
from anonymizer.domain.fixes import Fix
from anonymizer.domain.outcomes import Outcome

_Number: TypeAlias = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)] | float
_Stated: TypeAlias = _Number | str
_INTEGER = re.compile(r"-?[0-9]{1,18}")
_UNAVAILABLE = {None, 900_000_001, 1_800_000_001, 90.0000001, 180.0000001}
_ROADSIDE = 15
_MS_FROM = 1e11
"""Times from here on are in milliseconds."""
_ITS_EPOCH_MS = 1_072_915_200_000
"""2004-01-01, from which stations count, and the leap seconds since."""
_LEAP_MS = 5_000


class _Form(NamedTuple):
    """Where a form of messages has its parts; it has speed and heading in one of two places."""

    station: str
    kind: str
    place: str
    speed: tuple[str, str]
    heading: tuple[str, str]


def _named(inside: str, header: str) -> _Form:
    """Return the form with the standard's names, below a path that ends in a dot or is empty."""
    parameters = f"{inside}camParameters"
    fast = f"{parameters}.highFrequencyContainer.basicVehicleContainerHighFrequency"
    basic = f"{parameters}.basicContainer"
    return _Form(
        header,
        f"{basic}.stationType",
        f"{basic}.referencePosition",
        (f"{fast}.speed.speedValue",) * 2,
        (f"{fast}.heading.headingValue",) * 2,
    )


_BASIC = "message.basic_container"
_FAST = "message.high_frequency_container"
_FORMS = [
    _Form(
        "message.station_id",
        f"{_BASIC}.station_type",
        f"{_BASIC}.reference_position",
        (f"{_FAST}.speed", f"{_FAST}.basic_vehicle_container_high_frequency.speed.value"),
        (f"{_FAST}.heading", f"{_FAST}.basic_vehicle_container_high_frequency.heading.value"),
    ),
    _named("fields.cam.", "fields.header.stationId"),
    _named("cam.", "header.stationId"),
    _named("", "stationId"),
]
_N_SHARED = 5
_NUMBER: Decoder[_Stated] = Decoder(_Stated)


def _wanted() -> list[tuple[JsonPath | None, Any]]:
    paths: list[tuple[str, Any]] = [
        ("timestamp", _Stated),
        ("type", Raw),
        ("message_type", Raw),
        ("fields.denm", Raw),
        ("denm", Raw),
    ]
    for form in _FORMS:
        other = form.station.replace("stationId", "stationID")
        paths += [(form.station, StatedId), (other, StatedId), (form.kind, _Stated)]
        paths += [(f"{form.place}.latitude", _Stated), (f"{form.place}.longitude", _Stated)]
        paths += [(path, Raw) for path in (*form.speed, *form.heading)]
    return [(JsonPath.of(path), kind) for path, kind in paths]


_N_OF_FORM = 9
_READER = PathReader(_wanted())


def decode(payload: bytes) -> Sequence[Fix | Outcome]:
    """Decode one message. About 3 µs."""
    values = _READER.read(payload)
    return [values if isinstance(values, Outcome) else _fix_of(values)]


def _fix_of(values: Sequence[Any]) -> Fix | Outcome:
    stamp, kind, other_kind, *denms = values[:_N_SHARED]
    if any(each is not UNSET for each in denms) or not (_is_cam(kind) and _is_cam(other_kind)):
        return Outcome.INVALID__NOT_A_POSITION
    for first in range(_N_SHARED, len(values), _N_OF_FORM):
        station, other, station_type, lat, lon, *motion = values[first : first + _N_OF_FORM]
        if lat is UNSET or lon is UNSET:
            continue
        device = other if station is UNSET else station
        if isinstance(station_type, str):
            station_type = _number_of(station_type)
        if station_type == _ROADSIDE:
            return Outcome.INVALID__NOT_A_POSITION
        return _stated(lat, lon, stamp, None if device is UNSET else device, _readings_of(motion))
    return Outcome.INVALID__SCHEMA


def _stated(
    lat: Any,  # noqa: ANN401  as decoded
    lon: Any,  # noqa: ANN401  likewise
    stamp: Any,  # noqa: ANN401  likewise
    device: StatedId,
    readings: Readings,
) -> Fix | Outcome:
    if isinstance(lat, str) or isinstance(lon, str) or isinstance(stamp, str):
        lat, lon, stamp = (_number_of(each) for each in (lat, lon, stamp))
        if any(isinstance(each, Outcome) for each in (lat, lon, stamp)):
            return Outcome.INVALID__SCHEMA
    if {lat, lon} & _UNAVAILABLE:
        return Outcome.INVALID__NO_FIX
    time = None if stamp is UNSET or stamp is None else float(stamp)
    return stated_fix(
        _scaled(lat, 1e7),
        _scaled(lon, 1e7),
        time=time / 1000 if time is not None and time >= _MS_FROM else time,
        device=device,
        readings=readings,
    )


def _is_cam(kind: Any) -> bool:  # noqa: ANN401  a part of a message, or UNSET
    return kind is UNSET or bytes(kind) == b'"cam"'


def _number_of(stated: Any) -> Any:  # noqa: ANN401  as decoded
    """Return the number of a text, of its own type, see `coordinate_in`; others as stated."""
    if not isinstance(stated, str):
        return stated
    return int(stated) if _INTEGER.fullmatch(stated) else coordinate_in(stated, "")


def _scaled(stated: _Number, per_unit: float) -> float:
    return stated / per_unit if isinstance(stated, int) else stated


def _readings_of(motion: Sequence[Any]) -> Readings:
    readings = {}
    for name, parts, per_unit, limit in (
        ("speed_mps", motion[:2], 100.0, 163.82),
        ("heading_deg", motion[2:], 10.0, 360.0),
    ):
        for part in parts:
            if part is UNSET:
                continue
            stated = read_part(_NUMBER, part)
            if isinstance(stated, str):
                stated = _number_of(stated)
            if stated is None or isinstance(stated, Outcome):
                continue
            value = _scaled(stated, per_unit)
            if 0.0 <= value < limit:
                readings[name] = value
    return readings or None


def encode(point: CoarsePoint) -> bytes:
    """Write a coarse point in version 2 of its-client; what it does not say is unavailable.

    The largest ellipse of the standard stands for 40.94 m and everything above.
    """
    at_ms, number = round(point.time * 1000), short_id(point.pseudonym)
    radius = min(point.radius_m * 100, 4094)
    ellipse = {"semi_major": radius, "semi_minor": radius, "semi_major_orientation": 3601}
    place = {
        "latitude": round(point.lat * 1e7),
        "longitude": round(point.lon * 1e7),
        "position_confidence_ellipse": ellipse,
        "altitude": {"value": 800001, "confidence": 15},
    }
    message = {
        "protocol_version": 2,
        "station_id": number,
        "generation_delta_time": (at_ms - _ITS_EPOCH_MS + _LEAP_MS) % 65536,
        "basic_container": {"station_type": 0, "reference_position": place},
        "high_frequency_container": {"basic_vehicle_container_high_frequency": _UNKNOWN_MOTION},
    }
    return msgspec.json.encode(
        {
            "message_type": "cam",
            "source_uuid": point.pseudonym,
            "timestamp": at_ms,
            "version": "2.4.0",
            "message": message,
        }
    )


_UNKNOWN_MOTION = {
    "heading": {"value": 3601, "confidence": 127},
    "speed": {"value": 16383, "confidence": 127},
    "drive_direction": 2,
    "vehicle_length": {"value": 1023, "confidence": 4},
    "vehicle_width": 62,
    "longitudinal_acceleration": {"value": 161, "confidence": 102},
    "curvature": {"value": 1023, "confidence": 7},
    "curvature_calculation_mode": 2,
    "yaw_rate": {"value": 32767, "confidence": 8},
}
"""What the standard writes for values that are not known."""


FORMAT = Format(decode=decode, encode=encode, ids_live_s=300.0)
