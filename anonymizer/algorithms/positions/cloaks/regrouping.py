"""Which groups are formed again when members leave before anything was published of a group."""

import numpy as np

from anonymizer.domain.arrays import BoolArray, FloatArray, Int32Array, IntArray


def formed_again(
    size: IntArray, need: IntArray, part: Int32Array, centre: FloatArray, broken: BoolArray
) -> BoolArray:
    """Return which groups dissolve so that new ones can be formed of their members.

    Parameters
    ----------
    size, need
        How many members each group has, and how many a group with any of them needs.
    part, centre
        In which part of the network it is, whose devices share no group with those of others, and
        where, shape (groups, 2).
    broken
        Which of them have too few members; all have the shape (groups,).

    Notes
    -----
    Each broken group takes the nearest others of its part as far as it needs them; those of a part
    that has too few altogether do not dissolve. Nobody who has left has a say in it.
    O(broken * groups log groups).
    """
    again = np.zeros(len(size), bool)
    for group in np.flatnonzero(broken).tolist():
        there = np.flatnonzero(part == part[group])
        near = there[np.argsort(np.square(centre[there] - centre[group]).sum(1), kind="stable")]
        near = near[np.argsort(near != group, kind="stable")]  # the group itself comes first
        lacking = np.cumsum(size[near]) < np.maximum.accumulate(need[near])
        if not lacking.all():
            again[near[: int(lacking.argmin()) + 1]] = True
    return again
