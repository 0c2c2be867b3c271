"""A table through coding, classes, verification, generalization and the files."""

import csv
import io
import itertools
import json
import re
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymizer.algorithms.models.registry import MODELS
from anonymizer.algorithms.records.classes import SUPPRESSED
from anonymizer.algorithms.records.task import Task
from anonymizer.app.anonymize import report_figures
from anonymizer.app.anonymize.class_labels import labelling_of
from anonymizer.app.anonymize.label_verification import n_faulty
from anonymizer.app.anonymize.plan import ReleasePlan
from anonymizer.app.anonymize.release_files import ReleasePaths, write_release
from anonymizer.app.anonymize.table_anonymization import Anonymized, anonymize
from anonymizer.domain.arrays import Int32Array
from anonymizer.domain.promises import Promise
from anonymizer.errors import GuaranteeError, InputError, SettingsError
from anonymizer.files.coded_table import Declared, code_table
from anonymizer.files.table_writing import write_table
from anonymizer.files.tables import TextTable

JOBS = (("a", "low", "*"), ("b", "low", "*"), ("c", "high", "*"), ("d", "high", "*"))
DECLARED = Declared(
    qis=["age", "job", "city"],
    sensitive=["illness"],
    id="name",
    sources=[["age", "job"], ["city"]],
    hierarchies={"job": JOBS},
)
PLAN = ReleasePlan(model="kd", method="hilbert", promise=Promise(k=3, d=2), time_budget_s=5)


def people(seed: int = 1, n: int = 80) -> TextTable:
    """Some people, some of them twice, some cells empty."""
    rng = np.random.default_rng(seed)
    rows = {
        "name": [f"person-{i}" for i in rng.integers(0, 60, n)],
        "age": [str(20 + x) if x < 9 else "?" for x in rng.integers(0, 10, n)],
        "job": [["a", "b", "c", "d", None][x] for x in rng.integers(0, 5, n)],
        "city": [["North|Side", "South}", "West"][x] for x in rng.integers(0, 3, n)],
        "illness": [["flu", "cold", "gout"][x] for x in rng.integers(0, 3, n)],
    }
    return TextTable(Path("people.csv"), pl.DataFrame(rows))


def allows(published: str, cell: str | None) -> bool:
    """Whether a published value covers a cell of the table, read as an analyst would."""
    value = cell or "?"
    if published.startswith("{"):
        inside = re.findall(r"\[[^\]]+\]|(?:[^\\|}]|\\.)+", published[1:-1])
        return any(allows(re.sub(r"\\(.)", r"\1", each), cell) for each in inside)
    if ends := re.fullmatch(r"\[(.+)-(.+)\]", published):
        return value != "?" and float(ends[1]) <= float(value) <= float(ends[2])
    above = next((branch for branch in JOBS if branch[0] == value), (value,))
    return published in above


def as_csv(made: Anonymized) -> bytes:
    file = io.BytesIO()
    write_table(file, made.publication.frame, ".csv")
    return file.getvalue()


@pytest.mark.parametrize("cost", ["range", "set", "taxonomy"])
@pytest.mark.parametrize("method", list(MODELS["kd"].methods))
def test_every_published_row_covers_the_row_it_was_and_hides_among_k_persons(
    method: str,
    cost: Any,  # noqa: ANN401  a literal
) -> None:
    table = people()
    made = anonymize(table, DECLARED, replace(PLAN, method=method, cost=cost))
    rows = table.frame.rows(named=True)
    out = made.publication.frame.rows(named=True)
    members = defaultdict(list)
    for row, at in zip(rows, made.publication.out_row.tolist(), strict=True):
        if at >= 0:
            assert all(allows(out[at][name], row[name]) for name in DECLARED.qis)
            assert out[at]["illness"] == row["illness"]
            members[out[at]["class_id"]].append(row)
    assert len(out) == sum(map(len, members.values())) == made.report.n_published
    assert made.report.suppressed["repeated"] == 80 - len({row["name"] for row in rows})
    for alike in members.values():
        assert len({row["name"] for row in alike}) == len(alike) >= 3
        for name in DECLARED.qis:
            assert len({row[name] for row in alike} - {None, "?"}) >= 2
    assert [row["class_id"] for row in out] == sorted(row["class_id"] for row in out)
    assert list(out[0]) == ["class_id", "age", "job", "city", "illness"]


def test_a_preferred_share_puts_more_rows_where_no_value_prevails_and_says_at_what_price() -> None:
    table = people(n=60)
    plain = replace(PLAN, method="best", promise=Promise(k=3))
    made = [
        anonymize(table, DECLARED, each).report
        for each in (plain, replace(plain, prefer_share=0.5, share_price=1.0))
    ]
    assert [report.share for report in made] == [0.5, 0.5]
    assert made[1].n_above < 0.5 * made[0].n_above
    assert made[1].gcp.range > made[0].gcp.range
    assert (made[1].settings.prefer_share, made[1].settings.share_price) == (0.5, 1.0)
    with pytest.raises(SettingsError, match="prefer-share: method hilbert knows no soft goal"):
        anonymize(table, DECLARED, replace(PLAN, prefer_share=0.5))


