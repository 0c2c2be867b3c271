import pickle
from collections import defaultdict
from math import isnan
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline

from anonymizer.algorithms.records.problem import Cost
from anonymizer.app.anonymize.plan import declared_of, make_plan
from anonymizer.app.anonymize.table_anonymization import anonymize
from anonymizer.app.table_options import TableOptions
from anonymizer.domain.arrays import Int32Array
from anonymizer.errors import GuaranteeError, InputError
from anonymizer.estimators import Anonymizer, Minimizer
from anonymizer.estimators.data_frames import seed_of
from anonymizer.files.coded_table import CodedTable
from anonymizer.files.tables import TextTable
from tests.estimators.made import frame, tables

MODELS = [
    ("cells", None),
    ("kd", "hilbert"),
    ("kd", "mondrian"),
    ("kld", "hilbert"),
    ("kld", None),
    ("kaca", "fast"),
]
ROLES: dict[str, Any] = {"categorical": [1, 2], "sensitive": [2]}


@pytest.mark.parametrize(("model", "method"), MODELS)
@given(table=tables(), k=st.integers(2, 5), data=st.data())
@settings(max_examples=40)
def test_who_reads_what_is_published_finds_k_persons_and_l_values_behind_everything(
    model: str, method: str | None, table: list[list[object]], k: int, data: st.DataObject
) -> None:
    rows = np.array(table, dtype=object)
    person = data.draw(st.lists(st.integers(0, 9), min_size=len(rows), max_size=len(rows)))
    l = data.draw(st.integers(1, min(k, 3)))  # noqa: E741
    estimator = Anonymizer(model, method=method, k=k, d=1, l=l, **ROLES)
    try:
        published = estimator.fit_transform(rows, rows[:, 0].astype(int) % 2, person=person)
    except ValueError as impossible:
        assert "the promise cannot be kept: " in str(impossible)  # noqa: PT017  what is possible is drawn
        n_values = len({row[2] for row in table})
        few = len(set(person)) < k or n_values < l or {row[1] for row in table} == {"?"}
        assert few or len(set(person)) < len(rows)  # else every value has been drawn
        return
    assert len(set(person)) >= k
    persons, values = defaultdict(list), defaultdict(set)
    for row, who, c in zip(published.tolist(), person, estimator.class_of_.tolist(), strict=True):
        if c >= 0:
            persons[tuple(row[:2])].append(who)
            values[tuple(row[:2])].add(row[2])
    assert min(len(set(who)) for who in persons.values()) >= k
    assert min(len(ills) for ills in values.values()) >= l
    # One row of each person is there, so that nobody weighs more than others.
    assert sorted(who for each in persons.values() for who in each) == sorted(set(person))
    valid = estimator.valid_rows_
    assert published[valid, 2].tolist() == rows[valid, 2].tolist()


@given(tables(), st.floats(1.5, 3.0), st.sampled_from(["cells", "kd", "kaca"]))
@settings(max_examples=40)
def test_a_suppressed_row_keeps_its_place_and_nothing_else(
    table: list[list[object]], entropy_l: float, model: str
) -> None:
    rows = np.array(table, dtype=object)
    estimator = Anonymizer(model, k=3, d=1, entropy_l=entropy_l, **ROLES)
    try:
        published = estimator.fit_transform(rows)
    except ValueError as impossible:
        assert "the promise" in str(impossible)  # noqa: PT017  what is possible is drawn
        return
    gone = np.array(
        [all(isinstance(cell, float) and isnan(cell) for cell in row) for row in published.tolist()]
    )
    np.testing.assert_array_equal(np.flatnonzero(~gone), estimator.valid_rows_)
    np.testing.assert_array_equal(gone, estimator.class_of_ == -1)
    assert estimator.deletion_ratio_ == pytest.approx(gone.mean())
    assert estimator.transform(rows[:0:-1]).shape == (len(rows) - 1, 3)


