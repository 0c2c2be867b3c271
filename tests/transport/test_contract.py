"""The contract of every link: in memory, and over Mosquitto with both versions of MQTT."""

import asyncio
from collections.abc import Callable, Sequence
from typing import TypeAlias

import pytest

from anonymizer.pipeline.ports import Delivery, Outgoing
from anonymizer.transport import MemoryBroker, MemoryLink, MqttLink
from tests.end_to_end import DEADLINE_S
from tests.transport.support import Inbox, RunningLink, running, settings

MakeLink: TypeAlias = Callable[..., RunningLink]


@pytest.fixture(params=["memory", "5", "3.1.1"])
def make_link(request: pytest.FixtureRequest) -> MakeLink:
    """Make links to the same new broker."""
    if request.param == "memory":
        shared = MemoryBroker()

        def in_memory(inbox: Inbox, client_id: str, *filters: tuple[str, int]) -> RunningLink:
            return MemoryLink(
                shared,
                client_id=client_id,
                deliver=inbox.deliver,
                subscriptions=filters,
                on_state=inbox.on_state,
            )

        return in_memory
    broker = request.getfixturevalue("broker")

    def over_mqtt(inbox: Inbox, client_id: str, *filters: tuple[str, int]) -> RunningLink:
        return MqttLink(
            settings(broker.url, version=request.param),
            client_id=client_id,
            deliver=inbox.deliver,
            subscriptions=filters,
            on_state=inbox.on_state,
        )

    return over_mqtt


@pytest.mark.parametrize("qos", [0, 1])
async def test_published_messages_arrive_once_and_in_order(make_link: MakeLink, qos: int) -> None:
    inbox = Inbox()
    sender, receiver = make_link(Inbox(), "sender"), make_link(inbox, "receiver", ("a/+", qos))
    messages = [Outgoing(f"a/{i % 7}", str(i).encode()) for i in range(1000)]
    async with running(receiver), running(sender):
        assert await sender.publish(messages, qos=qos, timeout_s=DEADLINE_S) == [True] * 1000
        await inbox.receives(1000)
        assert [(d.topic, d.payload) for d in inbox.deliveries] == [m[:2] for m in messages]
        receipts = [d.receipt for d in inbox.deliveries]
        assert receipts == [0] * 1000 if qos == 0 else len(set(receipts) - {0}) == 1000
        receiver.acknowledge(receipts)
        receiver.acknowledge(receipts)


async def test_only_matching_topics_arrive_and_at_the_lower_qos(make_link: MakeLink) -> None:
    inbox = Inbox()
    sender, receiver = make_link(Inbox(), "s"), make_link(inbox, "r", ("a/+/c", 0), ("b/#", 1))
    topics = ["a/x/c", "a/c", "a/x/c/d", "b", "b/x/y", "bb", "a//c", "end/no", "b/end"]
    async with running(receiver), running(sender):
        await sender.publish([Outgoing(t, b"") for t in topics], qos=1, timeout_s=DEADLINE_S)
        await inbox.receives(5)
    assert [d.topic for d in inbox.deliveries] == ["a/x/c", "b", "b/x/y", "a//c", "b/end"]
    assert [d.receipt > 0 for d in inbox.deliveries] == [False, True, True, False, True]


async def test_a_message_is_marked_as_retained_only_for_later_subscribers(
    make_link: MakeLink,
) -> None:
    there, later = Inbox(), Inbox()
    sender, receiver = make_link(Inbox(), "s"), make_link(there, "r", ("t", 0))
    latecomer = make_link(later, "l", ("t", 0))
    async with running(receiver), running(sender):
        await sender.publish([Outgoing("t", b"1", retain=True)], qos=1, timeout_s=DEADLINE_S)
        await there.receives(1)
        async with running(latecomer):
            await later.receives(1)
        await sender.publish([Outgoing("t", b"", retain=True)], qos=1, timeout_s=DEADLINE_S)
        await there.receives(2)
    assert [d.retained for d in there.deliveries] == [False, False]
    assert later.deliveries == [Delivery("t", b"1", 0, retained=True)]


async def test_nothing_is_delivered_after_receiving_is_stopped(make_link: MakeLink) -> None:
    inbox, witness = Inbox(), Inbox()
    receiver, other = make_link(inbox, "r", ("t", 1)), make_link(witness, "w", ("t", 1))
    async with running(receiver), running(other):
        assert await receiver.publish([Outgoing("t", b"1")], qos=1, timeout_s=DEADLINE_S) == [True]
        await inbox.receives(1)
        await receiver.stop_receiving()
        assert await receiver.publish([Outgoing("t", b"2")], qos=1, timeout_s=DEADLINE_S) == [True]
        await witness.receives(2)
        receiver.acknowledge(d.receipt for d in inbox.deliveries)
        assert await receiver.publish([Outgoing("u", b"3")], qos=1, timeout_s=DEADLINE_S) == [True]
    assert inbox.payloads == [b"1"]


async def test_a_link_that_is_not_connected_refuses_messages_and_forgets_them(
    make_link: MakeLink,
) -> None:
    inbox = Inbox()
    link, receiver = make_link(Inbox(), "s"), make_link(inbox, "r", ("t", 1))
    async with running(receiver):
        for qos in (0, 1):
            refused = await link.publish([Outgoing("t", b"early")] * 2, qos=qos, timeout_s=1)
            assert list(refused) == [False, False]
        link.acknowledge([1, 2, 3])
        states = [link.connected]
        async with running(link):
            states.append(link.connected)
            assert await link.publish([], qos=1, timeout_s=1) == []
            assert await link.publish([Outgoing("t", b"now")], qos=1, timeout_s=DEADLINE_S) == [
                True
            ]
            await inbox.receives(1)
        states.append(link.connected)
        late = await link.publish([Outgoing("t", b"late")], qos=1, timeout_s=1)
        assert list(late) == [False]
    assert states == [False, True, False]
    assert inbox.payloads == [b"now"]


async def test_states_are_reported_and_closing_twice_or_early_is_harmless(
    make_link: MakeLink,
) -> None:
    inbox = Inbox()
    link = make_link(inbox, "a", ("t", 0))
    async with running(link):
        assert inbox.states == [(True, "connected")]
        await link.close()
    assert [up for up, _ in inbox.states] == [True, False]
    early = make_link(inbox, "b")
    await early.close()
    async with asyncio.timeout(DEADLINE_S):
        await early.run()


async def test_a_consumer_that_raises_ends_the_link_with_its_error(make_link: MakeLink) -> None:
    class Broken(Inbox):
        def deliver(self, batch: Sequence[Delivery]) -> None:
            super().deliver(batch)
            raise LookupError("broken consumer")

    inbox = Broken()
    link, sender = make_link(inbox, "broken", ("t", 1)), make_link(Inbox(), "s")
    async with running(sender), asyncio.timeout(DEADLINE_S):
        running_link = asyncio.create_task(link.run())
        await link.until_connected()
        await sender.publish([Outgoing("t", b"")], qos=1, timeout_s=DEADLINE_S)
        with pytest.raises(LookupError, match="broken consumer"):
            await running_link
    assert not link.connected
