"""Near pairs of classes, pooled and cut in two again, in the best place.

Classes improved in rounds, each of which lowers the sum of squares.

Classes whose members lie nearer to other classes are given up.
"""

from typing import NamedTuple

import numpy as np

from anonymizer.algorithms.kaca.bisection import both_keep
from anonymizer.algorithms.kaca.features import means, nearest, sum_of_squares
from anonymizer.algorithms.kernels import kernel
from anonymizer.algorithms.records.classes import SUPPRESSED, classes_of, without_gaps
from anonymizer.algorithms.records.problem import Problem, ProblemArrays
from anonymizer.domain.arrays import BoolArray, FloatArray, Int32Array, IntArray

_MOST = 64
"""Classes' worth of records up to which a pool is cut: a crowd at one place is near to many."""
_FEW = 48
_TINY = 1e-9


class Linked(NamedTuple):
    """Classes as linked lists of records.

    Attributes
    ----------
    class_of
        Class of each record, below 0 where it has none, shape (n,).
    first
        First member of each class, -1 where it has none, shape (room,).
    after
        The member after each record, -1 after the last one, shape (n,).
    size
        Number of members of each class, shape (room,).
    """

    class_of: Int32Array
    first: IntArray
    after: IntArray
    size: IntArray


def linked(class_of: Int32Array, room: int) -> Linked:
    """Return classes as lists that share `class_of`, for as many as there is room for."""
    classes = classes_of(class_of)
    first, size = np.full(room, -1, np.int64), np.zeros(room, np.int64)
    size[: len(classes)] = np.diff(classes.first_of)
    some = np.flatnonzero(size)
    first[some] = classes.member[classes.first_of[some]]
    after = np.full(len(class_of), -1, np.int64)
    after[classes.member[:-1]] = classes.member[1:]
    after[classes.member[classes.first_of[some + 1] - 1]] = -1
    return Linked(class_of, first, after, size)


@kernel
def recut(
    feature: FloatArray,
    by_size: bool,  # noqa: FBT001  numba knows no keyword-only parameters
    problem: ProblemArrays,
    k: int,
    lists: Linked,
    n_classes: int,
    near: IntArray,
    active: BoolArray,
) -> tuple[int, float]:
    """Cut each class, and each near pair of which one is active, in place.

    Parameters
    ----------
    feature
        Of each record, shape (n, features).
    by_size
        Whether k records keep the promise, whichever they are.
    problem, k
        The records and what is asked of their classes; k of the promise.
    lists
        The classes; changed in place.
    n_classes
        Those in use, of as many as there is room for.
    near
        Classes to pool each with, itself among them to be cut alone, shape (classes, some).
    active
        Classes that are worth another look, shape (room,); then those that were changed.

    Returns
    -------
    n_classes, saved
        Classes in use, and what the sum of squares fell by.

    Notes
    -----
    A pair is cut across the line between the two means or across an axis, where that leaves the
    smallest sum of squares, with k records or more on either side; pools of more than 64 k
    records are left as they are. O(n near features^2), and judging where `by_size` does not do.
    """
    first, size = lists.first, lists.size
    n, n_features = feature.shape
    most = min(_MOST * k, n)
    pool, best = np.empty(most, np.int64), np.empty(most, np.int64)
    local = np.empty((most, n_features))
    changed = np.zeros(len(active), np.bool_)
    saved = 0.0
    for a in range(len(near)):
        for b in near[a]:
            if size[a] == 0 or size[b] == 0:
                continue
            if not (active[a] or active[b] or changed[a] or changed[b]):
                continue
            if size[a] + (size[b] if b != a else 0) > most:
                continue
            m = _gather(a, lists, feature, pool, local, 0)
            if b == a:
                if m < 2 * k or n_classes == len(first):
                    continue
                b = n_classes  # noqa: PLW2901  one class is cut in two
            elif b < a and _among(near[b], a):
                continue
            else:
                m = _gather(b, lists, feature, pool, local, m)
            cut, gain = _best_cut(local[:m], size[a], by_size, problem, k, pool[:m], best)
            if cut > 0:
                saved += gain
                _link(best[:cut], a, lists)
                _link(best[cut:m], b, lists)
                changed[a] = changed[b] = True
                n_classes = max(n_classes, b + 1)
    active[:] = changed
    return n_classes, saved


