"""Seals: each row of the store has a checksum, so that no damaged row is taken for a sound one.

SQLite checks the form of its file, not what stands in the rows. Temporary triggers of a connection
seal whatever it writes.
"""

import sqlite3
from collections.abc import Mapping
from types import MappingProxyType
from zlib import crc32

from anonymizer.store.parts_log import are_as_made, tables_of_parts

_SCHEMA = "schema"
"""Name of the secret that is the checksum of all tables and indices, but for those of parts."""

SEALED: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "secrets": ("name", "value"),
        "streams": ("id", "name", "shape", "newest", "closed_before", "next_message"),
        "accounts": ("stream", "outcome", "n"),
        "windows": ("stream", "window", "starts", "ends", "closed_at", "summary"),
        "classes": (
            "number", "stream", "window", "topic", "payload", "n_parts", "published_at",
        ),
        "vehicles": ("stream", "vehicle", "seen", "state"),
        "offsets": ("topic", "partition", "next"),
    }
)  # fmt: skip
"""The columns of each table, the first of which name the row."""
_KEY_COLUMNS = {"secrets": 1, "streams": 1, "classes": 1}
"""How many name the row; 2 in other tables."""


def seal_of(*values: object) -> int:
    """Return the checksum of values as SQLite stores them: none, numbers, texts and bytes.

    It notices every flipped bit, and damage by chance but once in four billion rows; it is no proof
    against somebody who writes to the file.
    """
    said = [len(value) if isinstance(value, bytes) else value for value in values]
    seal = crc32(repr(said).encode())
    for value in values:
        if isinstance(value, bytes):
            seal = crc32(value, seal)
    return seal


def know_seals(connection: sqlite3.Connection) -> None:
    """Let statements of a connection call `row_seal`."""
    connection.create_function("row_seal", -1, seal_of, deterministic=True)


def keep_sealed(connection: sqlite3.Connection) -> None:
    """Seal all rows that the connection writes from now on."""
    for table, columns in SEALED.items():
        key = columns[: _KEY_COLUMNS.get(table, 2)]
        row = " AND ".join(f"{column} = new.{column}" for column in key)
        seal = f"row_seal({', '.join(f'new.{column}' for column in columns)})"
        for event, when in (
            (
                "INSERT",
                "WHEN new.seal IS NULL",
            ),  # else the statement has sealed it, which is faster
            (f"UPDATE OF {', '.join(columns)}", ""),
        ):
            connection.execute(
                f"CREATE TEMP TRIGGER {table}_{event[:6]} AFTER {event} ON main.{table} {when}"  # noqa: S608  names of ours
                f" BEGIN UPDATE {table} SET seal = {seal} WHERE {row}; END"
            )


def seal_all(connection: sqlite3.Connection) -> None:
    """Seal the rows and the tables of a file in which nothing is sealed."""
    for table, columns in SEALED.items():
        connection.execute(f"UPDATE {table} SET seal = row_seal({', '.join(columns)})")  # noqa: S608  names of ours
    for table in tables_of_parts(connection):
        connection.execute(
            f'UPDATE "{table}" SET seal = row_seal(?, parts, replaced)',  # noqa: S608  two numbers
            (table,),
        )
    connection.execute(
        "INSERT OR REPLACE INTO secrets (name, value, seal) VALUES (?1, ?2, row_seal(?1, ?2))",
        (_SCHEMA, _schema_seal(connection)),
    )


def all_sound(connection: sqlite3.Connection) -> bool:
    """Return whether all rows and tables are as they were written."""
    stated = connection.execute("SELECT value FROM secrets WHERE name = ?", (_SCHEMA,)).fetchone()
    if not are_as_made(connection) or stated != (_schema_seal(connection),):
        return False
    wanted = {table: f"row_seal({', '.join(columns)})" for table, columns in SEALED.items()}
    wanted |= {
        table: f"row_seal('{table}', parts, replaced)" for table in tables_of_parts(connection)
    }
    return not any(
        connection.execute(
            f'SELECT 1 FROM "{table}" WHERE seal IS NOT {seal} LIMIT 1'  # noqa: S608  names of ours
        ).fetchone()
        for table, seal in wanted.items()
    )


def _schema_seal(connection: sqlite3.Connection) -> bytes:
    """Return the checksum of how the file is made, but for tables that come and go."""
    parts = set(tables_of_parts(connection))
    rows = connection.execute("SELECT name, type, tbl_name, sql FROM sqlite_master").fetchall()
    told = (field for row in sorted(rows, key=repr) if row[0] not in parts for field in row)
    return b"%d" % seal_of(*told)
