"""`anonymizer connect`: from nothing to a region, on a Mosquitto with the files that it writes."""

import asyncio
import json
import os
import pty
import socket
import ssl
import subprocess
import time
import tomllib
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import aiomqtt
import pytest

from anonymizer.app.connect.ecosystems import ECOSYSTEMS, Ecosystem
from anonymizer.codecs import CODECS
from anonymizer.domain.fixes import Fix
from anonymizer.domain.outcomes import Outcome
from anonymizer.networks import load_network
from anonymizer.pipeline.positions.decode.topics import TopicRouter
from anonymizer.settings import Settings, load_settings
from anonymizer.transport.local_brokers import LocalBroker, find_mosquitto, free_port
from tests.brokers import Certificates
from tests.cli.support import anonymizer
from tests.end_to_end import ANONYMIZER, DEADLINE_S, client, running

NETWORK = "grid:20x20"
N_DEVICES = 24
QUICK = {"owntracks", "hsl"}
"""One whose devices are users, and one that fetches; the others take half a minute each."""
EACH = [
    pytest.param(name, marks=[] if name in QUICK else [pytest.mark.soak]) for name in ECOSYSTEMS
]


def connected(folder: Path, name: str, *more: str) -> int:
    """Run the command on a free port; return the port."""
    port = free_port()
    told = anonymizer(
        "connect", name, "--out", folder, "--network", NETWORK, "--port", str(port), *more
    )
    assert told.returncode == 0, told.stderr
    assert "nothing raw" in told.stdout
    assert ("speaks for all devices" in told.stdout) != ECOSYSTEMS[name].has_users
    one_each = ECOSYSTEMS[name].has_users and "--certificate" in more
    assert ("would throw each other out" in told.stdout) == one_each
    return port


def broker_of(folder: Path, port: int) -> LocalBroker:
    """Return a Mosquitto with the file that was written; nobody answers its bridge."""
    program = find_mosquitto()
    assert program is not None
    config = folder / "mosquitto.conf"
    lines = config.read_text().splitlines()
    away = ["address 127.0.0.1:9" if each.startswith("address ") else each for each in lines]
    config.write_text("\n".join(away) + "\n")
    return LocalBroker(lambda _: [program, "-c", config], ready=" running", port=port)


@asynccontextmanager
async def running_broker(folder: Path, port: int) -> AsyncIterator[LocalBroker]:
    broker = broker_of(folder, port)
    await broker.start()
    try:
        yield broker
    finally:
        await broker.stop()


def password(folder: Path, user: str) -> str:
    return (folder / f"{user}.password").read_text().strip()


async def report(folder: Path, known: Ecosystem, url: str, users: list[str]) -> None:
    """Publish as all devices, again and again, each as its user and where a road is."""
    network = load_network(NETWORK)
    lat, lon = network.lat[:N_DEVICES], network.lon[:N_DEVICES]

    async def one(number: int, user: str, of_user: list[int]) -> None:
        said = {"username": user, "password": password(folder, user)}
        async with client(url, f"device-{number}", **said) as connection:
            while True:
                for n in of_user:
                    topic, payload = known.message(
                        user, float(lat[n]), float(lon[n]), time=time.time(), n=n + 1
                    )
                    await connection.publish(topic, payload, qos=1)
                await asyncio.sleep(1.0)

    async with asyncio.TaskGroup() as group:
        for number, user in enumerate(users):
            group.create_task(one(number, user, list(range(number, N_DEVICES, len(users)))))


ALICE_AND_BOB = ("--device", "alice", "--device", "bob")


