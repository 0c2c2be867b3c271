"""A release of records as its reader sees it: of each class, the values its labels allow."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from anonymizer.algorithms.kernels import kernel
from anonymizer.domain.arrays import BoolArray, Int32Array, IntArray
from anonymizer.domain.records import Attribute, Hierarchy, Records, Schema

NOTHING = -1
"""No value is told."""
SEVERAL = -2
"""More than one value is left."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Labels:
    """What each class says of one attribute, as runs of codes in compressed sparse rows.

    A range is one run, a set one for each value, a node of a hierarchy the run of its leaves; the
    missing marker is a run of its own. Runs of a class do not overlap.

    Attributes
    ----------
    first_of
        Runs of class c are `first_of[c]` up to `first_of[c + 1]`, shape (classes + 1,).
    lo, hi
        First and last code of each run, shape (runs,).
    """

    first_of: IntArray
    lo: IntArray
    hi: IntArray

    def covers(self, class_of: Int32Array, code: Int32Array) -> BoolArray:
        """Return whether the label of each class holds the code beside it, shape (n,).

        O(n times the runs of a label).
        """
        return _covers(self.first_of, self.lo, self.hi, class_of, code)

    def only(self, which: IntArray | Int32Array) -> "Labels":
        """Return the labels of some classes, in the order and as often as they are named."""
        sizes = np.diff(self.first_of)[which]
        first_of = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
        run = np.arange(first_of[-1]) + np.repeat(self.first_of[which] - first_of[:-1], sizes)
        return Labels(first_of, self.lo[run], self.hi[run])


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Published:
    """The labels of a release: of each quasi-identifier, and values of each sensitive attribute.

    Attributes
    ----------
    n_classes
        Equivalence classes, 0 and up.
    qi, sensitive
        As in the schema. The sensitive values of a class stand beside its rows: their label is
        the set of them.
    """

    n_classes: int
    qi: tuple[Labels, ...]
    sensitive: tuple[Labels, ...]

    def only(self, which: IntArray | Int32Array) -> "Published":
        """Return what is seen of some classes, numbered anew in that order."""
        return Published(
            len(which),
            tuple(labels.only(which) for labels in self.qi),
            tuple(labels.only(which) for labels in self.sensitive),
        )


def publish(
    records: Records, schema: Schema, class_of: Int32Array, *, by_hierarchy: bool = False
) -> Published:
    """Return what a release of these classes shows: ranges of numbers, sets of categories.

    Parameters
    ----------
    records, schema
        The truth.
    class_of
        Class of each record, 0 and up without a gap, negative where it is left out, shape (n,).
    by_hierarchy
        A generalized value is the lowest node above all values, where there is a hierarchy.

    Notes
    -----
    Written anew and not taken from the generalizer: an auditor who shares its code shares its
    mistakes. O(n), or O(n log n) of an attribute with more values than records a class.
    """
    kept = class_of >= 0
    of = class_of[kept].astype(np.int64)
    n_classes = int(of.max(initial=-1)) + 1

    def labels(column: Int32Array, attribute: Attribute, *, as_set: bool) -> Labels:
        owner, code = _present(of, column[kept], n_classes, attribute.size)
        tree = attribute.hierarchy if by_hierarchy else None
        if not as_set and tree is not None:
            return _nodes(owner, code, n_classes, attribute.missing, tree)
        if not as_set and attribute.numeric:
            return _ranges(owner, code, n_classes, attribute.missing)
        return _rows(owner, code, code, n_classes)

    return Published(
        n_classes,
        tuple(labels(c, a, as_set=False) for c, a in zip(records.qi.T, schema.qis, strict=True)),
        tuple(
            labels(c, a, as_set=True)
            for c, a in zip(records.sensitive.T, schema.sensitive, strict=True)
        ),
    )


