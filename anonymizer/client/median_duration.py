"""The median duration of trips, from noisy numbers of them by duration.

Noise in numbers that are 0 would drag a median to the middle of the scale, so a log-normal
distribution is fitted by least squares, as durations of trips mostly have: two parameters for all
numbers. Where it fits worse than the noise explains, the interval is wider. Fitted to exact
numbers, of taxis and in made towns, the median of all trips was missed by up to 16 %.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from anonymizer.domain.arrays import FloatArray
from anonymizer.errors import InputError

_MEDIANS_S = np.geomspace(30.0, 4 * 3600.0, 400)
_SPREADS = np.linspace(0.3, 1.2, 10)
"""Standard deviations of the logarithm."""
_N_FITTED = 3
"""Parameters: how many trips, their median and their spread."""
_FIT = 1.2
"""By how much an interval is longer at both ends, for what the fit misses."""
_REACH = 7.814728
"""By how many variances a sum of squares grows at the rim of a region of 95 % of all three (chi
squared). That of the median alone is too small where there is more noise than trips."""


class MedianDuration(NamedTuple):
    """A median, in seconds, and an interval of 95 % around it."""

    median_s: float
    low_s: float
    high_s: float


def fitted_median(n: FloatArray, up_to_s: Sequence[float], *, noise_sd: float) -> MedianDuration:
    """Return the median of the log-normal distribution that is nearest to noisy numbers.

    Parameters
    ----------
    n
        Trips of each duration, shape (durations,); those of the last are longer than all bounds.
    up_to_s
        Bound of each duration but the last, rising, shape (durations - 1,).
    noise_sd
        Standard deviation of the noise of each number.

    Raises
    ------
    InputError
        If there are too few durations to fit.

    Notes
    -----
    Where nearly all trips are of the first duration, or of the last, many medians fit alike: the
    interval says so.
    """
    if len(n) != len(up_to_s) + 1 or len(n) <= _N_FITTED:
        raise InputError("the durations are too few to find a median; read the numbers themselves")
    below = np.log(np.array(up_to_s)) - np.log(_MEDIANS_S)[:, None, None]
    cumulative = ndtr(below / _SPREADS[:, None])  # shape (medians, spreads, durations - 1)
    share = np.diff(cumulative, prepend=0.0, append=1.0)
    likeness = np.maximum(share @ n, 0.0)  # numbers of trips are not negative
    explained = (likeness**2 / (share**2).sum(axis=2)).max(axis=1)
    best = float(explained.max())
    unexplained = (float(n @ n) - best) / (len(n) - _N_FITTED)
    near = explained >= best - _REACH * max(noise_sd**2, unexplained)
    inside = _MEDIANS_S[near]
    return MedianDuration(
        float(_MEDIANS_S[explained.argmax()]), float(inside[0] / _FIT), float(inside[-1] * _FIT)
    )
