"""What docs/scaling.md prints: a first hour with Kafka from its jars, a cluster in Kafka alone."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
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
from tests.cluster.processes import answer, wait_until
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
def running(script: str, folder: Path, *, log: str = "log") -> Iterator[int]:
    """Run a script whose programs go on, until the end of the block; yield its session."""
    path = f"{Path(sys.executable).parent}{os.pathsep}/usr/sbin{os.pathsep}{os.environ['PATH']}"
    with (folder / log).open("wb") as said:
        process = subprocess.Popen(
            ["sh", "-eu", "-c", f"{script}wait\n"],
            cwd=folder,
            env=os.environ | {"PATH": path},
            stdout=said,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield process.pid
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def pids(shell: int, *words: str) -> list[int]:
    """Return the processes of a session whose command has these words."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            session = int((folder / "stat").read_text().rpartition(")")[2].split()[3])
            said = (folder / "cmdline").read_bytes().split(b"\0")
            if session == shell and all(word.encode() in said for word in words):
                found.append(int(folder.name))
    return found


class FirstHour:
    """The programs of the page, and what an analyst sees."""

    def __init__(self, folder: Path, shell: int, link: MqttLink) -> None:
        self.folder, self.shell, self.link = folder, shell, link
        self.seen: list[tuple[float, bytes]] = []
        self._came = asyncio.Event()

    def see(self, deliveries: Sequence[Delivery]) -> None:
        now_s = time.monotonic()
        self.seen.extend((now_s, each.payload) for each in deliveries)
        self._came.set()

    def lines(self) -> list[str]:
        return (self.folder / "log").read_text(errors="replace").splitlines()

    async def regions(self, n: int, *, after_s: float = 0.0) -> None:
        """Wait for so many messages after a time."""
        try:
            async with asyncio.timeout(DEADLINE_S):
                while sum(at_s > after_s for at_s, _ in self.seen) < n:
                    self._came.clear()
                    await self._came.wait()
        except TimeoutError:
            raise AssertionError("\n".join(self.lines())[-3000:]) from None

    def longest_gap_s(self, since_s: float) -> float:
        at = [since_s, *(at_s for at_s, _ in self.seen if at_s > since_s)]
        return max(np.diff(at), default=0.0)


@asynccontextmanager
async def first_hour(folder: Path) -> AsyncIterator[tuple[FirstHour, dict[str, str]]]:
    """Follow the page; other ports apart, nothing differs."""
    script, files = printed("A first hour")
    assert not files
    assert script.count("\n") == 5
    # This environment is what the first command makes.
    script = script.removeprefix("make install && . .venv/bin/activate\n")
    assert script.startswith("sh deploy/kafka.sh kafka kafka-data &\n")
    known = ("9092", "9093", "1883", "8090", "8091", "8092")
    ports = dict(zip(known, map(str, free_ports(len(known))), strict=True))

    def with_ports(text: str) -> str:
        for printed_port, port in ports.items():
            for before in (":", "-p ", "PORT="):
                text = text.replace(f"{before}{printed_port}", f"{before}{port}")
        return text

    shipped = ("kafka.properties", "kafka.sh", "cluster.toml", "cluster.sh")
    for name in ("tests/cluster/pom.xml", *(f"deploy/{each}" for each in shipped)):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(with_ports((ROOT / name).read_text()))
    assert JARS.is_dir()  # else Maven would have to fetch hundreds of megabytes here
    broker = QuickBrokerSettings(url=f"mqtt://127.0.0.1:{ports['1883']}")
    topics = [("cloaked/positions", 0)]
    with running(with_ports(script), folder) as shell:
        hour: FirstHour | None = None
        link = MqttLink(
            broker,
            client_id="analyst",
            deliver=lambda batch: hour.see(batch) if hour else None,
            subscriptions=topics,
        )
        hour = FirstHour(folder, shell, link)
        reading = asyncio.create_task(link.run(), name="analyst")
        try:
            yield hour, ports
        finally:
            await link.close()
            await reading


@pytest.mark.kafka
async def test_a_first_hour_is_as_printed(tmp_path: Path) -> None:
    """Two workers share the work, and a killed one is replaced in the time that the page says."""
    async with first_hour(tmp_path) as (hour, ports):
        await hour.regions(100)
        said = json.loads(hour.seen[0][1])
        assert len(set(said["pseudonyms"])) >= said["k"] >= 2

        def owned() -> list[int]:
            return [
                int(n)
                for port in ("8091", "8092")
                for n in re.findall(
                    r"^anonymizer_worker_partitions{.*} (\d+)",
                    answer(int(ports[port]), "/metrics", token="") or "",
                    re.MULTILINE,
                )
            ]

        assert len(shared := owned()) >= 2
        assert min(shared) > 0
        began_s = time.monotonic()
        await hour.regions(100, after_s=began_s)
        usual_s = hour.longest_gap_s(began_s)
        [worker] = pids(hour.shell, "worker", "b")
        killed_s = time.monotonic()
        os.kill(worker, signal.SIGKILL)
        await hour.regions(300, after_s=killed_s)
        # Twice the usual, as this machine may be busy with something else.
        assert hour.longest_gap_s(killed_s) < 10 + 2 * usual_s


@pytest.mark.kafka
async def test_workers_go_on_when_kafka_is_back_and_say_little_meanwhile(tmp_path: Path) -> None:
    async with first_hour(tmp_path) as (hour, _):
        await hour.regions(20)
        [kafka] = pids(hour.shell, "kafka.Kafka")
        n_before = len(hour.lines())
        os.kill(kafka, signal.SIGKILL)
        await asyncio.sleep(30.0)
        said = hour.lines()[n_before:]
        assert not [line for line in said if line.startswith("%")], "a library speaks for itself"
        # Of a bridge and two workers, 20 in a minute each.
        assert len(said) <= 3 * 20
        with running(f"sh deploy/kafka.sh {JARS} kafka-data &\n", tmp_path, log="again"):
            await hour.regions(100, after_s=time.monotonic() + 5)
            assert pids(hour.shell, "worker", "a")


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
