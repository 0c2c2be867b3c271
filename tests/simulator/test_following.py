"""Car following: nobody overlaps, red means stop, queues form and dissolve, and jams end."""

from math import inf, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.geodesy import haversine_m
from anonymizer.domain.arrays import BoolArray, FloatArray, IntArray
from anonymizer.domain.network import RoadNetwork
from anonymizer.networks import load_network
from simulator.following import (
    CYCLE_S,
    HARDEST_MPS2,
    JAM_S,
    STEP_S,
    VEHICLE_M,
    Following,
    acceleration,
)
from simulator.traffic import REFRESH_S, Traffic
from tests.simulator.support import Road, network

RING: list[Road] = [(i, (i + 1) % 12, True, False) for i in range(12)]


@pytest.fixture(scope="module")
def city() -> RoadNetwork:
    return load_network("city:400")


def following(traffic: Traffic) -> Following:
    assert traffic.following is not None
    return traffic.following


def gaps_m(traffic: Traffic) -> FloatArray:
    """Return the distance between the fronts of all that follow each other on one road."""
    arc, along_m = traffic.fleet["arc"], following(traffic).motion["along_m"]
    order = np.lexsort((-along_m, arc))
    order = order[arc[order] >= 0]
    same = arc[order][1:] == arc[order][:-1]
    gaps: FloatArray = (along_m[order][:-1] - along_m[order][1:])[same]
    return gaps


def shows_green(roads: RoadNetwork, traffic: Traffic, arc: IntArray, at_s: float) -> BoolArray:
    """Return which roads have green at their end, by the rule in words."""
    _, arcs = traffic.roads
    tail, head = arcs["tail"][arc], arcs["head"][arc]
    north_m = haversine_m(roads.lat[tail], roads.lon[tail], roads.lat[head], roads.lon[tail])
    east_m = haversine_m(roads.lat[head], roads.lon[tail], roads.lat[head], roads.lon[head])
    half = ((at_s + CYCLE_S * (head * 0.6180339887498949 % 1)) % CYCLE_S) // (CYCLE_S / 2)
    has_signal = np.diff(roads.first_arc_of)[head] > 2
    green: BoolArray = ~has_signal | ((half == 0) == (north_m > east_m))
    return green


@given(
    speed=st.floats(0, 30),
    wanted=st.floats(1, 40),
    gap=st.floats(0.5, 500),
    ahead=st.floats(0, 30),
)
def test_the_acceleration_is_that_of_the_paper(
    speed: float, wanted: float, gap: float, ahead: float
) -> None:
    a, b, headway, least = 1.5, 2.0, 1.5, 2.0
    needed = least + max(0, speed * headway + speed * (speed - ahead) / (2 * sqrt(a * b)))
    expected = a * (1 - (speed / wanted) ** 4 - (needed / gap) ** 2)
    assert acceleration(speed, wanted, gap, ahead) == pytest.approx(expected)
    assert acceleration(0.0, wanted, inf, 0.0) == a
    assert acceleration(wanted, wanted, inf, 0.0) == pytest.approx(0)


@pytest.mark.parametrize("n_devices", [400, 2000])
def test_no_two_devices_of_a_road_are_ever_at_one_place(city: RoadNetwork, n_devices: int) -> None:
    traffic = Traffic(city, n_devices, parked_share=0.0, queues=True)
    n_gaps = 0
    for at_s in np.arange(0, 120, STEP_S).tolist():
        traffic.advance(at_s)
        gaps = gaps_m(traffic)
        assert gaps.min() >= VEHICLE_M - 1e-9
        n_gaps += len(gaps)
    assert n_gaps > 1000


