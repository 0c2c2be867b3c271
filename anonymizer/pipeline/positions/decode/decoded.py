"""What was decoded in a tick: positions as columns, and what became of what each input brought.

The accounts of the flow (`accounting.Ledger`) are for all inputs together, in which one input with
the wrong codec shows only as a share of refused messages. So each input is counted by itself, too.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from anonymizer.algorithms.positions.map_matching import OFF_GRAPH
from anonymizer.domain.arrays import BoolArray, FloatArray, Int32Array, IntArray, UInt8Array
from anonymizer.domain.outcomes import Outcome
from anonymizer.pipeline.devices import NO_SLOT, DeviceTable
from anonymizer.pipeline.ledger import FINAL
from anonymizer.pipeline.positions.decode.senders import Senders


@dataclass(slots=True, repr=False)
class Decoded:
    """Valid positions of a tick, in order of arrival."""

    senders: Senders
    sender: IntArray
    """Numbers in `senders` of what names the devices; below 0: -1 - the index in `names`."""
    ts: FloatArray
    """Unix seconds; NaN if the message states no time, and below 0 until `on_clock` has dated those
    that are relative to their arrival."""
    lat: FloatArray
    lon: FloatArray
    """`lat`, `lon`: degrees."""
    at_s: FloatArray
    """Monotonic arrival time of each position."""
    reading_row: IntArray
    reading_attribute: IntArray
    reading_value: FloatArray
    """`reading_row`, `reading_attribute`, `reading_value`: declared readings: row of the position
    that each came with, index of its attribute, and its value."""
    names: Sequence[str]
    """Ids of devices that have no number."""
    heading: FloatArray | None = None
    """Degrees clockwise from north, NaN where a mobile device states none or is slow, shape (n,);
    None: nowhere."""
    node: Int32Array | None = None
    """Node of each position, as map matching finds it, shape (n,); None: not asked yet."""
    id_changes: BoolArray | None = None
    """Whether the ids of each position's input change, shape (n,); None: those of none do."""
    input: Int32Array | None = None
    """Index of the input of each position, shape (n,); None: nobody asks."""
    accuracy_m: FloatArray | None = None
    """Stated accuracy of each position, metres, NaN for none, shape (n,); None: none states one."""
    message: IntArray | None = None
    """Number of the message that each position came in, shape (n,); None: each in its own."""
    hearsay: BoolArray | None = None
    """Which positions only a payload ascribes to their devices, shape (n,); None: none."""
    zoneless: BoolArray | None = None
    """Whether the time of each was taken for UTC because nobody said otherwise, shape (n,); None:
    that of none was."""

    def device(self, row: int) -> str:
        """Return the device id of a position."""
        return device_of(self.senders, int(self.sender[row]), self.names)

    def slots(
        self,
        rows: IntArray,
        devices: DeviceTable,
        *,
        are_near_roads: Callable[[IntArray], BoolArray] | None = None,
    ) -> Int32Array:
        """Return the slot of the device of each of these positions, shape (n,).

        New devices get one; `NO_SLOT` if all are taken, or if the last are kept for others: it is
        asked which rows are near roads if not all new devices may enter. None: no place is kept.
        """
        sender = self.sender[rows]
        slots = self.senders.slots(sender, devices)
        new = np.flatnonzero(slots == NO_SLOT)
        if len(new):
            said = self.senders.devices(sender[new].tolist(), self.names)
            first = None
            if are_near_roads is not None and len(new) > devices.n_for_all:
                first = are_near_roads(rows[new])
            slots[new] = devices.slots(said, first=first)
            self.senders.remember(sender[new], slots[new], devices)
        return slots


class DecodedTick(NamedTuple):
    """The valid positions of a tick, by what becomes of their devices.

    Positions by `Treatment`; `receipts` of all messages, valid or not, to be acknowledged once all
    are settled.
    """

    of: Sequence[Decoded]
    receipts: list[int]


def device_of(senders: Senders, sender: int, names: Sequence[str]) -> str:
    """Return the device id of a sender, see `Decoded.sender`."""
    return senders.device(sender) if sender >= 0 else names[-1 - sender]


def joined(parts: Sequence[DecodedTick]) -> DecodedTick:
    """Return at least one part of a tick, in order of arrival, as one.

    Either all parts know the nodes of their positions, or none does.
    """
    if len(parts) == 1:
        return parts[0]
    of = [_joined(each) for each in zip(*(part.of for part in parts), strict=True)]
    return DecodedTick(of, [receipt for part in parts for receipt in part.receipts])


def _joined(parts: Sequence[Decoded]) -> Decoded:
    first_row = np.cumsum([0, *(len(part.sender) for part in parts)]).tolist()
    first_name = np.cumsum([0, *(len(part.names) for part in parts)]).tolist()
    numbered = list(zip(parts, first_row, first_name, strict=False))
    return Decoded(
        parts[0].senders,
        np.concatenate([np.where(p.sender < 0, p.sender - n, p.sender) for p, _, n in numbered]),
        np.concatenate([part.ts for part in parts]),
        np.concatenate([part.lat for part in parts]),
        np.concatenate([part.lon for part in parts]),
        np.concatenate([part.at_s for part in parts]),
        np.concatenate([part.reading_row + row for part, row, _ in numbered]),
        np.concatenate([part.reading_attribute for part in parts]),
        np.concatenate([part.reading_value for part in parts]),
        [name for part in parts for name in part.names],
        _stated([part.heading for part in parts], parts),
        _node(parts),
        _id_changes(parts),
        _input(parts),
        _stated([part.accuracy_m for part in parts], parts),
        _message(parts),
        _marks([part.hearsay for part in parts], parts),
        _marks([part.zoneless for part in parts], parts),
    )


