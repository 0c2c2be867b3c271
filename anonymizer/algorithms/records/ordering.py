"""Orders of records: along the Hilbert curve [1]_, and by content for reading and publishing.

None of them depends on the order of the table, which would reveal who is who.

References
----------
.. [1] J. Skilling, "Programming the Hilbert curve", AIP Conference Proceedings 707, 2004.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from anonymizer.algorithms.kernels import kernel
from anonymizer.algorithms.records.classes import SUPPRESSED
from anonymizer.domain.arrays import FloatArray, Int32Array, IntArray
from anonymizer.domain.records import Records

_BLOCK = 256
"""Records transformed at a time: small enough for the nearest cache."""
_DIGIT_BITS = 11
_WORD_BITS = 64
_TABLE_FACTOR = 4
"""Joint domains up to this many times the records are numbered by a table, not by sorting."""


def hilbert_order(codes: Int32Array, sizes: Sequence[int]) -> IntArray:
    """Return the order of records along the Hilbert curve, shape (n,).

    `codes`: 0 and up, shape (n, quasi-identifiers). The curve fills a cube with the side of the
    largest of `sizes`, as in the package `hilbertcurve`.

    Notes
    -----
    Records of equal codes stay in the order of the table. O(n times the bits of a position on the
    curve); memory: 8 bytes a record for every 64 of these bits, plus 32 bytes.
    """
    order = np.arange(len(codes))
    for word in _keys(codes, sizes)[0][::-1]:
        order = _stable_order(word[order], order)
    return order


def hilbert_key(codes: Int32Array, sizes: Sequence[int]) -> NDArray[np.uint64]:
    """Return the first 64 bits of each record's position on the Hilbert curve, shape (n,).

    Notes
    -----
    Records in the order of these keys are in `hilbert_order`, but for those of equal keys. The keys
    of two tables with the same domains can be compared.
    """
    word, n_bits = _keys(codes, sizes)
    if not len(word):
        return np.zeros(len(codes), np.uint64)
    in_first = n_bits - _WORD_BITS * (len(word) - 1)
    key: NDArray[np.uint64] = word[0].copy()
    if len(word) > 1 and in_first < _WORD_BITS:
        key = (key << np.uint64(_WORD_BITS - in_first)) | (word[1] >> np.uint64(in_first))
    return key


def _keys(codes: Int32Array, sizes: Sequence[int]) -> tuple[NDArray[np.uint64], int]:
    """Return each record's position, shape (words, n), highest word first, and its bits."""
    if not codes.size:
        return np.zeros((0, len(codes)), np.uint64), 0
    bits = max(1, max(int(size) - 1 for size in sizes).bit_length())
    n_bits = bits * codes.shape[1]
    key = np.zeros((-(-n_bits // _WORD_BITS), len(codes)), np.uint64)
    _fill_keys(np.ascontiguousarray(codes), bits, key)
    return key, n_bits


@kernel
def _fill_keys(codes: Int32Array, bits: int, key: NDArray[np.uint64]) -> None:
    """Write each record's position on the curve to `key`, shape (words, n), highest word first."""
    n, n_columns = codes.shape
    point = np.zeros((n_columns, _BLOCK), np.int64)
    turn = np.zeros(_BLOCK, np.int64)
    for start in range(0, n, _BLOCK):
        end = min(start + _BLOCK, n)
        for c in range(n_columns):
            for i in range(start, end):
                point[c, i - start] = codes[i, c]
        _to_transpose(point, turn, bits)
        below = n_columns * bits
        for bit in range(bits - 1, -1, -1):
            for c in range(n_columns):
                below -= 1
                word, shift = len(key) - 1 - below // _WORD_BITS, np.uint64(below % _WORD_BITS)
                for i in range(start, end):
                    key[word, i] |= np.uint64((point[c, i - start] >> bit) & 1) << shift


@kernel
def _to_transpose(point: IntArray, turn: IntArray, bits: int) -> None:
    """Transform coordinates, shape (dimensions, points), to transposed positions on the curve.

    Skilling's `AxestoTranspose` without branches, over many points at once; `turn` is scratch.
    """
    n_columns = len(point)
    first = point[0]
    for bit in range(bits - 1, 0, -1):
        low = (1 << bit) - 1
        for i in range(len(first)):
            first[i] ^= -((first[i] >> bit) & 1) & low
        for c in range(1, n_columns):
            axis = point[c]
            for i in range(len(first)):
                invert = -((axis[i] >> bit) & 1)
                exchange = (first[i] ^ axis[i]) & low & ~invert
                first[i] ^= exchange | (low & invert)
                axis[i] ^= exchange
    _encode(point, turn, bits)


@kernel
def _encode(point: IntArray, turn: IntArray, bits: int) -> None:
    """Gray-encode transposed positions."""
    n_columns = len(point)
    first, last = point[0], point[n_columns - 1]
    for c in range(1, n_columns):
        for i in range(len(first)):
            point[c, i] ^= point[c - 1, i]
    turn[:] = 0
    for bit in range(bits - 1, 0, -1):
        for i in range(len(first)):
            turn[i] ^= -((last[i] >> bit) & 1) & ((1 << bit) - 1)
    for c in range(n_columns):
        for i in range(len(first)):
            point[c, i] ^= turn[i]


@kernel
def _stable_order(key: NDArray[np.uint64], order: IntArray) -> IntArray:
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
    order = _stable_order(records.person.astype(np.uint64), np.arange(n))
    if measure_code is not None:
        order = _stable_order(numbered(measure_code)[order].astype(np.uint64), order)
    order = _stable_order(content_of[order].astype(np.uint64), order)
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
    published = np.flatnonzero(class_of != SUPPRESSED)
    columns = [open_code[published, c] for c in reversed(range(open_code.shape[1]))]
    return published[np.lexsort((*columns, class_of[published]))].astype(np.int64)


def numbered(columns: Int32Array | IntArray) -> IntArray:
    """Return a number for each row, equal for equal rows, rising with the rows.

    Compared column by column, the first one first. O(n columns).
    """
    number = np.zeros(len(columns), np.int64)
    if not len(columns):
        return number
    for column in columns.T:
        number = number * (int(column.max()) + 1) + column
        size = int(number.max()) + 1
        if size <= _TABLE_FACTOR * len(columns):
            there = np.zeros(size, np.bool_)
            there[number] = True
            number = (np.cumsum(there) - 1)[number]
        else:
            order = _stable_order(number.astype(np.uint64), np.arange(len(number)))
            number = _ranks(number, order)
    return number


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
