"""The attack on persons of several records: what weighs most in a class is theirs.

k persons of a class hide each other only if they weigh the same. Whoever knows that somebody has
many records picks one of the class's records, or its most frequent value, and is right more often
than by one in k. The control is the same guess about persons of a single record in those classes.
"""

from dataclasses import dataclass

import numpy as np

from anonymizer.domain.arrays import Int32Array, IntArray


@dataclass(frozen=True, slots=True)
class HeavyPersons:
    """What is found of the persons of several published records."""

    n_people: int
    """How many there are."""
    share_max: float
    share_fair: float
    """`share_max`, `share_fair`: largest share of the records of a class that are one person's, and
    one over the persons of that class."""
    read: tuple[float, ...]
    """Of each sensitive attribute: the share of these persons of whom the most frequent value of a
    class is true."""
    read_control: tuple[float, ...]
    """The same of the persons of a single record in the same classes, 0 if there are none."""


def weigh(class_of: Int32Array, person: Int32Array, sensitive: Int32Array) -> HeavyPersons:
    """Attack the persons of several records.

    Parameters
    ----------
    class_of
        Class of each record, negative if it is not published, shape (n,).
    person, sensitive
        Person of each record, shape (n,), and codes of its sensitive values, shape (n, attributes).

    Notes
    -----
    O(n attributes log n).
    """
    kept = np.flatnonzero(class_of >= 0)
    of, who = class_of[kept].astype(np.int64), person[kept]
    times = np.bincount(who) if len(who) else np.zeros(0, np.int64)
    is_heavy = times[who] > 1
    width = len(times)
    pair, n_of_pair = np.unique(of * width + who, return_counts=True)
    n_records, n_persons = np.bincount(of), np.bincount(pair // max(width, 1))
    share = n_of_pair / n_records[pair // max(width, 1)]
    heavy_pair = times[pair % max(width, 1)] > 1
    at = int(np.argmax(np.where(heavy_pair, share, -1.0))) if heavy_pair.any() else -1
    there = np.isin(of, of[is_heavy])
    read, control = [], []
    for values in sensitive[kept].T:
        right = values == _modes(of, values)[of]
        read.append(_share(right[is_heavy], who[is_heavy]))
        control.append(_share(right[there & ~is_heavy], who[there & ~is_heavy]))
    return HeavyPersons(
        int((times > 1).sum()),
        float(share[at]) if at >= 0 else 0.0,
        float(1 / n_persons[pair[at] // width]) if at >= 0 else 0.0,
        tuple(read),
        tuple(control),
    )


def _modes(of: IntArray, values: Int32Array) -> IntArray:
    """Return the most frequent value of each class; of equal ones the first."""
    cell, n = np.unique(np.column_stack([of, values]), axis=0, return_counts=True)
    order = np.lexsort((-cell[:, 1], n, cell[:, 0]))
    mode = np.full(int(of.max(initial=-1)) + 1, -1, np.int64)
    mode[cell[order, 0]] = cell[order, 1]  # the last of a class is the most frequent
    return mode


def _share(right: np.ndarray[tuple[int], np.dtype[np.bool_]], who: Int32Array) -> float:
    """Return the share of persons of whom any guess is right."""
    return len(np.unique(who[right])) / max(len(np.unique(who)), 1)
