"""A published table against its original: what holds, and each way of breaking it."""

import os
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import anonymizer
from anonymizer.algorithms.records.attributes import Interval
from anonymizer.app.anonymize.plan import ReleasePlan
from anonymizer.app.anonymize.release_files import ReleasePaths, write_release
from anonymizer.app.anonymize.table_anonymization import anonymize
from anonymizer.app.table_options import CostName
from anonymizer.audit.findings import TableAuditReport
from anonymizer.audit.table_audit import audit_table
from anonymizer.domain.promises import Promise
from anonymizer.errors import InputError, SettingsError
from anonymizer.files.coded_table import Declared
from anonymizer.files.hierarchies import read_orders
from anonymizer.files.tables import TextTable, read_table
from tests.audit.released import ASKED, DECLARED, Release, Rows, finding, some_people


@pytest.fixture
def release(tmp_path: Path) -> Release:
    return Release(tmp_path)


def failures(report: TableAuditReport) -> list[tuple[str, str | None]]:
    assert report.holds is not bool(report.failures)
    return [(finding.attack, finding.attribute) for finding in report.failures]


def required_of(report: TableAuditReport) -> set[str]:
    """Return the names of what was required, without the column that is repeated."""
    required = {finding.attack for finding in report.findings if finding.required}
    return {re.sub(r"^(repeated columns) .*", r"\1", name) for name in required}


@pytest.mark.parametrize("cost", ["range", "set", "taxonomy"])
def test_what_was_published_under_a_promise_is_found_to_keep_it(
    tmp_path: Path, cost: CostName
) -> None:
    report = Release(tmp_path, cost=cost).audit()
    assert failures(report) == []
    assert (report.n_rows, report.n_published) == (90, 88)
    assert report.suppressed_share == pytest.approx(2 / 90)
    assert required_of(report) == {
        *("identifiers", "rows of nobody", "class numbers", "columns", "labels", "truth"),
        *("heavy persons", "k", "d", "share", "spread", "l", "entropy l", "t"),
        *("linkability (values)", "linkability (labels)", "homogeneity", "direct identifiers"),
        "repeated columns",
    }
    linked = [f for f in report.findings if f.attack.startswith("linkability")]
    assert any(f.attribute and f.attribute.endswith(" -> illness") for f in linked)
    assert all(f.required for f in linked)


def test_what_is_not_asked_for_is_reported_and_fails_nothing(release: Release) -> None:
    report = release.audit(Promise(k=1, d=0, l=0))
    assert failures(report) == []
    sound = {"identifiers", "rows of nobody", "class numbers", "columns", "labels", "truth"}
    sound |= {"heavy persons", "direct identifiers", "repeated columns"}
    assert required_of(report) == sound
    assert finding(report, "k").figures["persons_min"] == 3


@pytest.mark.parametrize(
    ("promise", "broken"),
    [
        (Promise(k=4), {"k"}),
        (Promise(k=3, d=4), {"d"}),
        (Promise(k=3, d=0, l=4), {"l"}),
        (Promise(k=3, max_share=0.2), {"share"}),
        (Promise(k=3, max_source_share=0.1), {"source share"}),
        (Promise(k=3, min_spread={"age": 8.0}), {"spread"}),
        (Promise(k=3, entropy_l=2.9), {"entropy l"}),
        (Promise(k=3, t=0.01), {"t"}),
    ],
)
def test_more_than_was_kept_is_found_broken(
    release: Release, promise: Promise, broken: set[str]
) -> None:
    report = release.audit(promise)
    assert {attack for attack, _ in failures(report)} == broken
    for fails in report.failures:
        assert fails.figures["n_classes_broken"] != 0


def test_k_alone_leaks_and_two_values_of_each_attribute_do_not(tmp_path: Path) -> None:
    report = Release(tmp_path, promise=Promise(k=3, d=1, l=1)).audit(Promise(k=3, d=2, l=2))
    attacks = {attack for attack, _ in failures(report)}
    assert {"linkability (labels)", "homogeneity", "d", "l"} <= attacks
    found = finding(report, "linkability (labels)", "age + job -> city")
    assert isinstance(found.figures["n_people"], int)
    assert found.figures["n_people"] > 0


