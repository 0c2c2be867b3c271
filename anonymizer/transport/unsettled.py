"""Deliveries that wait for our acknowledgement: which packet identifier each receipt stands for."""

from collections.abc import Iterable

import numpy as np

from anonymizer.domain.arrays import IntArray

_FEWEST = 1024
"""Room for so many at least."""


class Receipts:
    """Numbers that are used once, rising from one, over all connections of a link."""

    def __init__(self) -> None:
        self._next = 1

    def take(self, n: int) -> IntArray:
        """Return so many new numbers."""
        self._next += n
        return np.arange(self._next - n, self._next)


class Unsettled:
    """The deliveries of one connection that are not acknowledged yet.

    Parameters
    ----------
    receipts
        Shared by the connections of a link, so that receipts of one settle nothing on another.

    Notes
    -----
    Columns sorted by receipt: about 0.02 µs a delivery, a tenth of what a dict takes.
    """

    def __init__(self, receipts: Receipts) -> None:
        self._receipts = receipts
        self.clear()

    def clear(self) -> None:
        """Forget all of them: their connection is gone."""
        self._allocate(_FEWEST)
        self._end = self._n = 0

    def _allocate(self, n: int) -> None:
        self._receipt: IntArray = np.zeros(n, np.int64)
        self._mid: IntArray = np.zeros(n, np.int64)  # 0: acknowledged

    def __len__(self) -> int:
        """Return how many wait."""
        return self._n

    def add(self, mid: IntArray) -> IntArray:
        """Return the receipts of deliveries with these packet identifiers; 0 where that is 0."""
        receipt = np.zeros(len(mid), np.int64)
        expected = np.flatnonzero(mid)
        if len(expected):
            receipt[expected] = self._receipts.take(len(expected))
            self._append(receipt[expected], mid[expected])
        return receipt

    def _append(self, receipt: IntArray, mid: IntArray) -> None:
        if self._end + len(mid) > len(self._mid):
            kept, left = self.waiting(), self._n
            self._allocate(max(_FEWEST, 2 * (left + len(mid))))
            self._receipt[:left], self._mid[:left] = kept
            self._end = left
        at = slice(self._end, self._end + len(mid))
        self._receipt[at], self._mid[at] = receipt, mid
        self._end = at.stop
        self._n += len(mid)

    def waiting(self) -> tuple[IntArray, IntArray]:
        """Return receipt and packet identifier of each that waits, in order of arrival."""
        left = np.flatnonzero(self._mid[: self._end])
        return self._receipt[left], self._mid[left]

    def settle(self, receipts: Iterable[int]) -> IntArray:
        """Return the packet identifiers to acknowledge, each once, in the order of the receipts.

        Receipts of no delivery that waits are ignored.
        """
        given = receipts if isinstance(receipts, np.ndarray) else np.fromiter(receipts, np.int64)
        if not self._n or not len(given):
            return np.zeros(0, np.int64)
        if (np.diff(given) <= 0).any():  # else each is there once, as they come from a tick
            given = given[np.sort(np.unique(given, return_index=True)[1])]
        at = np.searchsorted(self._receipt[: self._end], given)
        at = np.minimum(at, self._end - 1)
        at = at[(self._receipt[at] == given) & (self._mid[at] > 0)]
        mid: IntArray = self._mid[at]
        self._mid[at] = 0
        self._n -= len(mid)
        return mid