@pytest.mark.parametrize("name", EACH)
async def test_three_commands_lead_from_nothing_to_a_region(name: str, tmp_path: Path) -> None:
    known, folder = ECOSYSTEMS[name], tmp_path / "it"
    users = [known.publisher]
    if known.has_users:
        users = [f"d{i}" for i in range(N_DEVICES)]
    devices = [word for user in users for word in ("--device", user)] if known.has_users else []
    port = await asyncio.to_thread(connected, folder, name, *devices)
    more = {"ANONYMIZER__HTTP__PORT": "0"}
    async with (
        running_broker(folder, port) as broker,
        running(ANONYMIZER, "serve", "-c", folder / "gateway.toml", environment=more) as gateway,
        client(
            broker.url, "reader", username="analyst", password=password(folder, "analyst")
        ) as analyst,
    ):
        await gateway.logged("broker connected")
        await analyst.subscribe("#")
        reporting = asyncio.create_task(report(folder, known, broker.url, users))
        topics = set()
        async with asyncio.timeout(DEADLINE_S):
            async for message in analyst.messages:
                topics.add(str(message.topic).partition("/")[0])
                if str(message.topic) == "cloaked/positions":
                    break
        reporting.cancel()
    assert isinstance(message.payload, bytes)
    said = json.loads(message.payload)
    assert len(said["region"]) > 1
    assert len(said["pseudonyms"]) >= 5
    assert topics <= {"cloaked", "anonymizer"}


Change = Callable[[str], str]


def without(line: str) -> Change:
    return lambda rules: "".join(
        each for each in rules.splitlines(keepends=True) if each.strip() != line
    )


def after(user: str, line: str) -> Change:
    return lambda rules: rules.replace(f"user {user}\n", f"user {user}\n{line}\n")


FURTHER = (*ALICE_AND_BOB, "--reader", "public", "--reader", "own")
LACKS: list[tuple[Change, str, Sequence[str]]] = [
    (without("topic read owntracks/+/phone"), "does not give it to gateway", ()),
    (
        without("pattern write owntracks/%u/phone"),
        "does not let device publish to owntracks/dev",
        (),
    ),
    (lambda rules: rules.replace("%u", "+"), "device can publish as another device", ()),
    (
        lambda rules: rules.replace("deny owntracks/+/phone", "read owntracks/#"),
        "analyst can read what devices publish",
        (),
    ),
    (without("topic write cloaked/#"), "does not take cloaked/trial from gateway", ()),
    (without("topic write anonymizer/#"), "does not take anonymizer/network", ()),
    (after("analyst", "topic deny anonymizer/#"), "does not give anonymizer/network", ()),
    (lambda rules: rules + "pattern write cloaked/#\n", "device can write what the gateway", ()),
    (without("topic write public/#"), "does not take public/trial from gateway", FURTHER),
    (without("topic read public/#"), "does not give public/trial to public", FURTHER),
    (after("public", "topic read cloaked/#"), "public can read below cloaked: let it", FURTHER),
    (
        lambda rules: (
            rules.replace("pattern readwrite", "pattern write", 1)
            + "pattern readwrite other/%u/#\n"
        ),
        "does not give owntracks/alice/",
        FURTHER,
    ),
    (after("alice", "topic read owntracks/#"), "alice can read what others send", FURTHER),
]
"""A change of the rules, what is said of it, and the readers that they were written for."""


@pytest.mark.parametrize(("change", "missing", "readers"), LACKS)
async def test_what_the_rules_lack_or_allow_too_much_is_said_in_a_sentence(
    change: Change, missing: str, readers: Sequence[str], tmp_path: Path
) -> None:
    folder = tmp_path / "it"
    port = await asyncio.to_thread(connected, folder, "owntracks", *readers)
    rules = folder / "mosquitto.acl"
    text = rules.read_text()
    if readers:
        text = text.replace("# A device", "user alice\n\n# A device")
    changed = change(text)
    assert changed != text
    rules.write_text(changed)
    async with running_broker(folder, port):
        told = await asyncio.to_thread(anonymizer, "connect", "owntracks", "--out", folder, "--try")
    assert (told.returncode, told.stderr.count("\n")) == (2, 1), told.stderr
    assert missing in told.stderr


