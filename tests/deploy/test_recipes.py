"""The recipes of the manual: settings that load, brokers that start, and a message that passes."""

import asyncio
import json
import subprocess
import time
import tomllib
from pathlib import Path

import aiomqtt
import pytest

from anonymizer.app.connect.ecosystems import ECOSYSTEMS, NAMES
from anonymizer.app.gateway.preflight import check_files
from anonymizer.pipeline.ledger import Ledger
from anonymizer.pipeline.ports import Delivery
from anonymizer.pipeline.positions.decode.decoding import Decoder
from anonymizer.pipeline.positions.decode.topics import TopicRouter, Treatment
from anonymizer.pipeline.positions.tick.inbox import Arrivals
from anonymizer.settings import Settings
from anonymizer.transport.local_brokers import mosquitto
from tests.brokers import Certificates
from tests.console import ROOT, blocks, commands
from tests.end_to_end import DEADLINE_S, client, eventually

PAGE = ROOT / "docs" / "recipes.md"
BLOCKS = list(blocks(PAGE))


BUS = ECOSYSTEMS["hsl"].message("", 60.2, 24.9, time=time.time())
"""Topic and payload, as the gateway's broker has it."""


def recipes() -> Settings:
    """Return settings with the inputs of all recipes; those with an echo repeat another one."""
    inputs = [each.input for each in ECOSYSTEMS.values()]
    return Settings.model_validate({"network": {"source": "grid:2x2"}, "inputs": inputs})


def snippet(beginning: str) -> list[str]:
    """Return the lines of the snippet for a broker that begins so."""
    return next(b.text.splitlines() for b in BLOCKS if b.text.startswith(beginning))


def devices_of(*deliveries: Delivery) -> list[str]:
    """Return the devices of which a position is usable."""
    settings, ledger = recipes(), Ledger()
    ledger.receive(len(deliveries))
    decoder = Decoder(TopicRouter(settings.inputs), settings.limits, ledger)
    decoded = decoder.decode([Arrivals(0.0, deliveries)]).of[Treatment.MOBILE]
    return [decoded.device(row) for row in range(len(decoded.sender))]


def test_every_ecosystem_has_a_recipe_and_every_echo_repeats_its_input() -> None:
    connected = {
        command.text.split()[2]
        for block in BLOCKS
        if block.language == "console"
        for command in commands(block)
        if " connect " in command.text
    }
    assert connected == {*NAMES}
    tables = [tomllib.loads(block.text) for block in BLOCKS if block.language == "toml"]
    repeated = [
        dict(one)
        for table in tables
        for one in table.get("inputs", [])
        if "echo" in one and "kafka" not in table  # which `connect` writes no echo for
    ]
    assert len(repeated) == 2
    known = [dict(each.input) for each in ECOSYSTEMS.values()]
    assert all({k: v for k, v in each.items() if k != "echo"} in known for each in repeated)


@pytest.mark.parametrize(
    ("name", "device"),
    [
        ("owntracks", "alice"),
        ("home-assistant", "alice"),
        ("traccar", "tracker1"),
        ("meshtastic", "1"),
        ("ttn", "tracker1"),
        ("hsl", "0012/00001"),
    ],
)
def test_a_message_passes_the_input_of_its_recipe(name: str, device: str) -> None:
    topic, payload = ECOSYSTEMS[name].message("alice", 60.2, 24.9, time=time.time())
    assert devices_of(Delivery(topic, payload, 0)) == [device]


def test_check_accepts_all_recipes_together() -> None:
    assert check_files(recipes()).network.n_nodes == 4


async def test_readers_that_share_what_is_published_get_each_group_once(tmp_path: Path) -> None:
    [shared] = snippet("$share/")
    broker = mosquitto(tmp_path)
    published = [
        json.dumps({"group": f"g{i}", "pseudonyms": [f"p{i}", f"q{i}"]}) for i in range(40)
    ]
    got: dict[str, list[str]] = {"one": [], "other": []}
    await broker.start()
    try:
        async with (
            client(broker.url, "gateway") as gateway,
            client(broker.url, "one") as one,
            client(broker.url, "other") as other,
        ):
            for reader in (one, other):
                await reader.subscribe(shared, qos=1)
            for body in published:
                await gateway.publish("cloaked/positions", body, qos=1)

            async def read(name: str, reader: aiomqtt.Client) -> None:
                async for message in reader.messages:
                    assert isinstance(message.payload, bytes)
                    got[name].append(message.payload.decode())

            async with asyncio.timeout(DEADLINE_S), asyncio.TaskGroup() as group:
                tasks = [
                    group.create_task(read(*each)) for each in (("one", one), ("other", other))
                ]

                async def n_got() -> int:
                    return sum(map(len, got.values()))

                await eventually(n_got, lambda n: n >= len(published))
                await asyncio.sleep(0.2)
                for task in tasks:
                    task.cancel()
    finally:
        await broker.stop()
    assert sorted(got["one"] + got["other"]) == sorted(published)
    assert all(got.values()), "both have had some"


