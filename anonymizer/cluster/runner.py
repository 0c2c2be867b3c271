"""Runs stages as an application of Quix Streams: outputs, state and offsets in one transaction.

Each key of the input topics names a stage, which stays in memory (`resident.py`). The consumer
group gives the partitions to the workers. A worker that dies is replaced after the session's
timeout; one that comes back under its name within that time goes on with its own partitions, and
nobody else is interrupted. Messages that a stage sends carry the time of the input that made it
send them: everything after the bridges is determined by what the bridges wrote, and by the order in
the partitions.
"""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import structlog

from anonymizer.cluster.kafka import MESSAGE_BYTES, reason_of
from anonymizer.cluster.resident import Input, LostInputsError, Resident, State
from anonymizer.cluster.topics import PARTITIONER, Topic
from anonymizer.cluster.worker_metrics import Observed
from anonymizer.errors import TransportError
from anonymizer.extras import extra
from anonymizer.pipeline.stage import Send, Stage

with extra("cluster"):
    from confluent_kafka import Consumer, KafkaException, TopicPartition
    from confluent_kafka.admin import AdminClient, NewTopic
    from quixstreams import Application, message_context
    from quixstreams.exceptions import QuixException
    from quixstreams.models.serializers import Serializer
    from quixstreams.state.rocksdb import RocksDBOptions

SESSION_S = 6
"""Time after which a worker that is silent is replaced: the least that Kafka's defaults admit."""
_TRANSACTION_S = 10
"""Longest transaction. Until then, what a dead worker left open holds up all who read; a worker
that comes back under its name ends it at once."""
_SILENT_S = 60.0
"""Time without an answer from Kafka after which reading again is given up."""
_LARGEST_BYTES = MESSAGE_BYTES - (64 << 10)
"""Of the content of a message; Kafka also counts its key and headers."""
_SEGMENT_MS = 60_000
"""Age at which a part of the state's topic may be compacted, so that there is little to read."""
_BUFFER_BYTES = 8 << 20
"""Memory in which RocksDB collects what is written before it writes a file."""


