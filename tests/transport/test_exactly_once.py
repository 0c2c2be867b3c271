"""QoS 2: through Mosquitto with the QoS of the sender, and as a model."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from hypothesis import given
from hypothesis import strategies as st

from anonymizer.pipeline.ports import ONCE, Loss
from anonymizer.transport import MqttLink
from anonymizer.transport.exactly_once import ExactlyOnce
from anonymizer.transport.local_brokers import LocalBroker
from anonymizer.transport.unsettled import Receipts
from tests.end_to_end import client
from tests.examples import many
from tests.transport.peers import Server, served
from tests.transport.support import VERSIONS, Inbox, running, settings
from tests.transport.unchanged import Alter, UnchangedBroker

PUBACK, PUBREC, PUBCOMP = 4, 5, 7


@asynccontextmanager
async def unchanged(
    broker: LocalBroker, version: str, inbox: Inbox, **changes: object
) -> AsyncIterator[tuple[MqttLink, UnchangedBroker]]:
    """Run a link to a broker that hands on at the QoS of the sender."""
    relay = UnchangedBroker(broker.url, version5=version == "5")
    async with relay.serving():
        link = MqttLink(
            settings(relay.url, version=version, session_expiry_s=600, **changes),
            client_id="link",
            deliver=inbox.deliver,
            subscriptions=[("in/#", 1)],
            on_state=inbox.on_state,
        )
        async with running(link):
            yield link, relay


def watched(sent: list[bytes]) -> Alter:
    """Note what passes."""

    def note(packet: bytes) -> bytes:
        sent.append(packet)
        return packet

    return note


def kinds(packets: Sequence[bytes]) -> list[int]:
    return [packet[0] >> 4 for packet in packets]


@VERSIONS
async def test_messages_at_qos_2_come_once_each_and_are_released(
    broker: LocalBroker, version: str
) -> None:
    inbox = Inbox()
    async with unchanged(broker, version, inbox) as (link, relay):
        sent = list[bytes]()
        relay.to_broker(watched(sent))
        async with client(broker.url, "device") as device:
            for i in range(50):
                await device.publish(f"in/{i}", b"%d" % i, qos=i % 3)
        await inbox.receives(50)
        assert sorted(map(int, inbox.payloads)) == list(range(50))
        assert {d.receipt > ONCE for d in inbox.deliveries if int(d.payload) % 3 == 2} == {True}
        assert PUBREC not in kinds(sent)  # not before they are settled
        for _ in range(2):
            link.acknowledge([d.receipt for d in inbox.deliveries])
        await relay.until(lambda: kinds(sent).count(PUBCOMP) == 16)
        assert (kinds(sent).count(PUBACK), kinds(sent).count(PUBREC)) == (17, 16)
        assert not any(link.counts.lost.values())


@VERSIONS
async def test_what_is_settled_or_still_held_is_not_delivered_again_after_a_lost_connection(
    broker: LocalBroker, version: str
) -> None:
    inbox = Inbox()
    async with unchanged(broker, version, inbox) as (link, relay):
        async with client(broker.url, "device") as device:
            for i in range(4):
                await device.publish(f"in/{i}", b"%d" % i, qos=2)
        await inbox.receives(4)
        receipts = [d.receipt for d in inbox.deliveries]
        relay.to_broker(lambda packet: b"" if packet[0] >> 4 == PUBREC else packet)
        link.acknowledge(receipts[:1])  # nobody learns of it
        released = list[bytes]()
        relay.to_broker(watched(released))
        for n in (2, 3):
            relay.cut()
            link.acknowledge(receipts[1:2])  # while there is no connection, or an old one
            await inbox.until(lambda n=n: link.counts.n_connections == n)  # type: ignore[misc]
        link.acknowledge(receipts[2:])  # on a later connection than that on which they came
        async with client(broker.url, "device") as device:
            await device.publish("in/4", b"4", qos=2)
        await inbox.receives(5)
        link.acknowledge([inbox.deliveries[-1].receipt])
        await relay.until(lambda: len({p[2:4] for p in released if p[0] >> 4 == PUBCOMP}) == 5)
        assert inbox.payloads == [b"0", b"1", b"2", b"3", b"4"]


async def test_a_message_that_the_consumer_has_lost_comes_again(broker: LocalBroker) -> None:
    inbox, relay = Inbox(), UnchangedBroker(broker.url, version5=True)
    async with relay.serving():
        link = MqttLink(
            settings(relay.url, session_expiry_s=600),
            client_id="link",
            deliver=inbox.deliver,
            subscriptions=[("in/#", 1)],
        )
        task = asyncio.create_task(link.run())
        await link.until_connected()
        async with client(broker.url, "device") as device:
            await device.publish("in/x", b"lost", qos=2)
        await inbox.receives(1)
        task.cancel()
        await asyncio.wait([task])
        async with running(link):
            await inbox.receives(2)
    assert inbox.payloads == [b"lost"] * 2


def at_qos_2(mid: int, payload: bytes, *, dup: bool = False) -> bytes:
    """Return a short PUBLISH of MQTT 5 to the topic `t`."""
    body = b"\x00\x01t" + mid.to_bytes(2) + b"\x00" + payload
    return bytes([0x3C if dup else 0x34, len(body)]) + body


@asynccontextmanager
async def hand_made(
    deliver: Inbox,
) -> AsyncIterator[tuple[MqttLink, asyncio.StreamWriter, Server]]:
    async with served(inbox=deliver) as (link, server):
        assert server.writer is not None
        yield link, server.writer, server


async def test_a_repetition_before_the_release_is_acknowledged_and_not_delivered() -> None:
    inbox = Inbox()
    async with hand_made(inbox) as (link, writer, server):
        writer.write(at_qos_2(7, b"a") + at_qos_2(7, b"a", dup=True) + at_qos_2(8, b"b"))
        await inbox.receives(2)
        assert inbox.payloads == [b"a", b"b"]
        assert server.acknowledged == []
        link.acknowledge([inbox.deliveries[0].receipt])
        writer.write(at_qos_2(7, b"a", dup=True) + b"\x62\x02\x00\x07")
        await server.until_acknowledged(3)
        assert server.acknowledged == [b"\x50\x02\x00\x07"] * 2 + [b"\x70\x02\x00\x07"]
        writer.write(at_qos_2(7, b"a"))  # released, so it is another message
        await inbox.receives(3)
        assert not any(link.counts.lost.values())


async def test_an_identifier_that_comes_with_another_message_loses_neither() -> None:
    inbox = Inbox()
    async with hand_made(inbox) as (link, writer, server):
        writer.write(at_qos_2(7, b"a") + at_qos_2(7, b"other"))
        await inbox.receives(2)
        link.acknowledge(delivery.receipt for delivery in inbox.deliveries)
        await server.until_acknowledged(1)
        assert inbox.payloads == [b"a", b"other"]
        assert server.acknowledged == [b"\x50\x02\x00\x07"]


async def test_a_broker_that_has_lost_the_session_uses_its_identifiers_anew() -> None:
    inbox = Inbox()
    async with hand_made(inbox) as (link, writer, server):
        writer.write(at_qos_2(7, b"a"))
        await inbox.receives(1)
        writer.close()
        await inbox.until(lambda: link.counts.n_connections == 2)  # it says that it has no session
        assert server.writer is not None
        server.writer.write(at_qos_2(7, b"a"))
        await inbox.receives(2)


async def test_a_release_of_an_unknown_identifier_is_completed() -> None:
    async with hand_made(Inbox()) as (link, writer, server):
        writer.write(b"\x62\x02\x01\x02" + b"\x62\x03\x01\x03\x92")
        await server.until_acknowledged(2)
        assert server.acknowledged == [b"\x70\x02\x01\x02", b"\x70\x02\x01\x03"]
        assert link.counts.lost[Loss.MALFORMED] == 0


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("arrive"), st.integers(1, 3), st.sampled_from([b"a", b"b"])),
        st.tuples(st.just("settle"), st.integers(0, 9)),
        st.tuples(st.just("release"), st.integers(1, 3)),
        st.tuples(st.sampled_from(["cut", "forget", "abandon"])),
    ),
    max_size=25,
)


@many(3)
@given(steps=STEPS)
def test_whatever_happens_a_receipt_is_acknowledged_once_and_only_while_it_is_held(
    steps: Sequence[tuple[object, ...]],
) -> None:
    once, receipts = ExactlyOnce(Receipts()), list[int]()
    held: dict[int, tuple[object, int, bool]] = {}  # by identifier: payload, receipt or 0, is here
    for kind, *what in steps:
        match kind, what:
            case "arrive", [int(mid), bytes(payload)]:
                known = held.get(mid)
                got = once.arrive(mid, b"t", payload)
                if known is not None and known[0] == payload:
                    assert got == (None if known[1] else 0)
                    held[mid] = (payload, known[1], True)
                else:
                    assert got is not None
                    assert got > ONCE
                    assert got not in receipts
                    receipts.append(got)
                    held[mid] = (payload, got, True)
            case "settle", [int(i)] if i < len(receipts):
                mids = [m for m, (_, receipt, _) in held.items() if receipt == receipts[i]]
                assert once.settle([receipts[i]]) == [m for m in mids if held[m][2]]
                held |= {m: (held[m][0], 0, held[m][2]) for m in mids}
            case "release", [int(mid)]:
                once.release(mid)
                held.pop(mid, None)
            case "cut", _:
                once.disconnect()
                held = {m: (payload, receipt, False) for m, (payload, receipt, _) in held.items()}
            case "forget", _:
                once.forget()
                held = {}
            case "abandon", _:
                once.abandon()
                held = {m: each for m, each in held.items() if not each[1]}
        assert once.n_unsettled == sum(bool(receipt) for _, receipt, _ in held.values())
