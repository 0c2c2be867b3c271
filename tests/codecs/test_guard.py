from math import inf, nan
from typing import Any

import pytest
from msgspec import structs

from anonymizer.codecs import FORMATS
from anonymizer.codecs.guard import guarded, only_within
from anonymizer.codecs.layouts import Role
from anonymizer.domain.fixes import Fix
from anonymizer.domain.outcomes import Outcome

FIX = Fix(60.0, 24.0, 5.0, "bus", {"speed_mps": 3.0, "odd": inf})


def raises(_payload: bytes) -> Any:  # noqa: ANN401  a codec of somebody else
    raise MemoryError


def test_what_a_plug_in_raises_costs_its_own_message() -> None:
    assert guarded(raises)(b"x") == [Outcome.INVALID__MALFORMED]
    assert guarded(lambda _: 3)(b"x") == [Outcome.INVALID__MALFORMED]
    assert guarded(lambda _: [])(b"x") == [Outcome.INVALID__EMPTY]
    assert guarded(raises)(b"") == [Outcome.INVALID__EMPTY]


@pytest.mark.parametrize(
    ("found", "outcome"),
    [
        (Outcome.INVALID__NO_FIX, Outcome.INVALID__NO_FIX),
        (Outcome.PUBLISHED, Outcome.INVALID__SCHEMA),
        ("a text", Outcome.INVALID__SCHEMA),
        (structs.replace(FIX, ts=nan), Outcome.INVALID__SCHEMA),
        (structs.replace(FIX, ts=1.8e12), Outcome.INVALID__TIME_IN_MS),
        (structs.replace(FIX, lat=nan, lon=nan), Outcome.INVALID__NO_FIX),
    ],
)
def test_what_it_returns_is_checked_like_a_payload(found: object, outcome: Outcome) -> None:
    assert guarded(lambda _: [found])(b"x") == [outcome]


def test_a_sound_position_goes_through_without_numbers_that_are_none() -> None:
    (fix,) = guarded(lambda _: [FIX])(b"x")
    assert fix == structs.replace(FIX, readings={"speed_mps": 3.0}, unusable=("odd",))
    (bare,) = guarded(lambda _: [structs.replace(FIX, ts=None, device=None, readings=None)])(b"x")
    assert bare == structs.replace(FIX, ts=None, device=None, readings=None)


@pytest.mark.parametrize(
    ("speed", "is_within"), [(2.0, False), (2.5, True), (9.0, True), (9.1, False), (None, False)]
)
def test_only_positions_within_bounds_count_and_the_bounds_are_within(
    speed: float | None, *, is_within: bool
) -> None:
    readings = None if speed is None else {"speed_mps": speed, "other": 1.0}
    fix = structs.replace(FIX, readings=readings)
    codec = only_within(
        lambda _: [fix, Outcome.INVALID__NO_FIX], {"speed_mps": (2.5, 9.0), "other": (0.0, 1.0)}
    )
    expected = fix if is_within else Outcome.INVALID__NOT_SELECTED
    assert codec(b"x") == [expected, Outcome.INVALID__NO_FIX]


def test_a_layout_states_one_latitude_and_one_longitude() -> None:
    for layout in (each.layout for each in FORMATS.values() if each.layout is not None):
        roles = [member.role for member in layout.members.values()]
        assert roles.count(Role.LAT) == roles.count(Role.LON) == 1
        assert (Role.KIND in roles) == bool(layout.kind)
