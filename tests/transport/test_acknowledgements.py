"""Acknowledgements that are lost, late or too many, in both directions."""

import asyncio
import time
from collections.abc import Sequence

import pytest

from anonymizer.pipeline.ports import Delivery, Loss, Outgoing
from anonymizer.transport import MqttLink
from anonymizer.transport.local_brokers import LocalBroker
from anonymizer.transport.packets import PINGRESP
from tests.end_to_end import DEADLINE_S
from tests.transport.peers import served
from tests.transport.support import Inbox, running, settings

IDENTIFIERS = 0xFFFF
READ_BYTES = 1 << 18
"""What the link reads at once."""


def incoming(i: int) -> bytes:
    """Return a PUBLISH of MQTT 5 at QoS 1, with the packet identifiers in turn."""
    return b"\x32\x07\x00\x01t" + (i % IDENTIFIERS + 1).to_bytes(2) + b"\x00x"


async def test_a_thousand_lost_acknowledgements_end_the_connection_and_not_the_output() -> None:
    inbox = Inbox()
    async with served(inbox=inbox, keepalive_s=1) as (link, server):
        lost = [Outgoing("t", b"")] * 1000
        # A batch of several turns: on a busy machine it is not all sent within a short time.
        publishing = asyncio.create_task(link.publish(lost, qos=1, timeout_s=DEADLINE_S))
        async with asyncio.timeout(DEADLINE_S):
            for _ in range(1000):
                await server.published.get()
        assert await link.publish(lost[:1], qos=1, timeout_s=0.1) == [None]  # no permit is left
        assert await publishing == [None] * 1000
        await inbox.until(lambda: link.counts.n_connections == 2)
        assert link.counts.lost[Loss.UNACKNOWLEDGED] == 1
        publishing = asyncio.create_task(link.publish(lost, qos=1, timeout_s=DEADLINE_S))
        await server.answer(1000)
        assert await publishing == [True] * 1000


async def test_a_batch_that_ends_in_time_gives_its_permits_back_as_the_answers_come() -> None:
    async with served(b"\x21\x00\x04") as (link, server):  # Receive Maximum 4
        batch = [Outgoing("t", b"%d" % i) for i in range(6)]
        assert await link.publish(batch, qos=1, timeout_s=0.05) == [None] * 6
        assert await server.answer(4) == [b"0", b"1", b"2", b"3"]
        publishing = asyncio.create_task(link.publish(batch[:4], qos=1, timeout_s=DEADLINE_S))
        # All four are in flight at once, before the first of them is answered.
        async with asyncio.timeout(DEADLINE_S):
            waiting = [await server.published.get() for _ in range(4)]
        for message in waiting:
            server.published.put_nowait(message)
        await server.answer(4)
        assert await publishing == [True] * 4


async def test_a_broker_is_not_blamed_for_the_time_in_which_this_process_was_frozen() -> None:
    async with served(keepalive_s=1) as (link, server):
        one = [Outgoing("t", b"")]
        publishing = asyncio.create_task(link.publish(one, qos=1, timeout_s=DEADLINE_S))
        message = await server.published.get()
        time.sleep(2.5)  # noqa: ASYNC251  the process is frozen
        server.published.put_nowait(message)
        await server.answer(1)
        assert await publishing == [True]
        assert not any(link.counts.lost.values())


class SlowInbox(Inbox):
    """Settles what it has a while after there are as many deliveries as packet identifiers."""

    def __init__(self) -> None:
        super().__init__()
        self.link: MqttLink | None = None
        self.unsettled: list[int] = []
        self.peak = 0
        self._settling = False

    def deliver(self, batch: Sequence[Delivery]) -> None:
        super().deliver(batch)
        self.unsettled += [delivery.receipt for delivery in batch]
        self.peak = max(self.peak, len(self.unsettled))
        if len(self.unsettled) >= IDENTIFIERS and not self._settling:
            self._settling = True
            asyncio.get_running_loop().call_later(0.2, self._settle)

    def _settle(self) -> None:
        assert self.link is not None
        self._settling = False
        receipts, self.unsettled = self.unsettled, []
        self.link.acknowledge(receipts)


