"""Encoding of reports as messages in the gateway's native JSON.

Compiled kernels write the texts of many reports at once: formatted one by one in Python, a report
takes longer than everything that a gateway does with it.
"""

import json
import math
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from anonymizer.algorithms.kernels import inner_kernel, kernel
from anonymizer.domain.arrays import FloatArray, IntArray
from anonymizer.pipeline.ports import Outgoing
from simulator.reports import Reports

_ESCAPED = {ord(c): f"%{ord(c):02X}" for c in "%/+#" + "".join(map(chr, range(32))) + "\x7f"}
_SEPARATOR = b","
_DEVICE, _TS, _LAT, _LON, _END = (
    np.frombuffer(text, np.uint8) for text in (b'"device":', b'"ts":', b',"lat":', b',"lon":', b"}")
)
_NUMBER_BYTES = 28
"""Room for a number: 19 digits before the point, as many as an int64 has, a sign and decimals."""
_FIXED_BYTES = 64 + 3 * _NUMBER_BYTES
_ZERO, _POINT, _MINUS, _COMMA, _OPEN = b"0.-,{"


def positions_to(
    topic: str, device_id: Sequence[str]
) -> Callable[[Reports, FloatArray], list[Outgoing]]:
    """Return an encoder of reports, each as a message.

    Parameters
    ----------
    topic
        Topic with the placeholder `{device}`.
    device_id
        Id of each device.
    """
    topics = [topic.replace("{device}", topic_level(device)) for device in device_id]
    no_names = np.zeros(0, np.uint8), np.zeros(1, np.int64)

    def encode(reports: Reports, ts: FloatArray) -> list[Outgoing]:
        stream, end = _texts(reports, ts, *no_names)
        messages = [
            Outgoing(topics[device], stream[start + 1 : stop])
            for device, start, stop in zip(reports.device.tolist(), end[:-1], end[1:], strict=True)
        ]
        if reports.speed_mps is None:
            return messages
        return [
            message if math.isnan(speed) else _with_speed(message, speed)
            for message, speed in zip(messages, reports.speed_mps.tolist(), strict=True)
        ]

    return encode


def named_positions_to(
    topic: str, device_id: Sequence[str], *, per_message: int
) -> Callable[[Reports, FloatArray], list[Outgoing]]:
    """Return an encoder of reports that state their devices, `per_message` of them in an array.

    The last message may have fewer. `{device}` in the topic becomes `batch`.
    """
    names = [json.dumps(device).encode() for device in device_id]
    name_end = np.cumsum([0, *map(len, names)])
    name = np.frombuffer(b"".join(names), np.uint8)
    to = topic.replace("{device}", "batch")

    def encode(reports: Reports, ts: FloatArray) -> list[Outgoing]:
        stream, end = _texts(reports, ts, name, name_end)
        cuts = [*end[:-1:per_message], end[-1]] if len(reports) else []
        return [Outgoing(to, b"[%b]" % stream[start + 1 : stop]) for start, stop in pairwise(cuts)]

    return encode


def topic_level(device_id: str) -> str:
    """Return a device id as one topic level; characters with a meaning there are %-escaped."""
    return device_id.translate(_ESCAPED)


def _with_speed(message: Outgoing, speed_mps: float) -> Outgoing:
    readings = b',"readings":{"speed_mps":%.2f}}' % speed_mps
    return Outgoing(message.topic, message.payload[:-1] + readings)


def _texts(
    reports: Reports, ts: FloatArray, name: NDArray[np.uint8], name_end: IntArray
) -> tuple[bytes, list[int]]:
    """Return the texts of all reports, a comma before each, and where each begins and ends."""
    longest = int(np.diff(name_end).max(initial=0))
    stream = np.empty(len(reports) * (longest + _FIXED_BYTES), np.uint8)
    end = np.zeros(len(reports) + 1, np.int64)
    _write(reports.device, ts, reports.lat, reports.lon, name, name_end, stream, end)
    return stream[: end[-1]].tobytes(), end.tolist()


@kernel
def _write(  # noqa: PLR0917  numba knows no keyword-only parameters
    device: IntArray,
    ts: FloatArray,
    lat: FloatArray,
    lon: FloatArray,
    name: NDArray[np.uint8],
    name_end: IntArray,
    stream: NDArray[np.uint8],
    end: IntArray,
) -> None:
    """Write the text of each report, and where it ends; without names none is stated."""
    at = 0
    for i in range(len(device)):
        stream[at], stream[at + 1] = _COMMA, _OPEN
        at += 2
        if len(name):
            at = _copy(_DEVICE, 0, len(_DEVICE), stream, at)
            at = _copy(name, name_end[device[i]], name_end[device[i] + 1], stream, at)
            stream[at] = _COMMA
            at += 1
        at = _number(ts[i], 6, stream, _copy(_TS, 0, len(_TS), stream, at))
        at = _number(lat[i], 7, stream, _copy(_LAT, 0, len(_LAT), stream, at))
        at = _number(lon[i], 7, stream, _copy(_LON, 0, len(_LON), stream, at))
        at = _copy(_END, 0, len(_END), stream, at)
        end[i + 1] = at


@inner_kernel
def _copy(
    source: NDArray[np.uint8], start: int, stop: int, stream: NDArray[np.uint8], at: int
) -> int:
    for i in range(start, stop):
        stream[at] = source[i]
        at += 1
    return at


@inner_kernel
def _number(value: float, n_decimals: int, stream: NDArray[np.uint8], at: int) -> int:
    """Write a finite number below 2**63 with so many decimals, rounded; return where it ends."""
    if math.copysign(1.0, value) < 0:
        stream[at] = _MINUS
        at += 1
    size = abs(value)
    whole, scale = int(size), 10**n_decimals
    # Apart from the whole, because their product with the scale would be rounded itself.
    part = int(np.rint((size - whole) * scale))
    if part == scale:
        whole, part = whole + 1, 0
    n_digits, rest = 1, whole // 10
    while rest:
        n_digits, rest = n_digits + 1, rest // 10
    for i in range(at + n_digits - 1, at - 1, -1):
        stream[i] = _ZERO + whole % 10
        whole //= 10
    at += n_digits
    stream[at] = _POINT
    for i in range(at + n_decimals, at, -1):
        stream[i] = _ZERO + part % 10
        part //= 10
    return at + 1 + n_decimals
