"""The cloaking operator: outcomes, accounting, and refusal of releases that fail verification."""

from collections.abc import Sequence
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.positions.adka import DensityRule
from anonymizer.algorithms.positions.cloaks import AdkaCloak, Cloak
from anonymizer.algorithms.positions.operator import CloakingOperator, TickResult, classify_time
from anonymizer.algorithms.positions.pace import Pace
from anonymizer.algorithms.positions.verification import Transcripts
from anonymizer.domain.network import RoadNetwork
from anonymizer.domain.outcomes import Outcome
from anonymizer.networks import load_network
from tests import naive
from tests.algorithms.positions.releases import FixedCloak, groups_of
from tests.graphs import two_islands
from tests.naive import Group, Position

GRID = load_network("grid:5x5")
TWO = DensityRule(steps=(), values=(2,))


def operator(
    network: RoadNetwork = GRID,
    cloak: Cloak | None = None,
    *,
    rule: DensityRule = TWO,
    max_nodes: int = 1000,
) -> CloakingOperator:
    cloak = cloak or AdkaCloak(rule, max_nodes=max_nodes, rotate_s=300)
    return CloakingOperator(network, cloak, pace=Pace(ttl_s=100, epoch_s=0), k_floor=2)


def tick(
    operator: CloakingOperator, batch: Sequence[Position], *, now: float = 0
) -> tuple[list[Outcome], list[Group], TickResult]:
    slot, ts, node = np.array(batch, np.float64).reshape(-1, 3).T
    result = operator.tick(slot.astype(np.int32), ts, node.astype(np.int32), now=now)
    return [Outcome(o) for o in result.outcome.tolist()], groups_of(result.release), result


def test_an_empty_batch_gives_an_empty_release() -> None:
    outcomes, groups, result = tick(operator(), [])
    assert (outcomes, groups, result.freed.tolist()) == ([], [], [])


def test_one_device_alone_is_suppressed() -> None:
    outcomes, groups, _ = tick(operator(), [Position(0, 0, 12)])
    assert outcomes == [Outcome.SUPPRESSED__TOO_FEW_DEVICES]
    assert groups == []


def test_devices_at_one_node_share_one_group() -> None:
    outcomes, groups, _ = tick(operator(), [Position(i, 0, 12) for i in (2, 0, 1)])
    assert outcomes == [Outcome.PUBLISHED] * 3
    assert groups == [Group(k=2, region=[12], members=[0, 1, 2])]


def test_ten_thousand_devices_on_one_node_are_one_group() -> None:
    outcomes, [group], _ = tick(operator(), [Position(i, 0, 12) for i in range(10_000)])
    assert set(outcomes) == {Outcome.PUBLISHED}
    assert group == Group(k=2, region=[12], members=list(range(10_000)))


def test_a_region_does_not_begin_with_the_node_it_was_grown_from() -> None:
    _, groups, _ = tick(operator(), [Position(0, 0, 12), Position(1, 0, 7)])
    assert [group.region for group in groups] == [[2, 6, 7, 12], [7, 12]]


def test_a_region_above_the_cap_is_suppressed_and_the_others_are_released() -> None:
    batch = [Position(0, 0, 0), Position(1, 0, 0), Position(2, 0, 24)]
    outcomes, groups, _ = tick(operator(max_nodes=3), batch)
    assert outcomes == [Outcome.PUBLISHED, Outcome.PUBLISHED, Outcome.SUPPRESSED__REGION_TOO_LARGE]
    assert groups == [Group(k=2, region=[0], members=[0, 1])]


def test_a_device_hides_among_present_devices_that_do_not_report() -> None:
    watched = operator()
    tick(watched, [Position(0, 0, 12), Position(1, 0, 12)])
    outcomes, groups, _ = tick(watched, [Position(0, 50, 12)], now=50)
    assert outcomes == [Outcome.PUBLISHED]
    assert groups == [Group(k=2, region=[12], members=[0])]


def test_a_silent_device_no_longer_counts_towards_k_after_it_expires() -> None:
    watched = operator()
    tick(watched, [Position(0, 0, 12), Position(1, 0, 12)])
    outcomes, groups, result = tick(watched, [Position(0, 101, 12)], now=101)
    assert outcomes == [Outcome.SUPPRESSED__TOO_FEW_DEVICES]
    assert groups == []
    assert result.freed.tolist() == [1]


def test_a_device_whose_newest_position_is_off_the_graph_leaves_the_map() -> None:
    watched = operator()
    tick(watched, [Position(0, 0, 12), Position(1, 0, 12)])
    batch = [Position(0, 1, -1), Position(1, 1, 12)]
    outcomes, _, _ = tick(watched, batch, now=1)
    assert outcomes == [Outcome.SUPPRESSED__OFF_GRAPH, Outcome.SUPPRESSED__TOO_FEW_DEVICES]
    assert watched.density.n_devices == 1


def test_a_tick_is_cloaked_against_the_density_at_its_end() -> None:
    # The devices at 12 leave within the tick, so the one that reports from there is alone.
    watched = operator()
    tick(watched, [Position(0, 0, 12), Position(1, 0, 12)])
    batch = [Position(2, 1, 12), Position(0, 1, 24), Position(1, 1, 24)]
    _, groups, _ = tick(watched, batch, now=1)
    assert groups[0].members == [2]
    assert 24 in groups[0].region


