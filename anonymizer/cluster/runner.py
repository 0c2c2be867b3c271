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
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import structlog

from anonymizer.cluster.erasing import Eraser
from anonymizer.cluster.kafka import MESSAGE_BYTES, reason_of
from anonymizer.cluster.recovery import hasten_recovery
from anonymizer.cluster.resident import Input, LostInputsError, Resident, State
from anonymizer.cluster.topics import PARTITIONER, Topic, partition_of
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
_LONG_S = 10.0
"""Time for one input beyond which it is logged."""
_SILENT_S = 60.0
"""Time without an answer from Kafka after which reading again is given up."""
_LARGEST_BYTES = MESSAGE_BYTES - (64 << 10)
"""Of the content of a message; Kafka also counts its key and headers."""
_SEGMENT_MS = 60_000
"""Age at which a part of the state's topic may be compacted, so that there is little to read."""
_BUFFER_BYTES = 8 << 20
"""Memory in which RocksDB collects what is written before it writes a file."""


class Stages(NamedTuple):
    """All stages that read a topic, whoever runs them.

    Attributes
    ----------
    make
        Returns a new stage for a key.
    keys
        Of all of them.
    heals
        See `Resident`.
    takes_long
        Whether a stage may work on an input for seconds.
    """

    make: Callable[[bytes], Stage]
    keys: Sequence[bytes]
    heals: bool = False
    takes_long: Callable[[bytes], bool] = lambda _: False


