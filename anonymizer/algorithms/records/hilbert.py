"""Order of records along the Hilbert curve [1]_.

References
----------
.. [1] J. Skilling, "Programming the Hilbert curve", AIP Conference Proceedings 707, 2004.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from anonymizer.algorithms.kernels import kernel
from anonymizer.algorithms.records.ordering import stable_order
from anonymizer.domain.arrays import Int32Array, IntArray

_BLOCK = 256
"""Records transformed at a time: small enough for the nearest cache."""
_WORD_BITS = 64


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
        order = stable_order(word[order], order)
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
