"""Keeps the releases of all stages in a file, from which a bridge answers queries."""

import time
from collections.abc import Callable, Mapping, Sequence
from threading import Event, Thread
from typing import Any

import structlog

from anonymizer.cluster.clients import lag_of
from anonymizer.cluster.kafka import MESSAGE_BYTES
from anonymizer.cluster.topics import Topic
from anonymizer.errors import StoreError
from anonymizer.extras import extra
from anonymizer.pipeline.records.release_messages import decode_release
from anonymizer.store import ReleaseFile
from anonymizer.transport.kafka_problems import Problems, reason_of

with extra("kafka"):
    from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, TopicPartition

_POLL_S = 0.5
_AT_ONCE = 256
"""Most messages in one transaction."""
_RETRY_S = 2.0
"""Time before the file, or Kafka, is tried again."""


class ReleaseKeeper:
    """Reads all releases in a thread of its own, each once: the file knows what it has.

    Every bridge that answers queries has such a file. One that is lost is read again.

    `file` is closed by `close`; `malformed` is called for each message that cannot be read; `lag`:
    messages that are not in the file yet, as far as is known.
    """

    def __init__(
        self,
        options: Mapping[str, str],
        topic: Topic,
        file: ReleaseFile,
        *,
        malformed: Callable[[], None],
    ) -> None:
        self.lag = 0
        self._topic, self._file, self._malformed = topic, file, malformed
        self._problems = problems = Problems()
        self._consumer = Consumer(
            {
                **options,
                "group.id": topic.name,  # required; there is no group
                "isolation.level": "read_committed",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "fetch.message.max.bytes": MESSAGE_BYTES,
                "error_cb": lambda error: problems.note(error.str()),
                "log_level": 0,
            }
        )
        self._log = structlog.get_logger()
        self._stopping = Event()
        self._thread = Thread(target=self._serve, name="releases", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread after the present messages, and close the file."""
        self._stopping.set()
        self._thread.join()
        self._consumer.close()
        self._file.close()

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
                self._stopping.wait(_RETRY_S)

    def _offsets(self) -> Mapping[int, int]:
        while not self._stopping.is_set():
            try:
                return self._file.offsets(self._topic.name)
            except StoreError as error:
                self._wait(error)
        return {}

    def _keep(self, messages: Sequence[Any]) -> None:
        if not messages:
            return
        parts = []
        for message in messages:
            try:
                parts.append(decode_release(message.value() or b""))
            except ValueError as error:
                self._malformed()
                self._log.error("a message in Kafka cannot be read", problem=str(error))
        offsets = {message.partition(): message.offset() + 1 for message in messages}
        while not self._stopping.is_set():
            try:
                self._file.add(parts, topic=self._topic.name, offsets=offsets, now=time.time())
            except StoreError as error:
                self._wait(error)
            else:
                return

    def _wait(self, error: StoreError) -> None:
        self._log.error("releases wait", problem=str(error))
        self._stopping.wait(_RETRY_S)
