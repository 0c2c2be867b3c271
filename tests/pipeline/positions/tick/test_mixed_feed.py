"""Odd payloads among clean ones: what is published of clean devices is the same, to the byte."""

import gzip
import json
import zlib
from collections.abc import Callable
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from anonymizer.pipeline.ports import Delivery
from tests.examples import many
from tests.pipeline.positions.support import NOW, Rig, a_position

INPUTS = [
    {"topic": "positions/{device}"},
    {"topic": "phones/{device}", "codec": "owntracks"},
    {"topic": "trackers/{device}", "codec": "home_assistant"},
    {"topic": "packed/{device}", "codec": "msgpack"},
    {"topic": "gtfs/{device}", "codec": "gtfs_rt"},
    {"topic": "local/{device}", "codec": "json",
     "payload": {"lat": "lat", "lon": "lon", "time": "ts", "time_unit": "iso8601"}},
    {"topic": "cars/{device}/+", "codec": "json",
     "payload": {"lat": "latitude", "lon": "longitude", "bare": True, "join_s": 1.0}},
]  # fmt: skip

SAME: list[Callable[[bytes], bytes]] = [
    lambda text: text,
    lambda text: text + b"\0\0",
    lambda text: text + b"\r\n",
    lambda text: b"\xef\xbb\xbf" + text,
    lambda text: text.decode().encode("utf-16"),
    lambda text: text[:-1] + b', "acc": nan, "speed": -Infinity}',
    lambda text: text[:-1] + b', "name": "Z\xfcrich\x01", "n": 007, "x": 1e999}',
    lambda text: text[:-1] + b', "device": [], "readings": {"a": NaN, "b": "c"}}',
    lambda text: b"[" + text + b"]",
]
"""Ways to write a position that mean the same."""


def ts(change: Callable[[dict[str, object]], object]) -> bytes:
    return json.dumps(change(a_position(12, NOW))).encode()


PLAIN = ts(lambda body: body)
REFUSED = [
    b"", b"{", b"\xff\xfe", b"60.17", b"98", b"nan", b"null", b"[]", b"[[]]", PLAIN[:-1],
    PLAIN + b"}",
    gzip.compress(PLAIN), zlib.compress(PLAIN), b"BZh91AY&SY",
    ts(lambda body: body | {"lat": None}),
    ts(lambda body: body | {"lat": 91, "lon": 181}),
    ts(lambda body: body | {"lat": -999, "lon": -999}),
    ts(lambda body: body | {"lat": 0, "lon": 0}),
    ts(lambda body: body | {"ts": NOW * 1e3}),
    ts(lambda body: body | {"ts": NOW * 1e6}),
    ts(lambda body: body | {"ts": NOW - 1e6}),
    ts(lambda body: body | {"ts": "yesterday"}),
    ts(lambda body: body | {"ts": "2027-01-15T13:30:00"}),
    ts(lambda body: body | {"lat": "60,17"}),
    ts(lambda body: body | {"ts": NOW + 3600}),
    b'{"_type": "location", "lat": 60.0, "lon": 25.0, "tst": 1800000000, "acc": 19138}',
    b'{"latitude": 60.0, "longitude": 25.0, "gps_accuracy": 5000}',
]  # fmt: skip
"""Payloads that are a position for no input."""
TOPICS = ["positions/{}", "phones/{}", "trackers/{}", "packed/{}", "gtfs/{}", "local/{}",
          "cars/{}/latitude", "cars/{}/soc", "elsewhere/{}"]  # fmt: skip

DEVICES = st.sampled_from("abcdef")
CLEAN = st.lists(st.tuples(DEVICES, st.integers(0, 24), st.sampled_from(SAME)), max_size=8)
ODD = st.lists(
    st.tuples(st.sampled_from(TOPICS), DEVICES | st.sampled_from("xyz"), st.sampled_from(REFUSED)),
    max_size=12,
)


@many(0.5)
@given(ticks=st.lists(st.tuples(CLEAN, ODD, st.randoms()), min_size=1, max_size=4))
def test_what_is_published_of_clean_devices_does_not_depend_on_odd_payloads(
    ticks: list[tuple[list[tuple[str, int, Callable[[bytes], bytes]]], list[tuple[str, str, bytes]],
                      Random]],
) -> None:  # fmt: skip
    alone, mixed = Rig(inputs=INPUTS), Rig(inputs=INPUTS)
    for i, (clean, odd, order) in enumerate(ticks):
        now = NOW + i
        plain: list[Delivery] = []
        feed: list[Delivery] = []
        for device, node, write in clean:
            text = json.dumps(a_position(node, now)).encode()
            plain.append(Delivery(f"positions/{device}", text, 0))
            feed.append(Delivery(f"positions/{device}", write(text), 0))
        for topic, device, payload in odd:
            at = order.randint(0, len(feed))
            feed.insert(at, Delivery(topic.format(device), payload, 0))
        assert mixed.publish(*feed, now=now) == alone.publish(*plain, now=now)
    counts = {name: n for name, n in mixed.outcomes().items() if not name.startswith("INVALID")}
    for name, n in alone.outcomes().items():
        assert counts[name] >= n
    assert mixed.ledger.n_received >= alone.ledger.n_received
