"""A release of records as its reader sees it: the values that the labels of each class allow.

Written independently of the generalizer, so that an auditor does not repeat its mistakes.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from anonymizer.algorithms.kernels import kernel
from anonymizer.domain.arrays import BoolArray, Int32Array, IntArray
from anonymizer.domain.records import Attribute, Hierarchy, Records, Schema

NOTHING = -1
"""No value is allowed except the missing marker."""
SEVERAL = -2
"""More than one value is allowed."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ReleasedLabels:
    """The label of each class in one attribute, as runs of codes in compressed sparse rows.

    A range is one run, a set has one run for each value, and a node of a hierarchy is the run of
    its leaves. The missing marker is a run of its own. Runs of a class do not overlap.
    """

    first_of: IntArray
    """Runs of class c: `first_of[c]` to `first_of[c + 1]`, exclusive, shape (classes + 1,)."""
    lo: IntArray
    hi: IntArray
    """`lo`, `hi`: first and last code of each run, shape (runs,)."""

    @classmethod
    def of(cls, runs: Sequence[Sequence[tuple[int, int]]]) -> "ReleasedLabels":
        """Return the labels of classes from the runs of codes that each allows."""
        sizes = np.array([len(each) for each in runs], np.int64)
        ends = np.array([run for each in runs for run in each], np.int64).reshape(-1, 2)
        first_of = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
        return cls(first_of, ends[:, 0].copy(), ends[:, 1].copy())

    def covers(self, class_of: Int32Array, code: Int32Array) -> BoolArray:
        """Return whether the label of `class_of[i]` allows `code[i]`, shape (n,).

        O(n times the runs of a label).
        """
        return _covers(self.first_of, self.lo, self.hi, class_of, code)

    def only(self, which: IntArray | Int32Array) -> "ReleasedLabels":
        """Return the labels of the given classes, in the given order and with repeats."""
        sizes = self.first_of[which + 1] - self.first_of[which]
        first_of = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
        run = np.arange(first_of[-1]) + np.repeat(self.first_of[which] - first_of[:-1], sizes)
        return ReleasedLabels(first_of, self.lo[run], self.hi[run])


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Published:
    """The labels of a release, for each quasi-identifier and sensitive attribute."""

    n_classes: int
    """Number of equivalence classes."""
    qi: tuple[ReleasedLabels, ...]
    sensitive: tuple[ReleasedLabels, ...]
    """`qi`, `sensitive`: labels of each attribute, in the order of the schema. Sensitive values are
    published unchanged, so the label of a class is the set of its values."""

    def only(self, which: IntArray | Int32Array) -> "Published":
        """Return the labels of the given classes, which are renumbered in the given order."""
        return Published(
            len(which),
            tuple(labels.only(which) for labels in self.qi),
            tuple(labels.only(which) for labels in self.sensitive),
        )


def publish(
    records: Records, schema: Schema, class_of: Int32Array, *, by_hierarchy: bool = False
) -> Published:
    """Return the labels of a release of these classes: ranges of numbers, sets of categories.

    Parameters
    ----------
    class_of
        Class of each record, from 0 without gaps, negative if it is left out, shape (n,).
    by_hierarchy
        Whether the label in an attribute with a hierarchy is the lowest common ancestor.

    Notes
    -----
    O(n), or O(n log n) for an attribute with more values than there are records in a class.
    """
    kept = class_of >= 0
    of = class_of[kept].astype(np.int64)
    n_classes = int(of.max(initial=-1)) + 1

    def labels(column: Int32Array, attribute: Attribute, *, as_set: bool) -> ReleasedLabels:
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


def only_values(labels: ReleasedLabels, missing: int) -> IntArray:
    """Return the only value that each label allows, else `SEVERAL` or `NOTHING`."""
    real = labels.lo != missing
    owner = np.repeat(np.arange(len(labels.first_of) - 1), np.diff(labels.first_of))[real]
    lo, hi = labels.lo[real], labels.hi[real]
    n_values = np.bincount(owner, hi - lo + 1, minlength=len(labels.first_of) - 1)
    only = np.where(n_values > 0, SEVERAL, NOTHING)
    single = n_values[owner] == 1
    only[owner[single]] = lo[single]
    return only


def identities(labels: Sequence[ReleasedLabels]) -> tuple[IntArray, int]:
    """Return a number for each class, equal if all labels are equal, and how many numbers exist.

    The runs of a class must be rising.
    """
    identity = np.zeros(len(labels[0].first_of) - 1, np.int64)
    for each in labels:
        ends = each.lo * (int(each.hi.max(initial=0)) + 1) + each.hi
        run = np.unique(ends, return_inverse=True)[1]
        n_runs, left = int(run.max(initial=-1)) + 1, np.arange(len(identity))
        sizes, at = np.diff(each.first_of), 0
        while len(left := left[sizes[left] > at]):
            apart = identity[left] * n_runs + run[each.first_of[left] + at]
            number = np.unique(apart, return_inverse=True)[1]
            identity[left] = int(identity.max()) + 1 + number
            at += 1
        identity = np.unique(identity, return_inverse=True)[1]
    return identity, int(identity.max(initial=-1)) + 1


def _present(
    of: IntArray, code: Int32Array, n_classes: int, size: int
) -> tuple[IntArray, IntArray]:
    """Return the distinct codes of each class, rising: the class of each one, and the code."""
    cell = of * size + code
    if n_classes * size <= 8 * len(of) + 1024:  # a lookup table is faster than sorting
        occurs = np.zeros(n_classes * size, bool)
        occurs[cell] = True
        cell = np.flatnonzero(occurs)
    else:
        cell.sort()
        cell = cell[np.diff(cell, prepend=-1) > 0]
    return cell // size, cell % size


def _rows(owner: IntArray, lo: IntArray, hi: IntArray, n_classes: int) -> ReleasedLabels:
    counts = np.bincount(owner, minlength=n_classes)
    return ReleasedLabels(np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)]), lo, hi)


def _ranges(owner: IntArray, code: IntArray, n_classes: int, missing: int) -> ReleasedLabels:
    """Return a run from the smallest to the largest code of each class, and one for the marker."""
    marker = code == missing  # the last code, so it is also the last of its class
    starts = np.ones(len(owner), bool)
    starts[1:] = (owner[1:] != owner[:-1]) | (marker[1:] & ~marker[:-1])
    ends = np.ones(len(owner), bool)
    ends[:-1] = starts[1:]
    return _rows(owner[starts], code[starts], code[ends], n_classes)


def _nodes(
    owner: IntArray, code: IntArray, n_classes: int, missing: int, tree: Hierarchy
) -> ReleasedLabels:
    """Return the leaves of the lowest common ancestor in each class; the marker is a run apart."""
    runs = _ranges(owner, code, n_classes, missing)
    lo, hi = runs.lo, runs.hi
    level = np.argmax(tree.ancestor[lo] == tree.ancestor[hi], axis=1)
    node = tree.ancestor[lo, level]
    leaves = np.arange(len(tree.ancestor))
    first = np.full(len(tree.n_leaves), len(leaves))
    last = np.full(len(tree.n_leaves), -1)
    for nodes in tree.ancestor.T:
        real = leaves != missing  # the marker has ancestors too, but it is a run of its own
        np.minimum.at(first, nodes[real], leaves[real])
        np.maximum.at(last, nodes[real], leaves[real])
    alone = lo == hi
    return ReleasedLabels(
        runs.first_of, np.where(alone, lo, first[node]), np.where(alone, hi, last[node])
    )


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
