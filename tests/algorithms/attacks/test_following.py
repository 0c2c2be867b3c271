"""Following devices one by one: answers of paper, of all assignments, and of a naive twin."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymizer.algorithms.attacks.association import associate
from anonymizer.algorithms.attacks.following import follow
from anonymizer.algorithms.attacks.indistinguishability import indistinguishable_classes
from anonymizer.algorithms.attacks.lives import (
    Handed,
    Lives,
    handed_lives,
    published_lives,
    read_regions,
)
from anonymizer.algorithms.attacks.motion import Motion, learn_motion
from anonymizer.domain.arrays import FloatArray
from anonymizer.networks import load_network
from tests.algorithms.attacks.made import GRID, Line, observed_of, random_release
from tests.algorithms.attacks.naive_following import naive_association, naive_follow
from tests.algorithms.attacks.naive_tracking import naive_lives

seeds = st.integers(0, 10_000)
THIRDS = np.arange(GRID.n_nodes) // 3
PATH = load_network("grid:1x9")
PIECES = np.arange(9) // 3


def posterior(inside: FloatArray, outside: FloatArray, size: int) -> FloatArray:
    """Return the probability of each place of each device, the last one outside."""
    n, m = inside.shape
    factor, total, _ = associate(inside, outside, np.zeros(m), float(size))
    shares: FloatArray = np.column_stack([inside * factor[:n], outside]) / total[:n, None]
    return shares


@settings(deadline=None, max_examples=40)
@given(seeds, st.integers(2, 5), st.integers(1, 3), st.integers(0, 2))
def test_associations_are_close_to_those_of_all_assignments(
    seed: int, n: int, m: int, more: int
) -> None:
    size = min(max(m, n - more), n)
    if m > size:
        return
    shares = np.random.default_rng(seed).dirichlet(np.ones(m + 1), n)
    inside, outside = np.ascontiguousarray(shares[:, :m]), shares[:, m].copy()
    found = posterior(inside, outside, size)
    exact = naive_association(inside, outside, size)
    # Belief propagation on a graph with cycles, and a number of members that holds on average.
    assert np.abs(found - exact).mean() < 0.12
    assert found.sum(axis=1) == pytest.approx(1)


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
    assert found[1] > 0.99


def test_a_group_that_nobody_can_have_joined_says_nothing() -> None:
    lines: list[Line] = [(0, 0, (0, 1, 2), 1), (1, 3, (6, 7, 8), 1)]
    found = believed(groups(lines, until=2.0), still(), start=1, n_present=3)
    assert found[0] > 0.95


def test_who_is_told_the_levels_tells_members_of_large_places_from_those_of_small_ones() -> None:
    lines: list[Line] = [(p, t, tuple(range(9)), 2) for p in range(2) for t in (0, 2, 4)]
    observed = observed_of(lines)
    levels = np.stack([PIECES, np.zeros(9, np.int64)])
    place = np.where(observed.pseudonym_of == 0, 1, 7)
    lives = handed_lives(
        observed,
        indistinguishable_classes(observed),
        Handed(np.array([0, 1]), place, levels),
        steps_s=np.arange(0.0, 6.0),
        until=np.full(observed.n_records, 5.0),
    )
    assert lives.size.tolist() == [1, 1]
    assert max(np.diff(lives.regions.first_node_of).tolist()) == 9
    assert believed(lives, still(leave=0.5), start=1, n_present=2)[0] > 0.9


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
    belief, _ = follow(
        lives,
        motion,
        n_present=np.full(len(steps_s), 6),
        start=np.array([start]),
        enter=enter,
        at=np.arange(enter, len(steps_s)),
    )
    twin = naive_follow(
        naive_lives(lives),
        lives.last_step_of.tolist(),
        motion,
        n_present=6,
        start=start,
        enter=enter,
        n_steps=len(steps_s),
    )
    for found, expected in zip(belief[0], twin, strict=True):
        assert found == pytest.approx([expected.get(v, 0.0) for v in range(GRID.n_nodes)], abs=0.01)
