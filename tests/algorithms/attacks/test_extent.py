from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.attacks.observed import extent_m
from anonymizer.algorithms.geodesy import haversine_m
from tests.algorithms.attacks.made import CITY, observed_of

regions = st.lists(st.integers(0, CITY.n_nodes - 1), min_size=1, max_size=9, unique=True)


@given(regions)
def test_the_extent_is_the_largest_distance_between_two_nodes(region: list[int]) -> None:
    lat, lon = CITY.lat[region], CITY.lon[region]
    largest_m = haversine_m(lat[:, None], lon[:, None], lat, lon).max()
    extent = extent_m(observed_of([(0, 0, tuple(region), 2)]), CITY)[0]
    assert 0.994 * largest_m <= extent <= 1.001 * largest_m


def test_the_extent_does_not_see_the_date_line() -> None:
    observed = observed_of([(0, 0, tuple(range(CITY.n_nodes)), 2)])
    moved = replace(CITY, lon=(CITY.lon - CITY.lon.mean() + 180 + 180) % 360 - 180)
    np.testing.assert_allclose(extent_m(observed, moved), extent_m(observed, CITY), rtol=5e-3)


def test_without_coordinates_there_is_no_extent() -> None:
    nowhere = np.full(CITY.n_nodes, np.nan)
    network = replace(CITY, lat=nowhere, lon=nowhere)
    assert np.isnan(extent_m(observed_of([(0, 0, (1, 2), 2)]), network)).all()
