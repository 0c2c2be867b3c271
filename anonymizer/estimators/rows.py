"""Rows as scikit-learn hands them over."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_consistent_length, column_or_1d, validate_data

from anonymizer.estimators.data_frames import ColumnArray


class RowTransformer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]  # they have no types
    """A transformer that keeps the columns, some of which may hold categories."""

    def __sklearn_tags__(self) -> Any:  # noqa: ANN401  scikit-learn has no types
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        return tags


def rows_to_learn_from(estimator: object, X: ArrayLike) -> ColumnArray:  # noqa: N803  as there
    """Return `X` as an array, shape (n, columns), and let the estimator remember its columns."""
    rows: ColumnArray = validate_data(estimator, X, dtype=None, ensure_min_samples=2)
    return rows


def rows_to_transform(estimator: object, X: ArrayLike) -> ColumnArray:  # noqa: N803  as there
    """Return `X` as an array, shape (n, columns), of the columns that were learned from."""
    rows: ColumnArray = validate_data(estimator, X, dtype=None, reset=False)
    return rows


def as_given(rows: ColumnArray, X: Any) -> Any:  # noqa: ANN401, N803
    """Return rows as what `X` is, a data frame or an array: a model asks for what it learned."""
    if not hasattr(X, "columns"):
        return rows
    return type(X)({name: rows[:, j].tolist() for j, name in enumerate(X.columns)})


def names_of(estimator: Any) -> list[str]:  # noqa: ANN401  scikit-learn has no types
    """Return the names of the columns learned from; `x0`, `x1` … where there were none."""
    return [str(name) for name in estimator.get_feature_names_out()]


def target_of(y: ArrayLike, rows: ColumnArray) -> tuple[ColumnArray, bool]:
    """Return a target for each row, and whether it is a number rather than a class."""
    target: ColumnArray = column_or_1d(y)
    check_consistent_length(rows, target)
    return target, bool(type_of_target(target, raise_unknown=True).startswith("continuous"))


def seed_of(random_state: Any) -> int:  # noqa: ANN401  an int, a generator or None
    """Return the seed that a `random_state` stands for."""
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
