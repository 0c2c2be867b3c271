"""Traffic: deterministic, on the roads, within speed limits, never trapped."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymizer.algorithms.geodesy import haversine_m
from anonymizer.domain.arrays import FloatArray
from anonymizer.domain.network import RoadNetwork
from anonymizer.errors import InputError
from anonymizer.networks import load_network
from simulator.driving import STOP_S
from simulator.traffic import HOURLY, REFRESH_S, Traffic
from tests.simulator.support import Road, network

ONE_WAY_RING: list[Road] = [(i, (i + 1) % 12, True, False) for i in range(12)]


@pytest.fixture(scope="module")
def city() -> RoadNetwork:
    return load_network("city:400")


def path(traffic: Traffic, times_s: FloatArray) -> FloatArray:
    """Return latitudes and longitudes at each time, shape (times, 2, devices)."""
    return np.array([traffic.advance(at_s) for at_s in times_s.tolist()])


@settings(deadline=None, max_examples=20)
@given(
    cuts=st.lists(st.floats(0, 3 * REFRESH_S), max_size=20).map(sorted),
    seed=st.integers(0, 3),
)
def test_positions_do_not_depend_on_the_times_requested_before(
    city: RoadNetwork, cuts: list[float], seed: int
) -> None:
    end_s = 3 * REFRESH_S + 1
    seldom, often = (Traffic(city, 40, seed=seed) for _ in range(2))
    path(often, np.array(cuts))
    assert np.array_equal(seldom.advance(end_s), often.advance(end_s))


def test_each_device_can_be_moved_to_its_own_time(city: RoadNetwork) -> None:
    one_by_one, together = Traffic(city, 30), Traffic(city, 30)
    at_s = np.linspace(REFRESH_S - 2, 2 * REFRESH_S + 2, 30)
    lat, lon = one_by_one.move(np.arange(30), at_s)
    for device in range(30):
        expected = together.advance(float(at_s[device]))
        assert (lat[device], lon[device]) == (expected[0][device], expected[1][device])


def test_another_seed_gives_other_traffic(city: RoadNetwork) -> None:
    assert not np.array_equal(Traffic(city, 40).advance(60), Traffic(city, 40, seed=1).advance(60))


def check_leg(traffic: Traffic, roads: RoadNetwork, lat: FloatArray, lon: FloatArray) -> None:
    """Assert that every driving device is on its drivable arc, and every other at a node."""
    driving = traffic.fleet["arc"] >= 0
    arc = traffic.fleet["arc"][driving]
    assert roads.drivable[arc].all()
    _, arcs = traffic.roads
    tail, head = arcs["tail"][arc], arcs["head"][arc]
    here = lat[driving], lon[driving]
    whole_m = haversine_m(roads.lat[tail], roads.lon[tail], roads.lat[head], roads.lon[head])
    behind_m = haversine_m(roads.lat[tail], roads.lon[tail], *here)
    ahead_m = haversine_m(*here, roads.lat[head], roads.lon[head])
    assert np.abs(behind_m + ahead_m - whole_m).max(initial=0) < 0.01
    node = traffic.fleet["node"][~driving]
    away_m = haversine_m(roads.lat[node], roads.lon[node], lat[~driving], lon[~driving])
    assert away_m.max(initial=0) < 0.01


@pytest.mark.parametrize("lon", [10.0, 180.0])
def test_devices_stay_on_the_roads_and_never_drive_against_one_way_streets(lon: float) -> None:
    roads = network([*ONE_WAY_RING, (0, 6, True, True), (3, 9, True, False)], n_nodes=12, lon=lon)
    traffic = Traffic(roads, 50, parked_share=0.0)
    n_driving = 0
    for at_s in range(0, 400, 3):
        check_leg(traffic, roads, *traffic.advance(float(at_s)))
        n_driving += int(np.count_nonzero(traffic.fleet["arc"] >= 0))
    assert n_driving > 1000


def test_a_device_goes_from_arc_to_arc_and_never_jumps(city: RoadNetwork) -> None:
    traffic = Traffic(city, 60, parked_share=0.0)
    where = path(traffic, np.arange(0, 200, 0.25))
    step_m = haversine_m(where[:-1, 0], where[:-1, 1], where[1:, 0], where[1:, 1])
    assert step_m.max() <= city.speed_mps.max() * 0.25 + 0.01


def test_no_device_is_faster_than_its_arc_allows(city: RoadNetwork) -> None:
    traffic = Traffic(city, 60, parked_share=0.0)
    n_checked = 0
    for at_s in np.arange(0, 120, 0.5).tolist():
        before = np.array(traffic.advance(at_s))
        leg_s, arc = traffic.fleet["start_s"].copy(), traffic.fleet["arc"].copy()
        after = np.array(traffic.advance(at_s + 0.1))
        same = (arc >= 0) & (leg_s == traffic.fleet["start_s"])
        step_m = haversine_m(*before[:, same], *after[:, same])
        assert (step_m <= 0.1 * city.speed_mps[arc[same]] + 1e-3).all()
        n_checked += int(same.sum())
    assert n_checked > 1000


def test_devices_slow_down_at_junctions_and_stop_at_some(city: RoadNetwork) -> None:
    traffic = Traffic(city, 200, parked_share=0.0)
    seen: set[float] = set()
    for at_s in range(0, 120, 2):
        traffic.advance(float(at_s))
        seen |= set(traffic.fleet["exit_mps"][traffic.fleet["arc"] >= 0].tolist())
    assert 0.0 in seen
    assert 5.5 in seen


def test_every_device_visits_several_nodes(city: RoadNetwork) -> None:
    traffic = Traffic(city, 50, parked_share=0.0)
    nodes = [set[int]() for _ in range(50)]
    for at_s in range(0, 1200, 5):
        traffic.advance(float(at_s))
        for device, node in enumerate(traffic.fleet["node"].tolist()):
            nodes[device].add(node)
    assert min(map(len, nodes)) >= 5


@pytest.mark.parametrize("share", [0.0, 0.25, 1.0])
def test_the_requested_share_of_devices_is_parked(city: RoadNetwork, share: float) -> None:
    traffic = Traffic(city, 200, parked_share=share)
    where = path(traffic, np.arange(0.0, 900, 30))
    still = (where == where[0]).all(axis=(0, 1))
    assert np.count_nonzero(still) == round(200 * share)


def test_no_device_leaves_its_strongly_connected_component() -> None:
    trap: list[Road] = [(11, 12, True, False), (12, 13, True, True)]
    traffic = Traffic(network([*ONE_WAY_RING, *trap], n_nodes=14), 80, parked_share=0.0)
    outside = traffic.fleet["node"] < 12
    assert 0 < np.count_nonzero(outside) < 80
    for at_s in range(0, 600, 5):
        traffic.advance(float(at_s))
        assert np.array_equal(traffic.fleet["node"] < 12, outside)


def test_every_large_component_has_its_traffic() -> None:
    second: list[Road] = [(u + 12, v + 12, True, True) for u, v, _, _ in ONE_WAY_RING]
    traffic = Traffic(network([*ONE_WAY_RING, *second], n_nodes=24), 80, parked_share=0.0)
    traffic.advance(50.0)
    island = traffic.fleet["node"] >= 12
    assert 20 < np.count_nonzero(island) < 60
    traffic.advance(900.0)
    assert np.array_equal(island, traffic.fleet["node"] >= 12)


def test_two_nodes_are_enough_to_drive_back_and_forth() -> None:
    traffic = Traffic(network([(0, 1, True, True)], n_nodes=2), 3, parked_share=0.0)
    where = path(traffic, np.arange(0.0, 1500, 5))
    assert (np.ptp(where[:, 1], axis=0) > 0.0007).all()


@pytest.mark.parametrize(
    ("roads", "n_nodes"), [([], 1), ([], 3), ([(0, 1, True, False)], 2)], ids=str
)
def test_on_a_network_without_drivable_components_all_are_parked(
    roads: list[Road], n_nodes: int
) -> None:
    traffic = Traffic(network(roads, n_nodes=n_nodes), 20, parked_share=0.0)
    where = path(traffic, np.array([0.0, 1000.0]))
    assert np.array_equal(where[0], where[1])
    assert np.isfinite(where).all()
    assert np.isinf(traffic.fleet["end_s"]).all()


def test_a_network_without_coordinates_or_nodes_is_refused() -> None:
    nowhere = network([], n_nodes=1)
    nowhere.lat[:] = np.nan
    for unusable in (nowhere, network([], n_nodes=0)):
        with pytest.raises(InputError, match="nothing can move on it"):
            Traffic(unusable, 1)


def test_demand_follows_the_time_of_day_and_without_one_it_is_always_rush_hour(
    city: RoadNetwork,
) -> None:
    def n_driving(begins_s: float | None, at_s: float) -> int:
        traffic = Traffic(city, 400, begins_s=begins_s)
        traffic.advance(at_s)
        # Who waits at a junction is under way, too; who rests waits for longer.
        resting = traffic.fleet["end_s"] - traffic.fleet["start_s"]
        return int(((traffic.fleet["arc"] >= 0) | (resting < STOP_S[1])).sum())

    rush_hour = HOURLY.index(1.0)
    busy, night = n_driving(3600.0 * rush_hour + 600, 900.0), n_driving(3600.0 * 2, 900.0)
    assert busy == n_driving(None, 900.0)
    assert night < busy / 3
    # The night ends while they drive: demand is that of the moment, not of the start.
    assert n_driving(3600.0 * 4, 3600.0 * (rush_hour - 4) + 1800.0) > 2 * night
