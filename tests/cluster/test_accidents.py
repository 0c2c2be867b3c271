"""Ordinary accidents: each ends with service, or with a reason that the operator is told."""

import signal
from pathlib import Path
from time import monotonic, sleep, time

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from anonymizer.cluster.dropping import Dropped, decode_dropped
from anonymizer.cluster.kafka import ensure_topics
from anonymizer.cluster.topics import PARTITIONER, key_of
from anonymizer.cluster.transactions import TRANSACTION_S, consumer_options
from anonymizer.transport.kafka_clients import SESSION_MS
from tests.cluster.clusters import cluster, recorded
from tests.cluster.kafka import Kafka
from tests.cluster.processes import DEADLINE_S, Committed, answer, processes, wait_until
from tests.cluster.recorded import N_LANES, TOKEN
from tests.cluster.run_sums import N_STAGES
from tests.cluster.stages import FAILS, UNREADABLE, Sums
from tests.cluster.test_runner import Feed, make_topics, n_assigned, start

pytestmark = pytest.mark.timeout(900)
_SILENT_S = max(SESSION_MS / 1000, TRANSACTION_S) + 4


@pytest.mark.parametrize("is_running", [True, False])
def test_workers_stand_still_and_say_so_when_kafka_comes_back_with_an_empty_disk(
    own_kafka: Kafka, prefix: str, tmp_path: Path, *, is_running: bool
) -> None:
    with cluster(own_kafka, prefix, tmp_path) as running:
        running.start("a")
        running.feed(recorded()[:20])
        wait_until(lambda: running.has_published(dict.fromkeys(range(N_LANES), 1)), "messages")
        if not is_running:
            assert running.workers.stop("a") == 0
        own_kafka.lose_everything()
        own_kafka.start()
        ensure_topics(running.settings)
        running.feed(recorded()[20:])
        if not is_running:
            running.start("a")
        wait_until(
            lambda: running.metrics().get("anonymizer_worker_stands_still") == 1, "a standstill"
        )
        [port] = running.ports
        said = answer(port, "/readyz", token=TOKEN, status=503)
        assert said is not None
        assert "is not the one that the state of this worker belongs to" in said
        assert "ClusterStateLost" in said
        ends = Consumer({"bootstrap.servers": own_kafka.address, "group.id": prefix})
        for lane in range(N_LANES):  # nothing was published after that
            where = TopicPartition(f"{prefix}.out", lane % 2)
            assert ends.get_watermark_offsets(where) == (0, 0)
        ends.close()
        assert running.workers.stop("a") == 1


def test_a_worker_that_is_told_to_end_while_it_finds_that_it_must_stand_still_ends(
    own_kafka: Kafka, prefix: str, tmp_path: Path
) -> None:
    with cluster(own_kafka, prefix, tmp_path) as running:
        running.start("a")
        running.feed(recorded()[:20])
        wait_until(lambda: running.has_published(dict.fromkeys(range(N_LANES), 1)), "messages")
        assert running.workers.stop("a") == 0
        own_kafka.lose_everything()
        own_kafka.start()
        ensure_topics(running.settings)
        n_started = running.workers.said("a").count("worker started")
        running.start("a")
        wait_until(
            lambda: running.workers.said("a").count("worker started") > n_started, "the start"
        )
        sleep(0.1)  # it listens to signals, and asks Kafka for its topics
        assert running.workers.stop("a") in {0, 1}
        assert "stands still" in running.workers.said("a")


def poison(prefix: str, producer: Producer) -> list[tuple[bytes | None, bytes | None, str]]:
    """Send what no stage can take to the first stage; return value, key and reason of each."""
    good, other = key_of("source", 0, N_STAGES), key_of("source", 1, N_STAGES)
    bad: list[tuple[bytes | None, bytes | None, str]] = [
        (UNREADABLE + b"secret", good, "unreadable"),
        (None, good, "unreadable"),
        (FAILS + b"secret", good, "failed"),
        (b"a", b"secret", "unaddressed"),
        (b"a", None, "unaddressed"),
        (b"a", b"source-77-0", "unaddressed"),
        (b"a", other, "unaddressed"),  # a stage of another partition
        (None, b"", "unaddressed"),
    ]
    for value, key, _ in bad:
        producer.produce(f"{prefix}.in", value, key, partition=0)
    producer.flush()
    return bad


