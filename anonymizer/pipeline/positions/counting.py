"""Counting in the flow: from the positions of a tick to the counts of an interval."""

import math
from collections import Counter
from collections.abc import Sequence

import msgspec
import numpy as np

from anonymizer.algorithms.geodesy import haversine_m
from anonymizer.algorithms.positions.district_operator import Keys, slots_as_keys
from anonymizer.algorithms.positions.safe_counts import NO_CELL, Figures, count
from anonymizer.algorithms.positions.spanning_forest import compact_parts
from anonymizer.domain.arrays import FloatArray, Int32Array
from anonymizer.domain.network import RoadNetwork
from anonymizer.pipeline.ports import Outgoing
from anonymizer.pipeline.positions.device_rows import DeviceRows
from anonymizer.pipeline.positions.private_counts import PrivateCounts
from anonymizer.settings import CountSettings

FORM_VERSION = 1
_DIGITS = 6


class Run(msgspec.Struct, frozen=True):
    """Neighbouring cells that are counted together."""

    first: int
    last: int
    """First and last cell; those between belong to it too."""
    devices: int
    """A multiple of k: there were so many devices, or up to k - 1 more."""


class Flow(Run, frozen=True):
    """Devices that were in some cells when the interval began, and are here at its end."""


class CellCounts(Run, frozen=True):
    """What is known of some cells in an interval."""

    origins: Sequence[Flow] = ()
    """Where the devices were at the end of the interval before; at least k each. The others were
    elsewhere, or not seen: they are none, or at least k."""
    speed_mps: float | msgspec.UnsetType = msgspec.UNSET
    """Mean speed of the devices, if at least k have one."""
    dwell_s: float | msgspec.UnsetType = msgspec.UNSET
    """Mean time for which the devices have been in their cells."""


class CountsMessage(msgspec.Struct, frozen=True):
    """Safe counts of one interval. Each device that was seen is counted in one run of cells."""

    v: int
    """Version of the form of the message."""
    time: float
    """End of the interval, unix seconds."""
    interval_s: float
    network: str
    """Version of the network."""
    k: int
    """Numbers of devices are multiples of this."""
    n_cells: int
    """Number of cells of the network; they are retained on the topic behind this one, `/cells`."""
    counts: Sequence[CellCounts]
    """Empty if fewer than k devices were seen."""


