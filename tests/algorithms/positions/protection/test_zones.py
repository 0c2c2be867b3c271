"""Privacy zones: which positions are inside, and which zones are refused."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from anonymizer.algorithms.positions.map_matching import OFF_GRAPH
from anonymizer.algorithms.positions.protection import IN_ZONE, Circle, Polygon, Zones, keep_out
from anonymizer.networks import load_network
from anonymizer.networks.privacy_zones import with_zones
from tests import naive

Place = tuple[float, float]


def inside(zones: Zones, *places: Place) -> list[bool]:
    lat, lon = np.array(places, np.float64).reshape(-1, 2).T
    return zones.contains(lat, lon).tolist()  # type: ignore[no-any-return]


def encloses(corners: Sequence[tuple[int, int]], place: tuple[int, int]) -> bool:
    """Count, in exact fractions, the lines that a ray to the east crosses."""
    lat, lon = (Fraction(x) for x in place)
    crossed = 0
    for (lat_a, lon_a), (lat_b, lon_b) in zip(corners, [*corners[1:], corners[0]], strict=True):
        if lat_a == lat_b:
            if lat == lat_a and min(lon_a, lon_b) <= lon <= max(lon_a, lon_b):
                return True
            continue
        along = (lat - lat_a) / (lat_b - lat_a)
        meets_at = lon_a + along * (lon_b - lon_a)
        if 0 <= along <= 1 and meets_at == lon:
            return True
        # A line includes only its southern end, so that a ray through a corner counts it once.
        crossed += min(lat_a, lat_b) <= lat < max(lat_a, lat_b) and meets_at > lon
    return crossed % 2 == 1


near = st.tuples(st.integers(-4, 4), st.integers(-4, 4))


@given(st.lists(near, min_size=3, max_size=8), st.lists(near, max_size=12))
def test_a_polygon_contains_what_the_even_odd_rule_gives_in_exact_fractions(
    corners: list[tuple[int, int]], places: list[tuple[int, int]]
) -> None:
    assume(len(set(corners)) >= 3)
    zones = Zones(polygons=[Polygon(tuple(corners))])
    assert inside(zones, *places) == [encloses(corners, place) for place in places]


SQUARE = ((0.0, 0.0), (0.0, 4.0), (4.0, 4.0), (4.0, 0.0))


def test_the_border_of_a_polygon_is_inside() -> None:
    zones = Zones(polygons=[Polygon(SQUARE)])
    assert all(inside(zones, *SQUARE, (0, 2), (4, 2), (2, 0), (2, 4)))
    assert not any(inside(zones, (-1e-9, 2), (4 + 1e-9, 2), (2, -1e-9), (2, 4 + 1e-9)))


def test_a_star_has_a_hole_where_its_lines_enclose_a_place_twice() -> None:
    star = Polygon(((2, 0), (-2, 1), (1, -2), (1, 2), (-2, -1)))
    assert inside(Zones(polygons=[star]), (1.5, 0.0), (0.0, 0.0)) == [True, False]


@given(
    st.lists(st.tuples(st.floats(-90, 90), st.floats(-180, 180)), min_size=1, max_size=6),
    st.lists(
        st.tuples(st.floats(-90, 90), st.floats(-180, 180), st.floats(1, 2e7)),
        min_size=1,
        max_size=3,
    ),
)
def test_a_circle_contains_what_is_within_its_radius_anywhere_on_earth(
    places: list[Place], circles: list[tuple[float, float, float]]
) -> None:
    found = inside(Zones(circles=[Circle(*circle) for circle in circles]), *places)
    for place, hit in zip(places, found, strict=True):
        beyond_m = min(naive.haversine_m(*place, lat, lon) - r for lat, lon, r in circles)
        # Distances of almost half the circumference are accurate to only a few centimetres.
        assert hit == (beyond_m <= 0) or abs(beyond_m) < 0.5


def test_a_circle_may_cross_the_antimeridian_or_a_pole() -> None:
    zones = Zones([Circle(0, 179.999, 1000), Circle(89.999, 0, 1000)])
    assert inside(zones, (0, -179.999), (0, 179.98), (89.999, 180)) == [True, False, True]


def test_the_rim_of_a_circle_is_inside() -> None:
    centre = (60.0, 24.0)
    for i in range(1, 200):
        rim = (60 + i * 1e-5, 24 + i * 3e-5)
        radius_m = naive.haversine_m(*centre, *rim)
        assert inside(Zones([Circle(*centre, radius_m)]), rim) == [True]
        assert inside(Zones([Circle(*centre, radius_m - 1e-3)]), rim) == [False]


def test_zones_may_overlap_and_mix_both_shapes() -> None:
    zones = Zones([Circle(2, 2, 1000), Circle(9, 9, 1000)], [Polygon(SQUARE), Polygon(SQUARE)])
    assert inside(zones, (2, 2), (9, 9), (1, 1), (7, 7)) == [True, True, True, False]


def test_coordinates_that_are_not_finite_are_inside_if_there_is_any_zone() -> None:
    nowhere = [(np.nan, 1.0), (1.0, np.inf), (np.nan, np.nan)]
    for zones in (Zones([Circle(50, 50, 1)]), Zones(polygons=[Polygon(((9, 9), (9, 8), (8, 9)))])):
        assert inside(zones, *nowhere, (1.0, 1.0)) == [True, True, True, False]
    assert not any(inside(Zones(), *nowhere))


def test_an_empty_batch_gives_an_empty_result() -> None:
    assert inside(Zones([Circle(0, 0, 1)], [Polygon(SQUARE)])) == []


@pytest.mark.parametrize(
    ("corners", "message"),
    [
        ((), "three different corners"),
        (((1, 1), (2, 2)), "three different corners"),
        (((1, 1), (2, 2), (1, 1)), "three different corners"),
        (((0, 90.1), (1, -90), (1, 0)), "more than 180 degrees"),
        (((91, 0), (1, 0), (1, 1)), "on the earth"),
        (((1, 181), (1, 180), (2, 180)), "on the earth"),
        (((np.nan, 0), (1, 0), (1, 1)), "on the earth"),
    ],
)
def test_a_polygon_without_a_well_defined_inside_is_refused(
    corners: tuple[Place, ...], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        Polygon(corners)


def test_a_polygon_may_span_half_the_earth() -> None:
    zones = Zones(polygons=[Polygon(((-10, -90), (10, -90), (10, 90), (-10, 90)))])
    assert inside(zones, (0, 0), (0, 90), (0, 91), (11, 0)) == [True, True, False, False]


@pytest.mark.parametrize("circle", [(0, 0, 0), (0, 0, np.nan), (91, 0, 1), (0, np.nan, 1)])
def test_a_circle_with_an_invalid_centre_or_radius_is_refused(
    circle: tuple[float, float, float],
) -> None:
    with pytest.raises(ValueError, match=r"radius above 0|on the earth"):
        Circle(*circle)


def test_positions_in_a_zone_or_nearest_to_a_node_in_one_are_kept_out() -> None:
    node = np.array([0, 1, 2, 0, OFF_GRAPH, OFF_GRAPH], np.int32)
    closed = np.array([False, True, True])
    hidden = np.array([False, False, True, True, False, True])
    out = keep_out(node, closed=closed, inside=hidden)
    assert out.dtype == np.int32
    assert out.tolist() == [0, IN_ZONE, IN_ZONE, IN_ZONE, OFF_GRAPH, IN_ZONE]
    assert keep_out(node, closed=closed).tolist() == [0, IN_ZONE, IN_ZONE, 0, OFF_GRAPH, OFF_GRAPH]


def test_the_repr_of_a_zone_shows_no_place() -> None:
    shown = repr([Circle(60.5, 24.5, 10), Polygon(SQUARE), Zones([Circle(60.5, 24.5, 10)])])
    assert not any(text in shown for text in ("60.5", "24.5", "4.0"))


def test_the_nodes_beside_a_zone_are_those_with_a_road_into_it() -> None:
    network = load_network("grid:5x5")
    middle = 12
    lat, lon = float(network.lat[middle]), float(network.lon[middle])
    zoned = with_zones(network, Zones([Circle(lat, lon, 10.0)]))
    assert np.flatnonzero(zoned.closed).tolist() == [middle]
    assert np.flatnonzero(zoned.beside >= 0).tolist() == [7, 11, middle, 13, 17]
    node = np.array([middle, 7, 0, OFF_GRAPH], np.int32)
    assert zoned.keep_out(node).tolist() == [IN_ZONE, 7, 0, OFF_GRAPH]
    # A position inside is kept out, wherever its nearest node is.
    here = zoned.keep_out(node, np.full(4, lat), np.full(4, lon))
    assert here.tolist() == [IN_ZONE] * 4


def test_zones_of_several_statements_contain_what_one_with_all_of_them_does() -> None:
    circle, square = Circle(1.0, 1.0, 50_000.0), Polygon(SQUARE)
    far = Polygon(tuple((lat + 10, lon) for lat, lon in SQUARE))
    whole = Zones([circle, circle], [square, far])
    parts = [Zones([circle]), Zones(polygons=[square]), Zones([circle], [far])]
    places = [(lat, lon) for lat in range(-2, 16) for lon in range(-2, 8)]
    joined = Zones.joined(parts)
    assert len(joined) == len(whole) == 4
    assert inside(joined, *places) == inside(whole, *places)
    assert len(set(inside(whole, *places))) == 2
    assert Zones.joined([whole]) is whole