def test_a_bound_that_no_class_keeps_names_the_column_and_its_share_of_the_table() -> None:
    rows = pl.DataFrame({"age": [*"1234"] * 5, "job": ["a"] * 20})
    rows = rows.with_columns(job=pl.Series(["b", *["a"] * 19]))
    plan = replace(PLAN, promise=Promise(k=2, max_share=0.6))
    with pytest.raises(InputError, match=r"job: one value has 95.0% of the table, 60.0% of a"):
        anonymize(TextTable(Path("t.csv"), rows), Declared(qis=["age", "job"]), plan)


def mostly_one_city(n: int = 200) -> TextTable:
    """People of whom 95 % live in one city; every tenth has two rows."""
    rng = np.random.default_rng(3)
    rows = {
        "name": [f"person-{i - (i % 10 == 9)}" for i in range(n)],
        "age": [str(20 + x) for x in rng.integers(0, 30, n)],
        "city": ["other" if i % 20 == 0 else "main" for i in range(n)],
        "illness": [["flu", "cold", "gout"][x] for x in rng.integers(0, 3, n)],
    }
    return TextTable(Path("people.csv"), pl.DataFrame(rows))


WITH_LIMIT = [
    (name, method)
    for name, model in MODELS.items()
    for method in model.methods
    if name != "cells"  # its tree does not know shares, and leaves out each cell that breaks one
]


@pytest.mark.parametrize(("model", "method"), WITH_LIMIT)
def test_a_value_that_is_too_frequent_is_published_after_some_of_its_rows_are_left_out(
    model: str, method: str
) -> None:
    """To have 94 % of the rest, 34 of the 190 must go."""
    table = mostly_one_city()
    declared = Declared(qis=["age", "city"], sensitive=["illness"])
    promise = Promise(k=5, max_share=0.94, l=2 if model == "kld" else 1, t=0.9)
    plan = replace(PLAN, model=model, method=method, promise=promise, time_budget_s=1)
    if method in {"best", "hilbert", "mondrian"}:  # others leave out what fits in no class
        with pytest.raises(InputError, match=r"34 rows at least must be left out"):
            anonymize(table, declared, plan)
        with pytest.raises(InputError, match=r"may be left out|no class that keeps"):
            anonymize(table, declared, replace(plan, suppress=0.165))
    made = anonymize(table, declared, replace(plan, suppress=0.4))
    report = made.report
    assert report.qis[1].max_share <= 0.94
    assert report.n == 200 == report.n_published + sum(report.suppressed.values())
    assert 34 <= sum(report.suppressed.values()) <= 80
    cities = table.frame["city"].to_numpy()
    assert (cities[made.publication.out_row < 0] == "main").sum() >= 34
    assert sorted(made.publication.out_row[made.publication.out_row >= 0].tolist()) == list(
        range(report.n_published)
    )


@pytest.mark.parametrize("method", list(MODELS["kd"].methods))
def test_persons_are_counted_after_rows_are_left_out(method: str) -> None:
    table = mostly_one_city()
    declared = Declared(qis=["age", "city"], sensitive=["illness"], id="name")
    plan = replace(PLAN, method=method, promise=Promise(k=5, max_share=0.94), time_budget_s=2)
    made = anonymize(table, declared, replace(plan, suppress=0.4))
    names, members = table.frame["name"].to_list(), defaultdict(set)
    for row, at in enumerate(made.publication.out_row.tolist()):
        if at >= 0:
            members[made.publication.frame["class_id"][at]].add(names[row])
    assert min(map(len, members.values())) == made.report.k >= 5


def test_closeness_is_that_to_the_whole_table_although_rows_are_left_out() -> None:
    table = mostly_one_city()
    declared = Declared(qis=["age", "city"], sensitive=["illness"])
    promise = Promise(k=5, max_share=0.94, t=0.15)
    made = anonymize(table, declared, replace(PLAN, promise=promise, suppress=0.4))
    illness = table.frame["illness"]
    usual = {each: (illness == each).mean() for each in illness.unique()}
    out = made.publication.frame
    for c in out["class_id"].unique():
        own = out.filter(class_id=c)["illness"]
        off = sum(abs(float((own == each).mean()) - share) for each, share in usual.items()) / 2
        assert off <= 0.15 + 1e-9


