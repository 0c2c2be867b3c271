"""What is in deploy/: the broker's configuration in a real Mosquitto, and the alerts."""

import asyncio
import os
import re
from collections.abc import AsyncIterator
from pathlib import Path

import aiomqtt
import pytest
from prometheus_client import generate_latest
from pydantic import SecretStr

from anonymizer.pipeline.ports import Outgoing
from anonymizer.settings import BrokerSettings
from anonymizer.transport import MqttLink
from anonymizer.transport.brokers import MOSQUITTO_LIMITS, LocalBroker, find_mosquitto
from tests.end_to_end import DEADLINE_S, client
from tests.observe.test_metrics import busy_rig, registry_of

DEPLOY = Path(__file__).parents[1] / "deploy"
USERS = ("gateway", "analyst", "tram-1")
PASSWORD = "of no importance"  # noqa: S105  of a broker that lives for a second


@pytest.fixture
async def deployed(tmp_path: Path) -> AsyncIterator[LocalBroker]:
    """Run a Mosquitto by the file in deploy/, with its folders moved here."""
    program = find_mosquitto()
    assert program is not None
    passwords, rules = tmp_path / "passwords", tmp_path / "mosquitto.acl"
    passwords.write_text("".join(f"{user}:{PASSWORD}\n" for user in USERS))
    hashing = await asyncio.create_subprocess_exec("mosquitto_passwd", "-U", passwords)
    assert await hashing.wait() == 0
    rules.write_text((DEPLOY / "mosquitto.acl").read_text())
    for file in (passwords, rules):
        file.chmod(0o600)
    text = (DEPLOY / "mosquitto.conf").read_text()
    text = text.replace("/etc/mosquitto", str(tmp_path)).replace(
        "/var/lib/mosquitto", str(tmp_path)
    )
    config = tmp_path / "mosquitto.conf"

    def command(port: int) -> list[str | Path]:
        root = "user root\n" if os.geteuid() == 0 else ""
        config.write_text(text.replace("listener 1883", f"listener {port}") + root)
        return [program, "-c", config]

    started = LocalBroker(command, ready=" running")
    await started.start()
    yield started
    await started.stop()


def test_the_limits_without_which_bursts_are_lost_are_in_it() -> None:
    lines = (DEPLOY / "mosquitto.conf").read_text().splitlines()
    assert set(MOSQUITTO_LIMITS) | {"persistence true", "allow_anonymous false"} <= set(lines)


async def test_nobody_comes_in_without_a_password(deployed: LocalBroker) -> None:
    with pytest.raises(aiomqtt.MqttError):
        async with client(deployed.url, "stranger"):
            pass


async def test_a_device_writes_to_its_own_topic_alone_and_an_analyst_never_reads_it(
    deployed: LocalBroker,
) -> None:
    def reader(name: str) -> aiomqtt.Client:
        return client(deployed.url, name, username=name, password=PASSWORD)

    async with (
        asyncio.timeout(DEADLINE_S),
        reader("gateway") as gateway,
        reader("analyst") as analyst,
    ):
        for one in (gateway, analyst):
            await one.subscribe("#")
        # Some versions of Mosquitto throw a forger out: it has to come back each time.
        await publish_as_tram(deployed.url, "positions/tram-2", b"forged")
        await publish_as_tram(deployed.url, "cloaked/positions", b"forged")
        await publish_as_tram(deployed.url, "positions/tram-1", b"true")
        assert (await anext(gateway.messages)).payload == b"true"
        await gateway.publish("cloaked/positions", b"cloaked", qos=1)
        assert (await anext(analyst.messages)).payload == b"cloaked"


async def publish_as_tram(url: str, topic: str, payload: bytes) -> None:
    settings = BrokerSettings(url=url, username="tram-1", password=SecretStr(PASSWORD))
    link = MqttLink(settings, client_id="tram-1", deliver=lambda _: None)
    async with asyncio.TaskGroup() as group:
        group.create_task(link.run(), name="link")
        await link.until_connected()
        await link.publish([Outgoing(topic, payload)], qos=1, timeout_s=DEADLINE_S)
        await link.close()


def test_every_alert_is_about_something_that_is_exported() -> None:
    exported = generate_latest(registry_of(busy_rig())).decode()
    rules = re.findall(r"alert: (\w+)\n +expr: (.+)", (DEPLOY / "alerts.yml").read_text())
    assert {"PromiseBroken", "AccountingOutOfBalance"} <= {name for name, _ in rules}
    for _, expression in rules:
        for name in re.findall(r"anonymizer_\w+", expression):
            assert f"\n{name}" in exported, name
        for label in re.findall(r'\w+="\w+"', expression):
            assert label in exported, label
