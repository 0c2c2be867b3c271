"""The broker's configuration, rules and secrets of deploy/, in a real Mosquitto."""

import asyncio
import os
import socket
import ssl
import subprocess
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from urllib.parse import urlsplit

import aiomqtt
import pytest
from pydantic import SecretStr

from anonymizer.pipeline.ports import Outgoing
from anonymizer.settings import BrokerSettings
from anonymizer.transport import MqttLink
from anonymizer.transport.local_brokers import MOSQUITTO_LIMITS, LocalBroker, find_mosquitto
from tests.brokers import Certificates
from tests.deploy.files import DEPLOY
from tests.end_to_end import DEADLINE_S, client

TRAM = "tram-1"
PASSWORD = "of no importance"  # noqa: S105  of a broker that lives for a second


class Deployed:
    """The broker, and what its clients have to show."""

    def __init__(self, broker: LocalBroker, secrets: Path, plain_port: int) -> None:
        self.broker = broker
        self.ca = secrets / "ca.crt"
        self.plain_url = f"mqtt://127.0.0.1:{plain_port}"
        self._secrets = secrets

    def password(self, user: str) -> str:
        if user == TRAM:
            return PASSWORD
        return (self._secrets / f"{user}.password").read_text().strip()

    def client(self, user: str) -> aiomqtt.Client:
        tls = aiomqtt.TLSParameters(ca_certs=str(self.ca))
        password = self.password(user)
        return client(self.broker.url, user, username=user, password=password, tls_params=tls)

    async def publish(self, user: str, messages: Sequence[tuple[str, bytes]]) -> list[bool]:
        """Publish with the gateway's own client; return which of them the broker took."""
        settings = BrokerSettings(
            url=self.broker.url,
            username=user,
            password=SecretStr(self.password(user)),
            ca_file=self.ca,
            reconnect_min_s=0.01,
        )
        link = MqttLink(settings, client_id=f"{user}-out", deliver=lambda _: None)
        async with asyncio.TaskGroup() as group:
            group.create_task(link.run(), name="link")
            taken: list[bool] = []
            for topic, payload in messages:
                # Some versions of Mosquitto throw a forger out: it has to come back each time.
                await link.until_connected()
                out = [Outgoing(topic, payload)]
                taken += await link.publish(out, qos=1, timeout_s=DEADLINE_S)
            await link.close()
        return taken


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


def make_secrets(folder: Path) -> Path:
    secrets = folder / "secrets"
    subprocess.run(["sh", DEPLOY / "secrets.sh", secrets, "broker.example"], check=True)
    return secrets


def let_in(user: str, passwords: Path) -> None:
    subprocess.run(["mosquitto_passwd", "-b", passwords, user, PASSWORD], check=True)


@pytest.fixture
async def deployed(tmp_path: Path) -> AsyncIterator[Deployed]:
    """Run a Mosquitto by the files in deploy/, with its folders and its ports moved."""
    program = find_mosquitto()
    assert program is not None
    secrets, plain_port = make_secrets(tmp_path), free_port()
    let_in(TRAM, secrets / "broker" / "passwords")
    rules = secrets / "broker" / "mosquitto.acl"
    rules.write_text((DEPLOY / "mosquitto.acl").read_text())
    rules.chmod(0o600)
    text = (DEPLOY / "mosquitto.conf").read_text()
    for file, moved in (
        ("/etc/mosquitto", secrets / "broker"),
        ("/var/lib/mosquitto", tmp_path),
        ("listener 1883", f"listener {plain_port}"),
    ):
        assert file in text
        text = text.replace(file, str(moved))
    config = tmp_path / "mosquitto.conf"

    def command(port: int) -> list[str | Path]:
        root = "user root\n" if os.geteuid() == 0 else ""
        tls = f"listener {port} 127.0.0.1\n"
        config.write_text(text.replace("listener 8883\n", tls) + root)
        return [program, "-c", config]

    started = LocalBroker(command, ready=" running", scheme="mqtts")
    await started.start()
    yield Deployed(started, secrets, plain_port)
    await started.stop()


def test_the_limits_without_which_bursts_are_lost_are_in_it() -> None:
    lines = (DEPLOY / "mosquitto.conf").read_text().splitlines()
    assert set(MOSQUITTO_LIMITS) | {"persistence true", "allow_anonymous false"} <= set(lines)


def test_beyond_this_machine_every_listener_speaks_tls() -> None:
    text = (DEPLOY / "mosquitto.conf").read_text()
    listeners = [part.splitlines() for part in text.split("\nlistener ")[1:]]
    for first, *rest in listeners:
        assert first.endswith("127.0.0.1") or any(line.startswith("certfile ") for line in rest)
    assert len(listeners) == 2


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
    raw += [f"records/telemetry/{TRAM}", f"toll/exit/{TRAM}"]
    outputs = ["cloaked/positions", "public/fixed", "anonymized/fleet", "anonymizer/rejected"]
    async with (
        asyncio.timeout(DEADLINE_S),
        deployed.client("gateway") as gateway,
        deployed.client("analyst") as analyst,
    ):
        for topic in ("#", "positions/#", "records/#", "records/+/+", "toll/#", *raw):
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
                "toll/exit/tram-2",
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
