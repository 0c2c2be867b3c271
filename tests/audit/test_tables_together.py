"""Two tables about the same people: what they tell together, and what each tells alone."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from anonymizer.audit.attacks.tables_together import told_by_days
from anonymizer.audit.evidence import evidence_of
from anonymizer.audit.findings import Finding
from anonymizer.audit.table_case import Day
from anonymizer.cli.main import app
from anonymizer.errors import SettingsError
from anonymizer.files.coded_table import Declared

DECLARED = Declared(qis=["age"], sensitive=["illness"], id="name")
Row = tuple[str, str, int, str]
"""Name, illness, class, label of the class."""


def day(folder: Path, name: str, *rows: Row) -> Day:
    """Write a table whose rows are published in the opposite order."""
    paths = Day(*(folder / f"{name}-{part}.csv" for part in ("people", "out", "map")))
    names, illness, number, label = (list(column) for column in zip(*rows, strict=True))
    pl.DataFrame({"name": names, "age": label, "illness": illness}).write_csv(paths.original)
    published = {"class_id": number, "age": label, "illness": illness}
    pl.DataFrame(published).reverse().write_csv(paths.release)
    last = len(rows) - 1
    became = {"in_row": range(len(rows)), "out_row": [last - i for i in range(len(rows))]}
    pl.DataFrame(became).write_csv(paths.auditor_map)
    return paths


def found(earlier: Day, later: Day) -> dict[str, Finding]:
    return {each.attack: each for each in told_by_days(earlier, later, DECLARED, seed=0)}


def test_the_one_value_that_both_classes_have_is_read(tmp_path: Path) -> None:
    earlier = day(
        tmp_path, "one", ("ann", "flu", 1, "20"), ("bob", "cold", 1, "20"), ("cy", "gout", 1, "20")
    )
    later = day(
        tmp_path, "two", ("ann", "flu", 4, "3"), ("dan", "ache", 4, "3"), ("bob", "cold", 5, "4"),
        ("cy", "gout", 5, "4"),
    )  # fmt: skip
    figures = found(earlier, later)["tables together"].figures
    # Ann's classes share the flu alone; those of Bob and Cy share a cold and gout.
    assert figures["n_common"] == 3
    assert figures["share_read"] == pytest.approx(1 / 3)
    assert figures["share_alone"] == 0


def test_a_value_is_the_same_however_each_file_writes_it(tmp_path: Path) -> None:
    rows: list[Row] = [("ann", "HIV", 1, "2"), ("bob", "cold", 1, "2"), ("cy", "HIV", 2, "3")]
    other: list[Row] = [(name.title(), ill.lower(), c, age) for name, ill, c, age in rows]
    figures = found(day(tmp_path, "one", *rows), day(tmp_path, "two", *other))
    same = found(day(tmp_path, "one", *rows), day(tmp_path, "three", *rows))
    assert figures["tables together"] == same["tables together"]
    assert figures["tables together"].figures["n_common"] == 3


def test_a_person_is_the_same_however_each_file_writes_the_identifier(tmp_path: Path) -> None:
    rows: list[Row] = [("B-AB 100", "HIV", 1, "2"), ("B-AB 101", "cold", 1, "2")]
    other: list[Row] = [(name.replace("-", " "), ill, c, age) for name, ill, c, age in rows]
    other = [(name.replace(" 101", "101"), ill, c, age) for name, ill, c, age in other]
    figures = found(day(tmp_path, "one", *rows), day(tmp_path, "two", *other))
    assert figures["tables together"].figures["n_common"] == 2
    exact = Declared(qis=["age"], sensitive=["illness"], id="name", exact=["name"])
    one, two = (day(tmp_path, name, *each) for name, each in (("1", rows), ("2", other)))
    apart = {each.attack: each for each in told_by_days(one, two, exact, seed=0)}
    assert apart["tables together"].figures["n_common"] == 0


def test_the_same_release_again_tells_nothing_new(tmp_path: Path) -> None:
    rows: list[Row] = [("ann", "flu", 1, "2"), ("bob", "cold", 1, "2"), ("cy", "flu", 2, "3")]
    figures = found(day(tmp_path, "one", *rows), day(tmp_path, "two", *rows))
    together = figures["tables together"].figures
    assert together["share_read"] == together["share_alone"] == pytest.approx(1 / 3)
    assert figures["newcomers"].figures["n_common"] == 0


def test_who_has_changed_or_is_twice_in_a_table_is_no_victim(tmp_path: Path) -> None:
    earlier = day(tmp_path, "one", ("ann", "flu", 1, "2"), ("bob", "cold", 1, "2"))
    later = day(
        tmp_path, "two", ("ann", "gout", 1, "2"), ("bob", "flu", 1, "2"), ("bob", "cold", 1, "2")
    )
    assert found(earlier, later)["tables together"].figures == {
        "share_read": None, "share_alone": None, "share_control": None, "n_common": 0,
    }  # fmt: skip


def test_what_a_class_has_gained_is_what_the_newcomer_brought(tmp_path: Path) -> None:
    rows: list[Row] = [("ann", "flu", 1, "2"), ("bob", "cold", 1, "2")]
    earlier = day(tmp_path, "one", *rows)
    later = day(tmp_path, "two", *rows, ("eve", "gout", 7, "2"))
    figures = found(earlier, later)["newcomers"].figures
    assert (figures["share_read"], figures["share_alone"], figures["n_common"]) == (1, 0, 1)
    more = day(tmp_path, "more", *rows, ("eve", "flu", 7, "2"))  # one flu more than before
    assert found(earlier, more)["newcomers"].figures["share_read"] == 1
    two = day(tmp_path, "three", *rows, ("eve", "gout", 7, "2"), ("fay", "ache", 7, "2"))
    assert found(earlier, two)["newcomers"].figures["share_read"] == 0


def test_people_need_a_name(tmp_path: Path) -> None:
    one = day(tmp_path, "one", ("ann", "flu", 1, "2"))
    declared = Declared(qis=["age"], sensitive=["illness"])
    with pytest.raises(SettingsError, match="needs --id"):
        list(told_by_days(one, one, declared, seed=0))


def test_real_releases_of_two_days_must_not_both_be_public_and_one_alone_may(
    tmp_path: Path,
) -> None:
    rng = np.random.default_rng(3)
    n = 600
    people = {"name": [f"p{i}" for i in range(n)], "zip": rng.integers(0, 40, n)}
    illness = rng.integers(0, 12, n)
    command, audits = CliRunner(), []
    for name, age in (("one", rng.integers(20, 60, n)), ("two", rng.integers(20, 60, n))):
        path = tmp_path / f"{name}.csv"
        pl.DataFrame(people | {"age": age, "illness": [f"i{x}" for x in illness]}).write_csv(path)
        columns = ("--qi", "age,zip", "--sa", "illness", "--id", "name", "-k", "5", "-l", "3")
        made = (
            "--out",
            tmp_path / f"{name}-out.csv",
            "--auditor-map",
            tmp_path / f"{name}-map.csv",
        )
        done = command.invoke(
            app, [*map(str, ("anonymize", path, "--model", "kld", *columns, *made))]
        )
        assert done.exit_code == 0, done.output
        audits.append((path, made[1], made[3]))
    (table, out, auditor_map), other = audits
    words = ("audit", "table", table, out, "--auditor-map", auditor_map, *columns)
    for more, n_apart in (((), 0), (("--with", *other), 1)):
        report = tmp_path / "audit.json"
        done = command.invoke(app, [*map(str, (*words, *more, "--json", report))])
        assert done.exit_code == 0, done.output
        told = evidence_of([report], made="now")
        assert told.holds
        assert len(told.apart) == n_apart
    (together,) = [each for each in told.results if each.attack == "tables together"]
    assert (together.low or 0) > (together.control or 0) > 0
