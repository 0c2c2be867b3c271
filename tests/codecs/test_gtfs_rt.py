"""GTFS-realtime as protocol buffers."""

import math
from typing import Any

import pytest
from google.transit.gtfs_realtime_pb2 import FeedMessage

from anonymizer.codecs import CODECS
from anonymizer.domain.fixes import Fix
from anonymizer.domain.outcomes import Outcome
from tests.codecs.sample import (
    EMPTY,
    MALFORMED,
    NO_FIX,
    NOT_A_POSITION,
    NULL_ISLAND,
    OUT_OF_RANGE,
    SCHEMA,
)

decode = CODECS["gtfs_rt"]


def feed(*, timestamp: int | None = None) -> Any:  # noqa: ANN401  generated, untyped
    message = FeedMessage()
    message.header.gtfs_realtime_version = "2.0"
    if timestamp is not None:
        message.header.timestamp = timestamp
    return message


def add_vehicle(message: Any, lat: float, lon: float, **named: Any) -> None:  # noqa: ANN401  same
    entity = message.entity.add()
    entity.id = named.get("entity", "e")
    entity.vehicle.position.latitude = lat
    entity.vehicle.position.longitude = lon
    if "vehicle" in named:
        entity.vehicle.vehicle.id = named["vehicle"]
    if "timestamp" in named:
        entity.vehicle.timestamp = named["timestamp"]


def test_every_entity_of_a_feed_gets_one_result_in_the_feeds_order() -> None:
    message = feed(timestamp=5)
    add_vehicle(message, 60.5, 24.25, vehicle="v", timestamp=9)
    add_vehicle(message, 60.5, 24.25)
    message.entity.add(id="alert").alert.SetInParent()
    message.entity.add(id="nowhere").vehicle.timestamp = 9
    add_vehicle(message, 0.0, 0.0)
    add_vehicle(message, 60.5, 24.25)
    message.entity[-1].is_deleted = True
    assert decode(message.SerializeToString()) == [
        Fix(60.5, 24.25, 9.0, "v"),
        Fix(60.5, 24.25, None, "e"),  # the time of the feed is not the vehicle's
        NOT_A_POSITION,
        NO_FIX,
        NULL_ISLAND,
        NOT_A_POSITION,
    ]


def test_a_feed_without_any_time_gives_fixes_without_time() -> None:
    message = feed()
    add_vehicle(message, 60.5, 24.25)
    assert decode(message.SerializeToString()) == [Fix(60.5, 24.25, None, "e")]


def test_readings_are_the_finite_numbers_that_the_feed_states() -> None:
    message = feed()
    for speed, bearing in [(1.5, 90.0), (math.nan, 90.0), (-1.0, math.inf)]:
        add_vehicle(message, 60.5, 24.25)
        message.entity[-1].vehicle.position.speed = speed
        message.entity[-1].vehicle.position.bearing = bearing
    fixes = decode(message.SerializeToString())
    assert [fix.readings for fix in fixes if isinstance(fix, Fix)] == [
        {"speed_mps": 1.5, "heading_deg": 90.0},
        {"heading_deg": 90.0},
        None,
    ]


@pytest.mark.parametrize(
    ("wild", "reason"),
    [(math.nan, NO_FIX), (math.inf, NO_FIX), (-math.inf, NO_FIX), (90.5, OUT_OF_RANGE)],
)
def test_coordinates_outside_the_earth_are_refused(wild: float, reason: Outcome) -> None:
    message = feed()
    add_vehicle(message, wild, 1.0)
    add_vehicle(message, 1.0, wild * 2)
    assert decode(message.SerializeToString()) == [reason, reason]


def test_an_incomplete_position_does_not_spoil_the_others() -> None:
    message = feed()
    message.entity.add(id="half").vehicle.position.latitude = 1.0
    message.entity.add(id="other").vehicle.position.longitude = 1.0
    add_vehicle(message, 1.0, 2.0)
    assert decode(message.SerializePartialToString()) == [SCHEMA, SCHEMA, Fix(1.0, 2.0, None, "e")]


def test_an_id_that_is_not_utf8_is_refused() -> None:
    message = feed()
    add_vehicle(message, 1.0, 2.0, vehicle="XYZW")
    assert decode(message.SerializeToString().replace(b"XYZW", b"\xff\xfe\xff\xfe")) == [SCHEMA]


def test_a_vehicle_with_empty_names_has_no_device() -> None:
    message = feed()
    add_vehicle(message, 1.0, 2.0, entity="", vehicle="")
    assert decode(message.SerializeToString()) == [Fix(1.0, 2.0)]


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (b"", EMPTY),
        (feed().SerializeToString(), EMPTY),
        (b"\xff" * 30, MALFORMED),
        (b"\x12\x00", SCHEMA),  # an entity without a header
    ],
)
def test_bytes_that_are_not_a_feed_are_refused_whole(payload: bytes, reason: object) -> None:
    assert decode(payload) == [reason]