class Runner:
    """Runs the stages whose partitions the group assigns to this worker.

    When a snapshot is committed, the inputs that it contains are deleted in Kafka: they are raw
    data, and kept without a time limit for stages that may be restarted after days.

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
        For each input topic, its stages.
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
        inputs: Mapping[Topic, Stages],
        outputs: tuple[Topic, ...],
        address: Callable[[Send], tuple[str, bytes]],
        commit_s: float,
        each_second: Callable[[], None] = lambda: None,
    ) -> None:
        self.observed = Observed()
        self._each_second = each_second
        self._kafka, self._group = dict(kafka), group
        self._earlier = _EarlierInputs({**kafka, "group.id": f"{group}.again"})
        self._eraser = Eraser(kafka, self.observed.deletions)
        self._keys: defaultdict[tuple[str, int], list[bytes]] = defaultdict(list)
        for topic, stages in inputs.items():
            for key in stages.keys:
                self._keys[topic.name, partition_of(key, topic.n_partitions)].append(key)
        self._application = self._new_application(name, state_dir, commit_s)
        hasten_recovery(self._application)
        self._watch_assignments()
        self._watch_commits()
        self._watch_inputs({topic.name: stages.takes_long for topic, stages in inputs.items()})
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
        for topic, stages in inputs.items():
            frame = self._application.dataframe(topics[topic.name])
            frame = frame.apply(
                self._taker(topic.name, stages), expand=True, stateful=True, metadata=True
            )
            frame.to_topic(
                lambda send, *_: topics[address(send)[0]], key=lambda send: address(send)[1]
            )

    def run(self) -> None:
        """Run until SIGTERM, then commit what was taken.

        Call it in the main thread.

        Raises
        ------
        LostInputsError
            If a stage cannot go on, because inputs that it needs were deleted.
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
            # Where inputs that were not taken are gone, the library forgets the state on the disk,
            # reads it again from its topic, and goes on. The stage then finds the gap itself: it
            # stands still (`LostInputsError`), or heals. Without this the worker would just end.
            auto_recover_from_source_offset_out_of_range=True,
            state_recovery_offset_reset="earliest",
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
        # Quix Streams has no public calls for this.
        application, seen = self._application, self.observed
        assign = application._on_assign  # noqa: SLF001

        def watch(consumer: Any, partitions: list[Any]) -> None:  # noqa: ANN401
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
            self._doubt()
            _LOG.info("partitions assigned", partitions=sorted(map(list, seen.owned)))

        application._on_assign = watch  # noqa: SLF001
        for name in ("_on_revoke", "_on_lost"):
            setattr(application, name, self._then_doubt(getattr(application, name)))

    def _then_doubt(self, taken_away: Callable[..., None]) -> Callable[..., None]:
        def wrapped(*arguments: object) -> None:
            taken_away(*arguments)
            self._doubt()  # it may not have been committed

        return wrapped

    def _doubt(self) -> None:
        for resident in self.observed.residents.values():
            resident.doubt()

    def _watch_commits(self) -> None:
        """Let inputs be deleted after each transaction.

        Those that were covered when the one before ended: its end is then in all partitions, so
        that whoever restores a state finds no older one.
        """
        context = self._application._processing_context  # noqa: SLF001  there is no public call
        commit = context.commit_checkpoint
        covered: dict[tuple[str, int], int] = {}

        def commit_and_erase(*, force: bool = False, revoking: bool = False) -> None:
            nonlocal covered
            before, is_empty = context.checkpoint, context.checkpoint.empty()
            commit(force=force, revoking=revoking)
            # While partitions are taken away it may not have been committed.
            if context.checkpoint is not before and not is_empty and not revoking:
                self._eraser.erase(covered)
                covered = self._covered()

        context.commit_checkpoint = commit_and_erase

    def _watch_inputs(self, takes_long: Mapping[str, Callable[[bytes], bool]]) -> None:
        """Commit before an input on which a stage may work for long.

        Kafka ends a transaction after `_TRANSACTION_S`, counted from its first output, and with it
        the worker. The next one would come to the same input, and end in the same way.
        """
        consumer, seen = self._application._consumer, self.observed  # noqa: SLF001
        poll = consumer.poll_row

        def poll_and_commit(**options: Any) -> Any:  # noqa: ANN401  of the library
            row = poll(**options)
            if row is None:
                return row
            resident = seen.residents.get((row.topic, row.partition, row.key))
            if resident is None or not resident.is_sure or takes_long[row.topic](row.value):
                context = self._application._processing_context  # noqa: SLF001
                context.commit_checkpoint(force=True)
            return row

        consumer.poll_row = poll_and_commit

    def _covered(self) -> dict[tuple[str, int], int]:
        """Return the first offset of each partition that snapshots do not contain, where known."""
        residents, found = self.observed.residents, {}
        for place in self.observed.owned:
            of_place = [residents.get((*place, key)) for key in self._keys[place]]
            covered = [-1 if each is None else each.covered for each in of_place]
            if min(covered, default=-1) >= 0:
                found[place] = min(covered) + 1
        return found

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
        self, topic: str, stages: Stages
    ) -> Callable[[bytes, bytes, int, Any, State], list[Send]]:
        seen = self.observed
        seen.n_taken[topic] = 0

        def take(value: bytes, key: bytes, at_ms: int, _: object, state: State) -> list[Send]:
            context = message_context()
            partition: int = context.partition
            resident = seen.residents.get((topic, partition, key))
            if resident is None:
                resident = seen.residents[topic, partition, key] = Resident(
                    lambda: stages.make(key),
                    lambda after, before: self._timed(
                        self._earlier.between(topic, partition, key, after, before)
                    ),
                    seen.counts,
                    heals=stages.heals,
                )
            began = seen.taking_since = time.monotonic()
            sends = resident.take(Input(context.offset, value, at_ms / 1000), state)
            seen.taking_since = None
            if (took_s := time.monotonic() - began) > _LONG_S:
                _LOG.warning(
                    "a stage took long, and others of this worker waited for it",
                    stage=key.decode(),
                    seconds=round(took_s, 1),
                )
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
        seen.lag = {place: lag for place, lag in lags_of(text).items() if place in seen.owned}
        self._each_second()


def lags_of(statistics: str) -> dict[tuple[str, int], int]:
    """Return how far Kafka's client is behind in each partition, as far as it knows.

    Its own `consumer_lag` grows for ever: it does not see what transactions commit. So what counts
    is what it has passed on. The marks of transactions count as messages.
    """
    found = {}
    for topic, each in json.loads(statistics)["topics"].items():
        for number, partition in each["partitions"].items():
            taken = max(partition["app_offset"], partition["committed_offset"])
            if taken >= 0 and partition["ls_offset"] >= 0:
                found[topic, int(number)] = max(0, partition["ls_offset"] - taken)
    return found


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
                    # What is asked for is there. The default, 500 ms, was spent for each stage: a
                    # question about one partition has to be over before one about the next.
                    "fetch.wait.max.ms": 10,
                }
            )
        where = TopicPartition(topic, partition, after + 1)
        first, _ = self._consumer.get_watermark_offsets(where, timeout=_SILENT_S)
        if first > after + 1:
            raise LostInputsError(
                f"cluster: {key.decode()} cannot go on: in the topic {topic}, partition"
                f" {partition}, somebody else deleted what it needs from offset {after + 1} on, up"
                f" to {first}. See docs/scaling.md, ClusterStateLost"
            )
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
