"""Trips from place to place: how many devices went where, in classes of at least k of them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from anonymizer.algorithms.positions.device_keys import Keys
from anonymizer.algorithms.positions.trip_classes import WindowTrips, n_cells_of
from anonymizer.domain.discreet import discreet
from anonymizer.domain.network import RoadNetwork
from anonymizer.domain.network_version import network_version
from anonymizer.outputs.cells import CELLS, cells_of
from anonymizer.outputs.message_kind import Channel
from anonymizer.outputs.output import (
    PUBLISHED,
    UNVERIFIED,
    Figure,
    Made,
    Output,
    Publisher,
    SeenTick,
    StatedWindow,
)
from anonymizer.outputs.pieces import cut
from anonymizer.outputs.promised import Promised
from anonymizer.outputs.trips.trip_windows import EndedTrips, TripMessages, TripWindows
from anonymizer.outputs.windows import promised_k
from anonymizer.pipeline.ports import Outgoing

if TYPE_CHECKING:
    from anonymizer.outputs.counts.private_counts import Budget
    from anonymizer.settings import Settings

_ROAD_BYTES, _TRIP_BYTES = 4, 20
_OTHER_CELLS = "other_cells"
"""Why a window is suppressed: sources state it in the cells of another k."""


@discreet
class StatedTrips(NamedTuple):
    """Some of the trips of a window.

    `k`: the largest promised meanwhile; `n_cells`: into how many cells their network is divided,
    which follows from k.
    """

    k: int
    n_cells: int
    trips: WindowTrips


class TripsWatch(TripWindows):
    """Follows the trips of a source."""

    def see(self, seen: SeenTick) -> Sequence[StatedWindow]:
        """Follow the trips; state those of windows that are complete."""
        located, zones = seen.located, seen.zones
        self.withdraw(located.withdrawn_key, everybody=located.any_shut_out)
        ended = self.tick(
            located.positions,
            located.trip_node,
            now=located.event_s,
            refused=zones.without_trips if zones else (),
        )
        return [
            StatedWindow(each.window, StatedTrips(each.k, self.n_cells, each.trips))
            for each in ended
        ]


class TripsPublisher(Publisher):
    """Makes classes of the trips of all sources."""

    def __init__(self, settings: "Settings", network: RoadNetwork, *, secret: bytes) -> None:
        super().__init__("trips", every_s=settings.trips_out.every_s)
        self._k = promised_k(settings)
        version = network_version(network)
        self._messages = TripMessages(settings, network, version=version, secret=secret)
        self._n_cells = n_cells_of(network, settings.counts.k)

    def make(self, window: int, contents: Sequence[StatedTrips], *, ahead_s: float) -> Made:
        """Return the message about a window."""
        if any(each.n_cells != self._n_cells for each in contents):
            return Made((), _OTHER_CELLS)
        k = max(self._k, *(each.k for each in contents))
        *columns, roads = zip(*(each.trips for each in contents), strict=True)
        joined = [np.concatenate(each) for each in columns]
        trips = WindowTrips._make([*joined, [road for each in roads for road in each]])
        return Made([self._messages.of(EndedTrips(window, k, trips), wall_ahead_s=ahead_s)])

    @property
    def n_of(self) -> Mapping[str, int]:
        """Classes of trips, by why they were suppressed."""
        return self._messages.n_classes

    def adopt(self, settings: "Settings") -> None:
        """Promise the k of these settings from now on."""
        self._k = promised_k(settings)
        self._messages.adopt(settings)

    def state(self) -> list[Any]:
        """Return what was published so far."""
        return [super().state(), dict(self._messages.n_classes)]

    def restore(self, state: list[Any]) -> None:
        """Go on from a state."""
        n_windows, n_classes = state
        super().restore(n_windows)
        self._messages.n_classes.update(n_classes)


class TripsOutput(Output):
    """Trips from place to place."""

    name = "trips"
    figure = Figure(
        "trip_classes",
        "Classes of trips, by why they were suppressed; empty: they were published.",
        (PUBLISHED, UNVERIFIED),
    )
    most_waiting = 3

    @staticmethod
    def every_s(settings: "Settings") -> float:
        """Return the length of a window."""
        return settings.trips_out.every_s

    @staticmethod
    def channels(settings: "Settings") -> Iterator[Channel]:
        """Yield the topic of trips, and that of their cells."""
        from anonymizer.outputs.trips.trips_contract import TRIPS  # noqa: PLC0415  few ask for it

        topic = settings.topics.trips
        yield Channel(topic, TRIPS, incoming=False)
        yield Channel(f"{topic}/cells", CELLS, incoming=False, retained=True)

    @staticmethod
    def promises(settings: "Settings") -> Iterator[Promised]:
        """Yield what trips promise."""
        yield Promised(
            "trips from place to place",
            f"`{settings.topics.trips}`",
            f"at least {promised_k(settings)} devices in each class and on each road",
            "that the place to which a device goes stays unknown where all of its class go there",
            "positions",
        )

    @staticmethod
    def kept(settings: "Settings") -> Mapping[str, str]:
        """Return how long trips are kept."""
        every_s = TripsOutput.every_s(settings)
        return {"trips": f"in memory, until their window of {every_s:g} s is published"}

    @staticmethod
    def meaning(settings: "Settings") -> Mapping[str, Any]:
        """Return what a window is."""
        return {"trips_out.every_s": settings.trips_out.every_s}

    def watch(self, *, keys: Keys, kept_s: float, n_sources: int = 1) -> TripsWatch:  # noqa: ARG002  see `Output`
        """Return what follows the trips of a source."""
        return TripsWatch(self.settings, self.network, keys=keys)

    def publisher(self, *, secret: bytes, budget: "Budget | None" = None) -> TripsPublisher:  # noqa: ARG002  see `Output`
        """Return what makes the messages."""
        return TripsPublisher(self.settings, self.network, secret=secret)

    def retained(self, part_bytes: Callable[[str], int]) -> list[Outgoing]:
        """Return where the cells are."""
        n_cells = n_cells_of(self.network, self.settings.counts.k)
        return cells_of(self.settings.topics.trips, n_cells, self.network, part_bytes)

    def packed(self, content: StatedTrips) -> Iterator[list[Any]]:
        """Yield the trips of a window in pieces."""
        k, n_cells, trips = content
        for first, end in cut([_TRIP_BYTES + _ROAD_BYTES * len(each) for each in trips.roads]):
            some = WindowTrips._make(column[first:end] for column in trips)
            device, origin, destination, start, roads = some
            cells = [origin.astype(np.int16), destination.astype(np.int16), start.astype(np.int8)]
            yield [k, n_cells, device, *cells, [each.astype(np.int32) for each in roads]]

    def unpacked(self, piece: list[Any]) -> StatedTrips:
        """Return some of the trips of a window."""
        k, n_cells, *columns, roads = piece
        if not isinstance(k, int) or not isinstance(n_cells, int):
            raise ValueError("these are no trips")  # noqa: TRY004  bytes are wrong, not code
        columns = [each.astype(np.int64) for each in columns]
        roads = [each.astype(np.int64) for each in roads]
        return StatedTrips(k, n_cells, WindowTrips._make([*columns, roads]))


OUTPUT = TripsOutput
