"""What the columns of an array or data frame are to privacy, and how they are coded.

Rows as scikit-learn hands them over.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_consistent_length, column_or_1d, validate_data

from anonymizer.algorithms.records.attributes import banded, banded_attribute, categories
from anonymizer.algorithms.records.classes import SUPPRESSED
from anonymizer.domain.arrays import FloatArray, Int32Array
from anonymizer.domain.records import Attribute, Records, Schema

ColumnArray: TypeAlias = NDArray[Any]
"""Floats, or objects: numbers and categories, side by side."""

Column: TypeAlias = int | str
"""A column by its index, or by its name where there are names."""

NO_PLACE = -1.0
"""Where a category lies that is not of the domain."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Columns:
    """Roles of columns, and the domains that were found in the rows that were learned from.

    Attributes
    ----------
    names
        Of all columns.
    qi_columns, sensitive_columns
        Which columns the attributes of `schema` are.
    schema
        Each quasi-identifier is a source of its own.
    edges
        Bands of each sensitive attribute; None: every value is one of its own.
    originals
        Of each categorical quasi-identifier the values behind the codes, by column.
    as_objects
        Whether what is published are objects: some column holds no numbers.
    """

    names: tuple[str, ...]
    qi_columns: tuple[int, ...]
    sensitive_columns: tuple[int, ...]
    schema: Schema
    edges: tuple[Sequence[float] | None, ...]
    originals: Mapping[int, ColumnArray]
    as_objects: bool

    def records(self, rows: ColumnArray, person: ArrayLike | None = None) -> Records:
        """Return the rows that the domains were learned from in codes.

        `person` tells whose row each is; None: each is a person's only one.
        """
        codes = [
            np.searchsorted(qi.position, self._places(rows, j, qi))
            for j, qi in zip(self.qi_columns, self.schema.qis, strict=True)
        ]
        secrets = [
            np.searchsorted(attribute.position, self._places(rows, j, attribute))
            if edges is None
            else banded(_numbers(rows[:, j], self.names[j]), edges)
            for j, attribute, edges in zip(
                self.sensitive_columns, self.schema.sensitive, self.edges, strict=True
            )
        ]
        who = np.arange(len(rows)) if person is None else np.asarray(person)
        if who.shape != (len(rows),):
            raise ValueError("person must tell one person for each row")
        return Records(
            _side_by_side(codes, len(rows)),
            _side_by_side(secrets, len(rows)),
            np.unique(who, return_inverse=True)[1].astype(np.int32),
        )

    def values(self, rows: ColumnArray) -> FloatArray:
        """Return where the quasi-identifiers of any rows lie on their axes, shape (n, qis)."""
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
            Floats where all columns hold numbers, else objects. Nothing but NaN where a row is
            suppressed, its other columns included: rows keep their places, so that labels beside
            them still fit.
        """
        out = np.array(rows, dtype=object if self.as_objects else np.float64)
        kept = class_of != SUPPRESSED
        for at, j in enumerate(self.qi_columns):
            place = representative[class_of[kept], at]
            if j in self.originals:
                place = self.originals[j][place.astype(np.int64)]
            out[kept, j] = place
        out[~kept] = np.nan
        return out

    def _places(self, rows: ColumnArray, j: int, attribute: Attribute) -> FloatArray:
        if attribute.numeric:
            return _numbers(rows[:, j], self.names[j])
        code_of = {label: float(code) for code, label in enumerate(attribute.label)}
        labels, inverse = np.unique(_labels(rows[:, j]), return_inverse=True)
        places = np.array([code_of.get(str(label), NO_PLACE) for label in labels])
        return places[inverse]


def learn_columns(
    rows: ColumnArray,
    names: Sequence[str],
    *,
    categorical: Sequence[Column] = (),
    sensitive: Sequence[Column] = (),
    untouched: Sequence[Column] = (),
    bands: Mapping[Column, Sequence[float]] | None = None,
    marker: str | None = "?",
) -> Columns:
    """Return the roles and domains of columns.

    Parameters
    ----------
    rows
        Shape (n, columns).
    categorical
        Columns whose values are categories; all others are numbers.
    sensitive
        Columns that are to be diverse within a class; they are published as they are.
    untouched
        Columns that are neither sensitive nor a quasi-identifier.
    bands
        By sensitive column, the edges of its bands.
    marker
        The category that means "missing": no value, where values are counted.

    Raises
    ------
    ValueError
        If a column is unknown, has two roles, or is no number though it should be one.
    """
    secret = [_index(column, names) for column in sensitive]
    kept = [_index(column, names) for column in untouched]
    edges_of = {_index(column, names): edges for column, edges in (bands or {}).items()}
    category = {_index(column, names) for column in categorical}
    for twice, told in ((set(secret) & set(kept), "sensitive and untouched"),
                        (category & set(edges_of), "categorical and in bands")):  # fmt: skip
        if twice:
            raise ValueError(f"column {names[min(twice)]} cannot be both {told}")
    if lost := set(edges_of) - set(secret):
        raise ValueError(f"column {names[min(lost)]} has bands but is not sensitive")
    qis = [j for j in range(len(names)) if j not in {*secret, *kept}]
    if not qis:
        raise ValueError("no column is a quasi-identifier")

    def attribute(j: int) -> Attribute:
        if j in edges_of:
            return banded_attribute(names[j], edges_of[j])
        if j not in category:
            return Attribute(names[j], np.unique(_numbers(rows[:, j], names[j])))
        labels = np.unique(_labels(rows[:, j])).tolist()
        return categories(names[j], labels, marker=marker if marker in labels else None)

    schema = Schema(
        qis=tuple(attribute(j) for j in qis),
        sensitive=tuple(attribute(j) for j in secret),
        sources=tuple((at,) for at in range(len(qis))),
    )
    return Columns(
        names=tuple(names),
        qi_columns=tuple(qis),
        sensitive_columns=tuple(secret),
        schema=schema,
        edges=tuple(edges_of.get(j) for j in secret),
        originals={
            j: _originals(rows[:, j], a.label)
            for j, a in zip(qis, schema.qis, strict=True)
            if not a.numeric
        },
        as_objects=bool(category) and rows.dtype.kind not in "biuf",
    )


def _index(column: Column, names: Sequence[str]) -> int:
    index = names.index(column) if isinstance(column, str) and column in names else column
    if not isinstance(index, int | np.integer) or not -len(names) <= index < len(names):
        raise ValueError(f"there is no column {column!r}")
    return int(index) % len(names)


def _numbers(column: ColumnArray, name: str) -> FloatArray:
    try:
        numbers = column.astype(np.float64)
    except (TypeError, ValueError):
        # Not chained: numpy's message quotes the value.
        raise ValueError(f"column {name} has what is no number: is it categorical?") from None
    if not np.isfinite(numbers).all():
        raise ValueError(f"column {name} has a number that is not finite")
    return numbers + 0.0  # no minus zero


def _labels(column: ColumnArray) -> ColumnArray:
    return column.astype(str)


def _originals(column: ColumnArray, label: tuple[str, ...]) -> ColumnArray:
    labels, first = np.unique(_labels(column), return_index=True)
    return column[first[np.searchsorted(labels, np.array(label))]]


def _side_by_side(columns: Sequence[NDArray[np.integer[Any]]], n: int) -> Int32Array:
    return np.ascontiguousarray(np.column_stack([np.zeros((n, 0)), *columns]), np.int32)


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
