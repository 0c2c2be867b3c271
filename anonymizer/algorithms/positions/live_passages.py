"""Passages of devices as they report: what traffic by street and hour is made of, hour by hour."""

from typing import NamedTuple

import numpy as np

from anonymizer.algorithms.positions.street_hours import (
    Passages,
    PassageSums,
    passage_sums,
    together,
)
from anonymizer.domain.arrays import BoolArray, FloatArray, IntArray

MOST_PASSAGES = 5_000_000
"""200 MB. An hour with more is not published: nobody knows which ones are missing."""
_MOST_WAITING = 200_000
"""Reports that are kept before they are added up, 8 MB."""


class _Reports(NamedTuple):
    """Device, unix seconds, degrees and road of reports, shape (n,) each."""

    device: IntArray
    ts: FloatArray
    lat: FloatArray
    lon: FloatArray
    road: IntArray

    def at(self, chosen: BoolArray | IntArray) -> "_Reports":
        device, ts, lat, lon, road = self
        return _Reports(device[chosen], ts[chosen], lat[chosen], lon[chosen], road[chosen])


_NONE = _Reports(
    np.zeros(0, np.int64), np.zeros(0), np.zeros(0), np.zeros(0), np.zeros(0, np.int64)
)


class LivePassages:
    """Adds up the passages of intervals that are not published yet.

    Parameters
    ----------
    every_s, gap_s
        As of `passages_of`, which gives the same of all reports at once.
    most
        Passages that there is room for; beyond it reports are left out.

    Notes
    -----
    40 bytes a passage, and as many for each device. A report costs about a microsecond.
    """

    def __init__(self, *, every_s: float, gap_s: float, most: int = MOST_PASSAGES) -> None:
        self._every_s, self._gap_s, self._most = every_s, gap_s, most
        self._sums = PassageSums(np.zeros((3, 0), np.int64), np.zeros((2, 0)))
        self._last = _NONE
        """The newest report of each device, by device."""
        self._waiting: list[_Reports] = []
        self._n_waiting = 0
        self._crowded: set[int] = set()
        """Intervals that lack reports."""

    def add(
        self, device: IntArray, ts: FloatArray, lat: FloatArray, lon: FloatArray, road: IntArray
    ) -> None:
        """Take in reports on roads, shape (n,); those no newer than the last are left out."""
        self._waiting.append(_Reports(device, ts, lat, lon, road))
        self._n_waiting += len(device)
        if self._n_waiting > _MOST_WAITING:
            self._fold()

    def forget(self, device: IntArray) -> None:
        """Forget all reports of devices of which nothing is published."""
        self._fold()
        self._sums = self._sums.at(~np.isin(self._sums.key[2], device))
        self._last = self._last.at(~np.isin(self._last.device, device))

    def take(self, interval: int) -> Passages | None:
        """Return the passages of an interval that has ended, and forget it and those before.

        None if reports of it were left out.
        """
        self._fold()
        number = self._sums.key[0]
        taken, self._sums = self._sums.at(number == interval), self._sums.at(number > interval)
        recent = self._last.ts >= (interval + 1) * self._every_s - self._gap_s
        self._last = self._last.at(recent)
        crowded = interval in self._crowded
        self._crowded = {each for each in self._crowded if each > interval}
        return None if crowded else taken.passages()

    def _fold(self) -> None:
        """Add up what waits."""
        if not self._n_waiting:
            return
        last, n_last = self._last, len(self._last.device)
        found = _Reports(*map(np.concatenate, zip(last, *self._waiting, strict=True)))
        is_known = np.arange(len(found.device)) < n_last
        self._waiting, self._n_waiting = [], 0
        # Of reports of one moment the first stays, the known one before all.
        order = np.lexsort((~is_known, found.ts, found.device))
        found, is_known = found.at(order), is_known[order]
        first = np.ones(len(order), np.bool_)
        first[1:] = np.diff(found.device) != 0
        begins = np.maximum.accumulate(np.where(first, np.arange(len(order)), 0))
        n_known = np.add.accumulate(is_known)
        knows = np.isin(found.device, last.device)
        # Reports before the known one are late.
        kept = ~knows | (n_known - n_known[begins] + is_known[begins] > 0)
        kept[1:] &= first[1:] | (np.diff(found.ts) > 0)
        found = found.at(kept)
        ends = np.append(np.diff(found.device) != 0, np.True_)
        self._last = found.at(ends)
        sums = passage_sums(*found, every_s=self._every_s, gap_s=self._gap_s)
        merged = together([self._sums, sums])
        if merged.key.shape[1] > self._most:
            self._crowded |= set(np.unique(sums.key[0]).tolist())
        else:
            self._sums = merged
