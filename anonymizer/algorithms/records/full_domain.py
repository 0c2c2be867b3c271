"""Full-domain generalization, repeated for those that are left over: a start for large classes.

A combination of levels, one for each quasi-identifier, generalizes all records alike; those that
then look alike are a class, if they keep the promise. Combinations are tried from the least loss
on, each for the records that the ones before have left [1]_. Where classes are large and labels
come from hierarchies, a search that moves few records at a time does not find such classes.

What is found depends on the order. So many orders are tried, each near the best one so far: it
counts the losses of the columns with other weights.

References
----------
.. [1] F. Prasser et al., "Flexible data anonymization using ARX: current status and challenges
   ahead", 2020 (local recoding by repeated full-domain generalization).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from anonymizer.algorithms.kernels import kernel
from anonymizer.algorithms.records.classes import SUPPRESSED
from anonymizer.algorithms.records.criteria import class_keeps
from anonymizer.algorithms.records.effort import Effort
from anonymizer.algorithms.records.problem import Cost, ProblemArrays
from anonymizer.domain.arrays import FloatArray, Int32Array, IntArray

Level: TypeAlias = tuple[IntArray, FloatArray]
"""The group of each code, and what a label of that group loses."""
_WORK_PER_CALL = 2_000_000
_WORK_PER_HIT, _WORK_PER_GROUP = 10_000, 400
"""For a combination with groups, and for each of these, measured, in the unit of `make_moves`."""
_MOST_LISTED = 2**16
"""Combinations that are compared by their loss; of more, a sample."""
_FIRST = 100
"""Combinations that are tried whatever the work."""
_FEWEST_ORDERS = 2
"""So many orders of all combinations must be affordable, or few combinations are tried once."""
_SPREADS = (0.1, 0.2, 0.4)
"""Standard deviations of the logarithm by which the weights of an order differ from the best."""


class Grouping(NamedTuple):
    """The levels of all columns, and working memory, as kernels take them."""

    number: NDArray[np.uint64]
    first: IntArray
    """`number`, `first`: a random number for the group of each code, for all columns and levels,
    concatenated; and where those of each column and level begin, shape (columns, most levels)."""
    name: NDArray[np.uint64]
    size: IntArray
    """`name`, `size`: a hash table of groups: their names, and how many records they have, shape
    (2^x,)."""
    own: NDArray[np.uint64]
    slot: IntArray
    """`own`, `slot`: the name of the group of each record looked at, and where in the table it is,
    shape (n,)."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Lattice:
    """Combinations of levels."""

    problem: ProblemArrays
    k: int
    """`problem`, `k`: the criteria of a class."""
    code: Int32Array
    """The codes of the records, shape (columns, n)."""
    lost: Sequence[FloatArray]
    """What each code of a column loses at each level, shape (levels, codes) for each column."""
    grouping: Grouping
    """The levels as kernels take them."""
    listed: IntArray
    """All combinations, or a sample, a level for each column, shape (m, columns)."""


def repeated_levels(
    problem: ProblemArrays, n_qis: int, *, k: int, effort: Effort, rng: np.random.Generator
) -> Int32Array:
    """Return the class of each record by the best of the orders that were tried.

    `SUPPRESSED` for those that no combination puts into a class. Without a limit of work, and with
    little, one order of few combinations is tried.

    Notes
    -----
    O(n columns) for each combination in each order; combinations by which no k records look alike
    are looked at once. Groups are named by 64 random bits: if two names were equal by chance, two
    groups would be one class, which is no less safe.
    """
    n = len(problem.cells)
    lattice = _lattice([_levels_of(problem, c) for c in range(n_qis)], problem, k, rng)
    affordable = ((effort.work or 0) - effort.used) // _work_of(n)
    weight = np.ones(n_qis)
    if len(lattice.listed) * _FEWEST_ORDERS > affordable:
        ordered = _ordered(lattice.listed, lattice, weight)
        some = np.linspace(0, len(ordered) - 1, max(affordable, _FIRST)).astype(np.int64)
        return _formed(ordered[np.unique(some)], lattice, effort)[0]
    found = _with_groups(lattice, effort)
    best, least = _formed(_ordered(found, lattice, weight), lattice, effort)
    turn = 0
    while effort.goes_on():
        tried = weight * rng.lognormal(0.0, _SPREADS[turn % len(_SPREADS)], n_qis)
        class_of, lost = _formed(_ordered(found, lattice, tried), lattice, effort)
        if lost < least:
            weight, best, least = tried, class_of, lost
        turn += 1
    return best


def _work_of(n: int) -> int:
    """Return the work for one combination of levels of n records, in the unit of `make_moves`."""
    return 100 + 3 * n // 2


def _lattice(
    levels: Sequence[Sequence[Level]], problem: ProblemArrays, k: int, rng: np.random.Generator
) -> _Lattice:
    n, q = len(problem.cells), len(levels)
    height = np.array([len(of) for of in levels], np.int64)
    number: list[NDArray[np.uint64]] = []
    first = np.zeros((q, int(height.max(initial=0))), np.int64)
    for c, of in enumerate(levels):
        for level, (group, _) in enumerate(of):
            first[c, level] = sum(map(len, number))
            named = rng.integers(0, 2**64, len(group), dtype=np.uint64)
            number.append(named[group])
    n_all, n_slots = prod(height.tolist()), 1 << (2 * n).bit_length()
    if n_all <= _MOST_LISTED:
        listed = np.stack(np.unravel_index(np.arange(n_all), height.tolist()), axis=1)
    else:
        listed = np.vstack([rng.integers(0, height, (_MOST_LISTED, q)), height - 1])
    grouping = Grouping(
        np.concatenate(number),
        first,
        np.zeros(n_slots, np.uint64),
        np.zeros(n_slots, np.int64),
        np.zeros(n, np.uint64),
        np.zeros(n, np.int64),
    )
    lost = [np.stack([loss for _, loss in of]) for of in levels]
    return _Lattice(problem, k, problem.cells[:, :q].T.copy(), lost, grouping, listed)


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


