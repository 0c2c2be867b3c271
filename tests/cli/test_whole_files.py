"""Every command that writes a file of results: whole, or not at all."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.support import anonymizer
from tests.cli.test_mistakes import ALL, kind_of
from tests.lanes import some
from tests.preloaded import ended_by_full_file, ran

_MOST_BYTES = 64
_WRITTEN = {
    "--out",
    "--json",
    "--page",
    "--report",
    "--auditor-map",
    "--assessment",
    "--record",
    "--registry",
}
"""Options that name a file or folder to write; `simulator trace` has an argument."""
_TABLE = ("--qi", "age,zip", "--sa", "illness", "-k", "4")
_POSITIONS = ("--network", "grid:8x8", "--auditor-map", "map.jsonl")
COMMANDS: dict[str, tuple[str, ...]] = {
    "simulator trace": ("{}/t.csv", "--network", "grid:8x8", "--devices", "40", "--duration", "30"),
    "simulator trace, parquet": (
        *("{}/t.parquet", "--network", "grid:8x8", "--devices", "40", "--duration", "30"),
    ),
    "simulator tolls": ("--per-day", "40", "--trucks", "20", "--out", "{}/exits.csv"),
    "simulator sensors": (
        *("--network", "grid:8x8", "--registry", "{}/r.csv", "--print-settings"),
    ),
    "anonymizer init": ("--out", "{}/gateway.toml"),
    "anonymizer connect": (
        *("traccar", "--out", "{}/it", "--network", "grid:3x3", "--port", "5055"),
    ),
    "anonymizer network export": ("grid:8x8", "--out", "{}/grid.geojson"),
    "anonymizer cloak": (
        *("trace.csv", "--network", "grid:8x8", "--region", "snapshot"),
        *("--out", "{}/pub.jsonl", "--auditor-map", "{}/map.jsonl"),
    ),
    "anonymizer protect": ("rides.csv", "--out", "{}/public.csv"),
    "anonymizer trips": ("stays.csv", "--out", "{}/trips.csv"),
    "anonymizer traffic": ("trace.csv", "--network", "grid:8x8", "--out", "{}/traffic.csv"),
    "anonymizer anonymize": (
        *("people.csv", *_TABLE, "--out", "{}/pub.csv", "--auditor-map", "{}/map.csv"),
        *("--report", "{}/report.json", "--page", "{}/page.html"),
    ),
    "anonymizer hierarchy": ("people.csv", "age", "--width", "5", "--out", "{}/h.csv"),
    "anonymizer profile": ("people.csv", "--sa", "illness", "--json", "{}/profile.json"),
    "anonymizer tune": (
        *("people.csv", "--qi", "age", "--sa", "illness", "--target", "zip", "-k", "4", "-l", "1"),
        *("--jobs", "1", "--folds", "2", "--model", "cells", "--out", "{}/tuned"),
    ),
    "anonymizer attack": ("trace.csv", "--json", "{}/a.json", "--page", "{}/a.html"),
    "anonymizer audit stream": (
        *("trace.csv", "pub.jsonl", *_POSITIONS, "--mode", "snapshot"),
        *("--json", "{}/a.json", "--page", "{}/p.html"),
    ),
    "anonymizer audit table": (
        *("people.csv", "pub.csv", *_TABLE, "--auditor-map", "map.csv"),
        *("--json", "{}/a.json", "--page", "{}/p.html"),
    ),
    "anonymizer report": (*("audit.json", "--out", "{}/r.html", "--assessment", "{}/dpia.md"),),
}
"""By command, its arguments; `{}` is the folder of what it writes."""
ELSEWHERE = {
    "anonymizer audit counts": "writes as `audit table` does",
    "anonymizer audit windows": "writes as `audit table` does",
    "anonymizer backup": "copies a store aside, and names it when it is whole: tests/store",
    "simulator run": "records what it sends while it sends it",
}
"""Others that write, and why they are not here; experiments are below."""


@pytest.fixture(scope="module", autouse=True)
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Begin each test in a folder with what the commands read."""
    folder = tmp_path_factory.mktemp("inputs")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        rows = [f"{20 + i % 16},{1000 + i % 2},{'flu' if i % 3 else 'cold'}" for i in range(80)]
        Path("people.csv").write_text("\n".join(["age,zip,illness", *rows]) + "\n")
        Path("stays.csv").write_text(
            "device_id,ts,lat,lon\n"
            + "".join(
                f"d{d},{1_800_000_000 + 10 * d + t},{60 + north},{24 + d / 1000}\n"
                for d in range(12)
                for t, north in ((0, 0), (130, 0), (180, 0.005), (230, 0.01), (400, 0.01))
            )
        )
        Path("rides.csv").write_text(
            "device_id,ts,lat,lon\n"
            + "".join(
                f"r{ride},{1_780_000_000 + 86_400 * ride + 60 * i},"
                f"{48.05 + (-1) ** ride * i / 200},{11 + ride * i / 500}\n"
                for ride in range(4)
                for i in range(41)
            )
        )
        words = ("--network", "grid:8x8", "--devices", "40", "--duration", "30")
        for program, *more in (
            ("simulator", "trace", "trace.csv", *words),
            ("anonymizer", *["cloak", "trace.csv", "--network", "grid:8x8", "--region", "snapshot"],
             *["--out", "pub.jsonl", "--auditor-map", "map.jsonl"]),
            ("anonymizer", "anonymize", "people.csv", *_TABLE,
             *["--out", "pub.csv", "--auditor-map", "map.csv"]),
            ("anonymizer", "audit", "table", "people.csv", "pub.csv", *_TABLE,
             *["--auditor-map", "map.csv", "--json", "audit.json"]),
        ):  # fmt: skip
            done = ran(program, *more)
            assert done.returncode == 0, (more, done.stderr)
        yield


