"""Strict Mondrian [1]_: cuts the widest quasi-identifier at its median, again and again.

The baseline that the other methods are compared with.

References
----------
.. [1] K. LeFevre, D. DeWitt, R. Ramakrishnan, "Mondrian multidimensional k-anonymity", 2006.
"""

import numpy as np

from anonymizer.algorithms.kernels import kernel
from anonymizer.algorithms.records.classes import SUPPRESSED
from anonymizer.algorithms.records.criteria import class_keeps
from anonymizer.algorithms.records.problem import Problem, ProblemArrays
from anonymizer.domain.arrays import Int32Array, IntArray


def mondrian(problem: Problem) -> Int32Array:
    """Return the class of each record of a Mondrian partition.

    `problem`: the criteria that both halves of a cut must meet; k alone gives the Mondrian that
    (k,d)-anonymity is compared with, d its (k,d) variant. Classes are in the order of their
    positions in space; `SUPPRESSED` everywhere if the whole table does not keep the promise.

    Notes
    -----
    Strict: records with the same value are never separated by a cut of that attribute. The
    attribute whose values are furthest apart, as a share of its domain times its weight, is tried
    first. Of the two cuts next to the median value, the one with the more even halves is taken:
    otherwise a value that more than half of the records have, such as the first of its domain,
    would allow no cut.
    About O(n columns log(n) ** 2).
    """
    if not problem.n:
        return np.zeros(0, np.int32)
    return _mondrian(problem.arrays, problem.n_qis, problem.k)


@kernel
def _mondrian(problem: ProblemArrays, n_qis: int, k: int) -> Int32Array:
    cells = problem.cells
    n = len(cells)
    member = np.arange(n)
    class_of = np.full(n, SUPPRESSED, np.int32)
    if not class_keeps(problem, k, member):
        return class_of
    n_classes = 0
    pending = [(0, n)]
    while len(pending) > 0:
        start, end = pending.pop()
        part = member[start:end]
        low, high = part[:0], part[:0]
        for c in _widest_first(problem, n_qis, part):
            low, high = _halves(cells[:, c][part], part)
            if (
                len(low) >= k
                and len(high) >= k
                and class_keeps(problem, k, low)
                and class_keeps(problem, k, high)
            ):
                break
            low, high = part[:0], part[:0]
        if len(low) == 0:
            class_of[part] = n_classes
            n_classes += 1
        else:
            member[start : start + len(low)] = low
            member[start + len(low) : end] = high
            pending.append((start + len(low), end))
            pending.append((start, start + len(low)))
    return class_of


@kernel
def _widest_first(problem: ProblemArrays, n_qis: int, part: IntArray) -> IntArray:
    """Return the quasi-identifiers that have more than one value, the widest first."""
    cells, rule, codes = problem.cells, problem.rule, problem.codes
    position = codes.position
    width = np.zeros(n_qis)
    for c in range(n_qis):
        code, first = cells[:, c][part], rule[c]["first_position"]
        if code.max() > code.min():
            width[c] = position[first + code.max()] - position[first + code.min()]
            width[c] *= rule[c]["weight"] / rule[c]["span"]
    order = np.argsort(-width, kind="mergesort")
    return order[: np.sum(width > 0)]


@kernel
def _halves(code: Int32Array, part: IntArray) -> tuple[IntArray, IntArray]:
    """Return the members of a class below and above the better of the cuts at its median."""
    median = np.sort(code)[(len(code) - 1) // 2]
    below, up_to = np.sum(code < median), np.sum(code <= median)
    low = code <= median if len(code) - up_to >= below else code < median
    return part[low], part[~low]
