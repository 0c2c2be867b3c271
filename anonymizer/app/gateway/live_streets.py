"""Traffic by street of the hour that has just ended, from the running gateway."""

import asyncio
import math
from collections.abc import Callable
from queue import SimpleQueue

import numpy as np
import structlog
from numpy.typing import NDArray

from anonymizer.algorithms.positions.live_passages import LivePassages
from anonymizer.algorithms.positions.street_hours import Passages
from anonymizer.app.street_hours import StreetFinder, safe_hours, streets_of
from anonymizer.domain.arrays import Int32Array
from anonymizer.domain.network import RoadNetwork
from anonymizer.errors import GuaranteeError
from anonymizer.files.feature_collection import feature_collection
from anonymizer.pipeline.positions.tick.device_zones import DeviceZones
from anonymizer.pipeline.positions.tick.intake import LocatedPositions
from anonymizer.settings import Settings

_LOOK_S = 1.0


class LiveStreets:
    """Makes the output of `anonymizer traffic` hour by hour, from live positions.

    Each hour is published once, when no report of it can come any more and devices have had the
    time to say how fast they left it. The hour in which the gateway starts is left out, because
    nobody knows what is missing of it.

    Parameters
    ----------
    settings
        The promise is that of `counts`.
    network
        One network with coordinates.
    keys
        Returns a number for the device of each slot.
    zones
        Knows of which devices nothing is published; None: they cannot say it.

    Attributes
    ----------
    newest
        The traffic of the last hour that was published, as GeoJSON; None: none yet.
    """

    def __init__(
        self,
        settings: Settings,
        network: RoadNetwork,
        keys: Callable[[Int32Array], NDArray[np.uint64]],
        zones: DeviceZones | None = None,
    ) -> None:
        self._zones = zones
        presence = settings.presence
        self._every_s, self._keys = settings.counts.streets_s, keys
        self._streets = streets_of(network)
        limit_m = settings.network.snap_limit_m
        self._finder = StreetFinder(network, self._streets, limit_m=limit_m)
        self._passages = LivePassages(every_s=self._every_s, gap_s=presence.ttl_s)
        self._known_after_s = presence.ttl_s + presence.max_behind_s
        self._next: int | None = None
        self._ended: SimpleQueue[tuple[int, Passages | None]] = SimpleQueue()
        self._log = structlog.get_logger()
        self.newest: bytes | None = None
        self.adopt(settings)

    def adopt(self, settings: Settings) -> None:
        """Ask for the k of these settings from now on."""
        self._k = settings.counts.k + settings.region.k_extra

    def see(self, located: LocatedPositions, *, wall_ahead_s: float) -> None:
        """Take in the positions of a tick, before its slots are given to other devices.

        Parameters
        ----------
        wall_ahead_s
            Added to times.
        """
        if len(located.withdrawn):
            self._passages.forget(self._devices(located.withdrawn))
        rows = np.flatnonzero(located.node >= 0)
        positions = located.positions
        lat, lon, heading = positions.lat[rows], positions.lon[rows], positions.heading
        road = self._finder.find(lat, lon, None if heading is None else heading[rows])
        on = np.flatnonzero(road >= 0)
        device, ts = self._devices(positions.slot[rows[on]]), positions.ts[rows[on]] + wall_ahead_s
        self._passages.add(device, ts, lat[on], lon[on], road[on])
        now = located.event_s + wall_ahead_s
        if self._next is None:
            self._next = math.floor(now / self._every_s) + 1
        while now >= (self._next + 1) * self._every_s + self._known_after_s:
            if self._zones is not None and self._zones.silent:
                silent = np.fromiter(self._zones.silent, np.uint64)
                self._passages.forget(silent.view(np.int64))
            self._ended.put((self._next, self._passages.take(self._next)))
            self._next += 1

    def _devices(self, slot: Int32Array) -> NDArray[np.int64]:
        return self._keys(slot).view(np.int64)

    async def run(self) -> None:
        """Publish each hour when it has ended."""
        while True:
            await self.look()
            await asyncio.sleep(_LOOK_S)

    async def look(self) -> None:
        """Publish the hours that have ended, one after the other."""
        while not self._ended.empty():
            interval, passages = self._ended.get()
            if passages is None:
                self._log.warning("streets: too many passages, so the hour is not published")
                continue
            try:
                self.newest = await asyncio.to_thread(self._published, interval, passages)
            except GuaranteeError:
                self._log.error("streets: verification failed, so the hour is not published")

    def _published(self, interval: int, passages: Passages) -> bytes:
        hours = range(interval, interval + 1)
        columns, geometry = safe_hours(
            passages, hours, self._streets, k=self._k, every_s=self._every_s
        )
        return feature_collection(columns, geometry)
