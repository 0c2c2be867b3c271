"""Messages that any general client can send, and what they may cost: themselves alone."""

import json
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from prometheus_client.parser import text_string_to_metric_families

from anonymizer.transport.local_brokers import LocalBroker, find_mosquitto
from tests.app.gateway.ordeal import VERSION_OF
from tests.app.gateway.recording import serving_records
from tests.end_to_end import Gateway, client, eventually
from tests.pipeline.records.made import Sent

ABOVE = bytes(17 << 20)
"""A payload above the largest packet that the gateway holds."""
_N_EACH = 9
"""Good messages before and behind every bad one."""


def default_mosquitto(folder: Path) -> LocalBroker:
    """Return a Mosquitto with the limits that it has by itself, as in Debian's package."""
    program = find_mosquitto()
    assert program is not None

    def command(port: int) -> list[str | Path]:
        config = folder / "default.conf"
        own = "user root\n" if Path("/proc/self").stat().st_uid == 0 else ""
        config.write_text(
            f"listener {port} 127.0.0.1\nallow_anonymous true\n{own}"
            f"persistence true\npersistence_location {folder}/\n"
        )
        return [program, "-c", config]

    return LocalBroker(command, ready=" running")


def counts(exposition: str) -> Counter[str]:
    """Return what came of all parts and positions, and why connections ended; no zeros."""
    found: Counter[str] = Counter()
    for family in text_string_to_metric_families(exposition):
        for sample in family.samples:
            flow = sample.name.removeprefix("anonymizer_").removesuffix("_total")
            if flow in {"record_parts", "positions"}:
                labels = filter(None, (sample.labels["outcome"], sample.labels.get("reason")))
                found["/".join([flow, *labels])] += int(sample.value)
            elif flow in {"record_parts_received", "received"}:
                found[flow] += int(sample.value)
            elif flow == "broker_connections_lost":
                found[f"lost/{sample.labels['cause']}"] += int(sample.value)
            elif flow in {"broker_quarantined", "record_parts_imbalance", "accounting_imbalance"}:
                found[flow] += int(sample.value)
    return +found


async def assert_it_costs_nobody_else(
    folder: Path, url: str, gateway_url: str = "", *, version: str
) -> None:
    """Serve positions and records; send good and bad messages, and account for every one.

    Parameters
    ----------
    gateway_url
        Address of the broker for the gateway. Empty: `url`, as for the devices.
    """
    async with serving_records(
        folder,
        gateway_url or url,
        fleet={"idle_s": 600},
        inputs=[{"topic": "positions/{device}", "qos": 1}],
        broker={"version": version},
    ) as gateway:
        await gateway.program.logged("broker connected")
        await gateway.program.logged("broker connected for records")
        # A Moquette that has just started may close one of two connections that begin at once.
        before = _of_connections(await _counts(gateway))
        sent = await _send(url, version)
        found = await eventually(lambda: _counts(gateway), lambda now: _has_come(now, sent))
        assert _of_connections(found) == before, found
        assert found["record_parts/invalid/too_large"] == sent["too large"]
        assert found["positions/invalid/too_large"] == sent["too large"]
        assert found["record_parts/duplicate"] == found["positions/duplicate"] == 0
        assert found["record_parts_received"] == sent["parts"] + sent["too large"]
        assert found["received"] == sent["positions"] + sent["too large"]


async def _counts(gateway: Gateway) -> Counter[str]:
    return counts((await gateway.get("/metrics")).text)


def _has_come(now: Mapping[str, int], sent: Mapping[str, int]) -> bool:
    n_bad = sent["too large"]
    return (
        now.get("record_parts_received", 0) >= sent["parts"] + n_bad
        and now.get("received", 0) >= sent["positions"] + n_bad
        # A position is received before the tick that reads it ends.
        and now.get("positions/invalid/too_large", 0) >= n_bad
    )


def _of_connections(found: Mapping[str, int]) -> dict[str, int]:
    named = ("lost/", "broker_", "accounting_", "record_parts_imbalance")
    return {name: n for name, n in found.items() if name.startswith(named)}


async def _send(url: str, version: str) -> Counter[str]:
    sent: Counter[str] = Counter()
    port = urlsplit(url).port
    async with client(url, f"device-{port}", protocol=VERSION_OF[version]) as device:
        for bad in (False, True, False, True, False):
            for i in range(_N_EACH):
                qos = i % 3
                part = Sent(f"v{sent['parts']}", "profile", time.time() - 1e6, {"age": 20 + i})
                await device.publish(part.topic, part.payload, qos=max(qos, 1))
                place = {"lat": 60.17, "lon": 24.94, "ts": time.time()}
                topic = f"positions/d{sent['positions']}"
                await device.publish(topic, json.dumps(place), qos=max(qos, 1))
                sent.update({"parts": 1, "positions": 1})
            if bad:
                qos = 1 + sent["too large"] % 2
                await device.publish("records/profile/big", ABOVE + bytes([qos]), qos=qos)
                await device.publish("positions/big", ABOVE, qos=qos)
                sent["too large"] += 1
    return sent
