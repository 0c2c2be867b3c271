"""Rows of devices that are counted: a device keeps its row when its slot is freed.

When a slot is freed depends on other devices too: the members of a group keep theirs for as long as
the group lives. What is counted of a device must not depend on others.
"""

import numpy as np
from numpy.typing import NDArray

from anonymizer.algorithms.positions.district_operator import Keys
from anonymizer.domain.arrays import Int32Array
from anonymizer.pipeline.names import with_room


class DeviceRows:
    """Assigns a row, a small integer, to each device.

    Parameters
    ----------
    keys
        Returns a number for the device of each slot.

    Attributes
    ----------
    key
        Of the device in each row, shape (rows or more,).

    Notes
    -----
    A position costs one look into an array. A device costs one look into a table when it appears,
    and after its slot was freed.
    """

    def __init__(self, keys: Keys) -> None:
        self.key: NDArray[np.uint64] = np.zeros(0, np.uint64)
        self._keys = keys
        self._row_of: dict[int, int] = {}
        self._after_row_of_slot: Int32Array = np.zeros(0, np.int32)
        """0: the device of the slot has not been looked up."""
        self._free: list[int] = []

    def __len__(self) -> int:
        """Return the number of devices that have a row."""
        return len(self._row_of)

    def of(self, slot: Int32Array) -> Int32Array:
        """Return the row of the device in each slot, shape (n,)."""
        self._after_row_of_slot = with_room(self._after_row_of_slot, int(slot.max(initial=-1)) + 1)
        unknown = np.unique(slot[self._after_row_of_slot[slot] == 0])
        for each, key in zip(unknown.tolist(), self._keys(unknown).tolist(), strict=True):
            self._after_row_of_slot[each] = self._row(key) + 1
        rows: Int32Array = self._after_row_of_slot[slot] - np.int32(1)
        return rows

    def free(self, slots: Int32Array) -> None:
        """Take in that these slots may pass to other devices."""
        self._after_row_of_slot[slots[slots < len(self._after_row_of_slot)]] = 0

    def drop(self, rows: Int32Array) -> None:
        """Forget the devices in these rows, which may pass to others. O(slots) if there are any."""
        if not len(rows):
            return
        for key in self.key[rows].tolist():
            self._free.append(self._row_of.pop(key))
        self._after_row_of_slot[np.isin(self._after_row_of_slot, rows + np.int32(1))] = 0

    def _row(self, key: int) -> int:
        row = self._row_of.get(key)
        if row is None:
            row = self._free.pop() if self._free else len(self._row_of)
            self._row_of[key] = row
            self.key = with_room(self.key, row + 1)
            self.key[row] = key
        return row
