"""Attacks on counts of simulated traffic: exact counts give away what safe ones do not."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from anonymizer.app.audit.case import Reports
from anonymizer.app.audit.counts_attack import attack_counts
from anonymizer.app.audit.findings import Finding
from anonymizer.cli.audit import app
from anonymizer.errors import InputError
from anonymizer.networks import load_network
from anonymizer.settings import CountSettings

NETWORK = load_network("grid:12x12")
SETTINGS = CountSettings(cells=64, k=10, every_s=60.0)
N_DEVICES, N_MINUTES = 60, 12


def travellers() -> Reports:
    """Return devices that cross the grid from the left, one node a minute, five in each row."""
    row, column = np.arange(N_DEVICES) // 5, np.arange(N_DEVICES) % 5 * 2
    node = [row * 12 + np.minimum(column + minute // 3, 11) for minute in range(N_MINUTES)]
    device = np.tile(np.arange(N_DEVICES), N_MINUTES)
    ts = np.repeat(np.arange(N_MINUTES) * 60.0 + 30.0, N_DEVICES)
    return Reports(device, ts, np.concatenate(node).astype(np.int32))


@pytest.fixture(scope="module")
def findings() -> dict[str, Finding]:
    found = attack_counts(travellers(), NETWORK, SETTINGS, seed=1)
    assert attack_counts(travellers(), NETWORK, SETTINGS, seed=1) == found
    return {each.attack: each for each in found}


def test_trajectories_are_recovered_from_exact_counts_more_than_from_safe_ones(
    findings: dict[str, Finding],
) -> None:
    figures = findings["aggregate trajectories"].figures
    assert figures["n_devices"] == N_DEVICES
    exact, safe = figures["recovered_exact"], figures["recovered"]
    chance, still = figures["recovered_chance"], figures["recovered_still"]
    assert exact is not None
    assert safe is not None
    assert chance is not None
    assert still is not None
    assert exact > 1.5 * max(chance, still)  # exact counts would not meet the bar
    assert safe <= 1.5 * max(chance, still)
    assert findings["aggregate trajectories"].holds


def test_membership_is_found_in_exact_counts_and_not_in_safe_ones(
    findings: dict[str, Finding],
) -> None:
    finding = findings["aggregate membership"]
    exact, safe = finding.figures["auc_exact"], finding.figures["auc"]
    assert exact is not None
    assert safe is not None
    assert exact > 0.9
    assert safe < 0.6
    assert finding.holds


def test_habits_are_learned_while_trajectories_are_recovered(findings: dict[str, Finding]) -> None:
    figures = findings["aggregate trajectories"].figures
    habits, blind = figures["recovered_exact_habits"], figures["recovered_chance"]
    assert habits is not None
    assert blind is not None
    assert habits > 1.5 * blind


def test_noise_hides_members_as_far_as_the_budget_says() -> None:
    found = {}
    for epsilon in (1.0, 100.0):
        tables = {"privacy": "dp", "period_s": 720.0, "epsilon": epsilon, "cells": 64}
        counts = CountSettings.model_validate(tables)
        finding = attack_counts(travellers(), NETWORK, counts, seed=1)[1]
        found[epsilon] = finding.figures["auc"]
        assert finding.holds == (epsilon == 1.0)
    assert found[1.0] is not None
    assert found[100.0] is not None
    assert found[1.0] < 0.6
    assert found[100.0] > 0.9


def test_a_device_is_in_private_counts_as_often_as_it_is_counted() -> None:
    """With one interval of a period, its presence is hidden from all others."""
    tables = {"privacy": "dp", "period_s": 720.0, "device_intervals": 1, "epsilon": 100.0}
    counts = CountSettings.model_validate({**tables, "cells": 64, "restarts": 0})
    [trajectories, _] = attack_counts(travellers(), NETWORK, counts, seed=1)
    still = trajectories.figures["recovered_still"]
    assert trajectories.figures["recovered"] == pytest.approx(still, abs=0.05)


def test_a_trace_of_one_interval_or_of_nothing_is_refused() -> None:
    device, ts, node = travellers()
    short = ts < 60
    nobody = np.zeros(len(ts), bool)
    for some in (short, nobody):
        with pytest.raises(InputError, match="fewer than two whole intervals of 60 s"):
            attack_counts(Reports(device[some], ts[some], node[some]), NETWORK, SETTINGS, seed=0)


def test_the_command_reports_both_attacks(tmp_path: Path) -> None:
    device, ts, node = travellers()
    trace, out = tmp_path / "trace.csv", tmp_path / "out.json"
    names = [f"device-{d}" for d in device.tolist()]
    pl.DataFrame({"device_id": names, "ts": ts, "node": node}).write_csv(trace)
    words = ["counts", str(trace), "--network", "grid:12x12", "--json", str(out)]
    result = CliRunner(env={"COLUMNS": "120"}).invoke(app, words, catch_exceptions=False)
    assert result.exit_code == 0
    assert "aggregate membership" in result.stdout
    assert [each["attack"] for each in json.loads(out.read_text())] == [
        "aggregate trajectories", "aggregate membership"
    ]  # fmt: skip
    printed = CliRunner().invoke(app, [*words[:-1], "-"], catch_exceptions=False)
    assert json.loads(printed.stdout) == json.loads(out.read_text())
