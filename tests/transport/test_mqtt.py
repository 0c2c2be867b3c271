"""The MQTT link with a real Mosquitto; aiomqtt is the independent client."""

import asyncio
import os
import signal
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from urllib.parse import urlsplit

import aiomqtt
import pytest

from anonymizer.pipeline.ports import Delivery, Outgoing
from anonymizer.transport import MqttLink
from anonymizer.transport.local_brokers import LocalBroker
from tests.brokers import PASSWORD, USER, Certificates
from tests.end_to_end import DEADLINE_S
from tests.transport.support import VERSIONS, Inbox, running, settings

WITNESS_VERSION = {"5": aiomqtt.ProtocolVersion.V5, "3.1.1": aiomqtt.ProtocolVersion.V311}


def witness(broker: LocalBroker, *, version: str = "5") -> aiomqtt.Client:
    address = urlsplit(broker.url)
    return aiomqtt.Client(
        str(address.hostname), address.port or 0, protocol=WITNESS_VERSION[version]
    )


async def seen(client: aiomqtt.Client, n: int) -> list[aiomqtt.Message]:
    async with asyncio.timeout(DEADLINE_S):
        messages = aiter(client.messages)
        return [await anext(messages) for _ in range(n)]


def numbered(topic: str, numbers: Iterable[int]) -> list[Outgoing]:
    return [Outgoing(topic, str(i).encode()) for i in numbers]


@VERSIONS
@pytest.mark.parametrize("qos", [0, 1])
async def test_messages_pass_to_and_from_another_client(
    broker: LocalBroker, version: str, qos: int
) -> None:
    inbox = Inbox()
    link = MqttLink(
        settings(broker.url, version=version),
        client_id="link",
        deliver=inbox.deliver,
        subscriptions=[("in/#", qos)],
    )
    async with running(link), witness(broker, version=version) as other:
        await other.subscribe("out/#", qos=qos)
        accepted = await link.publish(numbered("out/ä", range(300)), qos=qos, timeout_s=DEADLINE_S)
        assert accepted == [True] * 300
        assert [m.payload for m in await seen(other, 300)] == [b"%d" % i for i in range(300)]
        for i in range(20):
            await other.publish(f"in/{i}/ü", b"\x00\xff%d" % i, qos=qos)
        await inbox.receives(20)
    assert [d[:2] for d in inbox.deliveries] == [
        (f"in/{i}/ü", b"\x00\xff%d" % i) for i in range(20)
    ]


@pytest.mark.parametrize("scheme", ["mqtts", "wss"])
async def test_tls_on_a_port_without_it_is_told_as_such(scheme: str, broker: LocalBroker) -> None:
    inbox, url = Inbox(), broker.url.replace("mqtt", scheme)
    link = MqttLink(settings(url), client_id="c", deliver=inbox.deliver, on_state=inbox.on_state)
    async with running(link, connected=False):
        await inbox.loses("; does this port speak MQTT over ")


@VERSIONS
@pytest.mark.parametrize("qos", [0, 1])
async def test_a_burst_of_20000_messages_arrives_completely_and_in_batches(
    broker: LocalBroker, version: str, qos: int
) -> None:
    n = 20_000
    inbox, sender_inbox = Inbox(), Inbox()

    def deliver(batch: Sequence[Delivery]) -> None:
        receiver.acknowledge([d.receipt for d in batch])
        inbox.deliver(batch)

    receiver = MqttLink(
        settings(broker.url, version=version),
        client_id="receiver",
        deliver=deliver,
        subscriptions=[("burst", qos)],
    )
    sender = MqttLink(
        settings(broker.url, version=version), client_id="sender", deliver=sender_inbox.deliver
    )
    async with running(receiver), running(sender):
        accepted = await sender.publish(numbered("burst", range(n)), qos=qos, timeout_s=DEADLINE_S)
        assert all(accepted)
        await inbox.receives(n)
    assert inbox.payloads == [b"%d" % i for i in range(n)]
    assert len(inbox.batches) < n / 20