async def test_more_messages_than_packet_identifiers_stop_the_reading_and_not_the_connection() -> (
    None
):
    n, inbox = 150_000, SlowInbox()
    async with served(inbox=inbox) as (link, server):
        inbox.link = link
        assert server.writer is not None
        server.writer.write(b"".join(map(incoming, range(n))))
        await inbox.receives(n)
        assert inbox.peak <= IDENTIFIERS + READ_BYTES // len(incoming(0)) + 1
        assert not any(link.counts.lost.values())


async def test_an_acknowledgement_behind_more_messages_than_identifiers_is_read() -> None:
    inbox = Inbox()
    async with served(inbox=inbox) as (link, server):
        assert server.writer is not None
        server.writer.write(b"".join(map(incoming, range(2 * IDENTIFIERS))))
        await inbox.receives(IDENTIFIERS)
        one = [Outgoing("t", b"")]
        publishing = asyncio.create_task(link.publish(one, qos=1, timeout_s=DEADLINE_S))
        await server.answer(1)
        assert await publishing == [True]


async def test_an_acknowledgement_behind_a_backlog_that_takes_long_to_read_is_awaited() -> None:
    inbox = Inbox()
    async with served(inbox=inbox, keepalive_s=1) as (link, server):
        assert server.writer is not None
        server.holds_pings = True  # their answers, too, come after what was sent before
        one = [Outgoing("t", b"")]
        publishing = asyncio.create_task(link.publish(one, qos=1, timeout_s=DEADLINE_S))
        for i in range(2):  # the message waits for longer than `keepalive_s`
            async with asyncio.timeout(DEADLINE_S):
                await server.held_pings.get()
            server.writer.write(incoming(i))
            await inbox.receives(i + 1)
        await server.answer(1)
        server.writer.write(PINGRESP * 2)
        assert await publishing == [True]
        assert not any(link.counts.lost.values())


async def test_a_burst_in_which_mosquitto_exceeds_receive_maximum_costs_no_connection(
    broker: LocalBroker,
) -> None:
    n, n_senders, inbox = 40_000, 2, Inbox()
    receiver = MqttLink(
        settings(broker.url, session_expiry_s=60),
        client_id="receiver",
        deliver=inbox.deliver,
        subscriptions=[("burst", 1)],
        on_state=inbox.on_state,
    )
    senders = [
        MqttLink(settings(broker.url), client_id=f"sender-{i}", deliver=lambda _: None)
        for i in range(n_senders)
    ]
    async with running(receiver), running(senders[0]), running(senders[1]):
        # Nothing is acknowledged before everything has been sent.
        for sent in await asyncio.gather(
            *(
                sender.publish(
                    [Outgoing("burst", b"%d" % i) for i in range(first, n * n_senders, n_senders)],
                    qos=1,
                    timeout_s=DEADLINE_S,
                )
                for first, sender in enumerate(senders)
            )
        ):
            assert all(sent)
        n_settled = 0
        while n_settled < n * n_senders:
            await inbox.receives(n_settled + 1)
            fresh = inbox.deliveries[n_settled:]
            receiver.acknowledge([delivery.receipt for delivery in fresh])
            n_settled += len(fresh)
    assert sorted(map(int, inbox.payloads)) == list(range(n * n_senders))
    assert [up for up, _ in inbox.states] == [True, False]


@pytest.mark.parametrize(
    ("code", "accepted"), [(0x00, True), (0x10, True), (0x7F, True), (0x80, False), (0x97, False)]
)
async def test_reason_codes_of_0x80_and_above_refuse_a_message(
    *, code: int, accepted: bool
) -> None:
    async with served() as (link, server):
        one = [Outgoing("t", b"")]
        publishing = asyncio.create_task(link.publish(one, qos=1, timeout_s=DEADLINE_S))
        await server.answer(1, code=code)
        assert await publishing == [accepted]
