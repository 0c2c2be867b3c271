"""The files that outputs make, in a topic of Kafka that all who serve HTTP read."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import structlog

from anonymizer.cluster.packed_state import pack, unpack
from anonymizer.cluster.positions.source_windows import SourceWindows, WindowPiece
from anonymizer.outputs.output import HeldFile
from anonymizer.outputs.pieces import PIECE_BYTES

_FILE = b"F"


def file_parts(file: HeldFile) -> Iterator[bytes]:
    """Yield a file, encoded, in parts that Kafka takes."""
    name, window, content = file
    starts = range(0, len(content), PIECE_BYTES)
    for piece, start in enumerate(starts):
        part = content[start : start + PIECE_BYTES]
        yield _FILE + pack([name, window, piece, start == starts[-1], part])


class HeldFiles:
    """Keeps the newest file of each name in memory.

    `malformed` is called for each message that cannot be read.
    """

    def __init__(self, malformed: Callable[[], None] = lambda: None) -> None:
        self._malformed = malformed
        self._newest: dict[str, bytes] = {}
        self._coming: dict[str, SourceWindows[bytes]] = {}
        self._log = structlog.get_logger()

    def newest(self, name: str) -> bytes | None:
        """Return the newest file of a name; None: there is none."""
        return self._newest.get(name)

    def keep(self, messages: Sequence[Any]) -> None:
        """Take in messages of Kafka; see `TopicReader`."""
        for message in messages:
            try:
                self.take(message.value() or b"")
            except ValueError as error:
                self._malformed()
                self._log.error("a message in Kafka cannot be read", problem=str(error))

    def take(self, value: bytes) -> None:
        """Take in a part; those of a file come in order, and some again.

        Raises `ValueError` if it is none. It repeats nothing of it.
        """
        try:
            name, part = _part_in(value)
        except (ValueError, TypeError, RecursionError):
            raise ValueError("this is no part of a file") from None
        coming = self._coming.setdefault(name, SourceWindows(1, most_waiting=0))
        for _, content in coming.take(part):
            self._newest[name] = b"".join(content)


def _part_in(value: bytes) -> tuple[str, WindowPiece[bytes]]:
    name, window, piece, is_last, content = unpack(value[1:])
    right = zip((name, window, piece, content), (str, int, int, bytes), strict=True)
    if value[:1] != _FILE or not all(isinstance(each, kind) for each, kind in right):
        raise ValueError("this is no part of a file")
    return name, WindowPiece(0, window, piece, bool(is_last), content)
