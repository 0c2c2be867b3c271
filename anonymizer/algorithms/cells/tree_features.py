"""Quasi-identifiers as a decision tree sees them."""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from anonymizer.domain.arrays import FloatArray, Int32Array, IntArray
from anonymizer.domain.records import Attribute

FeatureArray: TypeAlias = NDArray[np.float32]

MOST_INDICATORS = 64
"""Categories up to which each has a feature of its own."""


def values_of(codes: Int32Array, qis: Sequence[Attribute]) -> FloatArray:
    """Return the position of each code on the axis of its attribute, shape (n, qis)."""
    positions = [qi.position[codes[:, j]] for j, qi in enumerate(qis)]
    return np.column_stack([np.zeros((len(codes), 0)), *positions])


def encode(values: FloatArray, qis: Sequence[Attribute]) -> FeatureArray:
    """Return the features of records whose quasi-identifiers lie at `values`, shape (n, features).

    Parameters
    ----------
    values
        Positions on the axis of each attribute, shape (n, qis). They may lie off the domain: a
        number beyond its ends, a category that is none.

    Notes
    -----
    A number is one feature, from 0 to 1 over its domain, the missing marker included. A category
    is a feature for each value of the domain, 1 where it is this one: a split then parts one
    category from the others, and what a cell publishes is in most cases a single one. Beyond
    `MOST_INDICATORS` categories it is one feature, its place in the order of the taxonomy, as a
    number. 4 bytes a record and feature.
    """
    parts = [_features(values[:, j], qi) for j, qi in enumerate(qis)]
    return np.ascontiguousarray(np.concatenate(parts, axis=1)) if parts else _none(len(values))


def owner_of(qis: Sequence[Attribute]) -> IntArray:
    """Return the quasi-identifier that each feature is of, shape (features,)."""
    return np.repeat(np.arange(len(qis)), [1 if is_one_feature(qi) else qi.size for qi in qis])


def is_one_feature(qi: Attribute) -> bool:
    """Return whether a quasi-identifier is a single feature, rather than one for each category."""
    return qi.numeric or qi.size > MOST_INDICATORS


def _features(values: FloatArray, qi: Attribute) -> FeatureArray:
    if not is_one_feature(qi):
        return np.equal(values[:, None], qi.position[None, :]).astype(np.float32)
    scaled: FloatArray = (values[:, None] - qi.position[0]) / (qi.span or 1.0)
    # No further than a domain's width beyond its ends: any number has to fit 32 bits.
    return scaled.clip(-1.0, 2.0).astype(np.float32)


def _none(n: int) -> FeatureArray:
    return np.zeros((n, 0), np.float32)
