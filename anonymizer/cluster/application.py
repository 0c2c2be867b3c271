"""The application of Quix Streams in which a worker runs its stages, and what its errors mean."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import Any

from anonymizer.cluster.kafka import MESSAGE_BYTES
from anonymizer.cluster.resident import StandstillError
from anonymizer.cluster.topics import PARTITIONER, Topic
from anonymizer.errors import AnonymizerError, TransportError
from anonymizer.extras import extra
from anonymizer.pipeline.stage import Send
from anonymizer.transport.kafka_problems import KafkaLostError, reason_of

with extra("cluster"):
    from confluent_kafka import KafkaError, KafkaException
    from confluent_kafka.admin import AdminClient, NewTopic
    from quixstreams import Application
    from quixstreams.exceptions import QuixException
    from quixstreams.models.serializers import Serializer
    from quixstreams.state.exceptions import InvalidStoreChangelogOffset
    from quixstreams.state.rocksdb import RocksDBOptions

SESSION_S = 6
"""Time after which a worker that is silent is replaced: the least that Kafka's defaults admit."""
TRANSACTION_S = 10
"""Longest transaction. Until then, what a dead worker left open holds up all who read; a worker
that comes back under its name ends it at once."""
_SEGMENT_MS = 60_000
"""Age at which a part of the state's topic may be compacted, so that there is little to read."""
_BUFFER_BYTES = 8 << 20
"""Memory in which RocksDB collects what is written before it writes a file."""


class StageApplication(Application):  # type: ignore[misc]  # the library is not there, see _Value
    """Outputs, state and offsets of stages in one transaction.

    Parameters
    ----------
    kafka, group, name, state_dir, commit_s
        See `Runner`.
    statistics
        Called about once a second with those of Kafka's client, as JSON.
    ending
        Set when the application is told to end: what fails then is no reason to begin again.
    """

    def __init__(
        self,
        kafka: Mapping[str, str],
        *,
        group: str,
        name: str,
        state_dir: Path,
        commit_s: float,
        statistics: Callable[[str], None],
        ending: Event,
    ) -> None:
        rest = {key: value for key, value in kafka.items() if key != "bootstrap.servers"}
        self._ending, self._statistics = ending, statistics
        super().__init__(
            kafka["bootstrap.servers"],
            consumer_group=group,
            processing_guarantee="exactly-once",
            auto_offset_reset="earliest",
            commit_interval=commit_s,
            # An idle poll must not keep a transaction open.
            consumer_poll_timeout=commit_s / 2,
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
                "stats_cb": self._note_statistics,
            },
            producer_extra_config={
                **rest,
                "partitioner": PARTITIONER,
                "transactional.id": f"{group}.{name}",
                "transaction.timeout.ms": TRANSACTION_S * 1000,
                "message.timeout.ms": TRANSACTION_S * 1000,  # later ones are in no transaction
                "message.max.bytes": MESSAGE_BYTES,
                "compression.type": "lz4",
                "linger.ms": 5,
            },
        )

    def _note_statistics(self, text: str) -> None:
        self._statistics(text)
        if self._ending.is_set():  # it was told to end before it ran
            self.stop()

    def stage_topic(self, topic: Topic) -> Any:  # noqa: ANN401  the library's
        """Return a topic of inputs or messages of stages."""
        return self.topic(
            topic.name,
            key_deserializer="bytes",
            value_deserializer="bytes",
            key_serializer="bytes",
            value_serializer=_Value(),
        )

    def stop(self, fail: bool = False) -> None:  # noqa: FBT001, FBT002  as the library's
        """Stop; the library calls it at a signal, and at its own end."""
        if not fail:
            self._ending.set()
        super().stop(fail)


class _Value(Serializer):  # type: ignore[misc]  # the library is not there when types are checked
    """The content of a message of a stage."""

    def __call__(self, value: Send, ctx: object) -> bytes:  # noqa: ARG002  the library's
        return value.value


def make_changelogs(kafka: Mapping[str, str], group: str, inputs: Sequence[Topic]) -> None:
    """Create the topics of the state; Quix Streams would let them grow to a gigabyte each."""
    admin = AdminClient(kafka)
    made = admin.create_topics(
        [
            NewTopic(
                f"changelog__{group}--{topic.name}--default",
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
                raise KafkaLostError(f"Kafka: {reason_of(error)}") from error


@contextmanager
def translated() -> Iterator[None]:
    """Say in the words of this package what the library and Kafka's client raise in the block.

    Raises
    ------
    KafkaLostError
        If a new application may do better.
    StandstillError
        If the state on the disk is newer than what Kafka has of it.
    TransportError
        If another worker has this name.
    """
    try:
        yield
    except AnonymizerError:
        raise
    except KafkaException as error:
        raise _known_as(error.args[0], reason_of(error)) from error
    except InvalidStoreChangelogOffset as error:
        raise _without_changelog() from error
    except QuixException as error:
        if isinstance(error.__cause__, AnonymizerError):  # in a callback
            raise error.__cause__ from None
        if isinstance(error.__cause__, InvalidStoreChangelogOffset):
            raise _without_changelog() from error
        raise _known_as(getattr(error, "error", None), str(error)) from error
    except RuntimeError as error:  # the library's, where Kafka does not answer
        raise KafkaLostError(f"Kafka: {error}") from error


def _known_as(error: object, why: str) -> TransportError:
    """Return what an error of Kafka's client means for this worker."""
    if isinstance(error, KafkaError) and error.code() == KafkaError.FENCED_INSTANCE_ID:
        return TransportError(f"Kafka: another worker has this name: {why}")
    return KafkaLostError(f"Kafka: {why}")


def _without_changelog() -> StandstillError:
    return StandstillError(
        "cluster: cannot go on: the state on the disk of this worker is newer than what Kafka has"
        " of it: it came back with an empty disk, or has lost some. See docs/scaling.md,"
        " ClusterStateLost"
    )
