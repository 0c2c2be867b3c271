"""Topics for analysts, on a Mosquitto: the network, the groups that live now, safe counts."""

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import generate_latest

from anonymizer import client as analyst
from anonymizer.app.gateway.gateway import Gateway
from anonymizer.client.messages import Collector
from anonymizer.domain.network_version import network_version
from anonymizer.domain.outcomes import Outcome
from anonymizer.errors import TransportError
from anonymizer.networks.publication import geojson, parts
from anonymizer.pipeline.positions.counts.public_ledger import public_step
from anonymizer.settings import Settings
from anonymizer.transport.local_brokers import LocalBroker, mosquitto
from tests.app.contracts import Contract
from tests.app.gateway.started import NETWORK, gateway_for, running, say, settled
from tests.end_to_end import (
    DEADLINE_S,
    Witness,
    client,
    eventually,
    http_client,
    quick,
    send,
    witness,
)

VERSION = network_version(NETWORK)
TRAMS = [say(f"tram-{i}", 5) for i in range(12)]


def late(watching: Witness, topic: str) -> list[dict[str, Any]]:
    """Return what a late subscriber was sent on a topic and below it."""
    assert all(m.retained for m in watching.seen if m.topic.startswith(topic))
    return [json.loads(m.payload) for m in watching.seen if m.topic.startswith(topic)]


async def test_a_late_subscriber_gets_the_network_that_regions_name(broker: LocalBroker) -> None:
    gateway = gateway_for(broker)
    async with running(gateway), witness(broker.url, "early") as early:
        await early.until(lambda: bool(early.on("anonymizer/network")))
        async with client(broker.url, "publisher") as publisher:
            await send(publisher, TRAMS)
        await early.until(lambda: bool(early.on("cloaked/positions")))
        async with witness(broker.url, "late") as watching:
            await watching.until(lambda: bool(watching.on("anonymizer/network")))
            [about] = watching.on("anonymizer/network")
            await watching.until(
                lambda: len(late(watching, "anonymizer/network/parts/")) == about["parts"]
            )
            parts = late(watching, "anonymizer/network/parts/")
    assert about["network"] == VERSION
    assert early.on("cloaked/positions")[0]["network"] == VERSION
    assert len(parts) > 1
    parts.sort(key=lambda part: int(part["part"]))
    together = [feature for part in parts for feature in part["features"]]
    assert together == json.loads(geojson(NETWORK))["features"]


async def test_the_network_is_published_again_when_the_broker_has_lost_it(
    broker: LocalBroker,
) -> None:
    gateway = gateway_for(broker)
    async with running(gateway):
        async with witness(broker.url) as watching:
            await watching.until(lambda: bool(watching.on("anonymizer/network")))
        await broker.stop()
        await broker.start()
        async with witness(broker.url) as watching:
            await watching.until(lambda: bool(watching.on("anonymizer/network")))


async def test_the_network_is_one_file_over_http(broker: LocalBroker) -> None:
    gateway = gateway_for(broker)
    assert gateway.http is not None
    async with (
        running(gateway),
        http_client(gateway.http.url) as http,
    ):
        answer = await http.get("/api/network")
        again = await http.get("/api/network", headers={"If-None-Match": answer.headers["ETag"]})
    assert answer.headers["content-type"] == "application/geo+json"
    assert answer.content == geojson(NETWORK)
    assert again.status_code == 304


async def test_the_network_can_stay_private(broker: LocalBroker) -> None:
    gateway = gateway_for(broker, public_network={"enabled": False})
    assert gateway.http is not None
    async with (
        running(gateway),
        witness(broker.url) as watching,
        client(broker.url, "publisher") as publisher,
        http_client(gateway.http.url) as http,
    ):
        await send(publisher, TRAMS)
        await watching.until(lambda: bool(watching.on("cloaked/positions")))
        assert (await http.get("/api/network")).status_code == 404
        assert not late(watching, "anonymizer/network")


async def test_a_late_subscriber_counts_the_groups_that_live(broker: LocalBroker) -> None:
    gateway = gateway_for(broker, current={"every_s": 0.05})
    async with running(gateway), client(broker.url, "publisher") as publisher:
        await send(publisher, TRAMS)
        await settled(gateway, len(TRAMS))
        async with witness(broker.url, "early") as early:

            def n_counted() -> int:
                said = [g for body in early.on("cloaked/current/0") for g in body["groups"]]
                return len({name for group in said for name in group["pseudonyms"]})

            n_published = gateway.ledger.n(Outcome.PUBLISHED)
            assert n_published
            await early.until(lambda: n_counted() == n_published)
    async with witness(broker.url, "late") as watching:
        await watching.until(lambda: bool(watching.on("cloaked/current/0")))
        [body] = watching.on("cloaked/current/0")
    assert body["groups"] == []
    assert body["network"] == VERSION


def test_the_interval_in_which_a_gateway_starts_is_not_counted() -> None:
    every_s = 0.75 * int(time.time())  # the interval lasts for years, so that it cannot end here
    tables: dict[str, Any] = {
        "counts": {"privacy": "k", "every_s": every_s, "cells": 16},
        "http": {"host": ""},
    }
    gateway = Gateway(Settings.model_validate(quick("mqtt://127.0.0.1:1", **tables)), NETWORK)
    gateway.warm_up()
    flow = gateway.flow
    said = [len(flow.tick([], now=now).messages) for now in (time.time(), 2 * every_s, 3 * every_s)]
    assert said == [0, 0, 1]


