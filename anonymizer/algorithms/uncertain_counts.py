"""Counts of devices that are somewhere in their regions: intervals, and moves between cells.

A device is in a cell with some probability. Given these probabilities, devices are independent of
one another, and the number of devices in a cell has a Poisson-binomial distribution. The
probabilities may have an error that all share: where devices are denser than expected, they are so
for all.

References
----------
.. [1] Y. Hong, "On computing the distribution function for the Poisson binomial distribution",
   Computational Statistics & Data Analysis 59, 2013.
.. [2] M. Fréchet, "Sur les tableaux de corrélation dont les marges sont données", 1951.
"""

import numpy as np
from scipy.special import expit, logit

from anonymizer.domain.arrays import FloatArray, IntArray

_SIGMAS, _AT_LEAST = 10.0, 50.0
"""The probability outside of this many standard deviations and devices is below 1e-20."""


_NO_ERROR = np.zeros(1), np.ones(1)
_POINTS, _WEIGHTS = np.polynomial.hermite_e.hermegauss(7)
_ERRORS = _POINTS, _WEIGHTS / _WEIGHTS.sum()
"""Errors in standard deviations, and how likely each is."""


def count_distribution(
    p: FloatArray, n: IntArray, *, shared_sd: float = 0.0
) -> tuple[int, FloatArray]:
    """Return the distribution of a number of devices: the first number, and its probabilities.

    Parameters
    ----------
    p, n
        `n[i]` devices are in the cell with probability `p[i]` each, shape (i,).
    shared_sd
        Standard deviation of an error of the log odds of `p` that all share.

    Notes
    -----
    The Fourier transform of the characteristic function [1]_, over a window around the mean; an
    error is integrated over by Gauss and Hermite. The probability outside of the window
    (Bernstein's inequality: less than 1e-20) is added to numbers inside.
    O(i x (standard deviation + shift of the mean)).
    """
    error, share = _ERRORS if shared_sd else _NO_ERROR
    odds = expit(logit(p) + shared_sd * error[:, None])
    most, mean = int(n.sum()), odds @ n
    reach = _SIGMAS * np.sqrt((odds * (1 - odds)) @ n) + _AT_LEAST
    first = max(0, int((mean - reach).min()))
    size = min(most + 1 - first, int((mean + reach).max()) + 1 - first)
    angle = 2 * np.pi * np.arange(size) / size
    factor = 1 + np.multiply.outer(odds, np.exp(1j * angle) - 1)
    characteristic = share @ np.prod(factor ** n[:, None], axis=1)
    shifted = characteristic * np.exp(-1j * angle * first)
    return first, np.maximum(np.fft.fft(shifted).real / size, 0.0)


def interval_of(first: int, probability: FloatArray, *, level: float) -> tuple[int, int]:
    """Return the smallest and the largest number of an interval, both included.

    The number is below it, and above it, with a probability of at most `(1 - level) / 2` each.
    See `count_distribution` for `first` and `probability`.
    """
    tail = (1 - level) / 2
    up_to, from_on = np.cumsum(probability), np.cumsum(probability[::-1])
    # P(N < low) <= tail, and P(N > high) <= tail.
    low = int(np.searchsorted(up_to, tail, side="right"))
    high = len(probability) - 1 - int(np.searchsorted(from_on, tail, side="right"))
    return first + low, first + max(high, low)


def count_interval(p: FloatArray, n: IntArray, *, level: float) -> tuple[int, int]:
    """Return the interval of a number of devices; see `count_distribution` and `interval_of`."""
    return interval_of(*count_distribution(p, n), level=level)


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
    seem to be full of movement. So the probability of a crossing is the smallest that `p` and `q`
    allow; it is a lower bound of the truth as far as they are right.
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
