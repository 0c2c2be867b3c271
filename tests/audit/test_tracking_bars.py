"""The bars of tracking: what a release may say about where somebody is (`make soak`)."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from anonymizer.settings import Settings
from experiments.where_experiment import FLEETS, Row, run_fleet, with_values

MOST_TIMES_NONE = 2.0
N_FLEETS, N_TARGETS = 4, 30
LEAST_VICTIMS = 480
"""At each of four moments of as many fleets. Drawn from victims of 200 devices, moment by moment,
with beliefs that are scaled to a worst figure of 1.8, 2.1 and 2.3: of 400 draws of 96 victims 78,
38 and 17 % pass, of 320 91, 29 and 5 %, of 480 96, 23 and 2 %."""
MORE_FLEETS = {"even:20": 6, "even:20:2000": 6}
FEWER = {"taxis:4": (3, 12), "taxis:18": (3, 12)}
"""Fleets and targets of each moment: there are few days, and at night few taxis move."""
LEAST_TAXIS = 80
MINUTES = (1, 3, 5)
BEFORE = ("region.place_devices=1", "session.beat_s=0")
"""Regions of the smallest places, published whenever a member reports."""
DATA = Path(os.environ.get("ANONYMIZER_DATA", "."))


def row(fleet: str, *values: str) -> Row:
    n_fleets, n_targets = FEWER.get(fleet, (MORE_FLEETS.get(fleet, N_FLEETS), N_TARGETS))
    settings = with_values(Settings(), values)
    return run_fleet(fleet, settings, data=DATA, n_fleets=n_fleets, n_targets=n_targets)


def times(found: Row, name: str, minute: int) -> tuple[float, float]:
    """Return the belief of all victims and of the most exposed tenth, in times that of none."""
    figures = found.figures(minute)
    none, after = figures["none"], figures[name]
    return after[0] / none[0], after[1] / none[1]


@pytest.mark.soak
@pytest.mark.parametrize(
    "fleet",
    [pytest.param(f, marks=[pytest.mark.data] if f.startswith("taxis") else []) for f in FLEETS],
)
def test_a_session_at_most_doubles_the_belief_in_the_true_place(
    fleet: str, record_property: Callable[[str, object], None]
) -> None:
    found = row(fleet)
    for minute in MINUTES:
        for name, figures in found.figures(minute).items():
            record_property(f"{name} {minute} min", [round(each, 3) for each in figures])
    assert len(found.near["none"]) >= (LEAST_TAXIS if fleet in FEWER else LEAST_VICTIMS)
    for minute in MINUTES:
        for name in ("followed", "hindsight"):
            mean, tenth = times(found, name, minute)
            assert max(mean, tenth) <= MOST_TIMES_NONE, (name, minute)


@pytest.mark.soak
def test_the_adversary_finds_much_in_a_release_that_says_much_and_nothing_in_that_of_others() -> (
    None
):
    found = row("even:200", *BEFORE)
    mean, tenth = times(found, "followed", 5)
    assert min(mean, tenth) > 2.5, "the bar must be able to fail"
    mean, _ = times(found, "placebo", 5)
    assert 0.5 < mean < 1.5
