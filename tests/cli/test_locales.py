"""Files whose names the locale cannot say."""

import os
from pathlib import Path

import pytest

from tests.cli.support import process
from tests.lanes import some

_TABLE = ("--qi", "age,zip", "--sa", "illness", "-k", "4")


@pytest.mark.parametrize("n_commands", some([3, 5], [3]))
def test_commands_read_files_with_any_name_in_any_locale(n_commands: int, tmp_path: Path) -> None:
    folder = tmp_path / "\u00fc b"
    folder.mkdir()
    trace, table = folder / "tr \u00e4c.csv", folder / "p\u00e4.csv"
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
        done = process(*named, environment={"LC_ALL": "C", "PYTHONUTF8": "0"})
        assert done.returncode in {0, 1}, done.stderr
        assert "Traceback" not in done.stderr, done.stderr
