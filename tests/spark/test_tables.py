"""Tables on Spark: the promise, the accounting and the loss are those of a table in memory."""

from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from anonymizer import InputError, SettingsError, audit_table
from anonymizer import anonymize as anonymize_in_memory
from anonymizer.spark import SparkRelease
from anonymizer.spark import anonymize as anonymize_on_spark
from anonymizer.spark.memory import check_memory
from tests.spark.session import Frame, Session, local_spark

pytestmark = pytest.mark.timeout(900)  # Spark's own start takes a minute on a loaded machine

N = 3_000
PER_RANGE = 800
SEARCHED_S = 0.2
anonymize = partial(anonymize_on_spark, time_budget_s=SEARCHED_S)


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with local_spark(tmp_path_factory.mktemp("spark")) as session:
        yield session


@pytest.fixture(scope="module")
def people() -> pl.DataFrame:
    rng = np.random.default_rng(7)
    home = rng.gamma(2.0, 60.0, N).astype(int).clip(0, 499)
    age = (20 + home / 20 + rng.normal(0, 10, N)).astype(int).clip(0, 99)
    return pl.DataFrame(
        {
            "who": [f"p{i // 2}" if i < 200 else (f"p{i}" if i % 97 else " ") for i in range(N)],
            "home": home,
            "age": [None if i % 31 == 0 else float(each) for i, each in enumerate(age)],
            "work": rng.choice(["clerk", "nurse", "driver", "?"], N, p=[0.5, 0.2, 0.2, 0.1]),
            "at": [
                f"2024-05-01 {h:02}:{m:02}:07" for h, m in zip(age % 24, home % 60, strict=True)
            ],
            "illness": rng.choice(list("rstuvw"), N),
            "pay": rng.integers(10, 90, N) / 4,
            "note": [f"n{i % 11}" for i in range(N)],
        }
    )


