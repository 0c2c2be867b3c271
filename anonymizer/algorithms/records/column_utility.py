"""Utility of each column of a release: what a reader of the labels alone gets right.

A reader takes each value that a label allows for equally likely, and columns of a class for
independent of each other.
"""

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from anonymizer.algorithms.releases.released_classes import ReleasedLabels
from anonymizer.domain.arrays import FloatArray, Int32Array, IntArray
from anonymizer.domain.records import Attribute

_BINS = 10
"""Groups of about equally many records into which a column of more values is put for pairs."""


def shares_of_codes(labels: ReleasedLabels, size: IntArray, n_codes: int) -> FloatArray:
    """Return the share of each code as a reader estimates it, shape (codes,).

    `labels`: of the classes in one attribute; `size`: records of each class, shape (classes,).
    O(runs + codes).
    """
    each = np.repeat(size / np.maximum(_widths(labels), 1), np.diff(labels.first_of))
    steps = np.zeros(n_codes + 1)
    np.add.at(steps, labels.lo, each)
    np.add.at(steps, labels.hi + 1, -each)
    found: FloatArray = np.cumsum(steps[:-1]) / max(int(size.sum()), 1)
    return found


def mean_places(labels: ReleasedLabels, place: FloatArray) -> FloatArray:
    """Return the mean of the places of the codes that each label allows, shape (classes,)."""
    below = np.concatenate([np.zeros(1), np.cumsum(place)])
    sums = below[labels.hi + 1] - below[labels.lo]
    total = np.concatenate([np.zeros(1), np.cumsum(sums)])
    found: FloatArray = (total[labels.first_of[1:]] - total[labels.first_of[:-1]]) / np.maximum(
        _widths(labels), 1
    )
    return found


def distance(one: FloatArray, other: FloatArray) -> float:
    """Return the total variation distance of two distributions, 0 to 1."""
    return float(np.abs(one - other).sum() / 2)


def pair_distances(
    labels: Sequence[ReleasedLabels],
    attributes: Sequence[Attribute],
    class_of: Int32Array,
    codes: Int32Array,
) -> FloatArray:
    """Return the distance of the joint distribution of each two columns, shape (columns, columns).

    Notes
    -----
    Numbers, and columns of many values, are in tenths of the records. O(classes x tenths^2) for
    each pair.
    """
    size = np.bincount(class_of)
    likely, bins = [], []
    for of, attribute, code in zip(labels, attributes, codes.T, strict=True):
        bin_of = _bin_of(np.bincount(code, minlength=attribute.size), _is_long(attribute))
        likely.append(_likely(of, bin_of))
        bins.append(bin_of[code])
    found = np.zeros((len(labels), len(labels)))
    for i, j in combinations(range(len(labels)), 2):
        read = (likely[i] * size[:, None]).T @ likely[j] / len(codes)
        true = np.zeros_like(read)
        np.add.at(true, (bins[i], bins[j]), 1 / len(codes))
        found[i, j] = found[j, i] = distance(read, true)
    return found


def _is_long(attribute: Attribute) -> bool:
    return attribute.numeric or attribute.size > _BINS**2


def _bin_of(times: IntArray, is_long: bool) -> IntArray:  # noqa: FBT001  private
    """Return the group of each code: itself, or its tenth of the records."""
    if not is_long:
        return np.arange(len(times))
    before = np.cumsum(times) - times
    found: IntArray = np.minimum(before * _BINS // max(int(times.sum()), 1), _BINS - 1)
    return found


def _likely(labels: ReleasedLabels, bin_of: IntArray) -> FloatArray:
    """Return how likely each group is in each class, shape (classes, groups)."""
    n_classes, n_bins = len(labels.first_of) - 1, int(bin_of.max(initial=0)) + 1
    found = np.zeros((n_classes, n_bins))
    owner = np.repeat(np.arange(n_classes), np.diff(labels.first_of))
    for group in range(n_bins):
        below = np.concatenate([np.zeros(1), np.cumsum(bin_of == group)])
        np.add.at(found[:, group], owner, below[labels.hi + 1] - below[labels.lo])
    return found / np.maximum(_widths(labels), 1)[:, None]


def _widths(labels: ReleasedLabels) -> IntArray:
    """Return how many codes each label allows, shape (classes,)."""
    total = np.concatenate([np.zeros(1, np.int64), np.cumsum(labels.hi - labels.lo + 1)])
    found: IntArray = total[labels.first_of[1:]] - total[labels.first_of[:-1]]
    return found
