"""Presence in regions: nodes found, and devices counted."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.attacks.indistinguishability import instants_of
from anonymizer.algorithms.attacks.presence import (
    OUTSIDE,
    devices_inside,
    devices_near,
    slot_in_region,
)
from tests.algorithms.attacks.made import GRID, random_release

seeds = st.integers(0, 10_000)


@given(seeds)
def test_a_node_is_found_exactly_if_its_region_contains_it(seed: int) -> None:
    observed = random_release(seed).observed
    node = np.random.default_rng(seed).integers(0, GRID.n_nodes, observed.n_records, np.int32)
    slot = slot_in_region(observed, node, region=observed.region_of)
    for i, r in enumerate(observed.region_of):
        first, last = observed.first_node_of[r : r + 2]
        if slot[i] == OUTSIDE:
            assert node[i] not in observed.node[first:last]
        else:
            assert first <= slot[i] < last
            assert observed.node[slot[i]] == node[i]


@given(seeds)
def test_the_devices_inside_a_region_are_those_at_its_nodes(seed: int) -> None:
    made = random_release(seed)
    observed = made.observed
    instants = instants_of(observed)
    n = devices_inside(
        observed, made.truth, tick=instants.tick, region=instants.region, n_nodes=GRID.n_nodes
    )
    expected = [
        np.isin(
            made.truth.place[t],
            observed.node[observed.first_node_of[r] : observed.first_node_of[r + 1]],
        ).sum()
        for t, r in zip(instants.tick, instants.region, strict=True)
    ]
    assert n.tolist() == expected


@given(seeds)
def test_density_counts_the_devices_at_a_node_and_its_neighbours(seed: int) -> None:
    made = random_release(seed)
    n_ticks = len(made.observed.time)
    tick = np.repeat(np.arange(n_ticks), GRID.n_nodes)
    node = np.tile(np.arange(GRID.n_nodes, dtype=np.int32), n_ticks)
    n = devices_near(GRID, made.truth, tick=tick, node=node)
    for t, v, counted in zip(tick, node, n, strict=True):
        near = [v, *GRID.neighbour_of[GRID.first_arc_of[v] : GRID.first_arc_of[v + 1]]]
        assert counted == np.isin(made.truth.place[t], near).sum()
