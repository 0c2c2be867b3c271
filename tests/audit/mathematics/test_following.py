"""Following devices one by one: answers of paper, of all assignments, and of a naive twin."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymizer.algorithms.releases.pieces import (
    large_to_small,
    read_mixed_regions,
    read_pieces,
    read_regions,
)
from anonymizer.audit.mathematics.association import associate
from anonymizer.audit.mathematics.following import LevelPrior, _Crowd, follow
from anonymizer.audit.mathematics.indistinguishability import indistinguishable_classes
from anonymizer.audit.mathematics.lives import (
    Handed,
    Lives,
    handed_lives,
    no_lives,
    published_lives,
)
from anonymizer.audit.mathematics.masses import Masses
from anonymizer.audit.mathematics.motion import Motion, learn_motion
from anonymizer.domain.arrays import FloatArray, IntArray, starts_of
from anonymizer.networks import load_network
from tests.audit.mathematics.made import GRID, Line, observed_of, random_release
from tests.audit.mathematics.naive_following import NaiveChase, naive_association
from tests.audit.mathematics.naive_tracking import naive_lives

seeds = st.integers(0, 10_000)
THIRDS = np.arange(GRID.n_nodes) // 3
HALVES = np.arange(GRID.n_nodes) * 2 // GRID.n_nodes
PATH = load_network("grid:1x9")
PIECES = np.arange(9) // 3


def posterior(inside: FloatArray, outside: FloatArray, size: int) -> FloatArray:
    """Return the probability of each place of each device, the last one outside."""
    n, m = inside.shape
    factor, total, _ = associate(inside, outside, np.zeros(m), float(size))
    shares: FloatArray = np.column_stack([inside * factor[:n], outside]) / total[:n, None]
    return shares


@settings(deadline=None, max_examples=40)
@given(seeds, st.integers(1, 5), st.integers(1, 3), st.integers(0, 2))
def test_associations_are_those_of_all_assignments(seed: int, n: int, m: int, more: int) -> None:
    size = max(m, n - more)
    shares = np.random.default_rng(seed).dirichlet(np.ones(m + 1), max(n, size))
    inside, outside = np.ascontiguousarray(shares[:, :m]), shares[:, m].copy()
    found = posterior(inside, outside, size)
    assert found == pytest.approx(naive_association(inside, outside, size), abs=1e-6)


def test_unknown_devices_are_as_many_as_devices_of_which_little_is_known() -> None:
    inside, outside = np.array([[0.6, 0.1]]), np.array([0.3])
    _, _, new = associate(inside, outside, np.array([0.01, 0.02]), 2.0)
    others = np.array([[0.01, 0.0], [0.0, 0.02]])
    known = naive_association(np.vstack([inside, others]), np.append(outside, [1.0, 1.0]), 2)
    assert new == pytest.approx([known[1, 0], known[2, 1]], rel=0.05)


def test_many_pieces_are_taken_in_parts() -> None:
    inside = np.eye(25) * 0.5 + 0.01
    found = posterior(inside, 1 - inside.sum(axis=1), 25)
    assert np.diag(found[:, :25]).min() > 0.8


def test_a_piece_that_only_one_device_can_be_in_holds_it() -> None:
    inside = np.array([[1.0, 0.0], [0.5, 0.5]])
    found = posterior(inside, np.zeros(2), 2)
    assert found == pytest.approx(np.array([[1.0, 0, 0], [0, 1.0, 0]]), abs=1e-3)


def test_a_piece_that_others_hold_says_nothing() -> None:
    inside = np.array([[1.0], [0.3]])
    found = posterior(inside, np.array([0.0, 0.7]), 1)
    assert found[0, 0] == pytest.approx(1)
    assert found[1, 0] < 0.01, "the only member is another device"


def still(*, leave: float = 0.0) -> Motion:
    """Return the motion of devices that may leave their nodes in each tick."""
    place = np.repeat(np.arange(9, dtype=np.int32)[None], 3, axis=0)
    motion = learn_motion(PATH, place, learned_from=np.ones(9, bool), tick_s=1.0)
    return motion._replace(
        leave=np.full(9, leave), stands=np.zeros(9), settles=np.zeros(9), stop=np.ones(1)
    )


def groups(lines: list[Line], *, until: float) -> Lives:
    observed = observed_of(lines)
    return published_lives(
        observed,
        indistinguishable_classes(observed),
        read_regions(observed, PIECES),
        steps_s=np.arange(0.0, 6.0),
        follow=True,
        until=np.full(observed.n_records, until),
    )


def believed(lives: Lives, motion: Motion, start: int, n_present: int) -> FloatArray:
    """Return the belief in each piece at the last step about who is at a node at step 1."""
    belief, hindsight = follow(
        lives,
        motion,
        n_present=np.full(lives.n_steps, n_present),
        start=np.array([start]),
        enter=1,
        at=np.array([lives.n_steps - 1]),
        look_back=True,
    )
    assert hindsight is not None
    assert hindsight == pytest.approx(belief), "at the last step there is no hindsight"
    found: FloatArray = np.bincount(PIECES, belief[0, 0]).astype(np.float64)
    return found


def test_who_is_told_to_be_elsewhere_is_not_here() -> None:
    # One device in the first piece, one in the last one; later there is one in the middle, too.
    lines: list[Line] = [
        *((p, t, (0, 1, 2, 6, 7, 8), 2) for p in range(2) for t in (0, 1)),
        *((p, 4, (3, 4, 5, 6, 7, 8), 2) for p in range(2)),
    ]
    found = believed(groups(lines, until=5.0), still(leave=0.5), start=1, n_present=2)
    # The last piece could hold the target, but somebody else must be in it.
    assert found[1] > 0.95


def in_pieces(lives: Lives, *, cell_of: IntArray | None) -> FloatArray:
    """Return the belief in each piece at step 4 about one of six who is in the middle at first."""
    belief, _ = follow(
        lives,
        still(leave=0.5),
        n_present=np.full(6, 6),
        start=np.array([4]),
        enter=0,
        at=np.array([4]),
        cell_of=cell_of,
    )
    found: FloatArray = np.bincount(PIECES, belief[0, 0]).astype(np.float64)
    return found


def test_of_two_places_the_one_where_the_release_shows_more_devices_is_likelier() -> None:
    # Four others are in the last piece. The target may be in any: nothing else is published.
    lives = groups([(p, 1, (6, 7, 8), 4) for p in range(4)], until=5.0)
    plain, weighed = (in_pieces(lives, cell_of=cell_of) for cell_of in (None, PIECES))
    assert plain.sum() == pytest.approx(1.0)
    assert weighed.sum() == pytest.approx(1.0)
    assert weighed[2] / plain[2] > 1.2 * weighed[0] / plain[0]


def test_without_a_release_there_is_nothing_to_weigh_by() -> None:
    plain, weighed = (in_pieces(no_lives(6), cell_of=cell_of) for cell_of in (None, PIECES))
    assert weighed == pytest.approx(plain)


def test_a_track_never_adds_up_to_more_than_one_device() -> None:
    # The first track is believed to be in the first life. That now has only the second one's place,
    # so what is left is the little too much that the first one has in the second life.
    lives = groups([(0, 1, (0, 1, 2), 1), (1, 1, (6, 7, 8), 1)], until=5.0)
    here, there, away = (int(np.flatnonzero(still().node_of == v)[0]) for v in (1, 7, 4))
    crowd = _Crowd(still(), 2.0, None)
    crowd.n_tracks = 2
    crowd.masses = Masses(
        np.array([0, 0, 1, 0], np.int32),
        np.array([0, 0, 0, 1], np.int32),
        np.array([here, away, here, there], np.int32),
        np.array([0.001, 0.999, 1.0, 0.01]),
    )
    crowd.move(np.zeros(2, np.bool_))
    crowd.learn(crowd.read(lives, record=0, step=2))
    crowd.forget()
    mass = np.bincount(crowd.masses.owner, crowd.masses.mass)
    assert mass == pytest.approx(1.0, abs=0.1)


def test_a_group_that_nobody_can_have_joined_says_nothing() -> None:
    lines: list[Line] = [(0, 0, (0, 1, 2), 1), (1, 3, (6, 7, 8), 1)]
    found = believed(groups(lines, until=2.0), still(), start=1, n_present=3)
    assert found[0] > 0.95


def test_who_is_told_the_levels_tells_members_of_large_places_from_those_of_small_ones() -> None:
    lines: list[Line] = [(p, t, tuple(range(9)), 2) for p in range(2) for t in (0, 2, 4)]
    observed = observed_of(lines)
    levels = np.stack([PIECES, np.zeros(9, np.int64)])
    place = np.where(observed.pseudonym_of == 0, 1, 7)
    lives, level_of = handed_lives(
        observed,
        indistinguishable_classes(observed),
        Handed(np.array([0, 1]), place, levels),
        steps_s=np.arange(0.0, 6.0),
        until=np.full(observed.n_records, 5.0),
    )
    assert (lives.size.tolist(), level_of.tolist()) == ([1, 1], [0, 1])
    assert max(np.diff(lives.regions.first_node_of).tolist()) == 9
    assert believed(lives, still(leave=0.5), start=1, n_present=2)[0] > 0.7


def test_a_large_place_is_that_of_who_has_no_company() -> None:
    # In the first third devices have company and small places, elsewhere they have none.
    levels = np.stack([PIECES, np.zeros(9, np.int64)])
    lines: list[Line] = [(0, t, tuple(range(9)), 1) for t in (0, 2, 4)]
    observed = observed_of(lines)
    lives, level_of = handed_lives(
        observed,
        np.zeros(1, np.int64),
        Handed(np.array([1]), np.full(3, 7), levels),
        steps_s=np.arange(0.0, 6.0),
        until=np.full(3, 5.0),
    )
    share = np.where(PIECES == 0, [[0.9], [0.1]], [[0.1], [0.9]])

    def in_first_third(start: int) -> float:
        belief, _ = follow(
            lives,
            still(leave=0.5),
            n_present=np.full(6, 3),
            start=np.array([start]),
            enter=1,
            at=np.array([5]),
            prior=LevelPrior(level_of, share),
        )
        return float(np.bincount(PIECES, belief[0, 0])[0])

    assert in_first_third(1) > in_first_third(7)
    others = Handed(np.array([0, 0, 1]), np.array([1, 2, 8]), np.stack([np.arange(9), PIECES]))
    shares = others.shares(observed_of([(p, 0, (p,), 1) for p in range(3)]))
    assert shares.sum(axis=0) == pytest.approx(1)
    assert shares[0, 0] > shares[0, 4] > shares[0, 8]


LEVELS = np.stack([np.arange(9) // 2, np.arange(9) // 3, np.arange(9) // 6])


@pytest.mark.parametrize(
    ("region", "n_members", "pieces"),
    [
        ((0, 1, 2, 6, 7, 8), 2, [(0, 1, 2), (6, 7, 8)]),  # of one level
        ((0, 1, 2, 3, 4, 5, 8), 2, [(0, 1, 2, 3, 4, 5), (8,)]),  # of two levels
        ((0, 1, 2, 3, 4, 5, 8), 1, [(0, 1, 2, 3, 4, 5)]),  # no more pieces than members
        ((2, 3, 5), 3, [(2, 3)]),  # node 5 joins pieces
        ((1, 3), 2, [(1, 3)]),  # of no whole piece
    ],
)
def test_regions_are_read_as_pieces_of_several_levels(
    region: tuple[int, ...], n_members: int, pieces: list[tuple[int, ...]]
) -> None:
    observed = observed_of([(0, 0, region, 1)])
    read = read_mixed_regions(observed, LEVELS, np.array([n_members]))
    rows = np.split(read.node, read.first_node_of[1:-1])
    assert sorted(tuple(sorted(row.tolist())) for row in rows) == sorted(pieces)
    assert read.first_piece_of.tolist() == [0, len(pieces)]


def test_a_region_is_read_at_several_levels_with_no_more_pieces_than_devices() -> None:
    mixed = (0, 1, 2, 3, 4, 5, 8)
    together, apart = np.zeros(2, np.int64), np.arange(2)

    def pieces(class_of: IntArray, levels: IntArray | None, *, k: int = 2) -> list[int]:
        observed = observed_of([(p, 0, mixed, k) for p in range(2)])
        sizes: list[int] = np.diff(read_pieces(observed, class_of, levels).first_node_of).tolist()
        return sizes

    assert pieces(together, LEVELS) == [6, 1]
    # Who is not published in a group that lasts has company at the same tick, k of it or more.
    assert pieces(apart, LEVELS) == [6, 1]
    assert pieces(apart, LEVELS, k=4) == [2, 2, 2, 1]
    assert pieces(together, LEVELS[0]) == [2, 2, 2, 1]
    assert pieces(together, None) == [7]


def test_who_publish_a_region_one_after_another_are_no_company_for_each_other() -> None:
    observed = observed_of([(p, p, (0, 1, 2, 3, 4, 5, 8), 1) for p in range(2)])
    read = read_pieces(observed, np.arange(2), LEVELS)
    assert len(read.first_node_of) - 1 == 1


@given(
    st.lists(st.sets(st.integers(0, 8), min_size=1), min_size=1, max_size=4),
    st.integers(1, 4),
    seeds,
)
def test_pieces_are_taken_from_large_to_small_as_the_naive_twin_takes_them(
    regions: list[set[int]], n_members: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    levels = np.stack([np.sort(rng.integers(-1, n, 9)) for n in (8, 4, 2)])
    label = large_to_small(
        starts_of(np.array([len(region) for region in regions])),
        np.concatenate([np.array(sorted(region), np.int32) for region in regions]),
        levels,
        np.full(len(regions), n_members),
    )
    explained = [naive_large_to_small(sorted(region), levels, n_members) for region in regions]
    assert label.tolist() == [number for each in explained for number in each]


def naive_large_to_small(region: list[int], levels: IntArray, most: int) -> list[int]:
    label: dict[int, int] = {}
    n = 0
    for at in levels[::-1].tolist():
        for number in dict.fromkeys(at[v] for v in region):
            piece = {v for v in range(9) if at[v] == number}
            fresh = piece - label.keys()
            if number >= 0 and piece <= set(region) and 2 * len(fresh) > len(piece) and n < most:
                label |= dict.fromkeys(fresh, n)
                n += 1
    return [label.get(v, -1) for v in region]


@settings(deadline=None, max_examples=25)
@given(seeds, st.booleans())
def test_beliefs_equal_those_of_the_naive_twin(seed: int, in_pieces: bool) -> None:  # noqa: FBT001
    made, rng = random_release(seed), np.random.default_rng(seed)
    observed = made.observed
    steps_s = np.arange(observed.time[0], observed.time[-1] + 1)
    until = observed.time[observed.tick_of] + rng.integers(1, 3, observed.n_records)
    lives = published_lives(
        observed,
        indistinguishable_classes(observed),
        read_regions(observed, THIRDS if in_pieces else None),
        steps_s=steps_s,
        follow=True,
        until=until.astype(np.float64),
    )
    motion = learn_motion(GRID, made.truth.place, learned_from=np.ones(6, bool), tick_s=1.0)
    stands = rng.random(GRID.n_nodes)
    motion = motion._replace(stands=stands, settles=stands / 4, sets_off=0.2)
    start, enter = int(rng.integers(GRID.n_nodes)), int(rng.integers(len(steps_s)))
    belief, hindsight = follow(
        lives,
        motion,
        n_present=np.full(len(steps_s), 6),
        start=np.array([start]),
        enter=enter,
        at=np.arange(enter, len(steps_s)),
        cell_of=HALVES,
        look_back=True,
    )
    assert hindsight is not None
    twin = NaiveChase(
        naive_lives(lives),
        lives.last_step_of.tolist(),
        motion,
        6,
        start,
        enter,
        len(steps_s),
        HALVES.tolist(),
    )
    forward = twin.follow()
    for found, twins in ((belief, forward), (hindsight, twin.look_back())):
        for by_node, expected in zip(found[0], twins, strict=True):
            at_nodes = [expected.get(v, 0.0) for v in range(GRID.n_nodes)]
            assert by_node == pytest.approx(at_nodes, abs=0.01)


@settings(deadline=None, max_examples=10)
@given(seeds)
def test_a_target_is_followed_alike_alone_and_among_many(seed: int) -> None:
    observed = random_release(seed).observed
    lives = published_lives(
        observed,
        indistinguishable_classes(observed),
        read_regions(observed, THIRDS),
        steps_s=np.arange(0.0, 6.0),
        follow=True,
        until=observed.time[observed.tick_of],
    )
    rng = np.random.default_rng(seed)
    place = rng.integers(0, GRID.n_nodes, (6, 12)).astype(np.int32)
    motion = learn_motion(GRID, place, learned_from=np.ones(12, bool), tick_s=1.0)
    start = rng.integers(0, GRID.n_nodes, 12)

    def followed(some: IntArray) -> list[FloatArray]:
        belief, hindsight = follow(
            lives, motion, n_present=np.full(6, 12), start=some, enter=1,
            at=np.array([2, 5]), look_back=True,
        )  # fmt: skip
        assert hindsight is not None
        return [belief, hindsight]

    together = followed(start)
    for i in range(len(start)):
        for found, alone in zip(together, followed(start[i : i + 1]), strict=True):
            np.testing.assert_array_equal(found[i], alone[0])
    assert [len(each) for each in followed(start[:0])] == [0, 0]
