"""What an operator does with a cluster: check its settings, see what was dropped, erase it."""

import fcntl
import re
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from anonymizer.cluster.kafka import ensure_topics
from anonymizer.cluster.positions.raw_batches import decode_raw, encode_raw
from anonymizer.cluster.topics import topic_by_kind
from anonymizer.settings import load_settings
from tests.cluster.clusters import cluster, recorded
from tests.cluster.kafka import Kafka
from tests.cluster.processes import answer, wait_until
from tests.cluster.recorded import N_LANES, TOKEN, Raws, config_of
from tests.preloaded import ran

pytestmark = pytest.mark.timeout(900)
AHEAD_S = 400
NOBODY = "127.0.0.1:1"


def run(*arguments: str | Path, code: int = 0) -> str:
    """Run a command, and return what it says if it ends with this exit code."""
    done = ran("anonymizer", *arguments, folder=Path.cwd())
    assert done.returncode == code, done.stderr
    return done.stdout if code == 0 else done.stderr


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return config_of(tmp_path, kafka=NOBODY, prefix="t")


def test_settings_that_a_cluster_can_run_are_fine_without_a_connection(config: Path) -> None:
    assert "fine" in run("check", "--cluster", "--config", config)


@pytest.mark.parametrize(
    ("more", "named"),
    [
        (
            '[output]\nforms = ["home_assistant"]',
            'output.forms = "home_assistant": is not possible in a cluster',
        ),
    ],
)
def test_what_bridges_and_workers_refuse_is_refused(config: Path, more: str, named: str) -> None:
    config.write_text(config.read_text() + more)
    assert "fine" in run("check", "--config", config)
    said = run("check", "--cluster", "--config", config, code=2)
    assert str(config) in said
    assert named in said


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ('options = {"no.such" = "x"}', "kafka.options: No such configuration"),
        (
            'options = {"security.protocol" = "ssl", "ssl.ca.location" = "/nowhere"}',
            "kafka.options: ",
        ),
    ],
)
def test_options_that_kafkas_client_refuses_are_refused(
    config: Path, line: str, named: str
) -> None:
    config.write_text(config.read_text().replace("[kafka]\n", f"[kafka]\n{line}\n"))
    assert named in run("check", "--cluster", "--config", config, code=2)


def test_a_key_that_workers_refuse_is_refused(config: Path) -> None:
    (config.parent / "secret").chmod(0o644)
    said = run("check", "--cluster", "--config", config, code=2)
    assert "cluster.secret_file: others can read it" in said
    config.write_text(config.read_text().replace("secret_file", "# secret_file"))
    said = run("check", "--cluster", "--config", config, code=2)
    assert "cluster.secret_file: workers need one" in said


def test_what_was_dropped_is_listed_and_a_stopped_cluster_is_erased(
    kafka: Kafka, prefix: str, tmp_path: Path
) -> None:
    with cluster(kafka, prefix, tmp_path) as running:
        config, state = tmp_path / "gateway-0.toml", tmp_path / "state"
        assert run("cluster", "dropped", "-c", config).splitlines()[-1] == "0 dropped"
        producer = Producer({"bootstrap.servers": kafka.address})
        producer.produce(f"{prefix}.sources", b"of somebody else", b"secret", partition=1)
        producer.flush()
        running.start("a")
        running.feed(recorded()[:20])
        wait_until(lambda: running.has_published(dict.fromkeys(range(N_LANES), 1)), "messages")

        def said_of_dropped() -> list[str]:
            return run("cluster", "dropped", "-c", config).splitlines()

        # Lanes do not wait for it.
        wait_until(lambda: said_of_dropped()[-1] != "0 dropped", "what was dropped")
        [dropped, total] = said_of_dropped()
        assert f"{prefix}.sources  partition 1  offset 0  16 bytes  unaddressed" in dropped
        assert total == "1 dropped"
        erase = ("cluster", "erase", "-c", config, "--state", state, "--yes")
        assert "a.lock: this worker runs" in run(*erase, code=2)
        assert "members of" in run(*erase[:4], "--yes", code=2)
        assert running.workers.stop("a") == 0
        with (state / "b.lock").open("w") as other:
            fcntl.flock(other, fcntl.LOCK_EX)
            assert "b.lock: this worker runs" in run(*erase, code=2)
        admin = AdminClient({"bootstrap.servers": kafka.address})
        assert f"{prefix}.sources" in admin.list_topics(timeout=30).topics
        said = run(*erase).splitlines()
        assert f"erased: topic {prefix}.sources" in said
        assert f"erased: topic changelog__{prefix}.workers--{prefix}.lanes--default" in said
        kept = topic_by_kind(running.settings)
        left = {kept["out"].name, kept["dropped"].name}
        wait_until(
            lambda: (
                {each for each in admin.list_topics(timeout=30).topics if prefix in each} == left
            ),
            "what is left",
        )
        assert {path.name for path in state.rglob("*") if path.is_file()} == {"a.lock", "b.lock"}
        assert run(*erase).splitlines() == ["there was nothing to erase"]
        # It begins anew, with what comes from then on.
        ensure_topics(running.settings)
        n = {lane: len(running.published(lane)) for lane in range(N_LANES)}
        running.feed(recorded()[20:])
        running.start("a")
        wait_until(
            lambda: all(len(running.published(lane)) > n[lane] for lane in n), "more messages"
        )


def test_a_cluster_whose_clock_was_ahead_goes_on_by_the_command_that_readiness_names(
    kafka: Kafka, prefix: str, tmp_path: Path
) -> None:
    feed = recorded()

    def ahead(raws: Raws) -> Raws:
        said = [decode_raw(value)._replace(arrivals=[]) for value in raws.values]
        values = [encode_raw(each._replace(tick=each.tick + AHEAD_S)) for each in said]
        return Raws(raws.at_s + AHEAD_S, values, 0)

    with cluster(kafka, prefix, tmp_path) as running:

        def n_published() -> int:
            return sum(len(running.published(lane)) for lane in range(N_LANES))

        def problem() -> str:
            running.feed([feed[24]])  # bridges state on, by the clock that is right again
            return answer(running.ports[0], "/readyz", token=TOKEN, status=503) or ""

        running.start("a")
        running.feed(feed[:20])
        wait_until(lambda: running.has_published(dict.fromkeys(range(N_LANES), 1)), "messages")
        running.feed(list(map(ahead, feed[20:24])))
        wait_until(lambda: "a clock was ahead by as much" in problem(), "what is the matter")
        [command] = re.findall("run `anonymizer ([a-z ]+)`", problem())
        assert running.workers.stop("a") == 0
        options = ("-c", tmp_path / "gateway-0.toml", "--state", tmp_path / "state", "--yes")
        assert "erased: topic" in run(*command.split(), *options)
        ensure_topics(running.settings)
        n = n_published()
        running.feed(feed[25:])
        running.start("a")
        wait_until(lambda: n_published() > n, "more messages")


def test_another_cluster_of_the_same_kafka_keeps_what_it_has(
    kafka: Kafka, prefix: str, tmp_path: Path
) -> None:
    config = config_of(tmp_path, kafka=kafka.address, prefix=prefix)
    ensure_topics(load_settings(config))
    others = [f"{prefix}2.sources", f"changelog__{prefix}2.workers--{prefix}2.sources--default"]
    admin = AdminClient({"bootstrap.servers": kafka.address})
    for future in admin.create_topics([NewTopic(name, 1) for name in others]).values():
        future.result()
    run("cluster", "erase", "-c", config, "--yes")
    assert set(others) <= admin.list_topics(timeout=30).topics.keys()
