"""`anonymizer init` and `anonymizer schema`."""

import json
import os
import pty
import subprocess
import tomllib
from pathlib import Path

from anonymizer.settings.json_schema import json_schema
from tests.cli.support import anonymizer
from tests.end_to_end import ANONYMIZER, DEADLINE_S


def test_flags_are_in_force_in_the_file_and_check_takes_it(tmp_path: Path) -> None:
    out = tmp_path / "gateway.toml"
    flags = ("--network", "grid:5x5", "--mode", "snapshot", "--codec", "owntracks")
    told = anonymizer("init", "--out", out, *flags, "--http-port", "0")
    assert (told.returncode, told.stderr) == (0, "")
    tables = {name: table for name, table in tomllib.loads(out.read_text()).items() if table}
    assert tables == {
        "network": {"source": "grid:5x5"},
        "inputs": [{"codec": "owntracks"}],
        "adka": {"k_floor": 5},
        "region": {"mode": "snapshot"},
        "http": {"port": 0},
    }
    assert anonymizer("check", "-c", out).returncode == 0


def test_a_file_that_is_there_stays_unless_it_is_forced(tmp_path: Path) -> None:
    out = tmp_path / "gateway.toml"
    out.write_text("mine")
    told = anonymizer("init", "--yes", "--out", out)
    assert told.returncode == 2
    assert told.stderr == f"anonymizer: {out}: already exists; --force overwrites it\n"
    assert out.read_text() == "mine"
    assert anonymizer("init", "--yes", "--force", "--out", out).returncode == 0
    assert out.read_text() != "mine"


def test_what_the_gateway_would_refuse_is_not_written(tmp_path: Path) -> None:
    out = tmp_path / "gateway.toml"
    told = anonymizer("init", "--broker", "mqtt://far.example", "--out", out)
    assert told.returncode == 2
    assert told.stderr.startswith("anonymizer: command line: broker: url: must be mqtts://")
    assert not out.exists()


def test_on_a_terminal_it_asks_and_asks_again_after_a_mistake(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    os.write(ours, b"grid:5x5\n\n\n\ncircle\nsnapshot\n")
    told = subprocess.run(
        [ANONYMIZER, "init"],
        stdin=theirs,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        timeout=DEADLINE_S,
    )
    os.close(ours)
    os.close(theirs)
    assert "region.mode" in told.stderr
    tables = tomllib.loads((tmp_path / "gateway.toml").read_text())
    assert tables["network"] == {"source": "grid:5x5"}
    assert tables["region"] == {"mode": "snapshot"}
    assert tables["broker"] == {}


def test_the_schema_is_printed_as_json() -> None:
    told = anonymizer("schema")
    assert (told.returncode, told.stderr) == (0, "")
    assert json.loads(told.stdout) == json_schema()
