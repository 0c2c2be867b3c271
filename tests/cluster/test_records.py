"""Records on a real Kafka: classes are published once, however many workers run and die."""

import asyncio
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from time import sleep
from typing import Any

import pytest
from confluent_kafka import Producer

from anonymizer.cluster.kafka import ensure_topics
from anonymizer.cluster.positions.raw_batches import decode_out
from anonymizer.cluster.topics import PARTITIONER, key_of, topics_of
from anonymizer.pipeline.ports import Delivery, Outgoing
from anonymizer.settings import BrokerSettings, Settings, load_settings
from anonymizer.transport import MqttLink
from anonymizer.transport.kafka_clients import client_options
from anonymizer.transport.local_brokers import LocalBroker
from tests.cluster.fleet import TOKEN, OneProcess, Raws, config_of, raws_of, sent, toll_exits
from tests.cluster.kafka import Kafka, free_ports
from tests.cluster.processes import (
    DEADLINE_S,
    Committed,
    Processes,
    answer,
    metrics_of,
    processes,
    wait_until,
)

N_VEHICLES, N_WINDOWS = 300, 3
N_PARTS = 3 * N_VEHICLES * N_WINDOWS
N_TOLLS = 400
TOLL_PATH = "/api/analytics/truck/exit-hourly-flow-k-anonymized"
N_OPEN = 3
"""Parts of the window after the last."""


class RecordCluster:
    """Workers on a Kafka, what bridges send to them, and what they publish."""

    def __init__(self, kafka: Kafka, prefix: str, folder: Path, running: Processes) -> None:
        self._kafka, self._prefix, self._folder = kafka, prefix, folder
        self.processes = running
        self.port_of: dict[str, int] = {}
        config = config_of(folder, kafka=kafka.address, prefix=prefix, port=0)
        self.settings = load_settings(config)
        ensure_topics(self.settings)
        self._producer = Producer(
            {**client_options(self.settings.kafka), "partitioner": PARTITIONER}
        )

    def start(self, command: str, *names: str, broker: str = "") -> None:
        for name, port in zip(names, free_ports(len(names)), strict=True):
            self.port_of[name] = port
            config = config_of(
                self._folder,
                kafka=self._kafka.address,
                prefix=self._prefix,
                port=port,
                broker=broker,
            )
            state = ["--state", str(self._folder / "state")] if command == "worker" else []
            self.processes.start(
                name, "anonymizer", command, "-c", str(config), "--name", name, *state
            )

    def feed(self, raws: Sequence[Raws]) -> None:
        """Send what a bridge would send."""
        topic = topics_of(self.settings).parts
        refused: list[str] = []
        for each in raws:
            for stage, value in enumerate(each.values):
                self._producer.produce(
                    topic.name,
                    value,
                    key_of("stream", stage, topic.n_partitions),
                    timestamp=int(each.at_s * 1000),
                    on_delivery=lambda error, _: refused.append(str(error)) if error else None,
                )
        assert self._producer.flush(DEADLINE_S) == 0
        assert not refused

    def accounts(self, *workers: str) -> dict[str, float]:
        return metrics_of([self.port_of[name] for name in workers], token=TOKEN)

    def received(self, n_parts: int, *workers: str) -> bool:
        """Return whether so many parts have come to the stages."""
        return self.accounts(*workers).get("anonymizer_record_parts_received_total") == n_parts

    def check_accounts(
        self,
        *workers: str,
        n_parts: int = N_PARTS,
        n_open: int = N_OPEN,
        again: Sequence[Raws] = (),
    ) -> None:
        """Wait until everything but the open windows is settled, and all adds up.

        Parameters
        ----------
        again
            What a bridge says again meanwhile, without parts: a stage that has moved to another
            worker after its last input is restored, and counted, with the next one.
        """
        expected = {
            "anonymizer_record_parts_received_total": n_parts + n_open,
            "anonymizer_record_parts_total": n_parts,
            "anonymizer_record_parts_held": n_open,
            "anonymizer_record_parts_imbalance": 0,
        }

        def adds_up() -> bool:
            self.feed(again)
            return expected.items() <= self.accounts(*workers).items()

        wait_until(adds_up, f"accounts of all workers: {expected}")


@contextmanager
def cluster(kafka: Kafka, prefix: str, folder: Path) -> Iterator[RecordCluster]:
    with processes(folder) as running:
        yield RecordCluster(kafka, prefix, folder, running)


def published(out: Committed) -> list[Outgoing]:
    return [
        each for values in dict(out.values).values() for v in list(values) for each in decode_out(v)
    ]


def contents(messages: Sequence[Outgoing]) -> Counter[tuple[str, bytes]]:
    return Counter((each.topic, each.payload) for each in messages)


def in_one_process(settings: Settings, raws: Sequence[Raws]) -> list[Outgoing]:
    alone = OneProcess(settings)
    for each in raws:
        alone.take(each)
    ledgers = [(ledger, n) for stage in alone.stages for _, ledger, n in stage.ledgers]
    assert sum(ledger.n_received - ledger.n_settled - n for ledger, n in ledgers) == 0
    assert sum(n for _, n in ledgers) == N_OPEN
    return alone.published


