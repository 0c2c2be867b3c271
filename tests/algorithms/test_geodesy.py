"""Geodesy against an independent library, at antipodes, poles and the date line."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyproj import Geod

from anonymizer.algorithms.geodesy import (
    EARTH_RADIUS_M,
    chord_of_m,
    haversine_m,
    unit_vectors,
)

positions = st.tuples(st.floats(-90, 90), st.floats(-180, 180))


@given(positions, positions)
def test_the_distance_agrees_with_an_independent_library_on_the_sphere(
    a: tuple[float, float], b: tuple[float, float]
) -> None:
    sphere = Geod(a=EARTH_RADIUS_M, b=EARTH_RADIUS_M)
    _, _, expected_m = sphere.inv(a[1], a[0], b[1], b[0])
    # Near antipodes the haversine is ill-conditioned: centimetres in twenty thousand kilometres.
    assert haversine_m(*a, *b) == pytest.approx(expected_m, rel=1e-9, abs=0.5)


def test_a_degree_of_latitude_is_one_360th_of_the_circumference() -> None:
    degree_m = haversine_m([0.0, 45.0, 89.0], 10.0, [1.0, 46.0, 90.0], 10.0)
    np.testing.assert_allclose(degree_m, 2 * math.pi * EARTH_RADIUS_M / 360)


def test_a_distance_of_a_millimetre_is_still_precise() -> None:
    step_deg = math.degrees(1e-3 / EARTH_RADIUS_M)
    assert haversine_m(60.0, 25.0, 60.0 + step_deg, 25.0) == pytest.approx(1e-3, rel=1e-4)


def test_antipodes_are_half_a_circumference_apart_not_nan() -> None:
    lat = np.linspace(-90, 90, 1_001)
    lon = np.linspace(-180, 0, 1_001)
    np.testing.assert_allclose(haversine_m(lat, lon, -lat, lon + 180), math.pi * EARTH_RADIUS_M)


def test_the_distance_is_right_across_the_date_line() -> None:
    across_m = haversine_m(-17.0, 179.99, -17.0, -179.99)
    assert across_m == pytest.approx(float(haversine_m(-17.0, 0.0, -17.0, 0.02)))


def test_a_position_without_coordinates_has_no_distance() -> None:
    assert np.isnan(haversine_m(np.nan, np.nan, 1.0, 2.0))


@given(st.lists(positions, min_size=1, max_size=5))
def test_unit_vectors_have_length_one_and_one_row_for_each_position(
    where: list[tuple[float, float]],
) -> None:
    lat, lon = np.array(where).T
    vectors = unit_vectors(lat, lon)
    assert vectors.shape == (len(where), 3)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0)


def test_unit_vectors_point_to_known_places_of_the_globe() -> None:
    np.testing.assert_allclose(
        unit_vectors([0, 0, 0, 90, -90], [0, 90, 180, 0, 55]),
        [[1, 0, 0], [0, 1, 0], [-1, 0, 0], [0, 0, 1], [0, 0, -1]],
        atol=1e-15,
    )


@given(positions, positions)
def test_a_chord_limit_equals_a_limit_in_metres(
    a: tuple[float, float], b: tuple[float, float]
) -> None:
    vector_a, vector_b = unit_vectors([a[0], b[0]], [a[1], b[1]])
    chord = float(np.linalg.norm(vector_a - vector_b))
    assert chord_of_m(float(haversine_m(*a, *b))) == pytest.approx(chord, abs=1e-7)


def test_no_chord_is_longer_than_the_diameter() -> None:
    assert chord_of_m(1e9) == 2.0
