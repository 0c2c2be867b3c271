"""`anonymizer hierarchy`: what it writes, `anonymize` reads."""

import csv
from pathlib import Path

import pytest

from tests.cli.support import anonymizer


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "people.csv"
    rows = [f"{20 + i % 17},{i % 3}.5,{'?' if i % 9 == 0 else i},a{i % 2}" for i in range(60)]
    path.write_text("\n".join(['age,"dose, mg",n,job', *rows]) + "\n")
    return path


def test_intervals_of_a_number_are_published_by_their_labels(table: Path, tmp_path: Path) -> None:
    ages, out = tmp_path / "ages.csv", tmp_path / "out.csv"
    done = anonymizer("hierarchy", table, "age", "--width", "5", "--levels", "2", "--out", ages)
    assert done.returncode == 0, done.stderr
    assert ages.read_text().splitlines()[:2] == ["20;[20-24];[20-29];*", "21;[20-24];[20-29];*"]
    done = anonymizer(
        *("anonymize", table, "--qi", "age,job", "-k", "5", "-d", "1", "--method", "hilbert"),
        *("--hierarchy", f"age={ages}", "--cost", "taxonomy", "--out", out),
    )
    assert done.returncode == 0, done.stderr
    with out.open(newline="") as file:
        labels = {row["age"] for row in csv.DictReader(file)}
    known = {label for line in ages.read_text().splitlines() for label in line.split(";")}
    assert labels <= known


def test_declared_domains_and_missing_values_are_heeded(table: Path, tmp_path: Path) -> None:
    out = tmp_path / "h.csv"
    done = anonymizer("hierarchy", table, "n", "--width", "15", "--out", out)
    assert done.returncode == 0, done.stderr
    lines = [line.split(";") for line in out.read_text().splitlines()]
    assert [line[0] for line in lines] == [str(x) for x in range(1, 60)]
    assert [lines[0][1], lines[-1][1]] == ["[1-14]", "[45-59]"]
    done = anonymizer(
        *("hierarchy", table, "dose, mg", "--width", "2", "--domain", "0:4:0.5", "--out", out)
    )
    assert done.returncode == 0, done.stderr
    lines = [line.split(";") for line in out.read_text().splitlines()]
    assert [line[1] for line in lines] == ["[0-1.5]"] * 4 + ["[2-3.5]"] * 4 + ["*"]


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        (["age", "--width", "0"], "width: must be a number above 0"),
        (["age", "--width", "x"], "width: must be a number above 0"),
        (["job", "--width", "5"], "column job: holds no numbers"),
        (["weight", "--width", "5"], "no column weight"),
    ],
)
def test_what_makes_no_hierarchy_is_refused_in_one_line(
    table: Path, tmp_path: Path, options: list[str], fault: str
) -> None:
    done = anonymizer("hierarchy", table, *options, "--out", tmp_path / "h.csv")
    assert done.returncode == 2
    assert fault in done.stderr.strip().splitlines()[-1]
    assert not (tmp_path / "h.csv").exists()


def test_the_table_is_not_overwritten(table: Path) -> None:
    done = anonymizer("hierarchy", table, "age", "--width", "5", "--out", table)
    assert done.returncode == 2
    assert "is named twice" in done.stderr
