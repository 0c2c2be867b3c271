"""Flat MessagePack messages, read by compiled kernels; see `compiled_reader`.

Left to the codec are extensions, binary and nested values, text that is not ASCII or longer than
255 bytes, ids that are numbers, and floats that are not finite or next to zero.

References
----------
.. [1] https://github.com/msgpack/msgpack/blob/master/spec.md
"""

import numpy as np

from anonymizer.algorithms.kernels import inlined_kernel, inner_kernel
from anonymizer.codecs.layouts import LEAST_TIME_S, MOST_TIME_S, Role
from anonymizer.domain.arrays import IntArray, RecordArray
from anonymizer.pipeline.name_hashes import Bytes
from anonymizer.pipeline.positions.decode.json_values import text_code
from anonymizer.pipeline.positions.decode.layout_members import (
    is_noted,
    member_index,
    name_index,
    note,
)

_LAT, _LON, _TIME, _DEVICE, _DEVICE_OR_NUMBER, _KIND, _READINGS, _READING, _ACCURACY, _SIGN = (
    int(role) for role in Role if role != Role.IGNORED
)
_NAN = float("nan")
_MAP, _MAP16, _MAP32 = 0x80, 0xDE, 0xDF
_ARRAY, _ARRAY16, _ARRAY32 = 0x90, 0xDC, 0xDD
_TEXT, _TEXT8 = 0xA0, 0xD9
_NIL, _FALSE, _TRUE, _FLOAT32, _FLOAT64, _UINT8, _INT8, _NEGATIVE = (
    0xC0, 0xC2, 0xC3, 0xCA, 0xCB, 0xCC, 0xD0, 0xE0,
)  # fmt: skip
_SCALE = np.ldexp(1.0, np.arange(2047) - 1075)
"""By the exponent of a float of 64 bits: what its mantissa, as an integer, is multiplied by."""
_FEWEST_EXPONENT = 64
"""Smaller floats, below 1e-288, and zero have other rules."""


