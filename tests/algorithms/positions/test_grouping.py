"""Reciprocal grouping against its naive twin, and the bounds of regions."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.positions.grouping import (
    TOO_FEW,
    TOO_LARGE,
    TOO_SMALL,
    UNGROUPED,
    Groups,
    form_groups,
)
from anonymizer.algorithms.positions.spanning_forest import spanning_forest
from anonymizer.domain.network import RoadNetwork
from anonymizer.networks import load_network
from tests import naive
from tests.examples import many
from tests.graphs import network_of, networks, two_islands

REASONS = {"too few": TOO_FEW, "too small": TOO_SMALL, "too large": TOO_LARGE}


@dataclass(frozen=True)
class Case:
    """Devices on a network, and the bounds of their groups."""

    network: RoadNetwork
    n_at: Sequence[int]
    need_at: Sequence[int]
    metres_at: Sequence[int]
    min_nodes: int
    max_nodes: int
    min_metres: int

    def groups(self) -> Groups:
        return form_groups(
            spanning_forest(self.network),
            np.array(self.n_at, np.int32),
            np.array(self.need_at, np.int32),
            min_nodes=self.min_nodes,
            max_nodes=self.max_nodes,
            metres_at=np.array(self.metres_at, np.float64),
            min_metres=self.min_metres,
        )


@st.composite
def cases(draw: st.DrawFn) -> Case:
    network = draw(networks())
    n = network.n_nodes

    def at_each(low: int, high: int) -> list[int]:
        return draw(st.lists(st.integers(low, high), min_size=n, max_size=n))

    counts, demands, metres = at_each(0, 3), at_each(1, 5), at_each(0, 3)
    small = st.integers(1, 5)
    min_nodes = draw(small)
    max_nodes = draw(st.integers(min_nodes, 14))
    min_metres = draw(st.sampled_from([0, 0, 2, 6]))
    return Case(network, counts, demands, metres, min_nodes, max_nodes, min_metres)


def regions_of(groups: Groups) -> list[list[int]]:
    starts = groups.first_node_of.tolist()
    return [groups.node[first:last].tolist() for first, last in pairwise(starts)]


@given(cases())
@many(3)
def test_the_groups_are_those_of_the_naive_twin(case: Case) -> None:
    groups = case.groups()
    forest = spanning_forest(case.network)
    twin = naive.Grouping(
        forest.parent_of.tolist(),
        forest.order.tolist(),
        list(zip(case.n_at, case.need_at, strict=True)),
        case.metres_at,
        min_nodes=case.min_nodes,
        max_nodes=case.max_nodes,
        min_metres=case.min_metres,
    )
    assert list(zip(groups.k.tolist(), regions_of(groups), strict=True)) == twin.groups
    group_at = {
        v: REASONS[group] if isinstance(group, str) else group for v, group in twin.group_at.items()
    }
    assert groups.group_at.tolist() == [
        group_at.get(v, UNGROUPED) for v in range(case.network.n_nodes)
    ]


@given(cases())
@many(2)
def test_a_region_is_connected_within_bounds_and_contains_its_devices(
    case: Case,
) -> None:
    groups = case.groups()
    graph = naive.graph_of(case.network).to_undirected()
    for g, region in enumerate(regions_of(groups)):
        assert region == sorted(set(region))
        assert nx.is_connected(graph.subgraph(region))
        assert set(np.flatnonzero(groups.group_at == g).tolist()) <= set(region)
        assert case.min_nodes <= len(region) <= case.max_nodes
        assert sum(case.metres_at[v] for v in region) >= case.min_metres


@given(cases())
@many(2)
def test_every_group_has_as_many_devices_as_its_k_the_largest_demand(case: Case) -> None:
    groups = case.groups()
    for g, k in enumerate(groups.k.tolist()):
        homes = np.flatnonzero(groups.group_at == g).tolist()
        assert k == max(case.need_at[v] for v in homes)
        assert sum(case.n_at[v] for v in homes) >= k


@given(cases())
@many(2)
def test_every_device_is_in_a_group_or_has_a_true_reason(case: Case) -> None:
    groups = case.groups()
    for component in range(case.network.n_components):
        nodes = np.flatnonzero(case.network.component_of == component).tolist()
        fates = {groups.group_at[v] for v in nodes if case.n_at[v]}
        assert UNGROUPED not in fates
        n_devices = sum(case.n_at[v] for v in nodes)
        need = max((case.need_at[v] for v in nodes if case.n_at[v]), default=0)
        metres = sum(case.metres_at[v] for v in nodes)
        if TOO_FEW in fates:
            assert n_devices < need
        if TOO_SMALL in fates:
            assert len(nodes) < case.min_nodes or metres < case.min_metres
        if TOO_LARGE not in fates:
            assert (TOO_FEW in fates) == (n_devices < need)
            assert not fates & {TOO_FEW, TOO_SMALL} or len(fates) == 1
    nobody = [v for v, n in enumerate(case.n_at) if n == 0]
    assert set(groups.group_at[nobody].tolist()) <= {UNGROUPED}


@given(cases())
def test_equal_positions_give_equal_groups(case: Case) -> None:
    assert [a.tolist() for a in case.groups()] == [a.tolist() for a in case.groups()]


def test_devices_at_the_end_of_a_road_get_a_region_of_full_size() -> None:
    path = network_of(6, [(v, v + 1) for v in range(5)])
    for end in (0, 5):
        at_end = [3 if v == end else 0 for v in range(6)]
        groups = Case(path, at_end, [3] * 6, [0] * 6, 4, 6, 0).groups()
        [region] = regions_of(groups)
        assert len(region) >= 4
        assert end in region


def test_a_component_that_is_too_small_and_one_with_too_few_devices_have_different_reasons() -> (
    None
):
    # A square with a tail; a pair; a lone node.
    n_at = [1, 0, 0, 0, 1, 2, 1, 9]
    groups = Case(two_islands(), n_at, [3] * 8, [0] * 8, 3, 8, 0).groups()
    assert groups.group_at.tolist() == [
        TOO_FEW,
        *[UNGROUPED] * 3,
        TOO_FEW,
        TOO_SMALL,
        TOO_SMALL,
        TOO_SMALL,
    ]


def test_two_groups_may_share_a_connecting_node() -> None:
    star = network_of(5, [(0, v) for v in range(1, 5)])
    groups = Case(star, [0, 1, 1, 1, 1], [2] * 5, [0] * 5, 2, 5, 0).groups()
    assert sorted(map(len, regions_of(groups))) == [3, 3]
    assert all(0 in region for region in regions_of(groups))


@pytest.mark.parametrize("n_devices", [10_000])
def test_regions_of_a_city_with_one_device_per_node_average_at_most_nine_nodes(
    n_devices: int,
) -> None:
    city = load_network("city:10000")
    node = np.random.default_rng(3).integers(0, city.n_nodes, n_devices)
    n_at = np.bincount(node, minlength=city.n_nodes).astype(np.int32)
    near = n_at + np.add.reduceat(n_at[city.neighbour_of], city.first_arc_of[:-1])
    need = np.where(near < 4, 10, np.where(near < 10, 5, 2)).astype(np.int32)
    groups = form_groups(spanning_forest(city), n_at, need, min_nodes=4, max_nodes=1000)
    assert np.diff(groups.first_node_of).mean() <= 9
    assert (groups.group_at[node] >= 0).all()
