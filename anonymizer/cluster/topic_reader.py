"""Reads all that is in a topic of published things, in a thread of its own."""

from collections.abc import Callable, Mapping, Sequence
from threading import Event, Thread
from typing import Any

from anonymizer.cluster.clients import lag_of
from anonymizer.cluster.topics import Topic
from anonymizer.extras import extra
from anonymizer.transport.kafka_clients import LARGE_READ, reading
from anonymizer.transport.kafka_problems import Problems, reason_of

with extra("kafka"):
    from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, TopicPartition

_POLL_S = 0.5
_AT_ONCE = 256
"""Most messages that are kept together."""
RETRY_S = 2.0
"""Time before Kafka, or what keeps the messages, is tried again."""


class TopicReader:
    """Passes on what is committed to every partition, from an offset on.

    `keep` is called with messages, in its thread; `offsets` returns where to begin, by number of
    the partition; without one, at the beginning. `lag`: messages that were not passed on yet, as
    far as is known. `stopping` is set when the thread is to end.
    """

    def __init__(
        self,
        options: Mapping[str, str],
        topic: Topic,
        keep: Callable[[Sequence[Any]], None],
        *,
        offsets: Callable[[], Mapping[int, int]] = dict,
        stopping: Event | None = None,
    ) -> None:
        self.lag = 0
        self._topic, self._keep, self._offsets = topic, keep, offsets
        self._problems = Problems()
        told = reading(options, group=topic.name, problems=self._problems)
        self._consumer = Consumer({**told, **LARGE_READ})
        self._stopping = stopping or Event()
        self._thread = Thread(target=self._serve, name=topic.name, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread after the present messages."""
        self._stopping.set()
        self._thread.join()
        self._consumer.close()

    def _serve(self) -> None:
        offsets = self._offsets()
        self._consumer.assign(
            [
                TopicPartition(self._topic.name, number, offsets.get(number, OFFSET_BEGINNING))
                for number in range(self._topic.n_partitions)
            ]
        )
        while not self._stopping.is_set():
            try:
                messages = self._consumer.consume(_AT_ONCE, _POLL_S)
                self._keep([message for message in messages if message.error() is None])
                self.lag = lag_of(self._consumer)
            except KafkaException as error:
                self._problems.note(reason_of(error))
                self._stopping.wait(RETRY_S)
