"""Clusters on one machine, for tests."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from confluent_kafka import OFFSET_END, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from anonymizer.cluster.kafka import ensure_topics
from anonymizer.cluster.positions.raw_batches import decode_out
from anonymizer.cluster.topics import PARTITIONER, key_of, topics_of
from anonymizer.pipeline.ports import Outgoing
from anonymizer.settings import Settings, load_settings
from anonymizer.transport.kafka_clients import client_options
from tests.cluster.kafka import Kafka, free_ports
from tests.cluster.processes import (
    Committed,
    Processes,
    metrics_of,
    processes,
)
from tests.cluster.recorded import N_LANES, TOKEN, Raws, arrivals, config_of

N_TICKS = 45
EVERY_LANE = range(N_LANES)


@cache
def recorded() -> list[Raws]:
    return list(arrivals(N_TICKS))


class Cluster:
    """Workers on a Kafka, what they are fed with, and what they publish."""

    def __init__(
        self, settings: Settings, folder: Path, workers: Processes, out: Committed, more: str = ""
    ) -> None:
        self._more = more
        self.settings, self.folder = settings, folder
        self.workers, self._out = workers, out
        self._port_of: dict[str, int] = {}
        self._topic = topics_of(settings).sources
        self._producer = Producer(
            {
                **client_options(settings.kafka),
                "partitioner": PARTITIONER,
                "enable.idempotence": True,
            }
        )

    def start(self, *names: str) -> None:
        for name, port in zip(names, free_ports(len(names)), strict=True):
            kafka, prefix = self.settings.kafka.servers, self.settings.kafka.group
            config = config_of(self.folder, kafka=kafka, prefix=prefix, port=port, more=self._more)
            self._port_of[name] = port
            state = self.folder / "state"
            self.workers.start(
                name,
                "anonymizer",
                "worker",
                "-c",
                str(config),
                "--name",
                name,
                "--state",
                str(state),
            )

    @property
    def ports(self) -> list[int]:
        """Of HTTP, of those that were started last under their names."""
        return list(self._port_of.values())

    def feed(self, raws: list[Raws]) -> None:
        """Send what the bridge would send."""
        for each in raws:
            for source, value in enumerate(each.values):
                self._producer.produce(
                    self._topic.name,
                    value,
                    key_of("source", source, self._topic.n_partitions),
                    timestamp=int(each.at_s * 1000),
                )
        self._producer.flush()

    def lose_inputs(self) -> None:
        """Lose all inputs, whether they have been taken or not."""
        ends = [
            TopicPartition(topic.name, number, OFFSET_END)
            for topic in topics_of(self.settings)[:2]
            for number in range(topic.n_partitions)
        ]
        admin = AdminClient(dict(client_options(self.settings.kafka)))
        for future in admin.delete_records(ends).values():
            future.result()

    def lose_states(self) -> None:
        """Lose all states, on the disk and in Kafka."""
        shutil.rmtree(self.folder / "state")
        admin = AdminClient(dict(client_options(self.settings.kafka)))
        topics = admin.list_topics(timeout=30).topics
        prefix = self.settings.kafka.group
        states = [name for name in topics if name.startswith(f"changelog__{prefix}.")]
        for future in admin.delete_topics(states).values():
            future.result()

    def published(self, lane: int) -> list[Outgoing]:
        return [each for value in list(self._out.values[lane]) for each in decode_out(value)]

    def n_published(self) -> int:
        """Return how many messages there are; what has ended by itself is started again."""
        self.workers.revive()
        return sum(len(self.published(lane)) for lane in EVERY_LANE)

    def has_all(self) -> bool:
        """Return whether all that was committed until now counts as published."""
        return self._out.has_all()

    def has_published(self, n_of: dict[int, int]) -> bool:
        return all(len(self.published(lane)) >= n for lane, n in n_of.items())

    def metrics(self) -> dict[str, float]:
        """Sums over all workers of what the operator sees; nothing while one is starting."""
        return metrics_of(self._port_of.values(), token=TOKEN)


@contextmanager
def cluster(kafka: Kafka, prefix: str, folder: Path, more: str = "") -> Iterator[Cluster]:
    settings = load_settings(config_of(folder, kafka=kafka.address, prefix=prefix, more=more))
    ensure_topics(settings)
    out = topics_of(settings).out
    with (
        processes(folder) as workers,
        Committed(kafka.address, out.name, out.n_partitions) as committed,
    ):
        yield Cluster(settings, folder, workers, committed, more)