def test_without_any_class_there_is_nothing_to_transform_with() -> None:
    rows = np.array([[0, "baker", "flu"], [1, "clerk", "flu"], [2, "baker", "gout"]], dtype=object)
    estimator = Anonymizer("kd", k=2, d=1, entropy_l=1.99, **ROLES)
    with pytest.raises(ValueError, match="no class that keeps the promise was found"):
        estimator.fit(rows)


@given(tables(), st.sampled_from(["kd", "kld", "cells"]), st.integers(2, 4), st.integers(3, 99))
@settings(max_examples=60)
def test_classes_are_those_of_the_same_table_on_the_command_line(
    rows: list[list[object]], model: str, k: int, n_persons: int
) -> None:
    frame = pl.DataFrame(rows, schema=["age", "job", "ill"], orient="row")
    person = [f"p{i % n_persons}" for i in range(len(frame))]
    options = TableOptions(
        qi=["age", "job"], sa="ill", id="who", sources=[["age"], ["job"]], model=model, k=k, d=1,
        l=1, categories="job", max_share=1, max_source_share=1, time_budget_s=0, seed=seed_of(0),
    )  # fmt: skip
    made = Anonymizer(model, k=k, d=1, l=1, time_budget=0.0, **ROLES)
    table = TextTable(Path("X"), frame.with_columns(who=pl.Series(person)))
    try:
        released = anonymize(table, declared_of(options), make_plan(options)).publication
    except InputError:
        with pytest.raises(ValueError, match="X: "):
            made.fit(frame, person=person)
        return
    made.fit(frame, person=person)
    class_of = np.append(released.frame["class_id"].to_numpy(), -1)[released.out_row]
    assert _classes(made.class_of_) == _classes(class_of)


def _classes(class_of: Int32Array) -> set[frozenset[int]]:
    return {frozenset(np.flatnonzero(class_of == c).tolist()) for c in set(class_of.tolist())}


def test_a_person_of_many_rows_weighs_as_much_as_others() -> None:
    rows = np.array([[30 + i % 3, "flu"] for i in range(20)] + [[31, "gout"]] * 80, object)
    person = [*range(20), *[99] * 80]
    made = Anonymizer("kd", k=5, d=1, categorical=[1], sensitive=[1], method="hilbert")
    published = made.fit_transform(rows, person=person)
    assert np.count_nonzero(published[made.valid_rows_, 1] == "gout") == 1
    assert made.deletion_ratio_ == pytest.approx(79 / 100)
    assert made.measures_.k >= 5


@pytest.mark.parametrize(("model", "method"), MODELS)
def test_other_rows_show_only_what_was_published(model: str, method: str | None) -> None:
    columns = ["age", "job", "pay"]
    table, others = frame().select(columns), frame(seed=1).select(columns)
    estimator = Anonymizer(model, method=method, k=4, l=1, categorical=["job"])
    published = estimator.fit_transform(table, [0, 1] * 30)
    shown = estimator.transform(others.with_columns(job=pl.lit("unheard of")))
    assert set(map(tuple, shown.tolist())) <= set(map(tuple, published.tolist()))
    assert estimator.transform(table[:1]).tolist() == published[:1].tolist()


def test_a_search_loses_less_the_longer_it_may_and_without_time_no_more_than_the_sweep() -> None:
    rows = np.random.default_rng(0).integers(0, 9, (2_500, 3)).astype(float)
    swept, none, some = (
        Anonymizer("kd", method=method, time_budget=budget).fit(rows)
        for method, budget in (("hilbert", 1.0), ("best", 0.0), ("best", 1.0))
    )
    lost = [each.measures_.gcp[Cost.RANGE] for each in (swept, none, some)]
    assert lost[2] < 0.97 * lost[1] < lost[0]
    assert some.measures_.k >= 5


def test_nearly_one_value_is_not_enough_where_nothing_is_said() -> None:
    rows = np.array([[0.0]] * 299 + [[1.0]])
    with pytest.raises(ValueError, match="no class that keeps the promise was found"):
        Anonymizer("kd").fit(rows)
    assert Anonymizer("kd", max_share=1.0).fit(rows).n_classes_ == 1
    assert Anonymizer("kd", d=1).fit(rows).n_classes_ > 1


