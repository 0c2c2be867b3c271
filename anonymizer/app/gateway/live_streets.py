"""Traffic by street of the hour that has just ended: watched as positions come, and published."""

import asyncio
import math
from collections import Counter
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from typing import Any, NamedTuple

import numpy as np
import structlog
from numpy.typing import NDArray

from anonymizer.algorithms.positions.live_passages import MOST_PASSAGES, LivePassages
from anonymizer.algorithms.positions.street_hours import PassageSums
from anonymizer.app.street_hours import StreetFinder, Streets, safe_hours, streets_of
from anonymizer.domain.arrays import Int32Array
from anonymizer.domain.network import RoadNetwork
from anonymizer.errors import GuaranteeError
from anonymizer.files.feature_collection import feature_collection
from anonymizer.pipeline.positions.counts.private_counts import OVERLOAD
from anonymizer.pipeline.positions.out.trips import PUBLISHED, UNVERIFIED, LargestK, promised_k
from anonymizer.pipeline.positions.tick.device_zones import DeviceZones
from anonymizer.pipeline.positions.tick.intake import LocatedPositions
from anonymizer.settings import Settings

_LOOK_S = 1.0
_MOST_HOURS = 24
"""Hours that end at one tick, where the clock is put forward."""


class EndedHour(NamedTuple):
    """What was watched in an hour of which no report can come any more.

    Attributes
    ----------
    number
        The hour covers [number, number + 1) times `counts.streets_s` of unix time.
    k
        The largest that was promised while its reports came.
    passages
        None: there were more than there was room for.
    """

    number: int
    k: int
    passages: PassageSums | None


