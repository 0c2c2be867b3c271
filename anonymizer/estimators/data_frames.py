"""Rows of scikit-learn estimators: the privacy roles of columns, and codes for their values."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import wraps
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

from anonymizer.algorithms.cells.representatives import is_missing
from anonymizer.algorithms.records.attributes import (
    banded,
    banded_attribute,
    categories,
    numbers,
)
from anonymizer.algorithms.records.classes import SUPPRESSED
from anonymizer.algorithms.records.meanings import meanings
from anonymizer.domain.arrays import BoolArray, FloatArray, Int32Array
from anonymizer.domain.records import Attribute, Records, Schema
from anonymizer.estimators.moments import Clock

ColumnArray: TypeAlias = NDArray[Any]
"""Floats, or objects if there are categories in addition to numbers."""

Column: TypeAlias = int | str
"""A column by its index, or by its name if columns have names."""

Selected: TypeAlias = Sequence[Column] | Sequence[bool] | Callable[[Any], Any]
"""Columns: a list of them, a mask with a truth value for each column, or a function that returns
either for the table, such as scikit-learn's `make_column_selector`."""

NO_PLACE = -1.0
"""Position of a category that is not in the domain."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FrameColumns:
    """Roles and domains of columns, learned from the training rows.

    Attributes
    ----------
    names
        Names of all columns.
    qi_columns, sensitive_columns
        Columns of the attributes of `schema`.
    schema
        The attributes; each quasi-identifier is a source of its own.
    edges
        Edges of the bands of each sensitive attribute; None: no bands, each value counts.
    originals
        Original values of the codes of each categorical quasi-identifier, by column.
    clocks
        How moments are numbers, by quasi-identifier with dates or times.
    marker
        The category that means "missing".
    as_objects
        Whether published rows are objects, because some column is not numeric.
    spelling
        By categorical column: the writing that stands for each other one of a value.
    """

    names: tuple[str, ...]
    qi_columns: tuple[int, ...]
    sensitive_columns: tuple[int, ...]
    schema: Schema
    edges: tuple[Sequence[float] | None, ...]
    originals: Mapping[int, ColumnArray]
    clocks: Mapping[int, Clock]
    marker: str | None
    as_objects: bool
    spelling: Mapping[int, Mapping[str, str]]

    def records(self, rows: ColumnArray, person: ArrayLike | None = None) -> Records:
        """Return the training rows as records with codes.

        `person` is the person of each row; None: every row is a person of its own.
        """
        codes = [
            np.searchsorted(qi.position, self._places(rows, j, qi))
            for j, qi in zip(self.qi_columns, self.schema.qis, strict=True)
        ]
        secrets = [
            np.searchsorted(attribute.position, self._places(rows, j, attribute))
            if edges is None
            else banded(_finite(_numbers(rows[:, j], self.names[j]), self.names[j]), edges)
            for j, attribute, edges in zip(
                self.sensitive_columns, self.schema.sensitive, self.edges, strict=True
            )
        ]
        who = np.arange(len(rows)) if person is None else np.asarray(person)
        if who.shape != (len(rows),):
            raise ValueError("person must have one person for each row")
        # Of several unknown persons, numpy makes one or many, and could lose the order of others.
        if n_unknown := int(lacks_value(who).sum()):
            raise ValueError(f"person is missing in {n_unknown} of {len(rows)} rows")
        return Records(
            _side_by_side(codes, len(rows)),
            _side_by_side(secrets, len(rows)),
            np.unique(who, return_inverse=True)[1].astype(np.int32),
        )

    def values(self, rows: ColumnArray) -> FloatArray:
        """Return the positions of the quasi-identifiers of any rows, shape (n, qis)."""
        places = [
            self._places(rows, j, qi)
            for j, qi in zip(self.qi_columns, self.schema.qis, strict=True)
        ]
        return np.column_stack([np.zeros((len(rows), 0)), *places])

    def published(
        self, rows: ColumnArray, class_of: Int32Array, representative: FloatArray
    ) -> ColumnArray:
        """Return rows with the representatives of their classes for quasi-identifiers.

        Parameters
        ----------
        representative
            Positions, shape (classes, qis).

        Returns
        -------
        published
            Floats if all columns are numeric, else objects. A suppressed row is NaN in all
            columns: it keeps its place, so that labels of rows still fit. The representative of a
            class most of whose members have no value is missing, too: NaN, or None for a moment.
        """
        out = _objects(rows) if self.as_objects else _floats(rows)
        kept = class_of != SUPPRESSED
        for at, (j, qi) in enumerate(zip(self.qi_columns, self.schema.qis, strict=True)):
            place = representative[class_of[kept], at]
            if j in self.originals:
                out[kept, j] = self.originals[j][place.astype(np.int64)]
                continue
            place = np.where(is_missing(place, qi), np.nan, place)
            out[kept, j] = self.clocks[j].moments(place) if j in self.clocks else place
        out[~kept] = np.nan
        return out

    def _places(self, rows: ColumnArray, j: int, attribute: Attribute) -> FloatArray:
        if attribute.numeric:
            clock = self.clocks.get(j)
            place = (
                _numbers(rows[:, j], self.names[j])
                if clock is None
                else clock.numbers(rows[:, j], lacks_value(rows[:, j]), self.names[j])
            )
            # Where no fitted row lacked a value, a missing one lies at the end of the domain.
            return np.where(np.isnan(place), attribute.position[-1], place)
        code_of = {label: float(code) for code, label in enumerate(attribute.label)}
        labels, inverse = np.unique(
            _labels(rows[:, j], self.marker, self.spelling[j]), return_inverse=True
        )
        places = np.array([code_of.get(str(label), NO_PLACE) for label in labels])
        return places[inverse]


def learn_columns(
    rows: ColumnArray,
    names: Sequence[str],
    *,
    categorical: Selected = (),
    sensitive: Selected = (),
    untouched: Selected = (),
    bands: Mapping[Column, Sequence[float]] | None = None,
    marker: str | None = "?",
    table: Any = None,  # noqa: ANN401  any table
) -> FrameColumns:
    """Return the roles and domains of columns.

    Parameters
    ----------
    rows
        Shape (n, columns).
    categorical
        Columns whose values are categories; all others are numbers.
    sensitive
        Columns that must be diverse within a class; they are published as they are.
    untouched
        Columns that are neither sensitive nor quasi-identifiers.
    bands
        Edges of bands, by sensitive column.
    marker
        The category that means "missing"; it does not count as a value. None, NaN and the missing
        values of pandas are missing in any case.
    table
        The rows as they were given, for selectors that are functions.

    Raises
    ------
    ValueError
        If a column is unknown, has two roles, or is not numeric although it must be.
    """
    secret = _selected(sensitive, names, table)
    kept = _selected(untouched, names, table)
    edges_of = {_index(column, names): edges for column, edges in (bands or {}).items()}
    category = set(_selected(categorical, names, table))
    for both, roles in ((set(secret) & set(kept), "sensitive and untouched"),
                        (category & set(edges_of), "categorical and in bands")):  # fmt: skip
        if both:
            raise ValueError(f"column {names[min(both)]} cannot be both {roles}")
    if not_sensitive := set(edges_of) - set(secret):
        raise ValueError(f"column {names[min(not_sensitive)]} has bands but is not sensitive")
    qis = [j for j in range(len(names)) if j not in {*secret, *kept}]
    if not qis:
        raise ValueError("no column is a quasi-identifier")

    lacks = {j: lacks_value(rows[:, j]) for j in (*qis, *secret)}
    clocks = {
        j: clock
        for j in lacks
        if j not in category and (clock := Clock.of(rows[~lacks[j], j])) is not None
    }

    spelling = {j: _spelling(rows[:, j], marker) for j in lacks if j in category}

    def attribute(j: int) -> Attribute:
        if j in edges_of:
            return banded_attribute(names[j], edges_of[j])
        if j not in category:
            column = rows[~lacks[j], j]
            found = (
                clocks[j].numbers(column, lacks[j][~lacks[j]], names[j])
                if j in clocks
                else _numbers(column, names[j])
            )
            if not len(found):
                raise ValueError(f"column {names[j]} has no value")
            return numbers(names[j], np.unique(found), missing=bool(lacks[j].any()))
        labels = np.unique(_labels(rows[:, j], marker, spelling[j])).tolist()
        return categories(names[j], labels, marker=marker if marker in labels else None)

    schema = Schema(
        qis=tuple(attribute(j) for j in qis),
        sensitive=tuple(attribute(j) for j in secret),
        sources=tuple((at,) for at in range(len(qis))),
    )
    return FrameColumns(
        names=tuple(names),
        qi_columns=tuple(qis),
        sensitive_columns=tuple(secret),
        schema=schema,
        edges=tuple(edges_of.get(j) for j in secret),
        originals={
            j: _originals(rows[:, j], a.label, marker, spelling[j])
            for j, a in zip(qis, schema.qis, strict=True)
            if not a.numeric
        },
        clocks=clocks,
        marker=marker,
        spelling=spelling,
        as_objects=rows.dtype.kind not in "biuf"
        and bool(category | clocks.keys() or any(_has_moments(rows[:, j]) for j in kept)),
    )


def _selected(columns: Selected, names: Sequence[str], table: object) -> list[int]:
    """Return the indices of selected columns."""
    found = list(columns(table) if callable(columns) else columns)
    if found and all(isinstance(each, bool | np.bool_) for each in found):
        if len(found) != len(names):
            raise ValueError(f"a mask of {len(found)} columns for a table of {len(names)}")
        return np.flatnonzero(found).tolist()
    return [_index(column, names) for column in found]


def _index(column: Column, names: Sequence[str]) -> int:
    index = names.index(column) if isinstance(column, str) and column in names else column
    if not isinstance(index, int | np.integer) or not -len(names) <= index < len(names):
        raise ValueError(f"there is no column {column!r}")
    return int(index) % len(names)


def lacks_value(column: ColumnArray) -> BoolArray:
    """Return which cells are None, NaN, NaT or the missing value of pandas."""
    if column.dtype.kind == "f":
        return np.isnan(column)
    if column.dtype.kind in "mM":
        return np.isnat(column)
    if column.dtype.kind != "O":
        return np.zeros(len(column), bool)
    # What is missing is not equal to itself; for pandas it is not known whether it is.
    return np.array([cell is None or (cell == cell) is not True for cell in column], bool)  # noqa: PLR0124


def _has_moments(column: ColumnArray) -> bool:
    return Clock.of(column[~lacks_value(column)]) is not None


def _numbers(column: ColumnArray, name: str) -> FloatArray:
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


def _finite(column: FloatArray, name: str) -> FloatArray:
    """Return a column whose values lie in bands: there is none for a missing one."""
    if np.isnan(column).any():
        raise ValueError(f"column {name} has bands and lacks values")
    return column


def _floats(rows: ColumnArray) -> FloatArray:
    """Return new rows of numbers, NaN where they lack a value."""
    if rows.dtype.kind != "O":
        return rows.astype(np.float64)
    lacks = np.column_stack([lacks_value(column) for column in rows.T])
    return np.where(lacks, np.nan, rows).astype(np.float64)


def _objects(rows: ColumnArray) -> ColumnArray:
    """Return new rows of objects, with times as `datetime`."""
    # numpy makes plain integers of times in nanoseconds.
    return (rows.astype("datetime64[us]") if rows.dtype.kind == "M" else rows).astype(object)


def _spelling(column: ColumnArray, marker: str | None) -> dict[str, str]:
    """Return the writing that stands for each other one in a column of categories."""
    values, counts = np.unique(_labels(column, marker, {}), return_counts=True)
    found = meanings(values.tolist(), counts.tolist())
    meant = zip(values.tolist(), found.spelling, strict=True)
    # What says that there is no value is a value of its own, unless there is a marker.
    spelling = {text: (marker or text) if each is None else each for text, each in meant}
    return {text: each for text, each in spelling.items() if text not in {each, "?"}}


def _labels(column: ColumnArray, marker: str | None, spelling: Mapping[str, str]) -> ColumnArray:
    """Return a column of categories as text in a spelling, the marker where it lacks a value."""
    labels = column.astype(str)
    labels = labels if marker is None else np.where(lacks_value(column), marker, labels)
    if not spelling:
        return labels
    texts, of = np.unique(labels, return_inverse=True)
    return np.array([spelling.get(text, text) for text in texts.tolist()])[of]


def _originals(
    column: ColumnArray, label: tuple[str, ...], marker: str | None, spelling: Mapping[str, str]
) -> ColumnArray:
    meant = _labels(column, marker, spelling)
    # Of several cells that mean the same, one that is written so stands for all.
    order = np.lexsort((_labels(column, marker, {}) != meant, meant))
    return column[order[np.searchsorted(meant[order], np.array(label))]]


def _side_by_side(columns: Sequence[NDArray[np.integer[Any]]], n: int) -> Int32Array:
    return np.ascontiguousarray(np.column_stack([np.zeros((n, 0)), *columns]), np.int32)


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
    checks_of_cells = {"dtype": None, "ensure_all_finite": "allow-nan" if may_lack else True}
    rows: ColumnArray
    if _mixes_moments(X):  # numpy knows no common type, and does not choose objects itself
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        cells = X.astype(object).to_numpy() if hasattr(X, "astype") else np.array(X.rows(), object)
        rows = check_array(cells.reshape(X.shape), input_name="X", **checks_of_cells, **checks)
    else:
        rows = validate_data(estimator, X, reset=reset, **checks_of_cells, **checks)
    return rows


def _mixes_moments(X: Any) -> bool:  # noqa: ANN401, N803
    """Return whether a data frame of pandas or polars has times beside other columns."""
    types = X.dtypes if hasattr(X, "columns") else ()
    timed = [
        getattr(each, "kind", "") == "M" or getattr(each, "is_temporal", bool)() for each in types
    ]
    return any(timed) and not all(timed)


def as_given(rows: ColumnArray, X: Any) -> Any:  # noqa: ANN401, N803
    """Return rows in the type of `X`, data frame or array, as the model expects them."""
    if not hasattr(X, "columns"):
        return rows
    return type(X)({name: rows[:, j].tolist() for j, name in enumerate(X.columns)})


def names_of(estimator: Any) -> list[str]:  # noqa: ANN401  scikit-learn has no types
    """Return the names of the columns seen in `fit`; `x0`, `x1`, ... if they have none."""
    return [str(name) for name in estimator.get_feature_names_out()]


def target_of(y: ArrayLike, rows: ColumnArray) -> tuple[ColumnArray, bool]:
    """Return a target for each row, and whether it is a number rather than a class."""
    target: ColumnArray = column_or_1d(y)
    check_consistent_length(rows, target)
    return target, bool(type_of_target(target, raise_unknown=True).startswith("continuous"))


def seed_of(random_state: Any) -> int:  # noqa: ANN401  an int, a generator or None
    """Return the seed that a `random_state` stands for."""
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
