"""Re-identification risks of classes, by what an adversary knows [1]_.

The prosecutor knows that somebody is in the table, and sees the f persons of their class. The
journalist does not, and chooses among the F persons of the population whom the class fits. The
marketer wants as many as possible, whoever they are.

References
----------
.. [1] K. El Emam, "Guide to the de-identification of personal health information", 2013.
.. [2] R. Benedetti and L. Franconi, "Statistical and technological solutions for controlled data
   dissemination", 1998.
.. [3] M. E. Nergiz et al., "Hiding the presence of individuals from shared databases", 2007.
"""

from dataclasses import dataclass
from math import log

import numpy as np

from anonymizer.domain.arrays import FloatArray, IntArray

_EXACT = 1e-17


@dataclass(frozen=True, slots=True)
class Risk:
    """Probabilities of naming the person of a record."""

    highest: float
    average: float
    share_above: float


def risk(size: IntArray, success: FloatArray, *, threshold: float) -> Risk:
    """Return the risk of records in classes.

    `size`: persons of each class in the table, all above 0; `success`: probability of naming a
    person of each class; shape (classes,).
    """
    n = int(size.sum())
    if not n:
        return Risk(0.0, 0.0, 0.0)
    return Risk(
        highest=float(success.max()),
        average=float(size @ success) / n,
        share_above=int(size[success > threshold].sum()) / n,
    )


def expected_success(size: IntArray, share: float) -> FloatArray:
    """Return the expected 1 / F of classes of which f persons were drawn, shape (classes,).

    `size`: f, all above 0; `share`: of the population that was drawn, above 0, at most 1.

    Notes
    -----
    F given f is negative binomial, as in [2]_: each person was drawn with the same probability, and
    nothing else is known of F. The mean of 1 / F is share times the integral of
    u^(f - 1) / (share + (1 - share) u) from 0 to 1. sdcMicro computes it likewise where f is 1 or
    2, and has an approximation for larger classes. O(largest f).
    """
    most = int(size.max(initial=0))
    of = np.array([0.0, *_integrals(share, most)])
    return share * of[size]


def _integrals(share: float, most: int) -> list[float]:
    """Return the integrals for f from 1 to `most`, each way where errors do not grow."""
    rest = 1 - share
    if share <= rest:
        found = [log(1 / share) / rest] if most else []
        for f in range(1, most):
            found.append((1 / f - share * found[-1]) / rest)
        return found
    found = []
    for f in range(1, most + 1):
        term = total = 1 / f
        n = 0
        while term > total * _EXACT:
            n += 1
            term *= rest * n / (f + n)
            total += term
        found.append(total)
    return found


def presence(inside: IntArray, company: IntArray) -> FloatArray:
    """Return the share of the people whom each class fits that is in the table [3]_.

    Parameters
    ----------
    inside, company
        People of the table, and of the population, whom each class fits, shape (classes,).
    """
    return inside / company
