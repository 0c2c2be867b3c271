"""A link whose input is received in a process of its own, over Mosquitto."""

import asyncio
import os
import random
import signal
import socket
import sys
from collections.abc import Sequence

import pytest

from anonymizer.pipeline.packed import PackedDeliveries
from anonymizer.pipeline.ports import Delivery, LinkCounts, Loss, Outgoing
from anonymizer.transport import MqttLink
from anonymizer.transport.channel import Arrived, Begin, Channel, Message
from anonymizer.transport.local_brokers import LocalBroker
from anonymizer.transport.receiving import ReceivingLink
from anonymizer.transport.shared_batches import Place, SharedBatches, open_memory
from tests.transport.support import DEADLINE_S, Inbox, running, settings

FILTERS = [("a/#", 1), ("b/+", 0)]
LARGE = 100_000
ROOM = 1 << 20


def receiving(broker: LocalBroker, inbox: Inbox, **changes: object) -> ReceivingLink:
    return ReceivingLink(
        settings(broker.url, **changes),
        client_id="receiver",
        output_client_id="output",
        deliver=inbox.deliver,
        subscriptions=FILTERS,
        on_state=inbox.on_state,
        memory_bytes=ROOM,
        patience_s=DEADLINE_S,
    )


def hostile(n: int) -> list[Outgoing]:
    """Return messages of every kind that a device may send: none is refused by the broker."""
    rng = random.Random(7)  # noqa: S311  keeps no secret
    topics = ["a", "a/x", "b/x", "b/\N{SNOWMAN}", "a/" + "long" * 500, "a//", "b/1"]
    return [
        Outgoing(
            topics[i % len(topics)],
            rng.randbytes(LARGE if i % 200 == 0 else rng.choice([0, 1, 60, 5_000])),
            retain=i % 50 == 0,
        )
        for i in range(n)
    ]


async def test_what_a_process_receives_is_what_arrives_without_one(broker: LocalBroker) -> None:
    inbox, plain = Inbox(), Inbox()
    link = receiving(broker, inbox)
    twin = MqttLink(
        settings(broker.url), client_id="twin", deliver=plain.deliver, subscriptions=FILTERS
    )
    sender = MqttLink(settings(broker.url), client_id="sender", deliver=lambda _: None)
    messages = hostile(2_000)
    async with running(sender):
        assert all(await sender.publish(messages[:100], qos=1, timeout_s=DEADLINE_S))
        async with running(link), running(twin):
            n_retained = len({each.topic for each in messages[:100] if each.retain})
            await inbox.receives(n_retained)
            await plain.receives(n_retained)
            for qos in (0, 1):
                await sender.publish(messages, qos=qos, timeout_s=DEADLINE_S)
            await plain.receives(n_retained + 2 * len(messages))
            await inbox.receives(n_retained + 2 * len(messages))
            link.acknowledge(each.receipt for each in inbox.deliveries)
            await link.stop_receiving()
            assert all(await link.publish(messages[:9], qos=1, timeout_s=DEADLINE_S))
            await plain.receives(n_retained + 2 * len(messages) + 9)
    # The broker has a queue for each QoS, and sends retained messages in any order.
    for receipts in (False, True):
        found = [each for each in inbox.deliveries if bool(each.receipt) is receipts]
        wanted = [each for each in plain.deliveries if bool(each.receipt) is receipts]
        seen = [(each.topic, each.payload, each.retained) for each in found]
        told = [(each.topic, each.payload, each.retained) for each in wanted]
        left = told[len(seen) :]
        assert sorted(seen[:n_retained]) == sorted(told[:n_retained])
        assert seen[n_retained:] == told[n_retained : len(seen)]
        assert len(left) <= 9  # sent after the end of the inflow
    assert [up for up, _ in inbox.states] == [True, False, False]  # each end of a connection
    assert link.counts.n_connections == link.output_counts.n_connections == 1


