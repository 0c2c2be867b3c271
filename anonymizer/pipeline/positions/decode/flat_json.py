"""Flat JSON messages, read by compiled kernels; see `compiled_reader`."""

import numpy as np

from anonymizer.algorithms.kernels import inlined_kernel, inner_kernel
from anonymizer.codecs.layouts import LEAST_TIME_S, MOST_TIME_S, Role
from anonymizer.domain.arrays import IntArray, RecordArray
from anonymizer.pipeline.name_hashes import Bytes
from anonymizer.pipeline.positions.decode.json_values import (
    CLOSE_ARRAY,
    CLOSE_OBJECT,
    COMMA,
    LOWER_N,
    OPEN_ARRAY,
    OPEN_OBJECT,
    QUOTE,
    SPACE,
    after_colon,
    device,
    number,
    short_text,
    skipped,
    space_end,
    starts_number,
    text_end,
)
from anonymizer.pipeline.positions.decode.layout_members import (
    has_kind,
    is_noted,
    member_index,
    name_index,
    note,
)

_LAT, _LON, _TIME, _DEVICE, _DEVICE_OR_NUMBER, _KIND, _READINGS, _READING, _ACCURACY, _SIGN = (
    int(role) for role in Role if role != Role.IGNORED
)
_NAN = float("nan")


@inlined_kernel
def json_message(
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
    max_positions: int,
) -> tuple[int, int, int]:
    """Read the message at `at` into the positions and readings, from `n` and `n_readings` on.

    Returns
    -------
    Where it ends, -1 if it is to be left; and the number of positions and of readings so far.
    """
    first = n
    at = space_end(stream, at, end)
    is_array = at < end and stream[at] == OPEN_ARRAY and layout["many"]
    at += is_array
    separator = COMMA
    while separator == COMMA:
        at, n_readings = _object(
            stream, at, end, layout, members, names, name_end, positions, n, readings, n_readings
        )
        n += 1
        if at < 0 or n - first > max_positions:
            return -1, n, n_readings
        at = space_end(stream, at, end)
        separator = SPACE
        if is_array:
            separator = stream[at] if at < end else SPACE
            at += 1
    if is_array and separator != CLOSE_ARRAY:
        return -1, n, n_readings
    return space_end(stream, at, end), n, n_readings


@inlined_kernel
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
        low, high, at = short_text(stream, space_end(stream, at + 1, end), end)
        at = after_colon(stream, at, end)
        which = member_index(members, low, high)
        if at < 0 or (which >= 0 and seen >> which & 1):
            return -1, n_readings
        if which < 0:
            at = skipped(stream, at, end)
        elif members[which]["role"] == _READINGS:
            accuracy = members[which]["attribute"]
            at, n_readings = _readings(
                stream, at, end, names, name_end, n, readings, n_readings, accuracy
            )
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
    is_valid &= has_kind(members, seen)
    return at + 1 if is_valid and separator == CLOSE_OBJECT else -1, n_readings


@inlined_kernel
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
    if role in (_LAT, _LON) or (role == _TIME and char != LOWER_N):
        value, at = number(stream, at, end)
        if role == _LAT:
            position["lat"] = value
        elif role == _LON:
            position["lon"] = value
        else:
            position["ts"] = value
            at = at if LEAST_TIME_S < value < MOST_TIME_S else -1
    elif role in (_READING, _ACCURACY) and member["attribute"] >= 0:
        at, n_readings = _reading(stream, at, end, member, n, readings, n_readings)
    elif role in (_DEVICE, _DEVICE_OR_NUMBER) and char != LOWER_N:
        at, position["start"], position["end"] = device(stream, at, end, role == _DEVICE_OR_NUMBER)
    elif role == _KIND:
        low, high, at = short_text(stream, at, end)
        if low != layout["low"] or high != layout["high"]:
            at = -1
    elif role == _SIGN:
        at = -1
    else:
        at = skipped(stream, at, end)
    return at, n_readings


@inlined_kernel
def _reading(
    stream: Bytes,
    at: int,
    end: int,
    member: np.void,
    n: int,
    readings: RecordArray,
    n_readings: int,
) -> tuple[int, int]:
    """Read a declared reading, NaN if it is no number; return as `_object` does."""
    attribute, value = member["attribute"], _NAN
    if is_noted(readings, n_readings, n, attribute) or (at < end and stream[at] == QUOTE):
        return -1, n_readings  # a text may be a number
    if at < end and starts_number(stream[at]):
        value, at = number(stream, at, end)
        value *= member["factor"]
        if value < 0 and member["role"] == _ACCURACY:
            return -1, n_readings  # there is no fix
        value = value if value >= 0 else _NAN
    else:
        at = skipped(stream, at, end)
    return at, note(readings, n_readings, n, attribute, value)


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
    accuracy: int,
) -> tuple[int, int]:
    """Read an object of numbers, return as `_object` does. A declared one must not be repeated."""
    separator = COMMA if at < end and stream[at] == OPEN_OBJECT else SPACE
    while separator == COMMA:
        start = space_end(stream, at + 1, end)
        stop = text_end(stream, start, end)
        at = after_colon(stream, stop, end)
        value, at = number(stream, at, end)
        found = name_index(stream[start + 1 : stop - 1], names, name_end)
        if at < 0 or is_noted(readings, n_readings, n, found) or (found == accuracy and value < 0):
            return -1, n_readings
        if found >= 0:
            n_readings = note(readings, n_readings, n, found, value)
        at = space_end(stream, at, end)
        separator = stream[at] if at < end else SPACE
    return at + 1 if separator == CLOSE_OBJECT else -1, n_readings
