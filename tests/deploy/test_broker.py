"""The broker's configuration, rules and secrets of deploy/, in a real Mosquitto."""

import asyncio
import contextlib
import re
import ssl
import subprocess
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from urllib.parse import urlsplit

import aiomqtt
import pytest

from anonymizer.pipeline.ports import Delivery, Outgoing
from anonymizer.settings import load_settings
from anonymizer.transport import MqttLink
from anonymizer.transport.broker_drops import BrokerDrops
from anonymizer.transport.local_brokers import (
    MOSQUITTO_LIMITS,
    LocalBroker,
)
from anonymizer.transport.packets import encode_publish
from tests.brokers import Certificates
from tests.deploy.deployment import PASSWORD, TRAM, Deployed, limits, make_secrets
from tests.deploy.files import DEPLOY, read_yaml
from tests.end_to_end import DEADLINE_S, client, eventually


def test_the_limits_without_which_bursts_are_lost_are_in_it() -> None:
    lines = (DEPLOY / "mosquitto.conf").read_text().splitlines()
    assert set(MOSQUITTO_LIMITS) | {"persistence true", "allow_anonymous false"} <= set(lines)


def test_beyond_this_machine_every_listener_speaks_tls() -> None:
    text = (DEPLOY / "mosquitto.conf").read_text()
    listeners = [part.splitlines() for part in text.split("\nlistener ")[1:]]
    for first, *rest in listeners:
        assert first.endswith("127.0.0.1") or any(line.startswith("certfile ") for line in rest)
    assert len(listeners) == 3


def test_secrets_are_for_their_owners_eyes_and_different_each_time(tmp_path: Path) -> None:
    secrets = make_secrets(tmp_path)
    for file in secrets.rglob("*"):
        if file.name != "ca.crt":
            assert file.stat().st_mode & 0o077 == 0, file.name
    said = [file.read_text() for file in secrets.glob("*.password")]
    assert len(set(said)) == len(said) == 4
    stored = (secrets / "broker" / "passwords").read_text()
    assert not any(password.strip() in stored for password in said)
    again = subprocess.run(["sh", DEPLOY / "secrets.sh", secrets], capture_output=True, check=False)
    assert again.returncode != 0
    assert [file.read_text() for file in secrets.glob("*.password")] == said


async def test_nobody_comes_in_without_a_password(deployed: Deployed) -> None:
    tls = aiomqtt.TLSParameters(ca_certs=str(deployed.ca))
    for url, options in ((deployed.plain_url, {}), (deployed.broker.url, {"tls_params": tls})):
        with pytest.raises(aiomqtt.MqttError):
            async with client(url, "stranger", **options):
                pass
        with pytest.raises(aiomqtt.MqttError):
            async with client(url, "x", username="gateway", password=PASSWORD, **options):
                pass


@pytest.mark.parametrize("name", ["broker.example", "localhost", "127.0.0.1"])
async def test_the_broker_is_believed_by_its_own_authority_alone(
    deployed: Deployed, certificates: Certificates, name: str
) -> None:
    port = urlsplit(deployed.broker.url).port

    async def shake_hands(authority: Path) -> None:
        context = ssl.create_default_context(cafile=authority)
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        _, writer = await asyncio.open_connection(
            "127.0.0.1", port, ssl=context, server_hostname=name
        )
        writer.close()
        await writer.wait_closed()

    await shake_hands(deployed.ca)
    with pytest.raises(ssl.SSLCertVerificationError):
        await shake_hands(certificates.ca)


async def test_an_analyst_is_refused_the_raw_topics_and_hears_all_outputs(
    deployed: Deployed,
) -> None:
    raw = [f"positions/{TRAM}", f"sensors/{TRAM}"]
    raw += [f"records/telemetry/{TRAM}", f"toll/exit/{TRAM}", f"zones/{TRAM}"]
    outputs = ["cloaked/positions", "public/fixed", "anonymized/fleet", "anonymizer/rejected"]
    async with (
        asyncio.timeout(DEADLINE_S),
        deployed.client("gateway") as gateway,
        deployed.client("analyst") as analyst,
    ):
        for topic in ("#", "positions/#", "records/#", "records/+/+", "toll/#", "zones/#", *raw):
            await analyst.subscribe(topic, qos=1)
        await gateway.subscribe("#", qos=1)
        said = await deployed.publish(TRAM, [(topic, b"raw") for topic in raw])
        assert said == [True] * len(raw)
        for topic in raw:
            heard = await anext(gateway.messages)
            assert (str(heard.topic), heard.payload) == (topic, b"raw")
        assert await deployed.publish("gateway", [(topic, b"out") for topic in outputs]) == [
            True
        ] * len(outputs)
        # Whatever the broker had for the analyst before these would have come before them.
        for topic in outputs:
            heard = await anext(analyst.messages)
            assert (str(heard.topic), heard.payload) == (topic, b"out")


