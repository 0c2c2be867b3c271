"""Hostile peers: raw servers on the same event loop as the link.

A link that blocked the loop would hang its test, because the server could not answer.
"""

import asyncio
import contextlib
import functools
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.pipeline.ports import Outgoing
from anonymizer.settings import BrokerSettings
from anonymizer.transport import MqttLink
from tests.end_to_end import DEADLINE_S
from tests.transport.peers import ACCEPTED, Serve, peer, read_packet, served
from tests.transport.support import Inbox, running, settings

NOBODY_ANSWERS = b""


_DOUBT = "does this port speak MQTT over plain TCP, as the URL says?"


def answering(answer: bytes, connections: list[bytes]) -> Serve:
    """Answer each CONNECT with the same bytes, then wait for the client to go."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(await read_packet(reader))
        writer.write(answer)
        await reader.read()

    return serve


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", f"no answer in time; {_DOUBT}"),
        (b"SSH-2.0-OpenSSH_9.2p1\r\n" * 9, _DOUBT),
        pytest.param(b"\xff" * 100, "malformed packet", id="ones-malformed packet"),
        (b"\x20\x00", "malformed|Protocol|Malformed|disconnected"),
        (b"\x20\x03\x00\x99\x00", "malformed|disconnected"),
        (b"\x20\x06\x00\x00\x03\x21\x00\x00", "malformed|disconnected"),
        (ACCEPTED + ACCEPTED, "malformed packet"),
        (b"\x30\x04\x00\x01t\x00", "a message before acceptance"),
        (ACCEPTED + b"\x30\x05\x00\x02\xff\xfe\x00", "not UTF-8"),
        (ACCEPTED + b"\x36\x06\x00\x01t\x00\x01\x00", "QoS"),
        (ACCEPTED + b"\x90\xff\xff\xff\x7f", "size limit"),
        (ACCEPTED + b"\x90\x00", "malformed|disconnected"),
        (ACCEPTED + b"\xe0\x01\x8e", "disconnected: Session taken over"),
        (b"\x20\x03\x00\x87\x00", "refused: Not authorized"),
        (b"\x20\x03\x00\x85\x00", "refused: Client identifier not valid"),
    ],
)
async def test_a_link_leaves_a_peer_that_breaks_the_protocol_and_tries_again(
    answer: bytes, reason: str
) -> None:
    connections: list[bytes] = []
    inbox = Inbox()
    async with peer(answering(answer, connections)) as url:
        link = MqttLink(
            settings(url),
            client_id="link",
            deliver=inbox.deliver,
            on_state=inbox.on_state,
            connect_timeout_s=0.2 if reason.startswith("no answer") else DEADLINE_S,
        )
        async with running(link, connected=False):
            await inbox.until(lambda: len(connections) >= 3)
    failures = [why for up, why in inbox.states if not up]
    assert any(word in failures[0] for word in reason.split("|")), failures[0]
    was_accepted = answer.startswith(ACCEPTED)
    assert not (was_accepted and _DOUBT in failures[0])


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b"\x20\x02\x00\x05", "refused: Not authorized"),
        (b"\x20\x02\x00\x02", "refused: Client identifier not valid"),
        (b"\x20\x02\x00\x01", "disconnected"),
    ],
)
async def test_after_a_refusal_in_mqtt_3_the_link_reports_it_and_tries_again(
    answer: bytes, reason: str
) -> None:
    connections: list[bytes] = []
    inbox = Inbox()
    async with peer(answering(answer, connections)) as url:
        link = MqttLink(
            settings(url, version="3.1.1"),
            client_id="link",
            deliver=inbox.deliver,
            on_state=inbox.on_state,
        )
        async with running(link, connected=False):
            await inbox.until(lambda: len(connections) >= 3)
    assert inbox.states[0][1].startswith(reason)
    assert len(set(connections)) == 1  # no other version and no other client id is tried


@pytest.mark.parametrize("kept", [b"", b"\x30\x04\x00\x01t\x00"])
async def test_a_connection_that_brought_messages_delays_the_next_attempt_no_more_than_another(
    kept: bytes,
) -> None:
    """A broker sends what it kept first: the subscription may not be answered before a loss."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_packet(reader)
        writer.write(ACCEPTED + kept)

    inbox = Inbox()
    async with peer(serve) as url:
        link = MqttLink(
            settings(url), client_id="link", deliver=inbox.deliver, subscriptions=[("t", 1)]
        )
        assert await link._one_connection() == bool(kept)
    assert not link.counts.n_connections
    assert len(inbox.deliveries) == bool(kept)


