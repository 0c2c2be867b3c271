"""The positions flow on a real Kafka: what workers publish, however many there are and die."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from anonymizer.cluster.held_files import HeldFiles
from anonymizer.cluster.positions.raw_batches import decode_raw, encode_raw
from anonymizer.cluster.topics import topics_of
from anonymizer.outputs.streets import StreetsOutput
from anonymizer.settings import load_settings
from tests.cluster.clusters import EVERY_LANE, N_TICKS, Cluster, cluster, recorded
from tests.cluster.kafka import Kafka, free_ports
from tests.cluster.processes import (
    Committed,
    answer,
    processes,
    wait_until,
)
from tests.cluster.recorded import MORE, TOKEN, OneProcess, Raws, arrivals, config_of


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> OneProcess:
    """What one process publishes."""
    folder = tmp_path_factory.mktemp("alone")
    process = OneProcess(load_settings(config_of(folder, kafka="127.0.0.1:1", prefix="alone")))
    for raws in recorded():
        process.take(raws)
    return process


def check_equal(running: Cluster, alone: OneProcess, feed: Sequence[Raws]) -> None:
    """Check that messages and accounts are those of one process, once all has arrived."""
    n_of = {lane: len(alone.published[lane]) for lane in EVERY_LANE}
    assert sum(n_of.values()) > 200
    wait_until(lambda: running.has_published(n_of), "all messages")
    n_received = sum(raws.n_positions for raws in feed)
    n_held = sum(stage.n_held for stage in alone.sources)
    expected = {
        "anonymizer_received_total": n_received,
        "anonymizer_positions_total": n_received - n_held,
        "anonymizer_held": n_held,
        "anonymizer_accounting_imbalance": 0,
    }
    end = [encode_raw(decode_raw(value)._replace(arrivals=[])) for value in feed[-1].values]

    def adds_up() -> bool:
        # A source that has moved to another worker after its last input is restored with the next.
        running.feed([Raws(feed[-1].at_s, end, 0)])
        return expected.items() <= running.metrics().items()

    wait_until(adds_up, f"accounts of all workers: {expected}")
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
        check_equal(running, alone, recorded())
        # In each partition a mark of a transaction may be left.
        wait_until(lambda: running.metrics().get("anonymizer_worker_lag", 99) < 20, "no lag")
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
        check_equal(running, alone, recorded())


@pytest.mark.timeout(900)
def test_what_one_stage_publishes_for_all_is_what_one_process_publishes(
    kafka: Kafka, prefix: str, tmp_path: Path
) -> None:
    """Current groups and cloaked fixed devices, with a kill."""
    feed = list(arrivals(N_TICKS, n_sensors=20))
    with cluster(kafka, prefix, tmp_path, MORE) as running:
        alone = OneProcess(running.settings)
        for raws in feed:
            alone.take(raws)
        running.start("a", "b")
        running.feed(feed[:30])
        wait_until(
            lambda: running.has_published(dict.fromkeys(EVERY_LANE, 1)), "messages of each lane"
        )
        running.workers.restart("a")
        running.feed(feed[30:])
        n_of = {lane: len(alone.published[lane]) for lane in EVERY_LANE}
        wait_until(lambda: running.has_published(n_of), "all messages")
        # Sources, lanes and the collecting lane share the partitions.
        for lane in EVERY_LANE:
            assert sorted(running.published(lane)) == sorted(alone.published[lane])
    topics = Counter(each.topic for of in alone.published.values() for each in of)
    assert topics["cloaked/current/0"] > 15
    assert topics["cloaked/fixed"] > 30


@pytest.mark.timeout(900)
def test_every_worker_tells_the_streets_of_the_last_hour_and_each_hour_is_published_once(
    kafka: Kafka, prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a kill. An hour is a minute, and the first that begins is the first that is told."""
    monkeypatch.setenv("ANONYMIZER__COUNTS__STREETS_S", "60")
    feed = list(arrivals(220))
    with cluster(kafka, prefix, tmp_path) as running:
        alone = OneProcess(running.settings)
        for raws in feed:
            alone.take(raws)
        topic, last = topics_of(running.settings).files, HeldFiles()
        for value in alone.hours:
            last.take(value)
        newest = last.newest("streets")
        assert newest is not None
        assert len(alone.hours) > 1
        with Committed(kafka.address, topic.name, topic.n_partitions) as hours:
            running.start("a", "b")
            running.feed(feed[:60])
            wait_until(
                lambda: running.has_published(dict.fromkeys(EVERY_LANE, 1)), "messages of each lane"
            )
            running.workers.restart("a")
            running.feed(feed[60:])
            told = newest.decode()
            for port in running.ports:
                wait_until(
                    lambda p=port: answer(p, StreetsOutput.path, token=TOKEN) == told,  # type: ignore[misc]
                    "the last hour",
                )
            wait_until(hours.has_all, "what was committed")
            assert hours.values[0] == alone.hours
    assert sum(each["properties"]["n_roads"] < 20 for each in json.loads(told)["features"]) > 3


@pytest.mark.timeout(900)
def test_a_worker_that_stands_by_takes_over_from_a_dead_one_at_once(
    kafka: Kafka, prefix: str, tmp_path: Path, alone: OneProcess
) -> None:
    with cluster(kafka, prefix, tmp_path) as running, processes(tmp_path) as second:
        running.start("a")
        running.feed(recorded()[:20])
        wait_until(
            lambda: running.has_published(dict.fromkeys(EVERY_LANE, 1)), "messages of each lane"
        )
        config = config_of(tmp_path, kafka=kafka.address, prefix=prefix, port=free_ports(1)[0])
        command = ("worker", "-c", str(config), "--name", "a", "--state", str(tmp_path / "state"))
        second.start("a", "anonymizer", *command)
        wait_until(lambda: "stands by" in running.workers.said("a"), "the second process")
        running.workers.kill()
        running.feed(recorded()[20:])
        expected = {lane: len(alone.published[lane]) for lane in EVERY_LANE}
        wait_until(lambda: running.has_published(expected), "all messages")
        for lane in EVERY_LANE:
            assert running.published(lane) == alone.published[lane]


@pytest.mark.timeout(900)
def test_stages_that_lost_inputs_stand_still_and_say_so_with_their_state_and_without(
    kafka: Kafka, prefix: str, tmp_path: Path
) -> None:
    with cluster(kafka, prefix, tmp_path) as running:
        running.start("a")
        running.feed(recorded()[:20])
        wait_until(
            lambda: running.has_published(dict.fromkeys(EVERY_LANE, 1)), "messages of each lane"
        )
        assert running.workers.stop("a") == 0
        running.feed(recorded()[20:25])
        running.lose_inputs()  # some of them were never taken
        running.feed(recorded()[25:])
        wait_until(running.has_all, "what was committed at its end")
        n_before = running.n_published()
        for keeps_state in (True, False):
            if not keeps_state:
                running.lose_states()
            running.start("a")
            wait_until(
                lambda: running.metrics().get("anonymizer_worker_stands_still") == 1,
                "a standstill",
            )
            assert running.metrics()["anonymizer_worker_begun_anew_total"] == 1
            # It is counted before it is logged.
            wait_until(
                lambda: "cannot go on: in the topic" in running.workers.said("a"), "the reason"
            )
            assert running.workers.stop("a") == 1
            wait_until(running.has_all, "what was committed")
            assert running.n_published() == n_before
