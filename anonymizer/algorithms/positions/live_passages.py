"""Passages of devices as they report: what traffic by street and hour is made of, hour by hour."""

from typing import Any, NamedTuple

import numpy as np

from anonymizer.algorithms.positions.street_hours import (
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
        """Take in reports on roads, shape (n,), in any order.

        Of each device, those no newer than what was taken in before are left out.
        """
        self._waiting.append(_Reports(device, ts, lat, lon, road))
        self._n_waiting += len(device)
        if self._n_waiting > _MOST_WAITING:
            self._fold()

    def forget(self, device: IntArray) -> None:
        """Forget all reports of devices of which nothing is published."""
        self._fold()
        self._sums = self._sums.at(~np.isin(self._sums.key[2], device))
        self._last = self._last.at(~np.isin(self._last.device, device))

    def take(self, interval: int) -> PassageSums | None:
        """Return the sums of an interval that has ended, and forget it and those before.

        None if there was no room for reports of it.
        """
        self._fold()
        number = self._sums.key[0]
        taken, self._sums = self._sums.at(number == interval), self._sums.at(number > interval)
        recent = self._last.ts >= (interval + 1) * self._every_s - self._gap_s
        self._last = self._last.at(recent)
        crowded = interval in self._crowded
        self._crowded = {each for each in self._crowded if each > interval}
        return None if crowded else taken

    def _fold(self) -> None:
        """Add up what waits."""
        if not self._n_waiting:
            return
        parts = [self._last, *self._waiting]
        found = _Reports(*map(np.concatenate, zip(*parts, strict=True)))
        turn = np.repeat(np.arange(len(parts)), [len(each.device) for each in parts])
        self._waiting, self._n_waiting = [], 0
        order = np.lexsort((found.ts, turn, found.device))
        found = found.at(order)
        # A report is kept if it is newer than all before it, those of its own turn by their times.
        # So it does not matter how many turns are added up at once.
        number = np.cumsum(np.diff(found.device, prepend=found.device[:1]) != 0)
        moments, rank = np.unique(found.ts, return_inverse=True)
        newest = number * len(moments) + rank
        kept = np.ones(len(order), np.bool_)
        kept[1:] = newest[1:] > np.maximum.accumulate(newest)[:-1]
        found = found.at(kept)
        ends = np.append(np.diff(found.device) != 0, np.True_)
        self._last = found.at(ends)
        sums = passage_sums(*found, every_s=self._every_s, gap_s=self._gap_s)
        merged = together([self._sums, sums])
        if merged.key.shape[1] > self._most:
            self._crowded |= set(np.unique(sums.key[0]).tolist())
        else:
            self._sums = merged

    def state(self) -> dict[str, Any]:
        """Return what changes with each report. It holds where devices are."""
        interval, road, device = self._sums.key
        return {
            "sums": [interval, road.astype(np.int32), device, *self._sums.sums],
            "last": list(self._last),
            "waiting": [list(each) for each in self._waiting],
            "crowded": sorted(self._crowded),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        interval, road, device, *sums = state["sums"]
        self._sums = PassageSums(np.stack([interval, road, device]), np.stack(sums))
        self._last = _Reports(*state["last"])
        self._waiting = [_Reports(*each) for each in state["waiting"]]
        self._n_waiting = sum(len(each.device) for each in self._waiting)
        self._crowded = set(state["crowded"])