async def test_further_readers_read_what_is_theirs_alone(tmp_path: Path) -> None:
    """A phone reads its own exact positions, the public its copy, and neither anything else."""
    folder, known = tmp_path / "it", ECOSYSTEMS["owntracks"]
    port = await asyncio.to_thread(connected, folder, "owntracks", *FURTHER)
    assert 'forms = ["density"]' in (folder / "gateway.toml").read_text()
    async with running_broker(folder, port) as broker, AsyncExitStack() as stack:
        of_user = {
            user: await stack.enter_async_context(
                client(broker.url, user, username=user, password=password(folder, user))
            )
            for user in ("alice", "bob", "gateway", "public")
        }
        for user in ("alice", "public"):
            await of_user[user].subscribe("#")
        for user in ("bob", "alice"):
            await of_user[user].publish(*known.message(user, 1.0, 1.0, time=0.0), qos=1)
        for topic in ("cloaked/positions", "public/density"):
            await of_user["gateway"].publish(topic, b"{}", qos=1)
        for user, topic in (("alice", "owntracks/alice"), ("public", "public/density")):
            async with asyncio.timeout(DEADLINE_S):
                first = await anext(aiter(of_user[user].messages))
            assert str(first.topic).startswith(topic)


async def test_each_phone_reads_what_its_user_sends_and_nothing_of_others(
    tmp_path: Path,
) -> None:
    folder, known = tmp_path / "it", ECOSYSTEMS["owntracks"]
    port = await asyncio.to_thread(
        connected, folder, "owntracks", *ALICE_AND_BOB, "--reader", "own"
    )
    last = b"the last"
    async with running_broker(folder, port) as broker, AsyncExitStack() as stack:

        async def phone(user: str, name: str) -> aiomqtt.Client:
            made = client(broker.url, name, username=user, password=password(folder, user))
            return await stack.enter_async_context(made)

        phones = [await phone("alice", "first"), await phone("alice", "second")]
        of_bob = [await phone("bob", "bob's"), await phone("bob", "bob's other")]
        for each in (*phones, *of_bob):
            await each.subscribe("#", qos=1)
        for n, (of_another, each) in enumerate(zip(of_bob, phones, strict=True), 1):
            await of_another.publish(*known.message("bob", 1.0, 1.0, time=0.0, n=n), qos=1)
            await each.publish(*known.message("alice", 1.0, 1.0, time=0.0, n=n), qos=1)
        await phones[0].publish("owntracks/alice/phone", last, qos=1)
        for each in phones:
            got = []
            async with asyncio.timeout(DEADLINE_S):
                async for message in each.messages:
                    if message.payload == last:
                        break
                    got.append(str(message.topic))
            assert got == ["owntracks/alice/phone"] * 2


async def test_a_user_whom_the_broker_does_not_know_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "it"
    port = await asyncio.to_thread(connected, folder, "traccar")
    passwords = folder / "passwords"
    for user in ("gateway", "traccar", "analyst"):
        others = without(next(x for x in passwords.read_text().splitlines() if user in x))
        known = passwords.read_text()
        passwords.write_text(others(known))
        async with running_broker(folder, port):
            told = await asyncio.to_thread(
                anonymizer, "connect", "traccar", "--out", folder, "--try"
            )
        assert told.returncode == 2
        assert f"the broker does not let {user} in: refused: Not authorized" in told.stderr
        passwords.write_text(known)
    told = await asyncio.to_thread(anonymizer, "connect", "traccar", "--out", folder, "--try")
    assert (told.returncode, "does not let gateway in" in told.stderr) == (2, True), "none runs"


@pytest.mark.parametrize("name", ECOSYSTEMS)
def test_a_sample_is_read_as_the_device_that_it_is_and_at_0_0_as_nobody(name: str) -> None:
    known = ECOSYSTEMS[name]
    settings = Settings.model_validate({"network": {"source": NETWORK}, "inputs": [known.input]})
    [stated] = settings.inputs
    ids = set()
    for n in (1, 2):
        topic, payload = known.message(f"user{n}", 51.5, -0.25, time=1.7e9, n=n)
        route = TopicRouter(settings.inputs).find(topic)
        assert route is not None
        [fix] = CODECS[stated.codec](payload)
        assert isinstance(fix, Fix)
        assert (fix.lat, fix.lon) == (51.5, -0.25)
        ids.add(route.device or fix.device)
    assert None not in ids
    assert len(ids) == 2
    _, nowhere = known.message("user1", 0.0, 0.0, time=1.7e9)
    assert list(CODECS[stated.codec](nowhere)) == [Outcome.INVALID__NULL_ISLAND]