def test_what_no_stage_can_take_costs_itself_and_is_listed_once(
    kafka: Kafka, prefix: str, tmp_path: Path
) -> None:
    make_topics(kafka.address, prefix)
    producer = Producer({"bootstrap.servers": kafka.address, "partitioner": PARTITIONER})
    with (
        processes(tmp_path) as workers,
        Committed(kafka.address, f"{prefix}.out", N_STAGES) as out,
    ):
        inputs = [bytes([n % 3]) * n for n in range(1, 60)]
        expected, alone = [], Sums(0)
        bad = []
        for n, value in enumerate(inputs):
            if n in {0, 30}:
                bad += poison(prefix, producer)
            producer.produce(f"{prefix}.in", value, key_of("source", 0, N_STAGES), timestamp=1000)
            producer.flush()
            expected += [send.value for send in alone.take(value, at_s=1.0)]
            if n == 20:
                start(workers, "a", kafka, prefix, tmp_path)
            if n == 40:  # the other one comes to the same, with a state of its own and without
                wait_until(lambda: len(out.values[0]) >= len(expected), "outputs")  # noqa: B023
                workers.restart("a")
        wait_until(lambda: len(out.values[0]) >= len(expected), "all outputs")
        assert workers.stop("a") == 0
        assert out.values[0] == expected
    found = listed(kafka, prefix)
    assert [(each.n_bytes, each.reason) for each in found] == [
        (len(value or b""), why) for value, _, why in bad
    ]
    assert {(each.topic, each.partition) for each in found} == {(f"{prefix}.in", 0)}
    assert len({each.offset for each in found}) == len(found)
    assert "secret" not in (tmp_path / "a.log").read_text()
    assert "an input was dropped" in (tmp_path / "a.log").read_text()


