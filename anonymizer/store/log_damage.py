"""Whether the write-ahead log of a store lost anything but what was not committed.

SQLite reads its log up to the first frame that is not as it was written, and forgets the rest. That
is right for what a crash has cut off, and silent about damage.

References
----------
.. [1] "Database File Format", section 4, The Write-Ahead Log: https://sqlite.org/fileformat2.html
"""

import struct
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

_HEAD = struct.Struct(">8I")
_FRAME = struct.Struct(">6I")
_MAGIC, _VERSION = 0x377F0682, 3007000
_WORD = 0xFFFFFFFF
_STEP = np.array([[1, 1], [1, 2]], np.uint64)


def is_damaged(log: Path) -> bool:
    """Return whether a log that was written without a loss of power is not as it was written.

    What may follow its frames is those of an earlier log in the same file, and a piece of one.
    """
    try:
        content = log.read_bytes()
    except FileNotFoundError:
        return False
    if len(content) < _HEAD.size:
        return False
    magic, version, page_bytes, _, salt, other_salt, *stated = _HEAD.unpack_from(content)
    order = "<" if magic == _MAGIC else ">"
    found = _checksum(content[:24], (0, 0), order)
    if magic & ~1 != _MAGIC or version != _VERSION or found != tuple(stated):
        return True
    size = _FRAME.size + page_bytes
    frames = [content[i : i + size] for i in range(_HEAD.size, len(content) - size + 1, size)]
    rest = len(frames)
    for number, frame in enumerate(frames):
        _, _, its_salt, its_other, *its_stated = _FRAME.unpack_from(frame)
        found = _checksum(frame[_FRAME.size :], _checksum(frame[:8], found, order), order)
        if (its_salt, its_other) != (salt, other_salt) or found != tuple(its_stated):
            rest = number
            break
    salts = {_FRAME.unpack_from(frame)[2:4] for frame in frames[rest:]}
    # Each new log in the file counts the first salt up, and draws the second.
    return any(its == salt or its_other == other_salt for its, its_other in salts)


@cache
def _powers(n: int) -> NDArray[np.uint64]:
    """Return the powers 0 to n of the step's matrix, modulo 2**64."""
    found = np.empty((n + 1, 2, 2), np.uint64)
    found[0] = np.eye(2, dtype=np.uint64)
    for i in range(n):
        found[i + 1] = _STEP @ found[i]
    return found


def _checksum(data: bytes, start: tuple[int, int], order: str) -> tuple[int, int]:
    """Return the checksum of the format, of whole pairs of words.

    Of each pair (x, y): s0 += x + s1; s1 += y + s0. That is s = M s + (x, x + y), so all pairs are
    taken at once, by powers of M; 2**64 is a multiple of the 2**32 that it is taken modulo.
    """
    words = np.frombuffer(data, f"{order}u4").astype(np.uint64).reshape(-1, 2)
    n = len(words)
    added = np.stack([words[:, 0], words[:, 0] + words[:, 1]], axis=1)
    powers = _powers(n)
    s0, s1 = np.einsum("nij,nj->i", powers[:n][::-1], added) + powers[n] @ np.array(
        start, np.uint64
    )
    return int(s0) & _WORD, int(s1) & _WORD
