"""What is sent of a road network, against plain twins."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.domain.network import RoadNetwork
from anonymizer.networks import load_network
from anonymizer.web.network_outline import Bounds, Outline

SMALL = load_network("grid:4x5")
CITY = load_network("city:400")


def ints(content: bytes) -> list[int]:
    return [int(number) for number in np.frombuffer(content, "<i4")]


def rows(content: bytes) -> tuple[int, set[tuple[int, ...]]]:
    """Return the kind of an answer, and its rows."""
    kind, *rest = ints(content)
    n = 5 if kind else 3
    assert len(rest) % n == 0
    found = [tuple(rest[i : i + n]) for i in range(0, len(rest), n)]
    assert len(set(found)) == len(found)
    return kind, set(found)


def pairs_of(network: RoadNetwork) -> set[tuple[int, int]]:
    return {
        (v, w)
        for v in range(network.n_nodes)
        for w in network.neighbour_of[
            network.first_arc_of[v] : network.first_arc_of[v + 1]
        ].tolist()
        if v < w
    }


def test_every_node_is_sent_in_order_to_within_six_centimetres() -> None:
    places = np.array(ints(Outline(CITY).nodes)).reshape(-1, 2) / 1e6
    assert np.abs(places[:, 0] - CITY.lat).max() <= 0.51e-6
    assert np.abs(places[:, 1] - CITY.lon).max() <= 0.51e-6


def test_a_small_network_is_sent_whole_each_road_once() -> None:
    for network in (SMALL, CITY):
        outline = Outline(network)
        kind, found = rows(outline.roads(Bounds(0, 0, 1, 1)))
        assert outline.is_small
        assert kind == 0
        assert {row[:2] for row in found} == pairs_of(network)


def test_the_rank_of_a_road_rises_with_its_speed() -> None:
    speed_of = {
        (v, int(CITY.neighbour_of[i])): float(CITY.speed_mps[i])
        for v in range(CITY.n_nodes)
        for i in range(CITY.first_arc_of[v], CITY.first_arc_of[v + 1])
    }
    _, found = rows(Outline(CITY).roads())
    by_speed = sorted((speed_of[v, w], rank) for v, w, rank in found)
    assert [rank for _, rank in by_speed] == sorted(rank for _, rank in by_speed)
    assert len({rank for _, rank in by_speed}) > 2


def test_the_bounds_are_those_of_the_nodes() -> None:
    south, west, north, east = Outline(CITY).bounds
    assert south == pytest.approx(CITY.lat.min(), abs=1e-6)
    assert west == pytest.approx(CITY.lon.min(), abs=1e-6)
    assert north == pytest.approx(CITY.lat.max(), abs=1e-6)
    assert east == pytest.approx(CITY.lon.max(), abs=1e-6)


BIG = Outline(CITY, most_roads=60)
SHARE = st.floats(0, 1, allow_nan=False)


@given(south=SHARE, west=SHARE, height=SHARE, width=SHARE)
def test_no_answer_is_larger_than_allowed_and_an_exact_one_leaves_out_nothing_in_the_box(
    south: float, west: float, height: float, width: float
) -> None:
    all_of = BIG.bounds
    tall, wide = all_of.north - all_of.south, all_of.east - all_of.west
    box = Bounds(
        all_of.south + south * tall,
        all_of.west + west * wide,
        all_of.south + south * tall + height * tall,
        all_of.west + west * wide + width * wide,
    )
    kind, found = rows(BIG.roads(box))
    assert len(found) <= 60
    if kind == 0:
        inside = {
            v
            for v in range(CITY.n_nodes)
            if box.south + 1e-6 < CITY.lat[v] < box.north - 1e-6
            and box.west + 1e-6 < CITY.lon[v] < box.east - 1e-6
        }
        touching = {pair for pair in pairs_of(CITY) if inside & set(pair)}
        assert touching <= {row[:2] for row in found} <= pairs_of(CITY)


def test_a_small_part_of_a_big_network_is_exact_and_the_whole_is_simplified() -> None:
    south, west, north, east = BIG.bounds
    lat, lon = (south + north) / 2, (west + east) / 2
    near = Bounds(lat, lon, lat + (north - south) / 20, lon + (east - west) / 20)
    assert rows(BIG.roads(near))[0] == 0
    kind, lines = rows(BIG.roads())
    assert kind == 1
    # It still spans the city, and a line lies where it can: between the outermost nodes.
    lats = [line[0] / 1e6 for line in lines] + [line[2] / 1e6 for line in lines]
    assert south <= min(lats) < max(lats) <= north
    assert max(lats) - min(lats) > 0.6 * (north - south)
    assert max(line[4] for line in lines) == max(row[2] for row in rows(Outline(CITY).roads())[1])


def test_a_network_of_which_a_cell_holds_everything_still_ends() -> None:
    kind, lines = rows(Outline(SMALL, most_roads=0).roads())
    assert (kind, lines) == (1, set())
