"""Learning of a tree: the cuts of quasi-identifiers that best separate a target (CART [1]_).

A cut of a node is chosen from the records of each value: they are counted, where there are many for
each value, or else sorted. The records below a node lie side by side, so that more of them take no
longer each.

References
----------
.. [1] L. Breiman et al., "Classification and regression trees", 1984.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from anonymizer.algorithms.cells.nodes import LEAF, NODE
from anonymizer.algorithms.cells.tree_features import encode, is_one_feature
from anonymizer.algorithms.kernels import inner_kernel, kernel, sort_in_place
from anonymizer.algorithms.records.task import ModelTarget
from anonymizer.domain.arrays import FloatArray, Int32Array, IntArray, RecordArray
from anonymizer.domain.records import Attribute

_COLUMN = np.dtype(
    [
        ("size", np.int64),
        ("is_set", np.bool_),
        ("feature", np.int64),
        ("first", np.int64),
    ],
    align=True,
)
"""A quasi-identifier: number of ranks, whether each is a feature of its own (or they are one), its
first feature, and where its values begin."""
_CUT = np.dtype(
    [
        ("column", np.int64),
        ("last", np.int64),
        ("after", np.int64),
        ("gain", np.float64),
        ("smaller", np.int64),
    ],
    align=True,
)
"""A cut: ranks up to `last` go left, `after` is the next one; of a set, `after` alone goes right.
`smaller` is the size of the smaller part; column -1: there is none."""
_SEEN = np.dtype(
    [("last", np.int64), ("n", np.int64), ("left", np.float64), ("right", np.float64)], align=True
)
"""Of the ranks so far: the last one, their records, and the sums of squares on both sides."""
_COUNTED = 2
"""Records are counted by value with up to so many counters a record."""
_ALIKE = 1e-12
"""Gains that differ by less, as a share, are equal: of equal ones the more even cut is better."""


class _Rows(NamedTuple):
    """Records, those below a node side by side.

    `rank`: of their values, shape (columns, n); `label`, `amount`: of the target, shape (n,), a
    class and 1, or 0 and a number; `order`: the records, shape (n,).
    """

    rank: Int32Array
    label: Int32Array
    amount: FloatArray
    order: IntArray


class _Scratch(NamedTuple):
    """Working memory.

    `seat`: number of each label in a node, -1 elsewhere, shape (labels,); `own`: of each record,
    shape (n,); `key`, `whole`, `number`: shape (n,); `counts`, `sums`: by rank, and by rank and
    label; `total`, `left`, `right`: by label; `seen`, `cut`: one each, see `_SEEN` and `_CUT`.
    """

    seat: Int32Array
    own: Int32Array
    key: IntArray
    whole: Int32Array
    number: FloatArray
    counts: IntArray
    sums: FloatArray
    total: FloatArray
    left: FloatArray
    right: FloatArray
    seen: RecordArray
    cut: RecordArray


def learned(
    codes: Int32Array,
    qis: Sequence[Attribute],
    target: ModelTarget,
    *,
    min_leaf: int,
) -> tuple[RecordArray, IntArray]:
    """Return the nodes of a tree that separates a target, and the records as they lie below them.

    Parameters
    ----------
    codes
        Of each record, shape (n, qis); n > 0.

    Returns
    -------
    node, order
        See `Tree`; features are those of `encode`.

    Notes
    -----
    A node is cut where the Gini impurity, or the variance, falls most, until its target is one.
    Equal cuts: the more even one, then the first. O(n qis depth); 4 bytes for each record and
    quasi-identifier, plus 100 bytes for each record.
    """
    n = len(codes)
    column, value, rank = _ranked(codes, qis)
    if target.is_numeric:
        label, amount = np.zeros(n, np.int32), target.values.astype(np.float64)
        amount = amount - amount.mean()
    else:
        label = np.unique(target.values, return_inverse=True)[1].astype(np.int32)
        amount = np.ones(n)
    rows = _Rows(rank, label, amount, np.arange(n))
    n_labels = int(label.max()) + 1
    node = np.zeros(2 * (n // min_leaf) + 1, NODE)
    node[0]["size"] = n
    room = _COUNTED * n + n_labels
    scratch = _Scratch(
        np.full(n_labels, -1, np.int32),
        np.empty(n, np.int32),
        *(np.empty(n, np.int64), np.empty(n, np.int32), np.empty(n)),
        *(np.zeros(room, np.int64), np.zeros(room)),
        *(np.zeros(n_labels), np.zeros(n_labels), np.zeros(n_labels)),
        *(np.zeros(1, _SEEN), np.zeros(1, _CUT)),
    )
    n_nodes = _learn(node, column, value, rows, min_leaf, scratch)
    return node[:n_nodes].copy(), rows.order


def _ranked(
    codes: Int32Array, qis: Sequence[Attribute]
) -> tuple[RecordArray, FloatArray, Int32Array]:
    """Return the columns, their values by rank, and the rank of each record in each."""
    column = np.zeros(len(qis), _COLUMN)
    rank = np.empty((len(qis), len(codes)), np.int32)
    values: list[FloatArray] = []
    feature, first = 0, 0
    for j, qi in enumerate(qis):
        if is_one_feature(qi):
            place = encode(qi.position[:, None], (qi,))[:, 0].astype(np.float64)
            value, rank_of = np.unique(place, return_inverse=True)
            rank[j] = rank_of.astype(np.int32)[codes[:, j]]
        else:
            value = np.arange(float(qi.size))
            rank[j] = codes[:, j]
        column[j] = len(value), not is_one_feature(qi), feature, first
        values.append(value)
        feature += 1 if is_one_feature(qi) else qi.size
        first += len(value)
    return column, np.concatenate(values), rank


@kernel
def _learn(
    node: RecordArray,
    column: RecordArray,
    value: FloatArray,
    rows: _Rows,
    min_leaf: int,
    scratch: _Scratch,
) -> int:
    """Cut the root and all that follows; return the number of nodes."""
    at, n_nodes = 0, 1
    cut = scratch.cut
    while at < n_nodes:
        begin, end = node[at]["start"], node[at]["start"] + node[at]["size"]
        node[at]["left"], node[at]["right"] = LEAF, LEAF
        cut[0]["column"] = -1
        if end - begin >= 2 * min_leaf and not _is_pure(begin, end, rows):
            _choose(begin, end, column, rows, min_leaf, scratch)
        c = cut[0]["column"]
        if c >= 0:
            _set_test(at, node, column, value, cut)
            middle = _part(begin, end, column[c]["is_set"], rows, scratch)
            node[at]["left"], node[at]["right"] = n_nodes, n_nodes + 1
            node[n_nodes]["start"], node[n_nodes]["size"] = begin, middle - begin
            node[n_nodes + 1]["start"], node[n_nodes + 1]["size"] = middle, end - middle
            n_nodes += 2
        at += 1
    return n_nodes


@inner_kernel
def _is_pure(begin: int, end: int, rows: _Rows) -> bool:
    for i in range(begin + 1, end):
        if rows.label[i] != rows.label[begin] or rows.amount[i] != rows.amount[begin]:
            return False
    return True


@inner_kernel
def _set_test(
    at: int, node: RecordArray, column: RecordArray, value: FloatArray, cut: RecordArray
) -> None:
    c, after = cut[0]["column"], cut[0]["after"]
    if column[c]["is_set"]:
        node[at]["feature"], node[at]["threshold"] = column[c]["feature"] + after, 0.5
        return
    first = column[c]["first"]
    node[at]["feature"] = column[c]["feature"]
    node[at]["threshold"] = (value[first + cut[0]["last"]] + value[first + after]) / 2


@inner_kernel
def _choose(
    begin: int, end: int, column: RecordArray, rows: _Rows, min_leaf: int, scratch: _Scratch
) -> None:
    """Set `scratch.cut` to the best cut of the records."""
    n, total = end - begin, scratch.total
    n_labels = _seated(begin, end, rows, scratch)
    squares = 0.0
    for j in range(n_labels):
        squares += total[j] * total[j]
    scratch.cut[0]["gain"], scratch.cut[0]["smaller"] = -1.0, 0
    for c in range(len(column)):
        seen = scratch.seen[0]
        seen["n"], seen["left"], seen["right"], seen["last"] = 0, 0.0, squares, -1
        for j in range(n_labels):
            scratch.left[j], scratch.right[j] = 0.0, total[j]
        if column[c]["size"] * n_labels <= _COUNTED * n:
            _see_counted(c, begin, end, column, rows, n_labels, min_leaf, scratch)
        else:
            _see_sorted(c, begin, end, column, rows, n_labels, min_leaf, scratch)


@inner_kernel
def _seated(begin: int, end: int, rows: _Rows, scratch: _Scratch) -> int:
    """Sum the amounts by label, numbered from 0; return how many labels there are."""
    seat, total, n_labels = scratch.seat, scratch.total, 0
    for i in range(begin, end):
        label = rows.label[i]
        if seat[label] < 0:
            seat[label] = n_labels
            total[n_labels] = 0.0
            n_labels += 1
        scratch.own[i] = seat[label]
        total[seat[label]] += rows.amount[i]
    for i in range(begin, end):
        seat[rows.label[i]] = -1
    return n_labels


@inner_kernel
def _see_counted(
    c: int,
    begin: int,
    end: int,
    column: RecordArray,
    rows: _Rows,
    n_labels: int,
    min_leaf: int,
    scratch: _Scratch,
) -> None:
    """Compare the cuts of a column after its records were counted by rank and label."""
    counts, sums = scratch.counts, scratch.sums
    for i in range(begin, end):
        rank = rows.rank[c, i]
        counts[rank] += 1
        sums[rank * n_labels + scratch.own[i]] += rows.amount[i]
    for rank in range(column[c]["size"]):
        if counts[rank] > 0:
            n = counts[rank]
            _see(c, rank, n, rank * n_labels, column, n_labels, end - begin, min_leaf, scratch)
            counts[rank] = 0
            for j in range(rank * n_labels, (rank + 1) * n_labels):
                sums[j] = 0.0


@inner_kernel
def _see_sorted(
    c: int,
    begin: int,
    end: int,
    column: RecordArray,
    rows: _Rows,
    n_labels: int,
    min_leaf: int,
    scratch: _Scratch,
) -> None:
    """Compare the cuts of a column after its records were sorted by rank."""
    key, sums = scratch.key[: end - begin], scratch.sums
    for i in range(begin, end):
        key[i - begin] = (np.int64(rows.rank[c, i]) << 32) | (i - begin)
    sort_in_place(key)
    first = 0
    while first < len(key):
        rank, last = key[first] >> 32, first
        while last < len(key) and key[last] >> 32 == rank:
            i = begin + (key[last] & 0xFFFFFFFF)
            sums[scratch.own[i]] += rows.amount[i]
            last += 1
        _see(c, rank, last - first, 0, column, n_labels, len(key), min_leaf, scratch)
        for j in range(n_labels):
            sums[j] = 0.0
        first = last


@inner_kernel
def _see(
    c: int,
    rank: int,
    count: int,
    at: int,
    column: RecordArray,
    n_labels: int,
    n: int,
    min_leaf: int,
    scratch: _Scratch,
) -> None:
    """Compare the cut before a rank, or that of a set's value, with the best one so far.

    `count` records have the rank; `scratch.sums[at:]` sums them by label.
    """
    sums, left, right, seen = scratch.sums, scratch.left, scratch.right, scratch.seen[0]
    if column[c]["is_set"]:
        inside, outside = 0.0, 0.0
        for j in range(n_labels):
            inside += sums[at + j] * sums[at + j]
            outside += (right[j] - sums[at + j]) * (right[j] - sums[at + j])
        if count < n:
            gain = inside / count + outside / (n - count)
            _take(c, rank, rank, count, gain, n, min_leaf, scratch.cut)
        return
    if seen["n"] > 0:
        gain = seen["left"] / seen["n"] + seen["right"] / (n - seen["n"])
        _take(c, seen["last"], rank, seen["n"], gain, n, min_leaf, scratch.cut)
    for j in range(n_labels):
        more = sums[at + j]
        seen["left"] += more * (2 * left[j] + more)
        seen["right"] += more * (more - 2 * right[j])
        left[j] += more
        right[j] -= more
    seen["n"] += count
    seen["last"] = rank


@inner_kernel
def _take(
    c: int,
    last: int,
    after: int,
    part: int,
    gain: float,
    n: int,
    min_leaf: int,
    cut: RecordArray,
) -> None:
    """Keep a cut that is better than the best so far; `part` records are on one side."""
    smaller = min(part, n - part)
    if smaller < min_leaf:
        return
    best, alike = cut[0]["gain"], _ALIKE * gain
    if gain > best + alike or (gain >= best - alike and smaller > cut[0]["smaller"]):
        cut[0]["column"], cut[0]["last"], cut[0]["after"] = c, last, after
        cut[0]["gain"], cut[0]["smaller"] = gain, smaller


@inner_kernel
def _part(begin: int, end: int, is_set: bool, rows: _Rows, scratch: _Scratch) -> int:  # noqa: FBT001  numba knows no keyword-only parameters
    """Move the records that go right behind the others, in their order; return where they begin."""
    cut, own = scratch.cut[0], scratch.own
    middle = begin
    for i in range(begin, end):
        rank = rows.rank[cut["column"], i]
        goes_left = rank != cut["after"] if is_set else rank <= cut["last"]
        own[i] = 0 if goes_left else 1
        middle += 1 if goes_left else 0
    for c in range(len(rows.rank)):
        _part_items(begin, end, rows.rank[c], own, scratch.whole)
    _part_items(begin, end, rows.label, own, scratch.whole)
    _part_items(begin, end, rows.amount, own, scratch.number)
    _part_items(begin, end, rows.order, own, scratch.key)
    return middle


@inner_kernel
def _part_items(
    begin: int,
    end: int,
    items: Int32Array | IntArray | FloatArray,
    right: Int32Array,
    aside: Int32Array | IntArray | FloatArray,
) -> None:
    to, n_aside = begin, 0
    for i in range(begin, end):
        if right[i]:
            aside[n_aside] = items[i]
            n_aside += 1
        else:
            items[to] = items[i]
            to += 1
    for i in range(n_aside):
        items[to + i] = aside[i]