async def test_what_is_not_read_stays_with_the_broker(broker: LocalBroker) -> None:
    inbox, other = Inbox(), Inbox()
    paused = MqttLink(
        settings(broker.url), client_id="paused", deliver=inbox.deliver, subscriptions=[("in", 1)]
    )
    reader = MqttLink(
        settings(broker.url), client_id="reader", deliver=other.deliver, subscriptions=[("in", 1)]
    )
    paused.read(on=False)
    async with running(paused), running(reader):
        await reader.publish(numbered("in", range(100)), qos=1, timeout_s=DEADLINE_S)
        await other.receives(100)
        assert inbox.batches == []
        paused.read(on=True)
        await inbox.receives(100)
    assert inbox.payloads == other.payloads


@VERSIONS
async def test_the_status_is_online_and_after_a_clean_end_offline(
    broker: LocalBroker, version: str
) -> None:
    link = MqttLink(
        settings(broker.url, version=version),
        client_id="link",
        deliver=Inbox().deliver,
        announce=True,
    )
    async with running(link), witness(broker) as late:
        await late.subscribe("anonymizer/status")
        (status,) = await seen(late, 1)
        assert (status.payload, status.retain) == (b"online", True)
        await link.close()
        assert [m.payload for m in await seen(late, 1)] == [b"offline"]
    async with witness(broker) as later:
        await later.subscribe("anonymizer/status")
        (status,) = await seen(later, 1)
        assert (status.payload, status.retain) == (b"offline", True)


CHILD = """
import asyncio, sys
from anonymizer.settings import BrokerSettings
from anonymizer.transport import MqttLink
link = MqttLink(BrokerSettings(url=sys.argv[1]), client_id="child", deliver=print, announce=True)
asyncio.run(link.run())
"""


async def test_the_status_is_lost_after_the_process_is_killed(broker: LocalBroker) -> None:
    async with witness(broker) as other:
        await other.subscribe("anonymizer/status")
        child = await asyncio.create_subprocess_exec(sys.executable, "-c", CHILD, broker.url)
        try:
            assert [m.payload for m in await seen(other, 1)] == [b"online"]
        finally:
            child.kill()
            await child.wait()
        assert [m.payload for m in await seen(other, 1)] == [b"lost"]


@VERSIONS
async def test_after_a_restart_of_the_broker_only_unsettled_deliveries_come_again(
    persistent_broker: LocalBroker, version: str
) -> None:
    broker, inbox = persistent_broker, Inbox()
    link = MqttLink(
        settings(broker.url, version=version, session_expiry_s=3600),
        client_id="durable",
        deliver=inbox.deliver,
        subscriptions=[("in", 1)],
        on_state=inbox.on_state,
    )
    async with running(link):
        async with witness(broker) as other:
            for i in range(100):
                await other.publish("in", str(i), qos=1)
        await inbox.receives(100)
        first = {int(d.payload): d.receipt for d in inbox.deliveries}
        link.acknowledge([first[i] for i in range(0, 100, 2)])
        # The answer proves that the broker has read everything written before.
        assert await link.publish([Outgoing("x", b"")], qos=1, timeout_s=DEADLINE_S) == [True]
        await broker.stop()
        await inbox.loses("connection closed")
        link.acknowledge([first[1]])
        await broker.start()
        await inbox.receives(150)
        again = inbox.deliveries[100:]
        assert [int(d.payload) for d in again] == list(range(1, 100, 2))
        assert not set(first.values()) & {d.receipt for d in again}
        link.acknowledge(first.values())  # receipts of the lost connection have no effect
        link.acknowledge([again[0].receipt])
        async with asyncio.timeout(DEADLINE_S):
            await link.until_connected()  # what was queued comes before the subscription is renewed
        assert await link.publish([Outgoing("x", b"")], qos=1, timeout_s=DEADLINE_S) == [True]
        await broker.stop()
        await broker.start()
        await inbox.receives(199)
        assert [int(d.payload) for d in inbox.deliveries[150:]] == list(range(3, 100, 2))


@VERSIONS
async def test_messages_sent_while_the_client_is_away_arrive_at_the_next_start(
    broker: LocalBroker, version: str
) -> None:
    async def started(inbox: Inbox) -> MqttLink:
        return MqttLink(
            settings(broker.url, version=version, session_expiry_s=3600),
            client_id="durable",
            deliver=inbox.deliver,
            subscriptions=[("in", 1)],
        )

    first = Inbox()
    link = await started(first)
    async with running(link):
        await link.stop_receiving()
        # It reaches the link in this session, but is neither delivered nor settled.
        assert await link.publish(numbered("in", [0]), qos=1, timeout_s=DEADLINE_S) == [True]
        assert await link.publish(numbered("x", [0]), qos=1, timeout_s=DEADLINE_S) == [True]
    assert first.batches == []
    async with witness(broker) as other:
        for i in range(1, 50):
            await other.publish("in", str(i), qos=1)
    inbox = Inbox()
    async with running(await started(inbox)):
        await inbox.receives(50)
    assert inbox.payloads == [b"%d" % i for i in range(50)]