@kernel
def _best_cut(
    local: FloatArray,
    n_own: int,
    by_size: bool,  # noqa: FBT001  numba knows no keyword-only parameters
    problem: ProblemArrays,
    k: int,
    pool: IntArray,
    best: IntArray,
) -> tuple[int, float]:
    """Return where to cut the pool once it is in the order `best`, and what that saves.

    0: it is best as it is, the first `n_own` one class and the rest the other.
    """
    m, n_features = local.shape
    total, own = np.zeros(n_features), np.zeros(n_features)
    for i in range(m):
        for f in range(n_features):
            total[f] += local[i, f]
            if i < n_own:
                own[f] += local[i, f]
    now = _between(own, total, n_own, m)
    enough = now + _TINY * _squares(local)
    at = 0
    for axis in range(n_features + 1):
        key = local[:, axis].copy() if axis < n_features else _across(local, own, total, n_own)
        if key.min() == key.max():
            continue
        order = _order(key)
        cut, between = _widest(local, order, total, k)
        if between > enough and (by_size or both_keep(problem, k, pool[order], cut)):
            at, enough = cut, between
            best[:m] = pool[order]
    return at, enough - now


@kernel
def _across(local: FloatArray, own: FloatArray, total: FloatArray, n_own: int) -> FloatArray:
    """Return how far along the way between the two means each record lies."""
    m, n_features = local.shape
    key = np.zeros(m)
    if n_own < m:
        for f in range(n_features):
            way = own[f] / n_own - (total[f] - own[f]) / (m - n_own)
            for i in range(m):
                key[i] += way * local[i, f]
    return key


@kernel
def _widest(local: FloatArray, order: IntArray, total: FloatArray, k: int) -> tuple[int, float]:
    """Return the cut of an order, k on either side, whose halves lie farthest apart."""
    m, n_features = local.shape
    left = np.zeros(n_features)
    at, widest = 0, -1.0
    for cut in range(1, m - k + 1):
        for f in range(n_features):
            left[f] += local[order[cut - 1], f]
        if cut >= k:
            between = _between(left, total, cut, m)
            if between > widest:
                at, widest = cut, between
    return at, widest


@kernel
def _between(left: FloatArray, total: FloatArray, n_left: int, n: int) -> float:
    """Return what of the squared distances to the origin is due to the two means."""
    between = 0.0
    for f in range(len(left)):
        right = total[f] - left[f]
        between += left[f] * left[f] / n_left
        if n_left < n:
            between += right * right / (n - n_left)
    return between


@kernel
def _squares(local: FloatArray) -> float:
    """Return the squared distances to the mean, summed."""
    m, n_features = local.shape
    squares = 0.0
    for f in range(n_features):
        total = 0.0
        for i in range(m):
            total += local[i, f]
            squares += local[i, f] * local[i, f]
        squares -= total * total / m
    return max(squares, 0.0)


@kernel
def _order(key: FloatArray) -> IntArray:
    """Return the rising order; by insertion, which is the quickest where there are few."""
    m = len(key)
    if m > _FEW:
        return np.argsort(key, kind="mergesort")
    order = np.arange(m)
    for i in range(1, m):
        moved, j = order[i], i
        while j > 0 and key[order[j - 1]] > key[moved]:
            order[j] = order[j - 1]
            j -= 1
        order[j] = moved
    return order


@kernel
def _gather(
    c: int, lists: Linked, feature: FloatArray, pool: IntArray, local: FloatArray, m: int
) -> int:
    """Add a class to the pool of m, its features seen from the pool's first; return the new m."""
    first, after = lists.first, lists.after
    i = first[c]
    while i >= 0:
        pool[m] = i
        for f in range(feature.shape[1]):
            local[m, f] = feature[i, f] - feature[pool[0], f]
        m += 1
        i = after[i]
    return m


@kernel
def _link(member: IntArray, c: int, lists: Linked) -> None:
    """Make `member` the class c."""
    lists.first[c], lists.size[c] = member[0], len(member)
    for i in range(len(member)):
        lists.class_of[member[i]] = c
        lists.after[member[i]] = member[i + 1] if i + 1 < len(member) else -1


