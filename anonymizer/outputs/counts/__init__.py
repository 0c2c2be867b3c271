"""Counts by place: how many devices are in each cell, safe or with differential privacy."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from anonymizer.algorithms.positions.device_keys import Keys
from anonymizer.algorithms.positions.safe_counts import CellTally, together
from anonymizer.domain.arrays import Int32Array, IntArray
from anonymizer.domain.network import RoadNetwork
from anonymizer.domain.network_version import network_version
from anonymizer.outputs.cells import CELLS, cells_of
from anonymizer.outputs.counts.counted_devices import CountedDevices
from anonymizer.outputs.counts.private_counts import (
    BUDGET,
    STORE,
    BoundedCounts,
    Budget,
    HeldBudget,
    PrivateCounts,
    held_s_of,
    noise_of,
    plan_of,
)
from anonymizer.outputs.counts.safe_messages import SafeMessages
from anonymizer.outputs.counts.trip_durations import TripDurations, durations_of
from anonymizer.outputs.message_kind import Channel
from anonymizer.outputs.output import (
    OVERLOAD,
    PUBLISHED,
    REPEATED,
    UNVERIFIED,
    Figure,
    Made,
    Output,
    Publisher,
    SeenTick,
    StatedWindow,
)
from anonymizer.outputs.promised import Promised
from anonymizer.pipeline.ports import Outgoing

if TYPE_CHECKING:
    from anonymizer.settings import Settings

INTERVALS = Figure(
    "counts_intervals",
    "Intervals of counts, hours of streets, by why they were suppressed; empty: published.",
    (PUBLISHED, BUDGET, STORE, OVERLOAD, UNVERIFIED, REPEATED),
)


class CountsWatch:
    """Counts the devices of a source.

    With differential privacy it bounds in how many intervals each of them counts.
    """

    def __init__(
        self, settings: "Settings", network: RoadNetwork, *, keys: Keys, kept_s: float
    ) -> None:
        counts = settings.counts
        slack_s = settings.tick.interval_s
        self._devices = CountedDevices(counts, network, keys=keys, kept_s=kept_s, slack_s=slack_s)
        self._bounded = None
        if counts.has_noise:
            self._bounded = BoundedCounts(counts, most_devices=settings.presence.max_devices)
        self._durations = TripDurations(settings, keys=keys) if counts.times_trips else None

    def see(self, seen: SeenTick) -> Sequence[StatedWindow]:
        """Count; state a `CellTally`, or the numbers of `BoundedCounts.of`."""
        located, positions = seen.located, seen.located.positions
        self._devices.withdraw(located.withdrawn_key)
        ended = self._devices.tick(
            positions.slot,
            positions.ts,
            located.node,
            now=located.event_s,
            since=located.id_since,
        )
        seconds: dict[int, list[float]] | None = {}
        if self._durations is not None:
            self._durations.withdraw(located.withdrawn_key, everybody=located.any_shut_out)
            seconds = self._durations.tick(positions, located.trip_node, now=located.event_s)
        if ended is None:
            return ()
        if not ended.is_whole or seconds is None:
            return (StatedWindow(ended.number, None),)
        if self._bounded is None:
            return (StatedWindow(ended.number, ended.tally()),)
        duration = None
        if self._durations is not None:
            refused = seen.zones.without_trips if seen.zones else ()
            duration = durations_of(seconds, ended.key, refused=refused)
        numbers = self._bounded.of(
            ended.cell, ended.before, ended.key, end_s=ended.end_s, duration=duration
        )
        # Empty: there are more devices than can be remembered.
        return (StatedWindow(ended.number, np.zeros(0, np.int64) if numbers is None else numbers),)

    def free(self, slots: Int32Array) -> None:
        """Take in that these slots may pass to other devices."""
        self._devices.free(slots)
        if self._durations is not None:
            self._durations.free(slots)

    def adopt(self, settings: "Settings") -> None:
        """Do nothing: what is counted does not depend on what is promised."""

    def state(self) -> list[Any]:
        """Return what changes from tick to tick. It holds where devices are."""
        bounded = None if self._bounded is None else self._bounded.state()
        durations = [] if self._durations is None else [self._durations.state()]
        return [self._devices.state(), bounded, *durations]

    def restore(self, state: list[Any]) -> None:
        """Go on from a state."""
        devices, bounded, *durations = state
        self._devices.restore(devices)
        if self._bounded is not None and bounded is not None:
            self._bounded.restore(bounded)
        if self._durations is not None and durations:
            self._durations.restore(durations[0])


class SafePublisher(Publisher):
    """Publishes safe counts."""

    def __init__(self, settings: "Settings", network: RoadNetwork, *, secret: bytes) -> None:
        super().__init__("counts", every_s=settings.counts.every_s)
        self._messages = SafeMessages(
            settings.counts,
            topic=settings.topics.counts,
            version=network_version(network),
            k_extra=settings.region.k_extra,
            secret=secret,
        )

    def make(self, window: int, contents: Sequence[CellTally], *, ahead_s: float) -> Made:
        """Return the message about an interval."""
        end_s = (window + 1) * self._every_s
        return Made([self._messages.message(together(contents), end_s, wall_ahead_s=ahead_s)])

    def adopt(self, settings: "Settings") -> None:
        """Ask for so many devices beyond k in the figures from now on."""
        self._messages.k_extra = settings.region.k_extra


class PrivatePublisher(Publisher):
    """Publishes counts with differential privacy."""

    def __init__(self, settings: "Settings", network: RoadNetwork, budget: Budget | None) -> None:
        counts = settings.counts
        super().__init__("counts", every_s=counts.every_s)
        self._topic = settings.topics.counts
        self._held = None
        if budget is None:
            budget = self._held = HeldBudget(plan_of(counts), held_s=held_s_of(counts))
        version = network_version(network)
        self._counts = PrivateCounts(counts, budget, noise_of(counts), version=version)
        self._encode = msgspec.json.Encoder().encode

    def make(self, window: int, contents: Sequence[IntArray], *, ahead_s: float) -> Made:
        """Return the message of what all sources count, empty where one has too many devices."""
        total = np.sum(contents, axis=0) if all(map(len, contents)) else None
        end_s = (window + 1) * self._every_s
        body = self._counts.of_numbers(total, end_s=end_s, ahead_s=ahead_s)
        return Made([Outgoing(self._topic, self._encode(body))], body.suppressed or PUBLISHED)

    def _made_once(self, window: int, contents: Sequence[IntArray], *, ahead_s: float) -> Made:
        """Return the message; the budget knows what was published, over restarts as well."""
        return self.make(window, contents, ahead_s=ahead_s)

    def close(self) -> None:
        """Leave the budget to others."""
        self._counts.close()

    def state(self) -> list[Any]:
        """Return what was released in the period, and the budget if it is kept here."""
        held = None if self._held is None else self._held.state()
        return [super().state(), self._counts.state(), held]

    def restore(self, state: list[Any]) -> None:
        """Go on from a state."""
        n_windows, counts, held = state
        super().restore(n_windows)
        self._counts.restore(counts)
        if self._held is not None:
            self._held.restore(held)


class CountsOutput(Output):
    """Counts by place."""

    name = "counts"
    figure = INTERVALS
    most_waiting = 60

    @staticmethod
    def every_s(settings: "Settings") -> float:
        """Return the length of an interval."""
        return settings.counts.every_s

    @staticmethod
    def channels(settings: "Settings") -> Iterator[Channel]:
        """Yield the topic of counts, and that of their cells."""
        from anonymizer.outputs.counts.counts_contract import (  # noqa: PLC0415  few ask for it
            COUNTS,
            PRIVATE_COUNTS,
        )

        topic, is_private = settings.topics.counts, settings.counts.has_noise
        yield Channel(topic, PRIVATE_COUNTS if is_private else COUNTS, incoming=False)
        yield Channel(f"{topic}/cells", CELLS, incoming=False, retained=True)

    @staticmethod
    def promises(settings: "Settings") -> Iterator[Promised]:
        """Yield what counts promise."""
        counts = settings.counts
        where = f"`{settings.topics.counts}`"
        if not counts.has_noise:
            least = counts.k + settings.region.k_extra
            promise = f"at least {least} devices in each figure and in each difference"
            but = "differential privacy"
        else:
            which = "any " if counts.slides else ""
            promise = (
                f"differential privacy of a device for {which}{counts.period_s:g} s: "
                f"ε = {counts.epsilon:g}, δ = {counts.delta:g}"
            )
            but = "more than that: budgets of several periods add up"
        yield Promised("counts by place", where, promise, but, "counts")

    @staticmethod
    def kept(settings: "Settings") -> Mapping[str, str]:
        """Return that a budget is kept."""
        there = {"spent budget of counts": "on disk, without devices"}
        return there if settings.counts.has_noise else {}

    @staticmethod
    def meaning(settings: "Settings") -> Mapping[str, Any]:
        """Return what an interval and a cell is."""
        names = ("privacy", "every_s", "cells", "trip_areas")
        found = {f"counts.{name}": getattr(settings.counts, name) for name in names}
        # Only if it is asked for: else the state of a version without it would be refused.
        return found | ({"counts.trip_durations": True} if settings.counts.times_trips else {})

    def watch(self, *, keys: Keys, kept_s: float, n_sources: int = 1) -> CountsWatch:  # noqa: ARG002  see `Output`
        """Return what counts the devices of a source."""
        return CountsWatch(self.settings, self.network, keys=keys, kept_s=kept_s)

    def publisher(self, *, secret: bytes, budget: Budget | None = None) -> Publisher:
        """Return what makes the messages."""
        if self.settings.counts.has_noise:
            return PrivatePublisher(self.settings, self.network, budget)
        return SafePublisher(self.settings, self.network, secret=secret)

    def retained(self, part_bytes: Callable[[str], int]) -> list[Outgoing]:
        """Return where the cells are."""
        topics, counts = self.settings.topics, self.settings.counts
        return cells_of(topics.counts, counts.cells, self.network, part_bytes)

    def packed(self, content: CellTally | IntArray | None) -> Iterator[Any]:
        """Yield a tally in one piece."""
        yield list(content) if isinstance(content, CellTally) else content

    def unpacked(self, piece: Any) -> CellTally | IntArray | None:  # noqa: ANN401  as packed
        """Return the tally."""
        columns = piece if isinstance(piece, list) else [piece]
        if piece is not None and not all(isinstance(each, np.ndarray) for each in columns):
            raise ValueError("this is no tally")
        return CellTally(*piece) if isinstance(piece, list) else piece


OUTPUT = CountsOutput
