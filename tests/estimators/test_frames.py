"""Estimators on real data frames: types of columns, missing values, dates, and selectors."""

from datetime import UTC, date, datetime, timedelta
from inspect import signature
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.compose import make_column_selector

from anonymizer.cli.anonymize import anonymize
from anonymizer.estimators import Anonymizer
from anonymizer.estimators.moments import Clock

N = 60
MODELS = ["cells", "kd", "kaca"]
DAYS = [date(2024, 1, 1) + timedelta(days=i) for i in range(N)]
IN_UTC = [datetime(2024, 1, 1, 8, tzinfo=UTC) + timedelta(minutes=7 * i) for i in range(N)]
TIMES = [time.replace(tzinfo=None) for time in IN_UTC]


def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    age = pd.array(rng.integers(20, 60, N).tolist(), dtype="Int64")
    age[::9] = pd.NA
    pay = rng.normal(30, 5, N).round(1)
    pay[::7] = np.nan
    job: list[Any] = rng.choice(["baker", "clerk", "driver"], N).tolist()
    job[5] = None
    return pd.DataFrame({"age": age, "pay": pay, "job": job})


@pytest.mark.parametrize("model", MODELS)
def test_pandas_columns_keep_their_types_and_missing_values_are_none(model: str) -> None:
    estimator = Anonymizer(model, k=5, d=1, categorical=["job"]).set_output(transform="pandas")
    published = estimator.fit_transform(table())
    assert [column.kind for column in published.dtypes[:2]] == ["f", "f"]
    assert list(published.columns) == ["age", "pay", "job"]
    assert estimator.measures_.k >= 5
    shown = published.dropna(how="all")
    assert shown.groupby(list(shown.columns), dropna=False).size().min() >= 5
    again = estimator.transform(table()[:3])
    pd.testing.assert_frame_equal(again, published[:3])


def test_a_missing_value_does_not_count_towards_d() -> None:
    rows = pd.DataFrame({"age": [1.0] * 30 + [np.nan] * 30})
    with pytest.raises(ValueError, match="the promise cannot be kept"):
        Anonymizer("kd", k=5, d=2).fit(rows)
    with pytest.raises(ValueError, match="column age has no value"):
        Anonymizer("kd", k=5).fit(rows[30:])
    assert Anonymizer("kd", k=5, d=1).fit(rows).n_classes_ > 0


def test_a_value_that_was_never_missing_may_be_missing_later() -> None:
    estimator = Anonymizer("kd", k=5, d=1, method="hilbert").fit(np.arange(20.0)[:, None])
    assert np.isfinite(estimator.transform([[np.nan], [3.0]])).all()


def test_a_missing_value_has_no_band() -> None:
    rows = pd.DataFrame({"age": np.arange(20.0), "pay": [np.nan, *range(19)]})
    estimator = Anonymizer("kd", k=5, sensitive=["pay"], bands={"pay": [5]})
    with pytest.raises(ValueError, match="column pay has bands and lacks values"):
        estimator.fit(rows)


def test_polars_columns_are_no_objects() -> None:
    rows = pl.DataFrame({"age": range(N), "pay": [1.5] * N, "job": ["baker", "clerk", None] * 20})
    estimator = Anonymizer("kd", k=5, d=1, categorical=["job"]).set_output(transform="polars")
    assert estimator.fit_transform(rows).dtypes == [pl.Float64, pl.Float64, pl.String]


def test_polars_shows_null_for_text_and_times_that_are_missing_or_suppressed() -> None:
    rows = pl.DataFrame({"age": [1, 2, 2, 0, 0, 2, 2, 0, 0], "job": [*"abaaabaab"]})
    rows = rows.with_columns(at=pl.lit(TIMES[0]))
    estimator = Anonymizer(
        "kd",
        k=2,
        d=1,
        max_share=0.6,
        method="hilbert",
        categorical=["job"],
        untouched=["at"],
    ).set_output(transform="polars")
    published = estimator.fit_transform(rows)
    assert 0 < len(estimator.valid_rows_) < len(rows)
    suppressed = published[np.flatnonzero(estimator.class_of_ < 0).tolist()]
    assert suppressed["job"].to_list() == suppressed["at"].to_list() == [None, None]
    assert suppressed["age"].is_nan().all()
    assert published["at"].dtype == pl.Datetime

    lacking = pl.DataFrame({"job": [None, None, None, "a", "a", "a"], "age": [1, 1, 1, 2, 2, 2]})
    estimator.set_params(untouched=(), max_share=1.0)
    assert set(estimator.fit_transform(lacking)["job"]) == {None, "a"}


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize("moments", ["at", "untouched"])
def test_a_frame_may_hold_numbers_beside_times(kind: type[Any], moments: str) -> None:
    times = pd.to_datetime(pd.Series(TIMES)).astype("datetime64[us]")
    rows = kind({"age": np.arange(N) % 9, "at": times.to_numpy(), "pay": np.arange(N) / 4})
    untouched = ["at"] if moments == "untouched" else []
    estimator = Anonymizer("kd", k=5, method="hilbert", untouched=untouched).fit(rows)
    assert estimator.feature_names_in_.tolist() == ["age", "at", "pay"]
    published = estimator.transform(rows)
    assert all(isinstance(at, datetime) for at in published[:, 1])
    assert (published[:, 1].tolist() == TIMES) == bool(untouched)
    assert published[:, 0].astype(float).max() <= 8
    with pytest.raises(ValueError, match="feature names"):
        estimator.transform(rows[["at", "age", "pay"]])
    with pytest.raises(ValueError, match="minimum of 2"):
        Anonymizer("kd").fit(rows[:1])


