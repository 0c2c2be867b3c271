"""Brokers with limits: messages flow, or one sentence says what is missing; no endless loop."""

import asyncio
import ssl
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.pipeline.ports import Outgoing
from anonymizer.settings import BrokerSettings
from anonymizer.transport import MqttLink
from anonymizer.transport.broker_profile import (
    AskedFilters,
    BrokerManners,
    BrokerProfile,
    Manners,
    lacking,
)
from anonymizer.transport.connecting import read_access
from anonymizer.transport.local_brokers import LocalBroker, mosquitto
from tests.brokers import Certificates
from tests.end_to_end import DEADLINE_S, witness
from tests.transport.managed_broker import (
    Rule,
    at_most,
    at_most_8_filters,
    forbidden,
    managed,
    no_qos_1,
    no_qos_2,
    no_retained_message,
    no_retained_will,
)
from tests.transport.support import Inbox, running, settings

FULL = Manners(retains=True, qos=1)
CAN = st.builds(Manners, retains=st.booleans(), qos=st.sampled_from([0, 1]))


def connect(manners: BrokerManners, can: Manners, *, is_away: bool) -> bool:
    """Connect once to a broker that ends connections at what it cannot; return whether it lasts."""
    wanted = manners.now
    if is_away or (wanted.retains and not can.retains) or wanted.qos > can.qos:
        manners.ended()
        return False
    return not manners.taken()


@given(can=CAN, away=st.lists(st.booleans(), max_size=8))
def test_a_link_goes_as_far_as_its_broker_and_learns_that_in_few_connections(
    can: Manners, away: Sequence[bool]
) -> None:
    manners = BrokerManners()
    for each in away:  # ends that mean nothing, among others that do
        connect(manners, can, is_away=each)
    n = 1
    while not connect(manners, can, is_away=False):
        n += 1
        assert n <= 8
    assert not (manners.now.retains and not can.retains)
    assert manners.now.qos <= can.qos
    if not any(away):
        assert manners.now == can
    assert connect(manners, can, is_away=False), "it stays with what it has learned"


@given(n_away=st.integers(0, 12))
def test_a_broker_that_was_away_is_not_taken_for_one_that_can_less(n_away: int) -> None:
    manners = BrokerManners()
    for _ in range(n_away):
        connect(manners, FULL, is_away=True)
    while not connect(manners, FULL, is_away=False):
        pass
    assert manners.now == FULL


@given(can=CAN, order=st.permutations([0x9A, 0x9B, 0x87]))
def test_a_reason_of_the_broker_is_believed_at_once(can: Manners, order: Sequence[int]) -> None:
    manners = BrokerManners()
    said = {0x9A: not can.retains, 0x9B: not can.qos, 0x87: True}
    for code in order:
        if said[code]:
            manners.refused(code)
    manners.announced(BrokerProfile())  # whatever it says later
    assert manners.now == can


def test_a_filter_that_costs_connections_is_left_out_until_one_has_lasted() -> None:
    asked = AskedFilters()
    asked.ended_at(["a", "b", "c"])
    assert asked.one_by_one
    assert not any(map(asked.is_left_out, "abc"))
    asked.ended_at(["b"])
    assert not asked.is_left_out("b"), "once may be chance"
    asked.ended_at(["b"])
    assert [asked.is_left_out(each) for each in "abc"] == [False, True, False]
    asked.ended_later()
    assert not asked.is_left_out("b")


def test_what_is_missing_is_a_sentence_each() -> None:
    profile = BrokerProfile(session_expiry_s=60)
    assert lacking(profile, FULL, session_expiry_s=60) == []
    found = lacking(profile, Manners(retains=False, qos=0), session_expiry_s=600)
    assert [each.split(":")[0] for each in found] == [
        "the broker retains nothing",
        "the broker takes QoS 0 alone",
        "the broker keeps a session for 60 s, not the 600 s of broker.session_expiry_s",
    ]


def test_a_profile_is_said_in_words() -> None:
    said = BrokerProfile(
        max_qos=1, retains=False, max_packet_bytes=70_000, wildcards=False, shared=False,
        keepalive_s=0, session_expiry_s=60, assigned_id="x",
    )  # fmt: skip
    assert "; ".join(said.lines()) == (
        "largest QoS 1; no retained messages; packets up to 70,000 bytes;"
        " 65,535 messages in flight; no wildcards in filters; no shared subscriptions;"
        " 0 topic aliases; no pings;"
        " sessions kept for 60 s; client ids of its own"
    )
    assert list(BrokerProfile().lines())[:3] == [
        "largest QoS 2", "retained messages", "packets of any size",
    ]  # fmt: skip


async def flows(
    url: str,
    real_url: str,
    *,
    topics: Sequence[str] = ("in/#",),
    refused: Sequence[str] = (),
    version: str = "5",
    **more: object,
) -> tuple[MqttLink, list[str]]:
    """Let messages pass a gateway's link in both directions; return it, and what it lacks."""
    inbox = Inbox()
    link = MqttLink(
        settings(url, version=version, **more),
        client_id="gateway",
        deliver=inbox.deliver,
        subscriptions=[(topic, 1) for topic in topics],
        on_state=inbox.on_state,
        announce=True,
    )
    async with witness(real_url) as seen, running(link):
        assert [each.partition(":")[0] for each in link.refused] == list(refused)
        told = await link.publish([Outgoing("out", b"1", retain=True)], qos=1, timeout_s=DEADLINE_S)
        assert list(told) == [True]
        await seen.until(lambda: any(each.topic == "out" for each in seen.seen))
        other = MqttLink(settings(real_url), client_id="device", deliver=lambda _: None)
        async with running(other):
            await other.publish([Outgoing("in/1", b"raw")], qos=0, timeout_s=DEADLINE_S)
            await inbox.until(lambda: b"raw" in inbox.payloads)
        assert link.connected
        assert link.counts.n_connections == 1, "it is no loop"
        return link, link.lacks


