"""One bad message costs itself: what is too large, and what cannot be read at all."""

import asyncio
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.pipeline.ports import Loss, Outgoing
from anonymizer.transport import MqttLink
from anonymizer.transport.mqtt_session import MOST_PACKET_BYTES
from anonymizer.transport.packets import (
    MalformedPacketError,
    PacketReader,
    Publish,
    Skipped,
    encode_publish,
)
from anonymizer.transport.quarantine import MOST_ENDS, Quarantine
from tests.end_to_end import DEADLINE_S
from tests.examples import many
from tests.transport.peers import ACCEPTED, Serve, peer, read_packet, served
from tests.transport.support import Inbox, running, settings
from tests.transport.test_packets import unpacked

SUBSCRIBE = 8
LIMIT, MOST = 300, 40
PIECE_BYTES = 1 << 18
NOT_UTF8 = b"\x32\x07\x00\x01\xff\x00\x09\x00x"
"""At QoS 1, with identifier 9."""


def reader(*, version5: bool = True, quarantine: Quarantine | None = None) -> PacketReader:
    return PacketReader(
        version5=version5, limit_bytes=LIMIT, max_payload_bytes=MOST, quarantine=quarantine
    )


@many(3)
@given(
    sizes=st.lists(st.integers(0, 3 * LIMIT), min_size=1, max_size=5),
    qos=st.integers(0, 2),
    version5=st.booleans(),
    data=st.data(),
)
def test_a_message_above_the_limit_comes_too_large_and_its_neighbours_whole(
    *, sizes: list[int], qos: int, version5: bool, data: st.DataObject
) -> None:
    packets, wanted = [], []
    for i, size in enumerate(sizes, start=1):
        mid = i if qos else 0
        packet = encode_publish(Outgoing(f"t/{i}", bytes(size)), mid=mid, version5=version5)
        packets.append(bytes([packet[0] + 2 * (qos == 2)]) + packet[1:])
        is_above = len(packets[-1]) - 3 > LIMIT
        wanted.append((f"t/{i}", mid, qos == 2, MOST + 1 if is_above else size))
    stream = b"".join(packets)
    cuts = data.draw(st.lists(st.integers(0, len(stream)), max_size=8).map(sorted))
    one = reader(version5=version5)
    pieces = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    read = unpacked(packet for piece in pieces for packet in one.feed(piece))
    found = [(p.topic, p.mid, p.once, len(p.payload)) for p in read if isinstance(p, Publish)]
    assert found == wanted


def above(payload: bytes, mid: int = 1) -> Publish:
    [message] = reader().feed(encode_publish(Outgoing("t", payload), mid=mid, version5=True))
    assert isinstance(message, Publish)
    return message


def test_what_stands_for_a_payload_is_the_same_only_for_the_same() -> None:
    assert above(bytes(999)) == above(bytes(999))
    assert above(bytes(999)) != above(bytes(998) + b"x") != above(bytes(1000))


def test_what_stands_for_a_payload_depends_on_its_first_bytes_with_and_without_identifier() -> None:
    for mid in (0, 1):
        one, other = (above(first + bytes(LIMIT), mid) for first in (b"a", b"b"))
        assert one.payload != other.payload


@pytest.mark.parametrize("before_the_end", [1, 2, 3])
def test_a_message_above_the_limit_that_comes_short_of_some_bytes_is_waited_for(
    before_the_end: int,
) -> None:
    packet = encode_publish(Outgoing("t", b"x" * 2 * LIMIT), mid=1, version5=True)
    after = encode_publish(Outgoing("u", b"y"), mid=2, version5=True)
    one = reader()
    assert list(one.feed(packet[:-before_the_end])) == []
    read = unpacked(one.feed(packet[-before_the_end:] + after))
    assert [(p.topic, p.mid) for p in read if isinstance(p, Publish)] == [("t", 1), ("u", 2)]


def test_a_message_above_the_limit_takes_no_memory() -> None:
    size = 50 << 20
    packet = encode_publish(Outgoing("t", bytes(size)), mid=1, version5=True)
    one = PacketReader(version5=True, limit_bytes=MOST_PACKET_BYTES, max_payload_bytes=MOST)
    list(one.feed(encode_publish(Outgoing("t", bytes(9999)), mid=1, version5=True)))  # compiles
    tracemalloc.start()
    n_read = 0
    for at in range(0, len(packet), PIECE_BYTES):
        n_read += len(list(one.feed(packet[at : at + PIECE_BYTES])))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert n_read == 1
    assert peak < 4 << 20


def test_a_large_packet_of_another_kind_is_refused() -> None:
    with pytest.raises(MalformedPacketError, match="size limit"):
        list(reader().feed(b"\x90\xff\x7f"))


def ends(quarantine: Quarantine, packet: bytes) -> int:
    """Return how many connections a packet ends, each with a reader of its own."""
    for n in range(20):
        try:
            [skipped] = reader(quarantine=quarantine).feed(packet)
        except MalformedPacketError:
            continue
        assert isinstance(skipped, Skipped)
        return n
    return 20


