"""Places where a device stops again and again, learned in memory and hidden like a declared home.

Nobody declares them, and nothing of them is ever written: they are gone when the gateway stops, and
learned anew.
"""

import numpy as np

from anonymizer.algorithms.positions.device_keys import KeyArray, Keys
from anonymizer.algorithms.positions.live_trips import EndedTrip, LiveTrips
from anonymizer.algorithms.positions.protection import IN_ZONE
from anonymizer.algorithms.positions.spanning_forest import compact_parts
from anonymizer.algorithms.positions.trip_classes import n_cells_of
from anonymizer.domain.arrays import Int32Array, with_room
from anonymizer.domain.network import RoadNetwork
from anonymizer.domain.protection import TripRule
from anonymizer.pipeline.positions.tick.device_rows import DeviceRows
from anonymizer.pipeline.positions.tick.trip_guard import Positions

_MOST_PLACES = 8
"""Remembered of a device; the one where it stopped on the fewest days, longest ago, gives way."""
_KEPT_DAYS = 30
"""A place, or a device, that was not seen for longer is forgotten."""
_COMPANY = 10
"""A place has twice as many nodes at least."""
_DAY_S = 86_400.0


class LearnedStops:
    """The places of devices where they stopped on several days, and the positions inside them.

    A place is a cell of the network of at least 20 nodes, cut as for trips: its edges tell nothing
    of where in it a device stops. A stop is an end of a trip.

    A place is hidden once its device stopped there on so many `days`. Beyond `most_devices`, those
    are forgotten that were seen longest ago.

    Notes
    -----
    150 bytes a device in memory. A position costs what `LiveTrips` takes, and a comparison with
    eight cells.
    """

    def __init__(
        self, rule: TripRule, days: int, network: RoadNetwork, *, keys: Keys, most_devices: int
    ) -> None:
        self._rule, self._days, self._most = rule, days, most_devices
        self._cell_at = compact_parts(network, n_cells_of(network, _COMPANY))
        self._rows = DeviceRows(keys)
        self._trips: LiveTrips | None = None
        self._looked_s = -np.inf
        self._seen_at = np.zeros(0)
        self._cell = np.zeros((0, _MOST_PLACES), np.int32)
        self._n_days = np.zeros((0, _MOST_PLACES), np.int16)
        self._last_day = np.zeros((0, _MOST_PLACES), np.int32)

    def __repr__(self) -> str:
        """Return the numbers of devices and of places alone."""
        return f"LearnedStops({len(self._rows)} devices, {self.n_hidden} places hidden)"

    @property
    def n_hidden(self) -> int:
        """Places that are hidden."""
        return int((self._n_days >= self._days).sum())

    def learn(self, positions: Positions, node: Int32Array, *, now: float) -> None:
        """Take in the positions of a tick, with their nodes (negative: none).

        `now`: unix seconds at which the tick closes.
        """
        if self._trips is None:
            self._trips = LiveTrips(self._rule, begins_s=-np.inf)
        row = self._rows.of(positions.slot)
        self._make_room(int(row.max(initial=-1)) + 1)
        self._seen_at[row] = now
        ended = self._trips.tick(row, positions.ts, positions.lat, positions.lon, node)
        if now - self._looked_s >= self._rule.gap_s:
            self._looked_s = now
            silent, _ = self._trips.silent(now - self._rule.gap_s)
            ended += silent
            self._trips.forget(self._forget(now))
        for trip in ended:
            self._stop(trip)

    def keep_out(self, positions: Positions, node: Int32Array) -> Int32Array:
        """Return the node of each position, `IN_ZONE` in a place that its device has made known."""
        row = self._rows.find(positions.slot)
        cell = self._cell_at[np.maximum(node, 0)]
        known = (row >= 0) & (node >= 0)
        there = self._cell[row[known]] == cell[known][:, None]
        often = self._n_days[row[known]] >= self._days
        hidden = np.zeros(len(node), np.bool_)
        hidden[known] = (there & often).any(axis=1)
        return np.where(hidden, np.int32(IN_ZONE), node)

    def withdraw(self, keys: KeyArray) -> None:
        """Forget the places of these devices."""
        row = self._rows.with_keys(keys)
        self._n_days[row] = 0
        if self._trips is not None:
            self._trips.forget(row)

    def free(self, slots: Int32Array) -> None:
        """Take in that these slots may pass to other devices."""
        self._rows.free(slots)

    def _stop(self, trip: EndedTrip) -> None:
        for node, at_s in ((trip.origin, trip.start_s), (trip.destination, trip.end_s)):
            if node >= 0:
                self._visit(trip.row, int(self._cell_at[node]), int(at_s // _DAY_S))

    def _visit(self, row: int, cell: int, day: int) -> None:
        """Note that a device stopped in a cell on a day."""
        cells, n_days, last = self._cell[row], self._n_days[row], self._last_day[row]
        known = np.flatnonzero((cells == cell) & (n_days > 0))
        if len(known):
            at = int(known[0])
            n_days[at] += day > last[at]
            last[at] = max(day, int(last[at]))
            return
        at = int(np.lexsort((last, n_days))[0])
        cells[at], n_days[at], last[at] = cell, 1, day

    def _forget(self, now: float) -> Int32Array:
        """Forget places and devices not seen for long, and devices beyond the most."""
        old = self._last_day < now / _DAY_S - _KEPT_DAYS
        self._n_days[old] = 0
        rows = self._rows.used()
        gone = rows[self._seen_at[rows] < now - _KEPT_DAYS * _DAY_S]
        if len(rows) - len(gone) > self._most:
            gone = rows[np.argsort(self._seen_at[rows], kind="stable")][: len(rows) - self._most]
        self._n_days[gone] = 0
        self._rows.drop(gone)
        return gone

    def _make_room(self, n_rows: int) -> None:
        self._seen_at = with_room(self._seen_at, n_rows)
        self._cell = with_room(self._cell, n_rows)
        self._n_days = with_room(self._n_days, n_rows)
        self._last_day = with_room(self._last_day, n_rows)
