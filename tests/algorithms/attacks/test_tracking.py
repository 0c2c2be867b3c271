"""Tracking: beliefs equal those of a naive twin, and small cases have the answers of paper."""

from dataclasses import dataclass, replace

import networkx as nx
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from anonymizer.algorithms.attacks.indistinguishability import indistinguishable_classes
from anonymizer.algorithms.attacks.lives import (
    Lives,
    linked_lives,
    no_lives,
    occupied_atom_lives,
    odds_of_whole_atoms,
    pieces_held,
    rounded_lives,
    unlinked_lives,
)
from anonymizer.algorithms.attacks.motion import MOST_MOVES, Motion, learn_motion
from anonymizer.algorithms.attacks.tracking import track
from anonymizer.domain.arrays import FloatArray, Int32Array
from anonymizer.networks import load_network
from tests.algorithms.attacks.made import GRID, Line, observed_of, random_release
from tests.algorithms.attacks.naive import graph_of
from tests.algorithms.attacks.naive_tracking import naive_lives, naive_track

PATH = load_network("grid:1x5")
seeds = st.integers(0, 10_000)
kinds = st.sampled_from(["unlinked", "linked", "raw", "none"])


@dataclass(frozen=True, slots=True, eq=False)
class Chase:
    """A release, a motion model, and one target."""

    lives: Lives
    motion: Motion
    start: int

    @property
    def n_ticks(self) -> int:
        return self.lives.n_ticks

    def beliefs(self) -> FloatArray:
        """Return the belief at each tick; skip the case if the target is lost."""
        n_present = np.full(self.n_ticks, 6)
        at, start = np.arange(self.n_ticks), np.array([self.start])
        tracks = track(self.lives, self.motion, n_present=n_present, start=start, at=at)
        assume(tracks.n_lost[0] == 0)
        belief: FloatArray = tracks.belief[0]
        return belief


