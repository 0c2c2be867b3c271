"""Looks that are chosen find more names than looks at random, and none that are shared."""

from collections.abc import Sequence

import numpy as np
import pytest

from anonymizer.networks import load_network
from experiments import chosen_moments
from experiments.chosen_moments import run_moments
from experiments.scores import Score


@pytest.fixture(scope="module")
def scores() -> Sequence[Score]:
    with pytest.MonkeyPatch.context() as few:
        few.setattr(chosen_moments, "N_TARGETS", 24)
        few.setattr(chosen_moments, "MOST_LOOKS", 3)
        few.setattr(chosen_moments, "MOST_WATCHES", 8)
        few.setattr(chosen_moments, "MODES", ("session", "bfs"))
        return list(run_moments(load_network("city:300"), n_devices=80, seed=1))


def of(scores: Sequence[Score], looks: int, how: str, mode: str) -> dict[str, float]:
    [found] = [
        s for s in scores if s.release == mode and s.attack == f"moments: {looks} {how}"
    ]  # fmt: skip
    return found.row()


def test_chosen_looks_find_names_where_regions_are_followed(scores: Sequence[Score]) -> None:
    chosen = of(scores, 3, "chosen by the guess", "bfs")
    assert chosen["success"] > 2 * chosen["control"]
    assert chosen["success"] > of(scores, 1, "chosen by the guess", "bfs")["success"]
    assert chosen["success"] >= of(scores, 3, "at random", "bfs")["success"]


@pytest.mark.parametrize("how", ["at random", "a minute apart", "chosen by the guess"])
def test_no_choice_finds_names_of_a_group(scores: Sequence[Score], how: str) -> None:
    row = of(scores, 3, how, "session")
    assert row["success"] < 0.25, "at most one in the members of a group"


def test_chosen_places_find_names_where_regions_are_followed_and_none_of_a_group(
    scores: Sequence[Score],
) -> None:
    def found(how: str, mode: str) -> dict[str, float]:
        [score] = [s for s in scores if (s.attack, s.release) == (f"places: 8 {how}", mode)]
        return score.row()

    chosen = found("chosen by the guess", "bfs")
    assert chosen["success"] > 2 * chosen["control"]
    assert chosen["success"] > 2 * found("at random", "bfs")["success"]
    assert found("chosen by the guess", "session")["success"] < 0.25


def test_the_entropy_of_a_sure_answer_is_nothing() -> None:
    half = np.array([[1.0, 0.0], [0.5, 0.5]])
    entropy = chosen_moments._entropy(half)
    assert entropy[0] == pytest.approx([0.0, 0.0])
    assert entropy[1] == pytest.approx([np.log(2), np.log(2)])


def test_every_number_of_looks_is_a_row(scores: Sequence[Score]) -> None:
    assert len(scores) == 2 * (4 * 3 + 3 * 8)
    assert all(np.isfinite(score.success).all() for score in scores)