@inlined_kernel
def msgpack_message(
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
    """Read the message at `at`; as `flat_json.json_message`."""
    n_objects, after = _count(stream, at, end, _ARRAY, _ARRAY16, _ARRAY32)
    if after < 0 or not layout["many"]:
        n_objects, after = 1, at
    if n_objects < 1 or n_objects > max_positions:
        return -1, n, n_readings
    at = after
    for _ in range(n_objects):
        at, n_readings = _map(
            stream, at, end, members, names, name_end, positions, n, readings, n_readings
        )
        n += 1
        if at < 0:
            break
    return at, n, n_readings


@inlined_kernel
def _map(
    stream: Bytes,
    at: int,
    end: int,
    members: RecordArray,
    names: Bytes,
    name_end: IntArray,
    positions: RecordArray,
    n: int,
    readings: RecordArray,
    n_readings: int,
) -> tuple[int, int]:
    """Read the map at `at` into position `n`; return its end or -1, and the number of readings."""
    position = positions[n]
    position["lat"] = position["lon"] = position["ts"] = _NAN
    position["start"] = position["end"] = 0
    n_members, at = _count(stream, at, end, _MAP, _MAP16, _MAP32)
    seen = 0
    for _ in range(n_members):
        low, high, at = _text(stream, at, end)
        which = member_index(members, low, high)
        if at < 0 or (which >= 0 and seen >> which & 1):
            return -1, n_readings
        seen |= 1 << which if which >= 0 else 0
        role = members[which]["role"] if which >= 0 else 0
        is_nil = at < end and stream[at] == _NIL
        if role == _LAT:
            position["lat"], at = _number(stream, at, end)
        elif role == _LON:
            position["lon"], at = _number(stream, at, end)
        elif role == _TIME and not is_nil:
            position["ts"], at = _number(stream, at, end)
            at = at if LEAST_TIME_S < position["ts"] < MOST_TIME_S else -1
        elif role == _DEVICE_OR_NUMBER and not is_nil:
            start = at + 1 + (at < end and stream[at] == _TEXT8)
            _, _, at = _text(stream, at, end)
            position["start"], position["end"] = start, at
            at = at if at > start else -1
        elif role == _READINGS:
            accuracy = members[which]["attribute"]
            at, n_readings = _readings(
                stream, at, end, names, name_end, n, readings, n_readings, accuracy
            )
        elif role in (_READING, _ACCURACY) and members[which]["attribute"] >= 0:
            value, at = _number(stream, at, end)
            value *= members[which]["factor"]
            attribute = members[which]["attribute"]
            no_fix = value < 0 and role == _ACCURACY
            at = -1 if no_fix or is_noted(readings, n_readings, n, attribute) else at
            value = value if value >= 0 else _NAN
            n_readings = note(readings, n_readings, n, attribute, value)
        else:
            at = _skipped(stream, at, end) if role != _SIGN else -1
        if at < 0:
            return -1, n_readings
    lat, lon = position["lat"], position["lon"]
    is_valid = -90.0 <= lat <= 90.0 and -180.0 <= lon <= 180.0 and not lat == lon == 0.0
    return at if is_valid else -1, n_readings


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
    """Read a map of numbers, return as `_map` does. A declared one must not be repeated."""
    n_members, at = _count(stream, at, end, _MAP, _MAP16, _MAP32)
    for _ in range(n_members):
        start = at + 1 + (at < end and stream[at] == _TEXT8)
        _, _, stop = _text(stream, at, end)
        value, at = _number(stream, stop, end)
        if at < 0:
            return -1, n_readings
        found = name_index(stream[start:stop], names, name_end)
        if is_noted(readings, n_readings, n, found) or (found == accuracy and value < 0):
            return -1, n_readings
        if found >= 0:
            n_readings = note(readings, n_readings, n, found, value)
    return at, n_readings


@inlined_kernel
def _count(
    stream: Bytes, at: int, end: int, short: int, with16: int, with32: int
) -> tuple[int, int]:
    """Return the number of members of a map or array, and where they begin; 0, -1 if it is none."""
    if at >= end:
        return 0, -1
    head = int(np.int64(stream[at]))
    if head & 0xF0 == short:
        return head & 0x0F, at + 1
    n_bytes = 2 if head == with16 else 4
    if head not in (with16, with32) or at + 1 + n_bytes > end:
        return 0, -1
    return _integer(stream, at + 1, n_bytes), at + 1 + n_bytes


@inlined_kernel
def _text(stream: Bytes, at: int, end: int) -> tuple[int, int, int]:
    """Return the code of the text at `at` and its end, -1 if it is to be left."""
    if at < 0 or at >= end:
        return -1, -1, -1
    head = int(np.int64(stream[at]))
    n_bytes = head & 0x1F
    if head == _TEXT8 and at + 1 < end:
        at += 1
        n_bytes = int(np.int64(stream[at]))
    elif head & 0xE0 != _TEXT:
        return -1, -1, -1
    at += 1
    if at + n_bytes > end:
        return -1, -1, -1
    high_bit = 0
    for i in range(at, at + n_bytes):
        high_bit |= stream[i]
    if high_bit >= 0x80:
        return -1, -1, -1
    low, high = text_code(stream, at, at + n_bytes)
    return low, high, at + n_bytes


@inlined_kernel
def _number(stream: Bytes, at: int, end: int) -> tuple[float, int]:
    """Return the number at `at` and its end, -1 if it is none or is to be left."""
    head = int(np.int64(stream[at])) if 0 <= at < end else _NIL
    number, after = _NAN, -1
    if head < _MAP:
        number, after = float(head), at + 1
    elif head >= _NEGATIVE:
        number, after = float(head - 0x100), at + 1
    elif head == _FLOAT64 and at + 9 <= end:
        number, after = _float64(stream, at + 1)
    elif head == _FLOAT32 and at + 5 <= end:
        number, after = _float32(stream, at + 1)
    elif _UINT8 <= head < _INT8 + 4:
        number, after = _whole(stream, at + 1, end, 1 << (head & 3), head >= _INT8)
    return number, after


@inlined_kernel
def _whole(
    stream: Bytes,
    at: int,
    end: int,
    n_bytes: int,
    is_signed: bool,  # noqa: FBT001  a kernel has no keyword-only arguments
) -> tuple[float, int]:
    if at + n_bytes > end or (n_bytes == 8 and stream[at] >= 0x80):  # more than 63 bits
        return _NAN, -1
    number = _integer(stream, at, n_bytes)
    if is_signed and stream[at] >= 0x80:
        number -= 1 << (8 * n_bytes)
    return float(number), at + n_bytes


@inlined_kernel
def _float64(stream: Bytes, at: int) -> tuple[float, int]:
    first = _integer(stream, at, 2)
    exponent, mantissa = first >> 4 & 0x7FF, _integer(stream, at + 2, 6) | (first & 0x0F) << 48
    if exponent < _FEWEST_EXPONENT or exponent == 0x7FF:
        return _NAN, -1
    absolute = float(mantissa | 1 << 52) * float(_SCALE[exponent])
    return -absolute if first >> 15 else absolute, at + 8


@inlined_kernel
def _float32(stream: Bytes, at: int) -> tuple[float, int]:
    bits = _integer(stream, at, 4)
    exponent, mantissa = bits >> 23 & 0xFF, bits & 0x7FFFFF
    if exponent in (0, 0xFF):
        return _NAN, -1
    # 52 bits of a float64 in place of 23, and another bias.
    absolute = float(mantissa | 1 << 23) * float(_SCALE[exponent + 1023 - 127 + 29])
    return -absolute if bits >> 31 else absolute, at + 4


@inlined_kernel
def _integer(stream: Bytes, at: int, n_bytes: int) -> int:
    """Return an unsigned integer, its first byte the highest."""
    number = 0
    for i in range(at, at + n_bytes):
        number = number << 8 | int(np.int64(stream[i]))
    return number


@inlined_kernel
def _skipped(stream: Bytes, at: int, end: int) -> int:
    """Return where a text, a number, a boolean or nil ends, -1 if it is to be left."""
    if at < 0 or at >= end:
        return -1
    head = int(np.int64(stream[at]))
    if head in (_NIL, _FALSE, _TRUE):
        return at + 1
    if head & 0xE0 == _TEXT or head == _TEXT8:
        return _text(stream, at, end)[2]
    return _number(stream, at, end)[1]
