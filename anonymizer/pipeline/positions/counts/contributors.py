"""Which devices contributed to a public counter: once they are heard on the road afterwards.

What a device sends from a zone, off the roads, near the end of a trip or as its last message is
never counted, as if it had been switched off. Of a device of which no position has ever come
nobody knows where it is; it counts at once.
"""

from collections import deque
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from anonymizer.domain.arrays import BoolArray, Int32Array, IntArray, UInt8Array, with_room
from anonymizer.domain.outcomes import Outcome
from anonymizer.pipeline.devices import NO_ROW, NO_SLOT, DeviceTable
from anonymizer.pipeline.positions.decode.decoded import device_of
from anonymizer.pipeline.positions.decode.senders import Senders
from anonymizer.pipeline.positions.tick.device_rows import DeviceRows

if TYPE_CHECKING:
    from anonymizer.pipeline.positions.tick.intake import LocatedPositions

_N_OUTCOMES = 256
_OF_ATTRIBUTES = 2**40
_OF_NO_INPUT = -1


def counter_of(outcome: UInt8Array, input_: Int32Array | int = _OF_NO_INPUT) -> IntArray:
    """Return the counters of what could not be used, by input if it is known, same shape."""
    return np.asarray(input_, np.int64) * _N_OUTCOMES + outcome


def counter_of_attribute(attribute: IntArray) -> IntArray:
    """Return the counters of readings outside the declared range, same shape."""
    return _OF_ATTRIBUTES + attribute


def counted_by(counter: int) -> tuple[int | None, int | None, Outcome]:
    """Return the attribute of a counter, or its input, if it has one, and its outcome."""
    if counter >= _OF_ATTRIBUTES:
        return counter - _OF_ATTRIBUTES, None, Outcome.HELD
    input_, outcome = divmod(counter, _N_OUTCOMES)
    return None, None if input_ == _OF_NO_INPUT else input_, Outcome(outcome)


class _Noted(NamedTuple):
    """Rows of devices, and the columns of the counters to which they contribute, shape (n,)."""

    at_s: float
    row: Int32Array
    column: IntArray


class Contributors:
    """Which devices of a fleet contributed to which counters since these last moved.

    Parameters
    ----------
    devices
        The table of the fleet; with `most_devices` no further ones are noted.
    delay_s
        By how much the positions of a tick are older than it, for protected trip ends.
    kept_s
        A device that sends nothing for longer is forgotten, if it has not contributed.

    Notes
    -----
    A tick costs nothing as long as all that arrives can be used; then a look at each position.
    """

    def __init__(
        self, devices: DeviceTable, *, delay_s: float, kept_s: float, most_devices: int
    ) -> None:
        self._devices, self._most_devices = devices, most_devices
        self._delay_s, self._kept_s = delay_s, kept_s
        self._rows = DeviceRows(devices.keys)
        self._column_of: dict[int, int] = {}
        self._waits: BoolArray = np.zeros((0, 0), np.bool_)
        """By device and counter: it contributes if it is heard on the road again."""
        self._counts: BoolArray = np.zeros((0, 0), np.bool_)
        self._is_known: BoolArray = np.zeros(0, np.bool_)
        """Whether a position of the device has ever come."""
        self._active_s = np.zeros(0)
        self._fresh: list[tuple[Int32Array, IntArray]] = []
        self._noted: deque[_Noted] = deque()

    def note(self, slot: Int32Array, counter: IntArray) -> None:
        """Note devices, and the counters to which they may contribute, shape (n,)."""
        if len(slot):
            device, counter = _distinct(slot.astype(np.int64), counter)
            self._put(self._rows.of(device.astype(np.int32)), counter, known=True)

    def note_senders(
        self, senders: Senders, sender: IntArray, counter: IntArray, names: Sequence[str] = ()
    ) -> None:
        """Note devices by what names them, see `Decoded`; nobody where nothing does."""
        if not len(sender):
            return
        sender, counter = _distinct(sender, counter)
        slot = senders.slots(sender, self._devices)
        unnamed = np.flatnonzero(slot == NO_SLOT)
        names_of = [device_of(senders, each, names) for each in sender[unnamed].tolist()]
        key = np.array([self._devices.key(name) for name in names_of], np.uint64)
        slot[unnamed] = [self._devices.find(each) for each in key.tolist()]
        is_present = slot != NO_SLOT
        self.note(slot[is_present], counter[is_present])
        somebody = np.array([bool(name) for name in names_of], np.bool_)
        new = somebody & ~is_present[unnamed]
        if new.any() and len(self._rows) < self._most_devices:
            self._put(self._rows.of_keys(key[new]), counter[unnamed[new]], known=False)

    def tick(self, located: "LocatedPositions") -> None:
        """Let those contribute that were heard on the road after what was noted of them."""
        slot, node, now = located.positions.slot, located.node, located.now
        for row, column in self._fresh:
            self._active_s[row] = now
            self._noted.append(_Noted(now, row, column))
        self._fresh = []
        if len(self._rows):
            row = self._rows.find(slot)
            self._waits[row[(row != NO_ROW) & (node < 0)]] = False
            heard = row[(row != NO_ROW) & (node >= 0)]
            self._counts[heard] |= self._waits[heard]
            self._waits[heard] = False
        while self._noted and self._noted[0].at_s <= now - self._delay_s:
            _, row, column = self._noted.popleft()
            known = self._is_known[row]
            self._waits[row[known], column[known]] = True
            self._counts[row[~known], column[~known]] = True

    def free(self, slots: Int32Array) -> None:
        """Take in that these slots may pass to other devices."""
        self._rows.free(slots)

    def n_of(self) -> dict[int, int]:
        """Return how many distinct devices have contributed to each counter."""
        n = self._counts.sum(axis=0).tolist()
        return {counter: n[column] for counter, column in self._column_of.items()}

    def forget(self, counters: Collection[int], *, now: float) -> None:
        """Begin anew with these counters, and forget devices that are gone."""
        if not len(self._rows):
            return
        moved = [self._column_of[each] for each in counters if each in self._column_of]
        self._counts[:, moved] = False
        used = self._rows.used()
        silent = self._active_s[used] < now - self._kept_s - self._delay_s
        gone = used[silent & ~self._counts[used].any(axis=1)]
        self._waits[gone] = self._is_known[gone] = False
        self._rows.drop(gone)

    def _put(self, row: Int32Array, counter: IntArray, *, known: bool) -> None:
        n_rows = int(row.max()) + 1
        self._is_known = with_room(self._is_known, n_rows)
        self._active_s = with_room(self._active_s, n_rows)
        column = [self._column_of.setdefault(c, len(self._column_of)) for c in counter.tolist()]
        self._waits = _wide(with_room(self._waits, n_rows), len(self._column_of))
        self._counts = _wide(with_room(self._counts, n_rows), len(self._column_of))
        self._is_known[row] |= known
        self._fresh.append((row, np.array(column)))


def _distinct(device: IntArray, counter: IntArray) -> tuple[IntArray, IntArray]:
    order = np.lexsort((counter, device))
    device, counter = device[order], counter[order]
    first = np.ones(len(order), np.bool_)
    first[1:] = (np.diff(device) != 0) | (np.diff(counter) != 0)
    return device[first], counter[first]


def _wide(items: BoolArray, n_columns: int) -> BoolArray:
    missing = n_columns - items.shape[1]
    return np.pad(items, ((0, 0), (0, missing))) if missing > 0 else items
