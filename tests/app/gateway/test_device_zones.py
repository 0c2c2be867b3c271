"""Zones that devices state on their own topics, through a Mosquitto."""

import json
import signal
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from operator import eq
from pathlib import Path

import aiomqtt

from anonymizer.networks import load_network
from anonymizer.transport.local_brokers import LocalBroker
from tests.app.gateway.recording import in_window, publish, serving_records
from tests.app.gateway.records import compiled, stored_accounts, stored_parts
from tests.end_to_end import (
    Gateway,
    Message,
    client,
    eventually,
    quick,
    send,
    serving,
    witness,
)
from tests.pipeline.records.made import traffic

__all__ = ["compiled"]

NETWORK = load_network("grid:20x20")
AT = 37
NO_ROOM = "zones: there is no room for those of some devices"


def position(node: int) -> bytes:
    return json.dumps({"lat": float(NETWORK.lat[node]), "lon": float(NETWORK.lon[node])}).encode()


async def n_left_out(gateway: Gateway) -> int:
    """Return for how many devices there is no room."""
    text = (await gateway.get("/metrics")).text
    return int(float(text.partition("\nanonymizer_zones_left_out ")[2].split()[0]))


async def n_hidden(gateway: Gateway, devices: aiomqtt.Client, reports: Sequence[Message]) -> int:
    """Report, and return how many of these positions are hidden by zones."""
    before = await gateway.accounts()
    await send(devices, reports)
    now = await gateway.until_settled(before.received + len(reports))
    hidden, hidden_before = (
        each.outcomes.get("suppressed/privacy_zone", 0) for each in (now, before)
    )
    return hidden - hidden_before


async def test_a_gateway_that_waits_for_its_broker_can_be_stopped(tmp_path: Path) -> None:
    settings = quick("mqtt://127.0.0.1:1", device_zones={"topic": "zones/{device}"})
    async with serving(tmp_path, settings) as gateway:
        problems = (await gateway.get("/readyz")).json()["problems"]
        assert "broker: not connected for zones" in problems
        gateway.signal(signal.SIGTERM)
        assert await gateway.program.ended() == 0


async def test_a_retained_statement_hides_its_device_and_is_published_nowhere(
    broker: LocalBroker, tmp_path: Path
) -> None:
    place = {"lat": float(NETWORK.lat[AT]), "lon": float(NETWORK.lon[AT]), "radius_m": 123.0}
    reports = [(f"positions/tram-{i}", position(AT)) for i in range(20)]
    async with client(broker.url, "devices") as devices, witness(broker.url) as watching:
        zone = json.dumps([{"circle": place}]).encode()
        await devices.publish("zones/tram-3", zone, qos=1, retain=True)
        settings = quick(
            broker.url, device_zones={"topic": "zones/{device}"}, public_network={"enabled": False}
        )
        async with serving(tmp_path, settings) as gateway:
            await gateway.until_ready()
            await send(devices, reports)
            now = await gateway.until_settled(20)
            assert now.outcomes["suppressed/privacy_zone"] == 1
            assert now.outcomes["published"] >= 15
            await devices.publish("zones/tram-3", b"", qos=1, retain=True)
            await devices.publish("zones/tram-4", zone, qos=1)
            await eventually(lambda: n_hidden(gateway, devices, reports[4:5]), bool)
            assert await n_hidden(gateway, devices, reports) == 1
        said = [m for m in watching.seen if not m.topic.startswith(("zones/", "positions/"))]
        assert said
        assert not any(b"123" in message.payload for message in said)
        assert {message.topic for message in said} <= {
            "cloaked/positions",
            "anonymizer/status",
            "anonymizer/status/why",
            "anonymizer/probe",
            "anonymizer/rejected",
        }


async def test_one_user_s_zones_silence_nobody_else_over_restarts_and_after_they_are_withdrawn(
    broker: LocalBroker, tmp_path: Path
) -> None:
    place = {"lat": float(NETWORK.lat[AT]), "lon": float(NETWORK.lon[AT]), "radius_m": 123.0}
    zone = json.dumps([{"circle": place}]).encode()
    elsewhere = json.dumps([{"circle": place | {"lat": -10.0}}]).encode()
    honest = [(f"positions/u{i}/car", position(AT)) for i in range(20)]
    settings = quick(
        broker.url,
        inputs=[{"topic": "positions/{user}/{device}"}],
        device_zones={"topic": "zones/{user}/{device}"},
        presence={"max_devices": 3000},
        public_network={"enabled": False},
    )

    async with client(broker.url, "devices") as devices:
        for i in range(31):
            await devices.publish(f"zones/eve/{i}", elsewhere, qos=1, retain=True)
        for restarted in (False, True):
            async with serving(tmp_path, settings) as gateway:

                async def problems() -> str:
                    return str((await gateway.get("/readyz")).json()["problems"])

                await gateway.program.logged("broker connected")
                await eventually(problems, lambda said: NO_ROOM in said)
                await eventually(lambda: n_left_out(gateway), partial(eq, 1 + restarted))
                assert await n_hidden(gateway, devices, honest) == restarted
                assert (await gateway.accounts()).outcomes["published"] >= 15
                # An honest device that comes later gets its room from who has most.
                await devices.publish("zones/u0/car", zone, qos=1, retain=True)
                await eventually(lambda: n_left_out(gateway), partial(eq, 2))
        async with serving(tmp_path, settings) as gateway:
            await gateway.program.logged("broker connected")
            await eventually(problems, lambda said: NO_ROOM in said)
            for i in range(31):
                await devices.publish(f"zones/eve/{i}", b"", qos=1, retain=True)
            await eventually(lambda: n_left_out(gateway), partial(eq, 0))
            of_eve = [(f"positions/eve/{i}", position(AT)) for i in (0, 3, 30)]
            await eventually(lambda: n_hidden(gateway, devices, of_eve), lambda n: n == 0)
            assert await n_hidden(gateway, devices, honest) == 1, "the one that asked for it"


async def test_a_device_that_takes_no_part_leaves_no_record_in_the_store(
    broker: LocalBroker, tmp_path: Path
) -> None:
    parts = in_window(list(traffic(n_vehicles=20, n_windows=1, seed=1)), 0)
    withdraws = parts[0]
    store = tmp_path / "records.sqlite"

    async def n_refused() -> int:
        return stored_accounts(store).get("suppressed/privacy_zone", 0)

    async def n_received() -> int:
        return stored_accounts(store).get("received", 0)

    async with (
        client(broker.url, "devices") as devices,
        serving_records(tmp_path, broker.url, device_zones={"topic": "zones/{device}"}),
    ):
        await publish(broker.url, parts)
        await eventually(n_received, lambda n: n == len(parts))
        before = stored_parts(store)
        topic = f"zones/{withdraws.vehicle}"
        await devices.publish(topic, b'[{"everywhere": true}]', qos=1, retain=True)
        erased = await eventually(n_refused, lambda n: n > 0)
        assert stored_parts(store) == before - erased
        await publish(broker.url, [replace(withdraws, ts=withdraws.ts + 0.25)])
        await eventually(n_refused, lambda n: n == erased + 1)
        assert stored_parts(store) == before - erased
