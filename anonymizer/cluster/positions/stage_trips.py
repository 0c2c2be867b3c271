"""Trips over several sources: each follows its devices, and one district publishes the classes.

When a window ends, a source states its trips. The district makes classes of all of them when every
source has stated the window, and leaves out one that a source has not watched. A source that stands
still holds up the trips for some windows; then they are left out.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from anonymizer.algorithms.positions.trip_classes import WindowTrips, n_cells_of
from anonymizer.cluster.packed_state import pack, unpack
from anonymizer.domain.network import RoadNetwork
from anonymizer.domain.network_version import network_version
from anonymizer.pipeline.ports import Outgoing
from anonymizer.pipeline.positions.counts.counting import cells_message
from anonymizer.pipeline.positions.out.trips import TripMessages
from anonymizer.settings import Settings

TRIPS = b"T"
"""First byte of an encoded `StatedTrips`."""
TRIPS_LANE = 0
"""The district that publishes the trips."""
_PIECE_BYTES = 512 * 1024
"""Of the trips in one `StatedTrips`, unless one is larger: Kafka takes 1 MiB by default."""
_ROAD_BYTES, _TRIP_BYTES = 4, 20
_MOST_WAITING = 3
"""Windows that wait for a source."""
_NEVER = -(1 << 62)


class StatedTrips(NamedTuple):
    """Some of the trips of a window that a source has watched.

    Attributes
    ----------
    source, window
        Number of the source and of the window.
    piece
        Number of these among the trips that the source states of the window, from 0.
    is_last
        Whether no other piece of the same follows.
    trips
        The trips.
    """

    source: int
    window: int
    piece: int
    is_last: bool
    trips: WindowTrips


def stated_trips(source: int, window: int, trips: WindowTrips) -> Iterator[StatedTrips]:
    """Yield the trips of a window, in pieces that Kafka takes; at least one."""
    n_bytes = [_TRIP_BYTES + _ROAD_BYTES * len(each) for each in trips.roads]
    of_trip = np.cumsum([0, *n_bytes])[:-1] // _PIECE_BYTES
    cuts = [0, *(np.flatnonzero(np.diff(of_trip)) + 1).tolist(), len(n_bytes)]
    for piece, (first, end) in enumerate(pairwise(cuts)):
        some = WindowTrips._make(column[first:end] for column in trips)
        yield StatedTrips(source, window, piece, end == len(n_bytes), some)


def encode_trips(stated: StatedTrips) -> bytes:
    """Return trips as bytes."""
    return TRIPS + pack([*stated[:-1], _packed(stated.trips)])


def decode_trips(value: bytes, *, n_sources: int) -> StatedTrips:
    """Return the trips that were encoded.

    Raises
    ------
    ValueError
        If they are not of one of so many sources.
    """
    source, window, piece, is_last, packed = unpack(value[1:])
    if not (
        value[:1] == TRIPS
        and source in range(n_sources)
        and all(isinstance(each, int) for each in (window, piece))
    ):
        raise ValueError("these are no trips")
    return StatedTrips(source, window, piece, bool(is_last), _unpacked(packed))


def _packed(trips: WindowTrips) -> list[Any]:
    device, origin, destination, start, roads = trips
    cells = [origin.astype(np.int16), destination.astype(np.int16), start.astype(np.int8)]
    return [device, *cells, [each.astype(np.int32) for each in roads]]


def _unpacked(packed: list[Any]) -> WindowTrips:
    *columns, roads = packed
    columns = [each.astype(np.int64) for each in columns]
    return WindowTrips._make([*columns, [each.astype(np.int64) for each in roads]])


def _together(some: list[WindowTrips]) -> WindowTrips:
    *columns, roads = zip(*some, strict=True)
    joined = [np.concatenate(each) for each in columns]
    return WindowTrips._make([*joined, [road for each in roads for road in each]])


class LaneTrips:
    """Joins the trips of all sources, and makes the messages.

    Parameters
    ----------
    settings
        The whole settings.
    network
        With coordinates.

    Attributes
    ----------
    n_sources
        How many there are.
    n_published, n_suppressed
        Windows so far that were published, and those left out, because a source had not watched
        them or said nothing about them for too long.
    """

    def __init__(self, settings: Settings, network: RoadNetwork) -> None:
        version = network_version(network)
        self._messages = TripMessages(settings, network, version=version)
        n_cells = n_cells_of(network, settings.counts.k)
        self._cells = cells_message(settings.topics.trips, n_cells, network, version=version)
        self.n_sources = n_sources = settings.cluster.n_parts
        self._coming: list[list[WindowTrips]] = [[] for _ in range(n_sources)]
        """The pieces from each source of a window that is not complete."""
        self._stated: list[dict[int, WindowTrips]] = [{} for _ in range(n_sources)]
        """What each source has stated, by window."""
        self._newest = [_NEVER] * n_sources
        """The last window that each has stated."""
        self._settled = _NEVER
        """The last window that is not waited for any more."""
        self.n_published = self.n_suppressed = 0

    def take(self, stated: StatedTrips) -> list[Outgoing]:
        """Take in a piece; return the messages of all windows that every source has stated.

        Those of a source come in order, and some again. The cells come before each, retained.
        """
        source, window, piece, is_last, trips = stated
        coming = self._coming[source]
        if window <= self._newest[source] or piece != len(coming):
            return []
        coming.append(trips)
        if not is_last:
            return []
        if window > self._settled:
            self._stated[source][window] = _together(coming)
        self._coming[source], self._newest[source] = [], window
        last = max(min(self._newest), max(self._newest) - _MOST_WAITING, self._settled)
        found: list[Outgoing] = []
        for each in sorted({each for of in self._stated for each in of if each <= last}):
            said = [of.pop(each, None) for of in self._stated]
            whole = [some for some in said if some is not None]
            if len(whole) < self.n_sources:
                self.n_suppressed += 1
                continue
            self.n_published += 1
            found += [self._cells, self._messages.of(each, _together(whole), wall_ahead_s=0.0)]
        self._settled = last
        return found

    def state(self) -> dict[str, Any]:
        """Return what changes with each piece."""
        return {
            "coming": [[_packed(each) for each in of] for of in self._coming],
            "stated": [[[each, _packed(of[each])] for each in of] for of in self._stated],
            "newest": self._newest,
            "counts": [self._settled, self.n_published, self.n_suppressed],
            "classes": dict(self._messages.n_classes),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self._coming = [[_unpacked(each) for each in of] for of in state["coming"]]
        self._stated = [{each: _unpacked(trips) for each, trips in of} for of in state["stated"]]
        self._newest = state["newest"]
        self._settled, self.n_published, self.n_suppressed = state["counts"]
        self._messages.n_classes.update(state["classes"])
