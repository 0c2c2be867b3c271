"""The density map against a fresh count of the newest positions."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import composite

from anonymizer.algorithms.positions.density import ABSENT, DensityMap
from anonymizer.domain.outcomes import Outcome
from tests import naive
from tests.graphs import two_islands
from tests.naive import Position, Presence

NETWORK = two_islands()
GRAPH = naive.graph_of(NETWORK)

# Few devices, nodes and times, so that they collide; equal and decreasing times occur.
positions = st.builds(Position, st.integers(0, 4), st.integers(0, 6), st.integers(ABSENT, 7))
batches = st.lists(positions, max_size=8)
steps = batches | st.floats(0, 7)  # a batch, or a time before which everything expires


def advance(density: DensityMap, batch: Sequence[Position]) -> list[Outcome]:
    slot, ts, node = np.array(batch, np.float64).reshape(-1, 3).T
    outcome = density.advance(slot.astype(np.int32), ts, node.astype(np.int32))
    return [Outcome(value) for value in outcome.tolist()]


def assert_counts_are_fresh(density: DensityMap, presence: Presence) -> None:
    at = presence.devices_at()
    n_at = {v: len(devices) for v, devices in at.items()}
    assert density.n_at.tolist() == [n_at.get(v, 0) for v in GRAPH]
    assert density.n_near.tolist() == list(naive.density(GRAPH, at).values())
    population = naive.component_population(GRAPH, n_at)
    in_component_of = density.n_in[NETWORK.component_of]
    assert in_component_of.tolist() == [population[v] for v in GRAPH]
    assert density.n_devices == sum(n_at.values())


@given(st.lists(steps, max_size=12))
def test_after_every_batch_the_counts_equal_a_fresh_count_of_the_newest_positions(
    sequence: list[list[Position] | float],
) -> None:
    density, presence = DensityMap.empty(NETWORK), Presence()
    for step in sequence:
        if isinstance(step, list):
            assert advance(density, step) == presence.advance(step)
        else:
            assert set(density.expire(step).tolist()) == presence.expire(step)
        assert_counts_are_fresh(density, presence)


@given(st.lists(steps, max_size=12), st.integers(0, 6))
def test_a_device_is_parked_while_it_stays_near_one_node(
    sequence: list[list[Position] | float], since: int
) -> None:
    density, presence = DensityMap.empty(NETWORK), Presence()
    rest: dict[int, Position] = {}
    for step in sequence:
        before = dict(presence.newest)
        if isinstance(step, list):
            advance(density, step)
            presence.advance(step)
        else:
            density.expire(step)
            for device in presence.expire(step):
                del rest[device]
        for device, newest in presence.newest.items():
            at = rest[device].node if device in rest else ABSENT
            stays = at in GRAPH and newest.node in {at, *GRAPH[at]}
            if newest != before.get(device) and not stays:
                rest[device] = newest
    parked = {d for d, first in rest.items() if first.node >= 0 and first.ts <= since}
    assert set(np.flatnonzero(density.is_parked(since=since)).tolist()) == parked
    chosen = density.is_parked(since=since)
    at_node = {v: devices & parked for v, devices in presence.devices_at().items()}
    near = naive.density(GRAPH, at_node)
    assert density.near_only(chosen).tolist() == list(near.values())


@composite
def batch_and_shuffle(draw: st.DrawFn) -> tuple[list[Position], list[Position]]:
    batch = draw(batches)
    repeated = draw(st.lists(st.sampled_from(batch), max_size=4)) if batch else []
    return batch, draw(st.permutations(batch + repeated))


@given(batches, batch_and_shuffle())
def test_order_and_repetition_within_a_batch_change_nothing(
    before: list[Position], batch_and_shuffled: tuple[list[Position], list[Position]]
) -> None:
    batch, shuffled = batch_and_shuffled
    plain, mixed = DensityMap.empty(NETWORK), DensityMap.empty(NETWORK)
    for density in (plain, mixed):
        advance(density, before)
    outcomes = advance(plain, batch), advance(mixed, shuffled)
    for name in ("node_of", "version_of", "n_at", "n_near", "n_in"):
        np.testing.assert_array_equal(getattr(plain, name), getattr(mixed, name))
    held = [
        {position for position, o in zip(order, result, strict=True) if o == Outcome.HELD}
        for order, result in zip((batch, shuffled), outcomes, strict=True)
    ]
    assert held[0] == held[1]


@given(batches, batches)
def test_a_batch_moves_each_device_at_most_once(
    before: list[Position], batch: list[Position]
) -> None:
    density = DensityMap.empty(NETWORK)
    advance(density, before)
    outcomes = advance(density, batch)
    moved = Counter(
        position.device for position, o in zip(batch, outcomes, strict=True) if o == Outcome.HELD
    )
    assert set(moved.values()) <= {1}


def test_a_stale_position_never_overwrites_a_newer_one() -> None:
    density = DensityMap.empty(NETWORK)
    assert advance(density, [Position(0, 10, 2)]) == [Outcome.HELD]
    assert advance(density, [Position(0, 9.99, 5)]) == [Outcome.LATE]
    assert density.node_of[0] == 2
    assert density.n_at.tolist() == [0, 0, 1, 0, 0, 0, 0, 0]


def test_a_device_that_reports_twice_counts_once() -> None:
    density = DensityMap.empty(NETWORK)
    advance(density, [Position(0, 1, 2), Position(0, 1, 2), Position(0, 2, 2)])
    advance(density, [Position(0, 2, 2), Position(0, 3, 2)])
    assert density.n_devices == density.n_at[2] == density.n_near[1] == 1


def test_each_position_of_a_batch_gets_its_outcome() -> None:
    density = DensityMap.empty(NETWORK)
    advance(density, [Position(0, 5, 0)])
    batch = [
        Position(0, 4, 1),
        Position(0, 5, 1),
        Position(0, 6, 1),
        Position(0, 7, 2),
        Position(0, 7, 2),
        Position(0, 7, 1),
        Position(1, 0, ABSENT),
    ]
    assert advance(density, batch) == [
        Outcome.LATE,
        Outcome.DUPLICATE,
        Outcome.SUPPRESSED__SUPERSEDED,
        Outcome.HELD,
        Outcome.DUPLICATE,
        Outcome.DUPLICATE,
        Outcome.HELD,
    ]


def test_a_device_off_the_graph_no_longer_counts_at_its_old_node() -> None:
    density = DensityMap.empty(NETWORK)
    advance(density, [Position(0, 1, 5)])
    advance(density, [Position(0, 2, ABSENT)])
    assert density.n_devices == 0
    assert not density.n_near.any()
    assert advance(density, [Position(0, 1.5, 5)]) == [Outcome.LATE]


def test_presence_ends_just_after_its_time_to_live() -> None:
    density = DensityMap.empty(NETWORK)
    advance(density, [Position(3, 10, 5), Position(4, 11, ABSENT)])
    assert density.expire(10).tolist() == []
    assert density.expire(np.nextafter(10, 11)).tolist() == [3]
    assert density.n_devices == 0
    assert density.expire(100).tolist() == [4]
    assert density.expire(1000).tolist() == []


def test_the_map_grows_with_the_devices_without_forgetting_any() -> None:
    density = DensityMap.empty(NETWORK)
    advance(density, [Position(0, 1, 2)])
    advance(density, [Position(5_000, 1, 2)])
    assert density.n_at[2] == 2
    assert len(density.node_of) > 5_000
    assert np.count_nonzero(density.node_of >= 0) == 2


def test_the_repr_of_the_map_shows_no_positions() -> None:
    density = DensityMap.empty(NETWORK)
    assert "array" not in repr(density)
