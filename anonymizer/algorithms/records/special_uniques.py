"""Special uniques (SUDA): records told apart by few quasi-identifiers, and how few [1]_, [2]_.

A minimal sample unique (MSU) of a record is a set of attributes in which nobody else has its
values, while somebody has in every smaller set. The smaller MSUs are, and the more, the riskier.

References
----------
.. [1] M. J. Elliot, A. M. Manning and R. W. Ford, "A computational algorithm for handling the
   special uniques problem", 2002.
.. [2] M. J. Elliot, "DIS: a new approach to the measurement of statistical disclosure risk", 2000.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, islice
from math import comb, factorial

import numpy as np

from anonymizer.algorithms.records.ordering import numbered
from anonymizer.domain.arrays import BoolArray, FloatArray, Int32Array, IntArray

_MANY = 8
"""Number of attributes at which scores count as they are; see `dis_scores`."""
_LEAST_EXPONENT = 0.05
_MOST_FACTORIALS = 150
"""Of more attributes, the factorials are no floats."""
_ROWS_OF_A_SET = 2_000
"""So many rows take as long as what is done for a set whatever its rows are."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SpecialUniques:
    """The special uniques of a table."""

    score: FloatArray
    """SUDA score of each record, 0 where it has no MSU, shape (n,)."""
    dis: FloatArray
    """Probability that a match of the record in another sample is right, shape (n,)."""
    alone: FloatArray
    """Share of the records that are unique in each attribute alone, shape (columns,)."""
    part: FloatArray
    """Share of all scores to which each attribute contributes, shape (columns,). They add up to
    more than 1: an MSU of two attributes counts for both."""
    share_unique: float
    """Share of the records that are unique in all attributes together."""
    complete: bool = True
    """Whether all sets were looked at that were asked for."""


