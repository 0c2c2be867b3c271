"""Orders of records by content, for reading and publishing, and classes in such an order.

None of them depends on the order of the table, which would reveal who is who.
"""

import numpy as np
from numpy.typing import NDArray

from anonymizer.algorithms.kernels import kernel
from anonymizer.algorithms.records.classes import SUPPRESSED
from anonymizer.domain.arrays import FloatArray, Int32Array, IntArray, starts_of
from anonymizer.domain.records import Records

_DIGIT_BITS = 11
_WORD_BITS = 64
_TABLE_FACTOR = 4
"""Joint domains up to this many times the records are numbered by a table, not by sorting."""
_MOST_KEYS = 2**62


@kernel
def stable_order(key: NDArray[np.uint64], order: IntArray) -> IntArray:
    """Return `order` sorted stably by the key of each of its entries. Radix sort, O(n)."""
    n = len(key)
    n_digits = 1 << _DIGIT_BITS
    low = np.uint64(n_digits - 1)
    other_key, other = np.empty_like(key), np.empty_like(order)
    differs = np.uint64(0)
    for i in range(n):
        differs |= key[i] ^ key[0]
    for shift in range(0, _WORD_BITS, _DIGIT_BITS):
        by = np.uint64(shift)
        if (differs >> by) & low == 0:
            continue
        place = np.zeros(n_digits + 1, np.int64)
        for i in range(n):
            place[((key[i] >> by) & low) + np.uint64(1)] += 1
        for digit in range(n_digits):
            place[digit + 1] += place[digit]
        for i in range(n):
            digit = (key[i] >> by) & low
            at = place[digit]
            place[digit] = at + 1
            other_key[at], other[at] = key[i], order[i]
        key, other_key = other_key, key
        order, other = other, order
    return order


def arranged(
    records: Records, open_code: Int32Array, measure_code: Int32Array | None = None
) -> IntArray:
    """Return an order of the records by their content, shape (n,).

    `open_code`: what is published of each record in addition to its quasi-identifiers, and
    `measure_code`: of what means are published, shape (n, columns).

    Notes
    -----
    By quasi-identifiers; among records equal in these, the other columns alternate as evenly as
    possible. A method that takes records in this order thus meets a mixture of sensitive values,
    and a table in another order gives the same release. Measures decide between records that are
    equal in all of these alone: hardly two have equal ones, so there would be nothing to alternate.
    O(n columns).
    """
    n = records.n
    qi_of = numbered(records.qi)
    content_of = numbered(np.column_stack([qi_of, open_code]))
    order = stable_order(records.person.astype(np.uint64), np.arange(n))
    if measure_code is not None:
        order = stable_order(numbered(measure_code)[order].astype(np.uint64), order)
    order = stable_order(content_of[order].astype(np.uint64), order)
    _alternate(order, np.bincount(qi_of), np.bincount(content_of))
    return order


@kernel
def _alternate(order: IntArray, n_of_qi: IntArray, n_of_content: IntArray) -> None:
    """Mix the contents of records equal in their quasi-identifiers, which `order` has one by one.

    The i-th of the m records of a content stands at (i + 1/2) / m of its quasi-identifiers; the
    order stays where two stand at the same place. Contents are spread evenly, so a counting sort
    by the place leaves little to move.
    """
    first, content = 0, 0
    for n in n_of_qi:
        alike = order[first : first + n]
        first += n
        if n_of_content[content] == n:
            content += 1
            continue
        place, filled = np.empty(n), 0
        while filled < n:
            m = n_of_content[content]
            for i in range(m):
                place[filled + i] = (i + 0.5) / m
            filled, content = filled + m, content + 1
        _sort_by_place(alike.copy(), place, alike)