@pytest.mark.parametrize("both", [True, False])
def test_two_sources_together_are_an_adversary_too(*, both: bool) -> None:
    rows = {"home": ["a", "a", "b", "b"] * 2, "work": ["c", "d", "c", "d"] * 2}
    ill = ["flu", "gout", "gout", "flu"] if both else ["flu", "flu", "gout", "gout"]
    frame = pl.DataFrame(rows | {"ill": ill * 2})
    classes = pl.DataFrame({"class_id": ["0", "1", "2", "3"] * 2})
    out = classes.hstack(frame).with_row_index("in_row").sort("class_id", "in_row")
    numbers = pl.DataFrame({"in_row": out["in_row"], "out_row": range(8)}).cast(pl.String)
    report = audit_table(
        TextTable(Path("t.csv"), frame),
        TextTable(Path("o.csv"), out.drop("in_row")),
        Declared(qis=["home", "work"], sensitive=["ill"], sources=[["home"], ["work"]]),
        Promise(k=2, d=0, l=0),
        auditor_map=TextTable(Path("m.csv"), numbers.sort("in_row")),
        bands={},
    )
    assert report.holds
    found = finding(report, "linkability (values)", "home + work -> ill").figures
    assert (found["n_people"], found["n_people_of_one"]) == (8, 0 if both else 8)


def test_a_label_that_does_not_cover_a_member_is_found(release: Release) -> None:
    def narrow(rows: Rows) -> None:
        for row in rows:
            if row["class_id"] == "0":
                row["age"] = "[28-28]"

    release.spoil(release.out, narrow)
    report = release.audit()
    assert ("labels", "age") in failures(report)
    assert finding(report, "labels", "age").figures["n_classes_uneven"] == 0


def test_a_row_that_stands_out_of_its_class_is_found(release: Release) -> None:
    release.spoil(release.out, lambda rows: rows[0].update(city="{North\\|Side|South\\}|West|?}"))
    with pytest.raises(InputError, match="column city, row 1"):
        release.audit()  # city has no missing value, so that there is no such label
    release.spoil(release.out, lambda rows: rows[0].update(city="{North\\|Side|South\\}|West}"))
    release.spoil(release.out, lambda rows: rows[1].update(city="{North\\|Side}"))
    assert ("labels", "city") in failures(release.audit())


def test_a_sensitive_value_that_is_not_the_originals_is_found(release: Release) -> None:
    def swap(rows: Rows) -> None:
        rows[0]["illness"] = "flu" if rows[0]["illness"] == "cold" else "cold"

    release.spoil(release.out, swap)
    assert failures(release.audit()) == [("truth", "illness")]


def test_classes_that_were_torn_apart_fall_below_k(release: Release) -> None:
    release.spoil(release.out, lambda rows: rows[0].update(class_id="new"))
    assert ("k", None) in failures(release.audit())


def test_a_published_identifier_is_found(release: Release) -> None:
    release.spoil(release.out, lambda rows: [row.update(name="x") for row in rows])
    assert failures(release.audit()) == [("identifiers", None)]


def test_a_published_row_of_nobody_is_found_and_counts_for_nobody(release: Release) -> None:
    def publish(rows: Rows) -> None:
        rows.append(rows[0] | {"class_id": "nobody"})

    release.spoil(release.out, publish)
    release.spoil(release.map, lambda rows: rows[-1].update(out_row="88"))
    report = release.audit()
    assert failures(report) == [("rows of nobody", None), ("class numbers", None)]
    assert finding(report, "rows of nobody").figures["n_rows"] == 1


LAST = "999"
MUTATIONS: dict[str, Callable[[Rows], object]] = {
    "an exact identifier under another name": lambda rows: [
        row.update(ref=f"person-{i}") for i, row in enumerate(rows)
    ],
    "an exact age under another name": lambda rows: [row.update(years="31") for row in rows],
    "an identifier as the class number": lambda rows: [
        row.update(class_id=f"9{row['class_id']}") for row in rows
    ],
    "classes in another order": lambda rows: rows.reverse(),
    "two classes under one number": lambda rows: [
        row.update(class_id="0") for row in rows if row["class_id"] == "1"
    ],
    "a row in another class": lambda rows: rows[0].update(class_id=rows[-1]["class_id"]),
    "a class of its own": lambda rows: rows[-1].update(class_id=LAST),
    "a single age": lambda rows: _in_class(rows, age="[21-21]"),
    "an upper end one below": lambda rows: _in_class(rows, age=_moved(rows, hi=-1)),
    "a lower end one above": lambda rows: _in_class(rows, age=_moved(rows, lo=1)),
    "ends that were swapped": lambda rows: _in_class(rows, age="[28-20]"),
    "a missing value left out": lambda rows: [
        row.update(age=row["age"].removeprefix("{").removesuffix("|?}")) for row in rows
    ],
    "one label of a class widened": lambda rows: rows[0].update(age="{[20-28]|?}"),
    "the labels of another class": lambda rows: _in_class(rows, job=rows[-1]["job"], age="[20-20]"),
    "a city too few": lambda rows: [row.update(city="{West}") for row in rows],
    "an exact job": lambda rows: [row.update(job="{a}") for row in rows],
    "another illness": lambda rows: rows[0].update(
        illness="flu" if rows[0]["illness"] == "cold" else "cold"
    ),
    "two rows exchanged": lambda rows: _exchange(rows),  # noqa: PLW0108  defined below
    "a row less": lambda rows: rows.pop(),
    "a row twice": lambda rows: rows.append(dict(rows[-1])),
    "an identifier within a label": lambda rows: _in_class(rows, job="{a|b|c|d|?|person-3}"),
    "no label": lambda rows: rows[0].update(age=""),
}


