"""Habits find people in a release that is known to be broken, and not in the default."""

from collections.abc import Sequence

import numpy as np
import pytest

from anonymizer.networks import load_network
from experiments import habits_experiment
from experiments.commuter_weeks import DAY_S, KINDS, MONDAY, commuter_weeks
from experiments.habits_experiment import run_habits
from experiments.scores import Score

pytestmark = pytest.mark.timeout(3600)
"""Five weeks are cloaked for those that are slow."""
CITY = load_network("city:400")


@pytest.fixture(scope="module")
def scores() -> Sequence[Score]:
    with pytest.MonkeyPatch.context() as few:
        chosen = {name: habits_experiment.RELEASES[name] for name in ("session",)}
        few.setattr(habits_experiment, "RELEASES", chosen)
        return list(run_habits(CITY, n_people=240, seed=1))


def of(scores: Sequence[Score], attack: str, release: str) -> dict[str, float]:
    [found] = [s for s in scores if (s.attack, s.release) == (attack, release)]
    return found.row()


@pytest.mark.soak
def test_names_and_places_are_found_in_raw_positions(scores: Sequence[Score]) -> None:
    name = of(scores, "habits: name", "raw, a name a day")
    assert name["success"] > 0.7
    assert name["control"] < 0.2
    place = of(scores, "habits: where", "raw, a name a day")
    assert place["low"] > 2 * place["control"]
    there = of(scores, "habits: there on a day", "raw, a name a day")
    assert there["low"] > there["control"] + 0.1


@pytest.mark.soak
def test_the_default_names_nobody_more_often_than_one_in_k(scores: Sequence[Score]) -> None:
    name = of(scores, "habits: name", "session")
    assert name["victims"] > 50
    assert name["high"] < name["promised"]
    place = of(scores, "habits: where", "session")
    assert place["success"] < 2 * place["control"]


@pytest.mark.soak
def test_cloaked_days_tell_habits_if_their_places_are_small(scores: Sequence[Score]) -> None:
    name = of(scores, "habits cloaked in the smallest places: name", "raw, a name a day")
    assert name["low"] > 2 * name["control"], "the attack works on days that say much"
    session = of(scores, "cloaked habits: name", "session")
    assert session["high"] < session["promised"]


@pytest.mark.soak
def test_noise_hides_habits_and_without_it_they_are_found(scores: Sequence[Score]) -> None:
    noisy, nearly = (
        of(scores, "habits: there on a day", f"counts, ε = {e} an hour") for e in (1, 100)
    )
    assert noisy["low"] < noisy["control"], "no more than chance"
    assert nearly["low"] > nearly["control"]


@pytest.mark.soak
def test_counts_have_no_names_but_places(scores: Sequence[Score]) -> None:
    attacks = {score.attack for score in scores if score.release == "safe counts"}
    assert attacks == {"habits: where", "habits: where, placebo", "habits: there on a day"}
    place = of(scores, "habits: where", "safe counts")
    assert 0 < place["control"] <= place["success"] * 1.5


def test_people_have_weeks() -> None:
    weeks = commuter_weeks(CITY, 200, n_days=14, every_s=60.0, seed=1)
    day = np.floor(weeks.trace.ts / DAY_S).astype(int) - MONDAY
    assert day.min() == 0
    assert day.max() <= 14, "the last night shift ends on the morning after"
    working = np.arange(14) % 7 < 5
    shifts, home = (weeks.kind == KINDS.index(kind) for kind in ("shifts", "at home"))
    assert not weeks.drives[shifts][:, ~working].any()
    assert 0.75 < weeks.drives[shifts][:, working].mean() < 1
    assert 0.3 < weeks.drives[home].mean() < 0.75
    again = commuter_weeks(CITY, 200, n_days=14, every_s=60.0, seed=1)
    assert (again.trace.ts == weeks.trace.ts).all()
    hour = weeks.trace.ts % DAY_S / 3600
    office = np.isin(weeks.trace.device_of, np.flatnonzero(weeks.kind == 0)) & working[day % 7]
    assert ((hour[office] > 5) & (hour[office] < 20.5)).mean() > 0.95
