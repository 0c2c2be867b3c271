"""The network of each device, where a service has several: a boat is never found on a road."""

from typing import Any

import numpy as np

from anonymizer.domain.arrays import BoolArray, Int8Array, Int32Array

_NONE = -1


class DeviceLayers:
    """Remembers on which network each device moves, by the input that it was first heard on.

    It stays the same until the device is forgotten: one that was company on two networks would
    count twice, and one that changed would tell both groups that it did.
    """

    def __init__(self) -> None:
        self._layer_of: Int8Array = np.zeros(0, np.int8)

    def mark(self, slot: Int32Array, layer: Int8Array) -> BoolArray:
        """Note the networks that inputs name for devices; return the contradictions, shape (n,).

        Parameters
        ----------
        slot, layer
            Device and network of each position in order of arrival, shape (n,).
        """
        self._make_room(int(slot.max(initial=-1)) + 1)
        first = np.unique(slot, return_index=True)[1]
        first = first[self._layer_of[slot[first]] == _NONE]
        self._layer_of[slot[first]] = layer[first]
        contradicts: BoolArray = self._layer_of[slot] != layer
        return contradicts

    def of(self, slot: Int32Array) -> Int8Array:
        """Return the network of each device, negative for none, shape (n,)."""
        self._make_room(int(slot.max(initial=-1)) + 1)
        return self._layer_of[slot]

    def forget(self, slot: Int32Array) -> None:
        """Clear freed slots."""
        self._layer_of[slot[slot < len(self._layer_of)]] = _NONE

    def state(self) -> dict[str, Any]:
        """Return what changes from tick to tick."""
        return {"layer_of": self._layer_of}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self._layer_of = state["layer_of"].copy()

    def _make_room(self, n_slots: int) -> None:
        have = len(self._layer_of)
        if n_slots > have:
            more = np.full(max(n_slots, 2 * have) - have, _NONE, np.int8)
            self._layer_of = np.append(self._layer_of, more)
