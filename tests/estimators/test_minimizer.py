from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from anonymizer.domain.arrays import FloatArray
from anonymizer.estimators import Minimizer
from tests.estimators.made import frame


def _classifier() -> tuple[Any, FloatArray]:
    rows, label = load_breast_cancer(return_X_y=True)
    model = make_pipeline(StandardScaler(), LogisticRegression())
    return model.fit(rows[::2], label[::2]), rows[1::2]


def _regressor() -> tuple[Any, FloatArray]:
    rows, size = load_diabetes(return_X_y=True)
    model = RandomForestRegressor(10, max_depth=6, random_state=0)
    return model.fit(rows[::2], size[::2]), rows[1::2]


@pytest.mark.parametrize("model_of", [_classifier, _regressor])
def test_the_model_keeps_its_score_on_rows_that_were_kept_back_with_test_data_alone(
    model_of: Callable[[], tuple[Any, FloatArray]],
) -> None:
    model, rows = model_of()
    found = {share: Minimizer(model, target_score=share).fit(rows) for share in (0.7, 0.9, 0.97)}
    for share, minimizer in found.items():
        assert minimizer.original_score_ == 1.0
        assert minimizer.score_ >= share
        assert minimizer.estimator_ is model
        assert minimizer.deletion_ratio_ == 0.0
    assert found[0.7].ncp_ > found[0.97].ncp_
    assert found[0.7].ncp_ > 0.3


@pytest.mark.parametrize("seed", range(4))
def test_nothing_is_released_where_a_level_without_releases_keeps_the_score(seed: int) -> None:
    """One border through one column is enough for this model."""
    rows, label = load_breast_cancer(return_X_y=True)
    model = KNeighborsClassifier().fit(rows[::2, :10], label[::2])
    minimizer = Minimizer(model, target_score=0.9, random_state=seed).fit(rows[1::2, :10])
    assert minimizer.score_ >= 0.9
    assert minimizer.generalizations_["untouched"] == []
    assert minimizer.distinct_rows_ == 2
    alone = clone(minimizer).set_params(estimator=FrozenEstimator(model), release=False)
    assert alone.fit(rows[1::2, :10]).distinct_rows_ == 2


def test_the_distinct_rows_are_those_of_the_generalized_test_rows() -> None:
    model, rows = _regressor()
    minimizer = Minimizer(model, target_score=0.9).fit(rows)
    test = np.setdiff1d(np.arange(len(rows)), minimizer.learned_rows_)
    shown = minimizer.transform(rows[test])
    assert minimizer.distinct_rows_ == len(np.unique(shown, axis=0)) > 1


def test_without_releases_a_score_that_no_level_keeps_is_refused() -> None:
    rows = np.random.default_rng(0).normal(size=(200, 3))
    model = LinearRegression().fit(rows, rows.sum(axis=1))  # it has no borders of its own
    with pytest.raises(ValueError, match="no level of generalization keeps a score of 1, the best"):
        Minimizer(model, target_score=1.0, release=False).fit(rows)


def test_the_score_is_the_one_on_generalized_rows() -> None:
    model, rows = _classifier()
    minimizer = Minimizer(model, target_score=0.9).fit(rows)
    shown = minimizer.transform(rows)
    agree = (model.predict(shown) == model.predict(rows)).mean()
    assert agree > 0.85
    kept = [int(name[1:]) for name in minimizer.generalizations_["untouched"]]
    np.testing.assert_array_equal(shown[:, kept], rows[:, kept])
    others = np.setdiff1d(np.arange(rows.shape[1]), kept)
    assert len(others)
    assert len(np.unique(shown[:, others], axis=0)) <= minimizer.n_cells_


def test_truth_can_be_scored_against_too_and_a_score_of_ones_own() -> None:
    model, rows = _classifier()
    label = load_breast_cancer(return_X_y=True)[1][1::2]
    minimizer = Minimizer(model, target_score=0.95, scoring="roc_auc").fit(rows, label)
    assert 0.9 < minimizer.original_score_ < 1.0
    assert minimizer.score_ >= 0.95 * minimizer.original_score_


def test_a_score_below_zero_may_lose_as_large_a_part() -> None:
    model, rows = _regressor()
    against = model.predict(rows)[::-1]
    minimizer = Minimizer(model, target_score=0.9).fit(rows, against)
    assert minimizer.original_score_ < 0
    assert minimizer.score_ >= 1.1 * minimizer.original_score_


def test_nothing_is_generalized_where_nothing_may_be_lost() -> None:
    rows = np.random.default_rng(0).normal(size=(200, 3))
    model = LinearRegression().fit(rows, rows.sum(axis=1))  # it has no borders of its own
    minimizer = Minimizer(model, target_score=1.0).fit(rows)
    np.testing.assert_array_equal(minimizer.transform(rows), rows)
    assert minimizer.ncp_ == 0.0
    assert minimizer.generalizations_ == {
        "ranges": {},
        "categories": {},
        "untouched": ["x0", "x1", "x2"],
    }


