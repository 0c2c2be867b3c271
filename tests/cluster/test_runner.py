"""Stages as an application on a real Kafka: each output once, whoever is killed meanwhile."""

import json
from pathlib import Path
from threading import Event, Thread
from time import time

import numpy as np
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from anonymizer.cluster.runner import check_sizes
from anonymizer.cluster.stage import Send
from anonymizer.cluster.topics import PARTITIONER, key_of
from anonymizer.cluster.transactions import lags_of
from anonymizer.errors import TransportError
from anonymizer.transport.kafka_clients import MESSAGE_BYTES
from tests.cluster.kafka import Kafka
from tests.cluster.processes import Committed, Processes, processes, wait_until
from tests.cluster.run_sums import ENDLESS, LONG, N_STAGES
from tests.cluster.stages import Sums


class Feed:
    """Sends inputs of any size until it is stopped, and remembers them by stage."""

    def __init__(self, address: str, topic: str) -> None:
        self.sent: dict[int, list[tuple[bytes, float]]] = {n: [] for n in range(N_STAGES)}
        self._topic = topic
        self._producer = Producer(
            {
                "bootstrap.servers": address,
                "partitioner": PARTITIONER,
                "enable.idempotence": True,  # retries change the order otherwise
            }
        )
        self._done = Event()
        self._thread = Thread(target=self._send, daemon=True)
        self._thread.start()

    def _send(self) -> None:
        rng = np.random.default_rng(7)
        while not self._done.wait(0.02):
            for _ in range(10):
                number = int(rng.integers(N_STAGES))
                length = int(rng.integers(1, 50 if rng.random() < 0.95 else 300_000))
                value, at_ms = bytes([length % 3]) * length, int(time() * 1000)
                self.sent[number].append((value, at_ms / 1000))
                self._producer.produce(
                    self._topic, value, key_of("source", number, N_STAGES), timestamp=at_ms
                )
            self._producer.poll(0)

    def stop(self) -> None:
        self._done.set()
        self._thread.join()
        self._producer.flush()

    def abandon(self) -> None:
        """Stop, and give up what Kafka does not have."""
        self._done.set()
        self._thread.join()
        self._producer.purge()

    def expected(self, number: int) -> list[bytes]:
        stage = Sums(number)
        return [
            send.value for value, at_s in self.sent[number] for send in stage.take(value, at_s=at_s)
        ]


def make_topics(address: str, prefix: str) -> None:
    admin = AdminClient({"bootstrap.servers": address})
    n_of = {"in": N_STAGES, "out": N_STAGES, "dropped": 1}
    made = admin.create_topics([NewTopic(f"{prefix}.{name}", n) for name, n in n_of.items()])
    for future in made.values():
        future.result()


def start(workers: Processes, name: str, kafka: Kafka, prefix: str, folder: Path) -> None:
    workers.start(name, "tests.cluster.run_sums", kafka.address, prefix, name, str(folder))


def n_assigned(workers: Processes, name: str) -> int:
    """Return how often a worker was given partitions; before, a signal may find it unprepared."""
    return workers.said(name).count("partitions assigned")


@pytest.mark.timeout(900)
def test_under_kills_what_is_sent_equals_an_uninterrupted_run(
    kafka: Kafka, prefix: str, tmp_path: Path
) -> None:
    make_topics(kafka.address, prefix)
    with (
        processes(tmp_path) as workers,
        Committed(kafka.address, f"{prefix}.out", N_STAGES) as out,
    ):
        feed = Feed(kafka.address, f"{prefix}.in")
        start(workers, "a", kafka, prefix, tmp_path)
        start(workers, "b", kafka, prefix, tmp_path)
        for victim in ("a", "b"):
            n = {number: len(out.values[number]) for number in range(N_STAGES)}
            wait_until(
                lambda n=n: all(len(out.values[each]) > n[each] + 5 for each in n),  # type: ignore[misc]
                f"outputs before {victim} is killed",
            )
            if victim == "a":
                n_of_a = n_assigned(workers, "a")
            workers.restart(victim)
        # Another one comes without a state of its own, and reads it from Kafka.
        workers.stop("b")
        start(workers, "c", kafka, prefix, tmp_path)
        wait_until(lambda: n_assigned(workers, "c") > 0, "a share for c")
        wait_until(lambda: n_assigned(workers, "a") > n_of_a, "a share for a")
        feed.stop()
        expected = {number: feed.expected(number) for number in range(N_STAGES)}
        wait_until(
            lambda: all(len(out.values[each]) >= len(expected[each]) for each in expected),
            "all outputs",
        )
        assert [workers.stop(name) for name in ("a", "c")] == [0, 0]
    assert dict(out.values) == expected
    # What snapshots contain is deleted; the first one follows the first input.
    assert all(first > 0 for first, _ in kept(kafka, prefix))