def special_uniques(
    codes: Int32Array,
    *,
    sampled: float = 0.1,
    largest: int | None = None,
    most_rows: int | None = None,
) -> SpecialUniques:
    """Return the special uniques of records.

    Parameters
    ----------
    codes
        0 and up, shape (n, columns).
    sampled
        Share of the population that the table is, above 0, below 1.
    largest
        Most attributes in an MSU; None: all.
    most_rows
        Bound of the work: so many rows are looked at, in all sets. Of sets of the size that would
        go beyond, some are taken at even distances and count for the others; larger ones are left
        out. Single attributes are always looked at. None: no bound.

    Notes
    -----
    Every set of attributes is looked at once, in O(n): 2^columns sets if `largest` is None.

    The score is Elliot's, as sdcMicro has it: an MSU of k of m attributes counts (m - k)!; of more
    than 150 attributes (m - k)! / (m - 1)!, as the order and DIS are the same by both.
    """
    n, m = codes.shape
    most = m if largest is None else min(largest, m)
    unit = factorial(m - 1) if m > _MOST_FACTORIALS else 1
    weight_of = [factorial(m - size) / unit for size in range(1, most + 1)]
    score, parts = np.zeros(n), np.zeros(m)
    unique_in: dict[tuple[int, ...], BoolArray] = {}
    looked_at = _sets(m, most, None if most_rows is None else most_rows // (n + _ROWS_OF_A_SET))
    complete = True
    for of, n_alike in looked_at:
        weight, complete = weight_of[len(of) - 1] * n_alike, n_alike == 1 and complete
        unique = unique_in[of] = _unique(codes[:, of])
        minimal = unique.copy()
        for smaller in combinations(of, len(of) - 1):
            if smaller:
                minimal &= ~unique_in[smaller]
        score[minimal] += weight
        parts[list(of)] += weight * np.count_nonzero(minimal)
    total = score.sum()
    return SpecialUniques(
        score=score,
        dis=dis_scores(codes, score, sampled=sampled),
        alone=np.array([unique_in[j,].mean() if n else 0.0 for j in range(m)]),
        part=parts / total if total else parts,
        share_unique=float(_unique(codes).mean()) if n else 0.0,
        complete=complete and max(map(len, unique_in), default=0) == most,
    )


def _sets(m: int, most: int, left: int | None) -> Iterator[tuple[tuple[int, ...], float]]:
    """Yield sets of up to `most` of m attributes, and for how many of its size each stands.

    `left`: so many sets may be looked at; those of one attribute always are.
    """
    for size in range(1, most + 1):
        n_sets = comb(m, size)
        step = 1
        if left is not None and size > 1:
            if left <= 0:
                return
            step = -(-n_sets // left)
        n_taken = -(-n_sets // step)
        for of in islice(combinations(range(m), size), 0, None, step):
            yield of, n_sets / n_taken
        if left is not None:
            left = 0 if step > 1 else left - n_taken


def dis_scores(codes: Int32Array, score: FloatArray, *, sampled: float) -> FloatArray:
    """Return how likely a match of each unique record is right, 0 for the others, shape (n,).

    Notes
    -----
    Data intrusion simulation [2]_ gives one probability for the table: of matches with a record
    that is unique, the share that is right, u s / (u s + p (1 - s)), with u unique records, p
    records in pairs, and s the share of the population that was drawn. It is shared out by the
    scores with sdcMicro's exponent, so that the table's probability is the mean over what is
    unique. Of 28 attributes and more that exponent turns the order of the scores round; it is at
    least 0.05 here.
    """
    found = np.zeros(len(codes))
    times = _times(codes)
    unique, paired = int((times == 1).sum()), int((times == 2).sum())
    scored = score > 0
    if not unique or not scored.any():
        return found
    right = unique * sampled / (unique * sampled + paired * (1 - sampled))
    exponent = max(1 + (_MANY - codes.shape[1]) / 20, _LEAST_EXPONENT)
    power = (score[scored] / score.max()) ** exponent
    odds = (unique / right - unique) / (power * (1 / power).sum())
    found[scored] = 1 / (1 + odds)
    return found


def _times(codes: Int32Array) -> Int32Array:
    """Return how many records are like each record."""
    of = numbered(codes)
    return np.bincount(of)[of].astype(np.int32)


def _unique(codes: Int32Array) -> BoolArray:
    return np.asarray(_times(codes) == 1)


def unique_by_one(codes: Int32Array) -> FloatArray:
    """Return the share of the records that are unique, and would not be without each attribute.

    Shape (columns,). Such a record has a twin that differs in this attribute alone. Records that
    agree outside one half of the attributes are looked for, then in the halves of that half:
    O(n columns log columns), and far less where hardly two records are alike.
    """
    n, m = codes.shape
    n_of = np.zeros(m, np.int64)
    if n and m:
        _, first, times = np.unique(numbered(codes), return_index=True, return_counts=True)
        alike = np.zeros(len(first), np.int64)
        if len(first) > 1:
            _count_twins(codes[first], times == 1, np.arange(len(first)), alike, (0, m), n_of)
    return np.asarray(n_of / max(n, 1))


def _count_twins(
    codes: Int32Array,
    unique: BoolArray,
    row: IntArray,
    alike: IntArray,
    within: tuple[int, int],
    n_of: IntArray,
) -> None:
    """Count the unique rows with a twin by the attribute in which they differ.

    The rows `row` are distinct, and equal outside of the attributes `within` if their `alike` is.
    """
    lo, hi = within
    if hi - lo == 1:
        n_of[lo] = np.count_nonzero(unique[row])
        return
    middle = (lo + hi) // 2
    for half, other in (((lo, middle), (middle, hi)), ((middle, hi), (lo, middle))):
        of = numbered(np.column_stack([alike, codes[row, slice(*other)]]))
        twins = np.bincount(of)[of] > 1
        if twins.any():
            _count_twins(codes, unique, row[twins], of[twins], half, n_of)