async def test_private_counts_are_suppressed_once_their_budget_is_spent(
    broker: LocalBroker, tmp_path: Path
) -> None:
    """A restart does not renew the budget, and every message is as the contract says."""
    tables: dict[str, dict[str, Any]] = {
        "counts": {
            "privacy": "dp",
            "every_s": 0.3,
            "period_s": 3e8,
            "device_intervals": 1,
            "cells": 16,
            "trip_areas": 2,
        },
        "store": {"path": str(tmp_path / "records.sqlite")},
    }
    settings = Settings.model_validate(quick(broker.url, **tables))
    contract = Contract(settings)
    for said in ("devices", "devices", "suppressed"):  # the budget is for one restart
        gateway = Gateway(settings, NETWORK)
        async with running(gateway), witness(broker.url) as watching:
            await watching.until(lambda: len(watching.on("cloaked/counts")) > 1)
            assert all(said in body for body in watching.on("cloaked/counts"))
            for message in watching.seen:
                if message.topic == "cloaked/counts":
                    contract.check(message)
            metrics = generate_latest(gateway.registry).decode()
        reason = "" if said == "devices" else "budget"
        assert f'anonymizer_counts_intervals_total{{reason="{reason}"}} 0.0' not in metrics
    spent = watching.on("cloaked/counts")[0]["privacy"]
    assert 0.99 < spent["epsilon_spent"] <= spent["epsilon"] == 1.0


async def test_counts_of_any_window_go_on_after_a_restart(
    broker: LocalBroker, tmp_path: Path
) -> None:
    tables: dict[str, dict[str, Any]] = {
        "counts": {
            "privacy": "w-event",
            "every_s": 0.3,
            "period_s": 1.2,
            "cells": 16,
        },
        "store": {"path": str(tmp_path / "records.sqlite")},
    }
    settings = Settings.model_validate(quick(broker.url, **tables))
    contract = Contract(settings)
    times: list[float] = []
    for _ in range(2):
        gateway = Gateway(settings, NETWORK)
        async with running(gateway), witness(broker.url) as watching:
            await watching.until(lambda: len(watching.on("cloaked/counts")) > 1)
            bodies = watching.on("cloaked/counts")
            assert all("devices" in body for body in bodies)
            for message in watching.seen:
                if message.topic == "cloaked/counts":
                    contract.check(message)
            times += [body["time"] for body in bodies]
    assert len(set(times)) == len(times), "no interval twice"


async def test_home_assistant_is_shown_public_counts_at_every_connection(
    broker: LocalBroker,
) -> None:
    gateway = gateway_for(broker, output={"forms": ["home_assistant"]})
    step = public_step(gateway._settings)
    async with running(gateway):
        async with client(broker.url, "publisher") as publisher, witness(broker.url) as watching:

            async def shown() -> int:
                await send(publisher, TRAMS)
                return max(
                    (body["published"] for body in watching.on("anonymizer/state")), default=0
                )

            await eventually(shown, bool)
            states = watching.on("anonymizer/state")
            assert all(
                each[name] % step == 0
                for each in states
                for name in ("devices", "published", "suppressed")
            )
            assert states[-1]["ready"]
            assert len(watching.on("homeassistant/device/anonymizer/config")) == 1
        await broker.stop()
        await broker.start()
        async with witness(broker.url) as watching:
            topic = "homeassistant/device/anonymizer/config"
            await watching.until(lambda: bool(watching.on(topic)))
            [found] = watching.on(topic)
    assert found["state_topic"] == "anonymizer/state"
    assert {each["platform"] for each in found["components"].values()} == {
        "sensor",
        "binary_sensor",
    }
    fields = {"devices", "published", "suppressed", "ready"}
    assert set(found["components"]) == fields <= set(states[-1])


async def test_a_network_that_the_broker_cannot_take_is_named_to_all_and_never_announced(
    tmp_path: Path,
) -> None:
    broker = mosquitto(tmp_path, "max_packet_size 300")
    await broker.start()
    gateway = gateway_for(broker)
    async with running(gateway), witness(broker.url) as watching:
        await watching.until(lambda: bool(watching.on("anonymizer/network")))
        [about] = watching.on("anonymizer/network")
        assert about["parts"] == 0
        assert not late(watching, "anonymizer/network/parts/")
        [problem] = [each for each in gateway._readiness.why_not_ready() if "message" in each]
        assert "anonymizer/network" in problem
        assert "above 300 bytes" in problem

        def wait() -> None:
            with analyst.subscribe(broker.url, timeout_s=DEADLINE_S) as stream:
                stream.wait(0, timeout_s=0.5)

        said = "cannot publish its network: the broker takes no message above 300 bytes: pass"
        with pytest.raises(TransportError, match=said):
            await asyncio.to_thread(wait)
    await broker.stop()


async def test_parts_of_another_cut_of_the_network_are_not_taken_for_those_announced() -> None:
    about, few = parts(NETWORK, most_bytes=20_000)
    newer, many = parts(NETWORK, most_bytes=5_000)
    collector = Collector()
    for part in (*many[:3], *few[:-1]):
        collector.take(part)
    collector.take(about.encoded())
    assert collector.network_parts() is None
    assert collector.network_missing() == (
        f"{len(few) - 1} of {len(few)} parts of the published network have come"
    )
    collector.take(few[-1])
    assert collector.network_parts() == (VERSION, few)
    for part in many:
        collector.take(part)
    collector.take(newer.encoded())
    assert collector.network_parts() == (VERSION, many)
