"""The attack on classes by an adversary who owns some of the rows, and subtracts them.

Whoever has rows of a class knows their values, and takes them away from what is published of it
[1]_. There are two adversaries: one owns random rows, the other makes up people who come into the
class of the victim.

References
----------
.. [1] A. Machanavajjhala et al., "l-diversity: privacy beyond k-anonymity", ICDE 2006: background
   knowledge that excludes values.
"""

from dataclasses import dataclass

import numpy as np

from anonymizer.domain.arrays import BoolArray, Int32Array, IntArray


@dataclass(frozen=True, slots=True)
class Exposed:
    """What is left of the others."""

    persons_min: int
    """Fewest others in a class that has others."""
    n_alone: int
    """People who are the only other one in their class: its labels are theirs."""
    n_read: tuple[int, ...]
    """People whose class has a single value of each sensitive attribute among the others."""


def of_own(
    class_of: Int32Array, person: Int32Array, sensitive: Int32Array, is_own: BoolArray
) -> Exposed:
    """Attack as the owner of some rows, wherever they are.

    Parameters
    ----------
    class_of
        Class of each record, negative if it is not published, shape (n,).
    person, sensitive
        Person of each record, shape (n,), and codes of its sensitive values, shape (n, attributes).
    is_own
        Which records are the adversary's, shape (n,).
    """
    others = (class_of >= 0) & ~is_own
    n = _persons(class_of[others], person[others])
    read = []
    for values in sensitive[others].T:
        of_value = _pairs(class_of[others], values)[0]
        is_one = np.bincount(of_value, minlength=len(n)) == 1
        read.append(int(n[is_one].sum()))
    return Exposed(int(n[n > 0].min(initial=person.size)), int((n == 1).sum()), tuple(read))


def in_its_class(
    class_of: Int32Array, person: Int32Array, sensitive: Int32Array, n_own: int
) -> Exposed:
    """Attack as somebody who has `n_own` people in the class of each victim, and the best ones.

    Notes
    -----
    An upper bound: the adversary can have those people whose values tell most. Where all but one
    value have at most `n_own` people, the others have that one.
    """
    kept = class_of >= 0
    of, who = class_of[kept], person[kept]
    n = _persons(of, who)
    left = n - n_own
    read = []
    for values in sensitive[kept].T:
        triples = np.unique(np.column_stack([of, values, who]), axis=0)
        of_value, n_of_value = np.unique(triples[:, :2], axis=0, return_counts=True)
        most = np.zeros(len(n), np.int64)
        np.maximum.at(most, of_value[:, 0], n_of_value)
        read.append(int(most[(n - most <= n_own) & (left > 0)].sum()))
    return Exposed(int(max(left.min(initial=person.size), 0)), int((left == 1).sum()), tuple(read))


def _persons(class_of: Int32Array, person: Int32Array) -> IntArray:
    """Return the number of people in each class."""
    counts: IntArray = np.bincount(_pairs(class_of, person)[0])
    return counts


def _pairs(first: Int32Array, second: Int32Array) -> Int32Array:
    """Return the distinct pairs, shape (2, pairs)."""
    pairs: Int32Array = np.unique(np.column_stack([first, second]), axis=0).T
    return pairs
