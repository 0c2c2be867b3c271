"""The raw parts of open windows: a table for each window, with a row for each batch of messages.

A row has the parts that the batch added, and the numbers of those that it replaced. Storing a part
costs a tenth of what a row of its own would. Dropping a table overwrites every page of it. Deleting
rows does not: SQLite leaves copies of rows on pages that other rows still use, even with
`secure_delete`.
"""

import sqlite3
from collections.abc import Sequence

import msgspec

from anonymizer.pipeline.records.store_port import PartRow

_TABLE = (
    'CREATE TABLE IF NOT EXISTS "{table}"'
    " (parts BLOB NOT NULL, replaced BLOB NOT NULL, seal INTEGER NOT NULL)"
)
_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' AND name GLOB 'parts [0-9]*'"
_MOST_REPLACED = 10_000
"""A log with more replaced parts than this, and than others, is written again without them."""
_ROW_PARTS = 5_000
"""Parts in a row of such a log."""
_PARTS = msgspec.msgpack.Decoder(list[PartRow])
_NUMBERS = msgspec.msgpack.Decoder(list[int])


def parts_table(stream: int, window: int) -> str:
    """Return the name of the table with the parts of an open window."""
    return f"parts {stream} {window}"


def tables_of_parts(connection: sqlite3.Connection) -> list[str]:
    """Return the names of the tables with parts of open windows."""
    return [name for (name,) in connection.execute(_TABLES)]


def open_windows(connection: sqlite3.Connection, stream: int) -> list[int]:
    """Return the windows of a stream that have a table of parts."""
    tables = map(str.split, tables_of_parts(connection))
    return [int(window) for _, of, window in tables if int(of) == stream]


def stored_parts(connection: sqlite3.Connection, stream: int, window: int) -> list[PartRow]:
    """Return the parts of an open window that were not replaced, in the order of their arrival."""
    rows = connection.execute(
        f'SELECT parts, replaced FROM "{parts_table(stream, window)}"'  # noqa: S608  two numbers
    ).fetchall()
    replaced = {number for _, packed in rows for number in _NUMBERS.decode(packed)}
    parts = [part for packed, _ in rows for part in _PARTS.decode(packed)]
    return [part for part in parts if part.number not in replaced]


class PartsLog:
    """The parts of the open windows of all streams; the caller makes the transactions.

    Parameters
    ----------
    connection
        The open file.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._db = connection
        self._encode = msgspec.msgpack.Encoder().encode
        # Parts written and parts replaced. They only say when to write a log again, so it does no
        # harm that a transaction may fail after they have been counted.
        self._n_of: dict[tuple[int, int], tuple[int, int]] = {}

    def append(
        self, stream: int, window: int, parts: Sequence[PartRow], replaced: Sequence[int] = ()
    ) -> None:
        """Store the parts that a batch adds to a window, and the numbers of those it replaces."""
        table = parts_table(stream, window)
        self._db.execute(_TABLE.format(table=table))
        self._db.execute(
            f'INSERT INTO "{table}" VALUES (?1, ?2, row_seal(?3, ?1, ?2))',  # noqa: S608  two numbers
            (self._encode(parts), self._encode(replaced), table),
        )
        n_parts, n_replaced = self._n_of.get((stream, window), (0, 0))
        n_parts, n_replaced = n_parts + len(parts), n_replaced + len(replaced)
        self._n_of[stream, window] = n_parts, n_replaced
        if n_replaced > max(_MOST_REPLACED, n_parts // 2):
            self._write_again(stream, window)

    def erase(self, stream: int, window: int, numbers: Sequence[int]) -> None:
        """Erase parts of a window."""
        self.append(stream, window, [], numbers)
        self._write_again(stream, window)

    def read(self, stream: int) -> list[PartRow]:
        """Return the parts of all open windows of a stream, in the order of their arrival."""
        found: list[PartRow] = []
        for window in open_windows(self._db, stream):
            parts = stored_parts(self._db, stream, window)
            self._n_of[stream, window] = len(parts), 0
            found += parts
        return sorted(found, key=lambda part: part.number)

    def drop(self, stream: int, window: int) -> None:
        """Erase the parts of a window."""
        self._db.execute(f'DROP TABLE IF EXISTS "{parts_table(stream, window)}"')
        self._n_of.pop((stream, window), None)

    def drop_all(self, stream: int) -> int:
        """Erase the parts of all open windows of a stream; return their number."""
        n = len(self.read(stream))
        for window in open_windows(self._db, stream):
            self.drop(stream, window)
        return n

    def _write_again(self, stream: int, window: int) -> None:
        parts = stored_parts(self._db, stream, window)
        self.drop(stream, window)
        for first in range(0, len(parts), _ROW_PARTS):
            self.append(stream, window, parts[first : first + _ROW_PARTS])