async def test_a_link_whose_subscription_is_refused_does_not_count_as_connected() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_packet(reader)
        writer.write(ACCEPTED)
        subscribe = await read_packet(reader)
        writer.write(b"\x90\x04" + subscribe[2:4] + b"\x00\x87")
        await reader.read()

    inbox = Inbox()
    async with peer(serve) as url:
        link = MqttLink(
            settings(url),
            client_id="link",
            deliver=inbox.deliver,
            subscriptions=[("t", 1)],
            on_state=inbox.on_state,
        )
        async with running(link, connected=False):
            await inbox.loses("subscription refused: t: Not authorized")
    assert not any(up for up, _ in inbox.states)


@pytest.mark.parametrize("version", ["5", "3.1.1"])
async def test_filters_are_asked_for_eight_at_a_time_and_a_refused_one_is_named(
    version: str,
) -> None:
    """As AWS IoT Core has it: it closes a connection that asks for more at once."""
    n_asked: list[int] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_packet(reader)
        writer.write(ACCEPTED if version == "5" else b"\x20\x02\x00\x00")
        for _ in range(3):
            subscribe = await read_packet(reader)
            # Of one byte of length; each filter is "t/nn" with two bytes of length and options.
            topics = [int(each) for each in re.findall(rb"t/(\d\d)", subscribe)]
            n_asked.append(len(topics))
            refused = 0x87 if version == "5" else 0x80
            codes = bytes(refused if topic in {3, 17} else 1 for topic in topics)
            head = subscribe[2:4] + (b"\x00" if version == "5" else b"")
            writer.write(bytes([0x90, len(head) + len(codes)]) + head + codes)
        await reader.read()

    inbox = Inbox()
    async with peer(serve) as url:
        link = MqttLink(
            settings(url, version=version),
            client_id="link",
            deliver=inbox.deliver,
            subscriptions=[(f"t/{i:02}", 1) for i in range(20)],
            on_state=inbox.on_state,
        )
        async with running(link):
            assert n_asked == [8, 8, 4]
            assert [each.partition(":")[0] for each in link.refused] == ["t/03", "t/17"]
    assert link.refused == ()


