"""The summary of `audit stream`: every promise of the mode, beside guessing, with intervals."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import anonymizer
from anonymizer.audit import AuditReport
from anonymizer.audit.stream_audit import promised_by
from anonymizer.audit.stream_summary import summary_rows, wilson
from anonymizer.cli.main import app
from tests.audit.tracked import untracked

NETWORK = "grid:12x12"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A trace of 40 devices for three minutes, and what is published of it in `session`."""
    folder = tmp_path_factory.mktemp("summary")
    rng = np.random.default_rng(1)
    place = rng.integers(12, size=(40, 2))
    rows = []
    for second in range(0, 180, 4):
        place = np.clip(place + rng.integers(-1, 2, size=place.shape), 0, 11)
        rows += [
            {"device_id": f"d{d}", "ts": 1000.0 + second, "node": int(12 * r + c)}
            for d, (r, c) in enumerate(place.tolist())
        ]
    named = {name: folder / name for name in ("trace.csv", "pub.jsonl", "map.jsonl")}
    pl.DataFrame(rows).write_csv(named["trace.csv"])
    result = CliRunner().invoke(
        app,
        ["cloak", str(named["trace.csv"]), "--network", NETWORK, "--out", str(named["pub.jsonl"]),
         "--auditor-map", str(named["map.jsonl"])],
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    return named


class Printed(NamedTuple):
    """What the command prints and writes."""

    screen: str
    report: AuditReport


@pytest.fixture(scope="module")
def printed(files: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Printed:
    """A summary by the command."""
    folder = tmp_path_factory.mktemp("printed")
    command = [
        "audit", "stream", str(files["trace.csv"]), str(files["pub.jsonl"]),
        "--network", NETWORK, "--auditor-map", str(files["map.jsonl"]),
        "--json", str(folder / "r.json"),
    ]  # fmt: skip
    result = CliRunner().invoke(app, command, env={"COLUMNS": "120"})
    assert result.exit_code == 0, result.output
    report = AuditReport.model_validate_json((folder / "r.json").read_text())
    return Printed(result.output, report)


@pytest.fixture(scope="module")
def short(printed: Printed) -> AuditReport:
    """The report of which the command prints a summary."""
    return printed.report


def test_a_summary_mounts_whatever_the_mode_promises_and_finds_the_same(
    files: dict[str, Path], short: AuditReport
) -> None:
    with untracked():  # no mode promises it, and a summary tracks less
        whole = anonymizer.audit_stream(
            files["pub.jsonl"],
            files["trace.csv"],
            NETWORK,
            auditor_map=files["map.jsonl"],
            every_attack=True,
        )
    assert short.not_asked
    assert not whole.not_asked
    promised = [each for each in whole.findings if each.attack in promised_by("session")]
    assert [each for each in short.findings if each.attack in promised_by("session")] == promised
    assert short.holds == whole.holds


def test_each_row_has_an_interval_that_holds_what_was_found(short: AuditReport) -> None:
    rows = summary_rows(short)
    assert {row.question for row in rows} == {"sound", "k", "who", "where"}
    assert any("belief" in row.attack for row in rows)
    for row in rows:
        if row.found is not None:
            assert row.low is not None
            assert row.high is not None
            assert row.low - 1e-9 <= row.found <= row.high + 1e-9
        assert row.control is not None or row.question in {"sound", "k"} or row.found is None


def test_the_command_prints_a_summary_of_one_screen(printed: Printed) -> None:
    assert len(printed.screen.splitlines()) <= 50


@given(st.integers(1, 500), st.floats(0, 1))
def test_an_interval_of_a_share_holds_it_and_narrows_with_n(n: int, share: float) -> None:
    low, high = wilson(share, n)
    assert 0 <= low <= share + 1e-12
    assert share - 1e-12 <= high <= 1
    wider = wilson(share, max(1, n // 4))
    assert wider[1] - wider[0] >= high - low - 1e-12