@pytest.fixture(scope="module")
def table(spark: Session, people: pl.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Frame:
    path = tmp_path_factory.mktemp("table") / "people.parquet"
    people.write_parquet(path)
    return spark.read.parquet(str(path)).repartition(3)


def rows_of(release: SparkRelease) -> pl.DataFrame:
    return pl.DataFrame(pl.from_arrow(release.frame.toArrow()))


def class_counts(rows: pl.DataFrame) -> Sequence[int]:
    return rows.group_by("class_id").len()["len"].to_list()


@pytest.mark.parametrize("model", ["kld", "cells"])
def test_a_release_keeps_its_promise_and_accounts_for_every_row(
    table: Frame, people: pl.DataFrame, model: str
) -> None:
    options: dict[str, Any] = {
        "qi": ["home", "age", "work"],
        "sa": "illness",
        "id": "who",
        "k": 5,
        "model": model,
        "max_share": 1.0,
        "max_source_share": 1.0,
    }
    with anonymize(table, keep="note", rows_per_range=PER_RANGE, **options) as release:
        rows, report = rows_of(release), release.report
    whole = anonymize_in_memory(people, time_budget_s=SEARCHED_S, keep="note", **options)
    unnamed = people.filter(pl.col("who") == " ").height
    assert report.n == N
    assert report.suppressed["no_identifier"] == unnamed
    assert report.n_published + sum(report.suppressed.values()) == N
    assert report.n_published == len(rows) == whole.report.n_published
    assert report.k >= 5
    assert min(class_counts(rows)) >= 5
    assert rows["class_id"].unique().sort().to_list() == list(range(report.n_classes))
    assert report.n_ranges >= 3
    # The rows are those of the table, one of each person, whatever happened on the way.
    named = people.filter(pl.col("who") != " ")
    assert len(rows) == named["who"].n_unique()
    shown = rows.group_by("illness", "note").len("shown")
    known = named.group_by("illness", "note").len("known")
    both = shown.join(known, on=["illness", "note"], how="left")
    assert (both["shown"] <= both["known"]).all()
    if model != "cells":  # two attributes have the same variance: either may be cut first
        assert report.gcp["range"] <= 1.05 * whole.report.gcp.range  # ranges are small here


def test_labels_counts_and_means_are_published_and_no_two_classes_have_the_same_labels(
    table: Frame, people: pl.DataFrame
) -> None:
    options: dict[str, Any] = {
        "qi": ["work", "at"],
        "k": 10,
        "model": "kaca",
        "labels": {"work": "prefix", "at": "hours"},
        "measures": "pay",
        "language": "en",
    }
    with anonymize(table, rows_per_range=PER_RANGE, **options) as release:
        rows = rows_of(release)
    assert len(rows) == N
    labels = rows.group_by("work", "at").agg(
        pl.col("class_id").n_unique(), pl.len(), pl.col("count").first(), pl.col("mean_pay").first()
    )
    assert labels["class_id"].max() == 1
    assert (labels["len"] == labels["count"]).all()
    count = labels["count"].to_numpy()
    assert count.min() >= 10
    mean_pay = float((labels["mean_pay"].to_numpy() * count).sum() / N)
    assert mean_pay == pytest.approx(people["pay"].to_numpy().mean(), abs=0.01)


@pytest.mark.parametrize("written", [True, False])
def test_dates_are_ranges_that_hold_every_member(
    spark: Session, tmp_path: Path, *, written: bool
) -> None:
    rng, n = np.random.default_rng(3), 400
    days = rng.integers(0, 9_000, n).tolist()
    born = pl.Series([date(1990, 1, 1) + timedelta(days=day) for day in days])
    people = pl.DataFrame(
        {
            "born": born.dt.to_string("%Y-%m-%d") if written else born,
            "seen": [f"{day % 24:02}:{day % 60:02}" for day in days],
            "row": [f"r{i}" for i in range(n)],
        }
    )
    people.write_parquet(tmp_path / "people.parquet")
    frame = spark.read.parquet(str(tmp_path / "people.parquet"))
    options: dict[str, Any] = {"qi": ["born", "seen"], "k": 5, "d": 2, "keep": "row"}
    with anonymize(frame, rows_per_range=150, **options) as release:
        rows = rows_of(release).join(people, on="row", suffix="_true")
    assert len(rows) == n
    assert min(class_counts(rows)) >= 5
    for name in ("born", "seen"):
        label = rows[name].str.extract_groups(r"^\[(.+)\.\.(.+)\]$").struct.unnest()
        true = rows[f"{name}_true"].cast(pl.String)
        assert not label["1"].has_nulls()
        assert ((label["1"] <= true) & (true <= label["2"])).all()


def test_nothing_in_a_release_tells_the_range_of_a_class(table: Frame) -> None:
    """Every partition of a release has classes of all ranges; in it, labels alone order them.

    The mean rank of m of n random classes has a standard deviation below n / sqrt(12 m).
    """
    from pyspark.sql import functions as sql  # noqa: PLC0415  an extra

    with anonymize(table, qi="home", k=5, d=1, rows_per_range=PER_RANGE) as release:
        rows = release.frame.withColumn("partition", sql.spark_partition_id()).toArrow()
    first = pl.DataFrame(pl.from_arrow(rows)).unique("class_id", keep="first", maintain_order=True)
    low = first["home"].str.extract(r"\[?(\d+)").cast(pl.Int64)
    rank = low.rank("ordinal").to_numpy() / len(low)
    partitions = first["partition"].to_numpy()
    assert len(np.unique(partitions)) == N // PER_RANGE + 1
    for each in np.unique(partitions):
        inside = rank[partitions == each]
        assert abs(inside.mean() - 0.5) < 6 / np.sqrt(12 * len(inside))


def test_a_range_without_a_class_meets_its_neighbours(spark: Session) -> None:
    """In the middle of the order everybody has the same illness."""
    n = 900
    illness = ["r" if 300 <= i < 600 else "rs"[i % 2] for i in range(n)]
    frame = spark.createDataFrame(list(zip(range(n), illness, strict=True)), "home int, ill string")
    options: dict[str, Any] = {"qi": "home", "sa": "ill", "k": 3, "l": 2, "model": "kld", "d": 1}
    with anonymize(frame, rows_per_range=300, method="hilbert", **options) as release:
        assert release.report.suppressed == {}
        assert release.report.n_met >= 250
        assert release.report.l == {"ill": 2}
        rows = rows_of(release)
    assert len(rows) == n
    assert rows.group_by("class_id").agg(pl.col("ill").n_unique())["ill"].min() == 2


def test_t_closeness_is_measured_from_the_whole_table(spark: Session) -> None:
    """Every range has one illness alone, so that no range has a class of its own."""
    n = 400
    frame = spark.createDataFrame([(i, "rs"[i // 200]) for i in range(n)], "home int, ill string")
    with anonymize(frame, qi="home", sa="ill", k=2, d=1, t=0.1, rows_per_range=200) as release:
        assert release.report.n_published == n
        share = rows_of(release).group_by("class_id").agg((pl.col("ill") == "r").mean())
    assert np.abs(share["ill"].to_numpy() - 0.5).max() <= 0.1


def test_a_table_that_cannot_keep_the_promise_is_refused(table: Frame) -> None:
    with pytest.raises(InputError, match="no class that keeps the promise"):
        anonymize(table, qi="home", k=N + 1, d=1, rows_per_range=PER_RANGE)
    kept = table.sparkSession.sparkContext._jsc.getPersistentRDDs()
    assert kept.isEmpty()  # its records are on no disk of Spark
    with pytest.raises(InputError, match="no column nowhere"):
        anonymize(table, qi="nowhere", k=2)
    with pytest.raises(InputError, match="lies outside its domain") as caught:
        anonymize(table, qi="home", k=2, domains={"home": (0, 3)})
    assert "row" not in str(caught.value)
    with pytest.raises(SettingsError, match="rows_per_range: must be at least 1"):
        anonymize(table, qi="home", k=2, rows_per_range=0)
    with pytest.raises(SettingsError, match="method must be one of"):
        anonymize(table, qi="home", k=2, method="fast")
    with pytest.raises(SettingsError, match="measure: not available for model kd on Spark"):
        anonymize(table, qi="home", k=2, measures="home")
    with pytest.raises(SettingsError, match="home cannot be a quasi-identifier, too"):
        anonymize(table, qi="home", k=2, model="kaca", measures="home")


def test_classes_that_spark_made_anew_are_not_published_in_place_of_those_that_were_verified(
    spark: Session, tmp_path: Path
) -> None:
    """It lost them, and makes as many classes again, of other records."""
    n, path = 900, tmp_path / "people.parquet"
    rng = np.random.default_rng(5)
    people = pl.DataFrame({"home": rng.integers(0, 9, n), "row": range(n)})
    people.write_parquet(path)
    frame = spark.read.parquet(str(path))
    options: dict[str, Any] = {"qi": "home", "k": 5, "d": 1, "keep": "row", "method": "hilbert"}
    with anonymize(frame, rows_per_range=300, **options) as release:
        assert len(rows_of(release)) == n
        spark.catalog.clearCache()
        people.sample(fraction=1.0, shuffle=True, seed=3).write_parquet(path)
        # A plan of its own: that of the first look still has what was shuffled for it.
        with pytest.raises(Exception, match="other classes than were verified") as caught:
            release.frame.select("*").toArrow()
    assert "home" not in str(caught.value)


def test_a_person_with_spaces_of_any_kind_around_its_name_is_one_person(spark: Session) -> None:
    rows = [(i, f"p{i % 3}" + "\u00a0\t" * (i // 6)) for i in range(12)]
    frame = spark.createDataFrame(rows, "home int, who string")
    with pytest.raises(InputError, match="no class that keeps the promise"):
        anonymize(frame, qi="home", id="who", k=4, d=1)


@pytest.mark.parametrize("has_id", [False, True])
def test_a_row_that_nobody_is_behind_is_left_out_as_in_a_table(
    spark: Session, *, has_id: bool
) -> None:
    rows: list[tuple[str | None, str | None, str]] = [
        (str(20 + i), "flu" if i % 2 else "gout", f"p{i}") for i in range(12)
    ]
    rows += [
        ("age", "ill", "who"),
        ("Total", None, "x1"),
        ("mean", "flu", "x2"),
        ("----", "----", "----"),
    ]
    frame = spark.createDataFrame(rows, "age string, ill string, who string")
    options: dict[str, Any] = {"qi": "age", "sa": "ill", "k": 3, "d": 1}
    options |= {"id": "who"} if has_id else {}
    people = pl.DataFrame(rows, schema=["age", "ill", "who"], orient="row")
    whole = anonymize_in_memory(people, **options, time_budget_s=SEARCHED_S)
    with anonymize(frame, **options) as made:
        report = made.report
        assert len(rows_of(made)) == report.n_published
    assert report.n == len(rows)
    expected = {why: n for why, n in whole.report.suppressed.items() if why != "promise"}
    assert {why: n for why, n in report.suppressed.items() if why != "promise"} == expected
    assert sum(expected.values()) == 4


def test_a_line_of_an_export_is_left_out_as_in_a_table(spark: Session) -> None:
    rows: list[tuple[str | None, str | None]] = [
        (str(20 + i), "flu" if i % 2 else "gout") for i in range(30)
    ]
    rows += [("Blatt 1", " "), ("n = 30", None), ("Anzahl", "30"), ("33", None)]
    frame = spark.createDataFrame(rows, "age string, ill string")
    options: dict[str, Any] = {"qi": "age", "sa": "ill", "k": 3, "d": 1}
    people = pl.DataFrame(rows, schema=["age", "ill"], orient="row")
    whole = anonymize_in_memory(people, **options, time_budget_s=SEARCHED_S)
    with anonymize(frame, **options) as made:
        assert made.report.suppressed["states_nothing"] == 3
    assert whole.report.suppressed["states_nothing"] == 3


def test_who_is_joined_and_what_has_a_unit_is_told_in_the_sentences_of_a_table(
    spark: Session,
) -> None:
    rows = [(f"{20 + i} years", f"B-AB {100 + i}") for i in range(12)]
    rows += [("20 years", "BAB100"), ("21 years", "BAB 101")]
    frame = spark.createDataFrame(rows, "age string, who string")
    options: dict[str, Any] = {"qi": "age", "id": "who", "k": 3, "d": 1}
    with anonymize(frame, **options) as made:
        labels, told = rows_of(made)["age"].to_list(), made.report.warnings
    assert all(each.startswith("[") and each.endswith("] years") for each in labels)
    people = pl.DataFrame(rows, schema=["age", "who"], orient="row")
    in_memory = anonymize_in_memory(people, **options, time_budget_s=SEARCHED_S).report.warnings
    assert len(told) == 2
    assert set(told) <= set(in_memory)


def test_a_release_written_by_spark_passes_the_audit_of_its_classes(
    table: Frame, people: pl.DataFrame, tmp_path: Path
) -> None:
    """The auditor's map of the audit needs row numbers, which a kept column carries here."""
    numbered = table.sparkSession.createDataFrame(
        list(zip(range(N), people["home"].to_list(), people["illness"].to_list(), strict=True)),
        "row int, home int, illness string",
    )
    options: dict[str, Any] = {"qi": "home", "sa": "illness", "k": 4, "d": 2, "l": 2}
    with anonymize(numbered, keep="row", model="kld", rows_per_range=PER_RANGE, **options) as made:
        made.frame.write.parquet(str(tmp_path / "out"))
    rows = pl.read_parquet(tmp_path / "out" / "*.parquet")
    where = pl.DataFrame({"in_row": rows["row"], "out_row": range(N)}).sort("in_row")
    report = audit_table(
        rows.drop("row"), people.select("home", "illness"), auditor_map=where, **options
    )
    assert report.holds, report.findings


# What a nested value is as text is written out in Spark, gigabytes of it, whatever its role.
@pytest.mark.parametrize(
    ("role", "nested"), [*((role, False) for role in ("keep", "sa", "qi", "id")), ("keep", True)]
)
def test_a_small_file_of_long_values_is_refused_before_a_worker_holds_it(
    spark: Session, tmp_path: Path, role: str, *, nested: bool
) -> None:
    n, path = 2_100, tmp_path / "bomb.parquet"
    long = pl.Series("long", ["x" * 2**20]).new_from_index(0, n).cast(pl.Categorical)
    if nested:
        long = pl.Series("long", [["x" * 2**20]], pl.List(pl.Categorical)).new_from_index(0, n)
    pl.DataFrame([pl.Series("age", np.arange(n) % 50), long]).write_parquet(path)
    assert path.stat().st_size < 1_000_000
    options: dict[str, Any] = {"qi": "age", "k": 5} | {role: "long"}
    with pytest.raises(InputError, match="larger than 2 GiB: shorten texts"):
        anonymize(spark.read.parquet(str(path)), **options)


def test_what_may_meet_on_a_worker_is_the_longest_rows(spark: Session) -> None:
    rows = pl.DataFrame({"a": ["é" * i for i in range(10)], "b": range(10), "c": [None, *"x" * 9]})
    frame = spark.createDataFrame(rows.rows(), rows.columns)
    most = 2 * (9 + 8 + 7) + 3 * 8 + 3 * 1
    check_memory(frame, 3, max_bytes=most)
    with pytest.raises(InputError, match="3 of its rows"):
        check_memory(frame, 3, max_bytes=most - 1)
    check_memory(frame.limit(0), 3, max_bytes=0)
