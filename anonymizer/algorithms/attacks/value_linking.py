"""Value linking: which pseudonym of a group reports what a device is known to have sensed.

Pseudonyms that share their whole life are interchangeable by region and time. Values published
beside each of them need not be: an adversary who knows one device's own readings (his parcel's
tracker, a neighbour's battery) compares them with the values of every pseudonym of the group.

What the device behind each record had sensed: the readings that its values can be made of.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from anonymizer.algorithms.attacks.observed import Observed, starts
from anonymizer.algorithms.attacks.truth import TIME_SLACK_S
from anonymizer.algorithms.kernels import kernel
from anonymizer.algorithms.positions.readings import ReadingAttribute, ReadingsState
from anonymizer.domain.arrays import FloatArray, IntArray

_ONE_SIDED = 1.0
"""Distance of a value from none, in ranges: as far as two values can be apart."""
_TIE = 1e-9
"""Of a range, at each comparison: closer than this, two pseudonyms are equally far."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ValueLinks:
    """How well each pseudonym is found by the readings of the device behind it.

    Attributes
    ----------
    success
        Chance that the adversary picks it: 1 over the equally near ones where it is among
        the nearest, else 0, shape (pseudonyms,).
    by_chance
        What guessing among its twins gives, 1/k for k of them, shape (pseudonyms,).
    """

    success: FloatArray
    by_chance: FloatArray


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
    observed
        What was published.
    class_of
        Twin class of each pseudonym, see `twin_classes`; classes are numbered from 0.
    published
        Value beside the pseudonym of each record, NaN for none, shape (records, attributes).
    true
        What the device behind the record had sensed by then, likewise: as the adversary
        knows it. He is strongest if it is clamped and rounded as the settings say.
    span
        Range of each attribute, > 0, shape (attributes,): it makes distances comparable.

    Raises
    ------
    ValueError
        If the pseudonyms of a class do not have equally many records.

    Notes
    -----
    The distance is the sum over all records and attributes of |published - true| / span, at
    most 1 each; a value against none counts 1, none against none 0: absence tells too. Cost:
    O(records * k * attributes).

    One who knows the readings of *all* members can match them one to one and does at least as
    well. A class of one is found with certainty, values or not: that is 1/k as well.
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
    """Return the first pseudonym of the class of each pseudonym in order."""
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
    """Return how far two rows of values are apart, in ranges."""
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
        Gives the records and their times; a reading counts from its own time on.
    attributes
        As declared.
    device, ts, value
        Device, unix seconds (never falling) and readings of each reported position, NaN for
        none, shapes (n,), (n,) and (n, attributes).
    device_of
        Who each pseudonym is, shape (pseudonyms,).
    ttl_s
        A reading older than this counts as none.

    Returns
    -------
    sensed
        NaN for none, shape (records, attributes).

    Notes
    -----
    Knows a device's readings no finer than the gateway does: finer would only mislead. Cost:
    O((n + records) * attributes), and some 20 µs a tick.
    """
    state = ReadingsState(attributes, ttl_s=ttl_s)
    slot = device.astype(np.int32)
    who = device_of[observed.pseudonym_of].astype(np.int32)
    n_ticks = len(observed.time)
    by_tick = np.argsort(observed.tick_of, kind="stable")
    first = starts(np.bincount(observed.tick_of, minlength=n_ticks))
    heard = np.searchsorted(ts, observed.time + TIME_SLACK_S, side="right").tolist()
    sensed = np.full((observed.n_records, len(attributes)), np.nan)
    for t, (start, end) in enumerate(pairwise([0, *heard])):
        row, attribute = np.nonzero(~np.isnan(value[start:end]))
        row += start
        state.advance(slot[row], attribute, value[row, attribute], ts[row])
        records = by_tick[first[t] : first[t + 1]]
        sensed[records] = state.current(who[records], now=observed.time[t] - TIME_SLACK_S)
    return sensed
