"""Messages between the stages of the positions flow, as bytes.

The first byte of a message says what it is. They hold keys of devices and where these are: protect
them like raw positions.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from anonymizer.algorithms.positions.changing_ids import LASTS
from anonymizer.algorithms.positions.device_keys import KeyArray
from anonymizer.algorithms.positions.district_routing import NOWHERE, Rows
from anonymizer.algorithms.positions.readings import Known
from anonymizer.cluster.packed_state import pack, unpack
from anonymizer.domain.arrays import Int32Array, IntArray, UInt8Array
from anonymizer.domain.discreet import discreet

BATCH, REPORT = b"B", b"P"
"""First bytes; `raw_batches.RAW` is another."""
_SLOT_BITS = 32


@discreet
class Readings(NamedTuple):
    """All readings of some devices that a source knows; they replace what it sent before.

    `key`: of each device, as of its rows, shape (devices,).
    """

    key: KeyArray
    known: Known


def no_readings() -> Readings:
    """Return the readings of no devices."""
    none = np.zeros(0, np.int64)
    return Readings(np.zeros(0, np.uint64), Known(none, none, np.zeros(0), np.zeros(0)))


@discreet
class Batch(NamedTuple):
    """The rows of a tick that a source sends to a district.

    The source has sent all of `tick` and of those before. `readings` are of devices of the
    district, and none of those that have left it; `withdrawn`: handles of devices of the source
    that take no part from this tick on.
    """

    source: int
    tick: int
    rows: Rows
    readings: Readings
    withdrawn: IntArray = np.zeros(0, np.int64)


@discreet
class Report(NamedTuple):
    """What a district tells a source about a tick.

    `batches`, `outcome`: ticks of the batches of the source that are in it, and the outcome of each
    of their rows; `released`, `ended`: devices of the source in the release, and those that the
    district has forgotten, by the slots of the source.
    """

    lane: int
    tick: int
    batches: Sequence[int]
    outcome: Sequence[UInt8Array]
    released: Int32Array
    ended: Int32Array


def handles_of(source: int, slot: Int32Array) -> IntArray:
    """Return the handles of the devices in these slots of a source, see `Rows`."""
    return (np.int64(source) << _SLOT_BITS) | slot.astype(np.int64)


def slots_by_source(handle: IntArray, n_sources: int) -> list[Int32Array]:
    """Return the slots that these handles name, for each source."""
    source, slot = handle >> _SLOT_BITS, handle.astype(np.uint32).astype(np.int32)
    return [slot[source == number] for number in range(n_sources)]


def encode_batch(batch: Batch) -> bytes:
    """Return a batch as bytes: 24 for each row, 10 for each device with readings, 18 for each."""
    key, handle, ts, node, left_from, since = batch.rows
    some = np.flatnonzero(left_from != NOWHERE).astype(np.int32)
    changing = np.flatnonzero(since > LASTS).astype(np.int32)
    return BATCH + pack(
        [
            batch.source,
            batch.tick,
            key,
            handle.astype(np.uint32),
            ts,
            node,
            some,
            left_from[some],
            changing,
            since[changing],
            _packed_readings(batch.readings),
            batch.withdrawn.astype(np.uint32),
        ]
    )


def decode_batch(value: bytes) -> Batch:
    """Return the batch that was encoded.

    Raises `ValueError` if it is no batch.
    """
    if value[:1] != BATCH:
        raise ValueError("this is no batch")
    source, tick, key, slot, ts, node, some, where, *rest = unpack(value[1:])
    changing, stated, said, withdrawn = rest
    left_from = np.full(len(key), NOWHERE, np.int32)
    left_from[some] = where
    handle = handles_of(source, slot)
    since = np.full(len(key), LASTS)
    since[changing] = stated
    rows = Rows(key, handle, ts, node, left_from, since)
    gone = handles_of(source, withdrawn)
    return Batch(source, tick, rows, _readings_in(said), gone)


def _packed_readings(readings: Readings) -> list[Any] | None:
    key, (n_of, attribute, value, heard_at) = readings
    if not len(key):
        return None
    return [key, n_of.astype(np.uint16), attribute.astype(np.uint16), value, heard_at]


def _readings_in(packed: list[Any] | None) -> Readings:
    if packed is None:
        return no_readings()
    key, n_of, attribute, value, heard_at = packed
    known = Known(n_of.astype(np.int64), attribute.astype(np.int64), value, heard_at)
    return Readings(key, known)


def encode_report(report: Report) -> bytes:
    """Return a report as bytes: one for each row, and 4 for each device that it names."""
    return REPORT + pack(
        [
            report.lane,
            report.tick,
            list(report.batches),
            list(report.outcome),
            report.released,
            report.ended,
        ]
    )


def decode_report(value: bytes, *, n_lanes: int) -> Report:
    """Return the report that was encoded.

    Raises `ValueError` if it is none of so many districts.
    """
    lane, tick, batches, outcome, released, ended = unpack(value[1:])
    if not (
        lane in range(n_lanes)
        and all(isinstance(each, int) for each in [tick, *batches])
        and all(_is_array(each, np.uint8) for each in outcome)
        and _is_array(released, np.int32)
        and _is_array(ended, np.int32)
    ):
        raise ValueError("this is no report")
    return Report(lane, tick, batches, outcome, released, ended)


def _is_array(value: object, dtype: type[np.generic]) -> bool:
    return isinstance(value, np.ndarray) and value.dtype == dtype
