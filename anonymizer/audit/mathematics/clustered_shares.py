"""Shares of cases that depend on each other: how many independent ones they are worth."""

import numpy as np
from scipy.special import stdtrit

from anonymizer.domain.arrays import BoolArray, FloatArray, IntArray

_NORMAL = 1.959964
"""Standard errors of an interval of 95 %."""


def n_independent(value: BoolArray | FloatArray, *groups: IntArray) -> float:
    """Return how many independent cases would tell the mean of values as surely.

    Parameters
    ----------
    value
        Whether each case is a success, or how probable one is, shape (n,).
    groups
        Ways to group the cases, each of shape (n,); cases of different groups are independent. The
        least number over them is returned.

    Returns
    -------
    n_independent
        Between 1 and n; 0 if there is no case.

    Notes
    -----
    Kish's effective sample size, n divided by the design effect: the variance of the mean over
    groups (linearized ratio estimator) beside that of n independent cases [1]_. That variance is
    itself estimated from the groups: the number is lowered by the squares of the normal and of
    Student's quantile, so that an interval of 95 % for independent cases holds [2]_. Where all
    values are equal, the variance tells nothing, and the cases of a group are taken for one.

    References
    ----------
    .. [1] L. Kish, "Survey sampling", Wiley, 1965, chapters 5 and 8.
    .. [2] E. L. Korn, B. I. Graubard, "Confidence intervals for proportions with small expected
       number of positive counts estimated from survey data", Survey Methodology 24(2), 1998.
    """
    return min((_n_of(value.astype(np.float64), group) for group in groups), default=0.0)


def _n_of(value: FloatArray, group: IntArray) -> float:
    n = len(value)
    if not n:
        return 0.0
    of = np.unique(group, return_inverse=True)[1].ravel()
    size = np.bincount(of).astype(np.float64)
    as_one = n**2 / float((size**2).sum())
    if len(size) == 1 or np.ptp(value) == 0.0:
        return as_one
    alone = float(value.var(ddof=1))
    residual = np.bincount(of, weights=value - value.mean())
    variance = float((residual**2).sum()) / n**2 * len(size) / (len(size) - 1)
    if len(size) == n or variance <= 0:
        return float(n)
    lowered = (_NORMAL / float(stdtrit(len(size) - 1, 0.975))) ** 2
    return min(float(n), max(1.0, alone / variance * lowered))
