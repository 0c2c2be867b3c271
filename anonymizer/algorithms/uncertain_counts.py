"""Counts of devices that are somewhere in their regions: intervals, and moves between cells.

A device is in a cell with some probability, and devices are independent of one another, so the
number of devices in a cell has a Poisson-binomial distribution.

References
----------
.. [1] Y. Hong, "On computing the distribution function for the Poisson binomial distribution",
   Computational Statistics & Data Analysis 59, 2013.
.. [2] M. Fréchet, "Sur les tableaux de corrélation dont les marges sont données", 1951.
"""

import numpy as np

from anonymizer.domain.arrays import FloatArray, IntArray

_SIGMAS, _AT_LEAST = 10.0, 50.0
"""The probability outside of this many standard deviations and devices is below 1e-20."""


def count_distribution(p: FloatArray, n: IntArray) -> tuple[int, FloatArray]:
    """Return the distribution of a number of devices: the first number, and its probabilities.

    Parameters
    ----------
    p, n
        `n[i]` devices are in the cell with probability `p[i]` each, shape (i,).

    Notes
    -----
    The Fourier transform of the characteristic function [1]_, over a window around the mean. The
    probability outside of the window (Bernstein's inequality: less than 1e-20) is added to numbers
    inside. O(i x standard deviation).
    """
    most = int(n.sum())
    mean = float(n @ p)
    reach = _SIGMAS * float(np.sqrt(n @ (p * (1 - p)))) + _AT_LEAST
    size = min(most + 1, 2 * int(reach) + 1)
    first = min(max(0, int(mean - reach)), most + 1 - size)
    angle = 2 * np.pi * np.arange(size) / size
    factor = 1 + np.multiply.outer(p, np.exp(1j * angle) - 1)
    characteristic = np.prod(factor ** n[:, None], axis=0)
    shifted = characteristic * np.exp(-1j * angle * first)
    return first, np.maximum(np.fft.fft(shifted).real / size, 0.0)


def count_interval(p: FloatArray, n: IntArray, *, level: float) -> tuple[int, int]:
    """Return the smallest and the largest number of devices of an interval, both included.

    The number is below it, and above it, with a probability of at most `(1 - level) / 2` each.
    See `count_distribution` for `p` and `n`.
    """
    tail = (1 - level) / 2
    first, probability = count_distribution(p, n)
    up_to, from_on = np.cumsum(probability), np.cumsum(probability[::-1])
    # P(N < low) <= tail, and P(N > high) <= tail.
    low = int(np.searchsorted(up_to, tail, side="right"))
    high = len(probability) - 1 - int(np.searchsorted(from_on, tail, side="right"))
    return first + low, first + max(high, low)


def least_moves(p: FloatArray, q: FloatArray) -> FloatArray:
    """Return the probability of each move of a device that moves no more than it must.

    Parameters
    ----------
    p, q
        Probabilities that it is in each cell before and after, shape (cells,); equal sums.

    Returns
    -------
    moves
        Shape (cells, cells), from rows to columns; its margins are `p` and `q`.

    Notes
    -----
    A device that may have stayed in its cell is taken to have stayed. Otherwise large regions would
    seem to be full of movement. So the probability of a crossing is the smallest possible.
    """
    stayed = np.minimum(p, q)
    moves = np.diag(stayed)
    gone, came = p - stayed, q - stayed
    if came.sum() > 0:
        moves += np.outer(gone, came) / came.sum()
    return moves


def move_bounds(p: FloatArray, q: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the smallest and largest possible probability of each move, shape (cells, cells).

    They hold however the places before and after depend on each other [2]_; `p` and `q` as for
    `least_moves`.
    """
    return (
        np.maximum(np.add.outer(p, q) - 1.0, 0.0),
        np.minimum(p[:, None], q[None, :]),
    )