def test_rows_that_fit_in_no_class_count_towards_the_limit_too() -> None:
    plan = replace(PLAN, method="choosy")
    with pytest.raises(InputError, match=r"4 of 42 rows fit in no class, and 2.0% may be left out"):
        anonymize(people(), DECLARED, replace(plan, suppress=0.02), models=OWN)
    with pytest.raises(InputError, match=r"4 of 42 rows fit in no class, and 0.0% may be left out"):
        anonymize(people(), DECLARED, replace(plan, suppress=0.0), models=OWN)
    with pytest.raises(InputError, match=r"4 of 42 rows fit in no class, and 9.5% may be left out"):
        anonymize(people(), DECLARED, replace(plan, suppress=0.095), models=OWN)
    report = anonymize(people(), DECLARED, replace(plan, suppress=0.1), models=OWN).report
    assert report.suppressed == {"repeated": 38, "promise": 4}
    assert report.settings.suppress == 0.1


def test_a_number_that_marks_a_missing_value_is_in_no_mean() -> None:
    rows = pl.DataFrame({"job": ["a"] * 8, "pay": ["10", "12"] * 2 + ["-9"] * 4})
    plan = replace(PLAN, promise=Promise(k=8), measures=["pay"])
    declared = Declared(qis=["job"], markers=["-9"])
    made = anonymize(TextTable(Path("t.csv"), rows), declared, plan)
    assert made.publication.frame["mean_pay"].is_null().all()  # four persons have a value
    kept = replace(plan, promise=Promise(k=4), method="mondrian")
    made = anonymize(TextTable(Path("t.csv"), rows), declared, kept)
    assert set(made.publication.frame["mean_pay"]) == {11.0}


def test_mondrian_warns_where_the_published_algorithm_loses_far_less() -> None:
    """Of numbers most of which are 0, no median leaves two values on either side."""
    n, rng = 500, np.random.default_rng(1)
    x = np.arange(n)
    mostly_0 = {name: np.where(rng.random(n) < 0.7, 0, each) for name, each in (("x", x), ("y", x))}
    declared = Declared(qis=["x", "y"])
    plan = replace(PLAN, promise=Promise(k=5, d=2), method="mondrian")
    for columns, warns in ((mostly_0, True), ({"x": x, "y": rng.permutation(n)}, False)):
        table = TextTable(Path("x.csv"), pl.DataFrame(columns))
        by_mondrian, by_hilbert = (
            anonymize(table, declared, replace(plan, method=method)).report
            for method in ("mondrian", "hilbert")
        )
        times = by_mondrian.gcp.range / by_hilbert.gcp.range
        said = f"mondrian loses {times:.1f} times as much as hilbert would: choose another method"
        assert (said in by_mondrian.warnings) == warns == (times >= 3)


def test_closeness_is_that_to_the_whole_table_where_rows_are_left_out() -> None:
    """To the rows that are left, which are other ones, it promises nothing."""
    rng = np.random.default_rng(18)
    young = rng.random(40) < 0.85
    age = np.where(young, rng.integers(0, 5, 40), rng.integers(50, 100, 40))
    illness = np.where(young, rng.choice(["a", "b"], 40), "rare")
    table = TextTable(Path("people.csv"), pl.DataFrame({"age": age, "illness": illness}))
    promise = Promise(k=3, t=0.3)
    plan = replace(PLAN, method="mondrian", promise=promise, suppress=0.15)
    report = anonymize(table, Declared(qis=["age"], sensitive=["illness"]), plan).report
    assert report.suppressed["limit"] > 0
    assert 0 < report.sensitive[0].t <= 0.3


@pytest.mark.parametrize("method", ["best", "mondrian"])
def test_the_loss_of_a_heavy_column_falls_and_that_of_the_others_rises(method: str) -> None:
    table = mostly_one_city()
    more = table.frame.with_columns(size=pl.Series(np.random.default_rng(5).integers(0, 30, 200)))
    declared = Declared(qis=["age", "size"])
    plan = replace(PLAN, method=method, promise=Promise(k=5), time_budget_s=2)
    even, heavy = (
        anonymize(TextTable(table.path, more), declared, replace(plan, weights=weights)).report
        for weights in ({}, {"age": 10.0})
    )
    assert heavy.qis[0].ncp.range < 0.7 * even.qis[0].ncp.range
    assert heavy.qis[1].ncp.range > even.qis[1].ncp.range
    assert heavy.settings.weights == {"age": 10.0}


@pytest.mark.parametrize(
    ("method", "weights", "fault"),
    [
        ("best", {"name": 2.0}, "name is not a quasi-identifier"),
        ("best", {"age": 0.0, "job": 0.0, "city": 0.0}, "at least it must be above 0"),
        ("hilbert", {"age": 2.0}, "method hilbert knows no weights"),
    ],
)
def test_weights_that_do_not_fit_are_refused(
    method: str, weights: dict[str, float], fault: str
) -> None:
    with pytest.raises(SettingsError, match=fault):
        anonymize(people(), DECLARED, replace(PLAN, method=method, weights=weights))


