"""Keeps the releases of all stages in a file, from which a bridge answers queries."""

import time
from collections.abc import Callable, Mapping, Sequence
from threading import Event
from typing import Any

import structlog

from anonymizer.cluster.topic_reader import RETRY_S, TopicReader
from anonymizer.cluster.topics import Topic
from anonymizer.errors import StoreError
from anonymizer.pipeline.records.release_messages import decode_release
from anonymizer.store import ReleaseFile


class ReleaseKeeper:
    """Reads all releases, each once: the file knows what it has.

    Every bridge that answers queries has such a file. One that is lost is read again.

    `file` is closed by `close`; `malformed` is called for each message that cannot be read.
    """

    def __init__(
        self,
        options: Mapping[str, str],
        topic: Topic,
        file: ReleaseFile,
        *,
        malformed: Callable[[], None],
    ) -> None:
        self._topic, self._file, self._malformed = topic, file, malformed
        self._log = structlog.get_logger()
        self._stopping = Event()
        self._reader = TopicReader(
            options, topic, self._keep, offsets=self._offsets, stopping=self._stopping
        )

    @property
    def lag(self) -> int:
        """Messages that are not in the file yet, as far as is known."""
        return self._reader.lag

    def close(self) -> None:
        """End after the present messages, and close the file."""
        self._reader.close()
        self._file.close()

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
        self._stopping.wait(RETRY_S)