def test_columns_go_by_name_or_index_and_the_untouched_pass() -> None:
    table = frame()
    roles: dict[str, Any] = {
        "sensitive": ["pay"],
        "bands": {"pay": [25, 30, 35]},
        "untouched": [3, "note"],
    }
    estimator = Anonymizer(k=5, l=3, categorical=["job", -1, "ill"], **roles)
    published = estimator.set_output(transform="polars").fit_transform(table)
    assert published.columns == table.columns
    for untouched in ("pay", "ill", "note"):
        assert published[untouched].to_list() == table[untouched].to_list()
    bands = defaultdict(set)
    for row in published.iter_rows(named=True):
        bands[row["age"], row["job"]].add(sum(row["pay"] >= edge for edge in (25, 30, 35)))
    assert min(len(each) for each in bands.values()) >= 3
    assert estimator.measures_.l == (min(len(each) for each in bands.values()),)


def test_categories_of_an_array_of_numbers_stay_numbers() -> None:
    rows = np.column_stack([np.arange(20.0), np.arange(20) % 2 + 7.0])
    published = Anonymizer(k=5, categorical=[1]).fit_transform(rows)
    assert published.dtype == np.float64
    assert set(published[:, 1]) <= {7.0, 8.0}


def test_a_pipeline_learns_from_what_is_published_and_a_copy_knows_as_much() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(300, 4))
    label = (rows[:, 0] > 0).astype(int)
    pipe = make_pipeline(Anonymizer(k=10), RandomForestClassifier(10, random_state=0))
    assert clone(pipe).fit(rows, label).score(rows, label) > 0.95
    fitted = pipe[0].fit(rows, label)
    np.testing.assert_array_equal(
        pickle.loads(pickle.dumps(fitted)).transform(rows),  # noqa: S301  our own
        fitted.transform(rows),
    )


def test_a_number_is_followed_as_well_as_a_class() -> None:
    rng = np.random.default_rng(0)
    rows = rng.uniform(size=(400, 3))
    size = 10 * rows[:, 1] + rng.normal(size=400)
    kept = Anonymizer(k=10).fit(rows, size).measures_
    at = Anonymizer(k=10).fit_transform(rows, size)[:, 1]
    assert np.corrcoef(at, rows[:, 1])[0, 1] > 0.97
    assert kept.k >= 10


class _Careless(Anonymizer):
    """Puts every row into a class of its own."""

    def _classes(self, coded: CodedTable, *_: object) -> Int32Array:
        self.cells_ = None
        return np.arange(coded.records.n, dtype=np.int32)


def test_classes_that_do_not_keep_the_promise_are_not_published() -> None:
    with pytest.raises(GuaranteeError):
        _Careless(k=2).fit_transform(np.arange(10.0)[:, None])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": "fog"}, "model: must be one of kd, kld, kaca, cells"),
        ({"method": "fast"}, "method of cells must be one of tree"),
        ({"time_budget": -1.0}, "time_budget: must be a number of 0 or more"),
        ({"time_budget": float("inf")}, "time_budget and share_price finite"),
        ({"k": 2, "l": 3}, "l = 3 is more than k = 2"),
        ({"l": 2}, "no column is sensitive, and bounds of l, entropy_l, t need one"),
        ({"t": 0.2}, "no column is sensitive, and bounds of l, entropy_l, t need one"),
        ({"categorical": [], "sensitive": ["ill"]}, "column job is not numeric"),
        ({"sensitive": ["home"]}, "there is no column 'home'"),
        ({"sensitive": [5]}, "there is no column 5"),
        ({"sensitive": ["ill"], "untouched": ["ill"]}, "ill cannot be both sensitive and untou"),
        ({"sensitive": ["ill"], "bands": {"ill": [1]}}, "ill cannot be both categorical and in"),
        ({"bands": {"age": [1]}}, "age has bands but is not sensitive"),
        ({"untouched": [0, 1, 2, 3, 4]}, "no column is a quasi-identifier"),
        ({"k": 61}, "the promise cannot be kept: there are 60 persons, k = 61"),
    ],
)
def test_what_cannot_be_is_refused_in_words_without_a_value(
    options: dict[str, Any], message: str
) -> None:
    estimator = Anonymizer(**({"categorical": ["job", "ill", "note"]} | options))
    with pytest.raises(ValueError, match=message) as refused:
        estimator.fit(frame(), [0, 1] * 30)
    assert not any(value in str(refused.value) for value in ("baker", "clerk", "n0", "flu"))
    assert refused.value.__cause__ is None


