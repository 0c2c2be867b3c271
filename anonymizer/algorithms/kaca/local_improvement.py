"""Local improvement of KACA's classes: rounds that each lower the sum of squares.

A round dissolves classes whose members lie nearer to other classes, and pools each class with near
ones and cuts the pool in two again at the best place.
"""

from typing import NamedTuple

import numpy as np

from anonymizer.algorithms.kaca.bisection import both_keep
from anonymizer.algorithms.kaca.features import Points, coordinate, means, nearest, sum_of_squares
from anonymizer.algorithms.kernels import inner_kernel, kernel
from anonymizer.algorithms.records.classes import SUPPRESSED, without_gaps
from anonymizer.algorithms.records.problem import Problem, ProblemArrays
from anonymizer.domain.arrays import BoolArray, FloatArray, Int32Array, IntArray

_MOST = 64
"""Pools of up to this many times k records are cut: a large class can be near to many others."""
_FEW = 48
_AT_ONCE = 4
_TINY = 1e-9
_ROUNDING = 2.0**-42
"""Of the squares of a pool and for each record: a bound on what rounding adds to a sum of them."""


class Linked(NamedTuple):
    """Classes as linked lists of records."""

    class_of: Int32Array
    """Class of each record, below 0 where it has none, shape (n,)."""
    first: IntArray
    """First member of each class, -1 where it has none, shape (room,)."""
    after: IntArray
    """The member after each record, -1 after the last one, shape (n,)."""
    size: IntArray
    """Number of members of each class, shape (room,)."""


def linked(class_of: Int32Array, room: int) -> Linked:
    """Return classes as lists that share `class_of`, with room for `room` classes."""
    lists = Linked(
        class_of,
        np.full(room, -1, np.int64),
        np.full(len(class_of), -1, np.int64),
        np.zeros(room, np.int64),
    )
    _fill(lists)
    return lists


@kernel
def _fill(lists: Linked) -> None:
    """Fill empty lists, so that records rise in each. O(n)."""
    class_of, first, after, size = lists
    for i in range(len(class_of) - 1, -1, -1):
        c = class_of[i]
        if c >= 0:
            after[i], first[c] = first[c], i
            size[c] += 1


class _Room(NamedTuple):
    """Room for a pool of records.

    `pool`, `local`: the records, and their features relative to the first; `key`, `order`: by what
    they are ordered, and so; `alike`: how many of the same key the order has from a place on;
    `best`: the records in the order of the best cut; `origin`: features of the first; `own`, `all`:
    sums and sums of squares of the first class and of all; `mean`, `left`: of all, and sums of
    those before a cut, and nothing up to a multiple of four.
    """

    pool: IntArray
    local: FloatArray
    key: FloatArray
    order: IntArray
    alike: IntArray
    best: IntArray
    origin: FloatArray
    own: FloatArray
    all: FloatArray
    mean: FloatArray
    left: FloatArray


