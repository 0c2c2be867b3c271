"""Near neighbours of records: for each distinct tuple of quasi-identifiers, the nearest others.

The distance of two tuples is what a class of just these two would lose. A record that needs a class
tries those of its neighbours, so that the cost does not depend on the number of classes. The lists
begin with neighbours in several orders and are refined by the observation that a neighbour of a
neighbour is likely to be a neighbour (NN-descent [1]_).

References
----------
.. [1] W. Dong, M. Charikar and K. Li, "Efficient k-nearest neighbor graph construction for generic
   similarity measures", WWW 2011.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from anonymizer.algorithms.kernels import inner_kernel, kernel
from anonymizer.algorithms.records.criteria import column_loss
from anonymizer.algorithms.records.ordering import joint_code, stable_order
from anonymizer.algorithms.records.problem import ProblemArrays
from anonymizer.domain.arrays import FloatArray, Int32Array, IntArray

Float32Array: TypeAlias = NDArray[np.float32]

N_NEAR = 32
"""Neighbours of a tuple."""
NONE = -1
_BESIDE = 4
_ROUNDS = 4
_THROUGH = 12
"""Neighbours of each neighbour that are looked at in a round."""
_ENOUGH = 0.01
_TUPLES_PER_CALL = 2_000
_LOOK_WORK = 5
"""Of one pair of tuples, measured."""
_SAMPLED = 2_000


class Neighbors(NamedTuple):
    """The neighbours of every record, as kernels take them.

    `tuple_of`: of each record, shape (n,), tuples being stretches of the table; `first`: first
    record of each tuple, and n at last, shape (tuples + 1,); `near`: nearest tuples, the nearest
    first, `NONE` at the end, shape (tuples, near).
    """

    tuple_of: Int32Array
    first: Int32Array
    near: Int32Array


def neighbors_of(
    problem: ProblemArrays,
    n_qis: int,
    *,
    keep_going: Callable[[], bool] = lambda: True,
    spend: Callable[[int], None] = lambda _work: None,
) -> Neighbors:
    """Return the near neighbours of the records, whose equal tuples lie side by side.

    If time runs out, the lists are as good as they have become. `spend` is called with work done,
    roughly 10 ns each.

    Notes
    -----
    A list begins with the tuples beside it in one order for each quasi-identifier, which comes last
    there: they differ in that attribute alone, or in few. Then at most four rounds look through the
    neighbours of neighbours. O(n (columns log n + columns near^2)), and 260 bytes for each tuple.
    """
    cells = problem.cells[:, :n_qis]
    begins = np.ones(len(cells), bool)
    begins[1:] = (cells[1:] != cells[:-1]).any(axis=1)
    starts = np.flatnonzero(begins)
    first = np.append(starts, len(cells)).astype(np.int32)
    tuple_of = (np.cumsum(begins) - 1).astype(np.int32)
    n = len(starts)
    n_near = min(N_NEAR, max(n - 1, 0))
    near, far = (
        np.full((n, n_near), NONE, np.int32),
        np.full((n, n_near), np.inf, np.float32),
    )
    found = Neighbors(tuple_of, first, near)
    if n_near == 0:
        return found
    for order in _orders(cells[starts], problem, n_qis):
        for begin in range(0, n, _TUPLES_PER_CALL):
            if not keep_going():
                return found
            _look_beside(begin, order, found, far, problem, n_qis)
            spend(_LOOK_WORK * _BESIDE * _TUPLES_PER_CALL)
    seen = np.full(n, -1, np.int32)
    for _ in range(_ROUNDS):
        gained = 0
        for begin in range(0, n, _TUPLES_PER_CALL):
            if not keep_going():
                return found
            new, looks = _look_through(begin, found, far, seen, problem, n_qis)
            spend(_LOOK_WORK * looks)
            gained += new
        seen[:] = -1
        if gained < _ENOUGH * n * n_near:
            break
    return found


def _orders(tuples: Int32Array, problem: ProblemArrays, n_qis: int) -> Iterator[IntArray]:
    """Yield the order of the table, then one for each QI by the others first, dear ones first."""
    yield np.arange(len(tuples))
    ways = np.argsort(-_usual_losses(tuples, problem, n_qis), kind="stable").tolist()
    for last in ways:
        key = joint_code(tuples[:, [*(each for each in ways if each != last), last]])
        yield stable_order(key.astype(np.uint64), np.arange(len(tuples)))


@kernel
def _usual_losses(tuples: Int32Array, problem: ProblemArrays, n_qis: int) -> FloatArray:
    """Return what two values of each QI lose on average, where they differ; on a sample."""
    n = len(tuples)
    step = max(1, n // _SAMPLED)
    total, times = np.zeros(n_qis), np.zeros(n_qis)
    for i in range(0, n, step):
        j = (i + n // 2) % n
        for c in range(n_qis):
            lo, hi = min(tuples[i, c], tuples[j, c]), max(tuples[i, c], tuples[j, c])
            if lo != hi:
                total[c] += column_loss(problem.rule[c], 2, lo, hi, problem.codes)
                times[c] += 1
    return total / np.maximum(times, 1)


@inner_kernel
def apart(i: int, j: int, bound: float, problem: ProblemArrays, n_qis: int) -> float:
    """Return the loss of a class of records `i` and `j`; infinite if not below `bound`."""
    cells, rule, codes = problem.cells, problem.rule, problem.codes
    total = 0.0
    for c in range(n_qis):
        one, other = int(cells[i, c]), int(cells[j, c])
        if one != other:
            total += column_loss(rule[c], 2, min(one, other), max(one, other), codes)
            if total >= bound:
                return np.inf
    return total


@inner_kernel
def _offer(t: int, u: int, away: float, near: Int32Array, far: Float32Array) -> int:
    """Enter tuple `u` into the list of `t` if it is near enough and not there; return 1 if so."""
    last = near.shape[1] - 1
    if away >= far[t, last]:
        return 0
    for x in range(last + 1):
        if near[t, x] == u:
            return 0
    x = last
    while x > 0 and far[t, x - 1] > away:
        near[t, x] = near[t, x - 1]
        far[t, x] = far[t, x - 1]
        x -= 1
    near[t, x] = u
    far[t, x] = away
    return 1


@kernel
def _look_beside(
    begin: int,
    order: IntArray,
    found: Neighbors,
    far: Float32Array,
    problem: ProblemArrays,
    n_qis: int,
) -> None:
    """Offer the tuples from `begin` on those beside them in an order, and the other way round."""
    first, near = found.first, found.near
    last = near.shape[1] - 1
    for at in range(begin, min(begin + _TUPLES_PER_CALL, len(order))):
        t = order[at]
        for beside in range(at + 1, min(at + 1 + _BESIDE, len(order))):
            u = order[beside]
            bound = max(far[t, last], far[u, last])
            away = apart(first[t], first[u], bound, problem, n_qis)
            _offer(t, u, away, near, far)
            _offer(u, t, away, near, far)


@kernel
def _look_through(
    begin: int,
    found: Neighbors,
    far: Float32Array,
    seen: Int32Array,
    problem: ProblemArrays,
    n_qis: int,
) -> tuple[int, int]:
    """Offer the tuples from `begin` on the neighbours of their neighbours.

    Returns how many neighbours are new, and how many tuples were looked at.
    """
    first, near = found.first, found.near
    n_near = near.shape[1]
    gained, looks = 0, 0
    for t in range(begin, min(begin + _TUPLES_PER_CALL, len(near))):
        seen[t] = t
        for x in range(n_near):
            if near[t, x] >= 0:
                seen[near[t, x]] = t
        for x in range(n_near):
            u = near[t, x]
            if u < 0:
                break
            for y in range(min(_THROUGH, n_near)):
                v = near[u, y]
                if v < 0:
                    break
                if seen[v] == t:
                    continue
                seen[v] = t
                looks += 1
                bound = max(far[t, n_near - 1], far[v, n_near - 1])
                away = apart(first[t], first[v], bound, problem, n_qis)
                gained += _offer(t, v, away, near, far)
                gained += _offer(v, t, away, near, far)
    return gained, looks
