"""How long trips take: the trips of an interval, one duration of each device.

A trip is that of `live_trips`. Each interval is a world of its own: a trip is told if it began in
the interval and is known to have ended in it. So what a device does in an interval bears on the
message about that interval alone, as its cell does; trips across an end of an interval are left
out. The trips of a device in an interval count as one, of their median duration: whatever a device
says, and however often, it adds one to one number.

Where the ends of trips are protected they lack both, by `trips.ends_s` or more: how much more
depends on the trip, so nothing is added.

The durations are few and public: with noise in every number, more of them say less.
"""

import math
from collections import defaultdict
from collections.abc import Collection, Sequence
from statistics import median
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from anonymizer.algorithms.positions.device_keys import KeyArray, Keys
from anonymizer.algorithms.positions.live_trips import EndedTrip, LiveTrips
from anonymizer.domain.arrays import Int32Array, IntArray
from anonymizer.pipeline.positions.tick.device_rows import DeviceRows
from anonymizer.pipeline.positions.tick.trip_guard import Positions

if TYPE_CHECKING:
    from anonymizer.settings import Settings

UP_TO_S = (240.0, 480.0, 900.0, 1800.0, 3600.0)
"""Longest trip of each duration but the last."""
N_DURATIONS = len(UP_TO_S) + 1
NO_TRIP = -1


class NoisyDurations(msgspec.Struct, frozen=True):
    """How long the trips of an interval took, those that began and ended in it."""

    up_to_s: Sequence[float]
    """Longest trip of each duration, in seconds; those of the last are longer."""
    devices: Sequence[int]
    """Devices by the median duration of their trips, with noise; may be negative."""


class TripDurations:
    """Follows the trips of devices, interval by interval; `keys`: see `CountedDevices`."""

    def __init__(self, settings: "Settings", *, keys: Keys) -> None:
        self._every_s, self._rule = settings.counts.every_s, settings.trips.published_rule
        self._rows = DeviceRows(keys)
        self._interval: int | None = None
        self._now = -math.inf
        self._begin(-math.inf)

    def _begin(self, begins_s: float) -> None:
        self._rows.drop(self._rows.used())
        self._trips = LiveTrips(self._rule, begins_s=begins_s, keeps_routes=False)
        self._seconds: defaultdict[int, list[float]] = defaultdict(list)

    def tick(
        self, positions: Positions, node: Int32Array, *, now: float
    ) -> dict[int, list[float]] | None:
        """Take in the positions of a tick; return the seconds of trips by key of the device.

        Those of an interval that has ended before the tick; None: none has. `node`: of each
        position, negative where no trip is to be told; `now`: unix seconds.
        """
        interval, ended = math.floor(now / self._every_s), None
        self._now = now
        if interval != self._interval:
            if self._interval is not None:
                end_s = (self._interval + 1) * self._every_s
                self._keep(self._trips.silent(end_s - self._rule.gap_s)[0])
                ended = dict(self._seconds)
            self._interval = interval
            self._begin(interval * self._every_s)
        row = self._rows.of(positions.slot)
        self._keep(self._trips.tick(row, positions.ts, positions.lat, positions.lon, node))
        return ended

    def _keep(self, ended: Sequence[EndedTrip]) -> None:
        for trip in ended:
            if trip.origin >= 0 and trip.destination >= 0:
                self._seconds[int(self._rows.key[trip.row])].append(trip.end_s - trip.start_s)

    def withdraw(self, keys: KeyArray, *, everybody: bool = False) -> None:
        """Forget these devices: their trips of the interval are not told, either.

        `everybody`: no trip is told that began before the next tick, whoever made it.
        """
        if everybody:
            self._begin(self._now)
            return
        row = self._rows.with_keys(keys)
        self._trips.forget(row)
        self._rows.drop(row)
        for key in keys.tolist():
            self._seconds.pop(key, None)

    def free(self, slots: Int32Array) -> None:
        """Take in that these slots may pass to other devices."""
        self._rows.free(slots)

    def state(self) -> list[Any]:
        """Return what changes from tick to tick. It holds where devices are."""
        seconds = [[key, each] for key, each in self._seconds.items()]
        return [self._rows.state(), self._interval, self._now, self._trips.state(), seconds]

    def restore(self, state: list[Any]) -> None:
        """Go on from a state."""
        rows, self._interval, self._now, trips, seconds = state
        self._rows.restore(rows)
        self._trips = LiveTrips.restored(self._rule, trips, keeps_routes=False)
        self._seconds = defaultdict(list, ((key, list(each)) for key, each in seconds))


def durations_of(
    seconds: dict[int, list[float]], keys: KeyArray, *, refused: Collection[int] = ()
) -> IntArray:
    """Return the duration of each device, an index, `NO_TRIP` without a trip, shape (devices,).

    `seconds`: of the trips of each device; `refused`: keys of devices of which no trip is told.
    """
    told = [each not in refused and each in seconds for each in keys.tolist()]
    found = np.full(len(keys), NO_TRIP)
    middle = [median(seconds[each]) for each in keys[told].tolist()]
    found[told] = np.searchsorted(UP_TO_S, middle)
    return found
