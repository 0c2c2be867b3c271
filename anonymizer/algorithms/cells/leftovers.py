"""Leftovers: records that no cell may have alone join the nearest cells, which then grow together.

Only criteria that a class can lose when it grows, such as t-closeness, leave records over.
"""

from collections.abc import Iterator, Sequence
from typing import TypeAlias

import numpy as np

from anonymizer.algorithms.cells.tree import Grown
from anonymizer.algorithms.kaca.features import Points, means, nearest
from anonymizer.algorithms.records.classes import SUPPRESSED, classes_of
from anonymizer.algorithms.records.criteria import class_keeps
from anonymizer.algorithms.records.problem import Problem
from anonymizer.domain.arrays import Int32Array, IntArray

Unions: TypeAlias = tuple[Int32Array, Int32Array]
"""The class of each record, and the new number of each class that there was."""
_MOST_NEAR = 64
"""Classes that the records of one leaf may join, alone or together."""


def housed(grown: Grown, problem: Problem, class_of: Int32Array) -> Unions:
    """Return unions of classes that also have the records without one, if the whole table may.

    Parameters
    ----------
    class_of
        Classes from 0 up without a gap, at least one, `SUPPRESSED` where a record has none.

    Notes
    -----
    The records of a leaf join the nearest class that may have them, of 64, or else as many of these
    together as it takes: two, four, up to 64. What is then left joins as many of the nearest as it
    takes, up to all: the whole table always meets t-closeness, though it may break a bound on
    shares.
    """
    starts = np.sort(grown.tree.node["start"])
    place = np.empty(problem.n, np.int64)
    place[grown.tree.order] = np.arange(problem.n)
    leaf = np.searchsorted(starts, place, side="right")
    union_of = np.arange(int(class_of.max()) + 1, dtype=np.int32)
    for most_near, apart in ((_MOST_NEAR, leaf), (problem.n, np.zeros_like(leaf))):
        left = np.flatnonzero(class_of == SUPPRESSED)
        if len(left):
            of = classes_of(np.unique(apart[left], return_inverse=True)[1].astype(np.int32))
            groups = [left[of[g]] for g in range(len(of))]
            class_of, joined_to = _joined(grown, problem, class_of, groups, most_near)
            union_of = joined_to[union_of]
    return class_of, union_of


def _joined(
    grown: Grown,
    problem: Problem,
    class_of: Int32Array,
    groups: Sequence[IntArray],
    most_near: int,
) -> Unions:
    """Return the classes with some of the nearest joined to each group that may so have a class."""
    seen = grown.features
    points = Points(seen.code, seen.column, seen.start, seen.value.astype(np.float64))
    mean = means(points, class_of)
    places = np.array([seen.of(group).mean(axis=0) for group in groups], np.float64)
    _, near = nearest(mean, places, min(most_near, len(mean)))
    of = classes_of(class_of)
    members = [of[c] for c in range(len(of))]
    first_of = np.arange(len(of))  # of those that a class was joined to, the first
    for group, choices in zip(groups, near, strict=True):
        for tried in _tries(choices):
            chosen = np.unique(first_of[tried])
            together = np.concatenate([group, *(members[c] for c in chosen.tolist())])
            if class_keeps(problem.arrays, problem.k, together):
                members[chosen[0]] = together
                first_of[np.isin(first_of, chosen)] = chosen[0]
                break
    known, union_of = np.unique(first_of, return_inverse=True)
    out = class_of.copy()
    for number, c in enumerate(known.tolist()):
        out[members[c]] = number
    return out, union_of.astype(np.int32)


def _tries(near: IntArray) -> Iterator[IntArray]:
    """Yield each of the first classes alone, then the first two, four, up to all of them."""
    yield from near[:_MOST_NEAR, None]
    n = 2
    while n < 2 * len(near):
        yield near[:n]
        n *= 2
