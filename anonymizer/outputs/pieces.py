"""Contents in pieces that Kafka takes: 1 MiB by default."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from anonymizer.domain.arrays import IntArray

PIECE_BYTES = 512 * 1024
"""Of what is in one piece, unless one thing is larger."""


def cut(n_bytes: Sequence[int] | IntArray) -> Iterator[tuple[int, int]]:
    """Yield the bounds of pieces of things of these sizes; at least one."""
    piece = np.cumsum([0, *n_bytes])[:-1] // PIECE_BYTES
    yield from pairwise([0, *(np.flatnonzero(np.diff(piece)) + 1).tolist(), len(n_bytes)])
