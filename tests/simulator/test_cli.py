"""The command line of the simulator, run in this process for speed."""

import sys
from pathlib import Path

import pytest

from simulator.__main__ import main

NOBODY = "mqtt://127.0.0.1:1"
GRID = ["run", "--network", "grid:3x3", "--broker", NOBODY, "--connect-timeout", "0.05"]
SENSORS = ["sensors", "--network", "grid:3x3"]


class Ran:
    """Exit code and output of a call of `simulator`."""

    def __init__(self, code: object, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err


@pytest.fixture
def simulator(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> "Simulator":
    return Simulator(monkeypatch, capsys)


class Simulator:
    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch = monkeypatch
        self._capsys = capsys

    def __call__(self, *arguments: object) -> Ran:
        self._monkeypatch.setattr(sys, "argv", ["simulator", *map(str, arguments)])
        with pytest.raises(SystemExit) as caught:
            main()
        return Ran(caught.value.code, *self._capsys.readouterr())

    def refused(self, *arguments: object) -> str:
        """Assert that the call fails with one line; return it."""
        ran = self(*arguments)
        assert (ran.code, ran.out) == (2, "")
        assert ran.err.startswith("simulator: ")
        assert ran.err.count("\n") == 1
        return ran.err.removeprefix("simulator: ").rstrip("\n")


@pytest.mark.parametrize("command", [[], ["run"], ["replay"], ["records"], ["sensors"]])
def test_help_explains_and_gives_examples(simulator: Simulator, command: list[str]) -> None:
    ran = simulator(*command, "--help")
    assert ran.code == 0
    assert "Usage: simulator" in ran.out
    assert not command or f"simulator {command[0]} " in ran.out.partition("Examples:")[2]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Missing command"),
        (["run"], "'--network'"),
        (["drive"], "drive"),
        ([*GRID, "--rate", "0"], "'--rate': must be above 0"),
        ([*GRID, "--rate", "nan"], "'--rate': must be above 0"),
        ([*GRID, "--duration", "-1"], "'--duration': must be above 0"),
        ([*GRID, "--devices", "0"], "'--devices'"),
        ([*GRID, "--parked", "1.5"], "'--parked'"),
        ([*GRID, "--qos", "2"], "'--qos'"),
        ([*GRID, "--topic", "positions"], "'--topic': must contain {device} once"),
        ([*GRID, "--topic", "{device}/#"], "'--topic': must contain {device} once"),
        ([*GRID, "--password-file", "missing"], "'--password-file'"),
        ([*GRID, "--record", "trace.txt"], "a trace ends in"),
        ([*GRID, "--record", "missing/trace.csv"], "cannot be written"),
        ([*GRID, "--broker", "http://somewhere"], "--broker: must be mqtt://"),
        (["run", "--network", "grid:0x3"], "grid:0x3"),
        (["run", "--network", "missing.graphml"], "missing.graphml"),
        (["replay", "missing.parquet"], "missing.parquet: no such file"),
        (GRID, f"{NOBODY}: not connected: "),
        (["records", "--vehicles", "0"], "'--vehicles'"),
        (["records", "--broker", NOBODY, "--connect-timeout", "0.05"], "not connected: "),
        ([*SENSORS, "--interval", "0"], "'--interval': must be above 0"),
        ([*SENSORS, "--registry", "missing/s.csv"], "missing/s.csv: cannot be written"),
        ([*SENSORS, "--broker", NOBODY, "--connect-timeout", "0.05"], "not connected: "),
    ],
    ids=str,
)
def test_a_mistake_is_one_line_and_exit_code_2(
    simulator: Simulator, arguments: list[str], message: str
) -> None:
    assert message in simulator.refused(*arguments)


def test_a_trace_that_cannot_be_played_is_refused_in_one_line(
    simulator: Simulator, tmp_path: Path
) -> None:
    trace = tmp_path / "trace.csv"
    trace.write_text("device_id,ts,node\na,1,0\na,2,99\n")
    assert "--network: is required" in simulator.refused("replay", trace)
    message = simulator.refused("replay", trace, "--network", "grid:3x3")
    assert message == "the network lacks the node of 1 rows of the trace"
    trace.write_text("device_id,ts,lat,lon\na,1,2,3\n")
    loop = ("--loop", "--time", "recorded")
    assert "--loop: needs --time now" in simulator.refused("replay", trace, *loop)
    assert "no usable rows after --from" in simulator.refused("replay", trace, "--from", 60)


def test_rows_left_out_of_a_replay_are_reported(simulator: Simulator, tmp_path: Path) -> None:
    trace = tmp_path / "trace.csv"
    trace.write_text("device_id,ts,lat,lon\na,1,2,3\na,,2,3\n")
    ran = simulator("replay", trace, "--broker", NOBODY, "--connect-timeout", 0.05)
    assert ran.code == 2
    assert ran.err.startswith("1 rows of the trace are unusable and left out\nsimulator: mqtt://")


def test_a_recording_is_a_valid_file_even_if_the_broker_is_not_reachable(
    simulator: Simulator, tmp_path: Path
) -> None:
    assert "not connected" in simulator.refused(*GRID, "--record", tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text() == "device_id,ts,lat,lon\n"


def test_only_one_password_may_be_given(
    simulator: Simulator, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "password").write_text("secret\n")
    monkeypatch.setenv("SIMULATOR_PASSWORD", "secret")
    message = simulator.refused(*GRID, "--username", "me", "--password-file", tmp_path / "password")
    assert message == "set password or password_file, not both"
    assert "not connected" in simulator.refused(*GRID, "--username", "me")


def test_traces_are_equal_for_equal_seeds(simulator: Simulator, tmp_path: Path) -> None:
    traces = [tmp_path / f"{name}.csv" for name in "abc"]
    for trace, seed in zip(traces, (1, 1, 2), strict=True):
        made = ("--network", "grid:5x5", "--devices", 20, "--duration", 5, "--seed", seed)
        ran = simulator("trace", trace, *made)
        assert not ran.code
        assert "100 positions of 20 devices" in ran.out
    first, again, other = (trace.read_bytes() for trace in traces)
    assert first == again != other
    assert len(first.splitlines()) == 101
