"""Features of a decision tree: quasi-identifiers as numbers and indicators."""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from anonymizer.domain.arrays import FloatArray, Int32Array, IntArray
from anonymizer.domain.records import Attribute

FeatureArray: TypeAlias = NDArray[np.float32]

MOST_INDICATORS = 64
"""Up to this many categories have a feature each."""


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
