"""The bars of tracking: what a release may say about where somebody is (`make soak`)."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from anonymizer.app.audit import audit_release
from anonymizer.app.cloak import cloak_trace
from anonymizer.domain.trace import Trace
from anonymizer.files.release_lines import read_auditor_map, read_release
from anonymizer.networks import load_network
from anonymizer.settings import Settings
from simulator.traffic import Traffic

CITY = load_network("city:10000")
FLEETS = (1, 2, 3)
START = 1_800_000_000.0
SECONDS = 600
MINUTES = (1, 3, 5)
WITH_RELEASE = ("regions", "pieces", "followed")
HINDSIGHT = tuple(f"smoothed_{who}" for who in WITH_RELEASE)
BEFORE: dict[str, Any] = {
    "region": {"place_devices": 1, "area_devices": 1},
    "session": {"beat_s": 0},
}
"""Regions of the smallest places, published whenever a member reports."""


def driving(n_devices: int, seed: int) -> Trace:
    """Return simulated devices that report every second."""
    traffic = Traffic(CITY, n_devices, seed=seed)
    places = [traffic.advance(float(second)) for second in range(SECONDS)]
    return Trace(
        device_id=tuple(f"device-{d}" for d in range(n_devices)),
        device_of=np.tile(np.arange(n_devices), SECONDS),
        ts=START + np.repeat(np.arange(SECONDS, dtype=np.float64), n_devices),
        lat=np.concatenate([lat for lat, _ in places]),
        lon=np.concatenate([lon for _, lon in places]),
    )


def beliefs(n_devices: int, tables: dict[str, Any], folder: Path) -> dict[str, list[float]]:
    """Return the mean belief of each adversary in the true place after 1, 3 and 5 minutes.

    The mean is over several fleets: 100 tracks alone have a standard error of up to 0.05.
    """
    settings = Settings.model_validate(tables)
    found = []
    for seed in FLEETS:
        fleet = folder / f"{n_devices}-{seed}-{len(tables)}"
        fleet.mkdir()
        found.append(beliefs_in(driving(n_devices, seed), settings, fleet))
    return {who: np.mean([each[who] for each in found], axis=0).tolist() for who in found[0]}


def beliefs_in(trace: Trace, settings: Settings, folder: Path) -> dict[str, list[float]]:
    out, auditor_map = folder / "out.jsonl", folder / "map.jsonl"
    cloak_trace(trace, CITY, settings, tick_s=1.0, seed=0, out=out, auditor_map=auditor_map)
    released = read_release(out, CITY)
    report = audit_release(
        trace,
        released,
        CITY,
        settings,
        device_of=read_auditor_map(
            auditor_map, pseudonym=released.pseudonym, device_id=trace.device_id
        ),
        mode=settings.region.mode,
        tick_s=1.0,
        sample=1000,
        seed=0,
    )
    assert not [f.attack for f in report.findings if f.required and not f.holds]
    [tracking] = [f.figures for f in report.findings if f.attack == "tracking"]
    return {
        who: [float(tracking[f"belief_{who}_{minute}min"] or 0.0) for minute in MINUTES]
        for who in ("none", *WITH_RELEASE, *HINDSIGHT)
    }


@pytest.mark.soak
@pytest.mark.parametrize("n_devices", [200, 1000])
def test_a_session_at_most_doubles_the_belief_in_the_true_place(
    n_devices: int, tmp_path: Path
) -> None:
    now, before = (beliefs(n_devices, tables, tmp_path) for tables in ({}, BEFORE))
    snapshot = beliefs(n_devices, {"region": {"mode": "snapshot"}}, tmp_path)
    for i, none in enumerate(now["none"]):
        assert max(now["regions"][i], now["pieces"][i]) <= 2 * none
        assert now["followed"][i] <= 2.5 * none
        assert max(now[who][i] for who in HINDSIGHT) <= 2.5 * none
        strongest = max(snapshot[who][i] for who in WITH_RELEASE)
        assert max(now[who][i] for who in WITH_RELEASE) <= strongest
    assert before["followed"][-1] > 2.5 * before["none"][-1], "the bar must be able to fail"
