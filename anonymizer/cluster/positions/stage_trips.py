"""Trips over several sources: each follows its devices, and one district publishes the classes.

When a window ends, a source states its trips. The district makes classes of all of them when every
source has stated the window.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from anonymizer.algorithms.positions.trip_classes import WindowTrips, n_cells_of
from anonymizer.cluster.positions.source_windows import (
    SourceWindows,
    WindowPiece,
    cut,
    decode_piece,
    encode_piece,
)
from anonymizer.domain.network import RoadNetwork
from anonymizer.domain.network_version import network_version
from anonymizer.pipeline.ports import Outgoing
from anonymizer.pipeline.positions.counts.counting import cells_messages
from anonymizer.pipeline.positions.out.trips import (
    UNVERIFIED,
    EndedTrips,
    TripMessages,
    promised_k,
)
from anonymizer.settings import Settings

TRIPS = b"T"
"""First byte of an encoded piece of trips."""
TRIPS_LANE = 0
"""The district that publishes the trips."""
_ROAD_BYTES, _TRIP_BYTES = 4, 20
_MOST_WAITING = 3
"""Windows that wait for a source."""


class StatedTrips(NamedTuple):
    """Some of the trips of a window: see `EndedTrips`.

    `n_cells`: into how many cells their network is divided, which follows from k.
    """

    k: int
    n_cells: int
    trips: WindowTrips


def stated_trips(source: int, ended: EndedTrips, *, n_cells: int) -> Iterator[bytes]:
    """Yield the trips of a window, encoded, in pieces that Kafka takes; at least one.

    `n_cells`: see `StatedTrips`.
    """
    window, k, trips = ended
    n_bytes = [_TRIP_BYTES + _ROAD_BYTES * len(each) for each in trips.roads]
    for piece, first, end, is_last in cut(n_bytes):
        some = StatedTrips(k, n_cells, WindowTrips._make(column[first:end] for column in trips))
        yield encode_piece(TRIPS, WindowPiece(source, window, piece, is_last, some), _packed)


def decode_trips(value: bytes, *, n_sources: int) -> WindowPiece[StatedTrips]:
    """Return the piece that was encoded.

    Raises
    ------
    ValueError
        If it is not of one of so many sources.
    """
    return decode_piece(value, _unpacked, n_sources=n_sources)


def _packed(stated: StatedTrips) -> list[Any]:
    device, origin, destination, start, roads = stated.trips
    cells = [origin.astype(np.int16), destination.astype(np.int16), start.astype(np.int8)]
    return [stated.k, stated.n_cells, device, *cells, [each.astype(np.int32) for each in roads]]


def _unpacked(packed: list[Any]) -> StatedTrips:
    k, n_cells, *columns, roads = packed
    if not isinstance(k, int) or not isinstance(n_cells, int):
        raise ValueError("these are no trips")  # noqa: TRY004  bytes are wrong, not code
    columns = [each.astype(np.int64) for each in columns]
    roads = [each.astype(np.int64) for each in roads]
    return StatedTrips(k, n_cells, WindowTrips._make([*columns, roads]))


def _together(some: list[StatedTrips]) -> WindowTrips:
    *columns, roads = zip(*(each.trips for each in some), strict=True)
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
    secret
        Of the thresholds.

    Attributes
    ----------
    n_published
        Windows so far that were published.
    """

    def __init__(self, settings: Settings, network: RoadNetwork, *, secret: bytes = b"") -> None:
        self._k = promised_k(settings)
        version = network_version(network)
        self._messages = TripMessages(settings, network, version=version, secret=secret)
        self._n_cells = n_cells_of(network, settings.counts.k)
        self._cells = cells_messages(settings.topics.trips, self._n_cells, network, version=version)
        self._windows = SourceWindows(
            settings.cluster.n_parts,
            most_waiting=_MOST_WAITING,
            packed=_packed,
            unpacked=_unpacked,
        )
        self.n_published = self._n_other = 0

    @property
    def n_suppressed(self) -> int:
        """Windows left out: a source had not stated them in time, or in cells of another k."""
        return self._windows.n_suppressed + self._n_other

    @property
    def n_unverified(self) -> int:
        """Classes so far that failed the check before publishing."""
        return self._messages.n_classes[UNVERIFIED]

    def take(self, stated: WindowPiece[StatedTrips]) -> list[Outgoing]:
        """Take in a piece; return the messages of all windows that every source has stated.

        The cells come before each, retained.
        """
        found: list[Outgoing] = []
        for window, pieces in self._windows.take(stated):
            if any(each.n_cells != self._n_cells for each in pieces):
                self._n_other += 1
                continue
            self.n_published += 1
            k = max(self._k, *(each.k for each in pieces))
            ended = EndedTrips(window, k, _together(pieces))
            found += [*self._cells, self._messages.of(ended, wall_ahead_s=0.0)]
        return found

    def state(self) -> dict[str, Any]:
        """Return what changes with each piece."""
        return {
            "windows": self._windows.state(),
            "counts": [self.n_published, self._n_other],
            "classes": dict(self._messages.n_classes),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self._windows.restore(state["windows"])
        self.n_published, self._n_other = state["counts"]
        self._messages.n_classes.update(state["classes"])
