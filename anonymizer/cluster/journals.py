"""Journals: inputs and snapshots of each stage as Kafka keeps them, and which Kafka that is."""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from anonymizer.cluster.resident import Input, LostInputsError, Place, StandstillError
from anonymizer.cluster.topics import changelog_of
from anonymizer.extras import extra
from anonymizer.files.atomic_write import of_content, write_whole
from anonymizer.transport.kafka_clients import LARGE_READ, reading
from anonymizer.transport.kafka_problems import KafkaLostError, Problems, reason_of

with extra("kafka"):
    from confluent_kafka import (
        OFFSET_BEGINNING,
        Consumer,
        KafkaException,
        TopicCollection,
        TopicPartition,
    )

_SILENT_S = 60.0
"""Time without an answer from Kafka after which reading again is given up."""
_ANSWER_S = 30.0
Store: TypeAlias = Callable[[TopicPartition, bytes, bytes | None], None]
"""Writes a key and a value to a partition with the present transaction."""


class Journals:
    """Asks Kafka where a topic is, and reads what lies before the present input.

    `known`: file of this worker that says of which Kafka each topic was when it was read first. A
    state that is older than the topics is useless, even for stages that ran elsewhere. `waited` is
    called with the seconds that reading again has taken. `admin` is a client of the caller, who
    closes it.
    """

    def __init__(
        self,
        kafka: Mapping[str, str],
        group: str,
        known: Path,
        *,
        admin: Any,  # noqa: ANN401  of the library
        store: Store,
        waited: Callable[[float], None],
    ) -> None:
        self.group, self.store = group, store
        self._known, self._waited = known, waited
        self._admin = admin
        self._consumer = Consumer(
            {
                **reading(kafka, group=f"{group}.again", problems=Problems()),
                **LARGE_READ,
                "enable.partition.eof": True,
                "auto.offset.reset": "error",
                # What is asked for is there. The default, 500 ms, was spent for each stage: a
                # question about one partition has to be over before one about the next.
                "fetch.wait.max.ms": 10,
            }
        )

    def close(self) -> None:
        """Disconnect."""
        self._consumer.close()

    def of(self, topic: str, partition: int, key: bytes) -> "_Journal":
        """Return the journal of a stage."""
        return _Journal(self, topic, partition, key)

    def check(self, topic: str) -> str:
        """Return which topic of which Kafka this is.

        StandstillError if this worker has had another one of this name, KafkaLostError if Kafka
        does not answer.
        """
        origin = self._origin(topic)
        known = json.loads(self._known.read_text()) if self._known.exists() else {}
        if known.get(topic) == origin:
            return origin
        if topic in known:
            raise StandstillError(
                f"cluster: cannot go on: the topic {topic} is not the one that the state of this"
                " worker belongs to. Kafka came back with an empty disk, somebody deleted the"
                " topic, or kafka.servers names another Kafka. See the alert"
                " ClusterStateLost"
            )
        self._known.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        text = json.dumps(known | {topic: origin}).encode()
        write_whole({self._known: of_content(text, private=True)})
        return origin

    def _origin(self, topic: str) -> str:
        try:
            cluster = self._admin.describe_cluster(request_timeout=_ANSWER_S)
            [described] = self._admin.describe_topics(
                TopicCollection([topic]), request_timeout=_ANSWER_S
            ).values()
            return f"{cluster.result().cluster_id}/{described.result().topic_id}"
        except KafkaException as error:
            raise KafkaLostError(f"Kafka: {reason_of(error)}") from error

    def ends(self, where: TopicPartition) -> tuple[int, int]:
        """Return the offset of the first message of a partition, and that behind its last."""
        first, end = self._consumer.get_watermark_offsets(where, timeout=_SILENT_S)
        return int(first), int(end)

    def read(self, where: TopicPartition) -> Iterator[Any]:
        """Yield the messages that are in a partition, from an offset on."""
        began = time.monotonic()
        self._consumer.assign([where])
        try:
            while True:
                message = self._consumer.poll(_SILENT_S)
                if message is None:
                    raise KafkaLostError("Kafka: earlier inputs cannot be read")
                error = message.error()
                if error is None:
                    yield message
                elif error.name() == "_PARTITION_EOF":
                    return
                else:
                    raise KafkaLostError(f"Kafka: {error.str()}")
        finally:
            self._consumer.unassign()
            self._waited(time.monotonic() - began)


class _Journal:
    """That of one stage; see `resident.Journal`."""

    def __init__(self, journals: Journals, topic: str, partition: int, key: bytes) -> None:
        self._journals, self._key = journals, key
        self._kind, *_ = key.partition(b"-")
        self._topic, self._partition = topic, partition
        self._changelog = TopicPartition(
            changelog_of(journals.group, topic), partition, OFFSET_BEGINNING
        )
        self.name = key.decode()

    def place(self) -> Place:
        """Return which topic this is, and where it ends."""
        origin = self._journals.check(self._topic)
        _, end = self._journals.ends(TopicPartition(self._topic, self._partition))
        return Place(origin, end)

    def between(self, after: int, before: int) -> Iterator[Input]:
        """Yield the inputs after one offset and before another."""
        if before - after <= 1:
            return
        where = TopicPartition(self._topic, self._partition, after + 1)
        first, _ = self._journals.ends(where)
        if first > after + 1:
            raise LostInputsError(
                f"cluster: {self.name} cannot go on: in the topic {self._topic}, partition"
                f" {self._partition}, somebody else deleted what it needs from offset {after + 1}"
                f" on, up to {first}. See the alert ClusterStateLost"
            )
        for message in self._journals.read(where):
            if message.offset() >= before:
                return
            if message.key() == self._key:
                at_s = message.timestamp()[1] / 1000
                yield Input(message.offset(), message.value() or b"", at_s)
        raise KafkaLostError("Kafka: an input that was read is not there yet")

    def stored(self) -> Mapping[str, bytes]:
        """Return what was stored and committed, by name."""
        found: dict[str, bytes] = {}
        for message in self._journals.read(self._changelog):
            key, _, quoted = (message.key() or b"").partition(b"|")
            name = quoted.decode().strip('"')
            if key != self._key and key.partition(b"-")[0] == self._kind:
                continue
            # What is of another kind was left by another version: its format is refused.
            if message.value() is None:
                found.pop(name, None)
            else:
                found[name] = message.value()
        return found

    def store(self, name: str, value: bytes | None) -> None:
        """Store bytes with the outputs of the present input; None: forget what has this name."""
        # With quotes, as Quix Streams wrote them for versions before: the topic is the same.
        self._journals.store(self._changelog, b'%s|"%s"' % (self._key, name.encode()), value)