async def test_without_a_kept_session_the_link_subscribes_again(
    broker: LocalBroker,
) -> None:
    inbox = Inbox()
    link = MqttLink(
        settings(broker.url),
        client_id="link",
        deliver=inbox.deliver,
        subscriptions=[("in", 0)],
        on_state=inbox.on_state,
    )
    async with running(link):
        await broker.kill()
        await inbox.loses("")
        await inbox.loses("Connect")  # at least one attempt finds no broker
        assert not link.connected
        await broker.start()
        async with asyncio.timeout(DEADLINE_S):
            await link.until_connected()
        async with witness(broker) as other:
            await other.publish("in", b"after")
        await inbox.receives(1)
    assert inbox.payloads == [b"after"]


async def test_a_refused_message_is_never_sent_by_a_later_connection(
    broker: LocalBroker,
) -> None:
    inbox = Inbox()
    link = MqttLink(
        settings(broker.url, session_expiry_s=60),
        client_id="link",
        deliver=inbox.deliver,
        on_state=inbox.on_state,
    )
    async with running(link):
        broker.send_signal(signal.SIGSTOP)
        refused = asyncio.create_task(
            link.publish(numbered("out", range(50)), qos=1, timeout_s=10 * DEADLINE_S)
        )
        await asyncio.sleep(0)
        await broker.kill()
        async with asyncio.timeout(DEADLINE_S):
            assert await refused == [None] * 50
        await broker.start()
        async with asyncio.timeout(DEADLINE_S):
            await link.until_connected()
        async with witness(broker) as other:
            await other.subscribe("out", qos=1)
            assert await link.publish([Outgoing("out", b"new")], qos=1, timeout_s=DEADLINE_S) == [
                True
            ]
            assert [m.payload for m in await seen(other, 1)] == [b"new"]


async def test_publishing_to_a_frozen_broker_fails_in_time_with_bounded_buffers(
    broker: LocalBroker,
) -> None:
    link = MqttLink(settings(broker.url), client_id="link", deliver=Inbox().deliver)
    megabyte = Outgoing("out", bytes(1 << 20))
    async with running(link):
        broker.send_signal(signal.SIGSTOP)
        try:
            assert await link.publish(numbered("out", range(9)), qos=1, timeout_s=0.1) == (
                [None] * 9
            )
            taken = await link.publish([megabyte] * 64, qos=0, timeout_s=0.3)
            n_taken = sum(map(bool, taken))
            assert n_taken < 16  # what fits in the operating system's buffers, plus one
            assert taken == [True] * n_taken + [None] * (64 - n_taken)
            assert await link.publish([megabyte], qos=0, timeout_s=0.1) == [None]
        finally:
            broker.send_signal(signal.SIGCONT)
        assert await link.publish([Outgoing("out", b"")], qos=1, timeout_s=DEADLINE_S) == [True]


async def test_closing_keeps_its_deadline_if_the_broker_is_frozen(
    broker: LocalBroker,
) -> None:
    link = MqttLink(
        settings(broker.url),
        client_id="link",
        deliver=Inbox().deliver,
        announce=True,
        close_timeout_s=0.1,
    )
    async with running(link):
        broker.send_signal(signal.SIGSTOP)
        try:
            async with asyncio.timeout(DEADLINE_S):
                await link.close()
        finally:
            broker.send_signal(signal.SIGCONT)
    assert not link.connected


async def test_cancelling_drops_the_connection_so_that_the_last_will_is_sent(
    broker: LocalBroker,
) -> None:
    link = MqttLink(settings(broker.url), client_id="l", deliver=Inbox().deliver, announce=True)
    task = asyncio.create_task(link.run())
    async with witness(broker) as other, asyncio.timeout(DEADLINE_S):
        await link.until_connected()
        await other.subscribe("anonymizer/status")
        assert [m.payload for m in await seen(other, 1)] == [b"online"]
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        assert [m.payload for m in await seen(other, 1)] == [b"lost"]


