"""Looks that are chosen find more names than looks at random, and none that are shared."""

from collections.abc import Sequence

import numpy as np
import pytest

from anonymizer.networks import load_network
from experiments import chosen_moments, learned_looks, looks
from experiments.best_looks import answers, values_of
from experiments.chosen_moments import names_found, run_moments
from experiments.learned_looks import learned, train
from experiments.looks import Looks, Window, published
from experiments.scores import Score


@pytest.fixture(scope="module")
def scores() -> Sequence[Score]:
    with pytest.MonkeyPatch.context() as few:
        few.setattr(chosen_moments, "N_TARGETS", 24)
        few.setattr(chosen_moments, "MOST_LOOKS", 3)
        few.setattr(chosen_moments, "MOST_WATCHES", 8)
        few.setattr(chosen_moments, "MODES", ("session", "adka"))
        few.setattr(learned_looks, "N_ROUNDS", 1)
        few.setattr(learned_looks, "N_TRIES", 5)
        return list(run_moments(load_network("city:300"), n_devices=80, seed=1))


@pytest.fixture(scope="module")
def snapshot() -> Window:
    return published(load_network("city:300"), 80, "snapshot", 1)


def of(scores: Sequence[Score], looks: int, how: str, mode: str) -> dict[str, float]:
    [found] = [
        s for s in scores if s.release == mode and s.attack == f"moments: {looks} {how}"
    ]  # fmt: skip
    return found.row()


@pytest.mark.soak
def test_chosen_looks_find_names_where_regions_are_followed(scores: Sequence[Score]) -> None:
    chosen = of(scores, 3, "chosen by the guess", "adka")
    assert chosen["success"] > 2 * chosen["control"]
    assert chosen["success"] > of(scores, 1, "chosen by the guess", "adka")["success"]
    assert chosen["success"] >= of(scores, 3, "at random", "adka")["success"]


@pytest.mark.soak
@pytest.mark.parametrize(
    "how", ["at random", "a minute apart", "chosen by the guess", "chosen as learned"]
)
def test_no_choice_finds_names_of_a_group(scores: Sequence[Score], how: str) -> None:
    row = of(scores, 3, how, "session")
    assert row["success"] < 0.25, "at most one in the members of a group"


@pytest.mark.soak
def test_chosen_places_find_names_where_regions_are_followed_and_none_of_a_group(
    scores: Sequence[Score],
) -> None:
    def found(how: str, mode: str) -> dict[str, float]:
        [score] = [s for s in scores if (s.attack, s.release) == (f"places: 8 {how}", mode)]
        return score.row()

    chosen = found("chosen by the guess", "adka")
    assert chosen["success"] > 2 * chosen["control"]
    assert chosen["success"] > 2 * found("at random", "adka")["success"]
    assert found("chosen by the guess", "session")["success"] < 0.25


def test_the_entropy_of_a_sure_answer_is_nothing() -> None:
    half = np.array([[1.0, 0.0], [0.5, 0.5]])
    entropy = looks._entropy(half)
    assert entropy[0] == pytest.approx([0.0, 0.0])
    assert entropy[1] == pytest.approx([np.log(2), np.log(2)])


@pytest.mark.soak
def test_every_number_of_looks_is_a_row(scores: Sequence[Score]) -> None:
    assert len(scores) == 2 * (5 * 3 + 3 * 8)
    assert all(np.isfinite(score.success).all() for score in scores)


def found(window: Window, choose: looks.Choice) -> float:
    """Return how often names are found by three looks."""
    usable = np.flatnonzero((window.place >= 0).all(axis=0))
    targets = np.intersect1d(usable, window.device_of)[:40]
    return float(names_found(window, targets, targets, choose, seed=1)[:, 2].mean())


def test_what_was_learned_in_another_fleet_finds_more_names_than_one_by_one(
    snapshot: Window, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(learned_looks, "N_ROUNDS", 2)
    monkeypatch.setattr(learned_looks, "N_TRIES", 10)
    weight = train(published(load_network("city:300"), 80, "snapshot", 101))
    one_by_one = found(snapshot, chosen_moments._greedy(0, len(snapshot.region)))
    assert found(snapshot, learned(weight)) > one_by_one + 0.1


def test_a_policy_begins_as_the_choice_by_the_guess(snapshot: Window) -> None:
    by_weight = learned(np.array([[1.0, 0.0, 0.0, 0.0]]))
    by_guess = chosen_moments._greedy(0, len(snapshot.region))
    assert found(snapshot, by_weight) == found(snapshot, by_guess)


def test_answers_are_all_that_a_look_may_tell(snapshot: Window) -> None:
    start = Looks(snapshot)
    start.see(10, int(snapshot.place[10, 3]))
    for action in ((20, None), (20, 5)):
        told = list(answers(start, action))
        assert sum(probability for probability, _ in told) == pytest.approx(1.0)
        surest = sum(p * after.belief(20)[1].max() for p, after in told)
        moment, part = action
        expected = (
            start.expected(moment)[0] if part is None else start.expected_by_part(moment)[0][part]
        )
        assert surest == pytest.approx(expected, abs=1e-3)


def test_no_choice_expects_more_than_the_best(snapshot: Window) -> None:
    actions = [(0, None), (20, None), (40, None)]
    one = values_of(Looks(snapshot), actions, 1)
    two = values_of(Looks(snapshot), actions, 2)
    assert one.one_by_one == one.best
    assert one.best < two.best
    assert two.random < two.one_by_one <= two.best < 1
