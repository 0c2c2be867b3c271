"""Since when each id is heard that changes, or that is too new for anybody to know."""

from typing import Any

import numpy as np

from anonymizer.algorithms.positions.changing_ids import LASTS
from anonymizer.algorithms.positions.device_keys import Keys, slots_as_keys
from anonymizer.domain.arrays import BoolArray, FloatArray, Int32Array, IntArray
from anonymizer.pipeline.positions.tick.device_rows import DeviceRows

_STATE = ("_changes", "_since", "_last")


class IdLives:
    """Remembers the first and the last report of every id, whatever slot its device has.

    An id that was silent for longer than `kept_s` is heard anew: what is remembered depends on its
    own reports and the time alone, not on when its slot is freed. `any_change`: whether there ever
    was an id that is declared to change.
    """

    def __init__(self, keys: Keys = slots_as_keys, *, kept_s: float = np.inf) -> None:
        self._rows, self._kept_s = DeviceRows(keys), kept_s
        self.any_change = False
        self._changes: BoolArray = np.zeros(0, bool)
        self._since: FloatArray = np.zeros(0)
        self._last: FloatArray = np.zeros(0)
        self._looked_at = -np.inf

    def mark(self, slot: Int32Array | IntArray) -> None:
        """Take in that the ids of these devices change."""
        if len(slot):
            self.any_change = True
            row = self._row(slot.astype(np.int32))
            self._changes[row] = True

    def change(self, slot: Int32Array) -> BoolArray:
        """Return which of these devices have ids that are declared to change, shape (n,)."""
        row = self._row(slot)
        changes: BoolArray = self._changes[row]
        return changes

    def since(
        self, slot: Int32Array, ts: FloatArray, *, now: float, stays_after_s: float = 0.0
    ) -> FloatArray:
        """Take in the reports of a tick; return since when the id of each is heard.

        `ts`, `now`: unix seconds, shape (n,). `LASTS` for ids that stay: all that are not declared
        to change, and were heard over `stays_after_s` at least.
        """
        self._drop(now - self._kept_s)
        row = self._row(slot)
        self._since[row[self._last[row] < now - self._kept_s]] = np.inf
        earlier = ts < self._since[row]
        np.minimum.at(self._since, row[earlier], ts[earlier])
        np.maximum.at(self._last, row, ts)
        since = self._since[row]
        stays = ~self._changes[row] & (self._last[row] - since >= stays_after_s)
        return np.where(stays, LASTS, since)

    def forget(self, slot: Int32Array) -> None:
        """Take in that these slots may pass to other devices."""
        self._rows.free(slot)

    def state(self) -> dict[str, Any]:
        """Return what changes from tick to tick."""
        return {name: getattr(self, name) for name in _STATE} | {"rows": self._rows.state()}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        for name in _STATE:
            setattr(self, name, state[name].copy())
        self._rows.restore(state["rows"])
        self.any_change = bool(self._changes.any())

    def _drop(self, before_s: float) -> None:
        """Forget ids that are silent since a time, now and then. O(ids)."""
        if before_s < self._looked_at:
            return
        used = self._rows.used()
        gone = used[self._last[used] < before_s]
        self._changes[gone], self._since[gone], self._last[gone] = False, np.inf, -np.inf
        self._rows.drop(gone)
        self._looked_at = before_s + self._kept_s / 8

    def _row(self, slot: Int32Array) -> Int32Array:
        row = self._rows.of(slot)
        more = int(row.max(initial=-1)) + 1 - len(self._since)
        if more > 0:
            more = max(more, len(self._since))
            self._changes = np.concatenate([self._changes, np.zeros(more, bool)])
            self._since = np.concatenate([self._since, np.full(more, np.inf)])
            self._last = np.concatenate([self._last, np.full(more, -np.inf)])
        return row
