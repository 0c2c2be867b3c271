"""What another version has left in Kafka is not taken for nothing: promises rest on it."""

from pathlib import Path

import msgspec
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from anonymizer.cluster.journals import Journals
from anonymizer.cluster.kafka import changelogs
from anonymizer.cluster.resident import Input, Resident, StageEvents, StandstillError
from anonymizer.cluster.topics import Topic, changelog_of, key_of
from tests.cluster.kafka import Kafka
from tests.cluster.stages import Sums


def test_a_snapshot_of_a_kind_of_stage_that_is_gone_is_refused_by_its_format(
    kafka: Kafka, prefix: str, tmp_path: Path
) -> None:
    options = {"bootstrap.servers": kafka.address}
    topic = Topic(f"{prefix}.parts", 2)
    admin = AdminClient({**options})
    made = admin.create_topics(
        [NewTopic(*topic), *changelogs(prefix, [topic])], request_timeout=30.0
    )
    for each in made.values():
        each.result()
    producer = Producer(options)
    head = msgspec.msgpack.encode([4, 7, 1, 0.0, ""])
    changelog = changelog_of(prefix, topic.name)
    producer.produce(changelog, head, b'joiner-0-1|"head"', partition=0)
    assert producer.flush(30.0) == 0
    journals = Journals(
        options,
        prefix,
        tmp_path / "known.json",
        admin=admin,
        store=lambda *_: None,
        waited=lambda _: None,
    )
    for number in range(2):
        journal = journals.of(topic.name, number, key_of("stream", number, 2))
        stage = Resident(Sums, journal, lambda *_: [], StageEvents())
        if number:  # nothing was left where its inputs are
            stage.take(Input(0, b"a", 0.0))
            assert stage.offset == 0
            continue
        with pytest.raises(StandstillError, match="its snapshot is in format 4"):
            stage.take(Input(0, b"a", 0.0))
    journals.close()
