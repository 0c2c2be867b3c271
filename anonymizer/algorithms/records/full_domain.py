"""Full-domain generalization, repeated for those that are left over: a start for large classes.

A combination of levels, one for each quasi-identifier, generalizes all records alike; those that
then look alike are a class, if they keep the promise. Combinations are tried from the least loss
on, each for the records that the ones before have left [1]_. Where classes are large and labels
come from hierarchies, a search that moves few records at a time does not find such classes.

References
----------
.. [1] F. Prasser et al., "Flexible data anonymization using ARX: current status and challenges
   ahead", 2020 (local recoding by repeated full-domain generalization).
"""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from anonymizer.algorithms.records.classes import SUPPRESSED
from anonymizer.algorithms.records.criteria import class_keeps
from anonymizer.algorithms.records.problem import Cost, ProblemArrays
from anonymizer.domain.arrays import FloatArray, Int32Array, IntArray

Level: TypeAlias = tuple[IntArray, FloatArray]
"""The group of each code, and what a label of that group loses."""
_STEPS_PER_CALL = 8
_MOST_LISTED = 2**16
"""Combinations that are compared by their loss; of more, a sample."""


def work_of(n: int, n_qis: int) -> int:
    """Return the work for one combination of levels of n records, in the unit of `make_moves`."""
    return 6_000 + 2 * n * n_qis


def levels_of(problem: ProblemArrays, n_qis: int) -> list[list[Level]]:
    """Return the levels of each quasi-identifier, from its codes to all in one group."""
    return [_levels_of(problem, c) for c in range(n_qis)]


def repeated_levels(
    problem: ProblemArrays,
    levels: Sequence[Sequence[Level]],
    *,
    k: int,
    most: int,
    spread: float = 0.0,
    rng: np.random.Generator,
    keep_going: Callable[[], bool] = lambda: True,
    spend: Callable[[int], None] = lambda _work: None,
) -> Int32Array:
    """Return the class of each record, from at most so many combinations of `levels_of`.

    `spread`: the losses by which combinations are ordered are multiplied, for each column, by a
    random number of which this is the standard deviation of the logarithm.

    `SUPPRESSED` for all that are left when none remains, unless the class formed last takes them.

    Notes
    -----
    O(most n columns), and a sort of the records for each combination. Records are put together by
    the sum of a random number for each group, 64 bits: if two sums were equal by chance, two
    groups would be one class, which is no less safe.
    """
    n, q = len(problem.cells), len(levels)
    at = [np.ascontiguousarray(problem.cells[:, c]) for c in range(q)]
    lost = [
        np.array([loss[codes].mean() for _, loss in of]) * factor
        for of, codes, factor in zip(levels, at, rng.lognormal(0.0, spread, q), strict=True)
    ]
    number = [
        [rng.integers(-(2**63), 2**63, len(group))[group] for group, _ in of] for of in levels
    ]
    class_of, rows, n_classes = np.full(n, SUPPRESSED, np.int32), np.arange(n), 0
    for step, combination in enumerate(_by_loss(lost, most, rng)):
        if len(rows) < k or (step % _STEPS_PER_CALL == 0 and not keep_going()):
            break
        spend(work_of(len(rows), q))
        key = np.zeros(len(rows), np.int64)
        for codes, of, level in zip(at, number, combination.tolist(), strict=True):
            key += of[level][codes[rows]]
        for member in _groups(rows, key, k):
            if class_keeps(problem, k, member):
                class_of[member] = n_classes
                n_classes += 1
        rows = rows[class_of[rows] == SUPPRESSED]
    if n_classes and len(rows):
        member = np.r_[np.flatnonzero(class_of == n_classes - 1), rows]
        if class_keeps(problem, k, member):
            class_of[rows] = n_classes - 1
    return class_of


def _levels_of(problem: ProblemArrays, c: int) -> list[Level]:
    """Return the levels of a column.

    Those of the hierarchy by which its loss is measured; else 2, 4, 8 ... neighbouring codes. The
    missing marker is beside values in the last level alone.
    """
    rule = problem.rule[c]
    size, missing, whole = int(rule["size"]), int(rule["missing"]), float(rule["whole"]) or 1.0
    code = np.arange(size)
    found: list[Level] = [(code, np.zeros(size))]
    if rule["form"] == Cost.TAXONOMY:
        height, first = int(rule["height"]), int(rule["first_ancestor"])
        nodes = problem.codes.ancestor[first : first + size * height].reshape(size, height).T
        for node in nodes[1:]:
            n_leaves = problem.codes.n_leaves[int(rule["first_leaves"]) + node]
            group = np.unique(node, return_inverse=True)[1]
            found.append((group, np.where(n_leaves > 1, n_leaves / whole, 0.0)))
    else:
        real = code[code != missing]
        place = problem.codes.position[int(rule["first_position"]) + code]
        width = 2
        while width < 2 * len(real):
            group = np.where(code == missing, 0, 1 + np.searchsorted(real, code) // width)
            lo = np.minimum(np.searchsorted(group[real], group), len(real) - 1)
            hi = np.maximum(np.searchsorted(group[real], group, side="right") - 1, 0)
            told = place[real[hi]] - place[real[lo]] if rule["form"] == Cost.RANGE else hi - lo
            found.append((group, np.where(code == missing, 0.0, told / whole)))
            width *= 2
    if len(np.unique(found[-1][0])) > 1:
        found.append((np.zeros(size, np.int64), np.ones(size)))
    n_groups = np.array([len(np.unique(group)) for group, _ in found])
    coarser = np.flatnonzero(np.diff(n_groups, prepend=size + 1))  # a branch may repeat its label
    return [(found[at][0], found[at][1] * rule["weight"]) for at in coarser]


def _by_loss(lost: list[FloatArray], most: int, rng: np.random.Generator) -> Iterator[IntArray]:
    """Yield combinations by rising loss, at last that of all last levels.

    `lost`: the mean loss of the levels of each column.
    """
    heights = np.array([len(of) for of in lost])
    n = int(np.prod(heights.astype(np.float64)).clip(max=2.0**62))
    if n <= _MOST_LISTED:
        all_ = np.stack(np.unravel_index(np.arange(n), heights), axis=1)
    else:
        all_ = np.vstack([rng.integers(0, heights, (_MOST_LISTED, len(heights))), heights - 1])
    total = sum(of[all_[:, c]] for c, of in enumerate(lost))
    order = np.argsort(total, kind="stable")
    some = np.unique(np.linspace(0, len(order) - 1, max(most, 1)).astype(np.int64)[::-1])
    yield from all_[order[some]]


def _groups(rows: IntArray, key: NDArray[np.int64], k: int) -> Iterator[IntArray]:
    """Yield the rows of each key that at least k of them have."""
    order = np.argsort(key, kind="stable")
    starts = np.flatnonzero(np.diff(key[order], prepend=key[order[0]] - 1))
    ends = np.r_[starts[1:], len(rows)]
    for begin, end in zip(starts.tolist(), ends.tolist(), strict=True):
        if end - begin >= k:
            yield rows[order[begin:end]]