def chase(seed: int, kind: str) -> Chase:
    made, rng = random_release(seed), np.random.default_rng(seed)
    observed, place = made.observed, made.truth.place
    ticks, odds = slice(0, len(observed.time)), rng.random(len(made.observed.node)) + 0.1
    lives = {
        "unlinked": unlinked_lives(observed, ticks=ticks, odds=odds),
        "linked": linked_lives(
            observed, indistinguishable_classes(observed), ticks=ticks, odds=odds
        ),
        "raw": rounded_lives(place, np.arange(GRID.n_nodes) // 3),
        "none": no_lives(len(observed.time)),
    }[kind]
    motion = learn_motion(GRID, place, learned_from=np.ones(6, bool), tick_s=1.0)
    return Chase(lives, motion, int(rng.integers(GRID.n_nodes)))


@settings(deadline=None, max_examples=60)
@given(seeds, kinds)
def test_beliefs_equal_those_of_the_naive_twin(seed: int, kind: str) -> None:
    case = chase(seed, kind)
    belief = case.beliefs()
    twin = naive_track(
        naive_lives(case.lives), case.motion, n_present=[6] * case.n_ticks, start=case.start
    )
    for t in range(case.n_ticks):
        expected = [twin[t].get(v, 0.0) for v in range(GRID.n_nodes)]
        assert belief[t] == pytest.approx(expected, abs=1e-9)


@settings(deadline=None, max_examples=60)
@given(seeds, kinds)
def test_a_belief_sums_to_1_and_is_nowhere_out_of_reach(seed: int, kind: str) -> None:
    case = chase(seed, kind)
    hops = nx.single_source_shortest_path_length(graph_of(GRID), case.start)
    far = np.array([hops[v] for v in range(GRID.n_nodes)])
    for t, belief in enumerate(case.beliefs()):
        assert belief.sum() == pytest.approx(1)
        assert (belief >= 0).all()
        assert not belief[far > t * len(case.motion.stop)].any()


@settings(deadline=None, max_examples=60)
@given(seeds, st.sampled_from(["unlinked", "linked"]))
def test_a_belief_is_nowhere_outside_the_published_regions_if_all_devices_publish(
    seed: int, kind: str
) -> None:
    case = chase(seed, kind)
    at, start = np.arange(case.n_ticks), np.array([case.start])
    tracks = track(case.lives, case.motion, n_present=0 * at, start=start, at=at)
    assume(tracks.n_lost[0] == 0)
    for t in at:
        rows = slice(*case.lives.first_record_of[t : t + 2])
        covered = [
            case.lives.node[slice(*case.lives.first_node_of[r : r + 2])]
            for r in case.lives.region_of[rows]
        ]
        alive = (case.lives.first_tick_of <= t) & (t <= case.lives.last_tick_of)
        if alive.sum() == len(covered):  # a life that skips a tick may be anywhere in reach
            assert set(np.flatnonzero(tracks.belief[0, t])) <= set(np.concatenate(covered).tolist())


@settings(deadline=None, max_examples=60)
@given(seeds)
def test_a_release_that_covers_everything_tells_nothing(seed: int) -> None:
    case = chase(seed, "none")
    everywhere = tuple(range(GRID.n_nodes))
    lines: list[Line] = [(p, t, everywhere, 6) for p in range(6) for t in range(case.n_ticks)]
    observed = observed_of(lines)
    ticks = slice(0, case.n_ticks)
    for lives in (
        unlinked_lives(observed, ticks=ticks),
        linked_lives(observed, indistinguishable_classes(observed), ticks=ticks),
    ):
        assert replace(case, lives=lives).beliefs() == pytest.approx(case.beliefs(), abs=1e-9)


def certain(network_moves: float) -> Motion:
    """Return a model on the path that leaves a node so often, one move at a time."""
    standing = np.zeros((2, 1), np.int32)
    motion = learn_motion(PATH, standing, learned_from=np.ones(1, bool), tick_s=1.0)
    return motion._replace(leave=np.full(PATH.n_nodes, network_moves))


def followed(lines: list[Line], start: int, *, linked: bool, at: int) -> FloatArray:
    observed = observed_of(lines)
    ticks = slice(0, len(observed.time))
    lives = (
        linked_lives(observed, indistinguishable_classes(observed), ticks=ticks)
        if linked
        else unlinked_lives(observed, ticks=ticks)
    )
    n_present = np.full(len(observed.time), len({line[0] for line in lines}))
    tracks = track(
        lives, certain(0.5), n_present=n_present, start=np.array([start]), at=np.array([at])
    )
    belief: FloatArray = tracks.belief[0, 0]
    return belief


def test_without_a_release_half_of_the_belief_moves_to_the_neighbours() -> None:
    tracks = track(
        no_lives(2),
        certain(0.5),
        n_present=np.array([1, 1]),
        start=np.array([2]),
        at=np.array([0, 1]),
    )
    assert tracks.belief[0] == pytest.approx(np.array([[0, 0, 1, 0, 0], [0, 0.25, 0.5, 0.25, 0]]))


def test_who_follows_pseudonyms_is_not_confused_by_another_region() -> None:
    lines: list[Line] = [
        (0, 0, (1, 2), 1), (0, 1, (1, 2), 1), (1, 0, (3, 4), 1), (1, 1, (3, 4), 1),
    ]  # fmt: skip
    alone = followed(lines, 2, linked=False, at=1)
    assert alone[3] > 0
    linked = followed(lines, 2, linked=True, at=1)
    assert linked == pytest.approx([0, 1 / 3, 2 / 3, 0, 0])


def test_a_crowded_region_is_more_likely_than_a_sparse_one() -> None:
    # From node 2 one goes to 1 or 3 equally often. Four devices were seen at 3 and one at 1.
    lines: list[Line] = [(p, t, (0, 1, 2, 3, 4), 1) for p in range(5) for t in range(1)]
    lines += [(0, 1, (1,), 1), *((p, 1, (3,), 1) for p in range(1, 5))]
    belief = followed(lines, 2, linked=False, at=1)
    assert belief == pytest.approx([0, 1 / 5, 0, 4 / 5, 0])


def test_what_follows_corrects_what_was_believed() -> None:
    lines: list[Line] = [(0, 0, (2,), 1), (0, 1, (1, 3), 1), (0, 2, (4,), 1)]
    lives = unlinked_lives(observed_of(lines), ticks=slice(0, 3))
    found = track(
        lives,
        certain(0.5),
        n_present=np.ones(3, np.int64),
        start=np.array([2]),
        at=np.array([1]),
        smooth=True,
    )
    assert found.belief[0, 0] == pytest.approx([0, 0.5, 0, 0.5, 0])
    assert found.smoothed is not None
    assert found.smoothed[0, 0] == pytest.approx([0, 0, 0, 1, 0])


def test_a_target_that_fits_nothing_published_follows_the_motion_model() -> None:
    lines: list[Line] = [(0, t, (4,), 1) for t in range(3)]
    for linked in (False, True):
        assert followed(lines, 0, linked=linked, at=1) == pytest.approx([0.5, 0.5, 0, 0, 0])


def test_only_lives_of_one_record_are_smoothed() -> None:
    observed = observed_of([(0, 0, (1,), 1), (0, 1, (1,), 1)])
    lives = linked_lives(observed, np.zeros(1, np.int64), ticks=slice(0, 2))
    here = np.zeros(1, np.int64)
    with pytest.raises(ValueError, match="smoothed"):
        track(lives, certain(0.5), n_present=np.ones(2, int), start=here, at=here, smooth=True)


def moves(*nodes: int) -> Int32Array:
    return np.array(nodes, np.int32)[:, None]


def test_staying_and_turning_are_learned_and_their_probabilities_sum_to_1() -> None:
    to_and_fro = [*range(5), *range(3, 0, -1)] * 50
    motion = learn_motion(PATH, moves(*to_and_fro), learned_from=np.ones(1, bool), tick_s=1.0)
    assert (motion.leave > 0.8).all()
    assert np.add.reduceat(motion.turn, motion.first_turn_of[:-1]) == pytest.approx(1)
    came_from_1 = motion.first_state_of[2] + 1
    turn = motion.turn[motion.first_turn_of[came_from_1] : motion.first_turn_of[came_from_1 + 1]]
    assert turn[1] > 0.95
    assert motion.stop.tolist() == [1.0]


def test_jumps_are_several_moves_at_once_and_absences_are_none() -> None:
    jumps = moves(0, 2, -1, 4, 0, 0)
    motion = learn_motion(PATH, jumps, learned_from=np.ones(1, bool), tick_s=1.0)
    # Jumps of two and of four moves, and one of one move assumed.
    assert motion.stop == pytest.approx([1 / 3, 1 / 2, 0, 1])
    long = load_network("grid:1x40")
    far = learn_motion(long, moves(0, 39), learned_from=np.ones(1, bool), tick_s=1.0)
    assert len(far.stop) == MOST_MOVES


def test_devices_that_are_left_out_teach_nothing() -> None:
    place = np.hstack([moves(0, 1, 2, 3), moves(4, 4, 4, 4)])
    only = learn_motion(PATH, place[:, 1:], learned_from=np.array([True]), tick_s=1.0)
    without = learn_motion(PATH, place, learned_from=np.array([False, True]), tick_s=1.0)
    assert without.leave.tolist() == only.leave.tolist()
    assert without.turn.tolist() == only.turn.tolist()


def test_pieces_are_nodes_that_are_always_covered_together() -> None:
    # Pieces: {0}, {1, 2}, {3}, and 4 is never covered.
    observed = observed_of([(0, 0, (0, 1, 2), 1), (1, 1, (1, 2, 3), 1)])
    place = np.array([[2, 4], [2, 3]], np.int32)
    assert pieces_held(observed, place, ticks=np.array([0])) == (2, 1)
    assert pieces_held(observed, place, ticks=np.array([0, 1])) == (4, 3)


def test_whole_atoms_have_the_odds_that_devices_show() -> None:
    atom_of = np.array([0, 0, 1, 1, -1])
    observed = observed_of([(0, 0, (0, 1, 2), 1), (0, 1, (4,), 1)])
    place = np.array([[0, 1], [3, 3]], np.int32)
    odds = odds_of_whole_atoms(observed, place, atom_of, ticks=np.array([0]))
    whole, part = 3 / 3, 1 / 2
    assert odds.tolist() == [whole, whole, part, whole]


def test_whole_atoms_share_the_devices_of_their_regions() -> None:
    atom_of = np.array([0, 0, 1, 1, -1])
    lines: list[Line] = [*((p, 0, (0, 1, 2, 3), 4) for p in range(4)), (4, 0, (0, 1, 2), 1)]
    observed = observed_of([*lines, (5, 1, (2,), 1)])
    place = np.array([[0, 4], [4, -1]], np.int32)
    lives = occupied_atom_lives(observed, atom_of, place, ticks=slice(0, 2))
    first, second = naive_lives(lives)
    assert (set(first.regions[0]), set(second.regions[0])) == ({0, 1}, {2, 3})
    # One of three positions is in such an atom: (1 + 1) / (3 + 2).
    usual = 2 / 5
    assert (first.n_devices, second.n_devices) == pytest.approx((3 * usual, 2 * usual))
