"""Equivalence classes: compressed sparse rows, numbering without gaps, joining."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from anonymizer.domain.arrays import Int32Array, IntArray, starts_of

SUPPRESSED = -1
"""Class of a suppressed record."""
_NUMBERS_EACH = 8
"""Up to so many numbers a record a table is faster than a sort."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Classes:
    """Equivalence classes: `member[first_of[c]:first_of[c + 1]]` are the records of class c.

    Records rise within a class; suppressed ones are in none. Shapes (classes + 1,), (published
    records,).
    """

    first_of: IntArray
    member: IntArray

    def __len__(self) -> int:
        """Return the number of classes."""
        return len(self.first_of) - 1

    def __getitem__(self, c: int) -> IntArray:
        """Return the members of a class."""
        return self.member[self.first_of[c] : self.first_of[c + 1]]


def classes_of(class_of: Int32Array) -> Classes:
    """Return the classes, given the class of each record or `SUPPRESSED`.

    Classes keep their numbers, which must be 0 and up without a gap. O(n).
    """
    member = by_class(class_of)[int((class_of == SUPPRESSED).sum()) :]
    return Classes(starts_of(np.bincount(class_of[member])), member)


def by_class(class_of: Int32Array) -> IntArray:
    """Return the records in the order of their classes, suppressed ones first, and as they rise.

    numpy sorts 16 bits by their digits, and more by comparing, which takes three times as long.
    """
    above = class_of - np.int32(SUPPRESSED)
    order: IntArray = np.argsort(above.astype(np.uint16), kind="stable")
    if above.max(initial=0) >= 1 << 16:
        high = (above >> 16).astype(np.uint16)
        order = order[np.argsort(high[order], kind="stable")]
    return order


def without_gaps(class_of: Int32Array) -> Int32Array:
    """Return the same classes in the same order, numbered 0 and up; `SUPPRESSED` stays.

    O(n), and O(n log n) where most numbers below the highest are gaps.
    """
    most = int(class_of.max(initial=SUPPRESSED))
    if most >= _NUMBERS_EACH * len(class_of):
        published = class_of != SUPPRESSED
        out = np.full(len(class_of), SUPPRESSED, np.int32)
        out[published] = np.unique(class_of[published], return_inverse=True)[1]
        return out
    there = np.zeros(most + 2, bool)  # the last place is read for a suppressed record
    there[class_of] = True
    number = np.cumsum(there, dtype=np.int32) - 1
    number[SUPPRESSED] = SUPPRESSED
    return np.asarray(number[class_of], np.int32)


def join_identical(class_of: Int32Array, published: Sequence[Sequence[str]]) -> Int32Array:
    """Return the classes, those that are published alike joined into one.

    `class_of`: from 0 up without a gap, `SUPPRESSED` where left out, shape (n,); `published`: for
    each column, the published text of each class.

    Notes
    -----
    Post-processing: a class only grows, so k, d and l hold as before, and so do bounds on shares
    where a person has one record.
    """
    number = np.zeros(1, np.int64)
    for column in published:
        place = {text: i for i, text in enumerate(sorted(set(column)))}
        rank = np.array([place[text] for text in column], np.int64)
        number = np.unique(number * len(place) + rank, return_inverse=True)[1]
    to = np.append(number, SUPPRESSED).astype(np.int32)
    return to[class_of]  # a suppressed record reads the last