class Runner:
    """Runs the stages whose partitions the group assigns to this worker.

    Parameters
    ----------
    kafka
        Options of librdkafka that connect: `bootstrap.servers`, encryption, login.
    group
        Name of the consumer group, and part of the names of the state's topics.
    name
        Of this worker, unique in the group and the same after a restart.
    state_dir
        Where states are kept; if it is empty, they are read from Kafka.
    inputs
        For each input topic, what makes a new stage for a key.
    outputs
        All topics that stages send to.
    address
        Returns the name of the topic, and the key, for a message.
    commit_s
        Time between two transactions. Until one ends, nobody sees its outputs.
    each_second
        Called about once a second in the thread of `run`, between two inputs.
    """

    def __init__(
        self,
        kafka: Mapping[str, str],
        *,
        group: str,
        name: str,
        state_dir: Path,
        inputs: Mapping[Topic, Callable[[bytes], Stage]],
        outputs: tuple[Topic, ...],
        address: Callable[[Send], tuple[str, bytes]],
        commit_s: float,
        each_second: Callable[[], None] = lambda: None,
    ) -> None:
        self.observed = Observed()
        self._each_second = each_second
        self._kafka, self._group = dict(kafka), group
        self._earlier = _EarlierInputs({**kafka, "group.id": f"{group}.again"})
        self._application = self._new_application(name, state_dir, commit_s)
        self._watch_assignments()
        self._make_changelogs(tuple(inputs))
        topics = {
            topic.name: self._application.topic(
                topic.name,
                key_deserializer="bytes",
                value_deserializer="bytes",
                key_serializer="bytes",
                value_serializer=_Value(),
            )
            for topic in {*inputs, *outputs}
        }
        for topic, make in inputs.items():
            frame = self._application.dataframe(topics[topic.name])
            frame = frame.apply(
                self._taker(topic.name, make), expand=True, stateful=True, metadata=True
            )
            frame.to_topic(
                lambda send, *_: topics[address(send)[0]], key=lambda send: address(send)[1]
            )

    def run(self) -> None:
        """Run until SIGTERM, then commit what was taken.

        Call it in the main thread.

        Raises
        ------
        TransportError
            If Kafka is away for too long, or has given this worker's partitions to another one.
        """
        try:
            self._application.run()
        except KafkaException as error:
            raise TransportError(f"Kafka: {reason_of(error)}") from error
        except QuixException as error:
            raise TransportError(f"Kafka: {error}") from error
        finally:
            self._earlier.close()

    def _new_application(self, name: str, state_dir: Path, commit_s: float) -> Any:  # noqa: ANN401
        rest = {key: value for key, value in self._kafka.items() if key != "bootstrap.servers"}
        return Application(
            self._kafka["bootstrap.servers"],
            consumer_group=self._group,
            processing_guarantee="exactly-once",
            auto_offset_reset="earliest",
            commit_interval=commit_s,
            consumer_poll_timeout=commit_s / 2,  # an idle poll must not keep a transaction open
            state_dir=state_dir / name,
            # Of each partition. States are written, and read again only after a restart.
            rocksdb_options=RocksDBOptions(
                write_buffer_size=_BUFFER_BYTES,
                target_file_size_base=_BUFFER_BYTES,
                block_cache_size=_BUFFER_BYTES,
            ),
            auto_create_topics=False,
            loglevel=None,
            consumer_extra_config={
                **rest,
                "group.instance.id": name,
                "session.timeout.ms": SESSION_S * 1000,
                "heartbeat.interval.ms": SESSION_S * 1000 // 4,
                "isolation.level": "read_committed",
                "fetch.message.max.bytes": MESSAGE_BYTES,
                "statistics.interval.ms": 1000,
                "stats_cb": self._count_lag,
            },
            producer_extra_config={
                **rest,
                "partitioner": PARTITIONER,
                "transactional.id": f"{self._group}.{name}",
                "transaction.timeout.ms": _TRANSACTION_S * 1000,
                "message.max.bytes": MESSAGE_BYTES,
                "compression.type": "lz4",
                "linger.ms": 5,
            },
        )

    def _watch_assignments(self) -> None:
        # Quix Streams has no public call for this.
        assign = self._application._on_assign  # noqa: SLF001

        def watch(consumer: Any, partitions: list[Any]) -> None:  # noqa: ANN401
            seen = self.observed
            seen.n_assigned += 1
            seen.owned = frozenset(
                (each.topic, each.partition)
                for each in partitions
                if not each.topic.startswith("changelog__")
            )
            assign(consumer, partitions)
            seen.residents = {
                place: resident
                for place, resident in seen.residents.items()
                if place[:2] in seen.owned
            }
            for resident in seen.residents.values():
                resident.doubt()
            _LOG.info("partitions assigned", partitions=sorted(map(list, seen.owned)))

        self._application._on_assign = watch  # noqa: SLF001

    def _make_changelogs(self, inputs: tuple[Topic, ...]) -> None:
        """Create the topics of the state; Quix Streams would let them grow to a gigabyte each."""
        admin = AdminClient(self._kafka)
        made = admin.create_topics(
            [
                NewTopic(
                    f"changelog__{self._group}--{topic.name}--default",
                    topic.n_partitions,
                    config={
                        "cleanup.policy": "compact",
                        "max.message.bytes": str(MESSAGE_BYTES),
                        "segment.ms": str(_SEGMENT_MS),
                        "min.cleanable.dirty.ratio": "0.2",
                        "delete.retention.ms": str(_SEGMENT_MS),
                    },
                )
                for topic in inputs
            ]
        )
        for future in made.values():
            try:
                future.result()
            except KafkaException as error:
                if error.args[0].name() != "TOPIC_ALREADY_EXISTS":
                    raise TransportError(f"Kafka: {reason_of(error)}") from error

    def _taker(
        self, topic: str, make: Callable[[bytes], Stage]
    ) -> Callable[[bytes, bytes, int, Any, State], list[Send]]:
        seen = self.observed
        seen.n_taken[topic] = 0

        def take(value: bytes, key: bytes, at_ms: int, _: object, state: State) -> list[Send]:
            context = message_context()
            partition: int = context.partition
            resident = seen.residents.get((topic, partition, key))
            if resident is None:
                resident = seen.residents[topic, partition, key] = Resident(
                    lambda: make(key),
                    lambda after, before: self._timed(
                        self._earlier.between(topic, partition, key, after, before)
                    ),
                    seen.counts,
                )
            sends = resident.take(Input(context.offset, value, at_ms / 1000), state)
            check_sizes(sends, by=key)
            seen.n_taken[topic] += 1
            for send in sends:
                seen.n_sent[send.to] = seen.n_sent.get(send.to, 0) + 1
            return sends

        return take

    def _timed(self, inputs: Iterator[Input]) -> Iterator[Input]:
        began = time.monotonic()
        try:
            yield from inputs
        finally:
            self.observed.restoring_s += time.monotonic() - began

    def _count_lag(self, text: str) -> None:
        seen = self.observed
        seen.polled_at = time.monotonic()
        seen.lag = {
            (topic, int(number)): partition["consumer_lag"]
            for topic, each in json.loads(text)["topics"].items()
            for number, partition in each["partitions"].items()
            if (topic, int(number)) in seen.owned and partition["consumer_lag"] >= 0
        }
        self._each_second()