positions = st.builds(Position, st.integers(0, 6), st.integers(0, 6), st.integers(-1, 7))
batches = st.lists(positions, max_size=12)


@given(batches, batches, st.randoms(use_true_random=False))
def test_the_order_of_positions_within_a_tick_changes_no_release(
    before: list[Position], batch: list[Position], random: Random
) -> None:
    shuffled = list(batch)
    random.shuffle(shuffled)
    plain, mixed = operator(two_islands()), operator(two_islands())
    tick(plain, before)
    tick(mixed, before)
    assert tick(plain, batch)[1] == tick(mixed, shuffled)[1]


@given(st.lists(batches, max_size=4), st.integers(1, 8))
def test_every_release_keeps_the_promise_of_the_twin_and_contains_exactly_the_published(
    sequence: list[list[Position]], max_nodes: int
) -> None:
    network = two_islands()
    watched = operator(network, rule=DensityRule((3,), (3, 2)), max_nodes=max_nodes)
    presence = naive.Presence()
    for batch in sequence:
        outcomes, groups, result = tick(watched, batch)
        moved = presence.advance(batch)
        node_of = [presence.newest[d].node if d in presence.newest else -1 for d in range(7)]
        assert all(naive.promise_holds(groups, node_of, n_nodes=network.n_nodes, k_floor=2))
        published = {
            p.device for p, o in zip(batch, outcomes, strict=True) if o == Outcome.PUBLISHED
        }
        assert published == {member for group in groups for member in group.members}
        unmoved = [(o, m) for o, m in zip(outcomes, moved, strict=True) if m != Outcome.HELD]
        assert all(o == m for o, m in unmoved)
        off = {p.device for p, o in zip(batch, outcomes, strict=True) if o.name.endswith("GRAPH")}
        assert off == {
            p.device for p, m in zip(batch, moved, strict=True) if m == Outcome.HELD and p.node < 0
        }
        assert not result.freed.size


TRUE = Group(k=2, region=[12], members=[0, 1])
BATCH = [Position(0, 0, 12), Position(1, 0, 12), Position(2, 0, 24)]


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param(Group(k=2, region=[24], members=[2]), id="a region below k"),
        pytest.param(Group(k=1, region=[24], members=[2]), id="a k below the floor"),
        pytest.param(Group(k=2, region=[12], members=[2]), id="a region elsewhere"),
    ],
)
def test_a_group_that_breaks_its_promise_is_refused_and_the_others_are_released(
    broken: Group,
) -> None:
    for groups in ([TRUE, broken], [broken, TRUE]):
        outcomes, released, _ = tick(operator(cloak=FixedCloak(groups)), BATCH)
        assert outcomes == [Outcome.PUBLISHED, Outcome.PUBLISHED, Outcome.SUPPRESSED__UNVERIFIED]
        assert released == [TRUE]


@pytest.mark.parametrize("is_watched", [False, True])
def test_a_pseudonym_that_changes_its_company_is_refused(*, is_watched: bool) -> None:
    cloak, pace = FixedCloak([TRUE]), Pace(ttl_s=100, epoch_s=0)
    transcripts = Transcripts() if is_watched else None
    watched = CloakingOperator(GRID, cloak, pace=pace, k_floor=2, transcripts=transcripts)
    batch = [Position(device, 0, 12) for device in range(3)]
    assert tick(watched, batch)[1] == [TRUE]
    other = cloak._groups[0]._replace(members=[1, 2])
    cloak._groups = [other]
    later = [each._replace(ts=1) for each in batch]
    assert tick(watched, later, now=1)[1] == ([] if is_watched else [other])


def test_a_device_that_the_cloak_reports_as_published_but_leaves_out_counts_as_unverified() -> None:
    outcomes, released, _ = tick(operator(cloak=FixedCloak([TRUE])), BATCH)
    assert outcomes == [Outcome.PUBLISHED, Outcome.PUBLISHED, Outcome.SUPPRESSED__UNVERIFIED]
    assert released == [TRUE]


def test_a_device_that_the_cloak_reports_as_suppressed_but_releases_counts_as_published() -> None:
    cloak = FixedCloak([TRUE], Outcome.SUPPRESSED__TOO_FEW_DEVICES)
    outcomes, released, _ = tick(operator(cloak=cloak), BATCH)
    assert outcomes == [Outcome.PUBLISHED, Outcome.PUBLISHED, Outcome.SUPPRESSED__TOO_FEW_DEVICES]
    assert released == [TRUE]


def test_times_within_both_limits_inclusive_are_plausible_and_nan_is_not() -> None:
    ts = np.array([39.9, 40.0, 100.0, 105.0, 105.1, np.nan, np.inf, -np.inf])
    assert classify_time(ts, 100.0, ahead_s=5, behind_s=60).tolist() == [
        Outcome.INVALID__ANCIENT_TIME,
        Outcome.HELD,
        Outcome.HELD,
        Outcome.HELD,
        Outcome.INVALID__FUTURE_TIME,
        Outcome.INVALID__ANCIENT_TIME,
        Outcome.INVALID__FUTURE_TIME,
        Outcome.INVALID__ANCIENT_TIME,
    ]
