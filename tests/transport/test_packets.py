"""Packets that carry data, read and written; paho's decoder is the independent twin."""

import random
from collections.abc import Iterable
from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st
from paho.mqtt import _packet
from paho.mqtt.enums import MQTTProtocolVersion

from anonymizer.pipeline.ports import Headers, Outgoing
from anonymizer.transport.packets import (
    PUBACK,
    MalformedPacketError,
    PacketReader,
    Puback,
    Publish,
    Publishes,
    Pubrel,
    Skipped,
    _length,
    encode_acknowledgements,
    encode_publish,
)
from anonymizer.transport.packets import Packet as AnyPacket
from tests.examples import many

TOPIC = st.text(min_size=1, max_size=20).filter(
    lambda t: not set("+#\x00") & set(t) and t.isprintable()
)
TEXT = st.text(max_size=9).filter(str.isprintable)
HEADERS = st.builds(Headers, TEXT, st.lists(st.tuples(TEXT, TEXT), max_size=12).map(tuple))
MESSAGE = st.builds(Outgoing, TOPIC, st.binary(max_size=300), st.booleans(), st.none() | HEADERS)
MID = st.integers(0, 65535)
Packet: TypeAlias = Publish | Puback | Pubrel | Skipped | bytes


def reader(*, version5: bool, limit_bytes: int = 1 << 20) -> PacketReader:
    return PacketReader(version5=version5, limit_bytes=limit_bytes)


def unpacked(packets: Iterable[AnyPacket]) -> list[Packet]:
    """Return every packet by itself."""
    one_by_one: list[Packet] = []
    for packet in packets:
        if isinstance(packet, Publishes):
            columns = (packet.bounds.tolist(), packet.mid.tolist(), packet.retained.tolist())
            for (topic, end, payload, stop), mid, retained in zip(*columns, strict=True):
                name, body = packet.stream[topic:end].decode(), packet.stream[payload:stop]
                one_by_one.append(Publish(name, body, mid, retained))
        else:
            one_by_one.append(packet)
    return one_by_one


def read(stream: bytes) -> list[Packet]:
    return unpacked(reader(version5=True).feed(stream))


@many(3)
@given(message=MESSAGE, mid=MID, version5=st.booleans())
def test_paho_decodes_an_encoded_publish(*, message: Outgoing, mid: int, version5: bool) -> None:
    packet = encode_publish(message, mid=mid, version5=version5)
    body = packet[2 if packet[1] < 0x80 else 3 :]
    version = MQTTProtocolVersion.MQTTv5 if version5 else MQTTProtocolVersion.MQTTv311
    decoded = _packet.decode_publish(packet[0], body, version)
    assert (decoded.topic.decode(), decoded.payload, decoded.retain) == message[:3]
    headers = message.headers
    said = decoded.properties
    assert getattr(said, "ContentType", None) == (
        headers.content_type if headers and version5 else None
    )
    assert tuple(getattr(said, "UserProperty", ())) == (
        headers.user if headers and version5 else ()
    )
    assert (decoded.mid, decoded.qos, decoded.dup) == (mid, int(mid > 0), False)


@many(3)
@given(sent=st.lists(st.tuples(MESSAGE, MID), max_size=8), version5=st.booleans(), data=st.data())
def test_packets_are_the_same_however_the_bytes_are_chunked(
    *, sent: list[tuple[Outgoing, int]], version5: bool, data: st.DataObject
) -> None:
    stream = b"".join(encode_publish(m, mid=mid, version5=version5) for m, mid in sent)
    cuts = data.draw(st.lists(st.integers(0, len(stream)), max_size=10).map(sorted))
    one = reader(version5=version5)
    pieces = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    received = unpacked(packet for piece in pieces for packet in one.feed(piece))
    assert received == [Publish(m.topic, m.payload, mid, m.retain) for m, mid in sent]


BROKEN = [
    b"\x36\x08\x00\x01t\x00\x01\x00xx",  # QoS 3
    b"\x30\x03\x00\x00\x00",  # no topic
    b"\x30\x03\x00\x09t",  # a topic beyond the packet
    b"\x32\x06\x00\x01t\x00\x00\x00",  # QoS 1 without identifier
    b"\x30\x04\x00\x01t\x05",  # properties beyond the packet
    b"\x30\x04\x00\x01\xff\x00",  # not UTF-8
    b"\x30\xff\xff\xff\xff\x01",  # a length of five bytes
    b"\x30\xff\xff\xff\x7f",  # above the limit
]


@pytest.mark.parametrize("last", [b"", *BROKEN])
@pytest.mark.parametrize("version5", [True, False])
@pytest.mark.parametrize("seed", range(8))
def test_many_messages_at_once_are_those_that_come_one_by_one(
    *, last: bytes, version5: bool, seed: int
) -> None:
    """The reader of few bytes, which the tests above compare with paho, is the slow twin."""
    rng = random.Random(seed)  # noqa: S311  equal seeds give equal packets
    packets = [
        encode_acknowledgements(PUBACK, [rng.randrange(1, 65536)])
        if rng.random() < 0.1
        else encode_publish(
            Outgoing(
                rng.choice(["tram/1", "tram/22", "straßenbahn/3", "t" * rng.randrange(1, 300)]),
                rng.randbytes(rng.choice([0, 1, 90, 90, 90, 5_000])),
                retain=rng.random() < 0.2,
            ),
            mid=rng.choice([0, rng.randrange(1, 65536)]),
            version5=version5,
        )
        for _ in range(rng.randrange(100, 1_000))
    ]
    stream = b"".join([*packets, last])

    def read_in_pieces(n_bytes: int) -> tuple[list[Packet], bool]:
        one, received = reader(version5=version5), list[Packet]()
        try:
            for start in range(0, len(stream), n_bytes):
                for packet in one.feed(stream[start : start + n_bytes]):
                    received += unpacked([packet])
        except MalformedPacketError:
            return received, True
        return received, False

    assert read_in_pieces(1 << 18) == read_in_pieces(100)


