"""Journals: the inputs of each stage as Kafka keeps them, and which Kafka that is."""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from anonymizer.cluster.kafka import MESSAGE_BYTES
from anonymizer.cluster.resident import Input, LostInputsError, Place, StandstillError
from anonymizer.extras import extra
from anonymizer.files.atomic_write import FileToWrite, write_whole
from anonymizer.transport.kafka_problems import KafkaLostError, reason_of

with extra("cluster"):
    from confluent_kafka import Consumer, KafkaException, TopicCollection, TopicPartition
    from confluent_kafka.admin import AdminClient

_SILENT_S = 60.0
"""Time without an answer from Kafka after which reading again is given up."""
_ANSWER_S = 30.0


class Journals:
    """Asks Kafka where a topic is, and reads inputs again that lie before one that was read.

    Parameters
    ----------
    kafka
        Options of librdkafka that connect, and the group.
    known
        File of this worker that says of which Kafka each topic was when it was read first. A state
        that is older than the topics is of no use, also for the stages that others ran.
    waited
        Called with the seconds that reading again has taken.
    """

    def __init__(
        self, kafka: Mapping[str, str], known: Path, *, waited: Callable[[float], None]
    ) -> None:
        self._kafka, self._known, self._waited = dict(kafka), known, waited
        connecting = {key: value for key, value in kafka.items() if key != "group.id"}
        self._admin: Any = AdminClient(connecting)
        self._consumer: Any = None

    def of(self, topic: str, partition: int, key: bytes) -> "_Journal":
        """Return the journal of a stage."""
        return _Journal(self, TopicPartition(topic, partition), key)

    def check(self, topic: str) -> str:
        """Return which topic of which Kafka this is.

        Raises
        ------
        StandstillError
            If this worker has had another one of this name.
        KafkaLostError
            If Kafka does not answer.
        """
        origin = self._origin(topic)
        known = json.loads(self._known.read_text()) if self._known.exists() else {}
        if known.get(topic) == origin:
            return origin
        if topic in known:
            raise StandstillError(
                f"cluster: cannot go on: the topic {topic} is not the one that the state of this"
                " worker belongs to. Kafka came back with an empty disk, somebody deleted the"
                " topic, or cluster.kafka names another Kafka. See docs/scaling.md,"
                " ClusterStateLost"
            )
        self._known.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        text = json.dumps(known | {topic: origin}).encode()
        write_whole({self._known: FileToWrite(lambda file: file.write(text), private=True)})
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

    def end(self, where: Any) -> int:  # noqa: ANN401  the type checker has it not
        """Return the offset behind the last message of a partition."""
        return int(self._reader().get_watermark_offsets(where, timeout=_SILENT_S)[1])

    def between(self, where: Any, key: bytes, after: int, before: int) -> Iterator[Input]:  # noqa: ANN401
        """Yield the inputs of a key after one offset and before another; see `Journal`."""
        if before - after <= 1:
            return
        began, reader = time.monotonic(), self._reader()
        first, _ = reader.get_watermark_offsets(where, timeout=_SILENT_S)
        if first > after + 1:
            raise LostInputsError(
                f"cluster: {key.decode()} cannot go on: in the topic {where.topic}, partition"
                f" {where.partition}, somebody else deleted what it needs from offset {after + 1}"
                f" on, up to {first}. See docs/scaling.md, ClusterStateLost"
            )
        reader.assign([TopicPartition(where.topic, where.partition, after + 1)])
        try:
            yield from self._until(before, key)
        finally:
            reader.unassign()
            self._waited(time.monotonic() - began)

    def _until(self, before: int, key: bytes) -> Iterator[Input]:
        while True:
            message = self._consumer.poll(_SILENT_S)
            if message is None:
                raise KafkaLostError("Kafka: earlier inputs cannot be read")
            if message.error() is not None:
                raise KafkaLostError(f"Kafka: {message.error().str()}")
            if message.offset() >= before:
                return
            if message.key() == key:
                at_s = message.timestamp()[1] / 1000
                yield Input(message.offset(), message.value() or b"", at_s)

    def _reader(self) -> Any:  # noqa: ANN401  likewise
        if self._consumer is None:
            self._consumer = Consumer(
                {
                    **self._kafka,
                    "isolation.level": "read_committed",
                    "enable.auto.commit": False,
                    "auto.offset.reset": "error",
                    "fetch.message.max.bytes": MESSAGE_BYTES,
                    # What is asked for is there. The default, 500 ms, was spent for each stage: a
                    # question about one partition has to be over before one about the next.
                    "fetch.wait.max.ms": 10,
                }
            )
        return self._consumer

    def close(self) -> None:
        """Disconnect."""
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None


class _Journal:
    """That of one stage; see `resident.Journal`."""

    def __init__(self, journals: Journals, where: Any, key: bytes) -> None:  # noqa: ANN401
        self._journals, self._where, self._key = journals, where, key
        self.name = key.decode()

    def place(self) -> Place:
        """Return which topic this is, and where it ends."""
        origin = self._journals.check(self._where.topic)
        return Place(origin, self._journals.end(self._where))

    def between(self, after: int, before: int) -> Iterator[Input]:
        """Yield the inputs after one offset and before another."""
        return self._journals.between(self._where, self._key, after, before)