def _in_class(rows: Rows, **cells: str) -> None:
    for row in rows:
        if row["class_id"] == "0":
            row.update(cells)


def _moved(rows: Rows, *, lo: int = 0, hi: int = 0) -> str:
    found = re.search(r"\[(\d+)-(\d+)\]", rows[0]["age"])
    assert found is not None
    moved = f"[{int(found[1]) + lo}-{int(found[2]) + hi}]"
    return rows[0]["age"].replace(found[0], moved)


def _exchange(rows: Rows) -> None:
    """Exchange the first row with one of another illness in another class."""
    other = next(
        row
        for row in rows
        if row["class_id"] != rows[0]["class_id"] and row["illness"] != rows[0]["illness"]
    )
    first = dict(rows[0])
    rows[0].update(other | {"class_id": first["class_id"]})
    other.update(first | {"class_id": other["class_id"]})


@pytest.mark.parametrize("change", MUTATIONS.values(), ids=MUTATIONS)
def test_every_mutation_of_a_release_is_caught(
    release: Release, change: Callable[[Rows], object]
) -> None:
    before = release.out.read_text()
    release.spoil(release.out, change)
    assert release.out.read_text() != before
    try:
        report = release.audit()
    except InputError:
        return  # it cannot be a release of this table
    assert not report.holds


def test_a_kept_column_is_declared_and_as_in_the_original(tmp_path: Path) -> None:
    rows = TextTable(tmp_path / "t.csv", some_people().with_columns(pl.lit("north").alias("ward")))
    declared = replace(DECLARED, keep=["ward"])
    made = anonymize(rows, declared, ReleasePlan(model="kld", method="hilbert", promise=ASKED))
    out, row_map = made.publication.frame, made.publication.row_map()

    def audit(frame: pl.DataFrame, declared: Declared) -> list[tuple[str, str | None]]:
        shown, who = (
            TextTable(tmp_path / "out.csv", frame),
            TextTable(tmp_path / "map.csv", row_map),
        )
        return failures(audit_table(rows, shown, declared, ASKED, auditor_map=who, bands={}))

    assert audit(out, declared) == []
    assert audit(out, DECLARED) == [("columns", None)]
    spoilt = out.with_columns(pl.lit("south").alias("ward"))
    assert audit(spoilt, declared) == [("truth", "ward")]


@pytest.mark.parametrize("spoilt", [None, "count", "mean_pay", "a word"])
def test_the_statistics_of_a_class_are_computed_again(tmp_path: Path, spoilt: str | None) -> None:
    rng = np.random.default_rng(3)
    frame = pl.DataFrame({"age": rng.integers(20, 60, 60), "pay": rng.integers(1, 900, 60)})
    rows = TextTable(tmp_path / "t.csv", frame)
    declared = Declared(qis=["age"])
    plan = ReleasePlan(model="kaca", method="fast", promise=Promise(k=4, d=1), measures=["pay"])
    made = anonymize(rows, declared, plan)
    shown = made.publication.frame
    if spoilt == "a word":  # which no number contradicts, and is none that was left out
        shown = shown.with_columns(pl.lit("ann").alias("mean_pay"))
    elif spoilt is not None:
        shown = shown.with_columns(pl.col(spoilt) + 1)
    report = audit_table(
        rows,
        TextTable(tmp_path / "out.csv", shown),
        declared,
        Promise(k=4, d=0),
        auditor_map=TextTable(tmp_path / "map.csv", made.publication.row_map()),
        bands={},
        measures=["pay"],
    )
    assert failures(report) == ([] if spoilt is None else [("columns", None)])