@pytest.mark.parametrize(
    ("user", "forged", "true"),
    [
        (
            TRAM,
            [
                "positions/tram-2",
                "sensors/tram-2",
                "public/fixed",
                "records/telemetry/tram-2",
                "records/of-its-own/tram-1",
                "toll/exit/tram-2",
                "zones/tram-2",
                "cloaked/positions",
                "anonymized/fleet",
                "anonymizer/status",
            ],
            f"positions/{TRAM}",
        ),
        ("simulator", ["records/telemetry/tram-1", "cloaked/positions"], "positions/tram-9"),
        # An analyst's name is no device's: what it says never counts towards k.
        ("analyst", ["positions/analyst", "records/x/analyst", "cloaked/positions"], None),
    ],
)
async def test_nobody_speaks_in_the_name_of_another(
    deployed: Deployed, user: str, forged: list[str], true: str | None
) -> None:
    async with asyncio.timeout(DEADLINE_S), deployed.client("gateway") as gateway:
        await gateway.subscribe("#", qos=1)
        await deployed.publish(user, [(topic, b"forged") for topic in forged])
        user, true = (user, true) if true else (TRAM, f"positions/{TRAM}")
        assert await deployed.publish(user, [(true, b"true")]) == [True]
        heard = await anext(gateway.messages)
        assert (str(heard.topic), heard.payload) == (true, b"true")


def resident_bytes(broker: LocalBroker) -> int:
    status = Path(f"/proc/{broker.pid}/status").read_text()
    [kilobytes] = re.findall(r"^VmRSS:\s+(\d+) kB$", status, re.MULTILINE)
    return int(kilobytes) * 1024


async def test_a_device_that_knows_the_id_of_a_session_does_not_get_it(deployed: Deployed) -> None:
    heard: asyncio.Queue[bytes] = asyncio.Queue()

    def deliver(deliveries: Sequence[Delivery]) -> None:
        for delivery in deliveries:
            heard.put_nowait(delivery.payload)

    link = MqttLink(
        deployed.settings("gateway", session_expiry_s=600),
        client_id="known",
        deliver=deliver,
        subscriptions=[("positions/#", 1)],
    )
    async with asyncio.timeout(DEADLINE_S), asyncio.TaskGroup() as group:
        group.create_task(link.run(), name="link")
        await link.until_connected()
        for i in range(3):
            async with deployed.client(TRAM, "known") as device:
                await device.publish(f"positions/{TRAM}", str(i), qos=1)
                assert await heard.get() == str(i).encode()
        await link.close()
    assert (link.counts.n_connections, sum(link.counts.lost.values())) == (1, 0)


@pytest.mark.parametrize("version", ["5", "3.1.1"])
async def test_bad_messages_cost_their_sender_alone(deployed: Deployed, version: str) -> None:
    heard: asyncio.Queue[bytes] = asyncio.Queue()

    def deliver(deliveries: Sequence[Delivery]) -> None:
        link.acknowledge(delivery.receipt for delivery in deliveries)
        for delivery in deliveries:
            heard.put_nowait(delivery.payload)

    link = MqttLink(
        deployed.settings("gateway", version=version, session_expiry_s=600),
        client_id="gateway",
        deliver=deliver,
        subscriptions=[("positions/#", 1)],
    )
    async with asyncio.timeout(DEADLINE_S), asyncio.TaskGroup() as group:
        group.create_task(link.run(), name="link")
        await link.until_connected()
        async with deployed.client("simulator") as honest:
            for qos in range(3):
                await thrown_out(deployed, bytes(17 << 20), qos=qos)
                await honest.publish("positions/tram-2", b"%d" % qos, qos=qos)
                assert await heard.get() == b"%d" % qos
        await link.close()
    assert (link.counts.n_connections, sum(link.counts.lost.values())) == (1, 0)