class StreetWatch:
    """Adds up the passages of devices as positions come, hour by hour.

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
    zones
        Knows of which devices nothing is published; None: they cannot say it.
    most
        Passages that there is room for.
    """

    def __init__(
        self,
        settings: Settings,
        finder: StreetFinder,
        keys: Callable[[Int32Array], NDArray[np.uint64]],
        zones: DeviceZones | None = None,
        *,
        most: int = MOST_PASSAGES,
    ) -> None:
        presence = settings.presence
        self._every_s, self._keys, self._zones = settings.counts.streets_s, keys, zones
        self._finder = finder
        self._begin = partial(LivePassages, every_s=self._every_s, gap_s=presence.ttl_s, most=most)
        self._passages = self._begin()
        self._known_after_s = presence.ttl_s + settings.oldest_s
        self._next: int | None = None
        self._largest = LargestK()
        self.adopt(settings)

    def adopt(self, settings: Settings) -> None:
        """Promise the k of these settings from now on; of no hour less than before."""
        self.k = promised_k(settings)

    def see(self, located: LocatedPositions, *, wall_ahead_s: float) -> list[EndedHour]:
        """Take in the positions of a tick, before its slots are given to other devices.

        Return the hours that have ended. `wall_ahead_s` is added to times.
        """
        if len(located.withdrawn_key):
            self._passages.forget(located.withdrawn_key.view(np.int64))
        now = located.event_s + wall_ahead_s
        present = math.floor(now / self._every_s)
        if self._next is None or self._next > present + 1:
            # The clock was put back: those hours come again, with reports of another time.
            self._next, self._passages = present + 1, self._begin()
        rows = np.flatnonzero(located.node >= 0)
        positions = located.positions
        lat, lon, heading = positions.lat[rows], positions.lon[rows], positions.heading
        road = self._finder.find(lat, lon, None if heading is None else heading[rows])
        on = np.flatnonzero(road >= 0)
        device, ts = self._devices(positions.slot[rows[on]]), positions.ts[rows[on]] + wall_ahead_s
        self._passages.add(device, ts, lat[on], lon[on], road[on])
        self._largest.promise(self.k, range(present, present + 1))
        first = self._next
        after = math.floor((now - self._known_after_s) / self._every_s)
        self._next = max(first, after)
        # A clock that was put forward has passed hours in which nothing can have been reported.
        return [self._end(hour) for hour in range(first, min(after, first + _MOST_HOURS))]

    def _end(self, hour: int) -> EndedHour:
        if self._zones is not None and self._zones.silent:
            silent = np.fromiter(self._zones.silent, np.uint64)
            self._passages.forget(silent.view(np.int64))
        return EndedHour(hour, self._largest.end(hour, self.k), self._passages.take(hour))

    def _devices(self, slot: Int32Array) -> NDArray[np.int64]:
        return self._keys(slot).view(np.int64)

    def state(self) -> dict[str, Any]:
        """Return what changes from tick to tick. It holds where devices are."""
        return {
            "passages": self._passages.state(),
            "next": self._next,
            "promised": self._largest.state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self._passages.restore(state["passages"])
        self._next = state["next"]
        self._largest.restore(state["promised"])


def hour_file(hour: EndedHour, streets: Streets, *, every_s: float, secret: bytes | None) -> bytes:
    """Return the traffic of an hour of which all passages are known, as GeoJSON.

    Raises
    ------
    GuaranteeError
        If a figure is about fewer than k devices.
    """
    if hour.passages is None:
        raise ValueError("the passages of this hour are not known")
    hours = range(hour.number, hour.number + 1)
    shown = safe_hours(
        hour.passages.passages(), hours, streets, k=hour.k, every_s=every_s, secret=secret
    )
    return feature_collection(*shown)


class LiveStreets:
    """Publishes what `anonymizer traffic` makes, each hour once, of the gateway's positions.

    `settings`, `network`, `keys`, `zones`: see `StreetWatch`; `secret`: of the thresholds.

    Attributes
    ----------
    newest
        The traffic of the last hour that was published, as GeoJSON; None: none yet.
    n_hours
        Hours so far, by why they were suppressed, empty if they were published.
    """

    def __init__(
        self,
        settings: Settings,
        network: RoadNetwork,
        keys: Callable[[Int32Array], NDArray[np.uint64]],
        zones: DeviceZones | None = None,
        *,
        secret: bytes = b"",
    ) -> None:
        self._every_s = settings.counts.streets_s
        self._streets = streets_of(network)
        finder = StreetFinder(network, self._streets, limit_m=settings.network.snap_limit_m)
        self._watch = StreetWatch(settings, finder, keys, zones)
        self._ended: SimpleQueue[EndedHour] = SimpleQueue()
        self._secret, self._k_extra = secret, settings.region.k_extra
        self._log = structlog.get_logger()
        self.newest: bytes | None = None
        self.n_hours: Counter[str] = Counter()

    def adopt(self, settings: Settings) -> None:
        """Ask for the k of these settings from now on; of no hour for less than before."""
        self._watch.adopt(settings)
        self._k_extra = settings.region.k_extra

    def see(self, located: LocatedPositions, *, wall_ahead_s: float) -> None:
        """Take in the positions of a tick; see `StreetWatch.see`."""
        for each in self._watch.see(located, wall_ahead_s=wall_ahead_s):
            self._ended.put(each)

    async def run(self) -> None:
        """Publish each hour when it has ended."""
        while True:
            await self.look()
            await asyncio.sleep(_LOOK_S)

    async def look(self) -> None:
        """Publish the hours that have ended, one after the other."""
        while not self._ended.empty():
            hour = self._ended.get()
            hour = hour._replace(k=max(hour.k, self._watch.k))
            why = OVERLOAD
            if hour.passages is not None:
                try:
                    self.newest = await asyncio.to_thread(
                        hour_file,
                        hour,
                        self._streets,
                        every_s=self._every_s,
                        secret=self._secret if self._k_extra else None,
                    )
                    why = PUBLISHED
                except GuaranteeError:
                    why = UNVERIFIED
            self.n_hours[why] += 1
            if why != PUBLISHED:
                self._log.error("an hour of streets is not published", reason=why)