@pytest.mark.timeout(900)
@pytest.mark.parametrize("workers", [("a",), ("a", "b")], ids=len)
def test_workers_publish_what_one_process_publishes_also_if_one_is_killed(
    workers: tuple[str, ...], kafka: Kafka, prefix: str, tmp_path: Path
) -> None:
    with cluster(kafka, prefix, tmp_path) as running:
        raws = raws_of(sent(N_VEHICLES, N_WINDOWS), running.settings)
        expected = contents(in_one_process(running.settings, raws))
        out = topics_of(running.settings).out
        assert len(expected) > 3 * N_WINDOWS
        with Committed(kafka.address, out.name, out.n_partitions) as committed:
            running.start("worker", *workers)
            # The first window has closed, and the second is open.
            running.feed(raws[:15])
            wait_until(lambda: bool(published(committed)), "the first classes")
            if len(workers) > 1:
                running.processes.restart(workers[0])
            running.feed(raws[15:])
            wait_until(lambda: len(published(committed)) >= expected.total(), "all classes")
            running.check_accounts(*workers, again=raws[-1:])
            assert contents(published(committed)) == expected


def queried(port: int, path: str) -> Any:  # noqa: ANN401  JSON
    return json.loads(answer(port, path, token=TOKEN) or "null")


def has_releases(port: int) -> bool:
    """Return whether a bridge knows all windows, and all classes of the tolls."""
    sleep(1.0)  # a bridge answers 300 requests a minute
    found, toll = queried(port, "/api/releases"), queried(port, TOLL_PATH)
    if found is None or toll is None or found["total"] != N_WINDOWS + 1:
        return False
    [of_tolls] = [each for each in found["data"] if each["stream"] == "toll"]
    return bool(len(toll["data"]) == of_tolls["classes"])


def is_connected(running: Processes, name: str) -> bool:
    return running.said(name).count('"connected": true') >= 2


@pytest.mark.timeout(900)
async def test_records_go_from_mqtt_to_classes_and_queries_see_all_releases(
    broker: LocalBroker, kafka: Kafka, prefix: str, tmp_path: Path
) -> None:
    classes: list[Delivery] = []
    link = MqttLink(
        BrokerSettings(url=broker.url),
        client_id="vehicles",
        deliver=classes.extend,
        subscriptions=[("anonymized/#", 1)],
    )
    connected = asyncio.create_task(link.run())
    await link.until_connected()
    bridges = ("one", "two")
    with cluster(kafka, prefix, tmp_path) as running:
        running.start("bridge", *bridges, broker=broker.url)
        running.start("worker", "a", broker=broker.url)
        for name in bridges:
            await asyncio.to_thread(
                wait_until, partial(is_connected, running.processes, name), name
            )
        messages = [Outgoing(part.topic, part.payload) for part in sent(N_VEHICLES, N_WINDOWS)]
        tolls, n = toll_exits(N_TOLLS), 3 * N_VEHICLES
        windows = [messages[first : first + n] for first in range(0, len(messages), n)]
        n_sent = 0
        for some in (*windows, tolls[:-1], tolls[-1:]):
            assert all(await link.publish(some, qos=1, timeout_s=DEADLINE_S))
            n_sent += len(some)
            # Two bridges are not ordered among themselves: all is there before the next window.
            await asyncio.to_thread(wait_until, partial(running.received, n_sent, "a"), "parts")
        n_parts, n_open = N_PARTS + N_TOLLS, N_OPEN + 1
        await asyncio.to_thread(running.check_accounts, "a", n_parts=n_parts, n_open=n_open)
        answers = []
        for name in bridges:
            port = running.port_of[name]
            await asyncio.to_thread(wait_until, partial(has_releases, port), "releases")
            answers.append([queried(port, path) for path in ("/api/releases", TOLL_PATH)])
        n_classes = sum(release["classes"] for release in answers[0][0]["data"])
        await asyncio.to_thread(wait_until, lambda: len(classes) >= n_classes, "all classes")
        said_once = [each.payload for each in classes]
        # What a bridge has kept is still there, and once, when it has died and comes back.
        await asyncio.to_thread(running.processes.restart, "one")
        port = running.port_of["one"]
        await asyncio.to_thread(wait_until, partial(has_releases, port), "releases")
        assert queried(port, "/api/releases") == answers[0][0]
    assert answers[0] == answers[1]
    releases, toll = answers[0][0]["data"], answers[0][1]
    # Each class once, to analysts as well as to those who ask, and all records are accounted for.
    assert len(set(said_once)) == len(said_once)
    said: dict[str, list[dict[str, Any]]] = {"fleet": [], "toll": []}
    for payload in said_once:
        content = json.loads(payload)
        said[content["stream"]].append(content)
    for stream, n_records in (("fleet", N_VEHICLES * N_WINDOWS), ("toll", N_TOLLS)):
        of_stream = [each for each in releases if each["stream"] == stream]
        assert sum(each["classes"] for each in of_stream) == len(said[stream])
        n_published = sum(each.get("count", each["k"]) for each in said[stream])
        n_suppressed = sum(each["suppressed_records"] for each in of_stream)
        assert n_published + n_suppressed == n_records
        assert sum(each["total_records"] for each in of_stream) == n_records
    assert min(each["k"] for each in said["fleet"]) >= 4
    assert sum(row["truck_count"] for row in toll["data"]) == sum(c["k"] for c in said["toll"])
    assert min(row["truck_count"] for row in toll["data"]) >= 5
    await link.close()
    await connected
