"""Rows of scikit-learn estimators: arrays and data frames, their columns, and back."""

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from functools import wraps
from numbers import Real
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import (
    check_array,
    check_consistent_length,
    column_or_1d,
    validate_data,
)

from anonymizer.algorithms.records.task import ModelTarget
from anonymizer.domain.arrays import BoolArray, FloatArray
from anonymizer.estimators.frame_cells import cells_of, check_names, is_frame

ColumnArray: TypeAlias = NDArray[Any]
"""Floats, or objects if there are categories in addition to numbers."""

Column: TypeAlias = int | str
"""A column by its index, or by its name if columns have names."""

Selected: TypeAlias = Sequence[Column] | Sequence[bool] | Callable[[Any], Any]
"""Columns: a list of them, a mask with a truth value for each column, or a function that returns
either for the table, such as scikit-learn's `make_column_selector`."""


def selected(columns: Selected, names: Sequence[str], table: object) -> list[int]:
    """Return the indices of selected columns."""
    found = list(columns(table) if callable(columns) else columns)
    if found and all(isinstance(each, bool | np.bool_) for each in found):
        if len(found) != len(names):
            raise ValueError(f"a mask of {len(found)} columns for a table of {len(names)}")
        return np.flatnonzero(found).tolist()
    return [place_of(column, names) for column in found]


def place_of(column: Column, names: Sequence[str]) -> int:
    """Return the index of a column; ValueError if there is none."""
    index = names.index(column) if isinstance(column, str) and column in names else column
    if not isinstance(index, int | np.integer) or not -len(names) <= index < len(names):
        raise ValueError(f"there is no column {column!r}")
    return int(index) % len(names)


def by_place(of: Mapping[Column, Any] | None, names: Sequence[str]) -> dict[int, Any]:
    """Return what is stated by column, by the indices of the columns."""
    if not isinstance(of, Mapping | None):
        raise TypeError("bands and bounds of columns must be given by column: {column: ...}")
    return {place_of(column, names): each for column, each in (of or {}).items()}


def lacks_value(column: ColumnArray) -> BoolArray:
    """Return which cells are None, NaN, NaT or the missing value of pandas."""
    if column.dtype.kind == "f":
        return np.isnan(column)
    if column.dtype.kind in "mM":
        return np.isnat(column)
    if column.dtype.kind != "O":
        return np.zeros(len(column), bool)
    # What is missing is not equal to itself; for pandas it is not known whether it is.
    alike = ((cell == cell, cell is None) for cell in column)  # noqa: PLR0124
    lacks = [none or not (isinstance(same, bool | np.bool_) and same) for same, none in alike]
    return np.array(lacks, bool)


def holds_numbers(column: ColumnArray) -> bool:
    """Return whether every value of a column is a number, and neither a text nor a truth value."""
    if column.dtype.kind != "O":
        return column.dtype.kind in "iuf"
    there = column[~lacks_value(column)]
    return all(isinstance(cell, Real) and not isinstance(cell, bool) for cell in there)


def numbers(column: ColumnArray, name: str) -> FloatArray:
    """Return a column as finite numbers, NaN where it lacks a value."""
    lacks = lacks_value(column)
    found = np.full(len(column), np.nan)
    try:
        found[~lacks] = column[~lacks].astype(np.float64)
    except (TypeError, ValueError):
        # Not chained: numpy's message quotes the value.
        raise ValueError(f"column {name} is not numeric: is it categorical?") from None
    if np.isinf(found).any():
        raise ValueError(f"column {name} has a number that is not finite")
    return found + 0.0  # no minus zero


def floats(rows: ColumnArray) -> FloatArray:
    """Return new rows of numbers, NaN where they lack a value."""
    if rows.dtype.kind != "O":
        return rows.astype(np.float64)
    lacks = np.column_stack([lacks_value(column) for column in rows.T])
    return np.where(lacks, np.nan, rows).astype(np.float64)


def objects(rows: ColumnArray) -> ColumnArray:
    """Return new rows of objects, with times as `datetime`."""
    # numpy makes plain integers of times in nanoseconds.
    return (rows.astype("datetime64[us]") if rows.dtype.kind == "M" else rows).astype(object)


class RowTransformer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]  # they have no types
    """Base of the estimators: a transformer of rows that may contain categories."""

    def __init_subclass__(cls, **options: Any) -> None:  # noqa: ANN401  scikit-learn's own
        """Let data frames that `set_output` asks for have the types of their columns."""
        own = {"transform", "fit_transform"} & cls.__dict__.keys()
        for name in own:
            setattr(cls, name, _with_nulls(cls.__dict__[name]))
        super().__init_subclass__(**options)  # wraps them, too
        for name in own:
            setattr(cls, name, _with_types(cls.__dict__[name]))

    def __sklearn_tags__(self) -> Any:  # noqa: ANN401  scikit-learn has no types
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        return tags


