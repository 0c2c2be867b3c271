"""Presence in regions: nodes found, and devices counted."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.attacks.indistinguishability import instants_of
from anonymizer.algorithms.attacks.presence import (
    OUTSIDE,
    covered_in_zones,
    devices_inside,
    devices_near,
    slot_in_region,
)
from anonymizer.algorithms.attacks.truth import Truth
from tests.algorithms.attacks.made import GRID, observed_of, random_release

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


def test_a_device_in_a_zone_is_taken_to_be_where_its_region_enters_the_zone() -> None:
    # Nodes 5 to 8 are one zone; the regions of devices 0 and 1 enter it, that of device 2 does not.
    zone_of = np.full(GRID.n_nodes, -1, np.int32)
    zone_of[5:9] = 0
    lines = [(0, 0, (3, 7), 2), (1, 0, (3, 7), 2), (2, 0, (1, 2), 2), (3, 0, (1, 2), 2)]
    place = np.array([[5, 7, 6, 4]], np.int32)
    truth = Truth(place, np.ones((1, 4), bool), np.arange(4))
    assert covered_in_zones(truth, observed_of(lines), zone_of).place.tolist() == [[7, 7, 6, 4]]
    nowhere = np.full(GRID.n_nodes, -1, np.int32)
    assert covered_in_zones(truth, observed_of(lines), nowhere) is truth
