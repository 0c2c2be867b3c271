"""`anonymizer init` and `anonymizer schema`."""

import json
import os
import pty
import subprocess
import tomllib
from pathlib import Path

from anonymizer.app.gateway.api import toll_queries
from anonymizer.app.gateway.declared_streams import declared_streams
from anonymizer.settings.json_schema import json_schema
from anonymizer.settings.toml_file import load_settings
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


def test_all_methods_are_one_file_that_check_takes(tmp_path: Path) -> None:
    out = tmp_path / "gateway.toml"
    flags = ("--yes", "--all", "--network", "grid:5x5")
    told = anonymizer("init", "--out", out, *flags)
    assert (told.returncode, told.stderr) == (0, "")
    tables = tomllib.loads(out.read_text())
    assert [each.get("kind", "mobile") for each in tables["inputs"]] == ["mobile", "public"]
    models = {each["name"]: each["model"] for each in tables["streams"]}
    assert models == {"fleet": "kd", "drivers": "kld", "health": "cells", "toll": "kaca"}
    checked = anonymizer("check", "-c", out)
    assert checked.returncode == 0, checked.stderr
    assert "streams of records: fleet, drivers, health, toll" in checked.stdout
    assert "fleet and health: both read records/telemetry/{vehicle}; each value" in checked.stdout
    settings = load_settings(out)
    assert toll_queries(settings, declared_streams(settings)) is not None  # the toll API answers
    every_key = anonymizer("init", "--out", "-", *flags, "--all-keys")
    assert tomllib.loads(every_key.stdout)["streams"] == tables["streams"]


def test_check_warns_where_two_streams_take_one_value_from_a_topic(tmp_path: Path) -> None:
    out = tmp_path / "gateway.toml"
    stream = """
        [[streams]]
        name = "{name}"
        cumulative = "report"
        sources = [{{ name = "telemetry", tells = ["speed"] }}]
        attributes = [{{ name = "speed", lo = 0, hi = 9 }}]
        """
    out.write_text("inputs = []" + "".join(stream.format(name=name) for name in "ab"))
    checked = anonymizer("check", "-c", out)
    assert checked.returncode == 0, checked.stderr
    assert "warning: a and b: both read records/telemetry/{vehicle}, and publish speed" in (
        checked.stdout
    )
    out.write_text(out.read_text().replace('"report"', '"enforce"', 1))
    refused = anonymizer("check", "-c", out)
    assert refused.returncode == 2
    assert "a and b publish speed of the same vehicles" in refused.stderr


def test_a_topic_of_all_devices_is_stated_by_options_alone(tmp_path: Path) -> None:
    out = tmp_path / "gateway.toml"
    flags = ("--topic", "traccar", "--codec", "traccar", "--network", "grid:5x5", "--out", out)
    told = anonymizer("init", *flags)
    assert (told.returncode, "device_from" in told.stderr) == (2, True)
    assert anonymizer("init", *flags, "--device-from", "payload").returncode == 0
    [found] = load_settings(out).inputs
    assert (found.topic, found.device_from) == ("traccar", "payload")


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
    os.write(ours, b"grid:5x5\n\n\n\ncircle\nsnapshot\nTraffic office, https://x.example\n")
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
    assert tables["http"] == {"run_by": "Traffic office, https://x.example"}


def test_the_schema_is_printed_as_json() -> None:
    told = anonymizer("schema")
    assert (told.returncode, told.stderr) == (0, "")
    assert json.loads(told.stdout) == json_schema()