def test_what_is_secret_is_for_its_owners_eyes(tmp_path: Path) -> None:
    connected(tmp_path, "owntracks", "--device", "alice", "--device", "bob")
    for file in tmp_path.iterdir():
        if file.name != "gateway.toml":
            assert file.stat().st_mode & 0o077 == 0, file.name
    assert {path.stem for path in tmp_path.glob("*.password")} == {
        "gateway", "analyst", "alice", "bob",
    }  # fmt: skip
    told = load_settings(tmp_path / "gateway.toml")
    assert told.broker.password_file == tmp_path / "gateway.password"


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["owntrack"], "must be one of owntracks, traccar"),
        (["hsl", "--network", NETWORK, "--codec", "json"], "--topic and --codec: are for kafka"),
        (["kafka", "--network", NETWORK, "--device", "a"], "are for Mosquitto"),
        (["kafka", "--network", NETWORK, "--topic", "a b"], "must be a topic of Kafka"),
        (["kafka", "--network", NETWORK, "--broker", "far.example"], "must be host:port"),
        (["kafka", "--network", NETWORK, "--codec", "nativ"], "did you mean"),
        (["kafka", "--try"], "cannot be read"),
        (["owntracks"], "--network: state a file"),
        (["owntracks", "--network", NETWORK, "--device", "gateway"], "--device: gateway: must be"),
        (["owntracks", "--network", NETWORK, "--device", "public"], "--device: public: must be"),
        (["owntracks", "--network", NETWORK, "--reader", "all"], "must be public or own"),
        (["traccar", "--network", NETWORK, "--reader", "own"], "all positions come from one user"),
        (["owntracks", "--network", NETWORK, "--device", "a/b"], "--device: a/b: must be"),
        (["traccar", "--network", NETWORK, "--device", "a"], "all positions come from one user"),
        (["hsl", "--network", NETWORK, "--key", "x"], "belong together"),
        (["hsl", "--network", NETWORK, "--broker", "mqtt://far.example"], "must be mqtts://"),
        (["hsl", "--network", "nowhere.pbf"], "nowhere.pbf"),
        (["hsl", "--try"], "cannot be read"),
    ],
)
def test_a_mistake_is_one_line(words: list[str], why: str, tmp_path: Path) -> None:
    told = anonymizer("connect", *words, "--out", tmp_path / "it")
    assert told.returncode == 2
    assert why in told.stderr
    assert told.stderr.count("\n") == 1


def on_a_terminal(folder: Path, said: str) -> subprocess.CompletedProcess[str]:
    """Run the command as somebody who answers its questions."""
    ours, theirs = pty.openpty()
    os.write(ours, said.encode())
    told = subprocess.run(
        [ANONYMIZER, "connect"],
        stdin=theirs,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=DEADLINE_S,
    )
    os.close(ours)
    os.close(theirs)
    return told


def test_on_a_terminal_it_asks_for_all_and_asks_again_after_a_mistake(tmp_path: Path) -> None:
    told = on_a_terminal(tmp_path, "owntrack\nowntracks\ngrid:20x20\na/b\nann bob\n")
    assert told.returncode == 0, told.stderr
    assert "nothing raw" in told.stdout
    for wrong in ("owntrack: must be one of", "a/b: must be"):
        assert wrong in told.stderr
    folder = tmp_path / "owntracks"
    stated = tomllib.loads((folder / "gateway.toml").read_text())
    assert stated["network"] == {"source": NETWORK}
    assert (folder / "bob.password").exists()
    assert len(list(folder.glob("*.password"))) == 4