@kernel
def _sort_by_place(record: IntArray, place: FloatArray, out: IntArray) -> None:
    """Write the records sorted stably by their places, which are above 0 and below 1."""
    n = len(record)
    start = np.zeros(n + 1, np.int64)
    for i in range(n):
        start[int(place[i] * n) + 1] += 1
    for i in range(n):
        start[i + 1] += start[i]
    placed = np.empty(n)
    for i in range(n):
        bucket = int(place[i] * n)
        at = start[bucket]
        start[bucket] += 1
        placed[at], out[at] = place[i], record[i]
    for i in range(1, n):
        here, moved, at = placed[i], out[i], i
        while at > 0 and placed[at - 1] > here:
            placed[at], out[at] = placed[at - 1], out[at - 1]
            at -= 1
        placed[at], out[at] = here, moved


def published_order(class_of: Int32Array, open_code: Int32Array) -> IntArray:
    """Return the published records sorted by class, and within a class by their open columns."""
    order = np.flatnonzero(class_of != SUPPRESSED)
    for key in (*open_code.T[::-1], class_of):
        order = stable_order(key[order].astype(np.uint64), order)
    return order


def canonical(class_of: Int32Array, cells: Int32Array) -> Int32Array:
    """Return the same classes, numbered by their content and not by how they were found.

    `class_of`: `SUPPRESSED`, or any number from 0 up, shape (n,); `cells`: everything published of
    a record, in codes, shape (n, columns).

    Notes
    -----
    Classes are ordered by their sorted records, column by column. The order of the table affects
    only which of two classes of equal content comes first. O(n columns), and O(n log n) of those
    that begin alike.
    """
    published = np.flatnonzero(class_of != SUPPRESSED)
    if not len(published):
        return class_of.copy()
    dense, content = numbered(class_of[published][:, None]), numbered(cells[published])
    order = stable_order(content.astype(np.uint64), np.arange(len(content)))
    order = stable_order(dense[order].astype(np.uint64), order)
    starts, sorted_ = starts_of(np.bincount(dense)), content[order]
    first = sorted_[starts[:-1]]
    by_content = np.argsort(first, kind="stable")
    differs = np.flatnonzero(np.diff(first[by_content], prepend=-1))
    for a, n in zip(differs.tolist(), np.diff(differs, append=len(first)).tolist(), strict=True):
        if n > 1:
            alike = by_content[a : a + n].tolist()
            alike.sort(key=lambda c: sorted_[starts[c] : starts[c + 1]].tolist())
            by_content[a : a + n] = alike
    number = np.empty(len(first), np.int32)
    number[by_content] = np.arange(len(first), dtype=np.int32)
    out = np.full(len(class_of), SUPPRESSED, np.int32)
    out[published] = number[dense]
    return out


def numbered(columns: Int32Array | IntArray) -> IntArray:
    """Return a number for each row, equal for equal rows, rising with the rows.

    Compared column by column, the first one first. O(n columns).
    """
    number = joint_code(columns)
    return _dense(number, int(number.max()) + 1) if len(number) else number


def joint_code(columns: Int32Array | IntArray) -> IntArray:
    """Return a number for each row as `numbered` does, but with gaps."""
    number, size = np.zeros(len(columns), np.int64), 1
    for column in columns.T:
        width = int(column.max(initial=0)) + 1
        if size > _MOST_KEYS // width:
            number = _dense(number, size)
            size = int(number.max()) + 1
        number *= width
        number += column
        size *= width
    return number


def _dense(number: IntArray, size: int) -> IntArray:
    """Return the rank of each number, which is below `size`, among the distinct ones."""
    if size <= _TABLE_FACTOR * len(number):
        there = np.zeros(size, np.bool_)
        there[number] = True
        ranks: IntArray = (np.cumsum(there) - 1)[number]
        return ranks
    return _ranks(number, stable_order(number.astype(np.uint64), np.arange(len(number))))


@kernel
def _ranks(number: IntArray, order: IntArray) -> IntArray:
    """Return the rank of each number among the distinct ones, given their order."""
    rank = np.empty_like(number)
    last, n_below = number[order[0]], 0
    for i in order:
        n_below += number[i] != last
        last = number[i]
        rank[i] = n_below
    return rank
