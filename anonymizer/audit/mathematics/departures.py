"""Leaving home: whether a release tells when somebody leaves whose home is known.

A device that reports only while it drives appears where it is parked. Where hardly anybody drives,
a region covers that place when its inhabitant leaves, and seldom otherwise.
"""

from typing import NamedTuple

import numpy as np

from anonymizer.domain.arrays import BoolArray, FloatArray, IntArray
from anonymizer.domain.discreet import discreet


@discreet
class Departures(NamedTuple):
    """Departures of devices: the piece that is left, and when, in unix seconds, shape (n,)."""

    device: IntArray
    piece: IntArray
    ts: FloatArray


def departures(device: IntArray, ts: FloatArray, piece: IntArray, *, parked_s: float) -> Departures:
    """Return the first report of each device after each long silence.

    Parameters
    ----------
    device, ts, piece
        Of each report, the piece negative where it is in none, shape (n,).
    parked_s
        How long a device must have been silent; the first report of each counts too.
    """
    order = np.lexsort((ts, device))
    device, ts, piece = device[order], ts[order], piece[order]
    same = np.append(np.zeros(min(1, len(ts)), bool), device[1:] == device[:-1])
    begins = ~same | (np.diff(ts, prepend=-np.inf) > parked_s)
    begins &= piece >= 0
    return Departures(device[begins], piece[begins], ts[begins])


def n_held_after(
    held: BoolArray, time: FloatArray, piece: IntArray, ts: FloatArray, *, within_s: float
) -> IntArray:
    """Return how often each piece is published soon after its moment, same shape as `piece`.

    Parameters
    ----------
    held
        Which pieces are published at each tick, shape (ticks, pieces).
    time
        Unix seconds of each tick, rising.
    piece, ts
        Pieces and moments, of one shape.
    """
    n_before = np.zeros((len(held) + 1, held.shape[1]), np.int64)
    np.cumsum(held, axis=0, out=n_before[1:])
    first = np.searchsorted(time, ts, side="left")
    end = np.searchsorted(time, ts + within_s, side="right")
    n: IntArray = n_before[end, piece] - n_before[first, piece]
    return n


def auc(scores: IntArray, others: IntArray) -> FloatArray:
    """Return how often each score exceeds its others, ties by half, shape (n,).

    Parameters
    ----------
    scores, others
        Of shapes (n,) and (n, m).
    """
    more = (scores[:, None] > others).mean(axis=1)
    equal = (scores[:, None] == others).mean(axis=1)
    exceeds: FloatArray = more + equal / 2
    return exceeds