def test_on_a_terminal_it_asks_where_kafka_is_and_what_is_there(tmp_path: Path) -> None:
    told = on_a_terminal(tmp_path, f"kafka\n{NETWORK}\nhere\nhere:9093\na b\nraw\n\n")
    assert told.returncode == 0, told.stderr
    assert "must be host:port" in told.stderr
    assert "must be a topic of Kafka" in told.stderr
    stated = load_settings(tmp_path / "kafka" / "gateway.toml")
    assert stated.kafka.servers == "here:9093"
    assert [each.kafka for each in stated.inputs] == ["raw"]
    assert stated.kafka.options["security.protocol"].get_secret_value() == "sasl_ssl"
    for file in (tmp_path / "kafka").iterdir():
        assert file.stat().st_mode & 0o077 == 0, "there are passwords in it"


async def test_devices_elsewhere_come_in_over_tls(
    certificates: Certificates, tmp_path: Path
) -> None:
    folder, other = tmp_path / "it", tmp_path / "other"
    with_tls = ("--certificate", str(certificates.server), "--key", str(certificates.server_key))
    port = await asyncio.to_thread(connected, folder, "owntracks", *with_tls)
    outside = free_port()
    config = folder / "mosquitto.conf"
    config.write_text(config.read_text().replace("listener 8883", f"listener {outside}"))
    tls = aiomqtt.TLSParameters(ca_certs=str(certificates.ca))
    said = {"username": "device", "password": password(folder, "device")}
    url = f"mqtts://127.0.0.1:{outside}"
    other.mkdir()
    for file in folder.glob("*.password"):
        (other / file.name).write_bytes(file.read_bytes())
    async with running_broker(folder, port):
        told = await asyncio.to_thread(
            anonymizer, "connect", "owntracks", "--out", other, "--network", NETWORK,
            "--broker", url, "--ca-file", certificates.ca,
        )  # fmt: skip
        assert told.returncode == 0, told.stderr
        assert f"tried at {url}" in told.stdout
        async with client(url, "another's name", tls_params=tls, **said) as phone:
            await phone.publish("owntracks/device/phone", b"{}", qos=1)
        stranger = ssl.create_default_context(cafile=str(certificates.other_ca))
        with (
            socket.create_connection(("127.0.0.1", outside), timeout=5) as plain,
            pytest.raises(ssl.SSLCertVerificationError),
        ):
            stranger.wrap_socket(plain, server_hostname="127.0.0.1")


def test_a_certificate_without_its_key_is_refused_before_anything_is_written(
    certificates: Certificates, tmp_path: Path
) -> None:
    told = anonymizer(
        "connect", "hsl", "--network", NETWORK, "--out", tmp_path / "it",
        "--certificate", certificates.server, "--key", certificates.client_key,
    )  # fmt: skip
    assert told.returncode == 2
    assert "are not a certificate and its key" in told.stderr
    assert not (tmp_path / "it").exists()


def test_files_that_are_there_stay(tmp_path: Path) -> None:
    (tmp_path / "gateway.toml").write_text("mine")
    told = anonymizer("connect", "hsl", "--network", NETWORK, "--out", tmp_path)
    assert told.returncode == 2
    assert "already exists; --try tries what is there" in told.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["gateway.toml"]


async def test_passwords_that_are_there_are_used_at_a_broker_that_runs_already(
    tmp_path: Path,
) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    port = await asyncio.to_thread(connected, one, "traccar")
    other.mkdir()
    for file in one.glob("*.password"):
        (other / file.name).write_bytes(file.read_bytes())
    async with running_broker(one, port) as broker:
        told = await asyncio.to_thread(
            anonymizer, "connect", "traccar", "--out", other, "--network", NETWORK,
            "--broker", broker.url,
        )  # fmt: skip
    assert told.returncode == 0, told.stderr
    assert f"tried at {broker.url}" in told.stdout
    assert not (other / "mosquitto.conf").exists()
    assert urlsplit(broker.url).port == port


def test_mosquitto_itself_adds_a_user_to_the_passwords(tmp_path: Path) -> None:
    connected(tmp_path, "traccar")
    passwords = tmp_path / "passwords"
    before = passwords.read_text()
    subprocess.run(["mosquitto_passwd", "-b", passwords, "late", "x"], check=True)
    assert before.splitlines() == passwords.read_text().splitlines()[:-1]
