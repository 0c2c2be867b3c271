"""Tracking: beliefs equal those of a naive twin, and small cases have the answers of paper."""

from dataclasses import dataclass, replace
from functools import partial

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.releases.pieces import pieces_held, read_regions
from anonymizer.audit.mathematics.evidence import SLIP
from anonymizer.audit.mathematics.indistinguishability import indistinguishable_classes
from anonymizer.audit.mathematics.lives import Lives, no_lives, published_lives, rounded_lives
from anonymizer.audit.mathematics.motion import MOST_MOVES, Motion, learn_motion
from anonymizer.audit.mathematics.tracking import Schedule, track
from anonymizer.domain.arrays import FloatArray, Int32Array, IntArray
from anonymizer.networks import load_network
from tests.audit.mathematics.made import GRID, Line, observed_of, random_release
from tests.audit.mathematics.naive import graph_of
from tests.audit.mathematics.naive_tracking import naive_lives, naive_track

PATH = load_network("grid:1x5")
seeds = st.integers(0, 10_000)
kinds = st.sampled_from(["regions", "pieces", "followed", "raw", "none"])
THIRDS = np.arange(GRID.n_nodes) // 3


@dataclass(frozen=True, slots=True, eq=False)
class Chase:
    """A release, a motion model, and one target."""

    lives: Lives
    motion: Motion
    start: int

    @property
    def n_steps(self) -> int:
        return self.lives.n_steps

    def beliefs(self) -> FloatArray:
        """Return the belief at each step."""
        n_present = np.full(self.n_steps, 6)
        at, start = np.arange(self.n_steps), np.array([self.start])
        tracks = track(self.lives, self.motion, n_present=n_present, start=start, at=at)
        belief: FloatArray = tracks.belief[0]
        return belief


def chase(seed: int, kind: str) -> Chase:
    made, rng = random_release(seed), np.random.default_rng(seed)
    observed, place = made.observed, made.truth.place
    steps_s = np.arange(observed.time[0], observed.time[-1] + 1)
    class_of = indistinguishable_classes(observed)
    if kind == "none":
        lives = no_lives(len(steps_s))
    elif kind == "raw":
        lives = rounded_lives(place, THIRDS)
    else:
        regions = read_regions(observed, None if kind == "regions" else THIRDS)
        lives = published_lives(
            observed, class_of, regions, steps_s=steps_s, follow=kind == "followed"
        )
    motion = learn_motion(GRID, place, learned_from=np.ones(6, bool), tick_s=1.0)
    return Chase(lives, motion, int(rng.integers(GRID.n_nodes)))


@given(seeds, kinds)
def test_beliefs_equal_those_of_the_naive_twin(seed: int, kind: str) -> None:
    case = chase(seed, kind)
    twin = naive_track(
        naive_lives(case.lives), case.motion, n_present=[6] * case.n_steps, start=case.start
    )
    for t, belief in enumerate(case.beliefs()):
        expected = [twin[t].get(v, 0.0) for v in range(GRID.n_nodes)]
        # States are dropped below one in a million.
        assert belief == pytest.approx(expected, abs=1e-3)


@given(seeds, kinds)
def test_a_belief_sums_to_1_and_is_nowhere_out_of_reach(seed: int, kind: str) -> None:
    case = chase(seed, kind)
    hops = nx.single_source_shortest_path_length(graph_of(GRID), case.start)
    far = np.array([hops[v] for v in range(GRID.n_nodes)])
    for t, belief in enumerate(case.beliefs()):
        assert belief.sum() == pytest.approx(1)
        assert (belief >= 0).all()
        assert not belief[far > t * len(case.motion.stop)].any()


@given(seeds, st.booleans())
def test_a_release_that_covers_everything_tells_nothing(seed: int, follow: bool) -> None:  # noqa: FBT001
    case = chase(seed, "none")
    everywhere = tuple(range(GRID.n_nodes))
    lines: list[Line] = [(p, t, everywhere, 6) for p in range(6) for t in range(case.n_steps)]
    lives = lives_of(lines, follow=follow)
    assert replace(case, lives=lives).beliefs() == pytest.approx(case.beliefs(), abs=1e-4)


def certain(network_moves: float) -> Motion:
    """Return a model on the path that leaves a node so often, one move at a time."""
    standing = np.zeros((2, 1), np.int32)
    motion = learn_motion(PATH, standing, learned_from=np.ones(1, bool), tick_s=1.0)
    n = PATH.n_nodes
    return motion._replace(leave=np.full(n, network_moves), density=np.full(n, 1 / n))


