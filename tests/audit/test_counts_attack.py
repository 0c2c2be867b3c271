"""Attacks on counts of simulated traffic: exact counts give away what safe ones do not."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from anonymizer.audit.attacks.aggregates import attack_counts
from anonymizer.audit.case import Reports
from anonymizer.audit.findings import Finding
from anonymizer.cli.audit import app
from anonymizer.errors import InputError
from anonymizer.networks import load_network
from anonymizer.settings import CountSettings, Settings
from tests.app.worlds import Paper, World, ideal_sessions
from tests.audit.audited import WORLD, audit_of, audited

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


@pytest.mark.parametrize(("privacy", "period_s"), [("dp", 720.0), ("w-event", 600.0)])
def test_noise_hides_members_as_far_as_the_budget_says(privacy: str, period_s: float) -> None:
    """Gaussian noise for the whole trace, and Laplace noise for any ten intervals in a row."""
    found = {}
    for epsilon in (1.0, 100.0):
        tables = {"privacy": privacy, "period_s": period_s, "epsilon": epsilon, "cells": 64}
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
    counts = CountSettings.model_validate({**tables, "cells": 64})
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


def gathered(folder: Path, *, cells: int, k: int) -> Finding:
    """Audit devices that stand together, first here and then there, in regions as large as the map.

    The regions tell nothing, so that all that is learned is from the counts. Some more devices
    stand all over the map: else all cells would be counted together.
    """
    n_devices, n_ticks = 160, 40
    network = load_network("grid:20x20")
    node = np.where(np.arange(n_ticks)[:, None] < n_ticks // 2, 0, 380) + np.arange(n_devices) % 4
    node[:, :40] = np.arange(40) * 10
    world, paper = World(network, node, np.ones(node.shape, bool)), Paper()
    names = [f"p{d}" for d in range(n_devices)]
    paper.device_of = {f"p{d}": f"device-{d}" for d in range(n_devices)}
    for tick in range(n_ticks):
        paper.publish(tick, names, list(range(400)))
    paper.write(folder)
    counts = {"privacy": "k", "every_s": 4.0, "cells": cells, "k": k}
    settings = Settings.model_validate({"counts": counts})
    report = audited(folder, world.trace(), network, settings=settings)
    [finding] = [each for each in report.findings if each.attack == "positions with counts"]
    return finding


def test_counts_that_tell_where_devices_are_must_not_stand_beside_their_regions(
    tmp_path: Path,
) -> None:
    finding = gathered(tmp_path, cells=16, k=2)
    figures = finding.figures
    assert figures["n_victims"] == 160
    assert figures["belief_alone"] == pytest.approx(1 / 16, rel=0.2)
    # Three in four are together, and the counts say where; the others are a stranger's guess.
    assert float(figures["belief_together"] or 0) > 5 / 16
    # The same counts of another time are of the other place.
    assert float(figures["belief_control"] or 1) < 0.1
    assert finding.holds is False
    assert not finding.required


def test_counts_of_all_together_add_nothing(tmp_path: Path) -> None:
    finding = gathered(tmp_path, cells=16, k=100)
    assert finding.figures["belief_together"] == pytest.approx(1 / 16, rel=0.2)
    assert finding.holds


def test_without_counts_nothing_is_read_together(tmp_path: Path) -> None:
    paper = ideal_sessions(WORLD)
    report = audit_of(paper, tmp_path)
    assert "positions with counts" not in {each.attack for each in report.findings}
