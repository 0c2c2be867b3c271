"""Traccar positions: from its API, from its database, or forwarded.

A position stands alone (the API returns an array of them) or is forwarded as
`{"position": {...}, "device": {...}}`. The API writes `fixTime`; the database writes `fixtime`,
and `valid` as 0 or 1. `valid` false and `outdated` true (the last known position, repeated) mean
that there is no fix, as do attributes (`fix_signs`). The device is the tracker's `uniqueId`, else
the server's own `deviceId`. A forwarded event repeats the position where it happened and is not a
new one.

Readings: `speed_mps` (`speed`, knots), `heading_deg` (`course`), `accuracy_m` (`accuracy`; 0 is
unknown), and the numbers in `attributes` under their own names in snake case, with `batteryLevel`
as `battery_percent`.

Source: https://www.traccar.org/api-reference/, https://www.traccar.org/forward/
"""

from collections.abc import Mapping
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, Raw, UnsetType

from anonymizer.codecs._fields import (
    MPS_PER_KNOT,
    UNSTATED,
    Number,
    Readings,
    Stated,
    StatedId,
    measured,
    named_numbers,
    one_or_many,
    parts_in,
    stated_fix,
)
from anonymizer.codecs.coarse import CoarsePoint, iso8601, message_id, short_id
from anonymizer.codecs.fix_signs import says_no_fix
from anonymizer.codecs.format import Format
from anonymizer.domain.fixes import Fix
from anonymizer.domain.outcomes import Outcome

_Flag = bool | Annotated[int, Meta(ge=0, le=1)]


class _Position(Stated, rename="camel"):
    latitude: Number | UnsetType | None = UNSET
    longitude: Number | UnsetType | None = UNSET
    fix_time: Number | None = None
    fixtime: Number | None = None
    valid: _Flag = True
    outdated: _Flag = False
    device_id: StatedId = None
    deviceid: StatedId = None
    speed: Raw = UNSTATED
    course: Raw = UNSTATED
    accuracy: Raw = UNSTATED
    attributes: Raw = UNSTATED


class _Device(Stated, rename="camel"):
    unique_id: StatedId = None


class _Message(_Position):
    position: _Position | None = None
    device: _Device | None = None
    event: dict[str, Raw] | None = None


def _fix_of(message: _Message) -> Fix | Outcome:
    if message.event is not None:
        return Outcome.INVALID__NOT_A_POSITION
    at = message if message.position is None else message.position
    if not at.valid or at.outdated:
        return Outcome.INVALID__NO_FIX
    if at.latitude is UNSET or at.longitude is UNSET:
        return Outcome.INVALID__SCHEMA
    if message.device is not None:
        device: str | int | None = message.device.unique_id
    else:
        device = at.deviceid if at.device_id is None else at.device_id
    time = at.fixtime if at.fix_time is None else at.fix_time
    attributes = {} if at.attributes is UNSTATED else parts_in(at.attributes)
    if says_no_fix(attributes):
        return Outcome.INVALID__NO_FIX
    readings = _readings_of(at, attributes)
    return stated_fix(at.latitude, at.longitude, time=time, device=device, readings=readings)


def _readings_of(at: _Position, attributes: Mapping[str, Raw]) -> Readings:
    own = measured(
        ("speed_mps", at.speed, MPS_PER_KNOT),
        ("heading_deg", at.course, 1.0),
        ("accuracy_m", at.accuracy, 1.0),
    )
    if not attributes:
        return own
    readings = named_numbers(attributes)
    level = readings.pop("battery_level", None)
    if level is not None:
        readings["battery_percent"] = level
    return (readings | own if own else readings) or None


decode = one_or_many(_Message, _fix_of, least=len('{"latitude":1,"longitude":2},'))


_ID_BITS = 21
"""Of the id of a position besides its second: together below 2^53 until the year 2106."""


def encode(point: CoarsePoint) -> bytes:
    """Write a coarse point as Traccar forwards positions; their ids rise with time."""
    at, number = iso8601(point.time), short_id(point.pseudonym)
    position = {
        "id": (int(point.time) << _ID_BITS) + message_id(point) % (1 << _ID_BITS),
        "deviceId": number,
        "fixTime": at,
        "deviceTime": at,
        "serverTime": at,
        "valid": True,
        "outdated": False,
        "latitude": point.lat,
        "longitude": point.lon,
        "accuracy": point.radius_m,
        "attributes": {},
    }
    device = {"id": number, "uniqueId": point.pseudonym, "name": point.pseudonym}
    return msgspec.json.encode({"position": position, "device": device})


FORMAT = Format(decode=decode, encode=encode)
