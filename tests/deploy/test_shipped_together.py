"""The files of deploy/ together: broker, gateway, devices and an analyst, as they are shipped."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from anonymizer import client
from anonymizer.client.listening import Subscription
from anonymizer.domain.network_version import network_version
from anonymizer.networks import load_network
from anonymizer.pipeline.ports import PART_BYTES
from anonymizer.settings import load_settings
from anonymizer.transport.packet_sizes import PacketSizes
from tests.deploy.deployment import Deployed, deployment, limits
from tests.deploy.files import DEPLOY, read_yaml
from tests.end_to_end import (
    ANONYMIZER,
    DEADLINE_S,
    SIMULATOR,
    Gateway,
    eventually,
    http_client,
    running,
)
from tests.lanes import some

SHIPPED = load_settings(DEPLOY / "gateway.toml", {})


def test_parts_fit_the_shipped_broker() -> None:
    """Both constants are ours: a part with its topic is within what `deploy/` lets through."""
    sizes = PacketSizes()
    topic = f"{SHIPPED.topics.network}/parts/1000000"
    assert sizes.part_bytes(topic) == PART_BYTES
    sizes.announced(limits()["max_packet_size"])
    assert sizes.part_bytes(topic) == PART_BYTES


def test_the_shipped_broker_sends_as_many_messages_at_once_as_the_gateway_takes() -> None:
    assert limits()["max_inflight_messages"] >= SHIPPED.broker.receive_maximum


def test_what_runs_in_compose_has_longer_to_end_than_it_needs() -> None:
    services = read_yaml("compose.yaml")["services"]
    for name in ("gateway", "bridge", "worker"):
        grace_s = float(services[name]["stop_grace_period"].removesuffix("s"))
        assert grace_s > SHIPPED.tick.drain_s + 5


def environment(deployed: Deployed, folder: Path, version: str) -> dict[str, str]:
    """Return what compose sets for the gateway, with the places of this test."""
    found = dict(read_yaml("compose.yaml")["services"]["gateway"]["environment"])
    moved = {
        "ANONYMIZER__BROKER__URL": deployed.services_url,
        "ANONYMIZER__BROKER__PASSWORD_FILE": str(folder / "secrets" / "gateway.password"),
        "ANONYMIZER__BROKER__CA_FILE": str(deployed.ca),
        "ANONYMIZER__HTTP__HOST": "127.0.0.1",
        "ANONYMIZER__HTTP__TOKEN_FILE": str(folder / "secrets" / "http.token"),
    }
    assert moved.keys() <= found.keys()
    more = {"BROKER__VERSION": version, "HTTP__PORT": "0"}
    more["STORE__PATH"] = str(folder / "store.sqlite")
    return found | moved | {f"ANONYMIZER__{name}": value for name, value in more.items()}


@asynccontextmanager
async def gateway_of(
    deployed: Deployed, folder: Path, version: str, *, n_devices: int
) -> AsyncIterator[Gateway]:
    """Run the gateway by its file, and devices that publish once a second."""
    of_simulator = {
        "SIMULATOR_BROKER": deployed.services_url,
        "SIMULATOR_USERNAME": "simulator",
        "SIMULATOR_PASSWORD_FILE": str(folder / "secrets" / "simulator.password"),
        "SIMULATOR_CA_FILE": str(deployed.ca),
    }
    config = DEPLOY / "gateway.toml"
    simulate = ["run", "--network", "city:10000", "--devices", n_devices, "--rate", 1, "--quiet"]
    async with (
        running(
            ANONYMIZER,
            "serve",
            "--config",
            config,
            environment=environment(deployed, folder, version),
        ) as program,
        running(SIMULATOR, *map(str, simulate), environment=of_simulator),
    ):
        url = (await program.logged("listening"))["url"]
        token = (folder / "secrets" / "http.token").read_text().strip()
        shown = {"Authorization": f"Bearer {token}"}
        async with http_client(url, headers=shown) as http:
            yield Gateway(program, http)


def analyst(deployed: Deployed, **options: Any) -> Subscription:  # noqa: ANN401  of the settings
    return client.subscribe(
        deployed.services_url,
        username="analyst",
        password=deployed.password("analyst"),
        ca_file=deployed.ca,
        timeout_s=DEADLINE_S,
        **options,
    )


async def n_connections(gateway: Gateway) -> int:
    """Return how often the gateway has connected for positions."""
    [family] = [
        family
        for family in text_string_to_metric_families((await gateway.get("/metrics")).text)
        if family.name == "anonymizer_broker_connections"
    ]
    [n] = [each.value for each in family.samples if each.labels["link"] == "positions"]
    return int(n)


@pytest.mark.parametrize("version", some(["5", "3.1.1"], ["5"]))
async def test_an_analyst_has_the_network_and_positions_flow(tmp_path: Path, version: str) -> None:
    def listen() -> float:
        with analyst(deployed, version=version) as subscription:
            found = subscription.wait(50, timeout_s=DEADLINE_S)
        assert found.network is not None
        assert found.network.version == network_version(load_network("city:10000"))
        began_s = time.monotonic()
        with analyst(deployed, version=version) as subscription:
            subscription.wait(0, timeout_s=DEADLINE_S)
        return time.monotonic() - began_s

    async with (
        deployment(tmp_path) as deployed,
        gateway_of(deployed, tmp_path, version, n_devices=300) as gateway,
    ):
        assert await asyncio.to_thread(listen) < 5
        assert await n_connections(gateway) == 1
        problems = (await gateway.get("/readyz")).text
        assert "takes no message" not in problems


@pytest.mark.parametrize("version", some(["5", "3.1.1"], ["3.1.1"]))
async def test_under_a_small_limit_positions_flow_and_one_sentence_says_what_is_missing(
    tmp_path: Path, version: str
) -> None:
    def listen() -> int:
        with analyst(deployed, version=version) as subscription:
            # On a slow machine most messages are of many positions, and above the limit.
            found = subscription.wait(10, timeout_s=DEADLINE_S)
        assert found.network is not None
        return found.network.n_nodes

    async def ready() -> list[str]:
        return [
            each for each in (await gateway.get("/readyz")).json()["problems"] if "takes no" in each
        ]

    async with (
        deployment(tmp_path, max_packet_size="3000") as deployed,
        gateway_of(deployed, tmp_path, version, n_devices=300) as gateway,
    ):
        assert await asyncio.to_thread(listen) == 10_000
        n_before = await n_connections(gateway)
        [sentence] = await eventually(ready, bool)
        assert "some positions" in sentence
        assert "above 3,000 bytes" in sentence
        # As long again: a loop would connect many times.
        await asyncio.to_thread(listen)
        assert n_before == await n_connections(gateway) == 1
    told = gateway.program.events("messages do not fit the broker")
    assert len(told) == 1
