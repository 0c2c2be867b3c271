"""Since when each id is heard, of the inputs whose ids change (`inputs.ids_change_s`)."""

from typing import Any

import numpy as np

from anonymizer.algorithms.positions.changing_ids import LASTS
from anonymizer.domain.arrays import BoolArray, FloatArray, Int32Array, IntArray

_STATE = ("_changes", "_since", "_last")


class IdLives:
    """Remembers the first report of every id that is declared to change.

    An id that was silent for longer than `kept_s` is heard anew: what is remembered depends on its
    own reports and the time alone, not on when its slot is freed. `any_change`: whether there ever
    was such an id.
    """

    def __init__(self, *, kept_s: float = np.inf) -> None:
        self._kept_s = kept_s
        self.any_change = False
        self._changes: BoolArray = np.zeros(0, bool)
        self._since: FloatArray = np.zeros(0)
        self._last: FloatArray = np.zeros(0)

    def mark(self, slot: Int32Array | IntArray) -> None:
        """Take in that the ids of these devices change."""
        if len(slot):
            self.any_change = True
            self._make_room(int(slot.max()) + 1)
            self._changes[slot] = True

    def change(self, slot: Int32Array) -> BoolArray:
        """Return which of these devices have ids that change, shape (n,)."""
        self._make_room(int(slot.max(initial=-1)) + 1)
        changes: BoolArray = self._changes[slot]
        return changes

    def since(self, slot: Int32Array, ts: FloatArray, *, now: float) -> FloatArray | None:
        """Take in the reports of a tick; return since when the id of each is heard.

        `ts`, `now`: unix seconds, shape (n,). `LASTS` for ids that do not change; None: none
        changes.
        """
        if not self.any_change:
            return None
        self._make_room(int(slot.max(initial=-1)) + 1)
        self._since[slot[self._last[slot] < now - self._kept_s]] = np.inf
        np.minimum.at(self._since, slot, ts)
        np.maximum.at(self._last, slot, ts)
        return np.where(self._changes[slot], self._since[slot], LASTS)

    def forget(self, slot: Int32Array) -> None:
        """Forget the devices of these slots."""
        known = slot[slot < len(self._since)]
        self._changes[known], self._since[known], self._last[known] = False, np.inf, -np.inf

    def state(self) -> dict[str, Any]:
        """Return what changes from tick to tick."""
        return {name: getattr(self, name) for name in _STATE}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        for name in _STATE:
            setattr(self, name, state[name].copy())
        self.any_change = bool(self._changes.any())

    def _make_room(self, n_slots: int) -> None:
        more = n_slots - len(self._since)
        if more > 0:
            more = max(more, len(self._since))
            self._changes = np.concatenate([self._changes, np.zeros(more, bool)])
            self._since = np.concatenate([self._since, np.full(more, np.inf)])
            self._last = np.concatenate([self._last, np.full(more, -np.inf)])
