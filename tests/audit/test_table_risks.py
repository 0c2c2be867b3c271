"""Risks of a published table, against counting people whom the published labels fit."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from anonymizer.algorithms.records.label_text import LabelText
from anonymizer.audit.findings import Figure, TableAuditReport
from anonymizer.audit.table_audit import audit_table
from anonymizer.domain.promises import Promise
from anonymizer.errors import SettingsError
from anonymizer.files.tables import TextTable, read_table
from tests.audit.released import DECLARED, JOBS, Release, finding

MARKERS = {"", "?", None}


@pytest.fixture
def release(tmp_path: Path) -> Release:
    return Release(tmp_path)


def _population(release: Release, n: int = 300) -> TextTable:
    """The people of the table, each once, and others."""
    rng = np.random.default_rng(9)
    named = release.table.frame.unique("name", keep="first", maintain_order=True).drop_nulls("name")
    others = pl.DataFrame(
        {
            "age": [str(x) for x in rng.integers(15, 35, n)],
            "job": [["a", "b", "c", "d", "?"][x] for x in rng.integers(0, 5, n)],
            "city": [["North|Side", "South}", "West", "East"][x] for x in rng.integers(0, 4, n)],
        }
    )
    frame = pl.concat([named.select("age", "job", "city"), others])
    return TextTable(Path("population.csv"), frame)


def _audit(release: Release, population: TextTable | int | None) -> TableAuditReport:
    return audit_table(
        *(release.table, release.out, DECLARED, Promise(k=1, d=0, l=0)),
        auditor_map=release.map,
        bands={},
        population=population,
        at_risk=0.1,
    )


READERS = {
    "age": LabelText(numeric=True),
    "job": LabelText(numeric=False, branches=JOBS),
    "city": LabelText(numeric=False),
}


def _fitting(label: dict[str, str], people: pl.DataFrame) -> int:
    """Count the people whom the labels of a row fit, cell by cell."""
    return sum(
        all(
            reader.covers(label[name] or "", None if row[name] in MARKERS else row[name])
            for name, reader in READERS.items()
        )
        for row in people.iter_rows(named=True)
    )


def test_the_risks_are_those_of_counting_who_fits_each_published_row(release: Release) -> None:
    population = _population(release)
    report = _audit(release, population)
    out = read_table(release.out).frame
    persons = release.table.frame.drop_nulls("name").with_row_index("in_row")
    became = read_table(release.map).frame.cast(pl.Int64, strict=False)
    persons = persons.with_columns(pl.col("in_row").cast(pl.Int64)).join(became, on="in_row")
    labels = out.with_row_index("out_row").with_columns(pl.col("out_row").cast(pl.Int64))
    classes = (
        persons.join(labels, on="out_row", suffix="_shown")
        .group_by("class_id")
        .agg(pl.col("name").n_unique(), *(pl.col(f"{c}_shown").first() for c in READERS))
    )
    table = release.table.frame.unique("name", keep="first", maintain_order=True).drop_nulls("name")
    size, fits, inside = [], [], []
    for row in classes.iter_rows(named=True):
        label = {name: row[f"{name}_shown"] for name in READERS}
        size.append(row["name"])
        inside.append(_fitting(label, table))
        fits.append(max(_fitting(label, population.frame), inside[-1]))
    people = [i for i, n in enumerate(size) for _ in range(n)]

    prosecutor = finding(report, "prosecutor").figures
    assert _of(prosecutor, "highest") == pytest.approx(1 / min(size))
    assert _of(prosecutor, "average") == pytest.approx(np.mean([1 / size[i] for i in people]))
    above = np.mean([1 / size[i] > 0.1 for i in people])
    assert _of(prosecutor, "share_above") == pytest.approx(above)
    journalist = finding(report, "journalist").figures
    assert _of(journalist, "highest") == pytest.approx(1 / min(fits))
    assert _of(journalist, "average") == pytest.approx(np.mean([1 / fits[i] for i in people]))
    assert finding(report, "k-map").figures["persons_min"] == min(fits)
    present = finding(report, "presence").figures
    shares = [inside[i] / fits[i] for i in range(len(size))]
    assert _of(present, "highest") == pytest.approx(max(shares))
    assert _of(present, "lowest") == pytest.approx(min(shares))
    assert _of(present, "average") == pytest.approx(np.mean([shares[i] for i in people]))


def _of(figures: dict[str, Figure], name: str) -> float:
    value = figures[name]
    assert value is not None
    return value


def test_the_risk_of_the_original_stands_beside_that_of_the_release(release: Release) -> None:
    figures = finding(_audit(release, None), "prosecutor").figures
    assert _of(figures, "average_original") > _of(figures, "average")
    assert _of(figures, "guess") == 1 / release.table.frame["name"].drop_nulls().n_unique()


def test_where_all_of_the_population_is_in_the_table_everybody_is_present(
    release: Release,
) -> None:
    report = _audit(release, _population(release, 0))
    assert finding(report, "presence").figures["lowest"] == 1
    assert finding(report, "k-map").figures["n_classes_short"] == 0


def test_a_population_of_which_only_the_number_is_known_gives_an_estimate(
    release: Release,
) -> None:
    near = finding(_audit(release, 100), "journalist (estimated)").figures
    far = finding(_audit(release, 100_000), "journalist (estimated)").figures
    assert _of(far, "average") < _of(near, "average")
    assert _of(near, "average") < _of(
        finding(_audit(release, None), "prosecutor").figures, "average"
    )


def test_a_population_smaller_than_the_table_is_refused(release: Release) -> None:
    with pytest.raises(SettingsError, match="fewer people than the table"):
        _audit(release, 3)


def test_a_register_that_lacks_people_of_the_table_is_counted_and_hides_nobody_more(
    release: Release,
) -> None:
    elsewhere = pl.DataFrame({"age": ["99"] * 300, "job": ["a"] * 300, "city": ["East"] * 300})
    report = _audit(release, TextTable(Path("elsewhere.csv"), elsewhere))
    k_map = finding(report, "k-map").figures
    assert k_map["n_classes_short"] == report.n_classes
    assert finding(report, "presence").figures["lowest"] == 1
