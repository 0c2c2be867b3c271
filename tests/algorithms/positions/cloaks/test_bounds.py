"""Bounds from the settings: nodes and metres of a region, and members beyond k."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as example_settings
from hypothesis import strategies as st

from anonymizer.domain.network import RoadNetwork
from anonymizer.networks import load_network
from anonymizer.pipeline.positions.tick.factory import Operator, cloaking_operator
from anonymizer.settings import Settings
from tests.algorithms.positions.cloaks.driving import Shared, shared_of, traffic
from tests.eager_session import EagerSession
from tests.networks.twins import arcs

CITY = load_network("city:120")
ROADS = arcs(CITY)
MODES = pytest.mark.parametrize("mode", ["snapshot", "session"])
N_DEVICES = 300
SYBILS = range(5)


def operator(mode: str, **region: Any) -> Operator:  # noqa: ANN401  a settings table
    tables = {
        "region": {"mode": mode, **region},
        "adka": {"density_steps": [3], "k_values": [4, 2]},
        "session": EagerSession(epoch_s=5),
    }
    return cloaking_operator(Settings.model_validate(tables), CITY)


def released(cloaking: Operator, *, seed: int, n_ticks: int = 12) -> list[Shared]:
    steps = traffic(CITY, N_DEVICES, seed=seed, says=0.7)
    groups: list[Shared] = []
    for now in range(n_ticks):
        where = next(steps)
        slot, node = (np.array(list(x), np.int32) for x in (where, where.values()))
        result = cloaking.tick(slot, np.full(len(slot), float(now)), node, now=now)
        groups += shared_of(result, now)
    return groups


def metres(region: tuple[int, ...]) -> float:
    """Return the metres of road in a region: a road counts half at each of its ends."""
    return sum(length / 2 for tail, _, length, _ in ROADS if tail in region)


@MODES
@pytest.mark.parametrize("min_nodes", [1, 4, 9])
def test_no_region_has_fewer_nodes_than_required(mode: str, min_nodes: int) -> None:
    groups = released(operator(mode, min_nodes=min_nodes), seed=1)
    assert len(groups) > 20
    assert min(len(set(group.region)) for group in groups) >= min_nodes


@MODES
@pytest.mark.parametrize("min_road_m", [500.0, 2500.0])
def test_no_region_covers_less_road_than_required(mode: str, min_road_m: float) -> None:
    groups = released(operator(mode, min_nodes=1, min_road_m=min_road_m), seed=2)
    assert len(groups) > 20
    assert min(metres(group.region) for group in groups) >= min_road_m - 1e-6


@MODES
def test_regions_are_smaller_in_nodes_and_metres_if_nothing_is_required(mode: str) -> None:
    groups = released(operator(mode, min_nodes=1), seed=2)
    assert min(len(group.region) for group in groups) < 4
    assert min(metres(group.region) for group in groups) < 500


@MODES
@given(st.integers(0, 3), st.sets(st.integers(0, N_DEVICES - 1), max_size=90), st.integers(0, 99))
@example_settings(max_examples=25)
def test_a_group_with_up_to_k_extra_sybils_still_has_k_real_devices(
    mode: str, k_extra: int, sybils: set[int], seed: int
) -> None:
    for group in released(operator(mode, k_extra=k_extra), seed=seed, n_ticks=8):
        members = set(group.members)
        assert len(members) == len(set(group.lives))
        if len(members & sybils) <= k_extra:
            assert len(members - sybils) >= group.k


@MODES
def test_without_k_extra_a_sybil_next_to_each_device_leaves_fewer_than_k_real_ones(
    mode: str,
) -> None:
    def n_real(k_extra: int) -> int:
        # Two places far apart, with one real device and two sybils, and two and one.
        cloaking = operator(mode, k_extra=k_extra)
        slot, node = np.arange(6, dtype=np.int32), np.array([0] * 3 + [119] * 3, np.int32)
        result = cloaking.tick(slot, np.zeros(6), node, now=0)
        sybils = {1, 2, 4}
        return min(len(set(group.members) - sybils) for group in shared_of(result, 0))

    assert n_real(k_extra=0) == 1
    assert n_real(k_extra=2) >= 2


def nodes_of_a_victim(nodes: list[int], network: RoadNetwork) -> int:
    """Return how many nodes the region has in which device 0 is published first."""
    settings = Settings.model_validate({"region": {"k_extra": len(SYBILS)}})
    cloaking = cloaking_operator(settings, network)
    slot, node = np.arange(len(nodes), dtype=np.int32), np.array(nodes, np.int32)
    for now in range(120):
        result = cloaking.tick(slot, np.full(len(slot), float(now)), node, now=now)
        for group in shared_of(result, now):
            if 0 in group.members:
                return len(group.region)
    raise AssertionError("the victim is not published")


@pytest.mark.soak
@pytest.mark.parametrize("n_devices", [200, 1000])
@pytest.mark.parametrize("how_near", ["at the same node", "around"])
def test_devices_within_k_extra_around_a_victim_leave_nine_tenths_of_its_region(
    n_devices: int, how_near: str
) -> None:
    network, left = load_network("city:10000"), []
    for seed in range(96):
        nodes = np.random.default_rng(seed).integers(network.n_nodes, size=n_devices).tolist()
        around = [nodes[0]]
        for at in around:
            first, end = network.first_arc_of[at : at + 2].tolist()
            around += [v for v in network.neighbour_of[first:end].tolist() if v not in around]
            if len(around) > len(SYBILS):
                break
        chosen = [nodes[0]] * 6 if how_near == "at the same node" else around
        beside = nodes_of_a_victim([*nodes, *(chosen[1 + i] for i in SYBILS)], network)
        left.append(beside / nodes_of_a_victim(nodes, network))
    assert np.mean(left) >= 0.9
