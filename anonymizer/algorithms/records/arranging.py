"""Orders of records that owe nothing to the order of the table."""

import numpy as np

from anonymizer.algorithms.records.classes import SUPPRESSED
from anonymizer.domain.arrays import Int32Array, IntArray
from anonymizer.domain.records import Records


def arranged(records: Records, open_code: Int32Array) -> IntArray:
    """Return an order of the records by what is in them, shape (n,).

    Parameters
    ----------
    open_code
        What is published of each record besides its quasi-identifiers, in codes, shape (n,
        columns).

    Notes
    -----
    By quasi-identifiers; records that are equal in these alternate between what else they hold,
    as evenly as can be. A method that takes records as they come so finds a mixture of sensitive
    values, and equal tables in another order give the same release. O(n columns log n).
    """
    n = records.n
    qi_of = numbered(records.qi)
    content_of = numbered(np.column_stack([qi_of, open_code]))
    order = np.lexsort((records.person, content_of))
    starts = np.searchsorted(content_of[order], np.arange(content_of.max(initial=-1) + 1))
    count = np.bincount(content_of, minlength=len(starts))
    nth = np.empty(n)
    nth[order] = np.arange(n) - starts[content_of[order]]
    share = (nth + 0.5) / count[content_of] if n else nth
    return np.lexsort((records.person, content_of, share, qi_of)).astype(np.int64)


def published_order(class_of: Int32Array, open_code: Int32Array) -> IntArray:
    """Return the published records by class, those of a class by what is told of each."""
    published = np.flatnonzero(class_of != SUPPRESSED)
    columns = [open_code[published, c] for c in reversed(range(open_code.shape[1]))]
    return published[np.lexsort((*columns, class_of[published]))].astype(np.int64)


def numbered(columns: Int32Array | IntArray) -> IntArray:
    """Return a number for each row, equal where all columns are, rising with them.

    Compared column by column, the first one first. O(n columns log n).
    """
    number = np.zeros(len(columns), np.int64)
    for column in columns.T:
        paired = number * (int(column.max(initial=0)) + 1) + column
        _, number = np.unique(paired, return_inverse=True)
    return number
