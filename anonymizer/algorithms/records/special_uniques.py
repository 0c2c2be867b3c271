"""Special uniques (SUDA): records told apart by few quasi-identifiers, and how few [1]_, [2]_.

A minimal sample unique (MSU) of a record is a set of attributes in which nobody else has its
values, while somebody has in every smaller set. The smaller MSUs are, and the more, the riskier.

References
----------
.. [1] M. J. Elliot, A. M. Manning and R. W. Ford, "A computational algorithm for handling the
   special uniques problem", 2002.
.. [2] M. J. Elliot, "DIS: a new approach to the measurement of statistical disclosure risk", 2000.
"""

from dataclasses import dataclass
from itertools import combinations
from math import factorial

import numpy as np

from anonymizer.algorithms.records.ordering import numbered
from anonymizer.domain.arrays import BoolArray, FloatArray, Int32Array

_MANY = 8
"""Number of attributes at which scores count as they are; see `dis_scores`."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SpecialUniques:
    """The special uniques of a table.

    Attributes
    ----------
    score
        SUDA score of each record, 0 where it has no MSU, shape (n,).
    dis
        Probability that a match of the record in another sample is right, shape (n,).
    alone
        Share of the records that are unique in each attribute alone, shape (columns,).
    part
        Share of all scores to which each attribute contributes, shape (columns,). They add up to
        more than 1: an MSU of two attributes counts for both.
    share_unique
        Share of the records that are unique in all attributes together.
    """

    score: FloatArray
    dis: FloatArray
    alone: FloatArray
    part: FloatArray
    share_unique: float


def special_uniques(
    codes: Int32Array, *, sampled: float = 0.1, largest: int | None = None
) -> SpecialUniques:
    """Return the special uniques of records.

    `codes`: 0 and up, shape (n, columns); `sampled`: share of the population that the table is,
    above 0, below 1; `largest`: most attributes in an MSU, None for all.

    Notes
    -----
    Every set of attributes is looked at once, in O(n): 2^columns sets if `largest` is None.

    The score is Elliot's, as sdcMicro has it: an MSU of k of m attributes counts (m - k)!.
    """
    n, m = codes.shape
    most = m if largest is None else min(largest, m)
    score, share_of = np.zeros(n), np.zeros((m, n))
    unique_in: dict[tuple[int, ...], BoolArray] = {}
    for size in range(1, most + 1):
        weight = float(factorial(m - size))
        for of in combinations(range(m), size):
            unique = _unique(codes[:, of])
            unique_in[of] = unique
            minimal = unique.copy()
            for smaller in combinations(of, size - 1):
                if smaller:
                    minimal &= ~unique_in[smaller]
            score[minimal] += weight
            for column in of:
                share_of[column, minimal] += weight
    total = score.sum()
    return SpecialUniques(
        score=score,
        dis=dis_scores(codes, score, sampled=sampled),
        alone=np.array([_unique(codes[:, [j]]).mean() if n else 0.0 for j in range(m)]),
        part=share_of.sum(axis=1) / total if total else np.zeros(m),
        share_unique=float(_unique(codes).mean()) if n else 0.0,
    )


def dis_scores(codes: Int32Array, score: FloatArray, *, sampled: float) -> FloatArray:
    """Return how likely a match of each unique record is right, 0 for the others, shape (n,).

    Notes
    -----
    Data intrusion simulation [2]_ gives one probability for the table: of matches with a record
    that is unique, the share that is right, u s / (u s + p (1 - s)), with u unique records, p
    records in pairs, and s the share of the population that was drawn. It is shared out by the
    scores with sdcMicro's exponent, so that the table's probability is the mean over what is
    unique.
    """
    found = np.zeros(len(codes))
    times = _times(codes)
    unique, paired = int((times == 1).sum()), int((times == 2).sum())
    scored = score > 0
    if not unique or not scored.any():
        return found
    right = unique * sampled / (unique * sampled + paired * (1 - sampled))
    exponent = 1 + (_MANY - codes.shape[1]) / 20
    power = score[scored] ** exponent
    odds = (unique / right - unique) / (power * (1 / power).sum())
    found[scored] = 1 / (1 + odds)
    return found


def _times(codes: Int32Array) -> Int32Array:
    """Return how many records are like each record."""
    of = numbered(codes)
    return np.bincount(of)[of].astype(np.int32)


def _unique(codes: Int32Array) -> BoolArray:
    return np.asarray(_times(codes) == 1)
