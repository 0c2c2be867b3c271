"""Decoded positions of a tick as columns, and those of several parts of a tick as one."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from anonymizer.domain.arrays import BoolArray, FloatArray, Int32Array, IntArray
from anonymizer.pipeline.devices import NO_SLOT, DeviceTable
from anonymizer.pipeline.positions.decode.senders import Senders


@dataclass(slots=True, repr=False)
class Decoded:
    """Valid positions of a tick, in order of arrival.

    Attributes
    ----------
    sender
        Numbers in `senders` of what names the devices; below 0: -1 - the index in `names`.
    ts
        Unix seconds; NaN if the message states no time.
    lat, lon
        Degrees.
    at_s
        Monotonic arrival time of each position.
    reading_row, reading_attribute, reading_value
        Declared readings: row of the position that each came with, index of its attribute, and
        its value.
    names
        Ids of devices that have no number.
    heading
        Degrees clockwise from north, NaN where a mobile device states none or is slow, shape (n,);
        None: nowhere.
    node
        Node of each position, as map matching finds it, shape (n,); None: not asked yet.
    id_changes
        Whether the ids of each position's input change, shape (n,); None: those of none do.
    input
        Index of the input of each position, shape (n,); None: nobody asks.
    """

    senders: Senders
    sender: IntArray
    ts: FloatArray
    lat: FloatArray
    lon: FloatArray
    at_s: FloatArray
    reading_row: IntArray
    reading_attribute: IntArray
    reading_value: FloatArray
    names: Sequence[str]
    heading: FloatArray | None = None
    node: Int32Array | None = None
    id_changes: BoolArray | None = None
    input: Int32Array | None = None

    def device(self, row: int) -> str:
        """Return the device id of a position."""
        return device_of(self.senders, int(self.sender[row]), self.names)

    def slots(self, rows: IntArray, devices: DeviceTable) -> Int32Array:
        """Return the slot of the device of each of these positions, shape (n,).

        New devices get one; `NO_SLOT` if all are taken.
        """
        sender = self.sender[rows]
        slots = self.senders.slots(sender, devices)
        new = np.flatnonzero(slots == NO_SLOT)
        if len(new):
            slots[new] = [devices.slot(self.device(row)) for row in rows[new].tolist()]
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
        _heading(parts),
        _node(parts),
        _id_changes(parts),
        _input(parts),
    )


def _heading(parts: Sequence[Decoded]) -> FloatArray | None:
    """Return the headings of all parts, NaN in those that have none."""
    if all(part.heading is None for part in parts):
        return None
    return np.concatenate(
        [
            np.full(len(part.sender), np.nan) if part.heading is None else part.heading
            for part in parts
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
