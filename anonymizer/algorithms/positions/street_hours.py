"""Traffic of streets over hours: how many devices passed, and how fast, at least k in each figure.

A *passage* is one device on one road in one interval. A road on which enough devices pass is a
*stretch* by itself. What is left of a neighbourhood is a stretch as soon as enough devices pass on
it, and else is left to the next larger neighbourhood; whether it is empty or has too few devices
makes no difference. Numbers of devices are rounded down to multiples of k, so that no sum and no
difference of them is about fewer. How much roads of a stretch differ in speed is published with its
mean, because an error bar of a road needs it.

With differential privacy the stretches are the same whatever the traffic, a device adds at most so
many passages to a period, and each number has noise.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from anonymizer.algorithms.geodesy import haversine_m
from anonymizer.domain.arrays import BoolArray, FloatArray, IntArray

MOST_SPEED_MPS = 40.0
"""Faster passages count as this fast, so that one of them cannot move a mean by much."""
SPEED_STEP_MPS = 0.5
"""Means are rounded to this, spreads up to it."""
FINE = 64
"""Numbers with noise are in steps of one over this: a speed is a part of a device."""


class Passages(NamedTuple):
    """Devices on roads in intervals, each once, by interval, road and device.

    Attributes
    ----------
    interval, road, device
        Shape (passages,). Interval n covers [n, n + 1) times its length.
    speed_mps
        Metres over seconds between positions, half of each step at each of its ends; NaN for none.
    """

    interval: IntArray
    road: IntArray
    device: IntArray
    speed_mps: FloatArray

    def at(self, chosen: BoolArray | slice) -> "Passages":
        """Return some of them."""
        return Passages(
            self.interval[chosen], self.road[chosen], self.device[chosen], self.speed_mps[chosen]
        )

    def __repr__(self) -> str:
        """Reveal no device and no place."""
        return f"Passages({len(self.road)})"


class PublishedStretches(NamedTuple):
    """What is published about one interval; all numbers of devices are multiples of k.

    Attributes
    ----------
    stretch_of
        Stretch of each road, -1 for those about which nothing is published: fewer than k devices
        pass on all of them. Shape (roads,).
    n_devices, n_passages
        Devices that passed anywhere on each stretch, and the sum of those of each of its roads.
    speed_mps
        Mean over the passages, NaN where fewer than k devices have a speed.
    spread_mps
        How far the means of its roads are from it: the root of the mean square over the roads.
    """

    stretch_of: IntArray
    n_devices: IntArray
    n_passages: IntArray
    speed_mps: FloatArray
    spread_mps: FloatArray


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

    Parameters
    ----------
    device, ts, lat, lon, road
        Device, unix seconds, degrees and road (negative: none) of each position, shape (n,).
    every_s
        Length of an interval.
    gap_s
        Positions farther apart in time say nothing of a speed.

    Notes
    -----
    A device is on the roads where it was seen; on which it drove in between is not guessed. So
    positions that are far apart miss roads. O(n log n).
    """
    order = np.lexsort((ts, device))
    order = order[road[order] >= 0]
    device, road = device[order].astype(np.int64), road[order].astype(np.int64)
    ts, lat, lon = ts[order], lat[order], lon[order]
    interval = np.floor(ts / every_s).astype(np.int64)
    key = np.stack([interval, road, device])
    found, of = np.unique(key, axis=1, return_inverse=True)
    of = of.ravel()
    seconds = np.diff(ts)
    linked = np.flatnonzero((np.diff(device) == 0) & (seconds > 0) & (seconds <= gap_s))
    metres = haversine_m(lat[linked], lon[linked], lat[linked + 1], lon[linked + 1])
    total_m, total_s = np.zeros((2, found.shape[1]))
    for end in (of[linked], of[linked + 1]):
        np.add.at(total_m, end, metres)
        np.add.at(total_s, end, seconds[linked])
    speed = np.full(len(total_m), np.nan)
    np.divide(total_m, total_s, out=speed, where=total_s > 0)
    return Passages(found[0], found[1], found[2], np.minimum(speed, MOST_SPEED_MPS))


