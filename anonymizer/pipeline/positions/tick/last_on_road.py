"""Devices that left the roads or entered a zone of their own: as if they had fallen silent.

A device that falls silent counts where it was for as long as it is present. One that is heard where
nothing is published about it must not leave earlier: the groups that form next would tell the two
apart.
"""

from typing import Any

import numpy as np

from anonymizer.algorithms.positions.operator import UNMOVED
from anonymizer.domain.arrays import BoolArray, FloatArray, Int32Array


class LastOnRoad:
    """When each device was heard last where it may be published.

    `present_s`: who leaves moves nothing for so long. That is as long as a silent device may count
    as present, or for ever where devices that stay away are forgotten by something else.
    """

    def __init__(self, present_s: float) -> None:
        self._present_s = present_s
        self._heard_at = np.full(0, -np.inf)

    def stay(
        self,
        slot: Int32Array,
        ts: FloatArray,
        counted_at: Int32Array,
        *,
        leaves: BoolArray,
        now: float,
    ) -> Int32Array:
        """Return where positions count, shape (n,): those of devices that leave move nothing yet.

        `leaves`: which positions are off the roads or in a zone of the device's own.
        """
        more = int(slot.max(initial=-1)) + 1 - len(self._heard_at)
        if more > 0:
            room = np.full(max(more, len(self._heard_at)), -np.inf)
            self._heard_at = np.concatenate([self._heard_at, room])
        if counted_at.min(initial=0) >= 0:
            np.maximum.at(self._heard_at, slot, ts)
            return counted_at
        np.maximum.at(self._heard_at, slot[counted_at >= 0], ts[counted_at >= 0])
        present = leaves & (now - self._heard_at[slot] <= self._present_s)
        return np.where(present, counted_at + UNMOVED, counted_at).astype(np.int32)

    def forget(self, slot: Int32Array) -> None:
        """Clear freed slots."""
        self._heard_at[slot[slot < len(self._heard_at)]] = -np.inf

    def state(self) -> dict[str, Any]:
        """Return what changes from tick to tick."""
        return {"heard_at": self._heard_at}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self._heard_at = state["heard_at"].copy()
