from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.estimators.minimizer import LevelSearch, Released


@st.composite
def searches(draw: st.DrawFn) -> tuple[LevelSearch, list[list[float]]]:
    """Every quasi-identifier costs some score, the more the coarser the level."""
    n_qis, n_levels = draw(st.integers(0, 4)), draw(st.integers(1, 6))
    steps = st.lists(st.integers(0, 5), min_size=n_levels, max_size=n_levels)
    cost = [draw(steps.map(sorted)) for _ in range(n_qis)]
    losses = [draw(steps.map(sorted)) for _ in range(n_qis)]
    target = draw(st.integers(-15, 0))

    def judge(level: int, released: Released) -> tuple[float, int]:
        lost = sum(c[level] for j, c in enumerate(cost) if j not in released)
        return float(-lost), (n_levels - level) * 2 ** len(released)

    def losses_at(level: int) -> Sequence[float]:
        return [float(loss[level]) for loss in losses]

    by_level = [[float(loss[level]) for loss in losses] for level in range(n_levels)]
    return LevelSearch(judge, losses_at, n_levels, float(target)), by_level


@given(searches())
def test_what_is_chosen_keeps_the_score_and_cannot_be_made_coarser_in_one_step(
    given_: tuple[LevelSearch, list[list[float]]],
) -> None:
    search, losses = given_
    choice = search.coarsest()
    assert choice.score == search.score(choice.level, choice.released) >= search.target
    kept = [x for j, x in enumerate(losses[choice.level]) if j not in choice.released]
    assert choice.loss == pytest.approx(sum(kept))
    if choice.level + 1 < search.n_levels:
        assert search.score(choice.level + 1, choice.released) < search.target
    for j in choice.released:
        assert search.score(choice.level, choice.released - {j}) < search.target


@given(searches())
def test_a_release_is_made_only_where_no_level_keeps_the_score(
    given_: tuple[LevelSearch, list[list[float]]],
) -> None:
    search, _ = given_
    keeps = [search.score(level, frozenset()) >= search.target for level in range(search.n_levels)]
    assert bool(search.coarsest().released) == (not any(keeps))


@given(searches())
def test_nothing_is_released_where_the_coarsest_level_keeps_the_score(
    given_: tuple[LevelSearch, list[list[float]]],
) -> None:
    search, losses = given_
    last = search.n_levels - 1
    if search.score(last, frozenset()) >= search.target:
        choice = search.coarsest()
        assert (choice.level, choice.released) == (last, frozenset())
        assert choice.loss == sum(losses[last])


def test_what_gains_most_for_what_it_gives_up_is_released() -> None:
    cost, loss = (4.0, 4.0, 1.0), (0.9, 0.2, 0.1)

    def judge(_level: int, released: Released) -> tuple[float, int]:
        return -sum(c for j, c in enumerate(cost) if j not in released), 1

    def losses(_level: int) -> Sequence[float]:
        return loss

    assert LevelSearch(judge, losses, 1, -5.0).coarsest().released == {1}


def test_the_coarsest_level_is_found_although_a_finer_one_has_a_lower_score() -> None:
    scores = [0.7, 0.95, 0.6, 0.92, 0.5]

    def judge(level: int, released: Released) -> tuple[float, int]:
        return (1.0, 9) if released else (scores[level], 9 - level)

    search = LevelSearch(judge=judge, losses=lambda _: [0.5], n_levels=5, target=0.9)
    found = search.coarsest()
    assert (found.level, found.released, found.n_distinct) == (3, frozenset(), 6)


def test_of_choices_with_releases_the_one_of_fewest_distinct_rows_is_taken() -> None:
    """Releasing column 0 loses more, and leaves every row as it was; column 1 has two values."""

    def judge(level: int, released: Released) -> tuple[float, int]:
        reached = {0: 0.5, 1: 0.5} | {2: 0.4, 3: 0.4}
        gained = 0.45 * (0 in released) if level < 2 else 0.55 * (1 in released)
        return reached[level] + gained, 100 if 0 in released else 1 + len(released)

    search = LevelSearch(judge=judge, losses=lambda _: [0.1, 0.9], n_levels=4, target=0.9)
    assert search.without_release() is None
    found = search.coarsest()
    assert (found.released, found.n_distinct) == (frozenset({1}), 2)
