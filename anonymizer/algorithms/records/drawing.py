"""Random numbers for kernels: drawn beforehand, so that kernels have no state of their own."""

import numpy as np

from anonymizer.algorithms.kernels import inner_kernel
from anonymizer.domain.arrays import Int32Array, IntArray

_BITS = 31


def draw(rng: np.random.Generator, n: int) -> IntArray:
    """Return `n` random numbers; before them how many are used, none yet."""
    draws = rng.integers(0, 1 << _BITS, n + 1, dtype=np.int64)
    draws[0] = 0
    return draws


@inner_kernel
def n_left(draws: IntArray) -> int:
    """Return how many random numbers are left."""
    return len(draws) - 1 - int(draws[0])


@inner_kernel
def below(draws: IntArray, n: int) -> int:
    """Use up a random number; return it as one from 0 to n - 1, for n far below 2^31."""
    draws[0] += 1
    return int(draws[draws[0]] % n)


@inner_kernel
def unit(draws: IntArray) -> float:
    """Use up a random number; return it as one above 0, and 1 at most."""
    draws[0] += 1
    return float((draws[draws[0]] + 1) / (1 << _BITS))


@inner_kernel
def near(i: int, order: Int32Array, rank: Int32Array, draws: IntArray) -> int:
    """Return a record near `i` in an order, sometimes far; -1 beyond the ends.

    The distance is at most 2, 4, 8, ... up to all records, each bound as likely as the other.
    Uses up three random numbers.
    """
    n = len(order)
    n_doublings = 1
    while 1 << n_doublings < n:
        n_doublings += 1
    step = 1 + below(draws, 1 << (1 + below(draws, n_doublings)))
    at = rank[i] + (step if below(draws, 2) == 0 else -step)
    return int(order[at]) if 0 <= at < n else -1
