"""What a worker takes from Kafka and what it sends, with its snapshots, in one transaction.

Kafka's own client does all of it. Offsets are committed with the generation of the consumer group,
and the producer has a transactional id: whoever was given up commits nothing any more. After any
failure there is a new one, as for a new process: Kafka then says what was committed.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from anonymizer.cluster.kafka import BATCH_BYTES
from anonymizer.cluster.topics import PARTITIONER
from anonymizer.extras import extra
from anonymizer.transport.kafka_clients import (
    ALL_THAT_FITS,
    LARGE_READ,
    MEMBER,
    MESSAGE_BYTES,
    reading,
    writing,
)
from anonymizer.transport.kafka_problems import KafkaLostError, Problems, reason_of

with extra("kafka"):
    from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

TRANSACTION_S = 10
"""Longest transaction. Until then, what a dead worker left open holds up all who read; a worker
that comes back under its name ends it at once."""
_SPARE = 1.25
"""A client that is silent for so many times the allowed time loses its partitions."""
_ANSWER_S = 30.0
Places = frozenset[tuple[str, int]]
"""Partitions, each as topic and number."""


class Contained(Protocol):
    """What else is read, whose offsets are in the transactions as well."""

    def flush(self) -> None:
        """Send what is made of what has been read."""
        ...

    def taken(self) -> tuple[list[TopicPartition], Any]:
        """Return how far each partition was read since the last commit, and by which member."""
        ...

    def committed(self) -> None:
        """Note that this is committed."""
        ...


def consumer_options(
    kafka: Mapping[str, str], *, group: str, name: str, silent_s: float
) -> dict[str, Any]:
    """Return the options of a consumer that takes part in transactions, see `Runner`."""
    return {
        # Of all that there is, the first time and where inputs are gone: a stage finds the gap
        # itself, and stands still (`LostInputsError`).
        **reading(kafka, group=group, problems=Problems()),
        **MEMBER,
        "group.instance.id": name,
        "max.poll.interval.ms": round(_SPARE * silent_s * 1000),
        # Not `cooperative-sticky`: a static member that dies between its two rounds comes
        # back to the first, and what it was to give up belongs to nobody.
        "partition.assignment.strategy": "range",
    }


class Transactions:
    """A member of the consumer group, and its producer.

    `poll` calls `assigned` and `revoked` with the partitions of this worker and those of them from
    which nobody has taken anything since it did, and when it has none (what was taken has been
    committed), and `statistics` about once a second with those of Kafka's client, as JSON.
    """

    def __init__(
        self,
        kafka: Mapping[str, str],
        *,
        group: str,
        name: str,
        silent_s: float,
        assigned: Callable[[Places, Places], None],
        revoked: Callable[[], None],
        statistics: Callable[[str], None],
    ) -> None:
        self._assigned, self._revoked = assigned, revoked
        self._taken: dict[tuple[str, int], int] = {}
        self._committed: dict[tuple[str, int], int] = {}
        self._contained: list[Contained] = []
        self._is_open = self._is_closing = False
        self._producer = Producer(
            {
                **writing(kafka, problems=Problems()),
                **ALL_THAT_FITS,
                "partitioner": PARTITIONER,
                "transactional.id": f"{group}.{name}",
                "transaction.timeout.ms": TRANSACTION_S * 1000,
                "message.timeout.ms": TRANSACTION_S * 1000,  # later ones are in no transaction
                "message.max.bytes": MESSAGE_BYTES,
                "batch.size": BATCH_BYTES,
                "linger.ms": 5,
            }
        )
        self._consumer = Consumer(
            {
                **consumer_options(kafka, group=group, name=name, silent_s=silent_s),
                **LARGE_READ,
                "statistics.interval.ms": 1000,
                "stats_cb": statistics,
            }
        )

    def join(self, topics: Sequence[str]) -> None:
        """End what a worker of this name has left open, and join the group."""
        self._producer.init_transactions(_ANSWER_S)
        self._consumer.subscribe(
            list(topics),
            on_assign=self._on_assign,
            on_revoke=self._on_revoke,
            on_lost=self._on_lost,
        )

    def poll(self, within_s: float) -> Any:  # noqa: ANN401  a message of the library
        """Return the next input, or None if there is none in time."""
        message = self._consumer.poll(within_s)
        if message is not None and message.error() is not None:
            raise KafkaException(message.error())
        return message

    def contain(self, other: Contained) -> None:
        """Let all transactions contain what is read elsewhere, too."""
        self._contained.append(other)

    def begin(self) -> None:
        """Begin a transaction, unless one has begun: it contains all that is sent from now on."""
        if not self._is_open:
            self._producer.begin_transaction()
            self._is_open = True

    def take(self, topic: str, partition: int, offset: int) -> None:
        """Let the present transaction contain an input."""
        self.begin()
        self._taken[topic, partition] = offset + 1

    def send(self, topic: str, key: bytes | None, value: bytes, *, at_ms: int) -> None:
        """Send a message of a unix time."""
        self._producer.produce(topic, value, key, timestamp=at_ms)

    def store(self, where: TopicPartition, key: bytes, value: bytes | None) -> None:
        """Write to a partition of a changelog."""
        self._producer.produce(where.topic, value, key, partition=where.partition)

    def commit(self) -> bool:
        """Commit what was taken and sent; return whether there was anything."""
        for other in self._contained:
            other.flush()
        if not self._is_open:
            return False
        offsets = [TopicPartition(*place, offset) for place, offset in self._taken.items()]
        groups = [(offsets, self._consumer.consumer_group_metadata() if offsets else None)]
        for taken, member in groups + [other.taken() for other in self._contained]:
            if taken:
                self._producer.send_offsets_to_transaction(taken, member, TRANSACTION_S)
        self._producer.commit_transaction(TRANSACTION_S)
        self._is_open = False
        self._committed |= self._taken
        self._taken.clear()
        for other in self._contained:
            other.committed()
        return True

    def close(self) -> None:
        """Disconnect. What was not committed is given up; as a member it stays for a session."""
        self._is_closing = True
        self._producer.purge(blocking=False)
        self._consumer.close()

    # What is raised in these goes through the library, which takes the errors of its own apart.

    def _on_assign(self, _: Consumer, partitions: Sequence[TopicPartition]) -> None:
        if self._is_closing:
            return
        with translated():
            places = {(each.topic, each.partition) for each in partitions}
            asked = [TopicPartition(*place) for place in places & self._committed.keys()]
            found = self._consumer.committed(asked, _ANSWER_S) if asked else []
            same = {
                (each.topic, each.partition)
                for each in found
                if each.offset == self._committed[each.topic, each.partition]
            }
            self._assigned(frozenset(places), frozenset(same))

    def _on_revoke(self, _: Consumer, __: Sequence[TopicPartition]) -> None:
        if not self._is_closing:
            with translated():
                self.commit()
                self._revoked()

    def _on_lost(self, _: Consumer, __: Sequence[TopicPartition]) -> None:
        if not self._is_closing:
            raise KafkaLostError("Kafka: has given the partitions of this worker to others")


_FENCED = (
    "FENCED_INSTANCE_ID",
    "PRODUCER_FENCED",
    "INVALID_PRODUCER_EPOCH",
    "_FENCED",
    "_FATAL",  # what follows one of these
)
"""Errors of a client in whose place Kafka has another one."""


class FencedError(KafkaLostError):
    """Kafka goes on with another client of this name alone.

    That one may be dead: a request to join outlives its process in the buffers of a Kafka that
    stands still, and may be read after that of the worker that has taken its place. Or this one was
    silent for so long that Kafka has ended its transaction.
    """


@contextmanager
def translated() -> Iterator[None]:
    """Say in the words of this package what Kafka's client raises in the block.

    KafkaLostError if a new attempt may do better; `FencedError` if another client may have this
    name.
    """
    try:
        yield
    except KafkaException as error:
        why = reason_of(error)
        if error.args[0].name() in _FENCED:
            raise FencedError(f"Kafka: goes on with another client of this name: {why}") from error
        raise KafkaLostError(f"Kafka: {why}") from error


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
