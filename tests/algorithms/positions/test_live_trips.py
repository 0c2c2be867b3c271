"""Trips as devices report: the same that a reader of the whole recording finds."""

import itertools

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.positions.live_trips import EndedTrip, LiveTrips
from anonymizer.algorithms.positions.recorded_trips import trips_of
from anonymizer.algorithms.positions.trip_routes import route_arcs
from anonymizer.domain.arrays import IntArray
from anonymizer.domain.network import RoadNetwork
from anonymizer.domain.protection import TripRule
from anonymizer.domain.trace import Trace
from anonymizer.networks import load_network

RULE = TripRule(gap_s=100, dwell_m=50, dwell_s=60)
STEP = 0.0003
"""Degrees of latitude: 33 m."""
GRID = load_network("grid:8x8")


def heard(
    trace: Trace, *, ticks: IntArray, begins_s: float = 0.0, keeps_routes: bool = True
) -> list[EndedTrip]:
    """Return the trips of a trace whose rows come in these ticks."""
    live, found = LiveTrips(RULE, begins_s=begins_s, keeps_routes=keeps_routes), []
    for tick in np.unique(ticks).tolist():
        rows = np.flatnonzero(ticks == tick)
        found += live.tick(
            trace.device_of[rows].astype(np.int32),
            trace.ts[rows],
            trace.lat[rows],
            trace.lon[rows],
            np.rint((trace.lat[rows] - 60) / STEP).astype(np.int32),
        )
        live = LiveTrips.restored(RULE, live.state(), keeps_routes=keeps_routes)
        assert keeps_routes or not live._route_of
    return found + live.silent(np.inf)[0]


def of(trips: list[EndedTrip]) -> list[tuple[int, float, float]]:
    return sorted((each.row, each.start_s, each.end_s) for each in trips)


@given(
    st.lists(
        st.tuples(st.integers(0, 1), st.sampled_from([10, 30, 70, 120]), st.integers(0, 4)),
        min_size=1,
        max_size=40,
    ),
    st.integers(1, 500),
)
def test_the_trips_are_those_of_the_whole_recording(
    moves: list[tuple[int, int, int]], tick_s: int
) -> None:
    ts = 1000.0 + np.cumsum([[step if d == of else 0 for d in (0, 1)] for of, step, _ in moves], 0)
    device = np.array([of for of, _, _ in moves])
    places = np.array([place for _, _, place in moves], np.float64)
    # A row long before and one long after: the recording cuts no trip.
    trace = Trace(
        device_id=("a", "b", "watch"),
        device_of=np.concatenate([[2], device, [2]]),
        ts=np.concatenate([[0.0], ts[np.arange(len(device)), device], [1e6]]),
        lat=60 + STEP * np.concatenate([[0], places, [0]]),
        lon=np.full(len(device) + 2, 24.0),
    )
    ticks = np.floor(trace.ts / tick_s).astype(np.int64)
    found = heard(trace, ticks=ticks)
    assert of(heard(trace, ticks=ticks, keeps_routes=False)) == of(found)
    trips = trips_of(trace, RULE)
    assert of(found) == sorted(
        zip(
            trace.device_of[trips.first].tolist(),
            trace.ts[trips.first].tolist(),
            trace.ts[trips.last].tolist(),
            strict=True,
        )
    )
    for each in found:
        own = (trace.device_of == each.row) & (trace.ts >= each.start_s) & (trace.ts <= each.end_s)
        node = np.rint((trace.lat[own] - 60) / STEP).astype(int)
        node = node[np.argsort(trace.ts[own], kind="stable")]
        assert (each.origin, each.destination) == (node[0], node[-1])
        # Of a stay at the beginning only its last node is known to be on the way.
        told = each.route.tolist()
        assert told[-1] == node[-1]
        passed = [int(n) for i, n in enumerate(node) if i == 0 or n != node[i - 1]]
        assert told == passed[-len(told) :]


@pytest.mark.parametrize("again", [[], [300.0]], ids=["silent", "comes again"])
def test_a_trip_that_nobody_saw_begin_is_not_told(again: list[float]) -> None:
    n = 3 + len(again)
    trace = Trace(
        device_id=("a",),
        device_of=np.zeros(n, np.int64),
        ts=np.array([50.0, 80, 110, *again]),
        lat=60 + STEP * np.array([0.0, 3, 6, 6])[:n],
        lon=np.full(n, 24.0),
    )
    ticks = np.arange(n)
    assert of(heard(trace, ticks=ticks, begins_s=0.0)) == []
    assert of(heard(trace, ticks=ticks, begins_s=-51.0)) == [(0, 50.0, 110.0)]


def test_a_parked_device_is_told_at_once_and_holds_one_node() -> None:
    live, trips = LiveTrips(RULE, begins_s=-1000), []
    one = np.zeros(1, np.int32)
    for t, place in enumerate([0, 3, 6, 9] + 50 * [9, 10]):
        trips += live.tick(
            *(one, np.array([10.0 * t]), np.array([60 + STEP * place]), np.array([24.0])),
            np.array([place], np.int32),
        )
        if t == 9:
            assert of(trips) == [(0, 0.0, 30.0)]
    assert trips[0].route.tolist() == [0, 3, 6, 9]
    assert of(trips) == [(0, 0.0, 30.0)]
    assert [len(route) for route in live._route_of.values()] == [1]


def arcs_of(network: RoadNetwork, path: list[int]) -> list[int]:
    found = []
    for tail, head in itertools.pairwise(path):
        first, end = network.first_arc_of[tail : tail + 2]
        found.append(int(first + np.flatnonzero(network.neighbour_of[first:end] == head)[0]))
    return sorted(set(found))


@given(st.lists(st.integers(-1, 63), max_size=12))
def test_a_route_takes_the_fewest_roads_between_two_reports(nodes: list[int]) -> None:
    graph = nx.grid_2d_graph(8, 8)
    arcs = route_arcs(GRID, np.array(nodes, np.int32))
    length = 0
    for a, b in itertools.pairwise(nodes):
        if a >= 0 and b >= 0:
            way = route_arcs(GRID, np.array([a, b], np.int32))
            fewest = nx.shortest_path_length(graph, divmod(a, 8), divmod(b, 8))
            assert len(way) == fewest
            assert np.isin(way, arcs).all()
            tails = np.searchsorted(GRID.first_arc_of, way, "right") - 1
            heads = GRID.neighbour_of[way]
            # A way from a to b: each node between is entered and left once.
            net = np.bincount(tails, minlength=64) - np.bincount(heads, minlength=64)
            assert net.tolist() == [(i == a) - (i == b) for i in range(64)]
            length += int(fewest)
    assert len(arcs) <= length


def test_a_way_that_is_too_far_is_not_known() -> None:
    long = load_network("grid:1x600")
    assert arcs_of(long, [0, 1, 2]) == route_arcs(long, np.array([0, 2], np.int32)).tolist()
    assert route_arcs(long, np.array([0, 500], np.int32)).tolist() == []
