"""The devices that are counted: where each was in an interval, and before it."""

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from anonymizer.algorithms.geodesy import haversine_m
from anonymizer.algorithms.positions.changing_ids import LASTS, on_air
from anonymizer.algorithms.positions.device_keys import KeyArray, Keys, slots_as_keys
from anonymizer.algorithms.positions.safe_counts import NO_CELL, CellTally, tally
from anonymizer.algorithms.positions.spanning_forest import compact_parts
from anonymizer.domain.arrays import FloatArray, Int32Array, IntArray
from anonymizer.domain.discreet import discreet
from anonymizer.domain.network import RoadNetwork
from anonymizer.pipeline.positions.tick.device_rows import DeviceRows

if TYPE_CHECKING:
    from anonymizer.settings import CountSettings

_MOST_SPEED_MPS = 40.0
"""Faster devices count as this fast, so that one of them cannot move a mean by much."""
_MOST_DWELL_S = 600.0
"""Likewise of longer stays."""
_COLUMNS = (
    "_node",
    "_cell",
    "_before",
    "_seen_at",
    "_since",
    "_entered_at",
    "_metres",
    "_seconds",
    "_seen",
)


@discreet
class CountedInterval(NamedTuple):
    """An interval that has ended, and the devices that were seen in it."""

    number: int
    end_s: float
    """`number`, `end_s`: interval n covers [n, n + 1) times its length; its end, unix seconds."""
    is_whole: bool
    """Whether devices were counted from its beginning on."""
    key: KeyArray
    cell: IntArray
    before: IntArray
    """`key`, `cell`, `before`: each device, its last cell, and its cell at the end of the interval
    before (`NO_CELL`: it was not seen then), shape (devices,)."""
    speed_mps: FloatArray
    dwell_s: FloatArray
    """`speed_mps`, `dwell_s`: of each device, NaN for none, at most those of the settings, shape
    (devices,)."""
    n_cells: int
    """Number of cells of the network."""

    def tally(self) -> CellTally:
        """Return how many devices were seen in each cell."""
        return tally(
            self.cell,
            self.before,
            n_cells=self.n_cells,
            speed_mps=self.speed_mps,
            dwell_s=self.dwell_s,
        )


class CountedDevices:
    """Follows the devices that are counted from interval to interval.

    Parameters
    ----------
    keys
        Returns a number for the device of each slot; by default for callers whose devices keep
        their slots.
    slack_s
        Of ids that change, see `changing_ids.on_air`.
    kept_s
        A device that has not been seen for longer is forgotten between two intervals.

    Notes
    -----
    A device is counted where it was seen last in the interval, if it was seen; in a privacy zone
    and near the ends of its trip it is not. Of ids that change, those are counted that were on the
    air in the middle of the interval: a vehicle has one then (see `changing_ids`). Its speed is the
    distance between its positions divided by the time between them, straight from one to the next.

    What is counted of a device does not depend on when its slot is freed: see `DeviceRows`. So a
    device that was seen in an interval costs memory until the interval has ended.
    """

    def __init__(
        self,
        settings: "CountSettings",
        network: RoadNetwork,
        *,
        keys: Keys = slots_as_keys,
        kept_s: float = math.inf,
        slack_s: float = 0.0,
    ) -> None:
        self._settings = settings
        self._slack_s = slack_s
        self._rows = DeviceRows(keys)
        self._kept_s = kept_s
        self._network = network
        self._cell_at = compact_parts(network, settings.cells)
        self._interval: int | None = None
        self._is_whole = False
        self._node = np.zeros(0, np.int32)
        self._cell = np.zeros(0, np.int32)
        self._before = np.zeros(0, np.int32)
        self._seen_at = np.zeros(0)
        self._since = np.zeros(0)
        self._entered_at = np.zeros(0)
        self._metres = np.zeros(0)
        self._seconds = np.zeros(0)
        self._seen = np.zeros(0, np.bool_)

    def tick(
        self,
        slot: Int32Array,
        ts: FloatArray,
        node: Int32Array,
        *,
        now: float,
        since: FloatArray | None = None,
    ) -> CountedInterval | None:
        """Take in the positions of a tick; return an interval that has ended before it.

        `slot`, `ts` (unix seconds), `node` (negative: none): of each position, shape (n,). `since`:
        since when its id is heard, `LASTS` if it does not change; None: none changes.
        """
        ended = self._turn(now)
        row = self._rows.of(slot[node >= 0])
        self._make_room(int(row.max(initial=-1)) + 1)
        self._since[row] = LASTS if since is None else since[node >= 0]
        self._move(row, ts[node >= 0], node[node >= 0])
        return ended

    def withdraw(self, keys: KeyArray) -> None:
        """Forget these devices: they are not counted in the interval, either."""
        row = self._rows.with_keys(keys)
        self._drop(row)
        self._seen[row] = False
        self._before[row] = NO_CELL

    def free(self, slots: Int32Array) -> None:
        """Take in that these slots may pass to other devices."""
        self._rows.free(slots)

    def _turn(self, now: float) -> CountedInterval | None:
        """End the interval if it is over."""
        interval = math.floor(now / self._settings.every_s)
        if interval == self._interval:
            return None
        ended = None if self._interval is None else self._ended(self._interval)
        self._is_whole = self._interval is not None
        self._interval = interval
        self._before = np.where(self._seen, self._cell, NO_CELL).astype(np.int32)
        self._seen[:] = False
        self._metres[:] = 0.0
        self._seconds[:] = 0.0
        self._forget(now - self._kept_s)
        return ended

    def _ended(self, number: int) -> CountedInterval:
        settings = self._settings
        end_s = (number + 1) * settings.every_s
        middle_s = end_s - settings.every_s / 2
        counts = on_air(self._since, self._seen_at, at=middle_s, slack_s=self._slack_s)
        seen = np.flatnonzero(self._seen & counts)
        went = self._seconds[seen] > 0
        speed = np.full(len(seen), np.nan)
        speed[went] = self._metres[seen][went] / self._seconds[seen][went]
        dwell = np.maximum(end_s - self._entered_at[seen], 0.0)
        return CountedInterval(
            number,
            end_s,
            self._is_whole,
            self._rows.key[seen],
            self._cell[seen].astype(np.int64),
            self._before[seen].astype(np.int64),
            np.minimum(speed, _MOST_SPEED_MPS),
            np.minimum(dwell, _MOST_DWELL_S),
            settings.cells,
        )

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
        self._drop(np.flatnonzero(gone).astype(np.int32))

    def _drop(self, row: Int32Array) -> None:
        self._seen_at[row] = -np.inf
        self._cell[row] = NO_CELL
        self._rows.drop(row)

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
        self._since = np.concatenate([self._since, np.full(more, LASTS)])
        self._entered_at = np.concatenate([self._entered_at, np.zeros(more)])
        self._metres = np.concatenate([self._metres, np.zeros(more)])
        self._seconds = np.concatenate([self._seconds, np.zeros(more)])
        self._seen = np.concatenate([self._seen, np.zeros(more, np.bool_)])

    def state(self) -> dict[str, Any]:
        """Return what changes from tick to tick. It holds where devices are."""
        columns = {name: getattr(self, name) for name in _COLUMNS}
        return {
            **columns,
            "rows": self._rows.state(),
            "interval": self._interval,
            "is_whole": self._is_whole,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        for name in _COLUMNS:
            setattr(self, name, state[name])
        self._rows.restore(state["rows"])
        self._interval, self._is_whole = state["interval"], state["is_whole"]