@VERSIONS
async def test_a_wrong_password_is_reported_and_a_corrected_file_is_read_again(
    password_broker: LocalBroker, version: str, tmp_path: Path
) -> None:
    file, inbox = tmp_path / "password", Inbox()
    file.write_text("wrong\n")
    link = MqttLink(
        settings(password_broker.url, version=version, username=USER, password_file=file),
        client_id="link",
        deliver=inbox.deliver,
        on_state=inbox.on_state,
    )
    async with running(link, connected=False):
        await inbox.loses("refused: Not authorized")
        file.write_text(f"{PASSWORD}\n")
        async with asyncio.timeout(DEADLINE_S):
            await link.until_connected()
        outcome = await link.publish(
            [Outgoing("allowed/x", b""), Outgoing("forbidden", b"")], qos=1, timeout_s=DEADLINE_S
        )
        # Only MQTT 5 reports that a message is not authorized.
        assert outcome == [True, version == "3.1.1"]
    assert not any(PASSWORD in reason for _, reason in inbox.states)


async def test_a_client_with_a_valid_certificate_is_accepted(
    tls_broker: LocalBroker, certificates: Certificates
) -> None:
    inbox = Inbox()
    link = MqttLink(
        settings(
            tls_broker.url,
            ca_file=certificates.ca,
            cert_file=certificates.client,
            key_file=certificates.client_key,
        ),
        client_id="link",
        deliver=inbox.deliver,
        subscriptions=[("loop", 1)],
        announce=True,
    )
    big = [Outgoing("loop", os.urandom(100_000)) for _ in range(30)]
    async with running(link):
        assert all(await link.publish(big, qos=1, timeout_s=DEADLINE_S))
        await inbox.receives(30)
    assert inbox.payloads == [message.payload for message in big]


async def test_a_broker_certified_by_another_authority_is_refused(
    tls_broker: LocalBroker, certificates: Certificates
) -> None:
    inbox = Inbox()
    link = MqttLink(
        settings(tls_broker.url, ca_file=certificates.other_ca),
        client_id="link",
        deliver=inbox.deliver,
        on_state=inbox.on_state,
    )
    async with running(link, connected=False):
        await inbox.loses("the broker's certificate is refused: ")


async def test_a_client_without_the_required_certificate_does_not_connect(
    tls_broker: LocalBroker, certificates: Certificates
) -> None:
    inbox = Inbox()
    link = MqttLink(
        settings(tls_broker.url, ca_file=certificates.ca),
        client_id="link",
        deliver=inbox.deliver,
        on_state=inbox.on_state,
    )
    async with running(link, connected=False):
        await inbox.until(lambda: len(inbox.states) > 1)
    assert not any(up for up, _ in inbox.states)


async def test_a_link_that_stopped_receiving_before_it_connected_never_receives(
    broker: LocalBroker,
) -> None:
    inbox = Inbox()
    link = MqttLink(
        settings(broker.url), client_id="l", deliver=inbox.deliver, subscriptions=[("t", 0)]
    )
    await link.stop_receiving()
    async with running(link):
        assert await link.publish([Outgoing("t", b"")], qos=1, timeout_s=DEADLINE_S) == [True]
        assert await link.publish([Outgoing("t", b"")], qos=1, timeout_s=DEADLINE_S) == [True]
    assert inbox.batches == []


async def test_an_invalid_topic_raises_and_takes_no_place_in_the_window(
    broker: LocalBroker,
) -> None:
    link = MqttLink(settings(broker.url), client_id="l", deliver=Inbox().deliver)
    async with running(link):
        for _ in range(1001):
            with pytest.raises(ValueError, match="cannot publish"):
                await link.publish([Outgoing("a/#", b"")], qos=1, timeout_s=DEADLINE_S)
        assert await link.publish([Outgoing("a", b"")], qos=1, timeout_s=DEADLINE_S) == [True]


def test_subscribing_at_qos_2_is_refused() -> None:
    with pytest.raises(ValueError, match="QoS 0 or 1"):
        MqttLink(settings("mqtts://b"), client_id="c", deliver=print, subscriptions=[("t", 2)])


async def test_publishing_at_qos_2_is_refused() -> None:
    link = MqttLink(settings("mqtts://b"), client_id="c", deliver=Inbox().deliver)
    with pytest.raises(ValueError, match="QoS 0 or 1"):
        await link.publish([], qos=2, timeout_s=1)
