"""Presence in regions: nodes found, and devices counted."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.audit.mathematics.indistinguishability import instants_of
from anonymizer.audit.mathematics.presence import (
    OUTSIDE,
    covered_in_zones,
    devices_inside,
    devices_near,
    slot_in_region,
)
from anonymizer.audit.mathematics.truth import Truth
from tests.audit.mathematics.made import GRID, observed_of, random_release

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
    place = np.array([[5, 7, 6, 1]], np.int32)
    truth = Truth(place, np.ones((1, 4), bool), np.arange(4))
    covered = covered_in_zones(truth, observed_of(lines), GRID, zone_of)
    assert covered.place.tolist() == [[7, 7, 6, 1]]
    nowhere = np.full(GRID.n_nodes, -1, np.int32)
    assert covered_in_zones(truth, observed_of(lines), GRID, nowhere) is truth


def test_a_device_between_two_zones_may_be_in_either_of_them() -> None:
    middle = int(np.flatnonzero(np.diff(GRID.first_arc_of) >= 3)[0])
    left, right, *_ = GRID.neighbour_of[GRID.first_arc_of[middle] :].tolist()
    around = {middle, *GRID.neighbour_of[slice(*GRID.first_arc_of[middle : middle + 2])].tolist()}
    far = next(node for node in range(GRID.n_nodes) if node not in around)
    zone_of = np.full(GRID.n_nodes, -1, np.int32)
    zone_of[left], zone_of[right], zone_of[far] = 0, 1, 2
    lines = [(i, 0, nodes, 2) for i, nodes in enumerate([(left,), (right,), (far,)])]
    truth = Truth(np.full((1, 3), middle, np.int32), np.ones((1, 3), bool), np.arange(3))
    covered = covered_in_zones(truth, observed_of(lines), GRID, zone_of)
    assert covered.place.tolist() == [[left, right, middle]]


def test_a_device_that_is_hidden_may_be_in_each_zone_since_it_was_last_outside() -> None:
    zone_of = np.full(GRID.n_nodes, -1, np.int32)
    nodes = np.arange(GRID.n_nodes)
    near = [set(GRID.neighbour_of[slice(*GRID.first_arc_of[v : v + 2])].tolist()) for v in nodes]
    one = 0
    other = next(
        int(v) for v in nodes if v != one and not near[v] & {one} and not near[v] & near[0]
    )
    outside = next(int(v) for v in nodes if v not in {one, other} | near[one] | near[other])
    zone_of[one], zone_of[other] = 0, 1
    lines = [(device, second, (one,), 2) for device in (0, 1) for second in (0, 1, 2)]
    place = np.array([[one, one], [one, outside], [other, other]], np.int32)
    truth = Truth(place, np.ones((3, 2), bool), np.arange(2))
    covered = covered_in_zones(truth, observed_of(lines), GRID, zone_of)
    assert covered.place[2].tolist() == [one, other]
