"""Whole classes in a tree of cuts, which tells the near ones, and what some of them are as one."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from anonymizer.algorithms.kernels import inner_kernel, kernel
from anonymizer.algorithms.records.boxes import nearness
from anonymizer.algorithms.records.classes import SUPPRESSED, classes_of, without_gaps
from anonymizer.algorithms.records.problem import Problem
from anonymizer.algorithms.records.sweep import ClassCounts, add, clear, holds, no_counts
from anonymizer.domain.arrays import BoolArray, Int32Array, IntArray, RecordArray, starts_of


class Members(NamedTuple):
    """The records of classes in some order, as kernels take them.

    `first`, `member`: where each begins, and the records; `turn`: the last class that was counted,
    shape (1,).
    """

    first: IntArray
    member: IntArray
    turn: IntArray
    counts: ClassCounts


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ClassTree:
    """Classes of which some break the promise, as leaves of a tree of cuts of their middles."""

    k: int
    n: int
    """Number of records."""
    node: RecordArray
    """Of `NODE`; a leaf has one class, or several with equal middles."""
    of: Members
    """The classes in the order of the tree."""
    keeps: BoolArray
    """Which of them keep the promise."""

    @property
    def group(self) -> Int32Array:
        """The number of each class, `SUPPRESSED` where it breaks the promise."""
        number = np.arange(len(self.keeps), dtype=np.int32)
        return np.where(self.keeps, number, np.int32(SUPPRESSED))

    def class_of(self, group: Int32Array) -> Int32Array:
        """Return the class of each record where that of each class is given."""
        out = np.full(self.n, SUPPRESSED, np.int32)
        out[self.of.member] = np.repeat(group, np.diff(self.of.first))
        return without_gaps(out)


def tree_of(problem: Problem, class_of: Int32Array) -> ClassTree | None:
    """Return the tree of classes; None where each keeps the promise.

    `class_of`: numbered without gaps. O(n columns), and for the tree O(classes log classes).
    """
    classes = classes_of(class_of)
    turn, counts = np.zeros(1, np.int64), no_counts(problem)
    keeps = _keeping(problem.k, Members(classes.first_of, classes.member, turn, counts))
    if keeps.all():
        return None
    middle = np.empty((len(classes), problem.n_qis), np.int32)
    for c in range(problem.n_qis):
        codes = problem.cells[classes.member, c]
        lo, hi = (end.reduceat(codes, classes.first_of[:-1]) for end in (np.minimum, np.maximum))
        middle[:, c] = lo + (hi - lo) // 2
    node, order = nearness(problem, middle)
    member = np.concatenate([classes[c] for c in order.tolist()])
    of = Members(starts_of(np.diff(classes.first_of)[order]), member, turn, counts)
    return ClassTree(problem.k, problem.n, node, of, keeps[order])


@kernel
def _keeping(k: int, of: Members) -> BoolArray:
    """Return which classes keep the promise."""
    keeps = np.empty(len(of.first) - 1, np.bool_)
    for c in range(len(keeps)):
        begin_count(of)
        keeps[c] = keep_as_one(count_in(c, of), k, of)
    return keeps


@inner_kernel
def begin_count(of: Members) -> None:
    """Count none of the classes."""
    clear(of.counts)
    of.turn[0] += 1


@inner_kernel
def count_in(c: int, of: Members) -> int:
    """Count a class in; return the persons that it adds. O(records columns)."""
    n_persons = 0
    for row in range(of.first[c], of.first[c + 1]):
        n_persons += add(of.member[row], of.turn[0], of.counts)
    return n_persons


@inner_kernel
def keep_as_one(n_persons: int, k: int, of: Members) -> bool:
    """Return whether the classes that were counted, of so many persons, are one that keeps it."""
    return n_persons >= k and holds(n_persons, of.turn[0], of.counts)
