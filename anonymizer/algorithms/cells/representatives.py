"""Representatives: one value of each quasi-identifier, the median or mode, for a whole class."""

import numpy as np

from anonymizer.algorithms.kernels import kernel
from anonymizer.algorithms.records.classes import Classes
from anonymizer.domain.arrays import FloatArray, Int32Array, IntArray
from anonymizer.domain.records import Attribute, Schema


def representatives(codes: Int32Array, classes: Classes, schema: Schema) -> FloatArray:
    """Return the position of the representative of each class on each axis, shape (classes, qis).

    Parameters
    ----------
    codes
        Code of each record in each quasi-identifier, shape (n, qis).
    classes
        None of them empty.

    Returns
    -------
    position
        For a number the median of the members (the mean of the two in the middle), for a category
        the most frequent one (the first of several). That of the missing marker if more than half
        of the members have no number, or if it is the most frequent category.

    Notes
    -----
    Each attribute on its own: together they are nobody's record, except by chance. O(n log n).
    """
    first_of, member = classes.first_of, classes.member
    columns = [
        _medians(column, first_of, member, qi.position, qi.missing)
        if qi.numeric
        else _modes(column, first_of, member, qi.position)
        for qi, column in zip(schema.qis, np.ascontiguousarray(codes.T), strict=True)
    ]
    return np.column_stack([np.zeros((len(classes), 0)), *columns])


def is_missing(position: FloatArray, qi: Attribute) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return which positions are that of the missing marker."""
    return position == qi.position[qi.missing] if qi.missing >= 0 else np.zeros(len(position), bool)


@kernel
def _medians(
    code: Int32Array, first_of: IntArray, member: IntArray, position: FloatArray, missing: int
) -> FloatArray:
    out = np.empty(len(first_of) - 1)
    for c in range(len(out)):
        value = np.sort(code[member[first_of[c] : first_of[c + 1]]])
        n_real = (value != missing).sum()
        if 2 * n_real < len(value):
            out[c] = position[missing]
        else:  # the marker is the last code
            out[c] = (position[value[(n_real - 1) // 2]] + position[value[n_real // 2]]) / 2
    return out


@kernel
def _modes(
    code: Int32Array, first_of: IntArray, member: IntArray, position: FloatArray
) -> FloatArray:
    out = np.empty(len(first_of) - 1)
    times = np.zeros(len(position), np.int64)
    for c in range(len(out)):
        mine = code[member[first_of[c] : first_of[c + 1]]]
        best = mine[0]
        for value in mine:
            times[value] += 1
        for value in mine:
            if times[value] > times[best] or (times[value] == times[best] and value < best):
                best = value
        out[c] = position[best]
        times[mine] = 0
    return out