def lives_of(lines: list[Line], *, follow: bool, piece_of: IntArray | None = None) -> Lives:
    observed = observed_of(lines)
    return published_lives(
        observed,
        indistinguishable_classes(observed),
        read_regions(observed, piece_of),
        steps_s=np.arange(observed.time[0], observed.time[-1] + 1),
        follow=follow,
    )


def believed(lives: Lives, start: int, *, n_present: int, at: int) -> FloatArray:
    tracks = track(
        lives,
        certain(0.5),
        n_present=np.full(lives.n_steps, n_present),
        start=np.array([start]),
        at=np.array([at]),
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
    assert tracks.neglected == pytest.approx(0)


def test_who_follows_pseudonyms_is_not_confused_by_another_region() -> None:
    lines: list[Line] = [
        *((0, t, (1, 2), 1) for t in range(3)), *((1, t, (3, 4), 1) for t in range(3)),
    ]  # fmt: skip
    alone = believed(lives_of(lines, follow=False), 2, n_present=2, at=1)
    assert alone[3] > 0.05
    linked = believed(lives_of(lines, follow=True), 2, n_present=2, at=1)
    assert linked == pytest.approx([0, 1 / 3, 2 / 3, 0, 0], abs=5 * SLIP)


def test_who_ends_a_life_may_begin_the_next_one() -> None:
    lines: list[Line] = [
        *((0, t, (1, 2), 1) for t in range(2)), *((1, t, (2, 3), 1) for t in range(2, 5)),
        *((2, t, (4,), 1) for t in range(5)),
    ]  # fmt: skip
    belief = believed(lives_of(lines, follow=True), 2, n_present=2, at=3)
    assert belief[[2, 3]].sum() > 1 - 10 * SLIP


def test_a_crowded_region_is_more_likely_than_a_sparse_one() -> None:
    # From node 2 one goes to 1 or 3 equally often. Four devices were seen at 3 and one at 1.
    lines: list[Line] = [(p, 0, (0, 1, 2, 3, 4), 1) for p in range(5)]
    lines += [(0, 1, (1,), 1), *((p, 1, (3,), 1) for p in range(1, 5))]
    belief = believed(lives_of(lines, follow=False), 2, n_present=5, at=1)
    assert belief == pytest.approx([0, 1 / 5, 0, 4 / 5, 0], abs=5 * SLIP)


def test_each_whole_piece_of_a_region_holds_somebody_and_what_joins_them_nobody() -> None:
    piece_of = np.array([0, 1, 1, 2, 2])
    lines: list[Line] = [(p, t, (0, 1, 3, 4), 2) for p in range(2) for t in range(2)]
    regions = read_regions(observed_of(lines), piece_of)
    assert regions.first_piece_of.tolist() == [0, 2]
    assert regions.node.tolist() == [0, 3, 4]
    belief = believed(lives_of(lines, follow=False, piece_of=piece_of), 2, n_present=2, at=1)
    assert belief[1] + belief[2] < 10 * SLIP


def test_regions_without_a_whole_piece_and_nodes_without_one_are_pieces_of_their_own() -> None:
    # Small components have no piece: negative, in whatever way they are numbered.
    piece_of = np.array([0, 0, 1, 1, -2])
    lines: list[Line] = [(0, 0, (1, 2), 1), (0, 1, (0, 1, 2), 1), (0, 2, (4,), 1)]
    regions = read_regions(observed_of(lines), piece_of)
    pieces = np.split(regions.node, regions.first_node_of[1:-1])
    assert [piece.tolist() for piece in pieces] == [[1, 2], [0, 1], [4]]
    assert regions.first_piece_of.tolist() == [0, 1, 2, 3]


def test_a_region_is_read_at_the_level_whose_whole_pieces_have_most_of_its_nodes() -> None:
    small, large = np.array([0, 1, 1, 2, 3]), np.array([0, 0, 0, 1, 1])
    lines: list[Line] = [(0, 0, (0, 1, 2), 1), (0, 1, (1, 2, 3), 1), (0, 2, (2, 3, 4), 1)]
    regions = read_regions(observed_of(lines), np.stack([small, large]))
    pieces = [piece.tolist() for piece in np.split(regions.node, regions.first_node_of[1:-1])]
    assert pieces == [[0, 1, 2], [1, 2], [3], [3, 4]]
    assert regions.first_piece_of.tolist() == [0, 1, 3, 4]


def test_more_devices_than_pieces_are_where_the_crowd_is_expected() -> None:
    piece_of = np.array([0, 1, 1, 1, 1])
    lines: list[Line] = [(p, 0, (0, 1, 2, 3, 4), 5) for p in range(5)]
    lives = lives_of(lines, follow=False, piece_of=piece_of)
    motion = certain(0.5)
    tracks = track(lives, motion, n_present=np.array([5]), start=np.array([0]), at=np.array([0]))
    assert tracks.belief[0, 0] == pytest.approx([1, 0, 0, 0, 0])
    twin = naive_track(naive_lives(lives), motion, n_present=[5], start=0)
    assert twin == [{0: pytest.approx(1)}]


def test_who_knows_when_the_target_reports_knows_when_it_moves() -> None:
    # Two devices at 2 and 4; a region changes at step 1, when the target is silent.
    lines: list[Line] = [(0, 0, (2,), 1), (0, 1, (2,), 1), (0, 2, (3,), 1), (1, 0, (4,), 1)]
    lives = lives_of(lines, follow=False)
    motion = certain(0.5)
    reports = np.array([[True], [False], [True]])
    find = partial(
        track, lives, motion, n_present=np.full(3, 2), start=np.array([2]), at=np.arange(3)
    )
    without = find().belief[0]
    belief = find(schedule=Schedule(reports, motion)).belief[0]
    assert without[1, 1] > 0
    assert belief[1] == pytest.approx([0, 0, 1, 0, 0])
    assert belief[2, 3] > 1 - 10 * SLIP
    assert belief[2, 3] > without[2, 3]
    # A group that publishes on a beat says nothing by being silent.
    beat = find(schedule=Schedule(reports, motion, silence=1.0)).belief[0]
    assert beat[1] == pytest.approx([0, 0, 1, 0, 0])


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


def test_who_stays_for_a_minute_stands_and_one_that_drives_may_come_to_a_stand() -> None:
    place = np.hstack([moves(*[4] * 100), moves(*[0] * 20, *[1, 2, 3] * 20, *[2] * 20)])
    motion = learn_motion(PATH, place, learned_from=np.ones(2, bool), tick_s=1.0)
    assert motion.stands[4] > 0.5 > motion.stands[0]
    assert motion.sets_off == 0, "the one that stood never left"
    assert motion.settles[4] > motion.settles[2]
    row, state, share = motion.states_at(np.array([4, 0]))
    assert row.tolist() == [0, 1, 0, 1]
    assert motion.node_of[state].tolist() == [4, 0, 4, 0]
    assert np.bincount(row, share) == pytest.approx([1, 1])


def test_a_full_car_park_says_nothing_about_other_places() -> None:
    drives = moves(*[*range(4), *range(2, 0, -1)] * 20)
    parked = [moves(*[4] * 120) for _ in range(8)]
    place = np.hstack([drives, *parked])
    motion = learn_motion(PATH, place, learned_from=np.ones(9, bool), tick_s=1.0)
    assert motion.stands[4] > 0.7
    assert motion.stands[0] < 0.05


def test_turns_are_learned_in_short_ticks_and_moves_in_those_of_the_model() -> None:
    to_and_fro = moves(*[*range(5), *range(3, 0, -1)] * 50)
    motion = learn_motion(PATH, to_and_fro, learned_from=np.ones(1, bool), tick_s=1.0, every=2)
    came_from_1 = motion.first_state_of[2] + 1
    turn = motion.turn[motion.first_turn_of[came_from_1] : motion.first_turn_of[came_from_1 + 1]]
    assert turn[1] > 0.95
    assert motion.stop[0] < 0.05, "two moves in a tick"


def test_devices_that_are_left_out_teach_nothing() -> None:
    place = np.hstack([moves(0, 1, 2, 3), moves(4, 4, 4, 4)])
    only = learn_motion(PATH, place[:, 1:], learned_from=np.array([True]), tick_s=1.0)
    without = learn_motion(PATH, place, learned_from=np.array([False, True]), tick_s=1.0)
    assert without.leave.tolist() == only.leave.tolist()
    assert without.turn.tolist() == only.turn.tolist()


def test_devices_are_usually_where_they_were_seen() -> None:
    place = moves(0, 0, 0, 1)
    motion = learn_motion(PATH, place, learned_from=np.ones(1, bool), tick_s=1.0)
    # Of three positions that were followed by another one, all are at node 0; half is uniform.
    assert motion.density == pytest.approx([0.6, 0.1, 0.1, 0.1, 0.1])


def test_pieces_that_hold_a_device_are_counted_in_each_region() -> None:
    observed = observed_of([(0, 0, (0, 1, 2), 1), (1, 1, (1, 2, 3), 1)])
    regions = read_regions(observed, np.array([0, 1, 1, 2, 2]))
    place = np.array([[2, 4], [0, 4]], np.int32)
    # {0} and {1, 2}, of which the second holds a device; then {1, 2}, which holds none.
    assert pieces_held(observed, regions, place, ticks=np.array([0])) == (2, 1)
    assert pieces_held(observed, regions, place, ticks=np.array([0, 1])) == (3, 1)
