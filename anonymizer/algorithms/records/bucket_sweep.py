"""Algorithm 3 as printed [1]_: records in an order H, and a bucket F for each sensitive value.

In `sweep` a class grows along the order until it has l values; here it takes those that it still
lacks out of their buckets, from further along the order.

References
----------
.. [1] "Efficient Multi-Source Anonymity for Aggregated Internet of Vehicles Datasets",
   Applied Sciences 14(8), 3230, 2024, Algorithm 3.
"""

from typing import NamedTuple

import numpy as np

from anonymizer.algorithms.kernels import inner_kernel, kernel
from anonymizer.algorithms.records.classes import SUPPRESSED
from anonymizer.algorithms.records.problem import Problem
from anonymizer.algorithms.records.sweep import ClassCounts, add, clear, holds, no_counts
from anonymizer.domain.arrays import Int32Array, IntArray

_OPEN = -2
"""Class of a record that has not been taken."""


class _Buckets(NamedTuple):
    """Records by sensitive value, each bucket in the order."""

    first_of: IntArray
    """First bucket of each sensitive column, shape (sensitive columns + 1,)."""
    record: IntArray
    rank: IntArray
    """`record`, `rank`: the records of all buckets, one after the other, and their places in the
    order."""
    head: IntArray
    end: IntArray
    """`head`, `end`: where the next record of each bucket is, and where the bucket ends, shape
    (buckets,)."""


def bucket_sweep(problem: Problem, order: IntArray, *, n_sensitive: int) -> Int32Array:
    """Return the class of each record.

    `order`: all records, similar ones near each other, see `hilbert_order`. The last `n_sensitive`
    columns of the problem are the sensitive ones. Classes in the order in which they were closed;
    `SUPPRESSED` for the remaining records if they cannot join the last class, and everywhere if no
    class keeps the promise.

    Notes
    -----
    A class takes records along the order until it has k persons and d values of each
    quasi-identifier. For each sensitive value that it lacks, it then takes the first record of a
    bucket: of those whose value it does not have yet, the next along the order. O(n columns) and
    O(values) for each record out of a bucket.

    What the listing [1]_ must be read to mean:

    - A record that was taken from F is crossed off H, and the other way round. As printed, the two
      are not kept in step, and a record may be in two classes or in none.
    - `F[i]`, which is added, and `F[index]`, which is looked up, are the same bucket.
    - The loop ends when no bucket has a new value. As printed, it never ends then.
    - As in `sweep`, the class must have k persons *and* d values, and the remaining records join
      the last class.
    """
    first = problem.cells.shape[1] - n_sensitive
    buckets = _buckets(problem.cells[:, first:], problem.rule["size"][first:], order)
    return _fill(order, problem.n_qis, problem.k, no_counts(problem), buckets)


def _buckets(sensitive: Int32Array, sizes: IntArray, order: IntArray) -> _Buckets:
    first_of = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    ranks = [np.argsort(column[order], kind="stable") for column in sensitive.T]
    n_in = [np.bincount(c, minlength=s) for c, s in zip(sensitive.T, sizes, strict=True)]
    rank = np.concatenate([np.zeros(0, np.int64), *ranks])
    end = np.cumsum(np.concatenate([np.zeros(0, np.int64), *n_in]))
    head = np.concatenate([np.zeros(1, np.int64), end])[:-1]
    return _Buckets(first_of, order[rank], rank, head, end)


@kernel
def _fill(
    order: IntArray, n_qis: int, k: int, counts: ClassCounts, buckets: _Buckets
) -> Int32Array:
    """Close classes one after the other, and merge the remaining records into the last one."""
    class_of = np.full(len(order), _OPEN, np.int32)
    number, n_persons = 0, 0
    clear(counts)
    for record in order:
        if class_of[record] != _OPEN:
            continue
        class_of[record] = number
        n_persons += add(record, number, counts)
        if n_persons < k or not _has_distinct(n_qis, counts):
            continue
        n_persons += _take_lacking(number, counts, buckets, class_of)
        if holds(n_persons, number, counts):
            number, n_persons = number + 1, 0
            clear(counts)
    _merge_rest(number, k, counts, class_of)
    return class_of


@inner_kernel
def _has_distinct(n_qis: int, counts: ClassCounts) -> bool:
    """Return whether the open class has enough values of each quasi-identifier."""
    for c in range(n_qis):
        if counts.column[c]["n_distinct"] < counts.problem.rule[c]["distinct"]:
            return False
    return True


@inner_kernel
def _take_lacking(number: int, counts: ClassCounts, buckets: _Buckets, class_of: Int32Array) -> int:
    """Take a record of each value that the class lacks; return how many persons that adds."""
    rule, column = counts.problem.rule, counts.column
    first_column = len(rule) - (len(buckets.first_of) - 1)
    n_persons = 0
    for s in range(len(buckets.first_of) - 1):
        c = first_column + s
        while column[c]["n_distinct"] < rule[c]["distinct"]:
            found = _nearest(s, number, rule[c], counts, buckets, class_of)
            if found < 0:
                break
            class_of[found] = number
            n_persons += add(found, number, counts)
    return n_persons


@inner_kernel
def _nearest(
    s: int,
    number: int,
    asked: np.void,
    counts: ClassCounts,
    buckets: _Buckets,
    class_of: Int32Array,
) -> int:
    """Return the next open record along the order with a value that the class lacks, else -1."""
    best, record = -1, -1
    for value in range(asked["size"]):
        seen = counts.seen[asked["first_position"] + value]["turn"] == number
        if seen or value == asked["missing"]:
            continue
        b = buckets.first_of[s] + value
        head, end = buckets.head[b], buckets.end[b]
        while head < end and class_of[buckets.record[head]] != _OPEN:
            head += 1
        buckets.head[b] = head
        if head < end and (best < 0 or buckets.rank[head] < best):
            best, record = buckets.rank[head], buckets.record[head]
    return record


@inner_kernel
def _merge_rest(rest: int, k: int, counts: ClassCounts, class_of: Int32Array) -> None:
    """Join the remaining records to the last class, or suppress them if that is not enough."""
    n_persons = 0
    clear(counts)
    for record in range(len(class_of)):
        if class_of[record] >= rest - 1:
            n_persons += add(record, rest + 1, counts)
    joins = rest > 0 and n_persons >= k and holds(n_persons, rest + 1, counts)
    for record in range(len(class_of)):
        if class_of[record] == rest:
            class_of[record] = rest - 1 if joins else SUPPRESSED
