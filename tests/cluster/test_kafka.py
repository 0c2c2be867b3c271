"""Access to Kafka, and its topics."""

import asyncio
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import (
    AclOperation,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)
from structlog.testing import capture_logs

from anonymizer.cluster.erasing import Eraser
from anonymizer.cluster.kafka import ensure_topics, secret_of
from anonymizer.cluster.worker_metrics import Deletions
from anonymizer.errors import SettingsError, TransportError
from anonymizer.pipeline.devices import key_of
from anonymizer.pipeline.packed_deliveries import receipts_of
from anonymizer.settings import InputSettings, KafkaSettings, Settings
from anonymizer.transport.kafka import KafkaLink
from tests.cluster.denials import denied
from tests.cluster.kafka import Kafka
from tests.cluster.processes import DEADLINE_S, wait_until


def settings(address: str, prefix: str, **cluster: int) -> Settings:
    tables = {"kafka": {"servers": address, "group": prefix}, "cluster": cluster}
    return Settings.model_validate(tables)


def test_topics_are_created_once_and_other_partitions_are_refused(
    kafka: Kafka, prefix: str
) -> None:
    ensure_topics(settings(kafka.address, prefix, n_parts=2))
    ensure_topics(settings(kafka.address, prefix, n_parts=2))
    with pytest.raises(SettingsError, match=rf"{prefix}.sources has 2 partitions"):
        ensure_topics(settings(kafka.address, prefix, n_parts=3))


def retention_of(kafka: Kafka, topic: str, *, put: str | None = None) -> str:
    """Return how long a topic is kept, in ms; set it before if that is asked for."""
    admin, resource = AdminClient({"bootstrap.servers": kafka.address}), ResourceType.TOPIC
    if put is not None:
        entry = ConfigEntry("retention.ms", put, incremental_operation=AlterConfigOpType.SET)
        asked = ConfigResource(resource, topic, incremental_configs=[entry])
        for future in admin.incremental_alter_configs([asked]).values():
            future.result()
        wait_until(lambda: retention_of(kafka, topic) == put, "what was set")
    [answer] = admin.describe_configs([ConfigResource(resource, topic)]).values()
    return str(answer.result()["retention.ms"].value)


def test_inputs_are_kept_without_a_limit_also_in_topics_of_before(
    kafka: Kafka, prefix: str
) -> None:
    sources, out = f"{prefix}.sources", f"{prefix}.out"
    made = settings(kafka.address, prefix, n_parts=2)
    ensure_topics(made)
    assert (retention_of(kafka, sources), retention_of(kafka, out)) == ("-1", "3600000")
    retention_of(kafka, sources, put="3600000")
    with denied(kafka, sources, AclOperation.ALTER_CONFIGS), capture_logs() as said:
        ensure_topics(made)
    [warning] = said
    assert (warning["log_level"], warning["topic"]) == ("warning", sources)
    assert "retention.ms" in warning["event"]
    assert "authorization" in warning["reason"].lower()
    ensure_topics(made)
    wait_until(lambda: retention_of(kafka, sources) == "-1", "no limit")


def test_inputs_are_deleted_and_a_refusal_is_counted_and_said(kafka: Kafka, prefix: str) -> None:
    admin = AdminClient({"bootstrap.servers": kafka.address})
    [made] = admin.create_topics([NewTopic(prefix, 1)]).values()
    made.result()
    producer = Producer({"bootstrap.servers": kafka.address})
    for _ in range(10):
        producer.produce(prefix, b"x", partition=0)
    producer.flush()
    deletions = Deletions()
    eraser = Eraser(admin, deletions)
    with denied(kafka, prefix, AclOperation.DELETE), capture_logs() as said:
        eraser.erase({(prefix, 0): 5})
        wait_until(lambda: deletions == Deletions(0, 1) and bool(said), "a refusal")
    assert [each["reason"] for each in said] == ["Broker: Topic authorization failed"]
    eraser.erase({(prefix, 0): 5})  # was asked for
    eraser.erase({(prefix, 0): 7})
    wait_until(lambda: deletions == Deletions(1, 1), "a deletion")
    reader = Consumer({"bootstrap.servers": kafka.address, "group.id": prefix})
    assert reader.get_watermark_offsets(TopicPartition(prefix, 0)) == (7, 10)
    reader.close()


def test_a_kafka_that_cannot_be_reached_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anonymizer.cluster.kafka._ANSWER_S", 1.0)
    with pytest.raises(TransportError, match=r"kafka\.servers"):
        ensure_topics(settings("127.0.0.1:1", "t"))


def test_a_secret_is_long_and_secret(tmp_path: Path) -> None:
    file = tmp_path / "key"
    with pytest.raises(SettingsError, match="cannot be read"):
        secret_of(file)
    file.write_bytes(b"x" * 31)
    file.chmod(0o640)
    with pytest.raises(SettingsError, match="at least 32"):
        secret_of(file)
    file.write_bytes(b"x" * 32)
    assert secret_of(file) == b"x" * 32
    file.write_bytes(b"x" * 1000)
    assert key_of("a", secret_of(file)) != key_of("a", b"x" * 64)
    file.chmod(0o644)
    with pytest.raises(SettingsError, match="others can read"):
        secret_of(file)


async def test_no_more_deliveries_wait_than_the_limit(kafka: Kafka, prefix: str) -> None:
    admin = AdminClient({"bootstrap.servers": kafka.address})
    [made] = admin.create_topics([NewTopic(prefix, 1)]).values()
    made.result()
    producer = Producer({"bootstrap.servers": kafka.address})
    for _ in range(2000):
        producer.produce(prefix, b"x", "device")
    producer.flush()
    receipts: list[int] = []
    link = KafkaLink(
        KafkaSettings(servers=kafka.address, group=prefix),
        inputs=[InputSettings.model_validate({"topic": f"kafka:{prefix}"})],
        outputs={},
        deliver=lambda some: receipts.extend(receipts_of(some)),
        on_state=lambda *_: None,
        timeout_s=10.0,
        most_waiting=400,
        max_payload_bytes=100,
    )

    async def receives(n: int) -> None:
        async with asyncio.timeout(DEADLINE_S):
            while len(receipts) < n:  # noqa: ASYNC110  another thread reads
                await asyncio.sleep(0.01)
        await asyncio.sleep(0.3)
        assert len(receipts) == n

    running = asyncio.create_task(link.run())
    await receives(400)
    link.acknowledge(receipts[:200])
    await receives(600)
    link.acknowledge(receipts[200:])
    await receives(1000)
    link.acknowledge(receipts[600:])
    await link.close()
    await running