def _ordered(some: IntArray, lattice: _Lattice, weight: FloatArray) -> IntArray:
    """Return combinations by rising loss, with a weight for each column."""
    total = np.zeros(len(some))
    for c, (code, lost) in enumerate(zip(lattice.code, lattice.lost, strict=True)):
        share = np.bincount(code, minlength=lost.shape[1]) / len(code)
        total += weight[c] * (lost @ share)[some[:, c]]
    return some[np.argsort(total, kind="stable")]


def _with_groups(lattice: _Lattice, effort: Effort) -> IntArray:
    """Return the combinations by which k records look alike.

    From the highest on. Where all are listed, those below one without such a group have none.
    """
    listed, top = lattice.listed, lattice.listed.max(axis=0)
    height = listed.sum(axis=1)
    is_whole = len(listed) == np.prod(top + 1)
    step = np.r_[np.cumprod((top + 1)[:0:-1])[::-1], 1]
    has = np.ones(len(listed), bool)
    for each in np.unique(height)[::-1]:
        at = np.flatnonzero(height == each)
        for c in range(len(top) if is_whole else 0):
            below = at[listed[at, c] < top[c]]
            has[below] &= has[below + step[c]]
        at = at[has[at]]
        has[at], x = False, -1
        while (x := _next(x + 1, listed[at], lattice.code, lattice, effort)) < len(at):
            has[at[x]] = True
    return listed[has]


def _formed(some: IntArray, lattice: _Lattice, effort: Effort) -> tuple[Int32Array, float]:
    """Return the class of each record by some combinations in their order, and the loss of all."""
    problem, k, grouping = lattice.problem, lattice.k, lattice.grouping
    q, n = lattice.code.shape
    class_of, rows, n_classes = np.full(n, SUPPRESSED, np.int32), np.arange(n), 0
    code, lost, x = lattice.code, 0.0, -1
    while (x := _next(x + 1, some, code, lattice, effort)) < len(some):
        slot = grouping.slot[: len(rows)]
        large = np.flatnonzero(grouping.size[slot] >= k)
        large = large[np.argsort(slot[large], kind="stable")]
        edges = np.r_[0, np.flatnonzero(np.diff(slot[large])) + 1, len(large)]
        n_classes = _classes(problem, k, rows[large], edges, n_classes, class_of)
        effort.spend(_WORK_PER_HIT + _WORK_PER_GROUP * len(edges))
        left = class_of[rows] == SUPPRESSED
        for c in range(q):
            lost += float(lattice.lost[c][some[x, c], code[c, ~left]].sum())
        rows, code = rows[left], code[:, left]
    return class_of, lost + len(rows) * float(problem.rule["weight"][:q].sum())


def _next(begin: int, some: IntArray, code: Int32Array, lattice: _Lattice, effort: Effort) -> int:
    """Return the first combination, from `begin` on, by which k of the records look alike.

    `code`: of the records, shape (columns, m). `len(some)` if there is none, or the effort ends.
    The groups are in the hash table then.
    """
    work = _work_of(code.shape[1])
    while begin < len(some) and code.shape[1] >= lattice.k and effort.goes_on():
        end = min(begin + max(_WORK_PER_CALL // work, 1), len(some))
        found = _first_with_group(some[begin:end], code, lattice.k, lattice.grouping)
        effort.spend(work * min(found + 1, end - begin))
        if found < end - begin:
            return begin + found
        begin = end
    return len(some)


@kernel
def _first_with_group(some: IntArray, code: Int32Array, k: int, grouping: Grouping) -> int:
    """Return the first combination by which k of the records look alike, or `len(some)`."""
    number, first, name, size, own, slot = grouping
    n_slots, n = 1, code.shape[1]
    while n_slots < 2 * n:
        n_slots *= 2
    mask = np.uint64(n_slots - 1)
    for x in range(len(some)):
        own[:n] = 0
        for c in range(len(code)):
            begin = first[c, some[x, c]]
            for y in range(n):
                own[y] ^= number[begin + code[c, y]]
        size[:n_slots] = 0
        most = 0
        for y in range(n):
            at = np.int64(own[y] & mask)
            while size[at] > 0 and name[at] != own[y]:
                at = (at + 1) % n_slots
            name[at] = own[y]
            size[at] += 1
            slot[y] = at
            most = max(most, size[at])
        if most >= k:
            return x
    return len(some)


@kernel
def _classes(
    problem: ProblemArrays, k: int, rows: IntArray, edges: IntArray, n: int, class_of: Int32Array
) -> int:
    """Give numbers from `n` on to the groups that keep the promise; return the next number."""
    for x in range(len(edges) - 1):
        group = rows[edges[x] : edges[x + 1]]
        if class_keeps(problem, k, group):
            class_of[group] = n
            n += 1
    return n