@pytest.mark.parametrize(
    "packet",
    [
        NOT_UTF8,
        b"\x30\x05\x00\x01\xff\x00x",
        b"\x36\x06\x00\x01t\x00\x01\x00",  # QoS 3
        b"\x32\x06\x00\x01t\x00\x00\x00",  # no identifier
        b"\x30\x04\x00\x01t\x05",  # broken properties
        b"\x30\x03\x00\x09t",
        b"\xf0\x00",
        b"\x34\xff\x07\x00\x01\xff" + bytes(1020),  # above the limit
    ],
)
def test_a_packet_that_cannot_be_read_ends_three_connections(packet: bytes) -> None:
    told: list[tuple[int, str]] = []
    quarantine = Quarantine(lambda n, name: told.append((n, name)))
    assert ends(quarantine, packet) == MOST_ENDS
    assert ends(quarantine, packet) == 0
    [(n_bytes, name)] = told  # once
    assert n_bytes in {len(packet) - 2, len(packet) - 3}
    assert len(name) == 32
    other = Quarantine(lambda n, name: told.append((n, name)))
    ends(other, packet)
    assert told[0] != told[1]  # nobody can look for it without the key


def test_a_packet_that_keeps_coming_is_remembered_among_a_thousand_others() -> None:
    quarantine = Quarantine()
    for turn in range(MOST_ENDS):
        assert not quarantine.holds(b"again", n_bytes=5)
        for number in range(600):
            quarantine.holds(b"%d, %d" % (turn, number), n_bytes=9)
    assert quarantine.holds(b"again", n_bytes=5)


def test_it_is_known_again_by_another_identifier_and_as_a_repetition_and_no_other_packet_is() -> (
    None
):
    quarantine = Quarantine()
    assert ends(quarantine, NOT_UTF8) == MOST_ENDS
    again = b"\x3a" + NOT_UTF8[1:5] + b"\x00\x0a" + NOT_UTF8[7:]
    assert list(reader(quarantine=quarantine).feed(again)) == [Skipped(10, once=False)]
    assert ends(quarantine, NOT_UTF8[:-1] + b"y") == MOST_ENDS


def test_only_so_many_broken_packets_are_remembered() -> None:
    quarantine = Quarantine()
    for i in range(1001):
        for _ in range(MOST_ENDS):
            quarantine.holds(b"%d" % i, n_bytes=1)
    assert not quarantine.holds(b"0", n_bytes=1)
    assert quarantine.holds(b"1000", n_bytes=1)


def subscribed(then: bytes) -> Serve:
    """Accept a client and its subscription, then send these bytes."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_packet(reader)
        writer.write(ACCEPTED)
        while packet := await read_packet(reader):
            if packet[0] >> 4 == SUBSCRIBE:
                writer.write(b"\x90\x04" + packet[2:4] + b"\x00\x01" + then)

    return serve


@pytest.mark.parametrize(
    ("answer", "loss"),
    [
        (b"\x20\x03\x00\x87\x00", Loss.REFUSED),
        (b"\x31", Loss.NO_ANSWER),
        (b"\xff" * 9, Loss.MALFORMED),
        (ACCEPTED + b"\x90\x04\x00\x01\x00\x87", Loss.REFUSED),
        (ACCEPTED + NOT_UTF8, Loss.MALFORMED),
        (None, Loss.CLOSED),
    ],
)
async def test_a_connection_that_was_never_usable_is_counted_with_its_cause(
    answer: bytes | None, loss: Loss
) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_packet(reader)
        if answer is not None:
            writer.write(answer)
            await reader.read()

    inbox = Inbox()
    async with peer(serve) as url:
        link = MqttLink(
            settings(url),
            client_id="link",
            deliver=inbox.deliver,
            subscriptions=[("t", 1)],
            on_state=inbox.on_state,
            connect_timeout_s=2.0 if loss is Loss.NO_ANSWER else DEADLINE_S,
        )
        async with running(link, connected=False):
            await inbox.until(lambda: link.counts.lost[loss] >= 2)
        assert sum(link.counts.lost.values()) == link.counts.lost[loss]
    assert link.counts.n_connections == 0


async def test_an_attempt_that_makes_no_connection_is_none_that_ended() -> None:
    inbox = Inbox()
    link = MqttLink(
        settings("mqtt://127.0.0.1:1"),
        client_id="link",
        deliver=inbox.deliver,
        on_state=inbox.on_state,
    )
    async with running(link, connected=False):
        await inbox.until(lambda: len(inbox.states) > 1)
    assert not any(link.counts.lost.values())


@pytest.mark.parametrize(("qos", "acknowledgement"), [(1, b"\x40"), (2, b"\x50")])
async def test_a_packet_in_quarantine_is_acknowledged_and_counted_and_its_neighbours_arrive(
    qos: int, acknowledgement: bytes
) -> None:
    inbox, told = Inbox(), list[tuple[int, str]]()
    poison = bytes([0x30 + 2 * qos]) + NOT_UTF8[1:]

    def tell(n_bytes: int, name: str) -> None:
        told.append((n_bytes, name))

    async with served(inbox=inbox, on_quarantined=tell) as (link, server):
        for n in range(1, MOST_ENDS + 1):
            assert server.writer is not None
            server.writer.write(poison + b"\x30\x04\x00\x01t\x00")
            await inbox.until(lambda n=n: link.counts.n_connections > n)  # type: ignore[misc]
        assert inbox.payloads == []
        assert server.writer is not None
        server.writer.write(poison + b"\x30\x04\x00\x01t\x00")
        await inbox.receives(1)
        await server.until_acknowledged(1)
        assert server.acknowledged == [acknowledgement + b"\x02\x00\x09"]
        assert (link.counts.n_quarantined, len(told)) == (1, 1)
        assert link.counts.lost == dict.fromkeys(Loss, 0) | {Loss.MALFORMED: MOST_ENDS}
        assert told[0][0] == len(poison) - 2