@pytest.mark.parametrize(
    "unknown",
    [
        np.array([1.0, float("nan")], object),  # each of these is unlike itself
        [1.0, float("nan")],
        ["ann", None],
        np.array(["2024-01-01", "NaT"], "M8[D]"),
    ],
    ids=["objects", "numbers", "texts", "times"],
)
@pytest.mark.parametrize("model", ["kd", "minimizer"])
def test_a_row_of_nobody_knows_whom_is_not_counted_as_a_person(model: str, unknown: Any) -> None:  # noqa: ANN401
    rows = np.arange(60.0)[:, None] % 7
    person = np.asarray(unknown).repeat(30)
    estimator = Anonymizer("kd", k=3) if model == "kd" else Minimizer(Ridge(), k=3)
    with pytest.raises(ValueError, match=r"person is missing in \d+ of \d+ rows"):
        estimator.fit(rows, rows[:, 0], person=person)


@pytest.mark.parametrize("options", [{"max_share": float("nan")}, {"t": float("nan")}])
def test_a_criterion_that_is_no_number_is_not_a_promise_of_nothing(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="must be"):
        Anonymizer("kd", **options).fit(np.arange(60.0)[:, None] % 7)


def test_of_equal_rows_in_several_classes_the_first_tells_the_class() -> None:
    rows = np.array([0.0] * 7 + [1.0] * 5)[:, None]
    estimator = Anonymizer("kd", k=3, d=1, method="hilbert").fit(rows)
    assert len(set(estimator.class_of_[:7].tolist())) == 3
    assert estimator.representatives_[estimator.class_of_[6]] == [1.0]
    assert estimator.transform([[0.0]]).tolist() == [[0.0]]


def test_an_infinite_number_and_a_lost_person_are_refused() -> None:
    rows = frame().select("age", "job").to_numpy()
    with pytest.raises(ValueError, match="one person for each row"):
        Anonymizer(categorical=[1]).fit(rows, person=[1, 2])
    rows[3, 0] = float("inf")
    with pytest.raises(ValueError, match="x0 has a number that is not finite"):
        Anonymizer(categorical=[1]).fit(rows)


def test_a_preferred_share_leaves_fewer_rows_in_classes_of_one_frequent_value() -> None:
    rng = np.random.default_rng(3)
    rows = np.column_stack([rng.integers(0, 30, 60), rng.permutation(60) % 3])
    n_above = []
    for share in (1.0, 0.5):
        made = Anonymizer("kd", k=4, d=1, prefer_share=share, share_price=0.5).fit(rows)
        codes = rows[:, 1]
        shares = [
            np.bincount(codes[made.class_of_ == c]).max() / (made.class_of_ == c).sum()
            for c in range(made.n_classes_)
        ]
        n_above.append(sum(each > 0.5 for each in shares))
    assert n_above[1] < 0.5 * n_above[0]


@pytest.mark.parametrize(
    ("model", "options"),
    [("cells", {}), ("kd", {"method": "hilbert"}), ("kaca", {})],
)
def test_a_preferred_share_that_the_method_does_not_know_is_refused(
    model: str, options: dict[str, Any]
) -> None:
    rows = np.arange(40.0).reshape(20, 2)
    with pytest.raises(ValueError, match="prefer_share"):
        Anonymizer(model, k=2, prefer_share=0.5, **options).fit(rows)