@contextlib.asynccontextmanager
async def device_connected(
    deployed: Deployed,
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Connect a device whose packets are written by the test, as fast as it likes."""
    address = urlsplit(deployed.plain_url)
    text = [b"\x00\x04flod", TRAM.encode(), PASSWORD.encode()]
    body = b"\x00\x04MQTT\x04\xc2\x00\x3c" + text[0]
    body += b"".join(len(part).to_bytes(2) + part for part in text[1:])
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    try:
        writer.write(b"\x10" + bytes([len(body)]) + body)
        assert (await reader.readexactly(4))[3] == 0
        yield reader, writer
    finally:
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


async def thrown_out(deployed: Deployed, payload: bytes, *, qos: int) -> None:
    """Publish once, and wait until the broker has ended the connection."""
    message = Outgoing(f"positions/{TRAM}", payload)
    packet = bytearray(encode_publish(message, mid=1 if qos else 0, version5=False))
    packet[0] = 0x30 | qos << 1
    async with device_connected(deployed) as (reader, writer):
        writer.write(packet)
        with contextlib.suppress(ConnectionError):  # its end, with what it had not read
            assert await reader.read() == b"", "it was answered"


async def flood(deployed: Deployed, payload: bytes, *, until: asyncio.Event) -> int:
    """Publish as fast as the broker reads, by whatever user; return how many were written."""
    n = 0
    publish = encode_publish(Outgoing(f"positions/{TRAM}", payload), mid=0, version5=False)
    while not until.is_set():
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            async with device_connected(deployed) as (_, writer):
                while not until.is_set():
                    writer.write(publish)
                    await writer.drain()
                    await asyncio.sleep(0)  # the link is on the same loop, and has a turn as well
                    n += 1
    return n


@pytest.mark.parametrize("n_bytes", [1_000_000, 69_000])
async def test_a_flood_of_large_messages_costs_neither_memory_nor_the_messages_of_others(
    deployed: Deployed, n_bytes: int
) -> None:
    n_honest, n_heard, over, complete = 300, 0, asyncio.Event(), asyncio.Event()

    def deliver(deliveries: Sequence[Delivery]) -> None:
        nonlocal n_heard
        n_heard += sum(len(delivery.payload) < 100 for delivery in deliveries)
        if n_heard == n_honest:
            complete.set()

    link = MqttLink(
        deployed.settings("gateway"),
        client_id="gateway",
        deliver=deliver,
        subscriptions=[("positions/#", 0)],
    )
    async with asyncio.timeout(DEADLINE_S), asyncio.TaskGroup() as group:
        group.create_task(link.run(), name="link")
        await link.until_connected()
        flooding = group.create_task(flood(deployed, bytes(n_bytes), until=over))
        async with deployed.client("simulator") as honest:
            for i in range(n_honest):
                await honest.publish(f"positions/{i}", b"{}")
                await asyncio.sleep(0.005)
        most_bytes = resident_bytes(deployed.broker)
        over.set()
        assert await flooding > 10
        await complete.wait()
        await link.close()
    # With a pause after each read the broker reaches its limit, and drops messages of others.
    assert most_bytes < limits()["memory_limit"]


async def test_the_queues_of_two_sessions_fit_in_the_memory_of_the_broker(
    deployed: Deployed,
) -> None:
    n, told = 20_000, limits()
    link = MqttLink(
        deployed.settings("gateway", session_expiry_s=600),
        client_id="away",
        deliver=lambda _: None,
        subscriptions=[("records/#", 1)],
    )
    async with asyncio.timeout(DEADLINE_S), asyncio.TaskGroup() as group:
        group.create_task(link.run(), name="link")
        await link.until_connected()
        await link.close()
    before = resident_bytes(deployed.broker)
    message = (f"records/telemetry/{TRAM}", bytes(42))
    assert all(await deployed.publish(TRAM, [message] * n, at_once=n))
    record_bytes = (resident_bytes(deployed.broker) - before) / n
    assert 200 < record_bytes < 700
    session_bytes = (
        told["max_queued_messages"] * record_bytes
        + told["max_queued_bytes"]
        + told["max_inflight_bytes"]
    )
    assert 2 * session_bytes < told["memory_limit"]
    memory = read_yaml("compose.yaml")["services"]["mosquitto"]["mem_limit"]
    assert memory == "1g"
    assert told["memory_limit"] * 1.3 < 2**30


async def test_the_gateway_reads_how_many_messages_the_broker_dropped(deployed: Deployed) -> None:
    topic = load_settings(DEPLOY / "gateway.toml", {}).broker.drops_topic
    drops = BrokerDrops(deployed.settings("gateway", drops_topic=topic), key=bytes(32))
    running = asyncio.create_task(drops.run())

    async def read() -> int | None:
        return drops.n

    await eventually(read, lambda n: n == 0)
    await drops.close()
    await running
