"""A message costs time in proportion to its size, whatever it says."""

import json
import struct
import time
import tracemalloc
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from itertools import chain, islice, product
from math import inf

import msgspec
import pytest
from google.transit.gtfs_realtime_pb2 import FeedMessage

from anonymizer.codecs import CODECS, Codec
from anonymizer.domain.outcomes import Outcome
from anonymizer.settings import InputSettings
from tests.lanes import some

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


ITEMS = (
    b"null", b"{}", b"[]", b"0", b'""', b"true", b"[[]]", b'{"":0}', b'{"lat":1}', b"1e999",
    b'"\\u0041\\u0041"', b"1" * 300, b'{"lat":"x","lon":"y"}', b'{"lat":1,"lon":2,"ts":"x"}',
)  # fmt: skip
KEYS = (
    "locations", "entity", "features", "coreData", "positions", "data", "readings", "points",
    "uplink_message", "VP", "BasicSafetyMessage", "value", "type",
)  # fmt: skip
PROTOBUF = (b"\x00", b"\x01", b"\x02\x00", b"\x02\x02\x08\x01", b"\x05\x00\x00\x00\x00", b"\x03")
"""Fields after a number: empty, varint, nested, fixed, a group that never ends."""


def repeated(item: bytes, around: tuple[bytes, bytes] = (b"[", b"]")) -> bytes:
    return around[0] + b",".join([item] * (N_BYTES // 4 // (len(item) + 1))) + around[1]


def generated() -> Iterator[bytes]:
    """Yield some hundred messages of about 100 kB that say nothing, each in many small pieces."""
    n = N_BYTES // 4
    for item in ITEMS:
        yield repeated(item)
        yield repeated(item, (b'{"lat":1,"lon":2,"x":[', b"]}"))
        for key in KEYS:
            yield repeated(item, (b'{"%s":[' % key.encode(), b"]}"))
    yield from (b"[" * n, b'{"a":' * (n // 5), b"[" * (n // 2) + b"]" * (n // 2), b" " * n)
    for inside in (b"", b'"lat":1,"lon":2,"readings":{', b'"data":{'):
        keys = b",".join(b'"%d":{}' % i for i in range(n // 10))
        yield b"{" + inside + keys + b"}" * (1 + inside.endswith(b"{"))
    yield from (b"1" * n, b'"' + b"x" * n + b'"', b"\xff" * n, bytes(n), b"0123abcd" * (n // 8))
    for value in (b"1" * n, b"0." + b"1" * n, b'"' + b"1" * n + b'"'):
        yield b'{"lat":%b,"lon":2}' % value
        yield b'{"lat":1,"lon":2,"ts":%b}' % value
    for item in (b"\xc0", b"\x80", b"\x90", b"\x81\xa1a\x00", b"\xcb" + bytes(8), b"\xd4\x01\x00"):
        yield b"\xdd" + (n // len(item)).to_bytes(4) + item * (n // len(item))
        yield (
            b"\x83\xa3lat\x01\xa3lon\x02\xa1x\xdd"
            + (n // len(item)).to_bytes(4)
            + item * (n // len(item))
        )
    for number in range(1, 6):
        for field in PROTOBUF:
            one = bytes([number << 3 | field[0]]) + field[1:]
            yield one * (n // len(one))
            yield b"\x0a\x05\x0a\x032.0" + one * (n // len(one))


def configured(*unpack: str, unit: str = "s", **paths: object) -> Callable[[], Codec]:
    """Return what makes the codec of JSON with these paths."""

    def make() -> Codec:
        says = "device" in paths or "{device}" in str(paths.get("positions"))
        said: dict[str, object] = {"topic": "a" if says else "a/{device}", "codec": "json"}
        said |= {"payload": paths | {"time_unit": unit}}
        said |= {"device_from": "payload"} if says else {}
        said |= {"unpack": unpack} if unpack else {}
        return InputSettings.model_validate(said).make_codec(())

    return make


SEARCHES = {f"r{i}": f"d[k={i}].v" for i in range(8)}
READERS: dict[str, Callable[[], Codec]] = {
    **{name: partial(CODECS.__getitem__, name) for name in CODECS},
    "json": configured(lat="lat", lon="lon", time="ts"),
    "short": configured(lat="a", lon="o"),
    "arrays": configured(lat="0", lon="1"),
    "in arrays": configured(lat="0.0.0.0.0.0", lon="0.0.0.0.0.1"),
    "calendar": configured(lat="a", lon="o", time="t", unit="iso8601"),
    "zone": configured(lat="a", lon="o", time="t", unit="iso8601", time_zone="Europe/Helsinki"),
    "positions": configured(lat="a", lon="o", positions="p"),
    "shared time": configured(lat="a", lon="o", time="$.t", positions="p"),
    "readings": configured(lat="a", lon="o", readings={each: each for each in "bcdefghi"}),
    "where": configured(lat="a", lon="o", where={"k": 1}),
    "where deep": configured(lat="a.a", lon="a.o", where={"k.k.k": 1, "q": ["a", "b"]}),
    "search": configured(lat="d[k=A].v", lon="d[k=B].v"),
    "searches": configured(lat="d[k=A].v", lon="d[k=B].v", readings=SEARCHES),
    "devices": configured(lat="a", lon="o", positions="p.{device}"),
    "devices below": configured(lat="a", lon="o", positions="p.{device}.q"),
    "devices alone": configured(lat="a", lon="o", positions="{device}"),
    "device": configured(lat="a", lon="o", device="d"),
    "deep": configured(lat="a." * 31 + "a", lon="a." * 31 + "o"),
    "halves": configured(lat="a", lon="o", time="t", join_s=5),
    "cbor": configured("cbor", lat="a", lon="o"),
    "cbor devices": configured("cbor", lat="a", lon="o", positions="p.{device}"),
}
MEMBERS = (
    b'{"a":1,"o":2}', b'{"o":2}', b'{"a":null}', b'{"a":"1","o":"2"}', b'{"a":99,"o":2}', b"[1,2]",
    b'{"a":1,"o":2,"t":"x"}', b'{"a":1,"o":2,"t":"2024-01-01"}', b'{"d":[{}]}',
    b'{"a":1,"o":2,"t":20240101000000}',
    b'{"a":1,"o":2,"t":"2024-01-01 00:00:00 UTC"}', b'{"a":{"k":1}}', b'{"a":1,"o":2,"d":{}}',
    b'{"a":1,"o":2,"b":"x","c":{},"d":1e999,"e":true,"f":[]}', b'{"k":1}', b'{"k":"A","v":1}',
    b'{"k":[]}', b'{"k":1,"a":1,"o":2}', b'{"d":[{"k":"A","v":1},{"k":"B","v":1}]}',
    b'{"a":60.12345,"o":24.12345}', b'{"a":"60.12345","o":"24.12345"}', b"[60.12345,24.12345]",
)  # fmt: skip
AROUND = ((b"[", b"]"), (b'{"p":[', b"]}"), (b'{"d":[', b"]}"), (b'{"a":1,"o":2,"x":[', b"]}"),
          (b'{"p":{"z":[', b"]}}"), (b'{"p":{"z":{"q":[', b"]}}}"))  # fmt: skip
VALUES = (b"{}", b"null", b"0", b"[]", b"[{}]", b'[{"a":1,"o":2}]', b'{"a":1,"o":2}', b'{"q":{}}',
          b'{"q":[{"a":1,"o":2}]}', b'{"q":0}', b'""')  # fmt: skip
RECORDS = (
    b'{"n":"lat","v":1}', b'{"n":"a","u":"lat","v":1.12345,"t":1}', b'{"n":"a/b:c.lat","v":60.1}',
    b'{"2":"a","0":"lat","1":"lat","6":1}', b'{"bn":"a","bu":"lat","bv":1,"bt":1}',
)  # fmt: skip
WORDS = (b"+1", b"nan", b"01", b".5", b"a", b"1_0", b"x y", b"+1e5")
ESCAPES = (rb"\u0041", rb"\n", rb"\\", b"\xc3\xa9", rb"\ud83d\ude00")


def generated_for_paths() -> Iterator[bytes]:
    """Yield the worst shapes for codecs that settings make, of about 100 kB."""
    n = N_BYTES // 4
    yield from (repeated(member, around) for member in MEMBERS + ITEMS for around in AROUND)
    for value, (before, after) in product(VALUES, ((b"{", b"}"), (b'{"p":{', b"}}"))):
        keys = [b'"%x":%b' % (i, value) for i in range(n // (len(value) + 8))]
        yield before + b",".join(keys) + after
        yield repeated(b'"a":' + value, (before, after))
    for depth in (60, 500, 900):
        yield repeated(b"[" * depth + b"]" * depth)
        yield repeated(b'{"a":' * depth + b"1" + b"}" * depth, (b'{"p":[', b"]}"))
    for word in WORDS:
        yield b"[" + b",".join([word] * (65_000 // (len(word) + 1))) + b"]"
        yield b"[" + b",".join([b'{"a":%b,"o":2}' % word] * 3000) + b"]"
    yield from (b'{"a":1,"o":2,"%b":1}' % (escape * (n // len(escape))) for escape in ESCAPES)
    texts = [b'"' + escape * (n // len(escape)) + b'"' for escape in (*ESCAPES, b" ")]
    for key, value in product(b"atdbkz", [*texts, b"1" * n, b"0." + b"1" * n, b"1e" + b"9" * n]):
        yield b'{"a":1,"o":2,"%c":%b}' % (key, value)


def as_cbor(item: object) -> bytes:
    """Write what JSON has as CBOR."""

    def head(kind: int, size: int) -> bytes:
        return bytes([kind << 5 | size] if size < 24 else [kind << 5 | 26]) + (
            size.to_bytes(4) if size >= 24 else b""
        )

    if isinstance(item, str):
        text = item.encode("utf-8", "replace")
        return head(3, len(text)) + text
    if isinstance(item, list):
        # Most have thousands of equal items, and to write each takes longer than all that is timed.
        written = {repr(one): one for one in item}
        written_of = {said: as_cbor(one) for said, one in written.items()}
        return head(4, len(item)) + b"".join(written_of[repr(one)] for one in item)
    if isinstance(item, dict):
        members = (as_cbor(key) + as_cbor(value) for key, value in item.items())
        return head(5, len(item)) + b"".join(members)
    if item is None or isinstance(item, bool):
        return {None: b"\xf6", True: b"\xf5", False: b"\xf4"}[item]
    assert isinstance(item, int | float)
    if isinstance(item, int) and 0 <= item < 24:
        return head(0, item)
    return b"\xfb" + struct.pack(">d", min(item, 1e300))


def in_cbor(payloads: Iterable[bytes]) -> Iterator[bytes]:
    """Yield what of these CBOR can say, and some messages of its own."""
    n = N_BYTES // 4
    for payload in payloads:
        with suppress(ValueError, RecursionError):  # it is no JSON
            yield as_cbor(json.loads(payload))
    yield from (b"\x9f" + b"\xa0" * n + b"\xff", b"\x7f" + b"\x60" * n + b"\xff", b"\xc0" * n)


def messages(reader: str, *, one_in: int) -> Iterable[bytes]:
    """Return one in so many messages for a reader; of readers in a row each takes others."""
    more = generated_for_paths() if reader not in CODECS else ()
    more = map(repeated, RECORDS) if reader == "senml" else more
    chosen = islice(chain(generated(), more), [*READERS].index(reader) % one_in, None, one_in)
    return in_cbor(chosen) if reader.startswith("cbor") else chosen


SOUND = b"[" + b",".join([b'{"lat":1,"lon":2}'] * 5555) + b"]"


def seconds_of(decode: Callable[[bytes], object], payload: bytes) -> float:
    """Return the CPU time that a message takes once."""
    began = time.process_time()
    decode(payload)
    return time.process_time() - began


def is_in_time(decode: Callable[[bytes], object], payload: bytes) -> bool:
    """Return whether a message takes 10 ms for each 100 kB, or 10 times what `json.loads` does.

    The least of some tries, in turns: what is busy beside the test, and what is slow, is so for
    both.
    """
    size = max(len(payload), 100_000) / 100_000
    least_s = loads_s = inf
    for _ in range(20):
        least_s = min(least_s, seconds_of(decode, payload))
        if least_s <= 0.01 * size:
            return True
        loads_s = min(loads_s, seconds_of(json.loads, SOUND))
        if least_s <= 10 * loads_s * size:
            return True
    return False


QUICK = {
    *CODECS, "arrays", "in arrays", "zone", "shared time", "readings", "where deep", "searches",
    "devices below", "deep", "halves", "cbor devices",
}  # fmt: skip
"""Of readers of which one does what another does and more, the latter."""


@pytest.mark.parametrize("one_in", [3, pytest.param(1, marks=pytest.mark.soak)])
@pytest.mark.parametrize("reader", some(READERS, QUICK))
def test_no_generated_message_costs_more_than_10_ms_for_each_100_kb(
    reader: str, one_in: int
) -> None:
    """On a machine that is slow or busy, than 10 times json.loads; the dearest take 7 times."""
    decode, n = READERS[reader](), 0
    for payload in messages(reader, one_in=one_in):
        n += 1
        assert is_in_time(decode, payload), payload[:60]
    assert n > 200 / one_in


def test_a_batch_of_many_positions_is_read_whatever_the_paths() -> None:
    batches: dict[str, tuple[bytes, int]] = {
        "short": (repeated(b'{"a":60.12345,"o":24.12345}'), 3571),
        "arrays": (repeated(b"[60.123456,24.1234567]"), 1000),
        "positions": (repeated(b'{"a":60.123,"o":24.123}', (b'{"p":[', b"]}")), 1000),
        "cbor": (as_cbor([{"a": 60.5, "o": 24.5, "t": 1.8e9}] * 500), 500),
        "search": (
            repeated(b'{"d":[{"k":"A","v":60.123456},{"k":"B","v":24.123456}],"more":"a text"}'),
            1000,
        ),
    }
    for reader, (payload, n) in batches.items():
        found = READERS[reader]()(payload)
        assert len(found) >= n, reader
        assert not any(isinstance(each, Outcome) for each in found), reader


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_message_of_many_small_items_costs_10_ms_for_each_100_kb_at_most(bomb: str) -> None:
    codec, payload = BOMBS[bomb]
    decode = CODECS[codec]
    found = decode(payload)
    assert len(found) == 1
    assert all(isinstance(each, Outcome) for each in found)
    assert is_in_time(decode, payload)
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
