"""Keyed hashes of names, in the bytes as received: nobody can choose two names with one hash."""

import secrets
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from anonymizer.algorithms.kernels import inlined_kernel, kernel, meanwhile
from anonymizer.domain.arrays import Int32Array, IntArray

Bytes: TypeAlias = NDArray[np.uint8]

KEY = (256 + secrets.randbelow((1 << 30) - 256), 256 + secrets.randbelow((1 << 30) - 256))
"""Bases of the hashes, drawn at random. Below 2**30, so that every product stays below 2**63."""
_PRIME = (1 << 31) - 1


def hash_of(stream: Bytes, spans: Int32Array) -> IntArray:
    """Return a keyed hash of each name, shape (n,), >= 0.

    Two names of 250 characters have the same one with a probability below 1e-14.

    `stream`, `spans`: the bytes, and start and end of each name in them, shape (n, 2) or wider.
    """
    return hash_all(stream, spans, *KEY)


def _hash_in_steps(stream: Bytes, spans: Int32Array, base: int, other_base: int) -> IntArray:
    """Return what `hash_all` does, of all names at once and three bytes after three."""
    start, end = spans[:, 0].astype(np.int64), spans[:, 1].astype(np.int64)
    bases = np.array([[base], [other_base]], np.int64)
    hashes = np.tile(end - start + 1, (2, 1))

    def step(rows: IntArray, width: int) -> None:
        at = start[rows]
        chunk = np.zeros(len(rows), np.int64)
        for i in range(width):
            chunk = chunk << 8 | stream[at + i]
        value = hashes[:, rows] * bases + chunk
        hashes[:, rows] = (value & _PRIME) + (value >> 31)
        start[rows] += width

    for width in (3, 1):
        rows = np.flatnonzero(start + width <= end)
        while len(rows):
            step(rows, width)
            rows = rows[start[rows] + width <= end[rows]]
    one, other = (hashes * bases) % _PRIME
    both: IntArray = one << 31 | other
    return both


@meanwhile(_hash_in_steps)
@kernel
def hash_all(stream: Bytes, spans: Int32Array, base: int, other_base: int) -> IntArray:
    """Return what `hash_of` does, by these bases."""
    hashes = np.empty(len(spans), np.int64)
    for row in range(len(spans)):
        hashes[row] = hash_span(stream, spans[row, 0], spans[row, 1], base, other_base)
    return hashes


@inlined_kernel
def hash_span(stream: Bytes, start: int, end: int, base: int, other_base: int) -> int:
    """Return two polynomial hashes of a name, in one number.

    Three bytes at a time: a chunk stays below the prime, else two chunks could have one remainder
    for every base.
    """
    one = other = np.int64(end - start + 1)
    at = start
    while at + 3 <= end:
        chunk = (np.int64(stream[at]) << 16) | (np.int64(stream[at + 1]) << 8) | stream[at + 2]
        one, other = one * base + chunk, other * other_base + chunk
        # Not the remainder yet, but below 2**33; times a base it stays below 2**63.
        one, other = (one & _PRIME) + (one >> 31), (other & _PRIME) + (other >> 31)
        at += 3
    while at < end:
        one = one * base + np.int64(stream[at])
        other = other * other_base + np.int64(stream[at])
        one, other = (one & _PRIME) + (one >> 31), (other & _PRIME) + (other >> 31)
        at += 1
    # Multiplied once more, so that the last bytes spread over all bits of the hash.
    return int(((one * base) % _PRIME) << 31 | (other * other_base) % _PRIME)