class CountingFlow:
    """Counts the devices of a positions flow.

    Parameters
    ----------
    settings
        Interval, k, cells and rounding.
    network
        With coordinates.
    version
        Version of the network.
    private
        Makes counts with differential privacy. None: safe counts.
    keys
        Returns a number for the device of each slot; by default for callers whose devices keep
        their slots.
    kept_s
        A device that has not been seen for longer is forgotten between two intervals. No position
        may be older than this when it arrives.

    Attributes
    ----------
    n_intervals
        Intervals that have ended: by why they were suppressed, empty if they were published.

    Notes
    -----
    A device is counted where it was seen last in the interval, if it was seen; in a privacy zone
    and near the ends of its trip it is not. Its speed is the distance between its positions
    divided by the time between them, straight from one to the next.

    What is counted of a device does not depend on when its slot is freed: see `DeviceRows`. So a
    device that was seen in an interval costs memory until the interval has ended.
    """

    def __init__(
        self,
        settings: CountSettings,
        network: RoadNetwork,
        *,
        version: str,
        private: PrivateCounts | None = None,
        keys: Keys = slots_as_keys,
        kept_s: float = math.inf,
    ) -> None:
        self.n_intervals: Counter[str] = Counter()
        self._settings = settings
        self._private = private
        self._rows = DeviceRows(keys)
        self._kept_s = kept_s
        self._network = network
        self._version = version
        self._cell_at = compact_parts(network, settings.cells)
        self._interval: int | None = None
        self._is_whole = False
        self._node = np.zeros(0, np.int32)
        self._cell = np.zeros(0, np.int32)
        self._before = np.zeros(0, np.int32)
        self._seen_at = np.zeros(0)
        self._entered_at = np.zeros(0)
        self._metres = np.zeros(0)
        self._seconds = np.zeros(0)
        self._seen = np.zeros(0, np.bool_)
        self._encode = msgspec.json.Encoder().encode

    def tick(
        self,
        slot: Int32Array,
        ts: FloatArray,
        node: Int32Array,
        *,
        now: float,
        freed: Int32Array,
        wall_ahead_s: float = 0.0,
    ) -> list[Outgoing]:
        """Take in the positions of a tick; return the message of an interval that has ended.

        Parameters
        ----------
        slot, ts, node
            Device, unix seconds and node (negative: none) of each position, shape (n,).
        now
            Unix seconds at which the tick closes, by the clock of `ts`.
        freed
            Slots that may pass to other devices after this tick.
        wall_ahead_s
            Added to the published time.
        """
        messages = self._turn(now, wall_ahead_s)
        row = self._rows.of(slot[node >= 0])
        self._make_room(int(row.max(initial=-1)) + 1)
        self._move(row, ts[node >= 0], node[node >= 0])
        self._rows.free(freed)
        return messages

    def close(self) -> None:
        """Leave the budget to others; after the last tick."""
        if self._private is not None:
            self._private.close()

    def _turn(self, now: float, wall_ahead_s: float) -> list[Outgoing]:
        """End the interval if it is over; an interval that was not watched whole is left out."""
        every_s = self._settings.every_s
        interval = math.floor(now / every_s)
        if interval == self._interval:
            return []
        messages = []
        if self._is_whole and self._interval is not None:
            end_s = (self._interval + 1) * every_s
            make = self._safe if self._private is None else self._with_noise
            messages.append(make(end_s, wall_ahead_s))
        self._is_whole = self._interval is not None
        self._interval = interval
        self._before = np.where(self._seen, self._cell, NO_CELL).astype(np.int32)
        self._seen[:] = False
        self._metres[:] = 0.0
        self._seconds[:] = 0.0
        self._forget(now - self._kept_s)
        return messages

    def _move(self, row: Int32Array, ts: FloatArray, node: Int32Array) -> None:
        """Move devices, in the order of their times; older positions than the last are ignored."""
        order = np.lexsort((ts, row))
        row, ts, node = row[order], ts[order], node[order]
        newer = ts > self._seen_at[row]
        row, ts, node = row[newer], ts[newer], node[newer]
        if not len(row):
            return
        first = np.append(np.ones(1, bool), row[1:] != row[:-1])
        came_from = np.where(first, self._node[row], np.roll(node, 1))
        since = np.where(first, self._seen_at[row], np.roll(ts, 1))
        cell = self._cell_at[node]
        from_cell = np.where(first, self._cell[row], np.roll(cell, 1))
        known = np.isfinite(since)
        lat, lon = self._network.lat, self._network.lon
        went = came_from[known]
        metres = haversine_m(lat[went], lon[went], lat[node[known]], lon[node[known]])
        np.add.at(self._metres, row[known], metres)
        np.add.at(self._seconds, row[known], (ts - since)[known])
        entered = np.flatnonzero(from_cell != cell)
        self._entered_at[row[entered]] = ts[entered]  # of several, the last one stays
        last = np.append(row[1:] != row[:-1], np.ones(1, bool))
        self._node[row[last]], self._cell[row[last]] = node[last], cell[last]
        self._seen_at[row[last]] = ts[last]
        self._seen[row] = True

    def _forget(self, before_s: float) -> None:
        """Forget who was seen last before this time, and not in the interval that has ended."""
        gone = np.isfinite(self._seen_at) & (self._seen_at < before_s) & (self._before == NO_CELL)
        row = np.flatnonzero(gone).astype(np.int32)
        self._seen_at[row] = -np.inf
        self._cell[row] = NO_CELL
        self._rows.drop(row)

    def _with_noise(self, end_s: float, ahead_s: float) -> Outgoing:
        assert self._private is not None  # noqa: S101  for type checkers
        seen = np.flatnonzero(self._seen).astype(np.int32)
        body = self._private.message(
            self._cell[seen].astype(np.int64),
            self._before[seen].astype(np.int64),
            self._rows.key[seen],
            end_s=end_s,
            ahead_s=ahead_s,
        )
        self.n_intervals[body.suppressed or ""] += 1
        return Outgoing(self._settings.topic, self._encode(body))

    def _safe(self, end_s: float, ahead_s: float) -> Outgoing:
        self.n_intervals[""] += 1
        settings = self._settings
        seen = np.flatnonzero(self._seen)
        went = self._seconds[seen] > 0
        speed = np.full(len(seen), np.nan)
        speed[went] = self._metres[seen][went] / self._seconds[seen][went]
        dwell = np.maximum(end_s - self._entered_at[seen], 0.0)
        figures = count(
            self._cell[seen].astype(np.int64),
            self._before[seen].astype(np.int64),
            n_cells=settings.cells,
            k=settings.k,
            speed_mps=np.minimum(speed, settings.most_speed_mps),
            dwell_s=np.minimum(dwell, settings.most_dwell_s),
        )
        body = CountsMessage(
            v=FORM_VERSION,
            time=round(end_s + ahead_s, 3),
            interval_s=settings.every_s,
            network=self._version,
            k=settings.k,
            n_cells=settings.cells,
            counts=self._counts(figures),
        )
        return Outgoing(settings.topic, self._encode(body))

    def _counts(self, figures: Figures) -> list[CellCounts]:
        first = figures.first_cell_of.tolist()
        speed = _rounded(figures.speed_mps, self._settings.speed_step_mps)
        dwell = _rounded(figures.dwell_s, self._settings.dwell_step_s)
        origins: list[list[Flow]] = [[] for _ in first[1:]]
        flows = (figures.flow_from, figures.flow_to, figures.n_flow)
        for origin, here, n in zip(*(column.tolist() for column in flows), strict=True):
            origins[here].append(Flow(first[origin], first[origin + 1] - 1, n))
        return [
            CellCounts(first[r], first[r + 1] - 1, n, origins[r], speed[r], dwell[r])
            for r, n in enumerate(figures.n_devices.tolist())
        ]

    def _make_room(self, n_rows: int) -> None:
        more = n_rows - len(self._cell)
        if more <= 0:
            return
        more = max(more, len(self._cell))
        self._node = np.concatenate([self._node, np.zeros(more, np.int32)])
        nowhere = np.full(more, NO_CELL, np.int32)
        self._cell = np.concatenate([self._cell, nowhere])
        self._before = np.concatenate([self._before, nowhere])
        self._seen_at = np.concatenate([self._seen_at, np.full(more, -np.inf)])
        self._entered_at = np.concatenate([self._entered_at, np.zeros(more)])
        self._metres = np.concatenate([self._metres, np.zeros(more)])
        self._seconds = np.concatenate([self._seconds, np.zeros(more)])
        self._seen = np.concatenate([self._seen, np.zeros(more, np.bool_)])


