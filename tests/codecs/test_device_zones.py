"""Zones as devices state them: read exactly, or refused with a reason."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.codecs.device_zones import (
    MOST_K,
    MOST_RADIUS_M,
    MOST_ROAD_M,
    StatedZones,
    decode,
)
from anonymizer.domain.outcomes import Outcome

CIRCLE = {"circle": {"lat": 60.0, "lon": 25, "radius_m": 300}}
SQUARE = {"polygon": [[0, 0], [0, 1], [1, 1]]}


def test_circles_and_polygons_are_read() -> None:
    stated = decode(json.dumps([CIRCLE, SQUARE]).encode())
    assert isinstance(stated, StatedZones)
    [circle] = stated.circles
    assert [circle.lat, circle.lon, circle.radius_m] == [60, 25, 300]
    [corners] = stated.polygons
    assert [list(corner) for corner in corners] == [[0, 0], [0, 1], [1, 1]]
    assert "60" not in repr(stated)
    assert "60" not in repr(circle)


def test_everywhere_states_that_a_device_takes_no_part() -> None:
    assert decode(b'[{"everywhere": true}]') == StatedZones((), (), everywhere=True)
    both = decode(json.dumps([CIRCLE, {"everywhere": True}]).encode())
    assert isinstance(both, StatedZones)
    assert both.everywhere


def test_of_several_demands_the_largest_counts() -> None:
    assert decode(b'[{"k": 20}, {"road_m": 5000}, {"k": 9}]') == StatedZones(
        (), (), k=20, road_m=5000.0
    )
    for wrong in (b'[{"k": 1}]', b'[{"k": 2.5}]', b'[{"road_m": 0}]', b'[{"k": 3, "road_m": 5}]'):
        assert decode(wrong) is Outcome.INVALID__SCHEMA


@pytest.mark.parametrize(
    ("of", "most"),
    [
        (lambda x: {"k": x}, MOST_K),
        (lambda x: {"road_m": x}, MOST_ROAD_M),
        (lambda x: CIRCLE["circle"] | {"radius_m": x}, MOST_RADIUS_M),
    ],
)
def test_every_number_has_an_upper_bound(of: Callable[[float], Any], most: int) -> None:
    """The reproduction: one message with 1e12 metres of road silenced nine other devices."""

    def stated(number: float) -> StatedZones | Outcome:
        said = of(number)
        return decode(json.dumps([{"circle": said} if "lat" in said else said]).encode())

    assert isinstance(stated(most), StatedZones)
    for more in (most + 1, 10**30, 1e12):
        assert isinstance(stated(more), Outcome)


def test_trips_can_be_forbidden_and_not_demanded() -> None:
    assert decode(b'[{"trips": false}]') == StatedZones((), (), trips=False)
    both = decode(json.dumps([CIRCLE, {"trips": False}]).encode())
    assert isinstance(both, StatedZones)
    assert not both.trips
    assert decode(b'[{"trips": true}]') is Outcome.INVALID__SCHEMA


def test_an_empty_array_states_that_there_are_none() -> None:
    assert decode(b"[]") == StatedZones((), ())


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (b"", Outcome.INVALID__EMPTY),
        (b"?", Outcome.INVALID__MALFORMED),
        (b"\xff", Outcome.INVALID__MALFORMED),
        (b"{}", Outcome.INVALID__SCHEMA),
        (b"[{}]", Outcome.INVALID__SCHEMA),
        (b'[{"everywhere": false}]', Outcome.INVALID__SCHEMA),
        (json.dumps([CIRCLE | {"everywhere": True}]).encode(), Outcome.INVALID__SCHEMA),
        (json.dumps([CIRCLE | SQUARE]).encode(), Outcome.INVALID__SCHEMA),
        (b'[{"circle": {"lat": 91, "lon": 0, "radius_m": 1}}]', Outcome.INVALID__SCHEMA),
        (b'[{"circle": {"lat": 1, "lon": 0, "radius_m": 0}}]', Outcome.INVALID__SCHEMA),
        (b'[{"circle": {"lat": 1, "lon": 0, "radius": 5}}]', Outcome.INVALID__SCHEMA),
        (b'[{"circle": {"lat": 1, "lon": 0, "radius_m": 5, "r": 1}}]', Outcome.INVALID__SCHEMA),
        (b'[{"polygon": [[0, 0], [0, 1], [1]]}]', Outcome.INVALID__SCHEMA),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_refused_with_its_reason(payload: bytes, reason: Outcome) -> None:
    assert decode(payload) is reason


@given(st.binary(max_size=50))
def test_nothing_makes_it_raise(payload: bytes) -> None:
    assert isinstance(decode(payload), StatedZones | Outcome)
