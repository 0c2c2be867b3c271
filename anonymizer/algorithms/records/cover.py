"""Cover: which classes have labels that cover a record, for searches that must miss none.

Near neighbours lead to the classes of similar records. A class with a wide label takes a record at
no further cost although none of its members is similar. So each code of a quasi-identifier has a
row of bits, one for each class whose label covers it. The rows of a record's codes, combined, tell
which classes cover the record in all columns, and which in all but one.
"""

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from anonymizer.algorithms.kernels import inner_kernel
from anonymizer.algorithms.records.problem import Cost, ProblemArrays
from anonymizer.domain.arrays import Int32Array, IntArray, RecordArray

UInt64Array: TypeAlias = NDArray[np.uint64]

BITS = 64
_SHIFT, _MASK = 6, 63
_MOST_ROWS = 128
"""Of a column: neighbouring codes of a larger domain share a row."""
MOST_WORDS = 256
"""That a look reads of a row: 16,384 classes. Where there are more, looks take turns."""
_TAXONOMY = int(Cost.TAXONOMY)


class Cover(NamedTuple):
    """The classes that cover each code, as kernels take them."""

    row: UInt64Array
    """Bits of the classes that cover the codes of a row, or some of them, shape (rows, words)."""
    first_row: IntArray
    shift: IntArray
    """`first_row`, `shift`: first row of each column, and by how many bits its codes are shifted to
    get their row."""
    leaves: Int32Array
    """First and last code below each node, laid out as `Codes.n_leaves`, shape (nodes, 2)."""
    misses: UInt64Array
    """Working memory: the classes that cover a record in all columns, and in all but one, shape (2,
    words)."""