def test_what_the_model_does_not_look_at_is_generalized_away() -> None:
    rows = np.random.default_rng(0).integers(0, 10, size=(300, 3)).astype(float)
    model = DecisionTreeClassifier().fit(rows, rows[:, 1] > 4)
    minimizer = Minimizer(model, target_score=1.0).fit(rows)
    assert minimizer.generalizations_ == {
        "ranges": {"x0": (), "x1": (pytest.approx(4.5),), "x2": ()},
        "categories": {},
        "untouched": [],
    }
    assert minimizer.n_cells_ == 2


def test_categories_and_data_frames_are_served_and_cells_have_k_persons_and_l_values() -> None:
    table = frame(200)
    told = [row["job"] == "baker" and row["age"] > 30 for row in table.iter_rows(named=True)]
    bakers = FunctionTransformer(_bakers)
    model = make_pipeline(bakers, DecisionTreeClassifier()).fit(table, told)
    roles: dict[str, Any] = {"categorical": ["job", "ill"], "untouched": ["note"]}
    person = np.arange(200) // 2
    minimizer = Minimizer(model, k=8, l=2, sensitive=["ill"], target_score=0.98, **roles)
    minimizer.set_output(transform="polars").fit(table, person=person)
    assert minimizer.generalizations_["untouched"] == ["ill", "note"]
    assert ("baker",) in minimizer.generalizations_["categories"]["job"]
    shown: Any = minimizer.transform(table)
    assert shown["note"].to_list() == table["note"].to_list()
    behind: dict[object, set[int]] = {}
    for row, who in zip(shown.iter_rows(), person, strict=True):
        behind.setdefault(row[:3], set()).add(int(who))
    assert min(map(len, behind.values())) >= 8


def _bakers(table: pl.DataFrame) -> pl.DataFrame:
    return table.select(pl.col("age"), (pl.col("job") == "baker").cast(pl.Int8))


def test_a_model_that_is_not_fitted_is_unless_there_is_nothing_to_fit_it_on() -> None:
    rows = np.random.default_rng(0).normal(size=(100, 2))
    model = DecisionTreeClassifier(random_state=0)
    with pytest.raises(NotFittedError):
        Minimizer(model).fit(rows)
    minimizer = Minimizer(model).fit(rows, rows[:, 0] > 0)
    assert minimizer.estimator_ is not model
    pipe = make_pipeline(Minimizer(FrozenEstimator(minimizer.estimator_)), DecisionTreeClassifier())
    assert pipe.fit(rows, rows[:, 0] > 0).score(rows, rows[:, 0] > 0) > 0.9


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target_score": 1.1}, "target_score: must be a number from 0 to 1"),
        ({"test_size": 1.0}, "test_size between them"),
        ({"test_size": "a"}, "test_size: must be a number"),
        ({"k": 0}, "k: must be a whole number of 1 or more"),
        ({"k": True}, "k: must be a whole number"),
        ({"l": 1.5}, "l: must be a whole number"),
        ({"k": 61}, "the promise cannot be kept: there are 60 persons, k = 61"),
        ({"k": 2, "l": 3}, "l = 3 is more than k = 2"),
    ],
)
def test_what_cannot_be_is_refused(options: dict[str, Any], message: str) -> None:
    rows = np.random.default_rng(0).normal(size=(100, 2))
    model = DecisionTreeClassifier().fit(rows, rows[:, 0] > 0)
    with pytest.raises(ValueError, match=message):
        Minimizer(model, **options).fit(rows)


def test_few_rows_serve_for_both() -> None:
    rows = np.arange(8.0)[:, None]
    model = DecisionTreeClassifier().fit(rows, rows[:, 0] > 3)
    assert Minimizer(model).fit(rows).n_cells_ == 2


def test_the_seed_reaches_the_model_unless_it_has_one_of_its_own() -> None:
    rows, label = load_breast_cancer(return_X_y=True)
    plain = RandomForestClassifier(5, max_depth=3)
    model = make_pipeline(StandardScaler(), plain)
    fitted = [
        Minimizer(model, target_score=0.8, random_state=7).fit(rows, label).estimator_
        for _ in range(2)
    ]
    shown = [each.predict_proba(rows) for each in fitted]
    np.testing.assert_array_equal(shown[0], shown[1])
    assert plain.random_state is None  # the caller's model stays as it was
    own = RandomForestClassifier(5, max_depth=3, random_state=3)
    kept = Minimizer(own, target_score=0.8, random_state=7).fit(rows, label).estimator_
    assert kept.random_state == 3