def only_values(labels: Labels, missing: int) -> IntArray:
    """Return the one value that each label allows, `SEVERAL`, or `NOTHING` but the marker."""
    real = labels.lo != missing
    owner = np.repeat(np.arange(len(labels.first_of) - 1), np.diff(labels.first_of))[real]
    lo, hi = labels.lo[real], labels.hi[real]
    n_values = np.bincount(owner, hi - lo + 1, minlength=len(labels.first_of) - 1)
    only = np.where(n_values > 0, SEVERAL, NOTHING)
    single = n_values[owner] == 1
    only[owner[single]] = lo[single]
    return only


def identities(labels: Sequence[Labels]) -> tuple[IntArray, int]:
    """Return a number for each class, equal where all labels are, and how many numbers there are.

    Runs must rise within a class, as they do wherever they are made.
    """
    n_classes = len(labels[0].first_of) - 1
    numbers: dict[tuple[bytes, ...], int] = {}
    identity = np.empty(n_classes, np.int64)
    runs = [np.stack([each.lo, each.hi], axis=1) for each in labels]
    firsts = [each.first_of.tolist() for each in labels]
    for c in range(n_classes):
        key = tuple(
            run[first[c] : first[c + 1]].tobytes() for run, first in zip(runs, firsts, strict=True)
        )
        identity[c] = numbers.setdefault(key, len(numbers))
    return identity, len(numbers)


def _present(
    of: IntArray, code: Int32Array, n_classes: int, size: int
) -> tuple[IntArray, IntArray]:
    """Return the codes that are in each class, rising: whose each one is, and which."""
    cell = of * size + code
    if n_classes * size <= 8 * len(of) + 1024:  # a table is faster than to sort
        there = np.zeros(n_classes * size, bool)
        there[cell] = True
        cell = np.flatnonzero(there)
    else:
        cell = np.unique(cell)
    return cell // size, cell % size


def _rows(owner: IntArray, lo: IntArray, hi: IntArray, n_classes: int) -> Labels:
    counts = np.bincount(owner, minlength=n_classes)
    return Labels(np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)]), lo, hi)


def _ranges(owner: IntArray, code: IntArray, n_classes: int, missing: int) -> Labels:
    """Return one run from the least to the greatest code, and one for the marker."""
    marker = code == missing  # the last code, so that it comes last in its class
    starts = np.ones(len(owner), bool)
    starts[1:] = (owner[1:] != owner[:-1]) | (marker[1:] & ~marker[:-1])
    ends = np.ones(len(owner), bool)
    ends[:-1] = starts[1:]
    return _rows(owner[starts], code[starts], code[ends], n_classes)


def _nodes(
    owner: IntArray, code: IntArray, n_classes: int, missing: int, tree: Hierarchy
) -> Labels:
    """Return the leaves of the lowest node above all codes of a class; the marker stays apart."""
    runs = _ranges(owner, code, n_classes, missing)
    lo, hi = runs.lo, runs.hi
    level = np.argmax(tree.ancestor[lo] == tree.ancestor[hi], axis=1)
    node = tree.ancestor[lo, level]
    leaves = np.arange(len(tree.ancestor))
    first = np.full(len(tree.n_leaves), len(leaves))
    last = np.full(len(tree.n_leaves), -1)
    for nodes in tree.ancestor.T:
        real = leaves != missing  # above some is the marker, but it is said on its own
        np.minimum.at(first, nodes[real], leaves[real])
        np.maximum.at(last, nodes[real], leaves[real])
    alone = lo == hi
    return Labels(runs.first_of, np.where(alone, lo, first[node]), np.where(alone, hi, last[node]))


@kernel
def _covers(
    first_of: IntArray, lo: IntArray, hi: IntArray, class_of: Int32Array, code: Int32Array
) -> BoolArray:
    inside = np.zeros(len(code), np.bool_)
    for i in range(len(code)):
        c = class_of[i]
        for r in range(first_of[c], first_of[c + 1]):
            inside[i] |= lo[r] <= code[i] <= hi[r]
    return inside
