"""Every command there is, given what it cannot use: one line, exit 2, never a traceback."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, get_args

import pytest
from typer.main import get_command

from anonymizer.cli import main as ours
from simulator import __main__ as theirs
from simulator.cli.main import app as simulator

_GOOD = {
    "--network": "grid:3x3",
    "network": "grid:3x3",
    "--qi": "age,zip",
    "-k": "2",
    "--sa": "illness",
    "--target": "illness",
    "--duration": "1",
    "--width": "5",
    "column": "age",
}
"""Text that a command needs to get as far as its files."""


def kind_of(parameter: Any) -> object:  # noqa: ANN401  typer's, of no public type
    """Return what a parameter takes; of one that may be left out as well."""
    annotation = parameter.type_descriptor.annotation
    parts = [part for part in get_args(annotation) if part is not type(None)]
    return parts[0] if len(parts) == 1 else annotation


class Command(NamedTuple):
    """A command, and its parameters."""

    program: str
    main: Callable[[], object]
    words: tuple[str, ...]
    parameters: list[Any]

    def __str__(self) -> str:
        return " ".join((self.program, *self.words))

    def needed(self, path: Path) -> list[str]:
        """Return the arguments that it needs; it reads `path`, and writes beside it."""
        words = list(self.words)
        for parameter in self.parameters:
            if parameter.required:
                name = parameter.opts[0]
                file = path.with_name(f"out{path.suffix}") if name == "--out" else path
                value = str(file) if kind_of(parameter) is Path else _GOOD[name]
                words += [value] if parameter.param_type_name == "argument" else [name, value]
        return words

    def options(self, kind: type) -> list[str]:
        """Return its options that take a value of a kind."""
        options = (p for p in self.parameters if p.param_type_name == "option")
        return [p.opts[0] for p in options if kind_of(p) is kind and not p.is_flag]


def _commands(
    program: str,
    main: Callable[[], object],
    command: Any,  # noqa: ANN401  likewise
    words: tuple[str, ...] = (),
) -> Iterator[Command]:
    if hasattr(command, "commands"):
        for name, inner in command.commands.items():
            yield from _commands(program, main, inner, (*words, name))
    else:
        yield Command(program, main, words, list(command.params))


ALL = [
    *_commands("anonymizer", ours.main, get_command(ours.app)),
    *_commands("simulator", theirs.main, get_command(simulator)),
]
WRITERS = [
    c
    for c in ALL
    if str(c) in {"simulator trace", "anonymizer network export"} or c.words[0] == "experiment"
]
READERS = [
    c
    for c in ALL
    if c not in WRITERS and any(p.required and kind_of(p) is Path for p in c.parameters)
]
REPORTERS = [
    (c, option)
    for c in READERS
    for option in ("--out", "--json", "--auditor-map")
    # `tune` writes into a folder, `backup` over nothing, and `audit` reads the map; `report` needs
    # no file.
    if option in c.options(Path) and c.words[0] not in {"tune", "backup", "report"}
    if option != "--auditor-map" or c.words[0] != "audit"
]
CONFIGURED = [
    # `tune` asks for a stream of them first.
    c
    for c in ALL
    if "--config" in c.options(Path) and c.words != ("tune",)
]
PLACED = [c for c in ALL if "--network" in c.options(str) and c.words != ("init",)]
FILES = {
    "missing": None,
    "empty": b"",
    "not text": bytes(range(256)) * 4,
    "one line": b"age\n",
}


def complaint(
    command: Command,
    arguments: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> str:
    """Run a command that must refuse; return the last line of what it says."""
    monkeypatch.setattr(sys, "argv", [command.program, *arguments])
    with pytest.raises(SystemExit) as ended:
        command.main()
    said = capsys.readouterr()
    assert ended.value.code == 2, (arguments, said)
    assert "Traceback" not in said.out + said.err
    last = said.err.strip().splitlines()[-1]
    assert last.startswith(f"{command.program}: "), (arguments, said.err)
    return last


@pytest.mark.parametrize("command", ALL, ids=str)
def test_a_word_where_a_number_belongs_is_refused_by_the_option_s_name(
    command: Command, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for option in [*command.options(int), *command.options(float)]:
        arguments = [*command.needed(Path("nowhere")), option, "frog"]
        assert option in complaint(command, arguments, monkeypatch, capsys)


@pytest.mark.parametrize("content", FILES.values(), ids=FILES)
@pytest.mark.parametrize("command", READERS, ids=str)
def test_files_that_cannot_be_used_are_refused_in_one_line(
    command: Command,
    content: bytes | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    for ending in ("csv", "parquet", "jsonl"):
        bad = tmp_path / f"{'no/' if content is None else ''}bad.{ending}"
        if content is not None:
            bad.write_bytes(content)
        complaint(command, command.needed(bad), monkeypatch, capsys)


@pytest.mark.parametrize(("command", "option"), REPORTERS, ids=str)
def test_no_command_writes_over_what_it_reads(
    command: Command,
    option: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    read = tmp_path / "read.csv"
    read.write_bytes(b"device_id,ts,lat,lon\na,0,60.1699,24.9384\n")
    arguments = [*command.needed(read), option, str(read)]
    assert "read.csv: is named twice" in complaint(command, arguments, monkeypatch, capsys)
    assert read.read_bytes() == b"device_id,ts,lat,lon\na,0,60.1699,24.9384\n"


@pytest.mark.parametrize("command", WRITERS, ids=str)
def test_a_place_that_cannot_be_written_to_is_refused_before_any_work(
    command: Command,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "file").write_text("")
    complaint(command, command.needed(tmp_path / "file" / "out.csv"), monkeypatch, capsys)


@pytest.mark.parametrize("command", CONFIGURED, ids=str)
def test_settings_that_cannot_be_used_are_refused_in_one_line(
    command: Command,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    config = tmp_path / "gateway.toml"
    for content in (None, b"\xff", b"[", b"[tick]\ninterval_s = 'fast'\n"):
        if content is not None:
            config.write_bytes(content)
        arguments = [*command.needed(tmp_path / "nowhere"), "--config", str(config)]
        said = complaint(command, arguments, monkeypatch, capsys)
        assert said.startswith(f"anonymizer: {config}: "), content


@pytest.mark.parametrize("command", PLACED, ids=str)
def test_a_network_that_cannot_be_used_is_refused_in_one_line(
    command: Command,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "bad.graphml").write_bytes(b"<graph")
    (tmp_path / "bad.osm.pbf").write_bytes(bytes(99))
    trace = tmp_path / "trace.csv"
    trace.write_text("device_id,ts,node\na,0,1\n")
    for network in ("nowhere", "grid:0x9", "city:frog", "bad.graphml", "bad.osm.pbf"):
        named = str(tmp_path / network) if "bad" in network else network
        arguments = [*command.needed(trace), "--network", named]
        complaint(command, arguments, monkeypatch, capsys)
