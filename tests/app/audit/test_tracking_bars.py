"""The bars of tracking: what a release may say about where somebody is (`make soak`)."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from anonymizer.app.audit import audit_release
from anonymizer.app.audit.findings import Figure
from anonymizer.app.audit.tracking_attack import HORIZONS_MIN, tracking_figures
from anonymizer.domain.arrays import FloatArray
from anonymizer.domain.trace import Trace
from anonymizer.networks import load_network
from anonymizer.settings import Settings
from experiments.tracking_experiment import attacked, drive, released

CITY = load_network("city:10000")
FLEETS = (1, 2, 3)
SECONDS = 600
WITH_RELEASE = ("regions", "pieces", "followed")
HINDSIGHT = tuple(f"smoothed_{who}" for who in WITH_RELEASE)
BEFORE: dict[str, Any] = {
    "region": {"place_devices": 1, "area_devices": 1},
    "session": {"beat_s": 0},
}
"""Regions of the smallest places, published whenever a member reports."""
SNAPSHOT: dict[str, Any] = {"region": {"mode": "snapshot"}}

Beliefs = dict[str, FloatArray]
"""Belief of each adversary in the true place at each horizon."""


def audited(trace: Trace) -> Beliefs:
    """Mount every attack on a session with default settings; all promises must hold."""
    settings = Settings()
    case, release = released(trace, CITY, settings)
    report = audit_release(
        trace,
        release,
        CITY,
        settings,
        device_of=case.device_of,
        mode="session",
        tick_s=1.0,
        sample=1000,
        seed=0,
    )
    assert not [f.attack for f in report.findings if f.required and not f.holds]
    [tracking] = [f.figures for f in report.findings if f.attack == "tracking"]
    return beliefs(tracking, ("none", "raw", *WITH_RELEASE, *HINDSIGHT))


def tracked(trace: Trace, tables: dict[str, Any]) -> Beliefs:
    """Track devices in a release with other settings, without hindsight."""
    case = attacked(trace, CITY, Settings.model_validate(tables))
    figures = tracking_figures(
        case.observed,
        case.truth,
        CITY,
        case.piece_of,
        class_of=case.class_of,
        interval_s=case.reports.interval_s,
        hindsight_s=None,
    )
    return beliefs(figures, ("none", *WITH_RELEASE))


def beliefs(figures: dict[str, Figure], names: Sequence[str]) -> Beliefs:
    return {
        who: np.array([float(figures[f"belief_{who}_{m}min"] or 0.0) for m in HORIZONS_MIN])
        for who in names
    }


def mean(found: Sequence[Beliefs]) -> Beliefs:
    """Return the mean over the fleets; 100 tracks alone have a standard error of up to 0.05."""
    return {who: np.mean([each[who] for each in found], axis=0) for who in found[0]}


@pytest.mark.soak
@pytest.mark.parametrize("n_devices", [200, 1000])
def test_a_session_at_most_doubles_the_belief_in_the_true_place(
    n_devices: int, record_property: Callable[[str, object], None]
) -> None:
    fleets = [drive(CITY, n_devices, seconds=SECONDS, seed=seed) for seed in FLEETS]
    now = mean([audited(trace) for trace in fleets])
    before, snapshot = (
        mean([tracked(trace, tables) for trace in fleets]) for tables in (BEFORE, SNAPSHOT)
    )
    for release, found in (("session", now), ("before", before), ("snapshot", snapshot)):
        for who, belief in found.items():
            record_property(f"{release} {who}", belief.round(3).tolist())
    none = now["none"]
    assert np.all(np.maximum(now["regions"], now["pieces"]) <= 2 * none)
    assert np.all(now["followed"] <= 2.5 * none)
    assert all(np.all(now[who] <= 2 * none) for who in HINDSIGHT)
    # In multiples of no release: what is tracked begins where each mode publishes, so the beliefs
    # without a release are not the same.
    strongest = np.max([snapshot[who] for who in WITH_RELEASE], axis=0) / snapshot["none"]
    assert all(np.all(now[who] / none <= strongest) for who in WITH_RELEASE)
    assert before["followed"][-1] > 2.5 * before["none"][-1], "the bar must be able to fail"
