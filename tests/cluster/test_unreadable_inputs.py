"""Bytes that a stage cannot read change nothing of it, whatever they are: not even its time."""

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from anonymizer.app.gateway.declared_streams import declared_streams
from anonymizer.cluster.held_files import HeldFiles
from anonymizer.cluster.packed_state import pack, unpack_state
from anonymizer.cluster.positions.lane_stage import lane_stages
from anonymizer.cluster.positions.raw_batches import RAW, Raw, decode_out, decode_raw, encode_raw
from anonymizer.cluster.positions.source_stage import source_stages
from anonymizer.cluster.positions.stage_current import CURRENT, decode_stated
from anonymizer.cluster.positions.stage_messages import Report, encode_report
from anonymizer.cluster.records.due_windows import DueWindow, encode_due
from anonymizer.cluster.records.stream_stage import stream_stages
from anonymizer.cluster.retained_parts import RetainedParts
from anonymizer.cluster.stage import Stage, UnreadableError
from anonymizer.networks.privacy_zones import with_zones
from anonymizer.pipeline.ports import Outgoing
from anonymizer.pipeline.records.release_messages import decode_release
from anonymizer.settings import Settings, zones_of
from tests.cluster.positions.cluster import NETWORK
from tests.cluster.positions.cluster import settings as cluster_settings
from tests.pipeline.records.made import FLEET

SECRET = bytes(32)
KINDS = ("source", "lane", "stream")
ANY_KIND = pytest.mark.parametrize("kind", KINDS)
FAR_S = 1e12


@cache
def makers() -> dict[str, Callable[[int], Stage]]:
    positions = cluster_settings("session", protected="current")
    zoned = with_zones(NETWORK, zones_of([]))
    records = Settings.model_validate({"inputs": [], "streams": [FLEET]})
    streams = declared_streams(records)
    return {
        "source": source_stages(positions, zoned, secret=SECRET),
        "lane": lane_stages(positions, zoned, secret=SECRET),
        "stream": stream_stages(records, streams, secret=SECRET),
    }


@cache
def stage_of(kind: str) -> Stage:
    """Return a stage that all examples share: none of them changes it."""
    return makers()[kind](0)


def refuses(kind: str, value: bytes) -> None:
    stage = stage_of(kind)
    before = stage.snapshot()
    with pytest.raises(UnreadableError) as caught:
        stage.take(value, at_s=FAR_S)
    assert str(caught.value) == "these bytes are no input of this stage"
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__
    assert stage.snapshot() == before


@ANY_KIND
@given(st.sampled_from(b"RZPBDTCVNWMSAPQHKFL"), st.binary(max_size=60))
def test_bytes_of_others_change_nothing(kind: str, first: int, rest: bytes) -> None:
    refuses(kind, b"")
    refuses(kind, bytes([first]) + b"\xc1" + rest)  # no value of msgpack begins so


@ANY_KIND
@given(
    st.sampled_from(b"RZPBDTCVNWMSAPQHKFL"),
    st.recursive(
        st.none() | st.booleans() | st.text(max_size=4) | st.binary(max_size=4),
        lambda inner: st.lists(inner, max_size=14) | st.dictionaries(st.text(), inner, max_size=3),
        max_leaves=20,
    ),
)
@example(first=ord("F"), value=b"\0\0")  # numbers, if bytes are taken for a list
def test_values_that_are_none_of_a_message_change_nothing(
    kind: str, first: int, value: object
) -> None:
    refuses(kind, bytes([first]) + pack(value))


@ANY_KIND
def test_messages_of_others_change_nothing(kind: str) -> None:
    raw = encode_raw(Raw("bridge", 3, False, []))
    none = np.zeros(0, np.int32)
    report = encode_report(Report(0, 3, [], [], none, none))
    due = encode_due(DueWindow(0, 3))
    taken_by = {raw: {"source", "stream"}, report: {"source"}, due: {"stream"}}
    for value, kinds in taken_by.items():
        if kind not in kinds:
            refuses(kind, value)
        else:
            makers()[kind](0).take(value, at_s=0.0)
    for stream in (-1, 1):  # there is one, of number 0
        refuses(kind, encode_due(DueWindow(stream, 3)))
    if kind == "source":  # what it claims must not fill the memory
        refuses(kind, b"P" + pack([0, 3, 1 << 50, none, none, [], [], none, none, none]))


DEEP = b"\x91" * 100_000
"""Lists in lists, deeper than the interpreter's stack."""
DECODERS: dict[str, Callable[[bytes], object]] = {
    "raw": lambda deep: decode_raw(RAW + deep),
    "skipped field": lambda deep: decode_raw(
        RAW + b"\xdc\x00\x09" + b"\xa0\0\xc2" + b"\xc4\0" * 5 + deep
    ),
    "out": lambda deep: decode_out(b"O" + deep),
    "stated": lambda deep: decode_stated(CURRENT + deep, n_lanes=1),
    "file": lambda deep: HeldFiles().take(b"F" + deep),
    "state": lambda deep: unpack_state("lane", deep),
    "window": lambda deep: decode_release(b"Q" + deep),
    "classes": lambda deep: decode_release(b"P" + deep),
}


@pytest.mark.parametrize("decoder", DECODERS)
def test_what_is_nested_deeply_is_refused_as_all_that_is_unreadable(decoder: str) -> None:
    with pytest.raises(ValueError, match=r"^(these bytes|this) (are|is|states) no ") as caught:
        DECODERS[decoder](DEEP)
    assert caught.value.__cause__ is None


def test_a_retained_part_that_no_worker_has_made_stops_no_bridge() -> None:
    settings = Settings()
    for payload in (b"[" * 100_000, b"{", b'{"groups": 1}', b'{"of": "x"}'):
        message = Outgoing(f"{settings.topics.current}/0", payload, retain=True)
        fitted = RetainedParts(settings, lambda _topic: 3_000).fitted([message])
        assert fitted == [message]