def _with_nulls(method: Callable[..., ColumnArray]) -> Callable[..., ColumnArray]:
    """Return a method whose rows have None for NaN beside text and times, if polars is asked for.

    polars refuses NaN in a column of text, and in one of times takes all for numbers.
    """

    @wraps(method)
    def nulled(self: object, *args: Any, **options: Any) -> ColumnArray:  # noqa: ANN401  likewise
        rows = method(self, *args, **options)
        if rows.dtype.kind == "O" and _get_output_config("transform", self)["dense"] == "polars":
            for column in rows.T:
                if any(isinstance(cell, str | date) for cell in column):
                    column[lacks_value(column)] = None
        return rows

    return nulled


def _with_types(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method whose data frames have columns of numbers, texts and times, not objects.

    scikit-learn makes them of one array, and that is of objects where there are categories.
    """

    @wraps(method)
    def typed(*args: Any, **options: Any) -> Any:  # noqa: ANN401  whatever the method takes
        rows = method(*args, **options)
        if hasattr(rows, "infer_objects"):  # pandas
            return rows.infer_objects()
        if hasattr(rows, "with_columns"):  # polars
            of_objects = [c for c in rows.iter_columns() if c.dtype.is_object()]
            make = type(rows)
            columns = [make({c.name: c.to_list()}, strict=False).to_series() for c in of_objects]
            return rows.with_columns(columns)
        return rows

    return typed


def rows_to_learn_from(
    estimator: object,
    X: ArrayLike,  # noqa: N803  as there
    *,
    may_lack: bool = False,
) -> ColumnArray:
    """Return `X` as an array, shape (n, columns), and record its columns in the estimator.

    `may_lack`: whether values may be missing.
    """
    return _checked(estimator, X, may_lack=may_lack, reset=True, ensure_min_samples=2)


def rows_to_transform(
    estimator: object,
    X: ArrayLike,  # noqa: N803  as there
    *,
    may_lack: bool = False,
) -> ColumnArray:
    """Return `X` as an array, shape (n, columns), after checking its columns against `fit`."""
    return _checked(estimator, X, may_lack=may_lack, reset=False)


def _checked(
    estimator: object,
    X: Any,  # noqa: ANN401, N803
    *,
    may_lack: bool,
    reset: bool,
    **checks: int,
) -> ColumnArray:
    own = {"dtype": None, "ensure_all_finite": "allow-nan" if may_lack else True}
    rows: ColumnArray
    if is_frame(X):
        check_names(X)
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        rows = check_array(cells_of(X), input_name="X", estimator=estimator, **own, **checks)
    else:
        rows = validate_data(estimator, X, reset=reset, **own, **checks)
    return rows


def as_given(rows: ColumnArray, X: Any) -> Any:  # noqa: ANN401, N803
    """Return rows in the type of `X`, data frame or array, as the model expects them."""
    if not hasattr(X, "columns"):
        return rows
    return type(X)({name: rows[:, j].tolist() for j, name in enumerate(X.columns)})


def names_of(estimator: Any) -> list[str]:  # noqa: ANN401  scikit-learn has no types
    """Return the names of the columns seen in `fit`; `x0`, `x1`, ... if they have none."""
    return [str(name) for name in estimator.get_feature_names_out()]


def target_of(y: ArrayLike, rows: ColumnArray) -> ModelTarget:
    """Return a target for each row; a missing class is one more, a missing number the mean."""
    target: ColumnArray = column_or_1d(y)
    check_consistent_length(rows, target)
    lacks = lacks_value(target)
    if lacks.all():
        raise ValueError("y has no value: leave it out")
    there = np.array(target[~lacks].tolist()) if lacks.any() else target
    is_numeric = type_of_target(there, raise_unknown=True).startswith("continuous")
    if lacks.any():
        filled = np.full(len(target), there.mean() if is_numeric else "", object)
        filled[~lacks] = there if is_numeric else there.astype(str)
        target = filled.astype(np.float64 if is_numeric else str)
    return ModelTarget(target, is_numeric=is_numeric)


def seed_of(random_state: Any) -> int:  # noqa: ANN401  an int, a generator or None
    """Return the seed that a `random_state` stands for."""
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
