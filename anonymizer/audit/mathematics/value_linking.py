"""The value linking attack: which pseudonym of a group publishes the known readings of a device.

Pseudonyms that share their whole lives are interchangeable by region and time. Individual values
published next to each of them may not be: an adversary who knows the readings of one device (the
tracker of his parcel, the battery of a neighbour) compares them with the values of every
pseudonym of the group.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from anonymizer.algorithms.kernels import kernel
from anonymizer.algorithms.positions.readings import ReadingsState
from anonymizer.algorithms.releases.observed import Observed
from anonymizer.audit.mathematics.truth import TIME_SLACK_S
from anonymizer.domain.arrays import FloatArray, IntArray, starts_of
from anonymizer.domain.readings import ReadingAttribute

_ONE_SIDED = 1.0
"""Distance between a value and a missing one, in ranges: the largest of any two values."""
_TIE = 1e-9
"""Pseudonyms whose distances differ by less than this, in ranges a comparison, are tied."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ValueLinks:
    """How well each pseudonym is found by the readings of its device."""

    success: FloatArray
    """Probability that the adversary picks it, shape (pseudonyms,): 1 over the number of tied
    pseudonyms if it is among the nearest, else 0."""
    by_chance: FloatArray
    """Probability of a random guess within its class, 1/k for k members, shape (pseudonyms,)."""


def link_values(
    observed: Observed,
    *,
    class_of: IntArray,
    published: FloatArray,
    true: FloatArray,
    span: FloatArray,
) -> ValueLinks:
    """Guess the pseudonym of each device from its readings.

    Parameters
    ----------
    class_of
        Class of each pseudonym, numbered from 0, see `indistinguishable_classes`.
    published
        Value published next to the pseudonym of each record, NaN if none, shape (records,
        attributes).
    true
        Newest readings of the device at each record, as the adversary knows them, same shape.
        He is strongest if they are clamped and rounded like the published values.
    span
        Range of each attribute, > 0, shape (attributes,), which makes distances comparable.

    Raises
    ------
    ValueError
        If the pseudonyms of a class do not have equally many records.

    Notes
    -----
    The distance is the sum over all records and attributes of |published - true| / span, at most
    1 each. A value compared with a missing one counts 1, two missing ones count 0, because
    absence is informative too. O(records * k * attributes).

    An adversary who knows the readings of *all* members can match them one to one and does at
    least as well. The only member of a class is found with certainty even without values, which
    is also 1/k.
    """
    first = observed.first_record_of
    order = np.argsort(class_of, kind="stable")
    first_twin_of = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.bincount(class_of))])
    n_records = np.diff(first)
    if not np.array_equal(n_records[order], n_records[_leader_of(order, first_twin_of)]):
        raise ValueError("the pseudonyms of a class must have equally many records")
    success = _successes(first, order, first_twin_of, published / span, true / span)
    return ValueLinks(success, 1.0 / np.bincount(class_of)[class_of])


def _leader_of(order: IntArray, first_twin_of: IntArray) -> IntArray:
    """Return for each pseudonym in `order` the first pseudonym of its class."""
    return np.repeat(order[first_twin_of[:-1]], np.diff(first_twin_of))


@kernel
def _successes(
    first_record_of: IntArray,
    order: IntArray,
    first_twin_of: IntArray,
    published: FloatArray,
    true: FloatArray,
) -> FloatArray:
    success = np.zeros(len(order))
    for c in range(len(first_twin_of) - 1):
        twins = order[first_twin_of[c] : first_twin_of[c + 1]]
        distance = np.empty(len(twins))
        for t in range(len(twins)):
            start = first_record_of[twins[t]]
            known = true[start : first_record_of[twins[t] + 1]]
            for i in range(len(twins)):
                start = first_record_of[twins[i]]
                distance[i] = _distance(published[start : start + len(known)], known)
            nearest = distance <= distance.min() + _TIE * known.size
            success[twins[t]] = nearest[t] / nearest.sum()
    return success


@kernel
def _distance(published: FloatArray, known: FloatArray) -> float:
    """Return the distance between two sequences of values, in ranges."""
    total = 0.0
    for i in range(known.shape[0]):
        for a in range(known.shape[1]):
            x, y = published[i, a], known[i, a]
            if np.isnan(x) != np.isnan(y):
                total += _ONE_SIDED
            elif not np.isnan(x):
                total += min(abs(x - y), _ONE_SIDED)
    return total


def last_sensed(
    observed: Observed,
    *,
    attributes: Sequence[ReadingAttribute],
    device: IntArray,
    ts: FloatArray,
    value: FloatArray,
    device_of: IntArray,
    ttl_s: float,
) -> FloatArray:
    """Return the newest readings of the device behind each record, clamped and rounded.

    Parameters
    ----------
    observed
        The release, with the records and their times; a reading counts from its own time on.
    attributes
        The declared readings.
    device, ts, value
        Device, unix seconds (not decreasing) and readings of each reported position, NaN if
        missing, shapes (n,), (n,) and (n, attributes).
    device_of
        Device of each pseudonym, shape (pseudonyms,).
    ttl_s
        An older reading counts as missing.

    Returns
    -------
    sensed
        Newest readings, NaN if missing, shape (records, attributes).

    Notes
    -----
    The readings are clamped and rounded as in the gateway; more precise ones would only mislead
    the adversary. O((n + records) * attributes), and about 20 µs a tick.
    """
    state = ReadingsState(attributes)
    slot = device.astype(np.int32)
    who = device_of[observed.pseudonym_of].astype(np.int32)
    n_ticks = len(observed.time)
    by_tick = np.argsort(observed.tick_of, kind="stable")
    first = starts_of(np.bincount(observed.tick_of, minlength=n_ticks))
    heard = np.searchsorted(ts, observed.time + TIME_SLACK_S, side="right").tolist()
    sensed = np.full((observed.n_records, len(attributes)), np.nan)
    for t, (start, end) in enumerate(pairwise([0, *heard])):
        row, attribute = np.nonzero(~np.isnan(value[start:end]))
        row += start
        state.advance(slot[row], attribute, value[row, attribute], ts[row])
        records = by_tick[first[t] : first[t + 1]]
        since = observed.time[t] - TIME_SLACK_S - ttl_s
        sensed[records] = state.current(who[records], since=since)
    return sensed
