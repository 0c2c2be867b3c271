"""Zones of several owners find what the zones of each owner find by themselves."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.positions.protection import Circle, OwnedZones, Polygon, Zones

near = st.tuples(st.integers(-4, 4), st.integers(-4, 4))
circles = st.builds(Circle, st.integers(-4, 4), st.integers(-4, 4), st.floats(1e4, 5e5))
polygons = st.builds(Polygon, st.lists(near, min_size=3, max_size=6, unique=True).map(tuple))
zones = st.builds(Zones, st.lists(circles, max_size=3), st.lists(polygons, max_size=3))


@given(st.lists(zones, min_size=1, max_size=5), st.lists(near, max_size=15), st.randoms())
def test_a_position_is_compared_with_the_zones_of_its_owner_alone(
    owners: list[Zones], places: list[tuple[int, int]], random: np.random.RandomState
) -> None:
    owner = np.array([random.randint(0, len(owners) - 1) for _ in places], np.int64)
    lat, lon = np.array(places, np.float64).reshape(-1, 2).T
    found = OwnedZones(owners).contains(owner, lat, lon)
    expected = [
        bool(owners[own].contains(lat[[i]], lon[[i]])[0]) for i, own in enumerate(owner.tolist())
    ]
    assert found.tolist() == expected


def test_what_is_nowhere_counts_as_inside() -> None:
    owned = OwnedZones([Zones([Circle(0, 0, 10)])])
    nan = np.array([np.nan, 1.0, np.inf])
    assert owned.contains(np.zeros(3, np.int64), nan, np.zeros(3)).tolist() == [True, False, True]


def test_without_owners_there_is_nothing_to_find() -> None:
    nothing = np.zeros(0)
    assert not len(OwnedZones().contains(np.zeros(0, np.int64), nothing, nothing))
