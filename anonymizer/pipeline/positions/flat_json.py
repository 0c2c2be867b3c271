"""Flat JSON, read by compiled kernels: the bytes of many messages become columns of positions.

A message is read here if it has exactly the layout that its codec describes (`codecs.layouts`), and
states a valid position in plain texts and numbers (`json_values`). Any doubt leaves it to its
codec.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from anonymizer.algorithms.kernels import inner_kernel, kernel
from anonymizer.codecs.layouts import Layout, Role
from anonymizer.domain.arrays import BoolArray, Int32Array, IntArray, RecordArray
from anonymizer.pipeline.names import Bytes
from anonymizer.pipeline.positions.json_values import (
    CLOSE_ARRAY,
    CLOSE_OBJECT,
    COMMA,
    LOWER_N,
    MAX_CODE_BYTES,
    OPEN_ARRAY,
    OPEN_OBJECT,
    QUOTE,
    SPACE,
    code,
    device,
    member_name,
    number,
    skipped,
    space_end,
    starts_number,
    text,
)

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

_LAYOUT = np.dtype([("low", np.int64), ("high", np.int64), ("many", np.bool_)])
_MEMBER = np.dtype(
    [
        ("low", np.int64),
        ("high", np.int64),
        ("role", np.int64),
        ("attribute", np.int64),
        ("factor", np.float64),
    ]
)
_FEWEST_BYTES = len(b'{"lat":1,"lon":1}')
"""No position takes less. A reading takes at least 4 bytes, and so does what is not a position."""
_IGNORED, _LAT, _LON, _TIME, _DEVICE, _DEVICE_OR_NUMBER, _KIND, _READINGS, _READING = (
    int(role) for role in Role
)
_NAN = float("nan")


class Found(NamedTuple):
    """What was read of a batch of messages, in order of arrival.

    Attributes
    ----------
    positions
        Records of the type `POSITION`.
    readings
        Records of the type `READING`.
    left
        Indices of the messages that are left to their codecs, rising.
    """

    positions: RecordArray
    readings: RecordArray
    left: IntArray

    def __repr__(self) -> str:
        """Reveal neither device nor place."""
        return "Found(...)"


class Reader:
    """Reads messages of several layouts.

    Parameters
    ----------
    layouts
        Messages refer to these by index.
    attribute_of
        Index of each declared reading by name. Other readings are left out.
    """

    def __init__(self, layouts: Sequence[Layout], attribute_of: Mapping[str, int]) -> None:
        most = max((len(layout.members) for layout in layouts), default=0)
        self._layouts: RecordArray = np.zeros(len(layouts), _LAYOUT)
        self._members: RecordArray = np.zeros((len(layouts), most), _MEMBER)
        self._members["low"] = -1  # matches no name
        for i, layout in enumerate(layouts):
            self._layouts[i] = (*code(layout.kind), layout.many)
            for j, (name, member) in enumerate(layout.members.items()):
                if max(len(name), len(layout.kind)) > MAX_CODE_BYTES:
                    raise ValueError("a layout has a longer name than this reader knows")
                attribute = attribute_of.get(member.reading, -1)
                self._members[i, j] = (*code(name), member.role, attribute, member.factor)
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

        Parameters
        ----------
        stream, bounds, retained
            The messages, see `pipeline.packed`, shape (n,).
        layout
            Index of the layout of each message, or `NO_LAYOUT`.
        max_payload_bytes, max_positions
            Messages beyond these limits are left, as are retained ones without a time.
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
        is_read = layout_of[i] != NO_LAYOUT and end - at <= max_payload_bytes
        if is_read:
            layout, of_layout = layouts[layout_of[i]], members[layout_of[i]]
            at = space_end(stream, at, end)
            is_array = at < end and stream[at] == OPEN_ARRAY and layout["many"]
            at += is_array
            while True:
                at, n_readings = _object(
                    stream, at, end, layout, of_layout, names, name_end,
                    positions, n, readings, n_readings,
                )  # fmt: skip
                is_read = at >= 0 and n - first < max_positions
                is_read &= not (retained[i] and np.isnan(positions[n]["ts"]))
                if not is_read:
                    break
                positions[n]["message"] = i
                n += 1
                at = space_end(stream, at, end)
                if not is_array or at >= end or stream[at] != COMMA:
                    break
                at += 1
            if is_read and is_array:
                is_read = at < end and stream[at] == CLOSE_ARRAY
                at = space_end(stream, at + 1, end)
            is_read &= at == end
        if not is_read:
            n, n_readings = first, first_reading
            left[n_left] = i
            n_left += 1
    return positions[:n], readings[:n_readings], left[:n_left]


@inner_kernel
def _object(
    stream: Bytes,
    at: int,
    end: int,
    layout: np.void,
    members: RecordArray,
    names: Bytes,
    name_end: IntArray,
    positions: RecordArray,
    n: int,
    readings: RecordArray,
    n_readings: int,
) -> tuple[int, int]:
    """Read the object at `at` into position `n`.

    Returns
    -------
    Where it ends, -1 if it is to be left; and the number of readings so far.
    """
    position = positions[n]
    position["lat"] = position["lon"] = position["ts"] = _NAN
    position["start"] = position["end"] = 0
    at = space_end(stream, at, end)
    separator = COMMA if at < end and stream[at] == OPEN_OBJECT else SPACE
    seen = 0
    while separator == COMMA:
        low, high, at = member_name(stream, at + 1, end)
        which = _member(members, low, high)
        if at < 0 or (which >= 0 and seen >> which & 1):
            return -1, n_readings
        if which < 0:
            at = skipped(stream, at, end)
        elif members[which]["role"] == _READINGS:
            at, n_readings = _readings(stream, at, end, names, name_end, n, readings, n_readings)
        else:
            at, n_readings = _value(
                stream, at, end, layout, members[which], position, n, readings, n_readings
            )
        if at < 0:
            return -1, n_readings
        seen |= 1 << which if which >= 0 else 0
        at = space_end(stream, at, end)
        separator = stream[at] if at < end else SPACE
    lat, lon = position["lat"], position["lon"]
    # NaN, which is no coordinate, where one is missing.
    is_valid = -90.0 <= lat <= 90.0 and -180.0 <= lon <= 180.0 and not lat == lon == 0.0
    for j in range(len(members)):
        is_valid &= members[j]["role"] != _KIND or seen >> j & 1 == 1
    return at + 1 if is_valid and separator == CLOSE_OBJECT else -1, n_readings


@inner_kernel
def _member(members: RecordArray, low: int, high: int) -> int:
    """Return the index of the member with this code, -1 if the layout has none."""
    for j in range(len(members)):
        if members[j]["low"] == low and members[j]["high"] == high:
            return j
    return -1


@inner_kernel
def _value(
    stream: Bytes,
    at: int,
    end: int,
    layout: np.void,
    member: np.void,
    position: np.void,
    n: int,
    readings: RecordArray,
    n_readings: int,
) -> tuple[int, int]:
    """Read the value of a member, return as `_object` does."""
    role, char = member["role"], stream[at] if at < end else SPACE
    if role == _LAT:
        position["lat"], at = number(stream, at, end)
    elif role == _LON:
        position["lon"], at = number(stream, at, end)
    elif role == _TIME and char != LOWER_N:
        position["ts"], at = number(stream, at, end)
    elif role in (_DEVICE, _DEVICE_OR_NUMBER) and char != LOWER_N:
        at, position["start"], position["end"] = device(stream, at, end, role == _DEVICE_OR_NUMBER)
    elif role == _KIND:
        low, high, at = text(stream, at, end)
        if low != layout["low"] or high != layout["high"]:
            at = -1
    elif role == _READING and member["attribute"] >= 0 and starts_number(char):
        value, at = number(stream, at, end)
        value *= member["factor"]
        if value >= 0:
            readings[n_readings]["row"], readings[n_readings]["attribute"] = n, member["attribute"]
            readings[n_readings]["value"] = value
            n_readings += 1
    else:
        at = skipped(stream, at, end)
    return at, n_readings


@inner_kernel
def _readings(
    stream: Bytes,
    at: int,
    end: int,
    names: Bytes,
    name_end: IntArray,
    n: int,
    readings: RecordArray,
    n_readings: int,
) -> tuple[int, int]:
    """Read an object of numbers, return as `_object` does. A declared one must not be repeated."""
    first = n_readings
    separator = COMMA if at < end and stream[at] == OPEN_OBJECT else SPACE
    while separator == COMMA:
        start = space_end(stream, at + 1, end) + 1
        _, _, at = member_name(stream, at + 1, end)
        if at < 0:
            return -1, n_readings
        value, at = number(stream, at, end)
        if at < 0:
            return -1, n_readings
        found = _index(stream, start, names, name_end)
        for i in range(first, n_readings):
            if readings[i]["attribute"] == found:
                return -1, n_readings
        if found >= 0:
            readings[n_readings]["row"], readings[n_readings]["attribute"] = n, found
            readings[n_readings]["value"] = value
            n_readings += 1
        at = space_end(stream, at, end)
        separator = stream[at] if at < end else SPACE
    return at + 1 if separator == CLOSE_OBJECT else -1, n_readings


@inner_kernel
def _index(stream: Bytes, start: int, names: Bytes, name_end: IntArray) -> int:
    """Return the index of the name that begins at `start` and ends at a quote; -1 if unknown."""
    for j in range(len(name_end) - 1):
        at, i = start, name_end[j]
        while i < name_end[j + 1] and stream[at] == names[i]:
            at, i = at + 1, i + 1
        if i == name_end[j + 1] and stream[at] == QUOTE:
            return j
    return -1
