"""The broker of deploy/, as it runs on this machine."""

import asyncio
import contextlib
import os
import re
import subprocess
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import aiomqtt
import pytest
from pydantic import SecretStr

from anonymizer.pipeline.ports import Outgoing
from anonymizer.settings import BrokerSettings
from anonymizer.transport import MqttLink
from anonymizer.transport.local_brokers import LocalBroker, find_mosquitto, free_port
from tests.brokers import QuickBrokerSettings
from tests.deploy.files import DEPLOY
from tests.end_to_end import DEADLINE_S, client

TRAM = "tram-1"
PASSWORD = "of no importance"  # noqa: S105  of a broker that lives for a second


class Deployed:
    """The broker, and what its clients have to show."""

    def __init__(
        self, broker: LocalBroker, secrets: Path, *, plain_port: int, services_port: int
    ) -> None:
        self.broker = broker
        self.services_url = f"mqtts://127.0.0.1:{services_port}"
        self.ca = secrets / "ca.crt"
        self.plain_url = f"mqtt://127.0.0.1:{plain_port}"
        self._secrets = secrets

    def password(self, user: str) -> str:
        if user == TRAM:
            return PASSWORD
        return (self._secrets / f"{user}.password").read_text().strip()

    def url(self, user: str) -> str:
        """Return the address of the listener for a user: devices have their own."""
        return self.broker.url if user == TRAM else self.services_url

    def client(self, user: str, name: str = "") -> aiomqtt.Client:
        tls = aiomqtt.TLSParameters(ca_certs=str(self.ca))
        return client(
            self.url(user),
            name or user,
            username=user,
            password=self.password(user),
            tls_params=tls,
        )

    def settings(self, user: str, **more: object) -> BrokerSettings:
        """Return the settings of the gateway's own client for a user."""
        return QuickBrokerSettings(
            url=self.url(user),
            username=user,
            password=SecretStr(self.password(user)),
            ca_file=self.ca,
            longest_wait_s=0.6,
        ).model_copy(update=more)

    async def publish(
        self, user: str, messages: Sequence[tuple[str, bytes]], *, at_once: int = 1
    ) -> list[bool | None]:
        """Publish with the gateway's own client; return which of them the broker took."""
        link = MqttLink(self.settings(user), client_id=f"{user}-out", deliver=lambda _: None)
        async with asyncio.TaskGroup() as group:
            group.create_task(link.run(), name="link")
            taken: list[bool | None] = []
            for i in range(0, len(messages), at_once):
                # Some versions of Mosquitto throw a forger out: it has to come back each time.
                await link.until_connected()
                out = [Outgoing(*message) for message in messages[i : i + at_once]]
                taken += await link.publish(out, qos=1, timeout_s=DEADLINE_S)
            await link.close()
        return taken


def make_secrets(folder: Path) -> Path:
    secrets = folder / "secrets"
    subprocess.run(["sh", DEPLOY / "secrets.sh", secrets, "broker.example"], check=True)
    return secrets


def let_in(user: str, passwords: Path) -> None:
    subprocess.run(["mosquitto_passwd", "-b", passwords, user, PASSWORD], check=True)


def limits() -> dict[str, int]:
    """Return the limits of the broker that are numbers."""
    text = (DEPLOY / "mosquitto.conf").read_text()
    return {name: int(n) for name, n in re.findall(r"^(\w+) (\d+)$", text, re.MULTILINE)}


@contextlib.asynccontextmanager
async def deployment(tmp_path: Path, **changed: str) -> AsyncIterator[Deployed]:
    """Run a Mosquitto by the files in deploy/, with its folders and its ports moved.

    `changed` are other values of its settings.
    """
    program = find_mosquitto()
    assert program is not None
    secrets, plain_port, services_port = make_secrets(tmp_path), free_port(), free_port()
    let_in(TRAM, secrets / "broker" / "passwords")
    rules = secrets / "broker" / "mosquitto.acl"
    rules.write_text((DEPLOY / "mosquitto.acl").read_text())
    rules.chmod(0o600)
    text = (DEPLOY / "mosquitto.conf").read_text()
    for file, moved in (
        ("/etc/mosquitto", secrets / "broker"),
        ("listener 1883", f"listener {plain_port}"),
        ("listener 8884", f"listener {services_port} 127.0.0.1"),
        ("sys_interval 10", "sys_interval 1"),
        *((f"{name} {limits()[name]}", f"{name} {value}") for name, value in changed.items()),
    ):
        assert file in text
        text = text.replace(file, str(moved))
    config = tmp_path / "mosquitto.conf"

    def command(port: int) -> list[str | Path]:
        root = "user root\n" if os.geteuid() == 0 else ""
        tls = f"listener {port} 127.0.0.1\n"
        location = f"persistence_location {tmp_path}/\n"
        config.write_text(text.replace("listener 8883\n", tls) + location + root)
        return [program, "-c", config]

    started = LocalBroker(command, ready=" running", scheme="mqtts")
    await started.start()
    yield Deployed(started, secrets, plain_port=plain_port, services_port=services_port)
    await started.stop()


@pytest.fixture
async def deployed(tmp_path: Path) -> AsyncIterator[Deployed]:
    """Run a Mosquitto by the files in deploy/."""
    async with deployment(tmp_path) as started:
        yield started
