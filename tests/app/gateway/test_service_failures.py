"""`anonymizer serve` when the broker is slow, gone or choosy, and when it is told to go."""

import asyncio
import json
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiomqtt
import pytest

from anonymizer.networks import load_network
from anonymizer.pipeline.ports import Outgoing
from anonymizer.transport import MqttLink
from anonymizer.transport.local_brokers import LocalBroker
from tests.brokers import PASSWORD, USER, Certificates, QuickBrokerSettings
from tests.end_to_end import Accounts, Gateway, client, quick, send, serving, witness

NETWORK = load_network("grid:20x20")
TICK_S = 0.03


def crowd(n: int, *, topic: str = "positions", first: int = 0) -> list[tuple[str, bytes]]:
    """Return positions of so many devices at one node, where all but the first hide each other."""
    payload = json.dumps({"lat": float(NETWORK.lat[210]), "lon": float(NETWORK.lon[210])}).encode()
    return [(f"{topic}/d{i}", payload) for i in range(first, first + n)]


def assert_all_well(now: Accounts, *, n_sent: int) -> None:
    """Every position has arrived, and all but a few first ones have gone out."""
    assert (now.received, now.settled, now.imbalance) == (n_sent, n_sent, 0)
    assert set(now.outcomes) <= {"published", "suppressed/too_few_devices"}
    assert now.outcomes["published"] > n_sent - 10


def assert_balanced(stopped: dict[str, Any]) -> None:
    """The last line of the log accounts for every position."""
    outcomes = {k: n for k, n in stopped.items() if isinstance(n, int) and k != "received"}
    assert stopped["received"] == sum(outcomes.values())


async def test_a_broker_that_crashes_and_comes_back_costs_nothing_but_what_it_lost(
    broker: LocalBroker, tmp_path: Path
) -> None:
    async with serving(tmp_path, quick(broker.url)) as gateway:
        await gateway.until_ready()
        async with client(broker.url, "publisher") as publisher:
            await send(publisher, crowd(50))
            await gateway.until_settled(50)
        await broker.kill()
        await gateway.program.logged("no broker")
        problem, *_ = (await gateway.get("/readyz")).json()["problems"]
        assert problem.startswith("broker: not connected: ")
        assert (await gateway.get("/healthz")).status_code == 200

        await broker.start()
        await gateway.program.logged("broker connected", times=2)
        await gateway.until_ready()
        async with client(broker.url, "publisher") as publisher:
            await send(publisher, crowd(70))
            assert_all_well(await gateway.until_settled(120), n_sent=120)

        await broker.kill()
        await gateway.program.logged("no broker", times=2)
        gateway.signal(signal.SIGTERM)
        assert await gateway.program.ended() == 0
        assert gateway.program.events("stopped")[0]["received"] == 120


async def test_a_broker_that_crashes_in_traffic_leaves_the_books_balanced(
    broker: LocalBroker, tmp_path: Path
) -> None:
    async with serving(tmp_path, quick(broker.url, inputs=[
        {"topic": "positions/{device}", "qos": 1}
    ], output={"qos": 1})) as gateway:  # fmt: skip
        await gateway.until_ready()
        traffic = asyncio.create_task(stubborn_traffic(broker.url), name="traffic")
        await gateway.until(lambda now: now.received > 300)
        await broker.kill()
        await gateway.program.logged("no broker")
        before = await gateway.accounts()
        await broker.start()
        await gateway.until(lambda now: now.settled > before.settled + 300)
        gateway.signal(signal.SIGTERM)
        assert await gateway.program.ended() == 0
        traffic.cancel()
        await asyncio.wait([traffic])
        assert_balanced(gateway.program.events("stopped")[0])


async def stubborn_traffic(url: str) -> None:
    """Publish on and on; connect anew whenever the broker is lost."""
    broker = QuickBrokerSettings(url=url)
    link = MqttLink(broker, client_id="publisher", deliver=lambda _: None)
    messages = [Outgoing(topic, payload) for topic, payload in crowd(20)]
    async with asyncio.TaskGroup() as group:
        group.create_task(link.run(), name="link")
        while True:
            await link.until_connected()
            await link.publish(messages, qos=1, timeout_s=1.0)


@asynccontextmanager
async def stalled(broker: LocalBroker, gateway: Gateway) -> AsyncIterator[None]:
    """Stop the broker's process behind positions that the gateway has not read yet.

    What is published of them hangs.
    """
    await gateway.until_ready()
    async with client(broker.url, "publisher") as publisher:
        await gateway.freeze()
        await send(publisher, crowd(500), qos=1)
        broker.send_signal(signal.SIGSTOP)
        gateway.signal(signal.SIGCONT)
        try:
            await gateway.until(lambda now: now.received > 0)
            yield
        finally:
            broker.send_signal(signal.SIGCONT)