def test_every_command_that_writes_a_file_is_tried_here() -> None:
    writers = {
        str(command)
        for command in ALL
        if command.words[0] != "experiment"
        for each in command.parameters
        if kind_of(each) is Path
        and _WRITTEN & set(each.opts)
        and "Auditor's map of" not in str(each.help)
    } | {"simulator trace"}
    assert writers == {name.partition(",")[0] for name in COMMANDS} | set(ELSEWHERE)


@pytest.mark.parametrize(
    "name", some(COMMANDS, ["anonymizer anonymize", "simulator trace, parquet"])
)
def test_a_command_that_is_stopped_or_finds_the_disk_full_leaves_no_part_of_a_file(
    name: str, tmp_path: Path
) -> None:
    program, *words = name.partition(",")[0].split()

    def arguments(folder: Path) -> list[str]:
        return [*words, *(each.replace("{}", str(folder)) for each in COMMANDS[name])]

    def files(folder: Path) -> dict[str, bytes]:
        return {
            str(path.relative_to(folder)): path.read_bytes()
            for path in folder.rglob("*")
            if path.is_file()
        }

    whole, full, stopped = (tmp_path / each for each in ("whole", "full", "stopped"))
    for each in (whole, full, stopped):
        each.mkdir()
    done = ran(program, *arguments(whole))
    assert done.returncode in {0, 1}, done.stderr
    written = files(whole)
    assert written
    assert max(map(len, written.values())) > _MOST_BYTES
    code, said = ended_by_full_file(program, *arguments(full), most_bytes=_MOST_BYTES, told=False)
    assert code == 2, said
    assert "Traceback" not in said
    sentence = " ".join(said.split())
    assert "cannot be written: File too large" in sentence
    # `connect` tries its settings aside before it writes them.
    assert str(full) in sentence or name == "anonymizer connect"
    assert not set(files(full)) - {"tuned/journal.jsonl"}
    code, said = ended_by_full_file(program, *arguments(stopped), most_bytes=_MOST_BYTES, told=True)
    assert code == -signal.SIGTERM, said
    assert not set(files(stopped)) - {"tuned/journal.jsonl"}


def test_an_old_file_stays_as_it_was(tmp_path: Path) -> None:
    old = tmp_path / "pub.jsonl"
    old.write_text("old")
    words = ["--network", "grid:8x8", "--region", "snapshot", "--out", str(old)]
    for told in (False, True):
        ended_by_full_file(
            "anonymizer", "cloak", "trace.csv", *words, most_bytes=_MOST_BYTES, told=told
        )
        assert [path.name for path in tmp_path.iterdir()] == ["pub.jsonl"]
        assert old.read_text() == "old"
    assert anonymizer("cloak", "trace.csv", *words).returncode == 0
    assert old.read_text() != "old"
