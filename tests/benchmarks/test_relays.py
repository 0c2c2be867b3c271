"""The bare relay passes on what it receives, packet by packet, however the bytes are cut."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.pipeline.ports import Outgoing
from anonymizer.transport.packets import PUBACK, encode_acknowledgements, encode_publish
from benchmarks.relays import PREFIX, relayed

PINGRESP = b"\xd0\x00"
messages = st.lists(
    st.tuples(st.text("abc/", min_size=1, max_size=150), st.binary(max_size=300)), max_size=5
)


def answer(
    stream: bytes, qos: int, mid: int = 0, *, probes_only: bool = False
) -> tuple[bytes, bytes, int]:
    """Return what the relay writes, what it leaves for the next read, and its message count."""
    out = np.zeros(3 * len(stream) + 16, np.uint8)
    data = np.frombuffer(stream, np.uint8)
    n_read, n_out, n, _ = relayed(data, len(data), out, mid, qos, probes_only)
    return out[:n_out].tobytes(), stream[n_read:], n


@pytest.mark.parametrize("qos", [0, 1])
@given(sent=messages, cut=st.integers(0, 10_000))
def test_each_message_goes_out_under_its_own_topic_with_a_prefix(
    qos: int, sent: list[tuple[str, bytes]], cut: int
) -> None:
    stream, wanted = PINGRESP, b""
    for number, (topic, payload) in enumerate(sent, start=1):
        stream += encode_publish(Outgoing(topic, payload), mid=700 * qos, version5=False)
        wanted += encode_publish(
            Outgoing(PREFIX + topic, payload), mid=number * qos, version5=False
        )
        if qos:
            wanted += encode_acknowledgements(PUBACK, [700])
    assert answer(stream, qos) == (wanted, b"", len(sent))
    cut = min(cut, len(stream))
    first, rest, n_first = answer(stream[:cut], qos)
    second, left, n_second = answer(rest + stream[cut:], qos, mid=n_first)
    assert (first + second, left, n_first + n_second) == (wanted, b"", len(sent))


@pytest.mark.parametrize("qos", [0, 1])
def test_a_receiver_counts_and_acknowledges_all_and_passes_probes_on(qos: int) -> None:
    topics = ["positions/1", "probes/2", "positions/3"]
    packets = [
        encode_publish(Outgoing(topic, b"here"), mid=9 * qos, version5=False) for topic in topics
    ]
    probe = encode_publish(Outgoing(PREFIX + topics[1], b"here"), mid=qos, version5=False)
    acks = encode_acknowledgements(PUBACK, [9]) if qos else b""
    wanted = acks + probe + acks + acks
    assert answer(b"".join(packets), qos, probes_only=True) == (wanted, b"", 3)