def cells_message(settings: CountSettings, network: RoadNetwork, *, version: str) -> Outgoing:
    """Return the retained message that says where the cells are: GeoJSON, a box for each.

    A box surrounds the nodes of its cell; a cell without nodes is left out.
    """
    cell = compact_parts(network, settings.cells)
    order = np.argsort(cell, kind="stable")
    numbers, start = np.unique(cell[order], return_index=True)
    corners = [
        edge.reduceat(degrees[order], start).round(_DIGITS).tolist()
        for degrees in (network.lon, network.lat)
        for edge in (np.minimum, np.maximum)
    ]
    features = [
        {
            "type": "Feature",
            "id": number,
            "geometry": {
                "type": "Polygon",
                "coordinates": [[[w, s], [e, s], [e, n], [w, n], [w, s]]],
            },
            "properties": {"cell": number, "nodes": n_nodes},
        }
        for number, w, e, s, n, n_nodes in zip(
            numbers.tolist(),
            *corners,
            np.diff(np.append(start, len(cell))).tolist(),
            strict=True,
        )
    ]
    body = {"type": "FeatureCollection", "network": version, "features": features}
    return Outgoing(f"{settings.topic}/cells", msgspec.json.encode(body), retain=True)


def _rounded(values: FloatArray, step: float) -> "list[float | msgspec.UnsetType]":
    """Return values on their steps; NaN is left out of a message."""
    steps = np.rint(values / step) * step
    return [msgspec.UNSET if math.isnan(value) else round(value, 3) for value in steps.tolist()]