async def test_the_recorder_reads_the_echoes_and_not_the_phones(tmp_path: Path) -> None:
    [line] = snippet("OTR_TOPICS")
    broker = mosquitto(tmp_path)
    await broker.start()
    try:
        async with client(broker.url, "recorder") as recorder, client(broker.url, "all") as all_:
            await recorder.subscribe(line.partition("=")[2].strip('"'), qos=1)
            for topic in ("owntracks/alice/phone", "cloaked/positions", "cloaked/owntracks/3nG0cQ"):
                await all_.publish(topic, b"{}", qos=1)
            async with asyncio.timeout(DEADLINE_S):
                first = await anext(aiter(recorder.messages))
    finally:
        await broker.stop()
    assert str(first.topic) == "cloaked/owntracks/3nG0cQ"


async def test_one_more_line_lets_the_gateway_announce_itself(tmp_path: Path) -> None:
    rules = tmp_path / "acl"
    announces = snippet("topic write homeassistant")
    rules.write_text("\n".join(["user gateway", *announces, "user home", "topic read #", ""]))
    rules.chmod(0o700)
    broker = mosquitto(tmp_path, f"acl_file {rules}")
    await broker.start()
    try:
        async with (
            client(broker.url, "home", username="home") as home,
            client(broker.url, "gateway", username="gateway") as gateway,
        ):
            await home.subscribe("homeassistant/#", qos=1)
            for object_ in ("another", "anonymizer"):
                await gateway.publish(f"homeassistant/device/{object_}/config", b"{}", qos=1)
            async with asyncio.timeout(DEADLINE_S):
                first = await anext(aiter(home.messages))
    finally:
        await broker.stop()
    assert str(first.topic) == "homeassistant/device/anonymizer/config"


def test_gateways_do_not_share_the_topics_of_devices() -> None:
    with pytest.raises(ValueError, match="a shared subscription would give a part"):
        Settings.model_validate({"inputs": [{"topic": "$share/gateways/positions/{device}"}]})


@pytest.fixture
def authorities(tmp_path: Path, certificates: Certificates) -> Path:
    """A folder of authorities as systems have one, with a single certificate."""
    folder = tmp_path / "authorities"
    folder.mkdir()
    (folder / "ca.crt").write_bytes(certificates.ca.read_bytes())
    subprocess.run(["openssl", "rehash", folder], check=True, capture_output=True)
    return folder


async def test_the_bridge_brings_vehicles_to_the_topic_of_its_recipe(
    tmp_path: Path, certificates: Certificates, authorities: Path
) -> None:
    """A broker of this machine stands in for HSL's; only address and authorities differ."""
    for folder in ("theirs", "ours"):
        (tmp_path / folder).mkdir()
    theirs = mosquitto(
        tmp_path / "theirs",
        f"cafile {certificates.ca}",
        f"certfile {certificates.server}",
        f"keyfile {certificates.server_key}",
    )
    await theirs.start()
    replaced = {
        "address": theirs.url.removeprefix("mqtts://"),
        "bridge_capath": str(authorities),
    }
    lines = [
        f"{key} {replaced.get(key, rest)}"
        for key, _, rest in (line.partition(" ") for line in ECOSYSTEMS["hsl"].bridge)
    ]
    rules = tmp_path / "acl"
    rules.write_text("user gateway\ntopic read hfp/#\n")
    rules.chmod(0o700)
    ours = mosquitto(tmp_path / "ours", f"acl_file {rules}", *lines)
    await ours.start()
    trusting = aiomqtt.TLSParameters(ca_certs=str(certificates.ca))
    vehicle = client(theirs.url, "vehicle", tls_params=trusting)
    topic = BUS[0].replace("hfp/", "/hfp/v2/journey/ongoing/", 1)
    in_a_depot = topic.replace("journey", "deadrun")
    try:
        async with client(ours.url, "gateway", username="gateway") as gateway, vehicle:
            await gateway.subscribe("hfp/#")
            # Retained: the bridge may not be connected yet.
            for each in (in_a_depot, topic):
                await vehicle.publish(each, BUS[1], qos=1, retain=True)
            async with asyncio.timeout(DEADLINE_S):
                message = await anext(aiter(gateway.messages))
    finally:
        await ours.stop()
        await theirs.stop()
    assert str(message.topic) == BUS[0]
    assert isinstance(message.payload, bytes)
    assert devices_of(Delivery(str(message.topic), message.payload, 0)) == ["0012/00001"]
