import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from anonymizer.cli.audit import app
from anonymizer.errors import GuaranteeError, InputError
from tests.app.worlds import SIDE, TTL_S, Paper, fixed_pseudonyms, ideal_sessions, wandering

WORLD = wandering(n_devices=60, n_ticks=12, seed=2)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "gateway.toml"
    path.write_text(f"[presence]\nttl_s = {TTL_S}\nmax_behind_s = 1.0\n[session]\nepoch_s = 1\n")
    return path


def audit(folder: Path, paper: Paper, config: Path, *words: str | Path) -> Result:
    release, auditor_map = paper.write(folder)
    trace = WORLD.write_trace(folder / "trace.csv")
    options = ["--network", f"grid:{SIDE}x{SIDE}", "--auditor-map", auditor_map, "-c", config]
    command = ["stream", trace, release, *options, *words]
    return CliRunner(env={"COLUMNS": "120"}).invoke(app, [str(word) for word in command])


def test_a_release_that_holds_is_told_as_a_table_and_written_as_json(
    tmp_path: Path, config: Path
) -> None:
    result = audit(tmp_path, ideal_sessions(WORLD), config, "--json", tmp_path / "out.json")
    assert result.exit_code == 0, result.output
    report = json.loads((tmp_path / "out.json").read_text())
    assert (report["mode"], report["holds"]) == ("session", True)
    for finding in report["findings"]:
        assert finding["attack"] in result.stdout
    assert "FAILS" not in result.stdout


def test_a_broken_promise_ends_in_an_error_that_names_the_attacks(
    tmp_path: Path, config: Path
) -> None:
    result = audit(tmp_path, fixed_pseudonyms(WORLD), config, "--json", "-")
    assert isinstance(result.exception, GuaranteeError)
    assert "session, intersection, matching" in str(result.exception)
    assert json.loads(result.stdout)["holds"] is False
    assert "FAILS" in result.stderr


def test_what_a_mode_does_not_promise_is_reported_only(tmp_path: Path, config: Path) -> None:
    result = audit(tmp_path, fixed_pseudonyms(WORLD), config, "--mode", "snapshot")
    assert result.exit_code == 0, result.output
    assert "would fail" in result.stdout
    assert "no case" in result.stdout  # no pseudonym ends


def test_without_the_map_the_table_says_what_is_left_out(tmp_path: Path, config: Path) -> None:
    release, _ = ideal_sessions(WORLD).write(tmp_path)
    trace = WORLD.write_trace(tmp_path / "trace.csv")
    words = ["stream", trace, release, "--network", f"grid:{SIDE}x{SIDE}", "-c", config]
    result = CliRunner(env={"COLUMNS": "200"}).invoke(app, [*map(str, words), "--mode", "bfs"])
    assert result.exit_code == 0, result.output
    assert "soundness, centre, prefix, matching" in result.stdout


def test_a_report_that_cannot_be_written_is_said(tmp_path: Path, config: Path) -> None:
    path = tmp_path / "no" / "folder.json"
    result = audit(tmp_path, ideal_sessions(WORLD), config, "--json", path)
    assert isinstance(result.exception, InputError)
    assert str(result.exception) == f"{path}: cannot be written: No such file or directory"


def test_no_pseudonym_device_or_node_is_printed(tmp_path: Path, config: Path) -> None:
    paper = fixed_pseudonyms(WORLD)
    result = audit(tmp_path, paper, config)
    for name in (*paper.device_of, *paper.device_of.values()):
        assert f" {name} " not in result.output
