"""Rows of devices: a device keeps its row when its slot is freed.

When a slot is freed depends on other devices too: the members of a group keep theirs for as long as
the group lives. What is counted of a device, and how long its readings hold, must not depend on
others.
"""

from typing import Any

import numpy as np

from anonymizer.algorithms.positions.device_keys import KeyArray, Keys
from anonymizer.domain.arrays import Int32Array, distinct, with_room
from anonymizer.pipeline.devices import NO_ROW, KeyRows


class DeviceRows:
    """Assigns a row to each device by its slot.

    Notes
    -----
    A position costs one look into an array. A device costs one look into a table when it appears,
    and after its slot was freed.
    """

    def __init__(self, keys: Keys) -> None:
        self._rows = KeyRows()
        self._keys = keys
        self._after_row_of_slot: Int32Array = np.zeros(0, np.int32)
        """0: the device of the slot has not been looked up; `NO_ROW`: it has none."""

    def __len__(self) -> int:
        """Return the number of devices that have a row."""
        return len(self._rows)

    @property
    def key(self) -> KeyArray:
        """Key of the device in each row, shape (rows or more,)."""
        return self._rows.key

    def of(self, slot: Int32Array) -> Int32Array:
        """Return the row of the device in each slot, shape (n,); new devices get one."""
        self._make_room(slot)
        after = self._after_row_of_slot[slot]
        if after.min(initial=1) <= 0:
            unknown = distinct(slot[after <= 0])
            self._after_row_of_slot[unknown] = self._rows.of(self._keys(unknown)) + np.int32(1)
            after = self._after_row_of_slot[slot]
        rows: Int32Array = after - np.int32(1)
        return rows

    def find(self, slot: Int32Array) -> Int32Array:
        """Return the row of the device in each slot, shape (n,); `NO_ROW` if it has none."""
        self._make_room(slot)
        unknown = distinct(slot[self._after_row_of_slot[slot] == 0])
        found = self._rows.find(self._keys(unknown))
        self._after_row_of_slot[unknown] = np.where(found == NO_ROW, NO_ROW, found + 1)
        after = self._after_row_of_slot[slot]
        rows: Int32Array = np.where(after == NO_ROW, NO_ROW, after - 1).astype(np.int32)
        return rows

    def with_keys(self, keys: KeyArray) -> Int32Array:
        """Return the rows of these devices, of those that have one."""
        rows = self._rows.find(keys)
        known: Int32Array = rows[rows != NO_ROW]
        return known

    def of_keys(self, keys: KeyArray) -> Int32Array:
        """Return the row of each of these devices, which have no slots; new ones get one."""
        return self._rows.of(keys)

    def slots(self) -> Int32Array:
        """Return the slots of devices that have a row, as far as they were looked up."""
        return np.flatnonzero(self._after_row_of_slot > 0).astype(np.int32)

    def free(self, slots: Int32Array) -> None:
        """Take in that these slots may pass to other devices."""
        self._after_row_of_slot[slots[slots < len(self._after_row_of_slot)]] = 0

    def used(self) -> Int32Array:
        """Return the rows of all devices."""
        return self._rows.used()

    def drop(self, rows: Int32Array) -> None:
        """Forget the devices in these rows, which may pass to others. O(slots) if there are any."""
        if not len(rows):
            return
        self._rows.drop(rows)
        self._after_row_of_slot[np.isin(self._after_row_of_slot, rows + np.int32(1))] = 0

    def _make_room(self, slot: Int32Array) -> None:
        self._after_row_of_slot = with_room(self._after_row_of_slot, int(slot.max(initial=-1)) + 1)

    def state(self) -> dict[str, Any]:
        """Return which devices and slots have which rows."""
        return self._rows.state() | {"after": self._after_row_of_slot}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self._rows.restore(state)
        self._after_row_of_slot = state["after"]
