"""Counts with differential privacy: what a device adds to the counts of a period is bounded.

A device is in one cell of an interval, and in at most one trip between two areas, or has one
duration of its trips. It is counted in the first intervals of a period in which it is seen, up to a
bound. The noise hides all of that. Each source bounds what its own devices add. One process knows
in memory alone who was counted how often. After a restart, a device may be counted anew, so the
budget on disk is charged as if every device had been in every interval up to the bound. A cluster
keeps both in its state.

With `w-event` the promise is about any w intervals in a row [1]_. The event is what a device adds
to an interval: its cell, and its trip or duration. The noise of each interval is drawn for itself,
and is large enough for w of them. So nobody is remembered, and no budget is ever spent: it is
enough that no interval is published twice.

References
----------
.. [1] G. Kellaris, S. Papadopoulos, X. Xiao, D. Papadias, "Differentially private event sequences
   over infinite streams", VLDB 2014: w-event privacy, and the uniform allocation of its budget.
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from anonymizer.algorithms.positions.safe_counts import NO_CELL
from anonymizer.domain.arrays import IntArray
from anonymizer.domain.told_times import ToldTimes
from anonymizer.errors import StoreError
from anonymizer.outputs.counts.gaussian_noise import GaussianNoise, LaplaceNoise
from anonymizer.outputs.counts.trip_durations import N_DURATIONS, UP_TO_S, NoisyDurations
from anonymizer.outputs.output import OVERLOAD

if TYPE_CHECKING:
    from anonymizer.settings import CountSettings

FORM_VERSION = 1
BUDGET, STORE = "budget", "store"
"""Why an interval is suppressed: the budget of the period is spent, or it cannot be written."""


class Budget(Protocol):
    """The budget of a period, as it is kept over restarts."""

    def charge(self, starts_s: float, ends_s: float, *, most: int) -> int | None:
        """Charge an interval; return how many are charged, None if it is refused."""

    def tell(self, starts_s: float, ends_s: float) -> bool:
        """Return whether something may be published of the times of an interval, which it then is.

        They are those that readers see: the clock by which a period is charged never goes back.
        """

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


class Spent(msgspec.Struct, frozen=True, kw_only=True):
    """What the counts promise, and what has been spent of it."""

    period_s: float
    """The promise is about all counts of a period together."""
    period_ends: float | msgspec.UnsetType = msgspec.UNSET
    """Unix seconds. Unset: the promise is about any `period_s` in a row (w-event privacy)."""
    epsilon: float
    """Of a device, for the whole period."""
    delta: float
    epsilon_spent: float | msgspec.UnsetType = msgspec.UNSET
    """Of a device, at most, by this message and all before it in the period that ends."""
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
    durations: NoisyDurations | msgspec.UnsetType = msgspec.UNSET
    suppressed: str | msgspec.UnsetType = msgspec.UNSET
    """Why there are no counts: `budget`, `store` or `overload`."""


class HeldBudget:
    """A budget that is kept in the state of who uses it.

    The period in which it begins is refused: what was published in it before is not known.

    Under another plan (see `plan_of`) the rest of a period is refused, and for `held_s` after the
    beginning of the next one.
    """

    def __init__(self, plan: str, *, held_s: float = 0.0) -> None:
        self._plan = plan
        self._held_s = held_s
        self._held_until_s = -math.inf
        self._starts_s: float | None = None
        self._n: int | None = None
        """Intervals that are charged; None: the period is refused."""
        self._told = ToldTimes()

    def charge(self, starts_s: float, ends_s: float, *, most: int) -> int | None:  # noqa: ARG002  see `Budget`
        """Charge an interval; return how many are charged, None if it is refused."""
        if self._starts_s is None:
            self._starts_s = starts_s
        elif starts_s > self._starts_s and starts_s >= self._held_until_s:
            self._starts_s, self._n = starts_s, 0
        if starts_s < self._starts_s or self._n is None or self._n >= most:
            return None
        self._n += 1
        return self._n

    def tell(self, starts_s: float, ends_s: float) -> bool:
        """Return whether something may be published of these times, which it then is."""
        return self._told.take(starts_s, ends_s)

    def close(self) -> None:
        """Do nothing: nobody else may use this budget."""

    def state(self) -> list[Any]:
        """Return what has been spent; its times are of one clock, which never goes back."""
        return [self._plan, self._starts_s, self._n, self._held_until_s]

    def restore(self, state: list[Any]) -> None:
        """Go on from a state."""
        plan, self._starts_s, self._n, self._held_until_s = state
        if plan != self._plan:
            self._n = None
            if self._starts_s is not None:
                self._held_until_s = max(self._held_until_s, self._starts_s + self._held_s)


class BoundedCounts:
    """Counts devices so that each adds to a bounded number of intervals of a period.

    `most_devices`: devices that are remembered in a period.
    """

    def __init__(self, settings: "CountSettings", *, most_devices: int) -> None:
        self._settings = settings
        self._most_devices = most_devices
        self._period = -1
        self._n_counted: defaultdict[int, int] = defaultdict(int)

    def of(
        self,
        cell: IntArray,
        before: IntArray,
        key: NDArray[np.uint64],
        *,
        end_s: float,
        duration: IntArray | None = None,
    ) -> IntArray | None:
        """Return the devices in each cell, and then between each two areas, and by `duration`.

        `duration`: see `durations_of`; None: nobody had a trip. Shape (cells + areas * areas +
        durations,), those that the settings ask for. None if more devices were counted in the
        period than are remembered: to count some in place of others would make the counts of one
        device depend on another.
        """
        settings = self._settings
        if not settings.slides:
            period = period_of(settings, end_s)
            if period != self._period:
                self._period = period
                self._n_counted.clear()
            if len(self._n_counted) > self._most_devices:
                return None
            counted = self._bounded(key)
            cell, before = cell[counted], before[counted]
            duration = None if duration is None else duration[counted]
            if period_of(settings, end_s - settings.every_s) != period:
                # Where it was in the period before is that period's business.
                before = np.full_like(before, NO_CELL)
        devices = np.bincount(cell, minlength=settings.cells)
        n, came = settings.trip_areas, before >= 0
        pair = before[came] * n // settings.cells * n + cell[came] * n // settings.cells
        numbers = np.append(devices, np.bincount(pair, minlength=n * n)[: n * n])
        if not settings.times_trips:
            return numbers
        told = np.zeros(0, np.int64) if duration is None else duration[duration >= 0]
        return np.append(numbers, np.bincount(told, minlength=N_DURATIONS))

    def _bounded(self, key: NDArray[np.uint64]) -> IntArray:
        """Return which devices are counted, and note that they are."""
        most, n_counted = self._settings.intervals_of_device, self._n_counted
        found = []
        for i, device in enumerate(key.tolist()):
            if n_counted[device] < most:
                n_counted[device] += 1
                found.append(i)
        return np.array(found, np.int64)

    def state(self) -> dict[str, Any]:
        """Return who was counted how often in the period."""
        return {
            "period": self._period,
            "key": np.array(list(self._n_counted), np.uint64),
            "n": np.array(list(self._n_counted.values()), np.int32),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self._period = state["period"]
        counted = zip(state["key"].tolist(), state["n"].tolist(), strict=True)
        self._n_counted = defaultdict(int, counted)


class PrivateCounts:
    """Makes the counts of each interval.

    `budget` is kept over restarts; `noise` is as `noise_of` makes it.
    """

    def __init__(
        self,
        settings: "CountSettings",
        budget: Budget,
        noise: Noise,
        *,
        version: str,
    ) -> None:
        self._settings = settings
        self._budget = budget
        self._version = version
        self._noise = noise
        self._period = -1
        self._n_released = 0
        self._n_charged = 0

    def of_numbers(
        self, numbers: IntArray | None, *, end_s: float, ahead_s: float
    ) -> PrivateCountsMessage:
        """Return the message of an interval, of what `BoundedCounts.of` has returned.

        The numbers of several may be added up, if no device is in two of them.
        """
        settings = self._settings
        starts_s, shown_s = self._turn(end_s), end_s + ahead_s
        why = OVERLOAD if numbers is None else self._why_refused(starts_s, shown_s)
        devices: Sequence[int] | msgspec.UnsetType = msgspec.UNSET
        trips: Sequence[Sequence[int]] | msgspec.UnsetType = msgspec.UNSET
        durations: NoisyDurations | msgspec.UnsetType = msgspec.UNSET
        if why is None and numbers is not None:
            noisy = self._noise.added_to(numbers.tolist())
            devices, rest, n = noisy[: settings.cells], noisy[settings.cells :], settings.trip_areas
            if n:
                trips = [rest[i : i + n] for i in range(0, n * n, n)]
            if settings.times_trips:
                durations = NoisyDurations(UP_TO_S, rest[n * n :])
        return PrivateCountsMessage(
            v=FORM_VERSION,
            time=round(end_s + ahead_s, 3),
            interval_s=settings.every_s,
            network=self._version,
            n_cells=settings.cells,
            privacy=self._spent(starts_s, ahead_s),
            devices=devices,
            trips=trips,
            durations=durations,
            suppressed=why or msgspec.UNSET,
        )

    def _spent(self, starts_s: float, ahead_s: float) -> Spent:
        settings = self._settings
        spent = Spent(
            period_s=settings.period_s,
            epsilon=settings.epsilon,
            delta=settings.delta,
            device_intervals=settings.intervals_of_device,
            noise_sd=_up(self._noise.scale),
        )
        if settings.slides:
            return spent
        return msgspec.structs.replace(
            spent,
            period_ends=round(starts_s + settings.period_s + ahead_s, 3),
            epsilon_spent=_up(self._noise.epsilon_of(self._n_charged)),
        )

    def close(self) -> None:
        """Leave the budget to others."""
        self._budget.close()

    def state(self) -> list[int]:
        """Return what was released in the period; the budget has a state of its own."""
        return [self._period, self._n_released, self._n_charged]

    def restore(self, state: list[int]) -> None:
        """Go on from a state."""
        self._period, self._n_released, self._n_charged = state

    def _turn(self, end_s: float) -> float:
        """Forget what was released, if a period has begun; return when it began."""
        if self._settings.slides:
            return end_s - self._settings.every_s
        period = period_of(self._settings, end_s)
        if period != self._period:
            self._period = period
            self._n_released = self._n_charged = 0
        return period * self._settings.period_s

    def _why_refused(self, starts_s: float, shown_s: float) -> str | None:
        """Charge the budget; return why the interval is to be suppressed, None if it is not.

        `starts_s`: of the period; `shown_s`: end of the interval, as it is published. Once all that
        devices may be counted is charged, further intervals cost nothing. With `w-event` each
        interval is a period of its own, which can be charged once.
        """
        settings = self._settings
        most, lasts_s = settings.intervals_of_budget, settings.period_s
        if settings.slides:
            most, lasts_s = 1, settings.every_s
        try:
            if not self._budget.tell(shown_s - settings.every_s, shown_s):
                self._n_charged = self._n_charged or most  # nobody knows
                return BUDGET
            if settings.slides or self._n_released < settings.intervals_of_device:
                charged = self._budget.charge(starts_s, starts_s + lasts_s, most=most)
                self._n_charged = most if charged is None else charged
                if charged is None:
                    return BUDGET
        except StoreError:
            self._n_charged = self._n_charged or most  # likewise
            return STORE
        self._n_released += 1
        return None


def period_of(settings: "CountSettings", end_s: float) -> int:
    """Return the number of the period in which the interval that ends here lies."""
    return math.floor((end_s - settings.every_s / 2) / settings.period_s)


def noise_of(settings: "CountSettings") -> GaussianNoise | LaplaceNoise:
    """Return the noise that keeps the budget of the settings.

    With `w-event` it is the smaller one of two: few intervals in a row have Laplace noise.

    Raises `MissingExtraError` if OpenDP is not installed.
    """
    n_releases = settings.intervals_of_budget
    n_changed = 1 + (settings.trip_areas > 0) + settings.trip_durations  # the first is its cell
    gaussian = GaussianNoise(
        epsilon=settings.epsilon, delta=settings.delta, n_releases=n_releases, n_changed=n_changed
    )
    if not settings.slides:
        return gaussian
    laplace = LaplaceNoise(epsilon=settings.epsilon, n_releases=n_releases, n_changed=n_changed)
    return laplace if laplace.scale < gaussian.scale else gaussian


def held_s_of(settings: "CountSettings") -> float:
    """Return for how long other settings than those of a budget are refused after it."""
    return settings.period_s if settings.slides else 0.0


def spent_period(settings: "CountSettings", now: float) -> tuple[float, float]:
    """Return the time for which a budget is spent if nobody knows how much of it is."""
    if settings.slides:
        return now, now + settings.period_s
    period = math.floor(now / settings.period_s)
    return period * settings.period_s, (period + 1) * settings.period_s


def plan_of(settings: "CountSettings") -> str:
    """Return the settings that a budget is made for; under others, its rest is refused."""
    keys = ("epsilon", "delta", "period_s", "every_s", "trip_areas")
    stated = {key: getattr(settings, key) for key in keys}
    stated["device_intervals"] = settings.intervals_of_device
    stated["budget"] = settings.intervals_of_budget
    if settings.trip_durations:
        stated["trip_durations"] = True
    if settings.slides:
        stated["privacy"] = settings.privacy
    return msgspec.json.encode(stated).decode()


def _up(value: float) -> float:
    """Return a number rounded up to four digits after the point."""
    return math.ceil(value * 10_000) / 10_000
