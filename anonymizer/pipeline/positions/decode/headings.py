"""Headings and accuracies in the flow: readings that say where on which road a position is."""

from collections.abc import Mapping

import numpy as np

from anonymizer.domain.arrays import FloatArray, IntArray
from anonymizer.domain.fixes import ACCURACY, HEADING, MOTION, SPEED
from anonymizer.domain.trace import Trace

LEAST_MPS = 10 / 3.6
"""Below this speed a heading is noise: receivers derive it from successive positions [1]_.

References
----------
.. [1] HERE, "Route Match Extension API developer's guide: GPS position accuracy".
"""


def with_motion(index_of: Mapping[str, int]) -> dict[str, int]:
    """Return the index of each declared reading, and of heading, speed and accuracy."""
    indexes = dict(index_of)
    for name in (*MOTION, ACCURACY):
        indexes.setdefault(name, len(indexes))
    return indexes


def headings(
    row: IntArray,
    attribute: IntArray,
    value: FloatArray,
    *,
    n: int,
    index_of: Mapping[str, int],
) -> FloatArray | None:
    """Return the usable heading of each position, NaN for none, shape (n,); None if none has one.

    Parameters
    ----------
    row, attribute, value
        Row of the position that a reading came with, index of its attribute, and its value
        (finite), shape (readings,).
    index_of
        As `with_motion` returns it.
    """
    stated = attribute == index_of[HEADING]
    if not stated.any():
        return None
    heading = np.full(n, np.nan)
    heading[row[stated]] = value[stated]
    heading[row[(attribute == index_of[SPEED]) & (value < LEAST_MPS)]] = np.nan
    return heading


def accuracies(
    row: IntArray,
    attribute: IntArray,
    value: FloatArray,
    *,
    n: int,
    index_of: Mapping[str, int],
) -> FloatArray | None:
    """Return the stated accuracy of each position, metres, NaN for none; parameters as above."""
    stated = attribute == index_of[ACCURACY]
    if not stated.any():
        return None
    accuracy_m = np.full(n, np.nan)
    accuracy_m[row[stated]] = value[stated]
    return accuracy_m


def headings_in(trace: Trace) -> FloatArray | None:
    """Return the usable heading of each row of a trace, likewise."""
    heading, speed = (trace.readings.get(name) for name in MOTION)
    if heading is None or speed is None:
        return heading
    return np.where(speed < LEAST_MPS, np.nan, heading)
