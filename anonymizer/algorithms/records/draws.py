"""Random numbers for kernels, and the random records that a search tries next.

The numbers are drawn in advance, so that kernels have no state of their own. An array of draws
begins with the number of those used.
"""

import numpy as np

from anonymizer.algorithms.kernels import inner_kernel
from anonymizer.algorithms.records.neighbors import Neighbors
from anonymizer.domain.arrays import Int32Array, IntArray

BITS = 31
"""Of each random number."""


def draw(rng: np.random.Generator, n: int) -> IntArray:
    """Return `n` random numbers, preceded by the number of those used, which is 0."""
    draws = rng.integers(0, 1 << BITS, n + 1, dtype=np.int64)
    draws[0] = 0
    return draws


@inner_kernel
def n_left(draws: IntArray) -> int:
    """Return how many random numbers are unused."""
    return len(draws) - 1 - int(draws[0])


@inner_kernel
def below(draws: IntArray, n: int) -> int:
    """Use a random number; return it as an integer from 0 to n - 1, for n far below 2^31."""
    draws[0] += 1
    return int(draws[draws[0]] % n)


@inner_kernel
def unit(draws: IntArray) -> float:
    """Use a random number; return it as a number above 0 and at most 1."""
    draws[0] += 1
    return float((draws[draws[0]] + 1) / (1 << BITS))


@inner_kernel
def near(i: int, order: Int32Array, rank: Int32Array, draws: IntArray) -> int:
    """Return a random record near `i` in an order; -1 beyond the ends.

    The distance is at most 2, 4, 8, ... up to all records; each bound is equally likely. Uses
    three random numbers.
    """
    n = len(order)
    n_doublings = 1
    while 1 << n_doublings < n:
        n_doublings += 1
    step = 1 + below(draws, 1 << (1 + below(draws, n_doublings)))
    at = rank[i] + (step if below(draws, 2) == 0 else -step)
    return int(order[at]) if 0 <= at < n else -1


@inner_kernel
def neighbor(i: int, neighbors: Neighbors, draws: IntArray) -> int:
    """Return a random record of a tuple near that of `i`, or of its own; nearer ones more often.

    -1 if there is none there. Uses three random numbers.
    """
    tuple_of, first, nearest = neighbors
    n = nearest.shape[1] + 1
    x = min(below(draws, n), below(draws, n)) - 1
    t = tuple_of[i] if x < 0 else nearest[tuple_of[i], x]
    return -1 if t < 0 else int(first[t] + below(draws, first[t + 1] - first[t]))