@kernel
def _among(some: IntArray, one: int) -> bool:
    for each in some:  # noqa: SIM110  numba has no any() of a generator
        if each == one:
            return True
    return False


@kernel
def dissolve(
    feature: FloatArray,
    class_of: Int32Array,
    first_of: IntArray,
    member: IntArray,
    mean: FloatArray,
    near: IntArray,
) -> float:
    """Hand out the members of classes to near ones where that lowers the sum of squares, in place.

    Parameters
    ----------
    feature
        Of each record, shape (n, features).
    class_of
        Changed in place, shape (n,).
    first_of, member
        The same classes in compressed sparse rows.
    mean
        Of each class, shape (classes, features).
    near
        Classes that may take them, shape (classes, some); itself is passed over.

    Returns
    -------
    saved
        What the sum of squares fell by, at the least.

    Notes
    -----
    As where three trucks of a class left at 8:00 and two at 8:05, and at either minute there are
    enough. The squared distance to the mean of a class is more than a record adds to it, also
    when others join it, as the mean follows them. A class that has been added to stays, and one
    that was given up takes nobody, so that the means compared are those of the beginning.
    O(n near features).
    """
    n_classes = len(first_of) - 1
    fixed = np.zeros(n_classes, np.bool_)
    gone = np.zeros(n_classes, np.bool_)
    to = np.empty(len(member), np.int32)
    saved = 0.0
    for a in range(n_classes):
        if fixed[a]:
            continue
        now, then = 0.0, 0.0
        for at in range(first_of[a], first_of[a + 1]):
            now += _squared(feature[member[at]], mean[a])
            nearest = np.inf
            for b in near[a]:
                if b != a and not gone[b]:
                    distance = _squared(feature[member[at]], mean[b])
                    if distance < nearest:
                        nearest, to[at] = distance, b
            then += nearest
        if then < now:
            saved += now - then
            gone[a] = True
            for at in range(first_of[a], first_of[a + 1]):
                class_of[member[at]] = to[at]
                fixed[to[at]] = True
    return saved


@kernel
def _squared(one: FloatArray, other: FloatArray) -> float:
    squared = 0.0
    for f in range(len(one)):
        squared += (one[f] - other[f]) * (one[f] - other[f])
    return squared


_NEAR = 6
_ROUNDS = 8
_ENOUGH = 0.02


def improve(
    problem: Problem,
    feature: FloatArray,
    class_of: Int32Array,
    *,
    by_size: bool,
    may_grow: bool,
) -> Int32Array:
    """Return classes with a smaller sum of squares that keep the promise as those given do.

    Parameters
    ----------
    feature
        Of each record, shape (n, features).
    class_of
        Classes from 0 up without a gap that keep the promise; `SUPPRESSED` stays.
    by_size
        Whether k records keep the promise, whichever they are.
    may_grow
        Whether a class that keeps the promise does so with any record more.

    Notes
    -----
    A round gives up classes whose members are better off in near ones (where classes may grow),
    then cuts each class, pooled with each of its six nearest, in two again. It is the last one
    when it saves less than 2 %, or the eighth. Expected O(n log n) a round.
    """
    p = problem
    out = class_of.copy()
    published = out != SUPPRESSED
    restless = np.ones(len(out), bool)  # records of a class that the last round changed
    total = sum_of_squares(feature, out)
    for _ in range(_ROUNDS):
        mean = means(feature[published], out[published])
        _, near = nearest(mean, mean, _NEAR + 1)
        before, classes = out.copy(), classes_of(out)
        saved = 0.0
        if may_grow:
            saved = dissolve(feature, out, classes.first_of, classes.member, mean, near)
        room = max(len(classes), len(out) // p.k + 1)
        active = np.zeros(room, bool)
        active[out[published & (restless | (out != before))]] = True
        _, cut = recut(
            feature, by_size, p.arrays, p.k, linked(out, room), len(classes), near, active
        )
        restless = published & active[out]
        out = without_gaps(out)
        if saved + cut <= _ENOUGH * total:
            break
        total -= saved + cut
    return out
