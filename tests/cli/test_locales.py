"""Files whose names the locale cannot say, or that look like a pattern."""

import os
import re
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import polars as pl
import pytest

import anonymizer
from anonymizer import client
from anonymizer.cli.main import main
from tests.cli.support import in_process, process
from tests.lanes import some

_TABLE = ("--qi", "age,zip", "--sa", "illness", "-k", "4")


def in_the_c_locale(*words: str) -> CompletedProcess[str]:
    return process(*words, environment={"LC_ALL": "C", "PYTHONUTF8": "0"})


def here(*words: str) -> CompletedProcess[str]:
    return in_process(main, "anonymizer", *words)


@pytest.mark.parametrize("inner", ["day [1] b*?", "a[!b]{c}"])
def test_commands_read_files_whose_names_look_like_a_pattern(tmp_path: Path, inner: str) -> None:
    run_commands(tmp_path / inner, here, 5)


@pytest.mark.parametrize("n_commands", some([3, 5], [3]))
def test_commands_read_files_with_any_name_in_any_locale(n_commands: int, tmp_path: Path) -> None:
    run_commands(tmp_path / "\u00fc b", in_the_c_locale, n_commands)


def run_commands(folder: Path, run: Callable[..., CompletedProcess[str]], n_commands: int) -> None:
    folder.mkdir()
    trace, table = folder / f"{folder.name}.csv", folder / "p\u00e4[1].csv"
    places = [f"d{i},0,{i % 9}" for i in range(40)]
    trace.write_text("\n".join(["device_id,ts,node", *places]) + "\n")
    rows = [f"{20 + i % 4},{1000 + i % 2},{'flu' if i % 3 else 'cold'}" for i in range(80)]
    table.write_text("\n".join(["age,zip,illness", *rows]) + "\n")
    out, key = folder / "\u00f6.csv", folder / "\u00f6m.csv"
    city = ("--network", "grid:5x5", "--region", "snapshot")
    commands = (
        ("cloak", trace, *city, "--out", folder / "\u00f6"),
        ("anonymize", table, *_TABLE, "--method", "mondrian", "--out", out, "--auditor-map", key),
        ("audit", "table", table, out, *_TABLE, "--auditor-map", key, "--json", folder / "\u00e4"),
        ("report", folder / "\u00e4", "--file", out, "--out", folder / "\u00e4.html"),
        ("profile", table, "--sa", "illness"),
    )
    for words in commands[:n_commands]:
        named = [os.fsdecode(each) for each in words]
        done = run(*named)
        assert done.returncode in {0, 1}, done.stderr
        assert "Traceback" not in done.stderr, done.stderr


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_roads_tables_and_what_clients_read_may_have_names_like_patterns(
    tmp_path: Path, ending: str
) -> None:
    folder = tmp_path / "map [1]*?"
    folder.mkdir()
    nodes = pl.DataFrame({"node_id": ["a", "b", "c"], "lat": [60.1, 60.1, 60.2], "lon": [24.0] * 3})
    edges = pl.DataFrame({"u": ["a", "b", "c"], "v": ["b", "c", "a"], "length_m": [9.0, 9e3, 9e3]})
    for name, frame in (("nodes", nodes), ("edges", edges)):
        with (folder / f"n[1]_{name}.{ending}").open("wb") as file:
            (frame.write_csv if ending == "csv" else frame.write_parquet)(file)
    out = folder / "roads [1].parquet"
    done = here("network", "export", str(folder / "n[1]"), "--out", str(out))
    assert done.returncode == 0, done.stderr
    assert client.read_network(out).n_nodes == 3


def test_only_sources_of_files_reach_polars() -> None:
    # It takes brackets, `*` and `?` in a path for a pattern, and no name that is not UTF-8.
    called = re.compile(r"pl\.(?:read|scan)_(?:csv|ipc|parquet|parquet_schema)\b[(,]\s*(\w+)")
    root = Path(anonymizer.__file__).parent
    places = [
        (each.name, found[1])
        for folder in (root, root.parent / "simulator")
        for each in folder.rglob("*.py")
        for found in called.finditer(each.read_text())
    ]
    assert len(places) > 8
    assert {name for _, name in places} <= {"source", "parquet_source", "polars_source", "cast"}
