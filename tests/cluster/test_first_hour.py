"""What docs/scaling.md prints: a first hour with Kafka from its jars, a cluster in Kafka alone."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from confluent_kafka import Consumer, Producer

from anonymizer.networks import load_network
from anonymizer.pipeline.ports import Delivery
from anonymizer.transport import MqttLink
from tests.brokers import QuickBrokerSettings
from tests.cluster.kafka import JARS, Kafka, free_ports
from tests.cluster.processes import wait_until
from tests.console import ROOT, blocks

DEADLINE_S = 300.0


def printed(section: str) -> tuple[str, dict[str, str]]:
    """Return the commands of a section as one script, and its files."""
    page = ROOT / "docs" / "scaling.md"
    lines = page.read_text().splitlines()
    first = lines.index(f"### {section}") + 1
    last = next(i for i in range(first, len(lines)) if lines[i].startswith("#"))
    of_section = [each for each in blocks(page) if first < each.line < last]
    script = "".join(each.text for each in of_section if each.language == "text")
    return script, {each.title: each.text for each in of_section if each.title}


@contextmanager
def running(script: str, folder: Path) -> Iterator[None]:
    """Run a script whose programs go on, until the end of the block."""
    path = f"{Path(sys.executable).parent}{os.pathsep}/usr/sbin{os.pathsep}{os.environ['PATH']}"
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            ["sh", "-eu", "-c", f"{script}wait\n"],
            cwd=folder,
            env=os.environ | {"PATH": path},
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.mark.kafka
async def test_a_first_hour_is_as_printed(tmp_path: Path) -> None:
    script, files = printed("A first hour")
    assert set(files) == {"gateway.toml"}
    assert [line.split()[0] for line in script.splitlines()].count("anonymizer") == 2
    # Ports may be in use here; nothing else differs.
    ports = dict(zip(("9092", "9093", "1883"), map(str, free_ports(3)), strict=True))

    def with_ports(text: str) -> str:
        for printed_port, port in ports.items():
            text = text.replace(f":{printed_port}", f":{port}").replace(
                f"-p {printed_port}", f"-p {port}"
            )
        return text

    for name in ("tests/cluster/pom.xml", "deploy/kafka.properties", "deploy/kafka.sh"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(with_ports((ROOT / name).read_text()))
    for name, text in files.items():
        (tmp_path / name).write_text(with_ports(text))
    assert JARS.is_dir()  # else Maven would have to fetch hundreds of megabytes here
    seen: list[bytes] = []
    got = asyncio.Event()

    def see(deliveries: Sequence[Delivery]) -> None:
        seen.extend(each.payload for each in deliveries)
        got.set()

    broker = QuickBrokerSettings(url=f"mqtt://127.0.0.1:{ports['1883']}")
    topics = [("cloaked/positions", 0)]
    link = MqttLink(broker, client_id="analyst", deliver=see, subscriptions=topics)
    with running(with_ports(script), tmp_path):
        reading = asyncio.create_task(link.run(), name="analyst")
        try:
            async with asyncio.timeout(DEADLINE_S):
                await got.wait()
        except TimeoutError:
            raise AssertionError((tmp_path / "log").read_text()[-3000:]) from None
        finally:
            await link.close()
            await reading
    said = json.loads(seen[0])
    assert len(set(said["pseudonyms"])) >= said["k"] >= 2


@pytest.mark.kafka
def test_a_cluster_in_kafka_alone_is_as_printed(own_kafka: Kafka, tmp_path: Path) -> None:
    script, files = printed("A cluster in Kafka alone")
    assert set(files) == {"kafka.toml"}
    assert script.count("anonymizer worker") == 2
    # Only the port of Kafka differs; it runs, and the secret is there, as the page says.
    here = "127.0.0.1:9092", own_kafka.address
    (tmp_path / "kafka.toml").write_text(files["kafka.toml"].replace(*here))
    (tmp_path / "cluster.secret").touch(mode=0o600)
    (tmp_path / "cluster.secret").write_bytes(bytes(range(32)))
    network = load_network("city:2500")
    rng = np.random.default_rng(1)
    producer: Any = Producer({"bootstrap.servers": own_kafka.address})
    consumer: Any = Consumer(
        {
            "bootstrap.servers": own_kafka.address,
            "group.id": "analyst",
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
        }
    )
    seen: list[bytes] = []

    def regions_come() -> bool:
        for device, node in enumerate(rng.integers(200, size=400).tolist()):
            lat, lon = float(network.lat[node]), float(network.lon[node])
            body = json.dumps({"ts": time.time(), "lat": lat, "lon": lon}).encode()
            producer.produce("raw-positions", body, f"car-{device}")
        producer.flush()
        seen.extend(each.value() for each in consumer.consume(100, 1.0) if not each.error())
        return bool(seen)

    with running(script.replace(*here), tmp_path):
        topics = "raw-positions", "cloaked-positions"
        wait_until(lambda: set(topics) <= consumer.list_topics().topics.keys(), "topics")
        consumer.subscribe(["cloaked-positions"])
        wait_until(regions_come, (tmp_path / "log").read_text()[-3000:])
    consumer.close()
    said = json.loads(seen[0])
    assert len(set(said["pseudonyms"])) >= said["k"] >= 2
