"""The `adka` cloak against its naive twin."""

from collections import defaultdict

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.positions.adka import DensityRule
from anonymizer.algorithms.positions.cloaks import AdkaCloak
from anonymizer.domain.network import RoadNetwork
from anonymizer.domain.outcomes import Outcome
from tests import naive
from tests.algorithms.positions.cloaks.driving import TWO
from tests.algorithms.positions.releases import devices_at, groups_of
from tests.graphs import networks, two_islands

RULE = DensityRule(steps=(2, 4), values=(4, 3, 2))


def adka_cloak(rule: DensityRule = TWO, *, max_nodes: int = 1000) -> AdkaCloak:
    return AdkaCloak(rule, max_nodes=max_nodes, rotate_s=300)


@given(networks(max_nodes=10), st.data(), st.integers(1, 10))
def test_each_node_with_a_report_publishes_the_region_of_the_twin_or_its_reason(
    network: RoadNetwork, data: st.DataObject, max_nodes: int
) -> None:
    nodes = data.draw(st.lists(st.integers(0, network.n_nodes - 1), max_size=12))
    silent = data.draw(st.integers(0, len(nodes)))
    density = devices_at(network, nodes)
    slot = np.arange(silent, len(nodes), dtype=np.int32)
    cloaked = adka_cloak(RULE, max_nodes=max_nodes).cloak(density, slot, now=0)

    graph = naive.graph_of(network)
    at: defaultdict[int, set[int]] = defaultdict(set)
    for device, node in enumerate(nodes):
        at[node].add(device)
    n_at = {v: len(devices) for v, devices in at.items()}
    near = naive.density(graph, at)
    population = naive.component_population(graph, n_at)
    expected, outcomes = [], {}
    for root in sorted({nodes[s] for s in slot.tolist()}):
        k = naive.k_for(near[root], steps=RULE.steps, values=RULE.values, floor=RULE.floor)
        region = naive.bfs_region(graph, n_at, population, root, k, max_nodes=max_nodes)
        outcomes[root] = region if isinstance(region, Outcome) else Outcome.PUBLISHED
        if not isinstance(region, Outcome):
            members = sorted(at[root] & set(slot.tolist()))
            expected.append(naive.Group(k, sorted(region), members))
    assert groups_of(cloaked.release) == expected
    assert cloaked.outcome.tolist() == [outcomes[nodes[s]] for s in slot.tolist()]


def test_a_pseudonym_lives_until_the_next_rotation() -> None:
    density = devices_at(two_islands(), [0, 0])
    slot = np.array([0, 1], np.int32)

    def versions(now: float) -> list[int]:
        release = adka_cloak().cloak(density, slot, now=now).release
        numbers: list[int] = release.version.tolist()
        return numbers

    assert versions(600) == versions(899.9)
    assert versions(600) != versions(900)


def test_no_device_waits_and_no_slot_is_kept() -> None:
    density = devices_at(two_islands(), [0, 0, 5])
    cloak = adka_cloak()
    assert not cloak.reciprocal
    assert cloak.n_waiting(density) == 0
    assert not cloak.kept(3).any()
    assert cloak.places(density) is density.node_of
    cloak.retire(np.array([0], np.int32))
    release = cloak.cloak(density, np.array([0], np.int32), now=0).release
    assert release.n_groups == 1, "retiring has no effect"
