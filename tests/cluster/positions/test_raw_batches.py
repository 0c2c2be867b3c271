"""Raw messages as bytes and back; bytes of others."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.cluster.positions.raw_batches import (
    Raw,
    decode_out,
    decode_raw,
    encode_out,
    encode_raw,
)
from anonymizer.pipeline.packed_deliveries import PackedDeliveries
from anonymizer.pipeline.ports import Delivery, Outgoing
from anonymizer.pipeline.positions.tick.inbox import Arrivals

DELIVERY = st.builds(
    Delivery,
    st.sampled_from(["a", "b/c", "straße", "\ud800"]),
    st.binary(max_size=5),
    st.integers(0, 3),
    st.booleans(),
)
BATCH = st.lists(DELIVERY, max_size=4)
ARRIVALS = st.lists(st.builds(Arrivals, st.floats(0, 2e9), BATCH), max_size=3)
VALUE = encode_raw(Raw("b", 7, False, [Arrivals(1.0, [Delivery("secret", b"52.1", 0)])]))


@given(arrivals=ARRIVALS, tick=st.integers(-5, 5), last=st.booleans(), packed=st.booleans())
def test_a_batch_comes_back_without_receipts(
    *, arrivals: list[Arrivals], tick: int, last: bool, packed: bool
) -> None:
    given = [a._replace(deliveries=PackedDeliveries.of(a.deliveries)) for a in arrivals]
    raw = Raw("bridge", tick, last, given if packed else arrivals)
    back = decode_raw(encode_raw(raw))
    assert (back.bridge, back.tick, back.last) == ("bridge", tick, last)
    assert [(a.at_s, list(a.deliveries)) for a in back.arrivals] == [
        (a.at_s, [d._replace(receipt=0) for d in a.deliveries]) for a in arrivals
    ]


# MQTT keeps no order by key, so keys are not carried.
MESSAGES = st.builds(
    Outgoing, st.sampled_from(["a", "ä/b"]), st.binary(), st.booleans(), st.none(), st.just("")
)


@given(st.lists(MESSAGES))
def test_messages_for_mqtt_come_back(messages: list[Outgoing]) -> None:
    assert decode_out(encode_out(messages)) == messages


@given(st.integers(0, len(VALUE) - 1), st.binary(max_size=3))
def test_other_bytes_are_refused_without_their_content(at: int, what: bytes) -> None:
    for value in (VALUE[:at], VALUE[:at] + what + VALUE[at + len(what) :], what):
        try:
            read = decode_raw(value).arrivals
        except ValueError as error:
            seen = str(error)
        else:
            assert all(isinstance(d.topic, str) for batch in read for d in batch.deliveries)
            continue
        assert seen == "these bytes are no batch of messages"
    for value in (VALUE, what):
        with pytest.raises(ValueError, match="no batch"):
            decode_out(value)


@pytest.mark.parametrize("topics", [b"a\xc3\x28b", b"a\xc3\x9fb"])
def test_a_topic_that_is_no_text_is_refused(topics: bytes) -> None:
    two = [Delivery("ax", b"", 0), Delivery("yb", b"", 0)]
    value = encode_raw(Raw("b", 0, False, [Arrivals(0.0, two)]))
    assert decode_raw(value)
    with pytest.raises(ValueError, match="no batch"):  # also if both together are text
        decode_raw(value.replace(b"axyb", topics))


@pytest.mark.parametrize("topic", ["", "a/+", "#", "a\0"])
def test_a_topic_that_cannot_be_published_to_is_refused(topic: str) -> None:
    with pytest.raises(ValueError, match="no batch"):
        decode_out(encode_out([Outgoing(topic, b"")]))


def test_a_repr_reveals_nothing() -> None:
    assert "secret" not in repr(decode_raw(VALUE))
