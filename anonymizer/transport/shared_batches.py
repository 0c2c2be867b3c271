"""Batches of deliveries in memory that two processes share: one puts them in, one takes them out.

The memory has no name, so nothing is left of it when both processes are gone, however they end.
"""

import mmap
import os

import msgspec
import numpy as np

from anonymizer.pipeline.packed import Packed, PackedDeliveries

_ROW_BYTES = 4 * 4 + 8 + 1
"""Of bounds, receipt and whether it is retained, for each message."""


class Place(msgspec.Struct, frozen=True):
    """Where a batch is: first byte, number of messages, and bytes of their topics and payloads."""

    start: int
    n: int
    n_bytes: int

    @property
    def size(self) -> int:
        """Bytes of the batch in the memory."""
        return self.n_bytes + _ROW_BYTES * self.n


def open_memory(n_bytes: int) -> int:
    """Return the file descriptor of new memory, on Linux. A child process can inherit it."""
    file = os.memfd_create("anonymizer batches")
    os.ftruncate(file, n_bytes)
    return file


class SharedBatches:
    """One process's view of the memory. Batches are taken in the order in which they were put.

    Parameters
    ----------
    file
        File descriptor of the memory, see `open_memory`. It may be closed afterwards.

    Notes
    -----
    The memory begins anew whenever it is empty, which it mostly is, so that few of its pages are
    ever touched.
    """

    def __init__(self, file: int) -> None:
        self._memory = mmap.mmap(file, os.fstat(file).st_size)
        self._head = self._n_used = 0

    def __repr__(self) -> str:
        """Reveal neither device nor place."""
        return f"SharedBatches({len(self._memory)} bytes)"

    def put(self, batch: PackedDeliveries) -> Place | None:
        """Copy a batch into the memory; None: there is no room until more is released.

        Raises
        ------
        ValueError
            If the batch is larger than the memory.
        """
        bounds, receipt, retained = batch.columns
        first, last = (int(bounds[0, 0]), int(bounds[-1, 3])) if len(bounds) else (0, 0)
        if self._n_used == 0:
            self._head = 0
        place = Place(self._head, len(bounds), last - first)
        if place.size > len(self._memory):
            raise ValueError("a batch is larger than the shared memory")
        if place.start + place.size > len(self._memory):
            return None
        moved = bounds + np.int32(_ROW_BYTES * len(bounds) - first)
        parts = (receipt.tobytes(), moved.tobytes(), retained.tobytes())
        block = b"".join([*parts, batch.stream[first:last]])
        self._memory[place.start : place.start + place.size] = block
        self._head += place.size
        self._n_used += place.size
        return place

    def release(self, place: Place) -> None:
        """Use the room of a batch again: the other process has taken it."""
        self._n_used -= place.size

    def take(self, place: Place) -> PackedDeliveries:
        """Return a copy of a batch that the other process has put."""
        block, n = self._memory[place.start : place.start + place.size], place.n
        # Copies, because kernels are compiled for arrays that can be written.
        columns = Packed(
            np.frombuffer(block, np.int32, 4 * n, 8 * n).reshape(n, 4).copy(),
            np.frombuffer(block, np.int64, n).copy(),
            np.frombuffer(block, np.bool_, n, 24 * n).copy(),
        )
        return PackedDeliveries(block, columns)

    def close(self) -> None:
        """Give the memory back; what was taken stays."""
        self._memory.close()