@pytest.mark.parametrize("scheme", ["mqtt", "mqtts"])
async def test_a_peer_that_never_answers_is_given_up_in_time_without_blocking_the_loop(
    scheme: str,
) -> None:
    connections: list[bytes] = []
    inbox = Inbox()

    async def serve(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        connections.append(await reader.read(1))  # it runs on the loop on which the link waits
        await reader.read()

    async with peer(serve) as url:
        link = MqttLink(
            settings(url.replace("mqtt", scheme)),
            client_id="link",
            deliver=inbox.deliver,
            on_state=inbox.on_state,
            connect_timeout_s=0.5,  # certificates are read in it, too
        )
        async with running(link, connected=False):
            await inbox.loses("no answer in time")
            await inbox.until(lambda: len(connections) >= 2)


async def test_a_link_can_be_closed_while_it_waits_for_an_answer() -> None:
    async with peer(answering(NOBODY_ANSWERS, [])) as url:
        link = MqttLink(settings(url), client_id="link", deliver=Inbox().deliver)
        async with asyncio.timeout(DEADLINE_S), running(link, connected=False):
            pass


async def test_a_file_that_cannot_be_read_is_reported_at_every_attempt(tmp_path: Path) -> None:
    inbox = Inbox()
    missing = settings("mqtts://127.0.0.1:1", ca_file=tmp_path / "missing")
    link = MqttLink(missing, client_id="c", deliver=inbox.deliver, on_state=inbox.on_state)
    async with running(link, connected=False):
        await inbox.until(lambda: inbox.states == [(False, "broker.ca_file cannot be used")] * 2)


async def test_no_more_messages_are_in_flight_than_the_broker_allows() -> None:
    async with served(b"\x21\x00\x02") as (link, server):  # Receive Maximum 2
        messages = [Outgoing("t", b"%d" % i) for i in range(5)]
        publishing = asyncio.create_task(link.publish(messages, qos=1, timeout_s=DEADLINE_S))
        first = [await server.published.get() for _ in range(2)]
        for message in first:
            server.published.put_nowait(message)
        assert server.published.qsize() == 2
        assert await server.answer(2) == [b"0", b"1"]
        assert await server.answer(1, code=0x87) == [b"2"]
        assert await server.answer(2) == [b"3", b"4"]
        assert await publishing == [True, True, False, True, True]


async def test_all_unanswered_and_queued_messages_fail_at_once_if_the_connection_is_lost() -> None:
    async with served(b"\x21\x00\x02") as (link, server):
        messages = [Outgoing("t", b"%d" % i) for i in range(5)]
        publishing = asyncio.create_task(link.publish(messages, qos=1, timeout_s=100))
        await server.answer(1)
        await server.published.get()
        assert server.writer is not None
        server.writer.write(b"\xf0\x00")
        async with asyncio.timeout(DEADLINE_S):
            assert await publishing == [True, None, None, None, None]


async def test_waiting_for_a_link_that_has_just_been_lost_lets_it_reconnect() -> None:
    async with served() as (link, _server):
        assert link._session is not None
        link._session.end("lost, which no task has noticed yet")
        await link.until_connected()
        assert link.counts.n_connections == 2


async def test_a_message_above_the_limit_of_the_broker_fails_without_affecting_others() -> None:
    async with served(b"\x27\x00\x00\x00\x32") as (link, server):  # Maximum Packet Size 50
        messages = [Outgoing("t", b"a"), Outgoing("t", b"x" * 50), Outgoing("t", b"b")]
        assert await link.publish(messages, qos=0, timeout_s=DEADLINE_S) == [True, False, True]
        assert [(await server.published.get()).payload for _ in range(2)] == [b"a", b"b"]
        assert link.counts.n_too_large == 1
        assert [link.takes(message) for message in messages] == [True, False, True]


async def test_an_answer_after_the_timeout_frees_the_place_of_its_message() -> None:
    async with served(b"\x21\x00\x01") as (link, server):  # Receive Maximum 1
        one = [Outgoing("t", b"")]
        assert await link.publish(one, qos=1, timeout_s=0.05) == [None]
        assert server.writer is not None
        server.writer.write(b"\x40\x02\xff\xff")  # for an unknown message: it frees no place
        publishing = asyncio.create_task(link.publish(one, qos=1, timeout_s=DEADLINE_S))
        await server.answer(2)
        assert await publishing == [True]


async def test_a_link_leaves_a_broker_that_does_not_answer_pings() -> None:
    inbox = Inbox()
    connack = b"\x20\x06\x00\x00\x03\x13\x00\x01"  # Server Keep Alive: one second
    connections: list[bytes] = []
    async with peer(answering(connack, connections)) as url:
        link = MqttLink(
            settings(url), client_id="link", deliver=inbox.deliver, on_state=inbox.on_state
        )
        async with running(link):
            await inbox.loses("no answer to a ping in time")


async def test_other_tasks_get_turns_while_many_messages_are_published() -> None:
    async with served() as (link, _server):
        turns = 0

        async def other() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        task = asyncio.create_task(other())
        await link.publish([Outgoing("t", b"")] * 5000, qos=0, timeout_s=DEADLINE_S)
        task.cancel()
        assert turns > 5


PACKETS = st.builds(
    lambda kind, body: bytes([kind, len(body)]) + body,
    st.sampled_from([0x20, 0x30, 0x32, 0x40, 0x90, 0xB0, 0xD0, 0xE0]),
    st.binary(max_size=12),
)


@given(packets=st.lists(PACKETS, max_size=4), accepted=st.booleans(), version5=st.booleans())
def test_whatever_a_peer_sends_the_link_survives_and_can_be_closed(
    *, packets: list[bytes], accepted: bool, version5: bool
) -> None:
    connack = (ACCEPTED if version5 else b"\x20\x02\x00\x00") if accepted else b""

    async def meet() -> None:
        met = asyncio.Event()

        async def serve(
            met: asyncio.Event, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
        ) -> None:
            await read_packet(reader)
            writer.write(connack + b"".join(packets) + b"\xff\xff\xff\xff\xff")
            await reader.read()
            met.set()

        async with peer(functools.partial(serve, met)) as url:
            broker = BrokerSettings(url=url, version="5" if version5 else "3.1.1", keepalive_s=540)
            link = MqttLink(broker, client_id="link", deliver=Inbox().deliver)
            async with running(link, connected=False), asyncio.timeout(DEADLINE_S):
                await met.wait()

    asyncio.run(meet())


def keeping(broker_pauses_s: float, given_up: list[float]) -> Serve:
    """Send forty messages before the subscription is answered, with a pause behind each.

    `given_up`: the longest pause before each time that the client left before the answer.
    """
    clock = asyncio.get_running_loop().time

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_packet(reader)
        writer.write(ACCEPTED)
        sent_s, longest_s = clock(), 0.0
        subscribe = await read_packet(reader)
        for _ in range(N_KEPT):
            longest_s, sent_s = max(longest_s, clock() - sent_s), clock()
            writer.write(b"\x31\x06\x00\x01t\x00ab")
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(broker_pauses_s):
                    await reader.read()
                    given_up.append(max(longest_s, clock() - sent_s))
                    return
        writer.write(b"\x90\x04" + subscribe[2:4] + b"\x00\x00")
        await reader.read()

    return serve


N_KEPT, ATTEMPT_S = 40, 0.5


async def test_a_link_waits_for_its_subscription_while_the_broker_sends_what_it_kept() -> None:
    """Else a flood that takes longer than an attempt would begin anew with every attempt."""
    inbox, given_up = Inbox(), list[float]()
    async with peer(keeping(4 * ATTEMPT_S / N_KEPT, given_up)) as url:
        link = MqttLink(
            settings(url),
            client_id="link",
            deliver=inbox.deliver,
            subscriptions=[("t", 0)],
            connect_timeout_s=ATTEMPT_S,
        )
        async with running(link):
            assert len(inbox.deliveries) >= N_KEPT
    # A machine that stands still is a broker that sends nothing.
    assert all(silent_s > ATTEMPT_S / 2 for silent_s in given_up)


async def test_a_link_leaves_a_broker_that_kept_something_and_never_answers() -> None:
    inbox, given_up = Inbox(), list[float]()
    async with peer(keeping(3600.0, given_up)) as url:
        link = MqttLink(
            settings(url),
            client_id="link",
            deliver=inbox.deliver,
            subscriptions=[("t", 0)],
            on_state=inbox.on_state,
            connect_timeout_s=ATTEMPT_S,
        )
        async with running(link, connected=False):
            await inbox.receives(1)
            # Meanwhile nothing is published, and the caller knows it: it counts that.
            waiting = [Outgoing("out", b"")] * 2
            told = await link.publish(waiting, qos=1, timeout_s=DEADLINE_S)
            assert told == [False, False]
            await inbox.loses("no answer in time")
            await inbox.receives(2)