def test_a_large_packet_can_arrive_byte_by_byte() -> None:
    packet = encode_publish(Outgoing("t", b"x" * 20_000), mid=0, version5=True)
    one = reader(version5=True)
    received = [p for i in range(len(packet)) for p in one.feed(packet[i : i + 1])]
    assert unpacked(received) == [Publish("t", b"x" * 20_000, 0, retained=False)]


def test_properties_of_a_message_are_skipped() -> None:
    packet = b"\x30\x08" + b"\x00\x01t" + b"\x02\x01\x01" + b"hi"
    assert read(packet) == [Publish("t", b"hi", 0, retained=False)]


def test_acknowledgements_are_written_and_read() -> None:
    assert read(encode_acknowledgements(PUBACK, [1, 65535])) == [
        Puback(1, accepted=True),
        Puback(65535, accepted=True),
    ]
    assert read(b"\x40\x04\x00\x07\x87\x00\x40\x03\x00\x08\x10") == [
        Puback(7, accepted=False),
        Puback(8, accepted=True),
    ]


@pytest.mark.parametrize(("code", "accepted"), [(0x00, True), (0x7F, True), (0x80, False)])
def test_a_message_is_refused_by_a_code_of_at_least_128(*, code: int, accepted: bool) -> None:
    assert read(b"\x40\x03\x00\x07" + bytes([code])) == [Puback(7, accepted=accepted)]


def test_a_packet_of_exactly_the_limit_is_read() -> None:
    packet = encode_publish(Outgoing("t", b"x" * 97), mid=0, version5=True)
    one = reader(version5=True, limit_bytes=101)
    assert [*one.feed(packet)] == [Publish("t", b"x" * 97, 0, retained=False)]
    [above] = one.feed(encode_publish(Outgoing("t", b"x" * 98), mid=0, version5=True))
    assert isinstance(above, Publish)
    assert above.payload[:1] != b"x"


@pytest.mark.parametrize(
    ("length", "digits"), [(127, b"\x7f"), (128, b"\x80\x01"), (16_384, b"\x80\x80\x01")]
)
def test_lengths_are_written_in_groups_of_seven_bits(length: int, digits: bytes) -> None:
    assert _length(length) == digits


def test_other_packets_of_a_server_are_passed_on_whole() -> None:
    packets = [b"\x20\x03\x00\x00\x00", b"\xd0\x00", b"\x90\x03\x00\x01\x00", b"\xe0\x00"]
    assert read(b"".join(packets)) == packets


@pytest.mark.parametrize(
    ("stream", "reason"),
    [
        (b"\x36\x05\x00\x01t\x00\x01", "QoS"),
        (b"\x30\x02\x00\x00", "without topic"),
        (b"\x30\x01\x00", "without topic"),
        (b"\x30\x00", "without topic"),
        (b"\x30\x03\x00\x09t", "without topic"),
        (b"\x32\x03\x00\x01t", "identifier"),
        (b"\x32\x05\x00\x01t\x00\x00", "identifier"),
        (b"\x30\x04\x00\x01\xff\x00", "UTF-8"),
        (b"\x30\x03\x00\x01t", "properties"),
        (b"\x30\x04\x00\x01t\x05", "properties"),
        (b"\x30\x04\x00\x01t\xff\x30\x30\x30", "properties"),
        (b"\x40\x01\x00", "PUBACK"),
        (b"\x62\x01\x00", "PUBREL"),
        (b"\x10\x00", "no server may send"),
        (b"\x52\x02\x00\x01", "no server may send"),
        (b"\xf0\x00", "no server may send"),
        (b"\x90\x81\x81\x41", "size limit"),
        (b"\x30\xff\xff\xff\xff\x01", "four bytes"),
    ],
)
def test_a_stream_that_breaks_the_protocol_is_refused_with_the_reason(
    stream: bytes, reason: str
) -> None:
    with pytest.raises(MalformedPacketError, match=reason):
        read(stream)


@many(3)
@given(stream=st.binary(max_size=200), version5=st.booleans())
def test_whatever_arrives_is_read_or_refused(*, stream: bytes, version5: bool) -> None:
    one = reader(version5=version5, limit_bytes=100)
    try:
        n_packets = len(list(one.feed(stream)))
    except MalformedPacketError:
        return
    assert n_packets <= len(stream) / 2


@pytest.mark.parametrize("topic", ["", "a/+", "#", "nul\x00", "half \ud800", "x" * 65536])
def test_a_topic_that_cannot_be_published_to_is_refused_without_naming_it(topic: str) -> None:
    with pytest.raises(ValueError, match="topic is empty, too long") as caught:
        encode_publish(Outgoing(topic, b""), mid=0, version5=True)
    assert not topic or topic not in str(caught.value)


def test_a_payload_above_the_limit_of_mqtt_is_refused() -> None:
    with pytest.raises(ValueError, match="256 MiB"):
        _length(1 << 28)


def test_packets_before_a_malformed_one_are_still_read() -> None:
    stream = reader(version5=True).feed(b"\x30\x04\x00\x01t\x00\xf0\x00")
    assert next(stream) == Publish("t", b"", 0, retained=False)
    with pytest.raises(MalformedPacketError):
        next(stream)


def test_a_message_shows_neither_topic_nor_payload() -> None:
    assert repr(Publish("device/7", b"60.1,24.9", 0, retained=False)) == "Publish(...)"
