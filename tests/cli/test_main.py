"""What all commands have in common."""

import subprocess
import sys
from pathlib import Path

import pytest

from anonymizer import __version__
from anonymizer.cli.main import main
from tests.cli.support import process
from tests.end_to_end import ANONYMIZER, DEADLINE_S

HEAVY = {"numpy", "numba", "scipy", "networkx", "polars", "matplotlib", "fastapi", "pydantic"}


def run(*arguments: str, monkeypatch: pytest.MonkeyPatch) -> int:
    """Run a command line in this process; return the exit code."""
    monkeypatch.setattr(sys, "argv", ["anonymizer", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    code = ended.value.code
    return code if isinstance(code, int) else 0


def test_help_names_every_command_and_loads_nothing_heavy() -> None:
    told = process("--help", environment={"PYTHONPROFILEIMPORTTIME": "1"})
    assert told.returncode == 0
    for command in ("demo", "serve", "check", "init", "schema", "cloak", "experiment"):
        assert f" {command} " in told.stdout
    loaded = {line.rpartition("|")[2].strip() for line in told.stderr.splitlines()}
    assert "typer" in loaded
    assert loaded & HEAVY == set()


@pytest.mark.parametrize("command", ["demo", "serve", "check", "cloak", "experiment"])
def test_every_command_explains_itself(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(command, "-h", monkeypatch=monkeypatch) == 0
    assert f"anonymizer {command}" in capsys.readouterr().out


def test_no_command_at_all_shows_the_help(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch=monkeypatch) == 2
    said = capsys.readouterr()
    assert "Usage: anonymizer" in said.out
    assert said.err == ""


def test_it_says_its_version(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--version", monkeypatch=monkeypatch) == 0
    assert capsys.readouterr().out == f"anonymizer {__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "about"),
    [
        (["sevre"], "No such command 'sevre'"),
        (["serve", "--confg", "x"], "--confg"),
        (["demo", "--devices", "0"], "'--devices'"),
        (["cloak", "trace.csv", "--network", "grid:5x5"], "'--out'"),
        (["serve", "-c", "nowhere.toml"], "nowhere.toml: cannot be read"),
        (["check", "a.toml"], "did you mean --config a.toml?"),
        (["serve", "a.toml"], "did you mean --config a.toml?"),
        (["cloak", "nowhere.csv", "--network", "grid:5x5", "--out", "x"], "nowhere.csv"),
    ],
)
def test_a_mistake_of_the_user_is_one_line_and_exit_2(
    arguments: list[str],
    about: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(*arguments, monkeypatch=monkeypatch) == 2
    said = capsys.readouterr()
    assert said.err.startswith("anonymizer: ")
    assert said.err.count("\n") == 1
    assert about in said.err


@pytest.mark.parametrize("command", ["audit counts", "anonymize", "tune", "audit table"])
def test_brackets_in_the_help_are_shown_and_not_taken_for_a_style(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*command.split(), "-h", monkeypatch=monkeypatch) == 0
    said = capsys.readouterr().out
    assert "``" not in said
    assert "{attribute: }" not in said
    assert ("[counts]" in said) is (command == "audit counts")


@pytest.mark.parametrize("words", [["schema"], ["cloak", "trace.csv", "--out", "/dev/full"]])
def test_a_full_disk_is_one_line_and_exit_2(words: list[str], tmp_path: Path) -> None:
    if words[0] == "cloak":
        rows = [f"d{i},{i % 9},60.1699,24.9384" for i in range(200)]
        (tmp_path / "trace.csv").write_text("\n".join(["device_id,ts,lat,lon", *rows]))
        words = [*words, "--network", "grid:5x5"]
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [ANONYMIZER, *words],
            cwd=tmp_path,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=DEADLINE_S,
        )
    last = done.stderr.strip().splitlines()[-1]
    assert done.returncode == 2
    assert last.startswith("anonymizer: ")
    assert last.endswith("No space left on device: make room, or name a file on another disk")
    assert ("/dev/full: " in last) is (words[0] == "cloak")
    assert "Traceback" not in done.stderr
