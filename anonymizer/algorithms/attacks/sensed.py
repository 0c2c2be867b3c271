"""What the device behind each record had sensed: the readings that its values can be made of."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from anonymizer.algorithms.attacks.observed import Observed, starts
from anonymizer.algorithms.attacks.truth import TIME_SLACK_S
from anonymizer.algorithms.positions.readings import Attribute, ReadingsState
from anonymizer.domain.arrays import FloatArray, IntArray


def last_sensed(
    observed: Observed,
    *,
    attributes: Sequence[Attribute],
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