@kernel
def recut(
    points: Points,
    by_size: bool,  # noqa: FBT001  numba knows no keyword-only parameters
    problem: ProblemArrays,
    k: int,
    lists: Linked,
    n_classes: int,
    near: IntArray,
    active: BoolArray,
) -> tuple[int, float]:
    """Recut each class, and each near pair with an active class, in place.

    Parameters
    ----------
    by_size
        Whether any k records keep the promise.
    problem, k
        The records and the criteria of their classes; k of the promise.
    lists
        The classes; changed in place.
    near
        Classes to pool each with, itself included, to be cut alone, shape (classes, near).
    active
        Classes to examine again, shape (room,); on return, those that were changed.

    Returns
    -------
    n_classes, saved
        Classes in use, and the decrease of the sum of squares.

    Notes
    -----
    A pair is cut across the line between its means or across an axis, at the smallest sum of
    squares with k records or more on either side; pools of more than 64 k records are left
    unchanged. O(n near features^2), plus checking the criteria unless `by_size`.
    """
    n, n_features = len(points.code), len(points.start)
    n_places = -(-n_features // _AT_ONCE) * _AT_ONCE
    most = min(_MOST * k, n)
    room = _Room(
        np.empty(most, np.int64),
        np.empty((most, n_features)),
        np.empty(max(most, _FEW)),
        np.empty(most, np.int64),
        np.empty(_FEW, np.int64),
        np.empty(most, np.int64),
        np.empty(n_features),
        np.empty((2, n_features)),
        np.empty((2, n_features)),
        np.zeros(n_places),
        np.zeros(n_places),
    )
    best = room.best
    changed = np.zeros(len(active), np.bool_)
    saved = 0.0
    for a in range(len(near)):
        n_own = 0  # it is gathered when it is needed, and again when it was changed
        for b in near[a]:
            if not (active[a] or active[b] or changed[a] or changed[b]):
                continue
            if not _may_pool(a, b, k, most, n_classes, near, lists):
                continue
            if n_own == 0:
                n_own = _gather(lists.first[a], 0, room.own, lists, points, room)
            m = _gather(lists.first[b] if b != a else -1, n_own, room.all, lists, points, room)
            if b == a:
                b = n_classes  # noqa: PLW2901  one class is cut in two
            cut, gain = _best_cut(m, n_own, by_size, problem, k, room)
            if cut > 0:
                saved += gain
                _link(best[:cut], a, lists)
                _link(best[cut:m], b, lists)
                changed[a] = changed[b] = True
                n_own = 0
                n_classes = max(n_classes, b + 1)
    active[:] = changed
    return n_classes, saved


@inner_kernel
def _may_pool(
    a: int, b: int, k: int, most: int, n_classes: int, near: IntArray, lists: Linked
) -> bool:
    """Return whether a class is to be cut alone, or pooled with another one: once for each pair."""
    first, size = lists.first, lists.size
    if a == b:
        return 2 * k <= size[a] <= most and n_classes < len(first)
    if size[a] == 0 or size[b] == 0 or size[a] + size[b] > most:
        return False
    return not (b < a and _among(near[b], a))


@kernel
def _best_cut(
    m: int,
    n_own: int,
    by_size: bool,  # noqa: FBT001  numba knows no keyword-only parameters
    problem: ProblemArrays,
    k: int,
    room: _Room,
) -> tuple[int, float]:
    """Return the best cut of the pool in the order `room.best`, and what it saves of the squares.

    0 if the present classes are best: the first `n_own` of the m records and the others.
    """
    key, order, pool = room.key, room.order, room.pool
    total, square = room.all[0], room.all[1]
    n_features = len(total)
    of_mean, squares = 0.0, 0.0
    for f in range(n_features):
        room.mean[f] = total[f] / m
        of_mean += total[f] * room.mean[f]
        squares += square[f]
    now = _between(room.own[0], total, n_own, m)
    enough = now + _TINY * max(squares - of_mean, 0.0)
    of_mean += _ROUNDING * m * squares
    at = 0
    for axis in range(n_features + 1):
        if not _project(axis, m, n_own, room):
            continue
        if m > _FEW:
            order[:m] = np.argsort(key[:m], kind="mergesort")
        else:
            _order(m, room)
        if not _may_reach(enough - of_mean, m, k, room):
            continue
        cut, between = _widest(m, k, room)
        if between > enough and (by_size or both_keep(problem, k, pool[order[:m]], cut)):
            at, enough = cut, between
            for i in range(m):
                room.best[i] = pool[order[i]]
    return at, enough - now


@inner_kernel
def _may_reach(apart: float, m: int, k: int, room: _Room) -> bool:
    """Return False only if no cut of the order has halves as far apart, beyond their mean.

    Without a division, which `_widest` has two of for each feature of each cut.
    """
    local, order, left, mean = room.local, room.order, room.left, room.mean
    for f in range(len(left)):
        left[f] = 0.0
    for cut in range(1, m - k + 1):
        row = order[cut - 1]
        for f in range(local.shape[1]):
            left[f] += local[row, f]
        if cut < k:
            continue
        one, two, three, four = 0.0, 0.0, 0.0, 0.0  # four sums, which do not wait for each other
        for f in range(0, len(left), _AT_ONCE):
            one += (left[f] - cut * mean[f]) ** 2
            two += (left[f + 1] - cut * mean[f + 1]) ** 2
            three += (left[f + 2] - cut * mean[f + 2]) ** 2
            four += (left[f + 3] - cut * mean[f + 3]) ** 2
        if (one + two + three + four) * m > apart * cut * (m - cut):
            return True
    return False


@inner_kernel
def _project(axis: int, m: int, n_own: int, room: _Room) -> bool:
    """Set the key of each record: its place on an axis, or beyond the last one on the line between
    the two means; return whether any two differ.
    """  # noqa: D205  a list
    local, key, own, total = room.local, room.key, room.own[0], room.all[0]
    n_features = len(total)
    n_others = 0
    if axis < n_features:
        for i in range(m):
            key[i] = local[i, axis]
            n_others += key[i] != local[0, axis]
        return n_others > 0
    for i in range(m):
        key[i] = 0.0
    for f in range(n_features if n_own < m else 0):
        way = own[f] / n_own - (total[f] - own[f]) / (m - n_own)
        for i in range(m):
            key[i] += way * local[i, f]
    for i in range(1, m):
        n_others += key[i] != key[0]
    return n_others > 0


@inner_kernel
def _widest(m: int, k: int, room: _Room) -> tuple[int, float]:
    """Return the cut of the order, with k on either side, whose halves are farthest apart."""
    local, order, left, total = room.local, room.order, room.left, room.all[0]
    for f in range(len(total)):
        left[f] = 0.0
    at, widest = 0, -1.0
    for cut in range(1, m - k + 1):
        row = order[cut - 1]
        for f in range(len(total)):
            left[f] += local[row, f]
        if cut >= k:
            between = _between(left, total, cut, m)
            if between > widest:
                at, widest = cut, between
    return at, widest


@inner_kernel
def _between(left: FloatArray, total: FloatArray, n_left: int, n: int) -> float:
    """Return the sum of squares between the two halves, about the origin."""
    between = 0.0
    for f in range(len(total)):
        right = total[f] - left[f]
        between += left[f] * left[f] / n_left
        if n_left < n:
            between += right * right / (n - n_left)
    return between


@inner_kernel
def _order(m: int, room: _Room) -> None:
    """Set the rising order of up to `_FEW`, equal ones as they are, by how many are below each.

    For so few, comparing all is faster than a sort, which cannot foresee how they compare.
    """
    key, order, alike = room.key, room.order, room.alike
    for i in range(m):
        alike[i] = 0
    for i in range(m, _FEW):
        key[i] = np.inf
    for i in range(m):
        n_below = 0
        for j in range(_FEW if m > _FEW // 2 else _FEW // 2):
            n_below += key[j] < key[i]
        order[n_below + alike[n_below]] = i
        alike[n_below] += 1


@inner_kernel
def _gather(i: int, m: int, sums: FloatArray, lists: Linked, points: Points, room: _Room) -> int:
    """Add a list of records to the pool of m; return the new m, and set the sums of all."""
    pool, local, origin, own = room.pool, room.local, room.origin, room.own
    for f in range(len(origin)):
        if m == 0:
            origin[f] = coordinate(points, i, f)
        for each in range(2):
            sums[each, f] = own[each, f] if m > 0 else 0.0
    while i >= 0:
        pool[m] = i
        for f in range(len(origin)):
            off = coordinate(points, i, f) - origin[f]
            local[m, f] = off
            sums[0, f] += off
            sums[1, f] += off * off
        m += 1
        i = lists.after[i]
    return m


@inner_kernel
def _link(member: IntArray, c: int, lists: Linked) -> None:
    """Make `member` the class c."""
    lists.first[c], lists.size[c] = member[0], len(member)
    for i in range(len(member)):
        lists.class_of[member[i]] = c
        lists.after[member[i]] = member[i + 1] if i + 1 < len(member) else -1


@inner_kernel
def _among(some: IntArray, one: int) -> bool:
    for each in some:  # noqa: SIM110  numba has no any() of a generator
        if each == one:
            return True
    return False


@kernel
def dissolve(points: Points, lists: Linked, mean: FloatArray, near: IntArray) -> float:
    """Dissolve classes into near ones where that lowers the sum of squares.

    Parameters
    ----------
    lists
        The classes; the class of each record is changed in place, the lists stay as they were.
    mean
        Mean of each class, shape (classes, features).
    near
        Classes that may take the members, shape (classes, near); the class itself is skipped.

    Returns
    -------
    saved
        A lower bound on the decrease of the sum of squares.

    Notes
    -----
    For example, three trucks of a class left at 8:00 and two at 8:05, and there are enough trucks
    at either minute. The squared distance to the mean of a class is an upper bound on what a record
    adds to its sum of squares, also when others join, since the mean moves towards them. A class
    that took members is not dissolved, and a dissolved class takes none, so that the means compared
    are those from before. O(n near features).
    """
    class_of, first, after, _ = lists
    fixed = np.zeros(len(mean), np.bool_)
    gone = np.zeros(len(mean), np.bool_)
    to = np.empty(len(class_of), np.int32)
    own = np.empty(len(points.start))
    saved = 0.0
    for a in range(len(mean)):
        if fixed[a]:
            continue
        now, then, i = 0.0, 0.0, first[a]
        while i >= 0:
            for f in range(len(own)):
                own[f] = coordinate(points, i, f)
            now += _squared(own, mean[a])
            nearest = np.inf
            for b in near[a]:
                if b != a and not gone[b]:
                    distance = _squared(own, mean[b])
                    if distance < nearest:
                        nearest, to[i] = distance, b
            then += nearest
            i = after[i]
        if then < now:
            saved += now - then
            gone[a] = True
            i = first[a]
            while i >= 0:
                class_of[i] = to[i]
                fixed[to[i]] = True
                i = after[i]
    return saved


@inner_kernel
def _squared(one: FloatArray, other: FloatArray) -> float:
    squared = 0.0
    for f in range(len(one)):
        squared += (one[f] - other[f]) * (one[f] - other[f])
    return squared


_NEAR, _WITHIN = 6, 2.0
"""So many near classes are looked at, each at most this many times as far as the nearest ones."""
_ROUNDS = 8
_ENOUGH = 0.02


def improve(
    problem: Problem,
    points: Points,
    class_of: Int32Array,
    *,
    by_size: bool,
    may_grow: bool,
) -> Int32Array:
    """Return classes with a smaller sum of squares that keep the promise as the given ones do.

    Parameters
    ----------
    class_of
        Classes from 0 up without a gap that keep the promise; `SUPPRESSED` stays.
    by_size
        Whether any k records keep the promise.
    may_grow
        Whether a class that keeps the promise still does with any additional record.

    Notes
    -----
    A round dissolves classes whose members fit better in near ones (if classes may grow), then
    pools each class with each of six near ones and cuts the pool in two again. The rounds end
    when one saves less than 2 %, or after the eighth. Expected O(n log n) for a round.
    """
    p = problem
    out = class_of.copy()
    published = out != SUPPRESSED
    to_examine = np.ones(len(out), bool)  # records of classes that the last round changed
    total = sum_of_squares(points, out)
    for _ in range(_ROUNDS):
        mean = means(points, out)
        _, near = nearest(mean, mean, _NEAR + 1, within=_WITHIN)
        before, saved = out.copy(), 0.0
        if may_grow:
            saved = dissolve(points, linked(out, len(mean)), mean, near)
        room = max(len(mean), len(out) // p.k + 1)
        active = np.zeros(room, bool)
        active[out[published & (to_examine | (out != before))]] = True
        _, cut = recut(points, by_size, p.arrays, p.k, linked(out, room), len(mean), near, active)
        to_examine = published & active[out]
        out = without_gaps(out)
        if saved + cut <= _ENOUGH * total:
            break
        total -= saved + cut
    return out
