"""The minimizer finds the borders of the model itself, and keeps what has fewer distinct rows."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.tree import DecisionTreeClassifier

from anonymizer.domain.arrays import FloatArray
from anonymizer.estimators import Minimizer
from anonymizer.estimators.model_borders import ModelBorders, fewest_borders


def test_a_tree_s_own_borders_keep_the_score_where_levels_would_leave_columns() -> None:
    rows, truth = load_breast_cancer(return_X_y=True)
    columns = rows[:, [0, 1, 4, 20, 24]]
    known, others, label, _ = train_test_split(columns, truth, test_size=0.5, random_state=14)
    model = DecisionTreeClassifier(random_state=0).fit(known, label)
    minimizer = Minimizer(model, target_score=0.99).fit(others)
    assert minimizer.generalizations_["untouched"] == []
    assert minimizer.score_ >= 0.99
    assert minimizer.distinct_rows_ < (len(others) - len(minimizer.learned_rows_)) / 2


@given(st.integers(0, 30), st.integers(2, 40), st.integers(1, 4))
@settings(max_examples=20)
def test_with_all_of_its_borders_a_model_answers_as_before_whatever_the_rows(
    seed: int, n: int, n_columns: int
) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.choice([rng.normal(size=5), 1e6 * rng.normal(size=5)][seed % 2], (n, n_columns))
    model = DecisionTreeClassifier(random_state=0).fit(rows, rng.integers(3, size=n))
    cuts = [np.unique(model.tree_.threshold[model.tree_.feature == j]) for j in range(n_columns)]
    borders = ModelBorders.of(cuts, rows[: max(1, n // 2)])
    more = np.concatenate([rows, rng.normal(size=(50, n_columns)) * 10.0 ** rng.integers(-3, 7)])
    class_of, middle = borders.places(more)
    assert (model.predict(middle[class_of]) == model.predict(more)).all()


def test_fewer_borders_are_kept_as_far_as_the_target_allows() -> None:
    values = np.arange(64.0)[:, None]
    cuts: list[FloatArray] = [np.arange(64.0)[:-1] + 0.5]
    for most in (1, 2, 5, 33):
        found = fewest_borders(cuts, values, lambda b, most=most: len(b.cuts[0]) >= most)  # type: ignore[misc]
        assert found is not None
        assert most <= len(found.cuts[0]) < 2 * most
    assert fewest_borders(cuts, values, lambda _: False) is None


@pytest.mark.parametrize("target", [0.9, 0.99])
def test_a_forest_keeps_the_target_and_the_promise(target: float) -> None:
    rows, truth = load_breast_cancer(return_X_y=True)
    columns = rows[:, [0, 1, 4, 20, 24]]
    model = RandomForestClassifier(5, random_state=0, max_depth=4).fit(columns[::2], truth[::2])
    for k in (1, 5):
        minimizer = Minimizer(model, target_score=target, k=k).fit(columns[1::2])
        assert minimizer.score_ >= target * minimizer.original_score_
        shown = np.asarray(minimizer.transform(columns[1::2][minimizer.learned_rows_]))
        if not minimizer.generalizations_["untouched"]:
            assert np.unique(shown, axis=0, return_counts=True)[1].min() >= k


def test_a_model_without_thresholds_is_minimized_by_levels_alone() -> None:
    rows, truth = load_breast_cancer(return_X_y=True)
    model = LogisticRegression().fit(rows[:, :3], truth)
    minimizer = Minimizer(model, target_score=0.8).fit(rows[:, :3])
    assert minimizer.score_ >= 0.8