@pytest.mark.parametrize(
    ("blow", "reason"),
    [
        (signal.SIGKILL, "the receiving process has ended"),
        (signal.SIGSTOP, "the receiving process hangs"),
    ],
)
async def test_what_a_lost_process_had_not_acknowledged_comes_again(
    broker: LocalBroker, blow: signal.Signals, reason: str
) -> None:
    inbox = Inbox()
    link = receiving(broker, inbox, session_expiry_s=600)
    sent = [str(i).encode() for i in range(300)]
    messages = [Outgoing("a/x", payload) for payload in sent]
    sender = MqttLink(settings(broker.url), client_id="sender", deliver=lambda _: None)
    async with running(sender), running(link):
        await sender.publish(messages[:200], qos=1, timeout_s=DEADLINE_S)
        await inbox.receives(200)
        first = inbox.deliveries
        assert link.pid is not None
        os.kill(link.pid, blow)
        if blow is signal.SIGSTOP:
            link.patience_s = 0.0  # not before: a process may be slow
        await inbox.loses(reason)
        link.patience_s = DEADLINE_S
        await sender.publish(messages[200:], qos=1, timeout_s=DEADLINE_S)
        await inbox.receives(200 + 300)
        await link.until_connected()  # which is reported after the first messages
        again = inbox.deliveries[200:]
        link.acknowledge(each.receipt for each in first)  # of the process that is gone
        link.acknowledge(each.receipt for each in again)
        assert {each.payload for each in again} == set(sent)
        assert not {each.receipt for each in first} & {each.receipt for each in again}
    assert link.counts.lost[Loss.PROCESS] == 1
    assert (link.counts.n_connections, link.counts.n_sessions_lost) == (2, 0)
    last = Inbox()
    after = MqttLink(
        settings(broker.url, session_expiry_s=600),
        client_id="receiver",
        deliver=last.deliver,
        subscriptions=FILTERS,
    )
    async with running(after):
        await after.publish([Outgoing("a/x", b"last")], qos=1, timeout_s=DEADLINE_S)
        await last.receives(1)
    assert last.payloads == [b"last"]  # everything else was acknowledged


async def test_a_consumer_that_raises_ends_the_link_and_its_process(broker: LocalBroker) -> None:
    class Broken(Inbox):
        def deliver(self, batch: Sequence[Delivery]) -> None:
            super().deliver(batch)
            raise LookupError("broken consumer")

    link = receiving(broker, Broken())
    async with asyncio.timeout(DEADLINE_S):
        running_link = asyncio.create_task(link.run())
        await link.until_connected()
        await link.publish([Outgoing("a/x", b"")], qos=1, timeout_s=DEADLINE_S)
        with pytest.raises(LookupError, match="broken consumer"):
            await running_link
    assert not link.connected
    assert link.pid is None


async def test_the_process_ends_when_its_gateway_is_gone() -> None:
    ours, theirs = socket.socketpair()
    file = open_memory(1000)
    given = (theirs.fileno(), file)
    command = (sys.executable, "-m", "anonymizer.transport.receiver", *map(str, given))
    process = await asyncio.create_subprocess_exec(*command, pass_fds=given)
    os.close(file)
    theirs.close()
    ours.close()
    async with asyncio.timeout(DEADLINE_S):
        assert await process.wait() == 0


def test_batches_share_the_memory_until_it_is_full_and_reuse_what_is_released() -> None:
    file = open_memory(300)
    writer, reader = SharedBatches(file), SharedBatches(file)
    os.close(file)
    batch = PackedDeliveries.of(
        [Delivery("a", b"first", 1), Delivery("bc", b"", 0, retained=True)]
    ).copied()
    places = []
    while (place := writer.put(batch)) is not None:
        places.append(place)
    assert len(places) == 300 // (25 * 2 + 8)
    for place in places:
        assert list(reader.take(place)) == list(batch)
        assert writer.put(batch) is None
        writer.release(place)
    assert writer.put(batch) == places[0]
    with pytest.raises(ValueError, match="larger than"):
        writer.put(PackedDeliveries.of([Delivery("a", bytes(300), 0)]))
    assert "first" not in repr(reader)


async def test_a_channel_passes_messages_on_and_reveals_no_password() -> None:
    seen: list[Message] = []
    ends, loop = socket.socketpair(), asyncio.get_running_loop()
    channels = [
        (await loop.create_connection(lambda: Channel(seen.append), sock=end))[1] for end in ends
    ]
    begin = Begin({"url": "mqtt://x"}, "secret", "me", [("a/#", 1)], 5, LinkCounts(), 99)
    assert "secret" not in repr(begin)
    sent: list[Message] = [begin, Arrived(Place(1, 2, 3))] * 1000  # more than one read
    for message in sent:
        channels[0].send(message)
    channels[0].close()
    async with asyncio.timeout(DEADLINE_S):
        await channels[1].ended.wait()
    assert seen == sent
    channels[1].send(begin)  # dropped