@pytest.mark.parametrize("method", ["hilbert", "mondrian"])
@settings(max_examples=6)
@given(seed=st.integers(0, 5), mixed=st.integers(0, 99))
def test_the_order_of_the_table_changes_no_byte_of_the_release(
    method: str, seed: int, mixed: int
) -> None:
    table = people(seed)
    shuffled = np.random.default_rng(mixed).permutation(len(table))
    other = TextTable(table.path, table.frame[shuffled])
    one, two = (anonymize(each, DECLARED, replace(PLAN, method=method)) for each in (table, other))
    assert as_csv(one) == as_csv(two)
    assert one.report.gcp == two.report.gcp


def careless(task: Task) -> Int32Array:
    """Classes of two, whatever was asked for."""
    return (np.arange(task.records.n) // 2).astype(np.int32)


def choosy(task: Task) -> Int32Array:
    """Everybody in one class, but for the first four."""
    class_of = np.zeros(task.records.n, np.int32)
    class_of[:4] = SUPPRESSED
    return class_of


def endless(task: Task) -> Int32Array:
    assert task.time_left is not None
    while task.time_left() > 0:
        task.progress(0.5)
    return np.zeros(task.records.n, np.int32)


METHODS = {"careless": careless, "choosy": choosy, "endless": endless}
OWN = {"kd": replace(MODELS["kd"], methods=METHODS)}


def test_what_breaks_its_promise_is_not_published() -> None:
    with pytest.raises(GuaranteeError, match="breaches of the promise"):
        anonymize(people(), DECLARED, replace(PLAN, method="careless"), models=OWN)


def test_every_row_is_accounted_for_and_the_suppressed_by_their_reason() -> None:
    table = people()
    nameless = table.frame.with_columns(
        pl.when(pl.int_range(pl.len()) < 3).then(None).otherwise(pl.col("name")).alias("name")
    )
    made = anonymize(
        TextTable(table.path, nameless), DECLARED, replace(PLAN, method="choosy"), models=OWN
    )
    report, out_row = made.report, made.publication.out_row
    n_named = nameless["name"].n_unique() - 1
    assert report.suppressed == {"no_identifier": 3, "repeated": 77 - n_named, "promise": 4}
    assert report.n == 80 == report.n_published + sum(report.suppressed.values())
    assert (out_row[:3] < 0).all()
    assert sorted(out_row[out_row >= 0].tolist()) == list(range(n_named - 4))


def test_a_search_that_ran_out_of_time_before_a_later_one_is_told_too() -> None:
    n_searches = 0

    def best(task: Task) -> Int32Array:
        nonlocal n_searches
        n_searches += 1
        while n_searches == 1 and task.time_left is not None and task.time_left() > 0:
            pass
        return MODELS["kd"].methods["hilbert"](task)

    time = itertools.count()
    report = anonymize(
        people(),
        DECLARED,
        replace(PLAN, method="best", suppress=0.1, time_budget_s=100.0),
        models={"kd": replace(MODELS["kd"], methods={"best": best})},
        clock=lambda: float(next(time)),
    ).report
    assert n_searches == 2
    assert any("time budget" in warning for warning in report.warnings)


def test_a_release_is_the_same_however_slow_the_clock_says_the_machine_is() -> None:
    rng = np.random.default_rng(4)
    frame = pl.DataFrame({name: rng.integers(0, 90, 2_500) for name in ("age", "pay", "zip")})
    table = TextTable(Path("people.csv"), frame.cast(pl.String))
    plan = ReleasePlan(model="kd", method="best", promise=Promise(k=5), time_budget_s=0.2)
    released = []
    for seconds_a_look in (0.0, 1e-3, 10.0):
        clock = itertools.count(0.0, seconds_a_look)
        made = anonymize(
            table,
            Declared(qis=["age", "pay", "zip"]),
            plan,
            clock=clock.__next__,
        )
        released.append(as_csv(made))
        assert made.report.least_gcp is not None
        assert 0 < made.report.least_gcp < made.report.gcp.range
    assert len(set(released)) == 1


@pytest.mark.parametrize(
    ("model", "method", "target"),
    [("kd", "mondrian", None), ("kaca", "fast", None), ("cells", "tree", "illness")],
)
def test_every_release_says_what_none_can_lose_less_than(
    model: str, method: str, target: str | None
) -> None:
    promise = Promise(k=3, d=1)
    plan = replace(PLAN, promise=promise, model=model, method=method, target=target)
    report = anonymize(people(), DECLARED, plan).report
    assert report.least_gcp is not None
    assert 0 < report.least_gcp <= report.gcp.range


def test_a_quick_method_does_not_wait_for_the_least_loss_of_many_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(report_figures, "_MOST_BOUNDED", 10)
    plan = replace(PLAN, promise=Promise(k=3, d=1))
    quick = anonymize(people(), DECLARED, replace(plan, method="mondrian")).report
    searched = anonymize(people(), DECLARED, replace(plan, method="best", time_budget_s=0.2)).report
    assert (quick.least_gcp is None, searched.least_gcp is None) == (True, False)


def test_a_method_that_could_go_on_for_ever_ends_when_its_time_is_used_up() -> None:
    now, told = [0.0], []

    def clock() -> float:
        now[0] += 0.25
        return now[0]

    made = anonymize(
        people(),
        DECLARED,
        replace(PLAN, method="endless"),
        models=OWN,
        clock=clock,
        progress=lambda step, used_s, loss: told.append((step, used_s, loss)),
    )
    assert made.report.seconds["partition"] >= 5
    assert any("time budget" in warning for warning in made.report.warnings)
    assert ("partition", 0.5) in {(step, loss) for step, _, loss in told}
    assert max(used_s for _, used_s, _ in told) < 7


@pytest.mark.parametrize(
    ("plan", "fault"),
    [
        ({"promise": Promise(k=3, d=4)}, "city has 3 values, d = 4"),
        ({"promise": Promise(k=3, l=4)}, "illness has 3 values, l = 4"),
        ({"promise": Promise(k=200)}, "persons, k = 200"),
        ({"promise": Promise(k=2, max_share=0.3)}, "promise"),
    ],
)
def test_a_promise_that_no_table_like_this_can_keep_is_refused_with_the_attribute(
    plan: dict[str, Any], fault: str
) -> None:
    with pytest.raises(InputError, match=fault):
        anonymize(people(), DECLARED, replace(PLAN, **plan))


@pytest.mark.parametrize(
    ("plan", "declared", "fault"),
    [
        ({"model": "none"}, {}, "must be one of kd, kld"),
        ({"method": "none"}, {}, "method must be one of"),
        ({"model": "kld"}, {"sensitive": []}, "needs a sensitive attribute"),
        ({"promise": Promise(k=2, min_spread={"job": 1.0})}, {}, "job is not a numeric"),
    ],
)
def test_a_plan_that_does_not_fit_is_refused(
    plan: dict[str, Any], declared: dict[str, Any], fault: str
) -> None:
    with pytest.raises(SettingsError, match=fault):
        anonymize(people(), replace(DECLARED, **declared), replace(PLAN, **plan))


def test_a_column_called_as_the_one_that_numbers_the_classes_is_refused() -> None:
    table = TextTable(Path("t"), people().frame.rename({"city": "class_id"}))
    declared = replace(DECLARED, qis=["age", "job"], sources=(), keep=["class_id"])
    with pytest.raises(InputError, match="column class_id"):
        anonymize(table, declared, PLAN)


def test_the_report_says_what_was_asked_reached_lost_and_leaked() -> None:
    table = people()
    made = anonymize(table, replace(DECLARED, keep=["illness"], sensitive=[]), PLAN)
    report = made.report
    assert report.k >= report.asked.k == 3
    assert all(qi.d >= 2 for qi in report.qis)
    assert [qi.domain for qi in report.qis] == ["data", "hierarchy", "data"]
    drawn = table.frame.filter(pl.Series(made.publication.out_row) >= 0)
    assert drawn["name"].is_unique().all()
    assert report.qis[1].n_missing >= drawn["job"].null_count() > 0
    assert report.class_size.min <= report.class_size.median <= report.class_size.max
    sizes = np.bincount(made.publication.class_of)
    assert report.dm_published == int((sizes**2).sum())
    n_out = report.suppressed.get("promise", 0) + report.suppressed.get("limit", 0)
    assert report.dm == report.dm_published + n_out * (report.n_published + n_out)
    assert 0 < report.gcp.range < 1
    assert report.n_learned(sensitive=False) == 0
    assert any("age, city" in warning for warning in report.warnings)
    assert any("illness" in warning for warning in report.warnings)
    assert set(report.seconds) == {
        "code",
        "compile",
        "partition",
        "verify",
        "generalize",
        "measure",
    }
    plain = anonymize(table, replace(DECLARED, markers_are_values=False, id=None), PLAN)
    assert any("k counts rows" in warning for warning in plain.report.warnings)


def test_plain_k_anonymity_is_attacked_and_the_leaks_are_counted() -> None:
    rows = [(20 + i // 3, "a" if i < 12 else "b") for i in range(24)]
    table = TextTable(Path("t"), pl.DataFrame(rows, schema=["age", "job"], orient="row"))
    declared = Declared(qis=["age", "job"], sources=[["age"], ["job"]])
    made = anonymize(table, declared, replace(PLAN, promise=Promise(k=3, d=1)))
    assert made.report.n_learned(sensitive=False) > 0


def test_the_files_are_written_together_and_say_the_same(tmp_path: Path) -> None:
    made = anonymize(people(), DECLARED, replace(PLAN, model="kld", promise=Promise(k=3, d=2, l=2)))
    places = ReleasePaths(
        table=tmp_path / "people.csv",
        out=tmp_path / "out.parquet",
        report=tmp_path / "report.json",
        page=tmp_path / "page.html",
        auditor_map=tmp_path / "map.csv",
    )
    write_release(made, places)
    assert pl.read_parquet(places.out).equals(made.publication.as_text())
    as_csv = replace(places, out=tmp_path / "out.csv")
    write_release(made, as_csv)
    assert as_csv.out.read_text() == made.publication.as_text().write_csv()
    told = json.loads((tmp_path / "report.json").read_text())
    assert (told["n"], told["k"]) == (80, made.report.k)
    assert told["asked"]["t"] is None
    with (tmp_path / "map.csv").open() as file:
        mapped = list(csv.DictReader(file))
    assert [int(row["in_row"]) for row in mapped] == list(range(80))
    assert [row["out_row"] for row in mapped] == [
        str(at) if at >= 0 else "" for at in made.publication.out_row
    ]
    assert (tmp_path / "map.csv").stat().st_mode & 0o077 == 0


def test_the_page_asks_for_nothing_from_outside_and_shows_names_as_text(tmp_path: Path) -> None:
    frame = people().frame.rename({"city": "<b>city</b>"})
    declared = replace(DECLARED, qis=["age", "job", "<b>city</b>"], sources=())
    made = anonymize(TextTable(Path("people.csv"), frame), declared, PLAN)
    write_release(
        made, ReleasePaths(table=Path("t"), out=tmp_path / "o.csv", page=tmp_path / "p.html")
    )
    page = (tmp_path / "p.html").read_text()
    assert "<b>city" not in page
    assert "&lt;b&gt;city" in page
    assert set(re.findall(r'src="([^,]*),', page)) == {"data:image/png;base64"}
    assert not re.search(r"https?:|<script|<link|@import|url\(", page)
    assert page.count("<img") == 3


def test_the_page_says_how_likely_a_person_is_found_and_what_its_words_mean(tmp_path: Path) -> None:
    declared = replace(DECLARED, id=None)
    made = anonymize(people(), declared, replace(PLAN, promise=Promise(k=4, d=1)))
    write_release(
        made, ReleasePaths(table=Path("t"), out=tmp_path / "o.csv", page=tmp_path / "p.html")
    )
    page = (tmp_path / "p.html").read_text()
    k, n, classes = made.report.k, made.report.n_published, made.report.n_classes
    assert f"at most {1 / k:.1%} (1 in {k}, in the smallest class)" in page
    assert f"{classes / n:.1%} (1 in {n / classes:.1f}) on average" in page
    assert all(f"<b>{word}</b>: " in page for word in ("DM", "GCP", "t", "spread", "k", "d", "l"))
    assert "No row was left out." in page


def test_the_page_says_why_rows_are_left_out(tmp_path: Path) -> None:
    plan = replace(PLAN, promise=Promise(k=5, max_share=0.94), suppress=0.4)
    made = anonymize(mostly_one_city(), Declared(qis=["age", "city"]), plan)
    write_release(
        made, ReleasePaths(table=Path("t"), out=tmp_path / "o.csv", page=tmp_path / "p.html")
    )
    n = made.report.suppressed["limit"]
    said = f"Left out: {n} chosen under the suppression limit, so that the others lose less."
    assert said in (tmp_path / "p.html").read_text()


def test_the_page_says_so_where_there_is_nothing_to_link(tmp_path: Path) -> None:
    declared = replace(DECLARED, sensitive=[], sources=())
    made = anonymize(people(), declared, PLAN)
    places = ReleasePaths(table=Path("t"), out=tmp_path / "o.csv", page=tmp_path / "p.html")
    write_release(made, places)
    assert "nothing to learn" in (tmp_path / "p.html").read_text()
    assert made.report.leaks == ()


def test_no_file_may_be_another_one_or_the_table(tmp_path: Path) -> None:
    table, out = tmp_path / "people.csv", tmp_path / "out.csv"
    for other in (table, out):
        with pytest.raises(InputError, match="is named twice"):
            ReleasePaths(table=table, out=out, report=tmp_path / "." / other.name)
    with pytest.raises(InputError, match="a table ends in"):
        ReleasePaths(table=table, out=tmp_path / "out.txt")


TOLLS = Declared(qis=["section", "at"], id="plate", times=["at"])
KACA = ReleasePlan(
    model="kaca",
    method="fast",
    promise=Promise(k=4),
    labels={"section": "prefix", "at": "hours"},
    measures=["toll"],
)


def tolls(seed: int = 1, n: int = 300) -> TextTable:
    """Passages of some vehicles, some cells empty."""
    rng = np.random.default_rng(seed)
    sections = ["G5615530120", "G5611530010", "S0010530010", "S0010530020", None]
    rows = {
        "plate": [f"plate-{i}" for i in rng.integers(0, 200, n)],
        "section": [sections[i] for i in rng.integers(0, 5, n)],
        "at": [
            None if x < 9 else f"2023-01-03 {20 + x % 7 - 24 * (x % 7 > 3):02}:{x // 7:02}:06"
            for x in rng.integers(7 * 60, size=n)
        ],
        "toll": [None if x < 10 else f"{x / 7:.2f}" for x in rng.integers(0, 60, n)],
    }
    return TextTable(Path("tolls.csv"), pl.DataFrame(rows))


def told_truly(section: str, at: str, row: dict[str, Any]) -> bool:
    """Whether labels of KACA cover a row, read as an analyst would."""
    there = [text.strip("{}").split("|") for text in (section, at)]
    if row["section"] is None:
        of_section = "?" in there[0] or "未知区域" in there[0]
    else:
        begin = there[0][0].removesuffix("区域")
        of_section = begin == "全部" or row["section"].startswith(begin)
    if row["at"] is None:
        return of_section and ("?" in there[1] or "未知时段" in there[1])
    ends = re.search(r"\((..)-(..)\)$", there[1][0])
    assert ends is not None
    hour, first, end = int(row["at"][11:13]), int(ends[1]), int(ends[2])
    inside = first <= hour < end if first < end else hour >= first or hour < end
    return of_section and inside


@pytest.mark.parametrize("method", list(MODELS["kaca"].methods))
def test_kaca_tells_each_class_once_in_labels_that_cover_it_with_its_count_and_means(
    method: str,
) -> None:
    table = tolls()
    made = anonymize(table, TOLLS, replace(KACA, method=method))
    out = made.publication.frame.rows(named=True)
    assert list(out[0]) == ["class_id", "section", "at", "count", "mean_toll"]
    told = [(row["section"], row["at"]) for row in out]
    assert told == sorted(told)  # not by what is beneath the labels
    members = defaultdict(list)
    for row, at in zip(table.frame.rows(named=True), made.publication.out_row, strict=True):
        if at >= 0:
            assert told_truly(out[at]["section"], out[at]["at"], row)
            members[tuple(out[at].values())].append(row)
    assert len(members) == made.report.n_classes == len({key[1:3] for key in members}) > 3
    for (*_, count, mean), rows in members.items():
        assert count == len({row["plate"] for row in rows}) == len(rows) >= 4
        has = [row for row in rows if row["toll"] is not None]
        if len({row["plate"] for row in has}) < 4:
            assert mean is None
        else:
            assert mean == pytest.approx(
                sum(float(row["toll"]) for row in has) / len(has), abs=0.006
            )
    assert any("ranges and sets beneath the labels" in told for told in made.report.warnings)
    assert made.report.settings.labels == KACA.labels


@settings(max_examples=4)
@given(seed=st.integers(0, 3), mixed=st.integers(0, 99))
def test_the_order_of_the_table_changes_no_label_count_or_mean(seed: int, mixed: int) -> None:
    table = tolls(seed)
    shuffled = np.random.default_rng(mixed).permutation(len(table))
    other = TextTable(table.path, table.frame[shuffled])
    assert as_csv(anonymize(table, TOLLS, KACA)) == as_csv(anonymize(other, TOLLS, KACA))


@pytest.mark.parametrize(("id_", "seed"), [(None, 0), (None, 1), ("name", 0), ("name", 1)])
def test_means_of_classes_with_equal_labels_do_not_tell_the_order_of_rows_or_names(
    id_: str | None, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    name = pl.Series([f"p{i:02}" for i in range(60)])
    table = pl.DataFrame({"name": name, "job": rng.choice(["a", "b"], 60), "pay": np.arange(60)})
    mixed = rng.permutation(60)
    other = table[mixed] if id_ is None else table.with_columns(name=name[mixed])
    plan = replace(PLAN, promise=Promise(k=3), measures=["pay"])
    declared = Declared(qis=["job"], id=id_)
    one, two = (
        anonymize(TextTable(Path("t.csv"), each), declared, plan) for each in (table, other)
    )
    assert one.publication.frame["job"].n_unique() < one.report.n_classes
    assert as_csv(one) == as_csv(two)


def test_a_label_that_leaves_a_member_out_or_a_class_too_small_is_found() -> None:
    coded = code_table(tolls(n=12), replace(TOLLS, id=None))
    labelling = labelling_of(coded.schema, TOLLS, KACA.labels, "en")
    class_of = np.repeat(np.arange(2, dtype=np.int32), 6)
    wide = [["{all areas|?}"] * 2, ["all day (00-24)"] * 2]
    assert n_faulty(coded, class_of, wide, 6, labelling) == 0
    assert n_faulty(coded, class_of, wide, 7, labelling) == 2
    assert n_faulty(coded, class_of, [["{all areas|?}", "X area"], wide[1]], 6, labelling) == 1
    assert n_faulty(coded, class_of, [wide[0], ["period (03-20)", wide[1][1]]], 6, labelling) == 1


@pytest.mark.parametrize(
    ("plan", "declared", "fault"),
    [
        ({"model": "kd", "method": "hilbert"}, {}, "label: not available for model kd"),
        ({"labels": {"plate": "prefix"}}, {}, "label: plate is no quasi-identifier"),
        ({"labels": {"at": "prefix"}}, {}, "label: at: a prefix is for categories"),
        ({"labels": {"at": "hours"}}, {"times": ()}, "label: at: hours are for"),
        ({"measures": ["plate"]}, {}, "measure: column plate is declared twice"),
        ({"measures": ["toll", "toll"]}, {}, "measure: column toll is declared twice"),
    ],
)
def test_labels_and_measures_that_do_not_fit_are_refused(
    plan: dict[str, Any], declared: dict[str, Any], fault: str
) -> None:
    with pytest.raises(SettingsError, match=fault):
        anonymize(tolls(), replace(TOLLS, **declared), replace(KACA, **plan))


@pytest.mark.parametrize("model", ["kd", "cells", "kaca"])
def test_the_mean_of_a_class_takes_the_place_of_a_range(model: str) -> None:
    """Microaggregation: k persons of the class have the value, or there is no mean."""
    table = people(n=200)
    declared = replace(DECLARED, id=None)
    method = next(name for name in MODELS[model].methods if name != "best")
    plan = replace(PLAN, model=model, method=method, promise=Promise(k=4), measures=["age"])
    made = anonymize(table, declared, plan)
    out = made.publication.frame
    assert out.columns == ["class_id", "job", "city", "illness", "count", "mean_age"]
    ages = defaultdict(list)
    for row, at in enumerate(made.publication.out_row.tolist()):
        ages[out["class_id"][at]].append(table.frame["age"][row])
    withheld = 0
    for c, own in ages.items():
        there = [int(age) for age in own if age != "?"]
        shown = out.filter(class_id=c)["mean_age"].unique().to_list()
        withheld += len(there) < 4
        mean = None if len(there) < 4 else pytest.approx(sum(there) / len(there), abs=0.0051)
        assert shown == [mean]
    noted = [warning for warning in made.report.warnings if "fewer than k persons" in warning]
    assert len(noted) == (withheld > 0)
    assert made.report.qis[0].name == "age"


def test_a_measure_that_is_no_number_and_a_name_that_is_taken_are_refused() -> None:
    table = tolls()
    odd = table.frame.with_columns(pl.lit("secret").alias("toll"), pl.lit("1").alias("count"))
    with pytest.raises(InputError, match=r"column toll, row 1: is not a number$"):
        anonymize(TextTable(table.path, odd), TOLLS, KACA)
    with pytest.raises(InputError, match=r"no column other"):
        anonymize(table, TOLLS, replace(KACA, measures=["other"]))
    kept = replace(TOLLS, keep=["count"])
    with pytest.raises(InputError, match=r"column count: the release has one of this name"):
        anonymize(TextTable(table.path, odd), kept, replace(KACA, measures=[]))


def test_sections_are_alike_where_their_numbers_are_as_in_the_source() -> None:
    rows = {"section": ["S1", "S20", "S21", "S3"] * 2, "plate": list("abcdefgh")}
    declared = Declared(qis=["section"], id="plate")
    plan = replace(KACA, labels={"section": "prefix"}, measures=[])
    made = anonymize(TextTable(Path("t"), pl.DataFrame(rows)), declared, plan)
    assert set(made.publication.frame["section"]) == {"S区域", "S2区域"}


def test_means_change_no_class() -> None:
    """Sensitive values alternate among equal rows, whatever is measured."""
    rng = np.random.default_rng(3)
    illness = rng.choice(["a", "a", "a", "b", "c"], 600)
    table = pl.DataFrame(
        {"job": rng.choice(["x", "y"], 600), "ill": illness, "pay": rng.random(600)}
    )
    plan = replace(PLAN, method="printed", model="kld", promise=Promise(k=4, l=3))
    declared = Declared(qis=["job"], sensitive=["ill"])
    without, measured = (
        anonymize(TextTable(Path("t.csv"), table), declared, each).report.n_classes
        for each in (plan, replace(plan, measures=["pay"]))
    )
    assert measured == without > 60