def test_who_can_stop_stops_at_red_and_a_queue_stands_behind(city: RoadNetwork) -> None:
    traffic = Traffic(city, 800, parked_share=0.0, queues=True)
    _, arcs = traffic.roads
    n_red = n_queued = 0
    for step in range(240):
        traffic.advance(step * STEP_S)
        model = following(traffic)
        arc, motion = traffic.fleet["arc"].copy(), model.motion.copy()
        slot, began_s = traffic.fleet["slot"].copy(), model.now_s
        traffic.advance((step + 1) * STEP_S)
        crossed = np.flatnonzero((arc >= 0) & (traffic.fleet["arc"] != arc))
        crossed = crossed[slot[crossed] == traffic.fleet["slot"][crossed]]  # the trip goes on
        red = crossed[~shows_green(city, traffic, arc[crossed], began_s)]
        left_m = arcs["length_m"][arc[red]] - motion["along_m"][red]
        assert (motion["speed_mps"][red] ** 2 > 2 * HARDEST_MPS2 * left_m - 1e-6).all()
        on_road = np.flatnonzero(arc >= 0)
        waits = on_road[~shows_green(city, traffic, arc[on_road], began_s)]
        n_red += int((motion["speed_mps"][waits] < 0.1).sum())
        n_queued += int((gaps_m(traffic) < VEHICLE_M + 3).sum())
    assert n_red > 5000
    assert n_queued > 5000


def test_the_more_there_are_the_slower_they_are(city: RoadNetwork) -> None:
    def mean_mps(n_devices: int) -> float:
        """Return the mean speed on the roads over five cycles of the signals."""
        traffic = Traffic(city, n_devices, parked_share=0.0, queues=True)
        seen = []
        for at_s in np.arange(0, 5 * CYCLE_S, 5).tolist():
            traffic.advance(at_s)
            seen.append(following(traffic).motion["speed_mps"][traffic.fleet["arc"] >= 0])
        return float(np.concatenate(seen).mean())

    few, many, too_many = (mean_mps(n) for n in (50, 1000, 3000))
    assert few > many > 2 * too_many


def test_a_ring_that_is_full_does_not_stand_still_for_ever() -> None:
    # Two lanes of a ring, with a crossing at every node, and more devices than fit.
    both: list[Road] = [(u, v, True, True) for u, v, _, _ in RING]
    spokes: list[Road] = [(u, 12, True, True) for u in range(12)]
    ring = network([*both, *spokes], n_nodes=13)
    n_fit = int(ring.length_m.sum() / (VEHICLE_M + 2))
    traffic = Traffic(ring, n_fit, parked_share=0.0, queues=True)
    traffic.advance(600.0)
    before = traffic.fleet["node"].copy()
    traffic.advance(600.0 + 2 * JAM_S)
    moved = (traffic.fleet["node"] != before).mean()
    assert moved > 0.2


@given(
    cuts=st.lists(st.floats(0, 3 * REFRESH_S), max_size=20).map(sorted),
    seed=st.integers(0, 3),
)
def test_positions_do_not_depend_on_the_times_requested_before(
    city: RoadNetwork, cuts: list[float], seed: int
) -> None:
    end_s = 3 * REFRESH_S + 1
    seldom, often = (Traffic(city, 40, seed=seed, queues=True) for _ in range(2))
    for at_s in cuts:
        often.advance(at_s)
    assert np.array_equal(seldom.advance(end_s), often.advance(end_s))


@pytest.mark.parametrize("lon", [10.0, 180.0])
def test_devices_stay_near_the_roads_within_the_limits_and_parked_ones_stay(lon: float) -> None:
    roads = network([*RING, (0, 6, True, True), (3, 9, True, False)], n_nodes=12, lon=lon)
    traffic = Traffic(roads, 60, parked_share=0.25, queues=True)
    _, arcs = traffic.roads
    before = first = np.array(traffic.advance(0.0))
    n_on_road = 0
    for at_s in np.arange(0.25, 200, 0.25).tolist():
        here = np.array(traffic.advance(at_s))
        assert haversine_m(*before, *here).max() <= 0.25 * roads.speed_mps.max() + 0.01
        arc = traffic.fleet["arc"]
        on = np.flatnonzero(arc >= 0)
        tail, head = arcs["tail"][arc[on]], arcs["head"][arc[on]]
        whole_m = haversine_m(roads.lat[tail], roads.lon[tail], roads.lat[head], roads.lon[head])
        lat, lon = here[:, on]
        behind_m = haversine_m(roads.lat[tail], roads.lon[tail], lat, lon)
        ahead_m = haversine_m(lat, lon, roads.lat[head], roads.lon[head])
        assert (behind_m + ahead_m - whole_m).max() < 2 * STEP_S * roads.speed_mps.max()
        n_on_road += len(on)
        before = here
    assert n_on_road > 5000
    still = np.isinf(traffic.fleet["end_s"])
    assert still.sum() == 15
    assert np.array_equal(first[:, still], before[:, still])
