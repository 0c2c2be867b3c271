"""The traffic by street of the last hour, in a topic of Kafka that all who serve HTTP read."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import structlog

from anonymizer.cluster.positions.source_windows import (
    SourceWindows,
    WindowPiece,
    decode_piece,
    encode_piece,
)

_FILE = b"F"
_PART_BYTES = 512 * 1024
"""Of the file in one message: Kafka takes 1 MiB by default."""


def file_parts(hour: int, content: bytes) -> Iterator[bytes]:
    """Yield the file of an hour, encoded, in parts that Kafka takes."""
    starts = range(0, len(content), _PART_BYTES)
    for piece, start in enumerate(starts):
        part = content[start : start + _PART_BYTES]
        yield encode_piece(_FILE, WindowPiece(0, hour, piece, start == starts[-1], part))


class LastHour:
    """Keeps the file of the last hour in memory.

    `malformed` is called for each message that cannot be read.

    Attributes
    ----------
    newest
        GeoJSON; None: there is none.
    """

    def __init__(self, malformed: Callable[[], None] = lambda: None) -> None:
        self.newest: bytes | None = None
        self._malformed = malformed
        self._hours: SourceWindows[bytes] = SourceWindows(1, most_waiting=0)
        self._log = structlog.get_logger()

    def keep(self, messages: Sequence[Any]) -> None:
        """Take in messages of Kafka; see `TopicReader`."""
        for message in messages:
            try:
                self.take(message.value() or b"")
            except ValueError as error:
                self._malformed()
                self._log.error("a message in Kafka cannot be read", problem=str(error))

    def take(self, value: bytes) -> None:
        """Take in a part; those of an hour come in order, and some again.

        Raises
        ------
        ValueError
            If it is none. It repeats nothing of it.
        """
        try:
            part = decode_piece(value, bytes, n_sources=1)
        except (ValueError, TypeError, RecursionError):
            part = None
        if value[:1] != _FILE or part is None:
            raise ValueError("this is no part of an hour of streets")
        for _, content in self._hours.take(part):
            self.newest = b"".join(content)