def kept(kafka: Kafka, prefix: str) -> list[tuple[int, int]]:
    """Return the first offset of the inputs that Kafka has, and the next one, by partition."""
    reader = Consumer({"bootstrap.servers": kafka.address, "group.id": f"{prefix}.ends"})
    try:
        where = [TopicPartition(f"{prefix}.in", number) for number in range(N_STAGES)]
        return [reader.get_watermark_offsets(each) for each in where]
    finally:
        reader.close()


@pytest.mark.timeout(900)
def test_a_stage_may_work_for_longer_than_a_transaction_may_take(
    kafka: Kafka, prefix: str, tmp_path: Path
) -> None:
    make_topics(kafka.address, prefix)
    producer = Producer({"bootstrap.servers": kafka.address, "partitioner": PARTITIONER})
    # The tenth input begins a transaction; the next one takes three times as long as that may last.
    inputs = [b"a"] * 10 + [LONG] + [b"a"] * 9
    for value in inputs:
        producer.produce(f"{prefix}.in", value, key_of("source", 0, N_STAGES), timestamp=1000)
    producer.flush()
    alone = Sums()
    expected = [send.value for value in inputs for send in alone.take(value, at_s=1.0)]
    with (
        processes(tmp_path) as workers,
        Committed(kafka.address, f"{prefix}.out", N_STAGES) as out,
    ):
        folder = str(tmp_path)
        workers.start("a", "tests.cluster.run_sums", kafka.address, prefix, "a", folder, "2")
        wait_until(
            lambda: len(out.values[0]) >= len(expected) or workers.revive() > 0, "all outputs"
        )
        assert out.values[0] == expected
        assert workers.stop("a") == 0


@pytest.mark.timeout(900)
def test_a_worker_that_is_stuck_ends_and_the_next_one_goes_on_as_if_nothing_had_been(
    kafka: Kafka, prefix: str, tmp_path: Path
) -> None:
    make_topics(kafka.address, prefix)
    producer = Producer({"bootstrap.servers": kafka.address, "partitioner": PARTITIONER})
    inputs = [b"a"] * 15 + [ENDLESS] + [b"a"] * 14
    at_ms = int(time() * 1000)  # Kafka deletes what is old half a minute after its start
    for value in inputs:
        producer.produce(f"{prefix}.in", value, key_of("source", 0, N_STAGES), timestamp=at_ms)
    producer.flush()
    alone = Sums()
    expected = [send.value for value in inputs for send in alone.take(value, at_s=at_ms / 1000)]
    with (
        processes(tmp_path) as workers,
        Committed(kafka.address, f"{prefix}.out", N_STAGES) as out,
    ):
        folder = str(tmp_path)
        workers.start("a", "tests.cluster.run_sums", kafka.address, prefix, "a", folder, "2")
        wait_until(lambda: workers.revive() > 0, "its end")
        assert "it is stuck" in workers.said("a")
        wait_until(lambda: len(out.values[0]) >= len(expected), "all outputs")
        assert out.values[0] == expected
        assert workers.stop("a") == 0


def test_a_message_that_kafka_would_refuse_is_named() -> None:
    most = MESSAGE_BYTES - (64 << 10)
    check_sizes([Send("lane", 3, bytes(most))], by=b"source-1-0")
    with pytest.raises(TransportError, match=r"source-1-0 sends .* to lane 3, and 1\d+ is"):
        check_sizes([Send("lane", 3, bytes(most + 1))], by=b"source-1-0")


def test_lag_is_what_was_not_passed_on_whatever_transactions_have_committed() -> None:
    def partition(*, app: int, committed: int, end: int) -> dict[str, int]:
        return {
            "app_offset": app,
            "committed_offset": committed,
            "ls_offset": end,
            "consumer_lag": end - committed,
        }

    partitions = {
        "0": partition(app=990, committed=10, end=1000),
        "1": partition(app=-1001, committed=10, end=1000),
        "2": partition(app=-1001, committed=-1001, end=1000),
        "3": partition(app=5, committed=5, end=-1001),
    }
    statistics = {"topics": {"t": {"partitions": partitions}}}
    assert lags_of(json.dumps(statistics)) == {("t", 0): 10, ("t", 1): 990}