def listed(kafka: Kafka, prefix: str) -> list[Dropped]:
    """Return what is said in Kafka about inputs that were dropped."""
    reader = Consumer(
        {
            "bootstrap.servers": kafka.address,
            "group.id": prefix,
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    reader.assign([TopicPartition(f"{prefix}.dropped", 0, 0)])
    found = []
    while (message := reader.poll(30)) is not None and message.error() is None:
        value = message.value() or b""
        assert b"secret" not in value
        found.append(decode_dropped(value))
    reader.close()
    return found


def check_outputs(feed: Feed, out: Committed) -> None:
    """End the inputs, and check that each output comes, once."""
    feed.stop()
    expected = {number: feed.expected(number) for number in range(N_STAGES)}
    wait_until(
        lambda: all(len(out.values[each]) >= len(expected[each]) for each in expected),
        "all outputs",
    )
    assert dict(out.values) == expected


@pytest.mark.parametrize("victim", ["worker", "kafka", "kafka, killed"])
def test_a_worker_that_lost_kafka_comes_back_by_itself_and_sends_everything_once(
    own_kafka: Kafka, prefix: str, tmp_path: Path, victim: str
) -> None:
    """Either is silent for longer than a session and a transaction may last, or Kafka is dead."""
    make_topics(own_kafka.address, prefix)
    with (
        processes(tmp_path) as workers,
        Committed(own_kafka.address, f"{prefix}.out", N_STAGES) as out,
    ):
        feed = Feed(own_kafka.address, f"{prefix}.in")
        start(workers, "a", own_kafka, prefix, tmp_path)
        wait_until(lambda: all(len(out.values[n]) > 5 for n in range(N_STAGES)), "outputs")
        if victim == "worker":
            workers.send_signal("a", signal.SIGSTOP)
        elif victim == "kafka":
            own_kafka.send_signal(signal.SIGSTOP)
        else:
            own_kafka.kill()
        sleep(_SILENT_S)
        if victim == "worker":
            workers.send_signal("a", signal.SIGCONT)
        elif victim == "kafka":
            own_kafka.send_signal(signal.SIGCONT)
        else:
            own_kafka.start()
        back_at, n = time(), {number: len(out.values[number]) for number in range(N_STAGES)}
        wait_until(lambda: all(len(out.values[each]) > n[each] + 5 for each in n), "more outputs")
        print(f"{victim}: outputs after {time() - back_at:.1f} s")  # noqa: T201
        check_outputs(feed, out)
        assert workers.stop("a") == 0


def test_a_request_to_join_that_outlives_its_process_costs_its_successor_a_moment(
    kafka: Kafka, prefix: str, tmp_path: Path
) -> None:
    """A Kafka that stands still may read it after that of the worker that took its place."""
    make_topics(kafka.address, prefix)
    with (
        processes(tmp_path) as workers,
        Committed(kafka.address, f"{prefix}.out", N_STAGES) as out,
    ):
        feed = Feed(kafka.address, f"{prefix}.in")
        start(workers, "a", kafka, prefix, tmp_path)
        wait_until(lambda: all(len(out.values[n]) > 5 for n in range(N_STAGES)), "outputs")
        options = {"bootstrap.servers": kafka.address}
        dead = Consumer(
            consumer_options(options, group=f"{prefix}.workers", name="a", silent_s=300)
        )
        dead.subscribe([f"{prefix}.in"])
        deadline = monotonic() + DEADLINE_S
        while not dead.assignment():
            dead.poll(0.1)
            assert monotonic() < deadline
        dead.close()  # says nothing to Kafka, as one that was killed
        wait_until(lambda: "another client of this name" in workers.said("a"), "a line")
        n = {number: len(out.values[number]) for number in range(N_STAGES)}
        wait_until(lambda: all(len(out.values[each]) > n[each] + 5 for each in n), "more outputs")
        check_outputs(feed, out)
        assert workers.stop("a") == 0


def test_of_two_workers_of_one_name_one_ends_and_says_why(
    kafka: Kafka, prefix: str, tmp_path: Path
) -> None:
    make_topics(kafka.address, prefix)
    folders = [tmp_path / name for name in ("here", "there")]
    with (
        processes(tmp_path) as workers,
        Committed(kafka.address, f"{prefix}.out", N_STAGES) as out,
    ):
        feed = Feed(kafka.address, f"{prefix}.in")
        for folder in folders:
            folder.mkdir()
            workers.start(
                folder.name,
                *("tests.cluster.run_sums", kafka.address, prefix, "a", str(folder)),
            )
        why = "TransportError: Kafka: another worker has this name"
        wait_until(lambda: any(why in workers.said(each.name) for each in folders), "an end")
        check_outputs(feed, out)
        codes = {each.name: workers.stop(each.name) for each in folders}
        assert sorted(codes.values()) == [0, 1], codes


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_worker_told_to_end_ends_well_while_kafka_is_dead_or_says_nothing(
    own_kafka: Kafka, prefix: str, tmp_path: Path, number: int
) -> None:
    make_topics(own_kafka.address, prefix)
    with (
        processes(tmp_path) as workers,
        Committed(own_kafka.address, f"{prefix}.out", N_STAGES) as out,
    ):
        feed = Feed(own_kafka.address, f"{prefix}.in")
        start(workers, "a", own_kafka, prefix, tmp_path)
        start(workers, "b", own_kafka, prefix, tmp_path)
        # Either might do all the work while the other one still starts.
        wait_until(lambda: all(n_assigned(workers, name) for name in ("a", "b")), "two workers")
        wait_until(lambda: all(len(out.values[n]) > 5 for n in range(N_STAGES)), "outputs")
        own_kafka.send_signal(number)
        assert workers.stop("a") == 0  # at once
        sleep(15)  # long enough for the other to know
        assert workers.stop("b") == 0
        own_kafka.send_signal(signal.SIGCONT)
        own_kafka.kill()
        feed.abandon()
