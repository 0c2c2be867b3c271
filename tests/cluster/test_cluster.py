"""The positions flow on a real Kafka: what workers publish, however many there are and die."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from urllib.request import Request, urlopen

import pytest
from prometheus_client.parser import text_string_to_metric_families

pytest.importorskip("quixstreams")

from confluent_kafka import Producer

from anonymizer.cluster.kafka import client_options, ensure_topics
from anonymizer.cluster.topics import PARTITIONER, key_of, topics_of
from anonymizer.pipeline.ports import Outgoing
from anonymizer.pipeline.positions.raw_batches import decode_out
from anonymizer.settings import Settings, load_settings
from tests.cluster.kafka import Kafka, free_ports
from tests.cluster.processes import Committed, Processes, processes, wait_until
from tests.cluster.recorded import N_LANES, TOKEN, OneProcess, Raws, arrivals, config_of

N_TICKS = 45
EVERY_LANE = range(N_LANES)


@cache
def recorded() -> list[Raws]:
    return list(arrivals(N_TICKS))


class Cluster:
    """Workers on a Kafka, what they are fed with, and what they publish."""

    def __init__(
        self, settings: Settings, folder: Path, workers: Processes, out: Committed
    ) -> None:
        self.settings, self.folder = settings, folder
        self.workers, self._out = workers, out
        self._port_of: dict[str, int] = {}
        self._topic = topics_of(settings).sources
        self._producer = Producer(
            {
                **client_options(settings),
                "partitioner": PARTITIONER,
                "enable.idempotence": True,
            }
        )

    def start(self, *names: str) -> None:
        for name, port in zip(names, free_ports(len(names)), strict=True):
            cluster = self.settings.cluster
            config = config_of(self.folder, kafka=cluster.kafka, prefix=cluster.prefix, port=port)
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

    def published(self, lane: int) -> list[Outgoing]:
        return [each for value in list(self._out.values[lane]) for each in decode_out(value)]

    def has_published(self, n_of: dict[int, int]) -> bool:
        return all(len(self.published(lane)) >= n for lane, n in n_of.items())

    def metrics(self) -> dict[str, float]:
        """Sums over all workers of the metrics that the operator sees."""
        total: dict[str, float] = {}
        for port in self._port_of.values():
            request = Request(
                f"http://127.0.0.1:{port}/metrics", headers={"Authorization": f"Bearer {TOKEN}"}
            )
            with urlopen(request, timeout=10) as answer:  # noqa: S310  of this test
                text = answer.read().decode()
            for family in text_string_to_metric_families(text):
                for sample in family.samples:
                    total[sample.name] = total.get(sample.name, 0.0) + sample.value
        return total


@contextmanager
def cluster(kafka: Kafka, prefix: str, folder: Path) -> Iterator[Cluster]:
    settings = load_settings(config_of(folder, kafka=kafka.address, prefix=prefix))
    ensure_topics(settings)
    out = topics_of(settings).out
    with (
        processes(folder) as workers,
        Committed(kafka.address, out.name, out.n_partitions) as committed,
    ):
        yield Cluster(settings, folder, workers, committed)


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> OneProcess:
    """What one process publishes."""
    folder = tmp_path_factory.mktemp("alone")
    process = OneProcess(load_settings(config_of(folder, kafka="127.0.0.1:1", prefix="alone")))
    for raws in recorded():
        process.take(raws)
    return process


def check_equal(running: Cluster, alone: OneProcess) -> None:
    """Check that messages and accounts are those of one process, once all has arrived."""
    expected = {lane: len(alone.published[lane]) for lane in EVERY_LANE}
    assert sum(expected.values()) > 200
    wait_until(lambda: running.has_published(expected), "all messages")
    n_received = sum(raws.n_positions for raws in recorded())
    n_held = sum(stage.n_held for stage in alone.sources)
    wait_until(
        lambda: (
            (found := running.metrics())["anonymizer_received_total"] == n_received
            and found["anonymizer_held"] == n_held
        ),
        "accounts of all workers",
    )
    found = running.metrics()
    assert found["anonymizer_accounting_imbalance"] == 0
    assert found["anonymizer_positions_total"] == n_received - n_held
    for lane in EVERY_LANE:
        assert running.published(lane) == alone.published[lane]


@pytest.mark.timeout(900)
@pytest.mark.parametrize("n_workers", [1, 4])
def test_any_number_of_workers_publishes_what_one_process_publishes(
    n_workers: int, kafka: Kafka, prefix: str, tmp_path: Path, alone: OneProcess
) -> None:
    names = [f"w{number}" for number in range(n_workers)]
    with cluster(kafka, prefix, tmp_path) as running:
        running.start(*names)
        running.feed(recorded())
        check_equal(running, alone)
        assert [running.workers.stop(name) for name in names] == [0] * n_workers


@pytest.mark.timeout(900)
def test_two_workers_of_which_one_is_killed_publish_everything_once(
    kafka: Kafka, prefix: str, tmp_path: Path, alone: OneProcess
) -> None:
    with cluster(kafka, prefix, tmp_path) as running:
        running.start("a", "b")
        running.feed(recorded()[:30])
        wait_until(
            lambda: running.has_published(dict.fromkeys(EVERY_LANE, 1)), "messages of each lane"
        )
        running.workers.restart("a")
        running.feed(recorded()[30:])
        check_equal(running, alone)