def assert_said(said: Sequence[str], wanted: Sequence[str]) -> None:
    """What is missing is in a sentence each, and nothing else is."""
    assert len(said) == len(wanted), said
    assert all(any(each in sentence for sentence in said) for each in wanted), said


@pytest.mark.parametrize("version", ["5", "3.1.1"])
@pytest.mark.parametrize(
    ("line", "learned", "lacks"),
    [
        ("retain_available false", ("retains", False), ["retains nothing"]),
        ("max_qos 0", ("max_qos", 0), ["QoS 0 alone"]),
        ("max_qos 1", ("max_qos", 1), []),
        ("max_packet_size 2000", ("max_packet_bytes", 2000), []),
        ("max_keepalive 10", ("keepalive_s", 10), []),
        ("max_inflight_messages 7", ("receive_maximum", 7), []),
        ("max_topic_alias 3", ("topic_aliases", 3), []),
    ],
)
async def test_messages_flow_with_each_limit_of_a_broker(
    line: str, learned: tuple[str, object], lacks: Sequence[str], version: str, tmp_path: Path
) -> None:
    broker = mosquitto(tmp_path, line)
    await broker.start()
    try:
        link, said = await flows(broker.url, broker.url, version=version)
    finally:
        await broker.stop()
    assert getattr(link.profile, learned[0]) == learned[1]
    assert_said(said, lacks)


@pytest.mark.parametrize("version", ["5", "3.1.1"])
@pytest.mark.parametrize(
    ("rules", "lacks"),
    [
        ([no_qos_2, at_most(128 << 10)], []),
        ([no_retained_will], ["retains nothing"]),
        ([no_retained_message], ["retains nothing"]),
        ([no_retained_will, no_retained_message, no_qos_2], ["retains nothing"]),
        ([no_qos_1], ["QoS 0 alone"]),
        ([no_qos_1, no_retained_message], ["retains nothing", "QoS 0 alone"]),
    ],
    ids=["aws", "will", "retained", "event-grid", "qos-0", "qos-0-and-retained"],
)
async def test_messages_flow_with_brokers_that_end_connections(
    broker: LocalBroker, rules: Sequence[Rule], lacks: Sequence[str], version: str
) -> None:
    async with asyncio.timeout(DEADLINE_S), managed(broker.url, *rules) as (url, broken):
        _, said = await flows(url, broker.url, version=version)
    assert_said(said, lacks)
    assert len(broken) <= 8


@pytest.mark.parametrize("version", ["5", "3.1.1"])
async def test_a_filter_at_which_the_broker_ends_the_connection_is_named_and_others_flow(
    broker: LocalBroker, version: str
) -> None:
    rules: list[Rule] = [partial(at_most_8_filters, version5=version == "5"), forbidden(b"secret")]
    topics = [*(f"t/{i}" for i in range(10)), "secret/#", "in/#"]
    async with asyncio.timeout(DEADLINE_S), managed(broker.url, *rules) as (url, broken):
        await flows(url, broker.url, topics=topics, refused=["secret/#"], version=version)
    assert len(broken) == 3


async def test_what_needs_qos_1_is_not_published_to_a_broker_of_qos_0(tmp_path: Path) -> None:
    broker = mosquitto(tmp_path, "max_qos 0")
    await broker.start()
    link = MqttLink(
        settings(broker.url), client_id="gateway", deliver=lambda _: None, announce=True,
        needs_qos_1=True,
    )  # fmt: skip
    try:
        async with running(link):
            told = await link.publish([Outgoing("out", b"1")], qos=1, timeout_s=DEADLINE_S)
            assert list(told) == [False]
            assert "nothing is published" in link.blocked
    finally:
        await broker.stop()


async def test_why_there_is_no_connection_is_said(tmp_path: Path) -> None:
    broker = mosquitto(tmp_path, "allow_anonymous false")
    await broker.start()
    inbox = Inbox()
    link = MqttLink(
        settings(broker.url), client_id="gateway", deliver=inbox.deliver, on_state=inbox.on_state
    )
    try:
        async with running(link, connected=False):
            await inbox.loses("Not authorized")
            assert link.problem == "refused: Not authorized"
            assert (link.lacks, link.blocked) == ([], "")
    finally:
        await broker.stop()


async def test_the_name_of_the_protocol_is_offered_in_tls(
    certificates: Certificates,
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates.server, certificates.server_key)
    context.set_alpn_protocols(["x-amzn-mqtt-ca"])
    chosen: asyncio.Queue[str | None] = asyncio.Queue()

    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        chosen.put_nowait(writer.get_extra_info("ssl_object").selected_alpn_protocol())
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    port = server.sockets[0].getsockname()[1]
    try:
        for query, name in (("?alpn=x-amzn-mqtt-ca", "x-amzn-mqtt-ca"), ("", None)):
            url = f"mqtts://127.0.0.1:{port}{query}"
            access = read_access(BrokerSettings(url=url, ca_file=certificates.ca))
            assert (access.host, access.port) == ("127.0.0.1", port)
            _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=access.tls)
            assert await chosen.get() == name
            writer.close()
    finally:
        server.close()


@pytest.mark.parametrize("url", ["mqtt://127.0.0.1?alpn=x", "mqtts://h?x=y", "mqtts://h?alpn="])
def test_nothing_else_may_stand_behind_the_address(url: str) -> None:
    with pytest.raises(ValueError, match="alpn=NAME"):
        BrokerSettings(url=url)
