"""The raw parts of open windows: each window in a table, with a row for each batch of messages.

A row has the parts that the batch added, and the numbers of those that it replaced. Storing a part
costs a tenth of what a row of its own would. Emptying a whole table overwrites every page of it.
Deleting some rows does not: SQLite leaves copies of rows on pages that other rows still use, even
with `secure_delete`. A stream keeps its tables for its next windows: to make or to drop one costs
more than to fill it, and more with every further table.
"""

import sqlite3
from collections.abc import Sequence

import msgspec

from anonymizer.pipeline.records.store_port import PartRow

_TABLE = (
    'CREATE TABLE "{table}" (parts BLOB NOT NULL, replaced BLOB NOT NULL, seal INTEGER NOT NULL)'
)
_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' AND name GLOB 'parts [0-9]*'"
_MOST_REPLACED = 10_000
"""A log with more replaced parts than this, and than others, is written again without them."""
_ROW_PARTS = 5_000
"""Parts in a row of such a log."""
_PARTS = msgspec.msgpack.Decoder(list[PartRow])
_NUMBERS = msgspec.msgpack.Decoder(list[int])


def parts_table(stream: int, number: int) -> str:
    """Return the name of a table of a stream."""
    return f"parts {stream} {number}"


def tables_of_parts(connection: sqlite3.Connection) -> list[str]:
    """Return the names of the tables with parts of open windows."""
    return [name for (name,) in connection.execute(_TABLES)]


def are_as_made(connection: sqlite3.Connection) -> bool:
    """Return whether the tables of parts are declared as here, or as an older file was changed."""
    rows = connection.execute(_TABLES.replace("name", "name, tbl_name, sql", 1)).fetchall()
    return all(
        of == name and sql in {made := _TABLE.format(table=name), made.replace(" NOT NULL)", ")")}
        for name, of, sql in rows
    )


def stored_parts(connection: sqlite3.Connection, table: str) -> list[PartRow]:
    """Return the parts of an open window that were not replaced, in the order of their arrival."""
    rows = connection.execute(
        f'SELECT parts, replaced FROM "{table}"'  # noqa: S608  two numbers
    ).fetchall()
    replaced = {number for _, packed in rows for number in _NUMBERS.decode(packed)}
    parts = [part for packed, _ in rows for part in _PARTS.decode(packed)]
    return [part for part in parts if part.number not in replaced]


class PartsLog:
    """The parts of the open windows of all streams; the caller makes the transactions."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._db = connection
        self._encode = msgspec.msgpack.Encoder().encode
        self._look()

    def _look(self) -> None:
        """See which tables there are; `read` says which of them have which windows."""
        self._table_of: dict[tuple[int, int], str] = {}
        self._tables: dict[int, list[str]] = {}
        self._free: dict[int, list[str]] = {}
        for table in tables_of_parts(self._db):
            self._tables.setdefault(int(table.split()[1]), []).append(table)
        # Parts written and parts replaced, which say when to write a log again.
        self._n_of: dict[tuple[int, int], tuple[int, int]] = {}

    def begin_again(self) -> None:
        """Look at everything again, after a transaction that failed."""
        self._look()
        for stream in self._tables:
            self.read(stream)

    def append(
        self, stream: int, window: int, parts: Sequence[PartRow], replaced: Sequence[int] = ()
    ) -> None:
        """Store the parts that a batch adds to a window, and the numbers of those it replaces.

        The parts that are there already must have been read.
        """
        table = self._table_of.get((stream, window)) or self._new_table(stream, window)
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
        self._free[stream] = []
        for table in self._tables.get(stream, []):
            parts = stored_parts(self._db, table)
            if parts:
                self._table_of[stream, parts[0].window] = table
                self._n_of[stream, parts[0].window] = len(parts), 0
            else:
                self._free[stream].append(table)
            found += parts
        return sorted(found, key=lambda part: part.number)

    def drop(self, stream: int, window: int) -> None:
        """Erase the parts of a window."""
        table = self._table_of.pop((stream, window), None)
        self._n_of.pop((stream, window), None)
        if table:
            self._db.execute(f'DELETE FROM "{table}"')  # noqa: S608  two numbers
            self._free.setdefault(stream, []).append(table)

    def drop_all(self, stream: int) -> int:
        """Erase the parts of all open windows of a stream, and its tables; return their number."""
        n = len(self.read(stream))
        for key in [key for key in self._table_of if key[0] == stream]:
            del self._table_of[key], self._n_of[key]
        del self._free[stream]
        for table in self._tables.pop(stream, []):
            self._db.execute(f'DROP TABLE "{table}"')
        return n

    def _new_table(self, stream: int, window: int) -> str:
        free, tables = self._free.get(stream), self._tables.setdefault(stream, [])
        if free:
            table = free.pop()
        else:
            number = 1 + max((int(each.split()[2]) for each in tables), default=0)
            table = parts_table(stream, number)
            self._db.execute(_TABLE.format(table=table))
            tables.append(table)
        self._table_of[stream, window] = table
        return table

    def _write_again(self, stream: int, window: int) -> None:
        parts = stored_parts(self._db, self._table_of[stream, window])
        self.drop(stream, window)
        for first in range(0, len(parts), _ROW_PARTS):
            self.append(stream, window, parts[first : first + _ROW_PARTS])
