"""A message costs time in proportion to its size, whatever it says."""

import time
import tracemalloc

import msgspec
import pytest
from google.transit.gtfs_realtime_pb2 import FeedMessage

from anonymizer.codecs import CODECS
from anonymizer.domain.outcomes import Outcome

N_BYTES = 400_000


def feed(entity: bytes) -> bytes:
    made = FeedMessage()
    made.header.gtfs_realtime_version = "2.0"
    return bytes(made.SerializeToString()) + entity * (N_BYTES // len(entity))


def array(item: bytes) -> bytes:
    n = N_BYTES // len(item)
    return b"\xdd" + n.to_bytes(4) + item * n


BOMBS = {
    "nils": ("msgpack", array(b"\xc0")),
    "empty maps": ("msgpack", array(b"\x80")),
    "empty arrays": ("msgpack", array(b"\x90")),
    "arrays in arrays": ("msgpack", b"\x91" * N_BYTES),
    "stated and not there": ("msgpack", b"\xdd\xff\xff\xff\xff"),
    "empty entities": ("gtfs_rt", feed(b"\x12\x00")),
    "unknown fields": ("gtfs_rt", feed(b"\x12\x02\x78\x01")),
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_message_of_many_small_items_costs_10_ms_for_each_100_kb_at_most(bomb: str) -> None:
    codec, payload = BOMBS[bomb]
    decode = CODECS[codec]
    seconds = []
    for _ in range(3):
        began = time.process_time()
        found = decode(payload)
        seconds.append(time.process_time() - began)
        assert len(found) == 1
        assert all(isinstance(each, Outcome) for each in found)
    assert min(seconds) <= 0.01 * max(len(payload), 100_000) / 100_000
    tracemalloc.start()
    decode(payload)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20 * len(payload) + 100_000


def test_a_large_message_of_small_records_is_still_read() -> None:
    record = {"lat": 1, "lon": 2}
    assert len(CODECS["msgpack"](msgspec.msgpack.encode([record] * 5000))) == 5000
    mixed = CODECS["msgpack"](msgspec.msgpack.encode([None, record, 3]))
    assert mixed[0] == mixed[2] == Outcome.INVALID__SCHEMA
