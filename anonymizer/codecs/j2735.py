"""SAE J2735 basic safety messages (BSM), as written by the US DOT's Operational Data Environment.

Older ODE versions write `payload.data.coreData.position.{latitude, longitude}` in degrees, null
if unavailable. Newer ones write `payload.data.value.BasicSafetyMessage.coreData.{lat, long}` in
integer units of 1e-7 degrees, as in the standard. Both may be numbers or text.
`metadata.receivedMessageDetails` is the position of the *receiver* and is ignored.

The device is `coreData.id`, which the standard makes temporary: vehicles change it every few
minutes.

Readings: `speed_mps`, `heading_deg`; the newer form has units of 0.02 m/s and 0.0125 degrees.

Source: https://github.com/usdot-jpo-ode/jpo-ode, SAE J2735 DSecond, Latitude, Longitude
"""

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta, Raw, field
from msgspec.json import Decoder

from anonymizer.codecs._fields import (
    UNSTATED,
    DeviceId,
    Digits,
    Int32,
    Readings,
    Stated,
    read,
    read_part,
    stated_fix,
    unix_s,
)
from anonymizer.domain.fixes import Fix
from anonymizer.domain.outcomes import Outcome

_Degrees = float | Annotated[str, Meta(pattern=r"^-?[0-9]{1,10}(\.[0-9]{1,20})?\Z")]
_UNAVAILABLE = frozenset({90.0000001, 900000001.0, 180.0000001, 1800000001.0})
_MINUTE_MS = 60_000
_NO_SPEED_MPS = 163.81
"""Speeds from here on are the standard's *unavailable* (8191)."""
_NO_HEADING_DEG = 359.99
"""Headings from here on are the standard's *unavailable* (28800)."""


class _Position(Stated):
    latitude: _Degrees | None
    longitude: _Degrees | None


class _Core(Stated, rename="camel"):
    id: DeviceId | None = None
    sec_mark: Int32 | Digits | None = None
    position: _Position | None = None
    lat: Int32 | Digits | None = None
    long: Int32 | Digits | None = None
    speed: Raw = UNSTATED
    heading: Raw = UNSTATED


class _Bsm(Stated, rename="camel"):
    core_data: _Core | None = None


class _Value(Stated):
    bsm: _Bsm = field(name="BasicSafetyMessage")


class _Data(_Bsm):
    value: _Value | None = None


class _Payload(Stated, rename="camel"):
    data_type: str
    data: Raw


class _Metadata(Stated, rename="camel"):
    record_generated_at: str | None = None


class _Message(Stated):
    payload: _Payload
    metadata: _Metadata | None = None


_MESSAGE = Decoder(_Message)
_DATA = Decoder(_Data)
_QUANTITY: Decoder[float | str] = Decoder(_Degrees)


def decode(payload: bytes) -> Sequence[Fix | Outcome]:
    """Decode one message. About 4.6 µs for 3 kB, most of it for skipping the path history."""
    message = read(_MESSAGE, payload)
    return [message if isinstance(message, Outcome) else _fix_of(message)]


def _fix_of(message: _Message) -> Fix | Outcome:
    kind = message.payload.data_type
    if "Bsm" not in kind and "BasicSafetyMessage" not in kind:
        return Outcome.INVALID__NOT_A_POSITION
    data = read_part(_DATA, message.payload.data)
    if isinstance(data, Outcome):
        return data
    core = data.core_data if data.value is None else data.value.bsm.core_data
    if core is None:
        return Outcome.INVALID__SCHEMA
    place = _place_of(core)
    if isinstance(place, Outcome):
        return place
    recorded_at = message.metadata.record_generated_at if message.metadata else None
    time = None if recorded_at is None else _time_of(recorded_at, core)
    if time is None and recorded_at is not None:
        return Outcome.INVALID__SCHEMA
    return stated_fix(*place, time=time, device=core.id, readings=_readings_of(core))


def _readings_of(core: _Core) -> Readings:
    in_steps = core.position is None
    readings = {}
    for name, part, step, limit in (
        ("speed_mps", core.speed, 0.02, _NO_SPEED_MPS),
        ("heading_deg", core.heading, 0.0125, _NO_HEADING_DEG),
    ):
        stated = read_part(_QUANTITY, part)
        if not isinstance(stated, Outcome):
            value = float(stated) * (step if in_steps else 1.0)
            if 0.0 <= value < limit:
                readings[name] = value
    return readings or None


def _place_of(core: _Core) -> tuple[float, float] | Outcome:
    if core.position is not None:
        if core.position.latitude is None or core.position.longitude is None:
            return Outcome.INVALID__NO_FIX
        lat, lon = float(core.position.latitude), float(core.position.longitude)
    elif core.lat is not None and core.long is not None:
        lat, lon = int(core.lat) / 1e7, int(core.long) / 1e7
    else:
        return Outcome.INVALID__SCHEMA
    if lat in _UNAVAILABLE or lon in _UNAVAILABLE:
        return Outcome.INVALID__NO_FIX
    return lat, lon


def _time_of(recorded_at: str, core: _Core) -> float | None:
    """Return the vehicle's own time in unix seconds, or None if the record has no valid time.

    The vehicle's clock is `secMark`, the millisecond within a minute. The message does not name
    the minute, so the one nearest to the time of the record is taken. The record of a *received*
    message can be older than the message (by 0.1 s in the samples), and two messages can have
    the same record time.
    """
    # Older versions append the name of the time zone, as Java does.
    recorded_s = unix_s(recorded_at.removesuffix("[UTC]"))
    if recorded_s is None or core.sec_mark is None:
        return recorded_s
    mark_ms = int(core.sec_mark)
    if not 0 <= mark_ms < _MINUTE_MS:  # leap second, reserved, unavailable
        return recorded_s
    recorded_ms = round(recorded_s * 1000)
    half = _MINUTE_MS // 2
    ahead_ms = (mark_ms - recorded_ms + half) % _MINUTE_MS - half
    return (recorded_ms + ahead_ms) / 1000
