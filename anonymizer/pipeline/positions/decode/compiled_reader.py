"""The compiled reader: the bytes of many messages become columns of positions.

A message is read here if it has exactly the layout that its codec describes (`codecs.layouts`), and
states a valid position in plain texts and numbers (`flat_json`, `flat_msgpack`). Any doubt leaves
it to its codec.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from anonymizer.algorithms.kernels import kernel
from anonymizer.codecs.layouts import Layout
from anonymizer.domain.arrays import BoolArray, Int32Array, IntArray, RecordArray
from anonymizer.domain.discreet import discreet
from anonymizer.pipeline.name_hashes import Bytes
from anonymizer.pipeline.positions.decode.flat_json import json_message
from anonymizer.pipeline.positions.decode.flat_msgpack import msgpack_message
from anonymizer.pipeline.positions.decode.json_values import MAX_CODE_BYTES, code
from anonymizer.pipeline.positions.decode.layout_members import name_place

NO_LAYOUT = -1
"""In place of a layout: the message is left to its codec."""

POSITION = np.dtype(
    [
        ("message", np.int32),
        ("start", np.int32),
        ("end", np.int32),
        ("lat", np.float64),
        ("lon", np.float64),
        ("ts", np.float64),
    ]
)
"""Index of the message, start and end of the stated device id in the bytes (0, 0 if there is none),
valid degrees, and unix seconds (NaN if the message states no time)."""
READING = np.dtype([("row", np.int64), ("attribute", np.int64), ("value", np.float64)])
"""The position that a reading came with, index of its attribute, and its value."""

_LAYOUT = np.dtype(
    [("low", np.int64), ("high", np.int64), ("many", np.bool_), ("msgpack", np.bool_)]
)
_MEMBER = np.dtype(
    [
        ("low", np.int64),
        ("high", np.int64),
        ("role", np.int64),
        ("attribute", np.int64),
        ("factor", np.float64),
        ("places", np.int64),
    ]
)
"""`places`, of a layout's first member: a bit for each `name_place` of all."""
_FEWEST_BYTES = len(b"\x82\xa3lat\x01\xa3lon\x01")
"""No position takes less. No reading takes less than 2."""


@discreet
class Found(NamedTuple):
    """What was read of a batch of messages, in order of arrival.

    `positions` and `readings` are records of the types `POSITION` and `READING`; `left` are the
    indices of the messages that are left to their codecs, rising.
    """

    positions: RecordArray
    readings: RecordArray
    left: IntArray


class Reader:
    """Reads messages of several layouts.

    Messages refer to `layouts` by index; readings that are not in `attribute_of` are left out.
    """

    def __init__(self, layouts: Sequence[Layout], attribute_of: Mapping[str, int]) -> None:
        most = max((len(layout.members) for layout in layouts), default=0)
        self._layouts: RecordArray = np.zeros(len(layouts), _LAYOUT)
        self._members: RecordArray = np.zeros((len(layouts), most), _MEMBER)
        self._members["low"] = -1  # matches no name
        for i, layout in enumerate(layouts):
            self._layouts[i] = (*code(layout.kind), layout.many, layout.msgpack)
            for j, (name, member) in enumerate(layout.members.items()):
                if max(len(name), len(layout.kind)) > MAX_CODE_BYTES:
                    raise ValueError("a layout has a longer name than this reader knows")
                attribute = attribute_of.get(member.reading, -1)
                self._members[i, j] = (*code(name), member.role, attribute, member.factor, 0)
            for low in {code(name)[0] for name in layout.members}:
                self._members["places"][i, 0] |= 1 << name_place(low)
        names = [name.encode() for name in sorted(attribute_of, key=attribute_of.__getitem__)]
        self._names = np.frombuffer(b"".join(names), np.uint8)
        self._name_end = np.cumsum([0, *map(len, names)])

    def read(
        self,
        stream: Bytes,
        bounds: Int32Array,
        retained: BoolArray,
        layout: Int32Array,
        *,
        max_payload_bytes: int,
        max_positions: int,
    ) -> Found:
        """Return the positions of those messages that can be read here. About 0.1 µs each.

        The messages as in `PackedDeliveries`, shape (n,), and the index of the layout of each, or
        `NO_LAYOUT`. Those beyond the limits are left, as are retained ones without a time.
        """
        names = (self._names, self._name_end)
        limits = (max_payload_bytes, max_positions)
        return Found(
            *_read(stream, bounds, retained, layout, self._layouts, self._members, *names, *limits)
        )


@kernel
def _read(
    stream: Bytes,
    bounds: Int32Array,
    retained: BoolArray,
    layout_of: Int32Array,
    layouts: RecordArray,
    members: RecordArray,
    names: Bytes,
    name_end: IntArray,
    max_payload_bytes: int,
    max_positions: int,
) -> tuple[RecordArray, RecordArray, IntArray]:
    """Return the fields of `Found`."""
    most = 0
    for i in range(len(bounds)):
        if layout_of[i] != NO_LAYOUT:
            most += 1 + (bounds[i, 3] - bounds[i, 2]) // _FEWEST_BYTES
    positions = np.empty(most, POSITION)
    readings = np.empty(most * min(len(name_end) - 1, _FEWEST_BYTES), READING)
    left = np.empty(len(bounds), np.int64)
    n = n_readings = n_left = 0
    for i in range(len(bounds)):
        first, first_reading = n, n_readings
        at, end = int(np.int64(bounds[i, 2])), int(np.int64(bounds[i, 3]))
        if layout_of[i] == NO_LAYOUT or end - at > max_payload_bytes:
            at = -1
        elif layouts[layout_of[i]]["msgpack"]:
            at, n, n_readings = msgpack_message(
                stream, at, end, layouts[layout_of[i]], members[layout_of[i]], names, name_end,
                positions, n, readings, n_readings, max_positions,
            )  # fmt: skip
        else:
            at, n, n_readings = json_message(
                stream, at, end, layouts[layout_of[i]], members[layout_of[i]], names, name_end,
                positions, n, readings, n_readings, max_positions,
            )  # fmt: skip
        is_read = at == end
        for j in range(first, n):
            positions[j]["message"] = i
            is_read &= not (retained[i] and np.isnan(positions[j]["ts"]))
        if not is_read:
            n, n_readings = first, first_reading
            left[n_left] = i
            n_left += 1
    return positions[:n], readings[:n_readings], left[:n_left]
