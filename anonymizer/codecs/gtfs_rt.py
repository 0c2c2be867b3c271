"""GTFS-realtime vehicle positions as protocol buffers, the standard's own encoding.

The device is the vehicle's id, else the entity's, which is guaranteed to be unique only within
one feed. A vehicle without a time has none: that of the feed is when somebody asked.
Coordinates are 32-bit floats: accurate to about 2 m.

Readings: `speed_mps` (`speed`), `heading_deg` (`bearing`).

Source: https://gtfs.org/documentation/realtime/reference/
"""

from collections.abc import Sequence
from math import inf, nan
from typing import Any

from google.protobuf.message import DecodeError
from google.transit.gtfs_realtime_pb2 import FeedMessage

from anonymizer.codecs._fields import Readings, stated_fix
from anonymizer.codecs.coarse import CoarsePoint
from anonymizer.codecs.format import Format
from anonymizer.codecs.gtfs_rt_json import OLDEST_S, feed_of
from anonymizer.codecs.mending import unreadable
from anonymizer.domain.fixes import Fix
from anonymizer.domain.outcomes import Outcome

_LEAST_BYTES, _FEW = 16, 100
"""Bytes of an entity with an id and a position; feeds of fewer entities are read in any case."""


def decode(payload: bytes) -> Sequence[Fix | Outcome]:
    """Decode a feed, entity by entity. About 1.2 µs an entity."""
    if not payload:
        return [Outcome.INVALID__EMPTY]
    try:
        feed = FeedMessage.FromString(payload)
    except DecodeError:
        return [unreadable(payload)]
    # The parser does not enforce required fields, and many byte strings that are not feeds are
    # valid protobuf with unknown fields.
    if not feed.HasField("header"):
        return [Outcome.INVALID__SCHEMA]
    if len(feed.entity) * _LEAST_BYTES > max(len(payload), _FEW * _LEAST_BYTES):
        return [Outcome.INVALID__SCHEMA]  # most have neither an id nor a position
    return [_fix_of(entity) for entity in feed.entity] or [Outcome.INVALID__EMPTY]


def _fix_of(entity: Any) -> Fix | Outcome:  # noqa: ANN401  generated, untyped
    if entity.is_deleted or not entity.HasField("vehicle"):
        return Outcome.INVALID__NOT_A_POSITION
    vehicle = entity.vehicle
    if not vehicle.HasField("position"):
        return Outcome.INVALID__NO_FIX
    position = vehicle.position
    if not (position.HasField("latitude") and position.HasField("longitude")):
        return Outcome.INVALID__SCHEMA
    device = vehicle.vehicle.id or entity.id
    if not isinstance(device, str):  # text that is not UTF-8 is returned as bytes
        return Outcome.INVALID__SCHEMA
    time = vehicle.timestamp
    return stated_fix(
        position.latitude,
        position.longitude,
        time=float(time) if time else None,
        device=device,
        readings=_readings_of(position),
    )


def _readings_of(position: Any) -> Readings:  # noqa: ANN401  generated, untyped
    stated = {}
    if position.HasField("speed"):
        stated["speed_mps"] = position.speed
    if position.HasField("bearing"):
        stated["heading_deg"] = position.bearing
    return {name: value if 0.0 <= value < inf else nan for name, value in stated.items()} or None


def encode(point: CoarsePoint) -> bytes:
    """Write a coarse point; there is no field of accuracy."""
    return bytes(FeedMessage(**feed_of(point)).SerializeToString())


FORMAT = Format(decode=decode, encode=encode, is_json=False, oldest_s=OLDEST_S)
