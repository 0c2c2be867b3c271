"""Traffic of streets over hours: how many devices passed, and how fast, at least k in each figure.

A *passage* is one device on one road in one interval. Roads are in a public order in which halves
of one area follow each other. An area is cut in halves for as long as both have enough devices; a
half that has fewer joins the stretch beside it, and whether it is empty makes no difference [1]_.
So all devices of a stretch may be on one of its roads: no stretch tells that anybody passed where
fewer than k did, and a road with k devices does not always have a figure to itself.

Numbers of devices are rounded down to multiples of k. How many passages they made on the roads of
a stretch is not published: more passages than devices would tell that they were on several roads.
Each device counts alike in a mean. How much speeds in a stretch differ is published with its mean,
because an error bar of a road needs it.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from anonymizer.algorithms.geodesy import haversine_m
from anonymizer.algorithms.positions.secret_thresholds import SecretThresholds
from anonymizer.domain.arrays import BoolArray, FloatArray, IntArray, distinct
from anonymizer.domain.discreet import discreet

MOST_SPEED_MPS = 40.0
"""Faster passages count as this fast, so that one of them cannot move a mean by much."""
SPEED_STEP_MPS = 0.5
"""Means are rounded to this, spreads up to it."""
_ALL, _AREA, _STRETCH, _SPEED = range(4)
"""Kinds of figures that have thresholds."""
_EXACT = 2.0**20
"""Metres and seconds are in steps of one over this. Sums of so few bits are exact, and therefore
the same in whatever order, and by however many processes, they are added up."""


@discreet
class Passages(NamedTuple):
    """Devices on roads in intervals, each once, by interval, road and device.

    All of shape (passages,). Interval n covers [n, n + 1) times its length. `speed_mps`: metres
    over seconds between positions, half of each step at each of its ends; NaN for none.
    """

    interval: IntArray
    road: IntArray
    device: IntArray
    speed_mps: FloatArray

    def at(self, chosen: BoolArray | IntArray | slice) -> "Passages":
        """Return some of them."""
        return Passages(
            self.interval[chosen], self.road[chosen], self.device[chosen], self.speed_mps[chosen]
        )


class PublishedStretches(NamedTuple):
    """What is published about one interval; all numbers of devices are multiples of k.

    `stretch_of`: of each road, shape (roads,); -1 everywhere if fewer than k devices pass on all of
    them. `n_devices`: that passed anywhere on each stretch. `speed_mps`: mean over devices of their
    mean over passages, NaN where fewer than k devices have one. `spread_mps`: standard deviation of
    the speeds of passages, in which each device counts alike; 0 for a stretch of one road.
    """

    stretch_of: IntArray
    n_devices: IntArray
    speed_mps: FloatArray
    spread_mps: FloatArray


@discreet
class PassageSums(NamedTuple):
    """Passages before their speeds are known, by interval, road and device."""

    key: IntArray
    """Interval, road and device, shape (3, passages)."""
    sums: FloatArray
    """Metres and seconds between positions, shape (2, passages)."""

    def at(self, chosen: BoolArray | slice) -> "PassageSums":
        """Return some of them."""
        return PassageSums(self.key[:, chosen], self.sums[:, chosen])

    def passages(self) -> Passages:
        """Return the passages with their speeds."""
        total_m, total_s = self.sums
        speed = np.full(len(total_m), np.nan)
        np.divide(total_m, total_s, out=speed, where=total_s > 0)
        interval, road, device = self.key
        return Passages(interval, road, device, np.minimum(speed, MOST_SPEED_MPS))


def passages_of(
    device: IntArray,
    ts: FloatArray,
    lat: FloatArray,
    lon: FloatArray,
    road: IntArray,
    *,
    every_s: float,
    gap_s: float,
) -> Passages:
    """Return the passages of positions.

    Device, unix seconds, degrees and road (negative: none) of each position, shape (n,); `every_s`:
    length of an interval. Positions farther apart than `gap_s` say nothing of a speed.

    Notes
    -----
    A device is on the roads where it was seen; on which it drove in between is not guessed. So
    positions that are far apart miss roads. O(n log n).
    """
    order = np.lexsort((ts, device))
    order = order[road[order] >= 0]
    sums = passage_sums(
        *(device[order], ts[order], lat[order], lon[order], road[order]),
        every_s=every_s,
        gap_s=gap_s,
    )
    return sums.passages()


def passage_sums(
    device: IntArray,
    ts: FloatArray,
    lat: FloatArray,
    lon: FloatArray,
    road: IntArray,
    *,
    every_s: float,
    gap_s: float,
) -> PassageSums:
    """Return the sums of positions on roads, by device and time; see `passages_of`.

    Those of parts of the positions, put `together`, are the same to the last bit.
    """
    device, road = device.astype(np.int64), road.astype(np.int64)
    interval = np.floor(ts / every_s).astype(np.int64)
    key, of = _distinct(np.stack([interval, road, device]))
    seconds = np.diff(ts)
    linked = np.flatnonzero((np.diff(device) == 0) & (seconds > 0) & (seconds <= gap_s))
    metres = haversine_m(lat[linked], lon[linked], lat[linked + 1], lon[linked + 1])
    steps = np.rint(np.stack([metres, seconds[linked]]) * _EXACT) / _EXACT
    ends = np.concatenate([of[linked], of[linked + 1]])
    return PassageSums(key, _added_up(ends, np.tile(steps, 2), key.shape[1]))


def together(parts: Sequence[PassageSums]) -> PassageSums:
    """Return the sums of parts of the positions, at least one, as those of all of them."""
    keys = np.concatenate([each.key for each in parts], axis=1)
    key, of = _distinct(keys)
    sums = np.concatenate([each.sums for each in parts], axis=1)
    return PassageSums(key, _added_up(of, sums, key.shape[1]))


def _distinct(key: IntArray) -> tuple[IntArray, IntArray]:
    """Return the distinct columns of an array, rising, and which of them each column is."""
    order = np.lexsort(key[::-1])
    ordered = key[:, order]
    begins = np.ones(len(order), np.bool_)
    begins[1:] = (ordered[:, 1:] != ordered[:, :-1]).any(axis=0)
    of = np.empty(len(order), np.int64)
    of[order] = np.cumsum(begins) - 1
    return ordered[:, begins], of


def _added_up(of: IntArray, sums: FloatArray, n: int) -> FloatArray:
    return np.stack([np.bincount(of, each, n) for each in sums])


def stretches_of(
    passages: Passages, n_roads: int, k: int, thresholds: SecretThresholds | None = None
) -> PublishedStretches:
    """Return what is published about the passages of one interval.

    `thresholds`: of this interval; None: they are sharp.

    `n_roads`: at least as many as there are, a power of two; roads 2i and 2i + 1 are halves of one
    area, and so on. O(roads + passages x log(roads) x log(passages)).
    """
    thresholds = thresholds or SecretThresholds()
    starts = _starts(passages, n_roads, k, thresholds)
    n_stretches = max(len(starts) - 1, 0)
    if not n_stretches:
        none = np.zeros(0)
        return PublishedStretches(np.full(n_roads, -1), none.astype(np.int64), none, none)
    n_roads_of = np.diff(starts)
    stretch_of = np.repeat(np.arange(n_stretches), n_roads_of)
    order = np.argsort(passages.road, kind="stable")
    held = passages.at(order)
    bounds = np.searchsorted(held.road, starts)
    of_stretch = np.repeat(np.arange(n_stretches), np.diff(bounds))
    known = ~np.isnan(held.speed_mps)
    n_devices = _n_distinct(of_stretch, held.device, n_stretches)
    n_known = _n_distinct(of_stretch[known], held.device[known], n_stretches)
    told = np.full((n_stretches, 2), np.nan)
    spans = list(pairwise(starts.tolist()))
    moving = thresholds.passes([(_SPEED, *span) for span in spans], n_known, k)
    for i in np.flatnonzero(moving).tolist():
        rows = slice(bounds[i], bounds[i + 1])
        there = known[rows]
        device, speed = held.device[rows][there], held.speed_mps[rows][there]
        told[i] = mean_and_spread(device, speed, alone=n_roads_of[i] == 1)
    least = thresholds.levels([(_STRETCH, *span) for span in spans], n_devices, k)
    return PublishedStretches(stretch_of, least, *told.T)


def _n_distinct(group: IntArray, device: IntArray, n_groups: int) -> IntArray:
    """Return the number of distinct devices in each group."""
    (of_group, _), _ = _distinct(np.stack([group, device]))
    return np.bincount(of_group, minlength=n_groups)


def _starts(passages: Passages, n_roads: int, k: int, thresholds: SecretThresholds) -> IntArray:
    """Return where stretches begin, and the number of roads; nothing if all have fewer than k.

    An area with k devices lies only in areas that have as many. So it is cut exactly if both of its
    halves have k, wherever it is.
    """
    road, device = passages.road, passages.device
    devices, number = np.unique(device, return_inverse=True)
    n = len(devices)
    if not thresholds.passes([(_ALL,)], np.array([n]), k)[0]:
        return np.zeros(0, np.int64)
    starts = [np.array([0, n_roads])]
    # Each device once in each area: the area, and which device it is, in one number.
    seen = road * n + number
    for level in range(n_roads.bit_length() - 1):
        seen = distinct(seen)
        area, n_devices = np.unique(seen // n, return_counts=True)
        area, n_devices = area[n_devices >= k], n_devices[n_devices >= k]
        keys = [(_AREA, level, each) for each in area.tolist()] if not thresholds.are_sharp else []
        enough = area[thresholds.passes(keys, n_devices, k)]
        second = enough[1:][(np.diff(enough) == 1) & (enough[1:] % 2 == 1)]
        starts.append(second << level)
        seen = seen // n // 2 * n + seen % n
    return np.sort(np.concatenate(starts))


def mean_and_spread(device: IntArray, speed: FloatArray, *, alone: bool) -> tuple[float, float]:
    """Return mean and spread of the speeds of a stretch, as they are published.

    `device`, `speed`: of each passage, shape (passages,), at least one; `alone`: whether the
    stretch is one road.
    """
    _, of, n = np.unique(device, return_inverse=True, return_counts=True)
    weight = (1.0 / n)[of.ravel()]
    mean = float(np.average(speed, weights=weight))
    # Equal speeds have no spread, whatever the rounding of sums says.
    square = 0.0 if alone else float(np.average((speed - mean) ** 2, weights=weight).round(9))
    steps = np.round(mean / SPEED_STEP_MPS), np.ceil(np.sqrt(square) / SPEED_STEP_MPS)
    return float(steps[0]) * SPEED_STEP_MPS, float(steps[1]) * SPEED_STEP_MPS