def blank_cover(problem: ProblemArrays, n_qis: int, n_classes: int) -> Cover:
    """Return the cover of up to `n_classes` classes of which none covers anything yet.

    At most 128 bits for each column and class.
    """
    size = problem.rule["size"][:n_qis]
    shift = np.zeros(n_qis, np.int64)
    while (too_many := (size - 1) >> shift >= _MOST_ROWS).any():
        shift += too_many
    n_rows = ((size - 1) >> shift) + 1
    n_words = -(-n_classes // BITS)
    return Cover(
        np.zeros((int(n_rows.sum()), n_words), np.uint64),
        np.cumsum(n_rows) - n_rows,
        shift,
        leaves_of(problem),
        np.zeros((2, n_words), np.uint64),
    )


def no_cover() -> Cover:
    """Return the cover of a partition in which nobody looks for covering classes."""
    nothing = np.zeros(0, np.int64)
    return Cover(
        np.zeros((0, 0), np.uint64),
        nothing,
        nothing,
        np.zeros((0, 2), np.int32),
        np.zeros((2, 0), np.uint64),
    )


def leaves_of(problem: ProblemArrays) -> Int32Array:
    """Return the first and the last code below each node. O(codes height)."""
    n_leaves, ancestor = problem.codes.n_leaves, problem.codes.ancestor
    leaves = np.zeros((len(n_leaves), 2), np.int32)
    leaves[:, 0] = np.iinfo(np.int32).max
    for rule in problem.rule:
        size, height = int(rule["size"]), int(rule["height"])
        first = int(rule["first_ancestor"])
        node = rule["first_leaves"] + ancestor[first : first + size * height]
        code = np.repeat(np.arange(size, dtype=np.int32), height)
        np.minimum.at(leaves[:, 0], node, code)
        np.maximum.at(leaves[:, 1], node, code)
    return leaves


@inner_kernel
def paint(
    b: int,
    c: int,
    outline: RecordArray,
    bits: UInt64Array,
    first_bit: int,
    problem: ProblemArrays,
    cover: Cover,
) -> None:
    """Note which codes of a column the label of class `b` covers. O(rows of the column).

    Parameters
    ----------
    outline, bits, first_bit
        Of the partition, and where the codes of the column begin in `bits`, -1: nowhere.
    """
    row = cover.row
    if len(row) == 0:
        return
    shift = cover.shift[c]
    rule, line = problem.rule[c], outline[b, c]
    lo, hi = int(line["lo"]), int(line["hi"])
    if lo != hi and _says_nothing(b, lo, hi, rule, bits, first_bit):
        lo, hi, first_bit = 0, int(rule["size"]) - 1, -1
    elif rule["form"] == _TAXONOMY and lo != hi:
        lo, hi = below_common(lo, hi, rule, problem, cover.leaves)
    first = cover.first_row[c]
    n_rows = ((rule["size"] - 1) >> shift) + 1
    word, one = b >> _SHIFT, np.uint64(1) << np.uint64(b & _MASK)
    begin, end = lo >> shift, hi >> shift
    for x in range(n_rows):
        if begin <= x <= end and first_bit < 0:
            row[first + x, word] |= one
        else:
            row[first + x, word] &= ~one
    if first_bit >= 0:
        for code in range(lo, hi + 1):
            bit = first_bit + code
            if (bits[b, bit >> _SHIFT] >> np.uint64(bit & _MASK)) & np.uint64(1) != 0:
                row[first + (code >> shift), word] |= one


@inner_kernel
def _says_nothing(
    b: int, lo: int, hi: int, rule: np.void, bits: UInt64Array, first_bit: int
) -> bool:
    """Return whether the label of a class costs as much as any: also with none beside values."""
    last = rule["size"] - 1
    if rule["missing"] >= 0:
        if hi == rule["missing"]:
            return True
        last -= 1
    if lo != 0 or hi != last:
        return False
    if first_bit >= 0:
        for bit in range(first_bit, first_bit + hi):
            if (bits[b, bit >> _SHIFT] >> np.uint64(bit & _MASK)) & np.uint64(1) == 0:
                return False
    return True


@inner_kernel
def below_common(
    lo: int, hi: int, rule: np.void, problem: ProblemArrays, leaves: Int32Array
) -> tuple[int, int]:
    """Return the first and the last code below the lowest node above two codes. O(height)."""
    ancestor = problem.codes.ancestor
    of_lo = rule["first_ancestor"] + lo * rule["height"]
    of_hi = rule["first_ancestor"] + hi * rule["height"]
    while ancestor[of_lo] != ancestor[of_hi]:
        of_lo += 1
        of_hi += 1
    node = rule["first_leaves"] + ancestor[of_lo]
    return int(leaves[node, 0]), int(leaves[node, 1])


@inner_kernel
def below_node(
    code: int, level: int, rule: np.void, problem: ProblemArrays, leaves: Int32Array
) -> tuple[int, int]:
    """Return the first and the last code below the node above `code` at a level."""
    at = rule["first_ancestor"] + code * rule["height"] + level
    node = rule["first_leaves"] + problem.codes.ancestor[at]
    return int(leaves[node, 0]), int(leaves[node, 1])


@inner_kernel
def look_up(
    i: int, look: int, n_classes: int, problem: ProblemArrays, cover: Cover
) -> tuple[int, int]:
    """Write to `misses` which classes cover record `i` in all columns, and in all but one.

    Only words between the two that are returned are written, at most `MOST_WORDS`; which ones
    depends on `look` where there are more. The bits of numbers from `n_classes` on mean nothing.
    O(words columns).
    """
    row, first_row, shift, _, misses = cover
    cells = problem.cells
    n_words = min(row.shape[1], (n_classes + _MASK) >> _SHIFT)
    begin = 0
    if n_words > MOST_WORDS:
        begin = look * MOST_WORDS % n_words
    end = min(begin + MOST_WORDS, n_words)
    for w in range(begin, end):
        misses[0, w] = ~np.uint64(0)
        misses[1, w] = np.uint64(0)
    for c in range(len(first_row)):
        at = first_row[c] + (cells[i, c] >> shift[c])
        for w in range(begin, end):
            covers = row[at, w]
            misses[1, w] = (misses[1, w] & covers) | (misses[0, w] & ~covers)
            misses[0, w] &= covers
    return begin, end


@inner_kernel
def lowest(bits: np.uint64) -> int:
    """Return the place of the lowest bit that is set; there must be one."""
    x = (bits & (~bits + np.uint64(1))) - np.uint64(1)
    x -= (x >> np.uint64(1)) & np.uint64(0x5555555555555555)
    x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    for half in (8, 16, 32):
        x += x >> np.uint64(half)
    return int(x & np.uint64(0x7F))
