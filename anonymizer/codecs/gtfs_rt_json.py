"""GTFS-realtime vehicle positions as JSON: a feed, a proxied feed, or one entity.

The three shapes are `{"header", "entity": [...]}`, the same under `response` (as the gateways of
some transit agencies wrap it), and a single `{"id", "vehicle": {...}}`. Keys of more than one
word are in snake case or camel case, and 64-bit integers are numbers or text, as in the JSON
mapping of protocol buffers.

The device is the vehicle's id, else the entity's, which is guaranteed to be unique only within
one feed. A time of 0 means none, as in protobuf. The time of the feed is when somebody asked, and
says nothing about a vehicle that states none.

Readings: `speed_mps` (`speed`), `heading_deg` (`bearing`).

Source: https://gtfs.org/documentation/realtime/reference/
"""

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Raw
from msgspec.json import Decoder

from anonymizer.codecs._fields import (
    UNSTATED,
    Number,
    Stated,
    StatedId,
    measured,
    read,
    read_part,
    stated_fix,
    too_many,
)
from anonymizer.codecs.coarse import CoarsePoint
from anonymizer.codecs.format import Format
from anonymizer.domain.fixes import Fix
from anonymizer.domain.outcomes import Outcome


class _Position(Stated):
    latitude: Number | None
    longitude: Number | None
    speed: Raw = UNSTATED
    bearing: Raw = UNSTATED


class _Descriptor(Stated):
    id: StatedId = None


class _Vehicle(Stated):
    position: _Position | None = None
    vehicle: _Descriptor | None = None
    timestamp: Number | None = None


class _Entity(Stated):
    id: StatedId = None
    vehicle: _Vehicle | None = None
    is_deleted: bool = False
    isDeleted: bool = False  # noqa: N815  both spellings occur, so both are fields


class _Header(Stated):
    timestamp: Number | None = None


class _Feed(Stated):
    header: _Header | None = None
    entity: list[Raw] | None = None


class _Message(_Entity):
    header: _Header | None = None
    entity: list[Raw] | None = None
    response: _Feed | None = None


_ENTITY = Decoder(_Entity)
_MESSAGE = Decoder(_Message)
OLDEST_S = 90.0
"""Seconds that positions may be old by "Best practices" of GTFS."""
_LEAST_BYTES = len('{"id":"1","alert":{}},')


def decode(payload: bytes) -> Sequence[Fix | Outcome]:
    """Decode a feed, entity by entity, or one entity. About 1.3 µs an entity."""
    message = read(_MESSAGE, payload)
    if isinstance(message, Outcome):
        return [message]
    feed = message if message.response is None else message.response
    if feed is message and feed.header is None and feed.entity is None:
        return [_fix_of(message)]
    fixes: list[Fix | Outcome] = []
    if too_many(len(feed.entity or ()), len(payload), least=_LEAST_BYTES):
        return [Outcome.INVALID__SCHEMA]
    for part in feed.entity or ():
        entity = read_part(_ENTITY, part)
        fixes.append(entity if isinstance(entity, Outcome) else _fix_of(entity))
    return fixes or [Outcome.INVALID__EMPTY]


def _fix_of(entity: _Entity) -> Fix | Outcome:
    if entity.is_deleted or entity.isDeleted:
        return Outcome.INVALID__NOT_A_POSITION
    vehicle = entity.vehicle
    if vehicle is None:
        # A trip update or an alert has an id, as every entity does.
        nameless = entity.id is None
        return Outcome.INVALID__SCHEMA if nameless else Outcome.INVALID__NOT_A_POSITION
    position = vehicle.position
    if position is None:
        return Outcome.INVALID__NO_FIX
    return stated_fix(
        position.latitude,
        position.longitude,
        time=vehicle.timestamp,
        device=(vehicle.vehicle.id if vehicle.vehicle else None) or entity.id,
        readings=measured(
            ("speed_mps", position.speed, 1.0), ("heading_deg", position.bearing, 1.0)
        ),
    )


def encode(point: CoarsePoint) -> bytes:
    """Write a coarse point; there is no field of accuracy."""
    return msgspec.json.encode(feed_of(point))


def feed_of(point: CoarsePoint) -> dict[str, Any]:
    """Return a coarse point as a feed of one entity, which leaves all others unchanged."""
    at = int(point.time)
    vehicle = {
        "vehicle": {"id": point.pseudonym},
        "position": {"latitude": point.lat, "longitude": point.lon},
        "timestamp": at,
    }
    header = {"gtfs_realtime_version": "2.0", "incrementality": "DIFFERENTIAL", "timestamp": at}
    entity = {"id": point.pseudonym, "vehicle": vehicle}
    return {"header": header, "entity": [entity]}


FORMAT = Format(decode=decode, encode=encode, oldest_s=OLDEST_S)
