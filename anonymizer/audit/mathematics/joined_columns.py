"""What columns say together: `started` and `years_here` tell an age that neither tells.

Of numbers and times their sums and differences, and of any the cell of a grid in which a row lies:
latitude and longitude tell a postcode.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from anonymizer.audit.mathematics.repeated_columns import RankedColumn, TriedRecords
from anonymizer.domain.arrays import FloatArray, IntArray

_MOST_TRIED, _MOST_LEARNED = 3_000, 9_000
_IN_A_CELL = 4
"""Records of a cell of the grid, on average."""
_DIGITS = 9
"""To which sums of numbers are rounded, so that equal ones are equal."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PlacedColumn:
    """A column as the ranks of its values and, if it is numeric, these on their axis."""

    ranked: RankedColumn
    place: FloatArray
    """Shape (n,)."""


def joined_columns(first: PlacedColumn, *others: PlacedColumn) -> Iterator[RankedColumn]:
    """Yield what columns say together, in several ways. O(2^c n log n) of c columns."""
    if first.ranked.numeric and all(each.ranked.numeric for each in others):
        for signs in product((1, -1), repeat=len(others)):
            value = first.place.copy()
            for sign, each in zip(signs, others, strict=True):
                value += sign * each.place
            _, rank = np.unique(value.round(_DIGITS), return_inverse=True)
            yield RankedColumn(rank.astype(np.int64), numeric=True)
    yield RankedColumn(
        _cells([first.ranked.rank, *(each.ranked.rank for each in others)]), numeric=False
    )


def _cells(ranks: Sequence[IntArray]) -> IntArray:
    """Return the cell of a grid of each record; what few values leave of it, others have."""
    cell, n_cells = np.zeros_like(ranks[0]), max(len(ranks[0]) / _IN_A_CELL, 1.0)
    for i, rank in enumerate(sorted(ranks, key=lambda each: len(np.unique(each)))):
        part = _part(rank, int(round(n_cells ** (1 / (len(ranks) - i)), _DIGITS)))
        n_parts = int(part.max(initial=0)) + 1
        cell, n_cells = cell * n_parts + part, n_cells / n_parts
    return cell


def fewer_records(drawn: TriedRecords, rng: np.random.Generator) -> IntArray:
    """Return the places of some of the records drawn: 3,000 to be tried, in whole classes of those,
    and 9,000 others to learn from.
    """  # noqa: D205  a list
    tried = np.flatnonzero(drawn.class_of >= 0)
    size = np.bincount(drawn.class_of[tried])
    is_first = np.cumsum(size) - size < _MOST_TRIED  # classes are numbered in a random order
    is_tried = is_first[drawn.class_of[tried]]
    others = np.concatenate([tried[~is_tried], np.flatnonzero(drawn.class_of < 0)])
    learned = rng.permutation(others)[:_MOST_LEARNED]
    return np.sort(np.concatenate([tried[is_tried], learned]))


def some_of(drawn: TriedRecords, places: IntArray) -> TriedRecords:
    """Return the records at these places; those that are not tried with their class are learned."""
    class_of = drawn.class_of[places]
    whole = np.bincount(drawn.class_of[drawn.class_of >= 0], minlength=1)
    there = np.bincount(class_of[class_of >= 0], minlength=len(whole))
    is_whole = (class_of >= 0) & (there == whole)[class_of]
    return TriedRecords(drawn.rows[places], np.where(is_whole, class_of, -1), drawn.fold[places])


def _part(rank: IntArray, n_parts: int) -> IntArray:
    """Return the ranks in at most so many parts of about equal numbers of records."""
    _, values, n = np.unique(rank, return_inverse=True, return_counts=True)
    if len(n) <= n_parts:
        return values.astype(np.int64)
    before = np.cumsum(n) - n
    return (before * n_parts // len(rank))[values].astype(np.int64)