def stretches_of(passages: Passages, n_roads: int, k: int) -> PublishedStretches:
    """Return what is published about the passages of one interval.

    Parameters
    ----------
    passages
        All of one interval.
    n_roads
        At least as many as there are, a power of two; roads 2i and 2i + 1 are neighbours, and so
        on.

    Notes
    -----
    O(passages x log(roads) x log(passages)).
    """
    stretch_of = _stretch_of(passages, n_roads, k)
    held = passages.at(stretch_of[passages.road] >= 0)
    order = np.argsort(stretch_of[held.road], kind="stable")
    road, device, speed = held.road[order], held.device[order], held.speed_mps[order]
    n_stretches = int(stretch_of.max(initial=-1)) + 1
    bounds = np.searchsorted(stretch_of[road], np.arange(n_stretches + 1))
    numbers = np.zeros((n_stretches, 2), np.int64)
    means = np.full((n_stretches, 2), np.nan)
    for i, (a, b) in enumerate(zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)):
        numbers[i] = len(np.unique(device[a:b])), b - a
        known = a + np.flatnonzero(~np.isnan(speed[a:b]))
        if len(np.unique(device[known])) >= k:
            means[i] = _mean_and_spread(road[known], speed[known])
    numbers -= numbers % k
    mean, spread = np.round(means[:, 0] / SPEED_STEP_MPS), np.ceil(means[:, 1] / SPEED_STEP_MPS)
    n_devices, n_passages = numbers.T
    return PublishedStretches(
        stretch_of, n_devices, n_passages, mean * SPEED_STEP_MPS, spread * SPEED_STEP_MPS
    )


def _stretch_of(passages: Passages, n_roads: int, k: int) -> IntArray:
    """Return the stretch of each road, from the smallest neighbourhoods to the whole."""
    stretch_of = np.full(n_roads, -1, np.int64)
    road, device = passages.road, passages.device
    n_stretches = 0
    for level in range(n_roads.bit_length()):
        areas = np.unique(np.stack([road >> level, device]), axis=1)[0]
        area, n_devices = np.unique(areas, return_counts=True)
        enough = area[n_devices >= k]
        left = np.flatnonzero(stretch_of < 0)
        at = np.searchsorted(enough, left >> level)
        found = np.append(enough, -1)[at] == left >> level
        stretch_of[left[found]] = n_stretches + at[found]
        n_stretches += len(enough)
        kept = stretch_of[road] < 0
        road, device = road[kept], device[kept]
    return stretch_of


def _mean_and_spread(road: IntArray, speed: FloatArray) -> tuple[float, float]:
    _, of, n = np.unique(road, return_inverse=True, return_counts=True)
    mean, of_road = speed.mean(), np.bincount(of.ravel(), speed) / n
    # Equal speeds have no spread, whatever the rounding of sums says.
    return float(mean), float(np.sqrt(((of_road - mean) ** 2).mean()).round(9))


def at_most(passages: Passages, period: IntArray, most: int, rng: np.random.Generator) -> BoolArray:
    """Return which passages are counted: of each device and period, so many random ones.

    Parameters
    ----------
    period
        Of each passage, shape (passages,).
    """
    order = np.lexsort((rng.random(len(period)), passages.device, period))
    owner = np.stack([period[order], passages.device[order]])
    begins = np.ones(len(order), np.bool_)
    begins[1:] = (np.diff(owner, axis=1) != 0).any(axis=0)
    start = np.maximum.accumulate(np.where(begins, np.arange(len(order)), 0))
    counted = np.zeros(len(order), np.bool_)
    counted[order] = np.arange(len(order)) - start < most
    return counted


def noisy_sums(
    passages: Passages,
    intervals: IntArray,
    n_stretches: int,
    noise: Callable[[Sequence[int]], list[int]],
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return passages, those with a speed and the sum of their speeds, each with noise.

    Parameters
    ----------
    passages
        Those that are counted. Their roads are stretches, so that a device is on each once.
    intervals
        All that are published, with traffic or without, rising.
    noise
        Returns whole numbers with noise that hides what a passage changes: three numbers, by `FINE`
        each at most.

    Returns
    -------
    n, n_moving, speed
        Shape (intervals, stretches) each; the last in metres a second.
    """
    cell = np.searchsorted(intervals, passages.interval) * n_stretches + passages.road
    moving = (~np.isnan(passages.speed_mps)).astype(np.float64)
    share = np.rint(np.nan_to_num(passages.speed_mps) / MOST_SPEED_MPS * FINE)
    size = len(intervals) * n_stretches
    sums = [
        np.bincount(cell, each, size) for each in (np.full(len(cell), FINE), FINE * moving, share)
    ]
    noisy = np.array(noise(np.concatenate(sums).astype(np.int64).tolist())) / FINE
    n, n_moving, speed = noisy.reshape(3, len(intervals), n_stretches)
    return n, n_moving, speed * MOST_SPEED_MPS