def check_sizes(sends: Iterable[Send], *, by: bytes) -> None:
    """Check that Kafka takes what a stage sends.

    Raises
    ------
    TransportError
        If it does not. The stage cannot go on without the message: others wait for it.
    """
    for send in sends:
        if len(send.value) > _LARGEST_BYTES:
            raise TransportError(
                f"cluster: {by.decode()} sends a message of {len(send.value)} bytes to {send.to}"
                f" {send.number}, and {_LARGEST_BYTES} is the limit: choose larger numbers of"
                " sources, districts, joiners or ranges, and another prefix"
            )


class _Value(Serializer):  # type: ignore[misc]  # the library is not there when types are checked
    """The content of a message of a stage."""

    def __call__(self, value: Send, ctx: object) -> bytes:  # noqa: ARG002  the library's
        return value.value


class _EarlierInputs:
    """Reads inputs again that lie before one that was read."""

    def __init__(self, kafka: Mapping[str, str]) -> None:
        self._kafka = kafka
        self._consumer: Any = None

    def between(
        self, topic: str, partition: int, key: bytes, after: int, before: int
    ) -> Iterator[Input]:
        """Yield the inputs of a key after one offset and before another.

        Raises
        ------
        LostInputsError
            If the topic begins later.
        TransportError
            If Kafka does not answer.
        """
        if before - after <= 1:
            return
        if self._consumer is None:
            self._consumer = Consumer(
                {
                    **self._kafka,
                    "isolation.level": "read_committed",
                    "enable.auto.commit": False,
                    "auto.offset.reset": "error",
                    "fetch.message.max.bytes": MESSAGE_BYTES,
                }
            )
        where = TopicPartition(topic, partition, after + 1)
        first, _ = self._consumer.get_watermark_offsets(where, timeout=_SILENT_S)
        if first > after + 1:
            raise LostInputsError
        self._consumer.assign([where])
        try:
            yield from self._until(before, key)
        finally:
            self._consumer.unassign()

    def _until(self, before: int, key: bytes) -> Iterator[Input]:
        while True:
            message = self._consumer.poll(_SILENT_S)
            if message is None:
                raise TransportError("Kafka: earlier inputs cannot be read")
            if message.error() is not None:
                raise TransportError(f"Kafka: {message.error().str()}")
            if message.offset() >= before:
                return
            if message.key() == key:
                yield Input(message.offset(), message.value(), message.timestamp()[1] / 1000)

    def close(self) -> None:
        """Disconnect."""
        if self._consumer is not None:
            self._consumer.close()


_LOG: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)
