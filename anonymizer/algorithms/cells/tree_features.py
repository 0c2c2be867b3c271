"""Features of a decision tree: quasi-identifiers as numbers and indicators."""

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from anonymizer.domain.arrays import FloatArray, Int32Array, IntArray
from anonymizer.domain.records import Attribute

FeatureArray: TypeAlias = NDArray[np.float32]

MOST_INDICATORS = 64
"""Up to this many categories have a feature each."""


class CodedFeatures(NamedTuple):
    """Features of records, looked up by code: 4 bytes for each record and quasi-identifier.

    Feature f of record i is `value[start[f] + code[i, column[f]]]`.
    """

    code: Int32Array
    """Of each record in each column, shape (n, columns)."""
    column: IntArray
    start: IntArray
    """`column`, `start`: column of each feature, and where its values begin, shape (features,)."""
    first: IntArray
    """First feature of each column, and the number of all features, shape (columns + 1,). The
    features of a column that has several are the indicators of its codes."""
    value: FeatureArray
    """Values of all features by code."""

    def of(self, records: IntArray | slice = slice(None)) -> FeatureArray:
        """Return the features of some records, all if none are named, shape (n, features)."""
        return np.ascontiguousarray(self.value[self.start + self.code[records][:, self.column]])


def values_of(codes: Int32Array, qis: Sequence[Attribute]) -> FloatArray:
    """Return the position of each code on the axis of its attribute, shape (n, qis)."""
    positions = [qi.position[codes[:, j]] for j, qi in enumerate(qis)]
    return np.column_stack([np.zeros((len(codes), 0)), *positions])


def encode(values: FloatArray, qis: Sequence[Attribute]) -> FeatureArray:
    """Return the features of records with quasi-identifiers at `values`, shape (n, features).

    Parameters
    ----------
    values
        Positions on the axis of each attribute, shape (n, qis). They may be outside the domain.

    Notes
    -----
    A number is one feature, from 0 to 1 over its domain, the missing marker included. Categories
    have an indicator for each value of the domain: a split then separates one category from the
    others, and a cell usually publishes a single one. More than `MOST_INDICATORS` categories are
    one feature, the position in the order of the taxonomy. 4 bytes for each record and feature.
    """
    parts = [_features(values[:, j], qi) for j, qi in enumerate(qis)]
    return np.ascontiguousarray(np.concatenate(parts, axis=1)) if parts else _none(len(values))


def coded_features(codes: Int32Array, qis: Sequence[Attribute]) -> CodedFeatures:
    """Return the features of records, see `encode`; `codes`: shape (n, qis)."""
    return _by_code(codes, [encode(qi.position[:, None], (qi,)) for qi in qis])


def features_at(values: FloatArray, qis: Sequence[Attribute]) -> CodedFeatures:
    """Return the features of records with quasi-identifiers at `values`; see `encode`."""
    places = [np.unique(column, return_inverse=True) for column in values.T]
    codes = np.column_stack([np.zeros((len(values), 0), np.int32), *(code for _, code in places)])
    by_code = [encode(at[:, None], (qi,)) for (at, _), qi in zip(places, qis, strict=True)]
    return _by_code(np.ascontiguousarray(codes, np.int32), by_code)


def features_by_value(matrix: FeatureArray) -> CodedFeatures:
    """Return given features, shape (n, features), each a column of its own."""
    places = [np.unique(column, return_inverse=True) for column in matrix.T]
    codes = np.column_stack([np.zeros((len(matrix), 0), np.int32), *(code for _, code in places)])
    return _by_code(np.ascontiguousarray(codes, np.int32), [at[:, None] for at, _ in places])


def _by_code(codes: Int32Array, features_of: Sequence[FeatureArray]) -> CodedFeatures:
    """Return the features of records, given those of each code of each column."""
    n_features = np.array([each.shape[1] for each in features_of], np.int64)
    sizes = np.repeat([len(each) for each in features_of], n_features).astype(np.int64)
    return CodedFeatures(
        codes,
        np.repeat(np.arange(len(features_of)), n_features),
        np.cumsum(sizes) - sizes,
        np.concatenate([np.zeros(1, np.int64), np.cumsum(n_features)]),
        np.concatenate([np.zeros(0, np.float32), *(each.T.ravel() for each in features_of)]),
    )


def owner_of(qis: Sequence[Attribute]) -> IntArray:
    """Return the quasi-identifier of each feature, shape (features,)."""
    return np.repeat(np.arange(len(qis)), [1 if is_one_feature(qi) else qi.size for qi in qis])


def is_one_feature(qi: Attribute) -> bool:
    """Return whether a quasi-identifier is one feature, rather than one for each category."""
    return qi.numeric or qi.size > MOST_INDICATORS


def _features(values: FloatArray, qi: Attribute) -> FeatureArray:
    if not is_one_feature(qi):
        return np.equal(values[:, None], qi.position[None, :]).astype(np.float32)
    scaled: FloatArray = (values[:, None] - qi.position[0]) / (qi.span or 1.0)
    # At most a domain's width beyond its ends, so that any number fits 32 bits.
    return scaled.clip(-1.0, 2.0).astype(np.float32)


def _none(n: int) -> FeatureArray:
    return np.zeros((n, 0), np.float32)