def test_without_an_identifier_rows_are_counted(release: Release) -> None:
    rows_only = Declared(
        qis=DECLARED.qis,
        sensitive=DECLARED.sensitive,
        sources=DECLARED.sources,
        hierarchies=DECLARED.hierarchies,
    )
    report = release.audit(Promise(k=3), rows_only)
    assert report.n_persons == 90
    assert failures(report) == []


def test_a_spread_of_what_is_no_number_is_refused(release: Release) -> None:
    with pytest.raises(SettingsError, match="min_spread: city"):
        release.audit(Promise(k=3, min_spread={"city": 1.0}))


def test_a_release_without_rows_is_refused(release: Release) -> None:
    release.out.write_text("class_id,age,job,city,illness\n")
    with pytest.raises(InputError, match="has no rows"):
        release.audit()


ADULT = Declared(
    qis=["age", "workclass", "marital-status", "occupation", "relationship", "native-country"],
    sensitive=["race"],
    sources=[
        ["age", "workclass", "marital-status"],
        ["occupation", "relationship", "native-country"],
    ],
    ranges={"age": Interval(17, 90)},
    markers_are_values=True,
)


@pytest.mark.data
@pytest.mark.parametrize(
    ("d", "cells_and_people"),
    [(1, [(22, 20), (30140, 22560), (16, 16), (16520, 13240)]), (2, [(0, 0)] * 4)],
)
def test_on_adult_k_alone_leaks_in_both_directions_and_two_values_nothing(
    tmp_path: Path, d: int, cells_and_people: list[tuple[int, int]]
) -> None:
    folder = Path(os.environ["ANONYMIZER_DATA"]) / "adult"
    declared = replace(ADULT, orders=read_orders(folder / "adult_order.json"))
    table = read_table(folder / "adult_uci_32561.csv.gz", declared.columns)
    plan = ReleasePlan(model="kd", method="hilbert", promise=Promise(k=20, d=d))
    out, row_map = tmp_path / "out.csv", tmp_path / "map.csv"
    places = ReleasePaths(table=table.path, out=out, auditor_map=row_map)
    write_release(anonymize(table, declared, plan), places)
    report = audit_table(
        table, out, declared, Promise(k=20, d=d, l=0), auditor_map=row_map, bands={}
    )
    assert report.holds
    assert report.n_classes == {1: 1628, 2: 389}[d]
    between = [f for f in report.findings if (f.attribute or "").endswith(("status", "country"))]
    leaks = [f.figures for f in between if f.attack.startswith("linkability")]
    assert [(leak["n_cells"], leak["n_people"]) for leak in leaks] == cells_and_people


def test_who_owns_rows_is_reported_beside_who_owns_none(tmp_path: Path) -> None:
    made = Release(tmp_path)
    report = audit_table(
        made.table, made.out, DECLARED, ASKED, auditor_map=made.map, bands={}, n_own=2, seed=1
    )
    assert report.holds
    found: dict[str, list[Any]] = {
        attack: [f.figures for f in report.findings if f.attack == f"own rows: {attack}"]
        for attack in ("none", "2 drawn", "2 in its class")
    }
    none, drawn, inside = found.values()
    assert none[0]["persons_min"] >= ASKED.k
    assert inside[0]["persons_min"] == none[0]["persons_min"] - 2
    assert none[1] == {"n_people": 0}
    assert all(len(each) == 1 + len(DECLARED.sensitive) for each in found.values())
    assert drawn[1]["n_people"] <= inside[1]["n_people"]
    assert not any(f.required for f in report.findings if f.attack.startswith("own rows"))


def test_a_population_in_other_writings_is_as_large() -> None:
    people = pl.DataFrame({"job": ["Nurse", "Nurse", "Clerk", "Clerk"] * 3})
    release = pl.DataFrame({"class_id": [0] * 12, "job": ["{Clerk|Nurse}"] * 12})
    rows = pl.DataFrame({"in_row": range(12), "out_row": range(12)})
    register = pl.DataFrame({"job": ["NURSE", "nurse ", "clerk", "Cl\u0435rk"] * 9})
    found = [
        anonymizer.audit_table(release, people, auditor_map=rows, qi="job", k=2, population=each)
        for each in (register, people.sample(36, with_replacement=True, seed=1))
    ]
    persons = [
        [each.figures.get("persons_min") for each in report.findings if each.attack == "k-map"]
        for report in found
    ]
    assert persons == [[36], [36]]
