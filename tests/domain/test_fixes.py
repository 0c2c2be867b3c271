"""Fixes: which coordinates are valid, and what a repr reveals."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.domain.fixes import Fix, check_coordinates, checked_fix
from anonymizer.domain.outcomes import Outcome


@given(st.floats(), st.floats())
def test_a_fix_is_on_the_earth_and_not_at_null_island(lat: float, lon: float) -> None:
    fix = checked_fix(lat, lon, 5.0, "a", {"x": 1.0})
    if math.isfinite(lat) and math.isfinite(lon) and abs(lat) <= 90 and abs(lon) <= 180:
        assert fix == (
            Fix(lat, lon, 5.0, "a", {"x": 1.0}) if lat or lon else Outcome.INVALID__NULL_ISLAND
        )
    elif not (math.isfinite(lat) and math.isfinite(lon)):
        assert fix == Outcome.INVALID__NO_FIX
    elif fix != Outcome.INVALID__OUT_OF_RANGE:  # both are marks of no fix
        assert fix == Outcome.INVALID__NO_FIX
        assert abs(lat) > 90
        assert abs(lon) > 180


@pytest.mark.parametrize(
    ("lat", "lon"),
    [
        (91, 181),
        (90.0000001, 180.0000001),
        (-999, -999),
        (999.0, -9999),
        (214.7483647,) * 2,
        (-214.7483648,) * 2,
    ],
)
def test_what_formats_write_for_not_available_is_no_fix(lat: float, lon: float) -> None:
    assert checked_fix(lat, lon) == Outcome.INVALID__NO_FIX
    assert checked_fix(lat, 25.0) == checked_fix(60.0, lon) == Outcome.INVALID__OUT_OF_RANGE


degrees = st.sampled_from([0.0, 90.0, -90.1, 180.0, -180.1]) | st.floats()


@given(st.lists(st.tuples(degrees, degrees)))
def test_arrays_of_coordinates_are_checked_by_the_same_rule(
    rows: list[tuple[float, float]],
) -> None:
    lat, lon = np.array(rows, np.float64).reshape(-1, 2).T
    fixes = [checked_fix(*row) for row in rows]
    # A row of a trace has a position: what is none on the earth is out of range.
    beside = {Outcome.INVALID__NO_FIX: Outcome.INVALID__OUT_OF_RANGE}
    expected = [Outcome.HELD if isinstance(fix, Fix) else beside.get(fix, fix) for fix in fixes]
    assert check_coordinates(lat, lon).tolist() == expected


@pytest.mark.parametrize(("lat", "lon"), [(90, 180), (-90, -180), (0, 1), (1, 0)])
def test_the_edges_of_the_earth_belong_to_it(lat: float, lon: float) -> None:
    assert checked_fix(lat, lon) == Fix(lat, lon)


def test_the_repr_of_a_fix_shows_neither_place_nor_device_nor_readings() -> None:
    assert repr(Fix(61.25, 25.5, 1.0, "secret", {"battery": 37.0})) == "Fix(...)"
