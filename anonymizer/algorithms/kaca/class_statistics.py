"""Statistics of a class that are published with its quasi-identifiers: counts and means."""

from dataclasses import dataclass

import numpy as np

from anonymizer.algorithms.records.classes import SUPPRESSED
from anonymizer.domain.arrays import FloatArray, Int32Array, IntArray

_DECIMALS = 2


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Summary:
    """Counts and means of classes."""

    n_records: IntArray
    n_persons: IntArray
    """`n_records`, `n_persons`: number in each class, shape (classes,)."""
    mean: FloatArray
    """Mean of each measure over the records of a class that have it, rounded, shape (classes,
    measures); NaN where fewer than k persons have it."""


def summarize(class_of: Int32Array, person: Int32Array, measure: FloatArray, *, k: int) -> Summary:
    """Return counts and means of classes.

    Parameters
    ----------
    class_of
        Classes from 0 up without a gap, `SUPPRESSED` where left out, shape (n,).
    person
        Person of each record, 0 and up, shape (n,).
    measure
        Measures of each record, NaN where it has none, shape (n, measures).
    k
        Least number of persons in a mean: the mean of one person is that person's value.

    Notes
    -----
    O(n measures log n).
    """
    published = np.flatnonzero(class_of != SUPPRESSED)
    c, who = class_of[published], person[published]
    n_records = np.bincount(c)
    mean = np.full((len(n_records), measure.shape[1]), np.nan)
    for m in range(measure.shape[1]):
        value = measure[published, m]
        has = ~np.isnan(value)
        enough = _persons(c[has], who[has], len(n_records)) >= k
        times = np.bincount(c[has], minlength=len(n_records))
        total = np.bincount(c[has], weights=value[has], minlength=len(n_records))
        mean[enough, m] = np.round(total[enough] / times[enough], _DECIMALS)
    return Summary(n_records, _persons(c, who, len(n_records)), mean)


def _persons(class_of: Int32Array, person: Int32Array, n_classes: int) -> IntArray:
    """Return the distinct persons of each class."""
    if len(person) and np.bincount(person).max() == 1:
        return np.bincount(class_of, minlength=n_classes)
    width = int(person.max(initial=0)) + 1
    pairs = np.unique(class_of.astype(np.int64) * width + person)
    return np.bincount(pairs // width, minlength=n_classes)
