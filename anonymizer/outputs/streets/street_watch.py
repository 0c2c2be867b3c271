"""The watch of traffic by street: adds up passages as positions come, hour by hour."""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from anonymizer.algorithms.positions.device_keys import Keys
from anonymizer.algorithms.positions.live_passages import LivePassages
from anonymizer.algorithms.positions.street_hours import PassageSums
from anonymizer.domain.arrays import Int32Array
from anonymizer.domain.discreet import discreet
from anonymizer.outputs.output import SeenTick, StatedWindow
from anonymizer.outputs.streets.street_hours import StreetFinder
from anonymizer.outputs.windows import EndedWindows, promised_k
from anonymizer.pipeline.positions.tick.device_zones import DeviceZones
from anonymizer.settings import Settings


@discreet
class StatedPassages(NamedTuple):
    """Some of the passages of an hour; `k`: the largest promised while its reports came."""

    k: int
    passages: PassageSums


class StreetWatch:
    """Adds up the passages of the devices of a source.

    An hour ends once, when devices have had the time to say how fast they left it. The hour in
    which the watch begins is left out, because nobody knows what is missing of it.

    Parameters
    ----------
    settings
        The promise is that of `counts`.
    finder
        Of the network.
    keys
        Returns a number for the device of each slot.
    most
        Passages that there is room for.
    delay_s
        For so long after its end something of an hour may follow.
    """

    def __init__(
        self, settings: Settings, finder: StreetFinder, keys: Keys, *, most: int, delay_s: float
    ) -> None:
        every_s, ttl_s = settings.counts.streets_s, settings.presence.ttl_s
        self._keys, self._finder = keys, finder
        self._begin = partial(LivePassages, every_s=every_s, gap_s=ttl_s, most=most)
        self._passages = self._begin()
        self._windows = EndedWindows(every_s, delay_s)
        self.adopt(settings)

    def adopt(self, settings: Settings) -> None:
        """Promise the k of these settings from now on; of no hour less than before."""
        self._k = promised_k(settings)

    def see(self, seen: SeenTick) -> Sequence[StatedWindow]:
        """Take in the positions of a tick; state the passages of hours that have ended."""
        located, ahead_s = seen.located, seen.ahead_s
        if len(located.withdrawn_key):
            self._passages.forget(located.withdrawn_key.view(np.int64))
        if located.any_shut_out:
            self._windows.restart()
        now = located.event_s + ahead_s
        if self._windows.begins(now):
            self._passages = self._begin()
        rows = np.flatnonzero(located.node >= 0)
        positions = located.positions
        lat, lon, heading = positions.lat[rows], positions.lon[rows], positions.heading
        road = self._finder.find(lat, lon, None if heading is None else heading[rows])
        on = np.flatnonzero(road >= 0)
        device, ts = self._devices(positions.slot[rows[on]]), positions.ts[rows[on]] + ahead_s
        self._passages.add(device, ts, lat[on], lon[on], road[on])
        return [self._end(*each, seen.zones) for each in self._windows.ended(now, k=self._k)]

    def free(self, slots: Int32Array) -> None:
        """Do nothing: devices are known by their keys."""

    def _end(self, hour: int, k: int, zones: DeviceZones | None) -> StatedWindow:
        if zones is not None and zones.silent:
            silent = np.fromiter(zones.silent, np.uint64)
            self._passages.forget(silent.view(np.int64))
        passages = self._passages.take(hour)
        return StatedWindow(hour, None if passages is None else StatedPassages(k, passages))

    def _devices(self, slot: Int32Array) -> NDArray[np.int64]:
        return self._keys(slot).view(np.int64)

    def state(self) -> list[Any]:
        """Return what changes from tick to tick. It holds where devices are."""
        return [self._passages.state(), self._windows.state()]

    def restore(self, state: list[Any]) -> None:
        """Go on from a state."""
        passages, windows = state
        self._passages.restore(passages)
        self._windows.restore(windows)