@pytest.mark.parametrize("moments", [DAYS, TIMES, IN_UTC], ids=["dates", "times", "times in UTC"])
@pytest.mark.parametrize("model", ["cells", "kd"])
def test_dates_and_times_are_quasi_identifiers(model: str, moments: list[Any]) -> None:
    rows = pd.DataFrame({"at": pd.Series(moments, dtype=object), "age": np.arange(N) % 9})
    rows.loc[4, "at"] = None
    estimator = Anonymizer(model, k=5, d=1, method=None if model == "cells" else "hilbert")
    published = estimator.fit_transform(rows)
    shown = [at for at in published[:, 0].tolist() if at is not None and at == at]  # noqa: PLR0124
    assert {type(at) for at in shown} == {type(moments[0])}
    assert min(moments) <= min(shown) < max(shown) <= max(moments)
    assert min(shown.count(at) for at in shown) >= 4
    frame = estimator.set_output(transform="pandas").transform(rows)
    assert frame["at"].dtype.kind == ("O" if moments is DAYS else "M")


def test_a_column_of_datetime64_and_one_that_is_mixed() -> None:
    times = pd.to_datetime(pd.Series(TIMES)).astype("datetime64[ns]")
    only = Anonymizer("kd", k=5, method="hilbert").fit(pd.DataFrame({"at": times}))
    assert only.n_classes_ > 1
    two = pd.DataFrame({"at": times, "until": times})
    published = Anonymizer("kd", k=5, method="hilbert", untouched=["until"]).fit_transform(two)
    assert published[:, 1].tolist() == TIMES
    mixed = pd.DataFrame({"at": [*TIMES[:20], "later"]})
    with pytest.raises(ValueError, match="column at is not numeric") as refused:
        Anonymizer("kd", k=5).fit(mixed)
    assert "later" not in str(refused.value)


@pytest.mark.parametrize("moments", [DAYS, IN_UTC], ids=["dates", "times in UTC"])
def test_times_without_a_zone_are_not_taken_for_other_moments(moments: list[Any]) -> None:
    rows = pd.DataFrame({"at": pd.Series(moments, dtype=object)})
    estimator = Anonymizer("kd", k=5, method="hilbert").fit(rows)
    with pytest.raises(ValueError, match=r"column at mixes (dates|times) with something else"):
        estimator.transform(pd.DataFrame({"at": pd.to_datetime(pd.Series(TIMES))}))


def test_halfway_between_two_days_is_the_earlier_one() -> None:
    found = Clock(has_time=False).moments(np.array([1.5, np.nan, -0.5]))
    assert found.tolist() == [date(1970, 1, 2), None, date(1969, 12, 31)]


@pytest.mark.parametrize(
    "selector",
    [
        [False, False, True],
        np.array([False, False, True]),
        lambda rows: [str(rows.columns[2])],
        make_column_selector(dtype_exclude="number"),
        [-1],
    ],
    ids=["mask", "array", "function", "scikit-learn's", "index"],
)
def test_columns_may_be_selected_by_a_mask_or_a_function(selector: Any) -> None:  # noqa: ANN401  any
    rows = table()
    found = Anonymizer("kd", k=5, d=1, categorical=selector, method="hilbert").fit(rows)
    named = Anonymizer("kd", k=5, d=1, categorical=["job"], method="hilbert").fit(rows)
    np.testing.assert_array_equal(found.class_of_, named.class_of_)


def test_what_is_not_stated_means_the_same_as_on_the_command_line() -> None:
    on_the_command_line = signature(anonymize).parameters
    ours = Anonymizer("kd").get_params()
    for name in ("d", "l", "max_share", "method", "entropy_l"):
        assert ours[name] == on_the_command_line[name].default, name
    assert ours["time_budget"] == on_the_command_line["time_budget_s"].default


def test_a_mask_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match="a mask of 2 columns for a table of 3"):
        Anonymizer(k=5, categorical=[True, False]).fit(table())
