"""The network of each device, where a service has several: a boat is never found on a road."""

from collections.abc import Callable
from typing import Any

import numpy as np

from anonymizer.algorithms.positions.device_keys import Keys
from anonymizer.domain.arrays import BoolArray, FloatArray, Int8Array, Int32Array, with_room
from anonymizer.pipeline.devices import NO_ROW
from anonymizer.pipeline.positions.tick.device_rows import DeviceRows

_NONE = np.int8(-1)


class DeviceLayers:
    """Remembers on which network each device moves, by the input that it was first heard on.

    It stays the same until the device has been silent for longer than `kept_s`, or until it reports
    from another network alone and `leave` lets it go: one that was company on two networks would
    count twice, and one that changed would tell both groups that it did.

    `leave` is given the slots of devices that report from another network, which count on theirs no
    more; it returns which may change now. None: none may.
    """

    def __init__(
        self, keys: Keys, *, kept_s: float, leave: Callable[[Int32Array], BoolArray] | None = None
    ) -> None:
        self._rows, self._kept_s, self._leave = DeviceRows(keys), kept_s, leave
        self._layer_of: Int8Array = np.zeros(0, np.int8)
        self._heard_s: FloatArray = np.zeros(0)

    def mark(self, slot: Int32Array, layer: Int8Array, *, now: float) -> BoolArray:
        """Note the networks that inputs name for devices; return the contradictions, shape (n,).

        Parameters
        ----------
        slot, layer
            Device and network of each position in order of arrival, shape (n,).
        now
            Unix seconds.
        """
        used = self._rows.used()
        self._rows.drop(used[self._heard_s[used] < now - self._kept_s])
        new = np.flatnonzero(self._rows.find(slot) == NO_ROW)
        new = new[np.unique(slot[new], return_index=True)[1]]
        begun = self._rows.of(slot[new])
        n_rows = int(begun.max(initial=-1)) + 1
        self._layer_of = with_room(self._layer_of, n_rows)
        self._heard_s = with_room(self._heard_s, n_rows)
        self._layer_of[begun] = layer[new]
        row = self._rows.of(slot)
        contradicts: BoolArray = self._layer_of[row] != layer
        if self._leave is not None and contradicts.any():
            elsewhere = np.flatnonzero(contradicts & ~np.isin(slot, slot[~contradicts]))
            first = elsewhere[np.unique(slot[elsewhere], return_index=True)[1]]
            first = first[self._leave(slot[first])]
            self._layer_of[row[first]] = layer[first]
            contradicts = self._layer_of[row] != layer
        self._heard_s[row[~contradicts]] = now
        return contradicts

    def of(self, slot: Int32Array) -> Int8Array:
        """Return the network of each device, negative for none, shape (n,)."""
        row = self._rows.find(slot)
        known = row != NO_ROW
        found = np.full(len(slot), _NONE)
        found[known] = self._layer_of[row[known]]
        return found

    def forget(self, slot: Int32Array) -> None:
        """Take in that these slots may pass to other devices."""
        self._rows.free(slot)

    def state(self) -> dict[str, Any]:
        """Return what changes from tick to tick."""
        return {
            "rows": self._rows.state(),
            "layer_of": self._layer_of,
            "heard_s": self._heard_s,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self._rows.restore(state["rows"])
        self._layer_of, self._heard_s = state["layer_of"], state["heard_s"]
