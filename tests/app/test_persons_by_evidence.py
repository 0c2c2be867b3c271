"""A row is a person only by evidence, whatever the table came as and whoever reads it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import anonymizer
from anonymizer.app.tuning.bench import Trained, bench_of_table
from anonymizer.audit.lone_release import judge_release
from anonymizer.estimators import Anonymizer
from anonymizer.files.coded_table import Declared, code_table
from anonymizer.files.lines_of_exports import stated_alone
from anonymizer.files.rows_of_nobody import Nobodies, missing_texts
from anonymizer.files.tables import TextTable

N, N_BLANK, N_SILENT, K = 60, 50, 30, 10
BLANKS = (None, "", " ", "?", "NA", "\N{NO-BREAK SPACE}")
DECLARED = Declared(qis=["age", "sex"], sensitive=["ill"])
OPTIONS: dict[str, Any] = {
    "qi": ["age", "sex"], "sa": "ill", "k": K, "model": "kaca", "method": "fast",
}  # fmt: skip


def people(seed: int = 5, *, silent: int = 0) -> pl.DataFrame:
    """A table with rows of blanks, and with people who state an illness alone."""
    rng = np.random.default_rng(seed)
    blank = [[str(rng.choice(BLANKS[1:])) for _ in range(3)] for _ in range(N_BLANK)]
    rows = [[str(rng.integers(18, 90)), str(rng.choice(["F", "M"])), ""] for _ in range(N)]
    rows += [["", "", ""] for _ in range(silent)]
    for row in rows:
        row[2] = str(rng.choice(["flu", "cold", "none"]))
    rows += blank
    frame = pl.DataFrame(rows, schema=["age", "sex", "ill"], orient="row")
    return frame.sample(fraction=1.0, shuffle=True, seed=seed)


def as_file(folder: Path, frame: pl.DataFrame, form: str) -> Any:  # noqa: ANN401  what `anonymize` takes
    if form == "frame":
        return frame
    if form == "numbers":  # null rows, as a data frame of numbers has them
        age = pl.col("age").str.strip_chars().cast(pl.Float64, strict=False)
        words = pl.col("sex", "ill").replace(list(BLANKS[1:]), [None] * 5)
        return frame.with_columns(age, words)
    path = folder / f"people.{form}"
    if form == "parquet":
        frame.write_parquet(path)
    else:
        lines = [",".join(frame.columns), *(",".join(row) for row in frame.iter_rows())]
        path.write_text("\n".join(lines) + "\n\n\n")
    return path


@pytest.mark.parametrize("form", ["csv", "parquet", "frame", "numbers"])
def test_a_row_of_blanks_is_left_out_and_counted(tmp_path: Path, form: str) -> None:
    made = anonymizer.anonymize(as_file(tmp_path, people(), form), **OPTIONS)
    n_lines = 2 if form == "csv" else 0
    assert made.report.suppressed == {"states_nothing": N_BLANK + n_lines}
    assert made.report.n_published == N
    assert min(made.frame["count"]) >= K


@pytest.mark.parametrize(
    "form", ["{} Total", "Total {}", "Subtotal: {}", "{} - Summe", "Total for {}", "{} Average"]
)
@pytest.mark.parametrize("rest", [("", "900"), ("420", "900")])
def test_the_totals_of_a_group_are_nobody(form: str, rest: tuple[str, str]) -> None:
    wards = {ward: [(ward, str(20 + i), str(i)) for i in range(K)] for ward in ("A1", "B2", "C3")}
    rows = [row for ward, here in wards.items() for row in (*here, (form.format(ward), *rest))]
    table = pl.DataFrame(rows, schema=["ward", "age", "pay"], orient="row")
    options: dict[str, Any] = {
        "qi": ["ward", "age"],
        "sa": "pay",
        "k": K,
        "model": "kaca",
        "method": "fast",
    }
    made = anonymizer.anonymize(table, **options)
    assert made.report.suppressed == {"states_nothing": len(wards)}
    assert made.report.n_published == K * len(wards)


def test_a_value_that_many_have_is_no_total_of_another() -> None:
    values = ["hip", "total hip", "knee", "total knee"]
    table = pl.DataFrame({"operation": values * K, "age": list(range(20, 20 + K)) * len(values)})
    options: dict[str, Any] = {
        "qi": ["operation", "age"],
        "k": K,
        "model": "kaca",
        "method": "fast",
    }
    assert anonymizer.anonymize(table, **options).report.n_published == len(table)


def test_who_states_no_quasi_identifier_hides_nobody_and_costs_others_nothing() -> None:
    with_some = people(silent=N_SILENT)
    made = anonymizer.anonymize(with_some, **OPTIONS)
    assert made.report.suppressed == {"states_nothing": N_BLANK, "states_no_qi": N_SILENT}
    stated = with_some.filter(pl.col("age").str.contains(r"\d"))
    assert made.frame.equals(anonymizer.anonymize(stated, **OPTIONS).frame)


@pytest.mark.parametrize("marker", ["?", "", None])
@pytest.mark.parametrize("what", ["nothing", "no_qi"])
def test_the_audit_finds_rows_of_nobody_in_a_release_that_counts_them(
    marker: str | None, what: str
) -> None:
    blank = [marker] * 9
    original = pl.DataFrame(
        {"age": ["30", "31", "32", *blank], "ill": ["flu", "flu", "none", *blank]}
    )
    if what == "no_qi":
        original = original.with_columns(ill=pl.Series(["flu", "cold", "none"] * 4))
    release = original.select(class_id=pl.lit(0), age=pl.lit("{[30-32]|?}"), ill="ill")
    rows = pl.DataFrame({"in_row": range(12), "out_row": range(12)})
    found = anonymizer.audit_table(release, original, auditor_map=rows, qi="age", sa="ill", k=K)
    broken = {each.attack for each in found.failures}
    assert {"rows of nobody", "k"} <= broken
    assert not found.holds


def test_people_without_quasi_identifiers_may_be_published_beside_k_others() -> None:
    original = pl.DataFrame({"age": ["30", "31", "?"] * 4, "ill": ["flu", "cold", "none"] * 4})
    release = original.select(class_id=pl.lit(0), age=pl.lit("{[30-31]|?}"), ill="ill")
    rows = pl.DataFrame({"in_row": range(12), "out_row": range(12)})
    asked: dict[str, Any] = {"auditor_map": rows, "qi": "age", "sa": "ill"}
    assert anonymizer.audit_table(release, original, k=8, **asked).holds
    assert not anonymizer.audit_table(release, original, k=9, **asked).holds


def test_a_search_for_settings_and_an_estimator_count_no_blank_rows() -> None:
    table = TextTable(Path("people"), people(silent=N_SILENT))
    declared = Declared(qis=["age", "sex"], sensitive=["ill"])
    assert sum(w.records.n for w in bench_of_table(table, declared, Trained(), seed=0).windows) == N
    rows = as_file(Path(), people(silent=N_SILENT), "numbers").to_numpy()
    made = Anonymizer("kaca", k=K, l=2, categorical=[1, 2], sensitive=[2]).fit(rows)
    stated = np.array([row[0] == row[0] and row[0] is not None for row in rows])
    assert ((made.class_of_ >= 0) <= stated).all()
    assert np.bincount(made.class_of_[made.class_of_ >= 0]).min() >= K


NOBODIES = {
    "a line of marks": ("-----", "-----", "-----"), "deleted": ("(deleted)",) * 3,
    "a test": ("test",) * 3, "withheld": ("*", "*", "*"), "units": ("(years)", "(m/f)", ""),
    "means": ("Mean", "50", ""), "a mean": ("Mean", "", ""),
    "a mean of values": ("Average", "", "flu"),
    "a total": ("Total", "100", "4"), "a total of some": ("Total", "F", ""),
    "a subtotal": ("Subtotal 3", "", ""), "a page": ("Page 3 of 15", "", ""),
    "a sum in Chinese": ("\u5c0f\u8a08", "", ""), "the end": ("*** END ***", "", ""),
    "a formula": ("=SUM(A2:A100)", "", ""), "a note": ("Source: the office 2024", "", ""),
    "a sheet": ("Blatt 1", "", ""), "a page in Chinese": ("\u7b2c1\u9875", "", ""),
    "a filter": ("Filter: age > 18", "", ""), "a date": ("Data as of 2024-01-05", "", ""),
    "a count": ("n = 60", "", ""), "rows": ("60 records", "", ""), "pages": ("2/3", "", ""),
    "a footnote": ("1) vorl\u00e4ufig", "", ""), "a count apart": ("Anzahl:", "60", ""),
    "a line among words": ("", "\u00a9 2024 the office", "NA"),
}  # fmt: skip
SOMEBODIES = {
    "top-coded": ("90+", "M", "flu"), "all that is known": ("90+", "", ""),
    "below": ("<18", "M", "flu"),
    "unknown": ("unknown", "M", "flu"), "not available": ("n/a", "F", "flu"),
    "a word": ("adult", "F", "flu"), "a word and an illness": ("adult", "", "flu"),
    "in words": ("under 18", "", ""), "a common value": ("", "F", ""),
    "with a unit": ("18 months", "F", "flu"),
    "one of them deleted": ("(deleted)", "M", "flu"), "a negative number": ("(5)", "", ""),
}  # fmt: skip


def _with(row: tuple[str, str, str], n: int = 15) -> pl.DataFrame:
    rows = people().filter(pl.col("age").str.contains(r"\d"))
    return rows.vstack(pl.DataFrame([row] * n, schema=rows.schema, orient="row"))


@pytest.mark.parametrize("row", NOBODIES.values(), ids=NOBODIES)
def test_a_row_that_nobody_is_behind_is_left_out_and_counted(
    tmp_path: Path, row: tuple[str, str, str]
) -> None:
    frame = _with(row)
    made = anonymizer.anonymize(as_file(tmp_path, frame, "csv"), **OPTIONS)
    assert made.report.suppressed["states_nothing"] == 15 + 2
    assert made.report.n_published == N
    labels = {"age": pl.lit("{[18-89]|?}"), "sex": pl.lit("{F|M|?}")}
    ills = pl.Series([*frame["ill"][:N], *["flu"] * 15])
    release = frame.select(class_id=pl.lit(0), **labels, ill=ills)
    rows = pl.DataFrame({"in_row": range(N + 15), "out_row": range(N + 15)})
    asked: dict[str, Any] = {"qi": ["age", "sex"], "sa": "ill", "k": K}
    found = anonymizer.audit_table(release, frame, auditor_map=rows, **asked)
    assert "rows of nobody" in {each.attack for each in found.failures}


@pytest.mark.parametrize("row", SOMEBODIES.values(), ids=SOMEBODIES)
def test_who_says_little_in_a_column_of_numbers_is_still_somebody(
    row: tuple[str, str, str],
) -> None:
    coded = code_table(TextTable(Path("people"), _with(row)), DECLARED)
    assert coded.records.n == N + 15


@pytest.mark.parametrize("line", ["Blatt {}", "Applied filters: day is {}", "Total records,{}"])
def test_daily_exports_of_two_people_count_two_a_day(tmp_path: Path, line: str) -> None:
    """Lines may be as many as a third of the rows."""
    rows = [",".join(row) for row in people().filter(pl.col("age").str.contains(r"\d")).iter_rows()]
    lines = [f"{line.format(i)},,".split(",", 3)[:3] for i in range(N // 2)]
    days = [[*rows[2 * i : 2 * i + 2], ",".join(each)] for i, each in enumerate(lines)]
    path = tmp_path / "days.csv"
    path.write_text("\n".join(["age,sex,ill", *(row for day in days for row in day)]) + "\n")
    made = anonymizer.anonymize(path, **OPTIONS)
    assert made.report.suppressed == {"states_nothing": N // 2}
    assert min(made.frame["count"]) >= K


def test_who_states_one_value_is_somebody_where_others_state_one_too() -> None:
    """A survey of many blanks: what is said alone is what is said."""
    alone = [["", city, ""] for city in ("Turku", "Oulu", "Espoo", "Vaasa") for _ in range(4)]
    ages = [[f"{20 + i} years", "", ""] for i in range(20)]
    rows = [*alone, *ages, ["30 years", "Turku", "flu"]]
    frame = pl.DataFrame(rows, schema=["age", "sex", "ill"], orient="row")
    assert code_table(TextTable(Path("people"), frame), DECLARED).records.n == len(rows)


def test_what_is_left_of_somebody_in_a_release_is_no_line_of_an_export() -> None:
    rows = [*[("Turku", "F")] * 6, *[("Oulu", None)] * 6]
    release = pl.DataFrame(rows, schema=["city", "sex"], orient="row")
    assert judge_release(TextTable(Path("release"), release), ["city", "sex"], []).n_nobodys == 0


def test_a_declared_word_and_a_column_of_words_are_left_as_they_are() -> None:
    """`average` is a build, and `test` may be a group of ages, if somebody says so."""
    builds = [*_with(("average", "", "flu"))["age"].str.replace(r"^\d.*", "slim")]
    table = TextTable(Path("people"), _with(("30", "F", "flu")).with_columns(age=pl.Series(builds)))
    assert code_table(table, DECLARED).records.n == N + 15
    table = TextTable(Path("people"), _with(("test", "test", "test")))
    assert code_table(table, replace(DECLARED, categories=["age"])).records.n == N + 15


def test_a_column_may_have_any_name() -> None:
    frame = _with(("Mean", "50", "")).rename({"age": "n", "sex": "cell", "ill": "plain"})
    declared = Declared(qis=["n", "cell"], sensitive=["plain"])
    assert code_table(TextTable(Path("people"), frame), declared).records.n == N


CELLS = st.sampled_from(
    ["age", "sex", "ill", "Total", "mean", "----", "(years)", "=SUM(A1)", "x", "F", "3", "40", None,
     "n = 4", "NA", "b"]
)  # fmt: skip


@given(st.lists(st.tuples(CELLS, CELLS, CELLS), min_size=1, max_size=12))
def test_the_rows_with_an_odd_cell_are_judged_alone_as_among_all(
    rows: list[tuple[str | None, str | None, str | None]],
) -> None:
    """Spark judges these alone."""
    frame = pl.DataFrame(rows, schema=dict.fromkeys(("age", "sex", "ill"), pl.String), orient="row")
    counted = {each.name: each.alias("cell").drop_nulls().value_counts(name="n") for each in frame}
    alone = stated_alone(frame, missing_texts(counted, DECLARED))
    found = Nobodies.of(counted, DECLARED, alone)
    judged = found.rows(None)
    may_be = pl.any_horizontal(
        pl.col(name).is_in(cells).fill_null(value=False) for name, cells in found.cells.items()
    )
    if judged is not None:
        assert frame.filter(may_be).filter(judged).equals(frame.filter(judged))