def _stated(columns: Sequence[FloatArray | None], parts: Sequence[Decoded]) -> FloatArray | None:
    """Return the columns of all parts as one, NaN in those that have none."""
    if all(column is None for column in columns):
        return None
    return np.concatenate(
        [
            np.full(len(part.sender), np.nan) if column is None else column
            for column, part in zip(columns, parts, strict=True)
        ]
    )


def _message(parts: Sequence[Decoded]) -> IntArray | None:
    known = [part.message for part in parts if part.message is not None]
    if len(known) < len(parts):
        return None
    n_before = np.cumsum([0, *(int(each.max(initial=-1)) + 1 for each in known)]).tolist()
    return np.concatenate([each + n for each, n in zip(known, n_before, strict=False)])


def _marks(columns: Sequence[BoolArray | None], parts: Sequence[Decoded]) -> BoolArray | None:
    """Return the columns of all parts as one, False in those that have none."""
    if all(column is None for column in columns):
        return None
    return np.concatenate(
        [
            np.zeros(len(part.sender), np.bool_) if column is None else column
            for column, part in zip(columns, parts, strict=True)
        ]
    )


def _id_changes(parts: Sequence[Decoded]) -> BoolArray | None:
    known = [part.id_changes for part in parts if part.id_changes is not None]
    return np.concatenate(known) if known else None


def _input(parts: Sequence[Decoded]) -> Int32Array | None:
    known = [part.input for part in parts if part.input is not None]
    return np.concatenate(known) if len(known) == len(parts) else None


def _node(parts: Sequence[Decoded]) -> Int32Array | None:
    known = [part.node for part in parts if part.node is not None]
    return np.concatenate(known) if len(known) == len(parts) else None


_N_OUTCOMES = 256


class InputCounts:
    """Messages and positions of each input by outcome; `HELD` stands for a usable one.

    `n_inputs`: number of inputs. What belongs to none is counted as of input -1.
    """

    def __init__(self, n_inputs: int) -> None:
        self.n_inputs = n_inputs
        self.n_of: IntArray = np.zeros((n_inputs + 1, _N_OUTCOMES), np.int64)
        """By input and outcome; the last row is for what belongs to none."""

    def settle(self, input_: int, outcome: Outcome) -> None:
        """Count one message or position."""
        self.n_of[input_, outcome] += 1

    def settle_all(self, input_: Int32Array, outcome: UInt8Array) -> None:
        """Count positions with the index of their input and their outcome, both shape (n,)."""
        if len(input_):
            cell = (input_ % (self.n_inputs + 1)) * _N_OUTCOMES + outcome.astype(np.int64)
            self.n_of += np.bincount(cell, minlength=self.n_of.size).reshape(self.n_of.shape)

    def refused(self, input_: int) -> dict[Outcome, int]:
        """Return how much of an input had each final outcome, zeros included."""
        return {outcome: int(self.n_of[input_, outcome]) for outcome in FINAL}

    def n_usable(self, input_: int) -> int:
        """Return how many positions of an input could be used."""
        return int(self.n_of[input_, Outcome.HELD])

    def since(self, before: IntArray) -> "InputCounts":
        """Return the counts since a copy of `n_of` was made."""
        rest = InputCounts(self.n_inputs)
        rest.n_of = self.n_of - before
        return rest

    def refusals(self) -> Mapping[tuple[int, Outcome], int]:
        """Return what was refused, by number of the input (from one) and outcome; no zeros."""
        found = np.argwhere(self.n_of[: self.n_inputs, 1:])
        return {
            (i + 1, Outcome(outcome + 1)): int(self.n_of[i, outcome + 1])
            for i, outcome in found.tolist()
        }


class LocatedInputs:
    """Counts the positions of one table of devices once it is known whether a road is near.

    Trip ends hold positions back, so the input is remembered by device: one that reports to several
    inputs counts for the one that it reported to last.

    `counts`: where they are counted.
    """

    def __init__(self, counts: InputCounts) -> None:
        self.counts = counts
        self._input_of: Int32Array = np.zeros(0, np.int32)

    def admit(self, slot: Int32Array, input_: Int32Array) -> None:
        """Remember which inputs these devices report to, both shape (n,)."""
        if len(slot):
            more = int(slot.max()) + 1 - len(self._input_of)
            if more > 0:
                room = np.full(max(more, len(self._input_of)), -1, np.int32)
                self._input_of = np.concatenate([self._input_of, room])
            self._input_of[slot] = input_

    def locate(self, slot: Int32Array, node: Int32Array) -> None:
        """Count positions of admitted devices with the nodes at which they were found."""
        outcome = np.where(node == OFF_GRAPH, Outcome.SUPPRESSED__OFF_GRAPH, Outcome.HELD)
        self.counts.settle_all(self._input_of[slot], outcome.astype(np.uint8))