async def test_sigterm_ends_within_the_deadline_though_the_broker_takes_nothing(
    broker: LocalBroker, tmp_path: Path
) -> None:
    settings = quick(broker.url, output={"qos": 1}, tick={"interval_s": TICK_S})
    async with serving(tmp_path, settings) as gateway, stalled(broker, gateway):
        gateway.signal(signal.SIGTERM)
        assert await gateway.program.ended() == 0
        assert_balanced(gateway.program.events("stopped")[0])


async def test_a_second_sigterm_does_not_wait(broker: LocalBroker, tmp_path: Path) -> None:
    settings = quick(broker.url, output={"qos": 1}, tick={"interval_s": 0.1})
    async with serving(tmp_path, settings) as gateway, stalled(broker, gateway):
        gateway.signal(signal.SIGTERM)
        await gateway.program.logged("draining")
        assert "stopping" in (await gateway.get("/readyz")).json()["problems"]
        gateway.signal(signal.SIGTERM)
        assert await gateway.program.ended() == -signal.SIGTERM


async def test_mqtt_311_over_tls_with_a_client_certificate_and_qos_1(
    tls_broker: LocalBroker, certificates: Certificates, tmp_path: Path
) -> None:
    settings = quick(
        tls_broker.url,
        broker={
            "version": "3.1.1",
            "ca_file": str(certificates.ca),
            "cert_file": str(certificates.client),
            "key_file": str(certificates.client_key),
        },
        inputs=[{"topic": "positions/{device}", "qos": 1}],
        output={"qos": 1},
    )
    tls = aiomqtt.TLSParameters(
        ca_certs=str(certificates.ca),
        certfile=str(certificates.client),
        keyfile=str(certificates.client_key),
    )
    options: dict[str, Any] = {"tls_params": tls, "protocol": aiomqtt.ProtocolVersion.V311}
    async with (
        serving(tmp_path, settings) as gateway,
        client(tls_broker.url, "publisher", **options) as publisher,
        witness(tls_broker.url, **options) as watching,
    ):
        await gateway.until_ready()
        await send(publisher, crowd(40), qos=1)
        now = await gateway.until_settled(40)
        assert_all_well(now, n_sent=40)
        await watching.until(lambda: watching.n_pseudonyms == now.outcomes["published"])


@pytest.mark.parametrize("source", ["file", "environment"])
async def test_a_password_opens_the_broker_and_is_nowhere_in_the_log(
    source: str, password_broker: LocalBroker, tmp_path: Path
) -> None:
    secret = tmp_path / "password"
    secret.write_text(f"{PASSWORD}\n")
    how = {"password_file": str(secret)} if source == "file" else {}
    environment = {} if source == "file" else {"ANONYMIZER__BROKER__PASSWORD": PASSWORD}
    settings = quick(
        password_broker.url,
        broker={"username": USER, "status_topic": "allowed/status", **how},
        inputs=[{"topic": "allowed/positions/{device}", "qos": 1}],
        output={"topic": "allowed/cloaked", "qos": 1},
    )
    async with (
        serving(tmp_path, settings, environment=environment) as gateway,
        client(password_broker.url, "publisher", username=USER, password=PASSWORD) as publisher,
    ):
        await gateway.until_ready()
        await send(publisher, crowd(40, topic="allowed/positions"), qos=1)
        assert_all_well(await gateway.until_settled(40), n_sent=40)
        assert PASSWORD not in "".join(gateway.program.lines)


async def test_what_an_earlier_gateway_subscribed_to_is_refused_as_unknown(
    broker: LocalBroker, tmp_path: Path
) -> None:
    kept = {"client_id": "gateway" * 5, "session_expiry_s": 600}
    first = quick(broker.url, broker=kept, inputs=[{"topic": "old/{device}", "qos": 1}])
    async with serving(tmp_path, first) as gateway:
        await gateway.until_ready()
        gateway.signal(signal.SIGTERM)
        assert await gateway.program.ended() == 0
    async with client(broker.url, "publisher") as publisher:
        await send(publisher, crowd(3, topic="old"), qos=1)
    second = quick(broker.url, broker=kept, inputs=[{"topic": "positions/{device}", "qos": 1}])
    async with serving(tmp_path, second) as gateway:
        now = await gateway.until_settled(3)
        assert now.outcomes == {"invalid/unknown_topic": 3}
