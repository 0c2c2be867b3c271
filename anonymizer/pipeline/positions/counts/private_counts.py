"""Counts with differential privacy: what a device adds to the counts of a period is bounded.

A device is in one cell of an interval, and in at most one trip between two areas. It is counted in
the first intervals of a period in which it is seen, up to a bound. The noise hides all of that.
Who was counted how often is known in memory alone. After a restart, a device may be counted anew,
so the budget on disk is charged as if every device had been in every interval up to the bound.
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from anonymizer.algorithms.positions.safe_counts import NO_CELL
from anonymizer.domain.arrays import IntArray
from anonymizer.errors import StoreError
from anonymizer.pipeline.gaussian_noise import GaussianNoise

if TYPE_CHECKING:
    from anonymizer.settings import CountSettings

FORM_VERSION = 1
BUDGET, STORE, OVERLOAD = "budget", "store", "overload"
"""Why an interval is suppressed: the budget of the period is spent, it cannot be written, or more
devices were counted in the period than can be remembered."""


class Budget(Protocol):
    """The budget of a period, as it is kept over restarts."""

    def charge(self, starts_s: float, ends_s: float, *, most: int) -> int | None:
        """Charge an interval; return how many are charged, None if it is refused."""

    def close(self) -> None:
        """Leave the budget to others."""


class Noise(Protocol):
    """Noise that is made for a budget: see `GaussianNoise`."""

    @property
    def scale(self) -> float:
        """Standard deviation."""

    def epsilon_of(self, n_releases: int) -> float:
        """Return the epsilon that so many intervals of a device have spent."""

    def added_to(self, numbers: Sequence[int]) -> list[int]:
        """Return whole numbers with noise."""


class Spent(msgspec.Struct, frozen=True):
    """What the counts promise, and what has been spent of it."""

    period_s: float
    """The promise is about all counts of a period together."""
    period_ends: float
    """Unix seconds."""
    epsilon: float
    """Of a device, for the whole period."""
    delta: float
    epsilon_spent: float
    """Of a device, at most, by this message and all before it in the period."""
    device_intervals: int
    """A device is counted in the first so many intervals of the period in which it is seen."""
    noise_sd: float
    """Standard deviation of the noise of each number."""


class PrivateCountsMessage(msgspec.Struct, frozen=True):
    """Counts of one interval with differential privacy."""

    v: int
    """Version of the form of the message."""
    time: float
    """End of the interval, unix seconds."""
    interval_s: float
    network: str
    """Version of the network."""
    n_cells: int
    """Number of cells of the network; they are retained on the topic behind this one, `/cells`."""
    privacy: Spent
    devices: Sequence[int] | msgspec.UnsetType = msgspec.UNSET
    """Devices in each cell, with noise; may be negative."""
    trips: Sequence[Sequence[int]] | msgspec.UnsetType = msgspec.UNSET
    """Devices by area at the end of the interval before, and by area now, with noise. Areas have
    equally many cells, in their order."""
    suppressed: str | msgspec.UnsetType = msgspec.UNSET
    """Why there are no counts: `budget`, `store` or `overload`."""


class PrivateCounts:
    """Makes the counts of each interval.

    Parameters
    ----------
    settings
        Budget, period, bounds and cells.
    budget
        Kept over restarts.
    noise
        As `noise_of` makes it of the settings.
    version
        Version of the network.
    most_devices
        Devices that are remembered in a period. If there are more, nothing more is published in it:
        to count some in place of others would make the counts of one device depend on another.
    """

    def __init__(
        self,
        settings: "CountSettings",
        budget: Budget,
        noise: Noise,
        *,
        version: str,
        most_devices: int,
    ) -> None:
        self._settings = settings
        self._budget = budget
        self._version = version
        self._most_devices = most_devices
        self._noise = noise
        self._period = -1
        self._n_released = 0
        self._n_charged = 0
        self._n_counted: defaultdict[int, int] = defaultdict(int)

    def message(
        self,
        cell: IntArray,
        before: IntArray,
        key: NDArray[np.uint64],
        *,
        end_s: float,
        ahead_s: float,
    ) -> PrivateCountsMessage:
        """Return the message of an interval.

        Parameters
        ----------
        cell, before
            Cell of each device that was seen, and its cell at the end of the interval before,
            negative for none, shape (devices,).
        key
            Number of each device, the same in every interval of a period.
        end_s
            End of the interval, unix seconds.
        ahead_s
            Added to the published times.
        """
        settings = self._settings
        starts_s = self._turn(end_s)
        why = self._why_refused(starts_s)
        devices: Sequence[int] | msgspec.UnsetType = msgspec.UNSET
        trips: Sequence[Sequence[int]] | msgspec.UnsetType = msgspec.UNSET
        if why is None:
            counted = self._bounded(key)
            if self._period_of(end_s - settings.every_s) != self._period:
                # Where it was in the period before is that period's business.
                before = np.full_like(before, NO_CELL)
            devices, trips = self._noisy(cell[counted], before[counted])
        return PrivateCountsMessage(
            v=FORM_VERSION,
            time=round(end_s + ahead_s, 3),
            interval_s=settings.every_s,
            network=self._version,
            n_cells=settings.cells,
            privacy=Spent(
                period_s=settings.period_s,
                period_ends=round(starts_s + settings.period_s + ahead_s, 3),
                epsilon=settings.epsilon,
                delta=settings.delta,
                epsilon_spent=_up(self._noise.epsilon_of(self._n_charged)),
                device_intervals=settings.intervals_of_device,
                noise_sd=_up(self._noise.scale),
            ),
            devices=devices,
            trips=trips,
            suppressed=why or msgspec.UNSET,
        )

    def close(self) -> None:
        """Leave the budget to others."""
        self._budget.close()

    def _period_of(self, end_s: float) -> int:
        """Return the number of the period in which the interval that ends here lies."""
        return math.floor((end_s - self._settings.every_s / 2) / self._settings.period_s)

    def _turn(self, end_s: float) -> float:
        """Forget who was counted, if a period has begun; return when it began."""
        period = self._period_of(end_s)
        if period != self._period:
            self._period = period
            self._n_released = self._n_charged = 0
            self._n_counted.clear()
        return period * self._settings.period_s

    def _why_refused(self, starts_s: float) -> str | None:
        """Charge the budget; return why the interval is to be suppressed, None if it is not.

        Once all that devices may be counted is charged, further intervals cost nothing.
        """
        settings = self._settings
        if len(self._n_counted) > self._most_devices:
            return OVERLOAD
        if self._n_released < settings.intervals_of_device:
            most = settings.intervals_of_budget
            try:
                charged = self._budget.charge(starts_s, starts_s + settings.period_s, most=most)
            except StoreError:
                self._n_charged = self._n_charged or most  # nobody knows
                return STORE
            self._n_charged = most if charged is None else charged
            if charged is None:
                return BUDGET
        self._n_released += 1
        return None

    def _bounded(self, key: NDArray[np.uint64]) -> IntArray:
        """Return which devices are counted, and note that they are."""
        most, n_counted = self._settings.intervals_of_device, self._n_counted
        found = []
        for i, device in enumerate(key.tolist()):
            if n_counted[device] < most:
                n_counted[device] += 1
                found.append(i)
        return np.array(found, np.int64)

    def _noisy(
        self, cell: IntArray, before: IntArray
    ) -> tuple[list[int], list[list[int]] | msgspec.UnsetType]:
        settings = self._settings
        devices = np.bincount(cell, minlength=settings.cells)
        n = settings.trip_areas
        if not n:
            return self._noise.added_to(devices.tolist()), msgspec.UNSET
        came = before >= 0
        pair = before[came] * n // settings.cells * n + cell[came] * n // settings.cells
        noisy = self._noise.added_to(
            [*devices.tolist(), *np.bincount(pair, minlength=n * n).tolist()]
        )
        trips = noisy[settings.cells :]
        return noisy[: settings.cells], [trips[i : i + n] for i in range(0, n * n, n)]


def noise_of(settings: "CountSettings") -> GaussianNoise:
    """Return the noise that keeps the budget of the settings.

    Raises
    ------
    MissingExtraError
        If OpenDP is not installed.
    """
    return GaussianNoise(
        epsilon=settings.epsilon,
        delta=settings.delta,
        n_releases=settings.intervals_of_budget,
        n_changed=2 if settings.trip_areas else 1,  # a cell, and a trip
    )


def plan_of(settings: "CountSettings") -> str:
    """Return the settings that a budget is made for; under others, its rest is refused."""
    keys = ("epsilon", "delta", "period_s", "every_s", "trip_areas")
    stated = {key: getattr(settings, key) for key in keys}
    stated["device_intervals"] = settings.intervals_of_device
    stated["budget"] = settings.intervals_of_budget
    return msgspec.json.encode(stated).decode()


def _up(value: float) -> float:
    """Return a number rounded up to four digits after the point."""
    return math.ceil(value * 10_000) / 10_000
