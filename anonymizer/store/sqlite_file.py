"""The SQLite file of the store: its schema, its lock, and the checks when it is opened.

Only one process uses the file at a time, and only its user can read it.
"""

import errno
import fcntl
import os
import secrets
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from anonymizer.errors import SettingsError, StoreError
from anonymizer.pipeline.records.store_port import PartRow
from anonymizer.store.parts_log import PartsLog, open_windows, parts_table
from anonymizer.store.store_mark import StoreMark

APPLICATION_ID = 0x616E7265
VERSION = 4
READABLE = (1, 2, 3, VERSION)
"""Versions whose published windows can be read; a gateway turns an older file into the newest."""
_KEY_BYTES = 32
_MODE = 0o600
_DISK_CODES = {
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_CANTOPEN,
}
_DISK_ERRNOS = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.EFBIG}

_OPEN = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
"""Whoever can put a link there must not choose which file is changed."""
_SEAL_BYTES = 8
_SEALED_STREAMS = "SELECT id, newest, name, shape, closed_before, next_message FROM streams"
_SEALED_VEHICLES = "SELECT stream, vehicle, state FROM vehicles"

SCHEMA = """
CREATE TABLE secrets (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;

CREATE TABLE streams (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    shape TEXT NOT NULL,
    newest BLOB NOT NULL,            -- newest event time of each source, float64; in a closed
                                     -- window, only the end of that window; sealed
    closed_before INTEGER,           -- windows before this one take nothing more
    next_message INTEGER NOT NULL
);

CREATE TABLE accounts (
    stream INTEGER NOT NULL,
    outcome TEXT NOT NULL,           -- 'received', 'published', 'suppressed/overload', ...
    n INTEGER NOT NULL,
    PRIMARY KEY (stream, outcome)
) WITHOUT ROWID;

CREATE TABLE windows (
    stream INTEGER NOT NULL,
    window INTEGER NOT NULL,
    starts REAL NOT NULL,
    ends REAL NOT NULL,
    closed_at REAL NOT NULL,
    summary TEXT NOT NULL,           -- JSON: sizes and measures
    PRIMARY KEY (stream, window)
) WITHOUT ROWID;

-- Published, or about to be: exactly these bytes, whatever happens.
CREATE TABLE classes (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    stream INTEGER NOT NULL,
    window INTEGER NOT NULL,
    topic TEXT NOT NULL,
    payload BLOB NOT NULL,
    n_parts INTEGER NOT NULL,
    published_at REAL
);
CREATE INDEX waiting ON classes (number) WHERE published_at IS NULL;
CREATE INDEX of_window ON classes (stream, window);

-- History of each vehicle: what its published classes have in common over all windows.
CREATE TABLE vehicles (
    stream INTEGER NOT NULL,
    vehicle BLOB NOT NULL,
    seen INTEGER NOT NULL,           -- last window that it was published in
    state BLOB NOT NULL,             -- sealed
    PRIMARY KEY (stream, vehicle)
) WITHOUT ROWID;
CREATE INDEX unseen ON vehicles (stream, seen);
"""


def seal(value: bytes, *key: object) -> bytes:
    """Return a value with a checksum of it and of the row that it belongs to."""
    digest = blake2b(value, digest_size=_SEAL_BYTES)
    digest.update(repr(key).encode())
    return value + digest.digest()


def unseal(sealed: bytes, *key: object) -> bytes:
    """Return the value that was sealed.

    Raises
    ------
    sqlite3.DatabaseError
        If it is not as it was stored.
    """
    value = sealed[:-_SEAL_BYTES]
    if seal(value, *key) != sealed:
        raise sqlite3.DatabaseError("a row is damaged")
    return value


def seal_rows(connection: sqlite3.Connection) -> None:
    """Seal all rows, of a file in which none is."""
    for of, newest, *fields in connection.execute(_SEALED_STREAMS).fetchall():
        sealed = seal(newest, of, *fields)
        connection.execute("UPDATE streams SET newest = ? WHERE id = ?", (sealed, of))
    for of, vehicle, state in connection.execute(_SEALED_VEHICLES).fetchall():
        connection.execute(
            "UPDATE vehicles SET state = ? WHERE (stream, vehicle) = (?, ?)",
            (seal(state, of, vehicle), of, vehicle),
        )


def _all_sealed(connection: sqlite3.Connection) -> bool:
    try:
        for of, newest, *fields in connection.execute(_SEALED_STREAMS):
            unseal(newest, of, *fields)
        for of, vehicle, state in connection.execute(_SEALED_VEHICLES):
            unseal(state, of, vehicle)
    except sqlite3.DatabaseError:
        return False
    return True


def erase_log(connection: sqlite3.Connection) -> bool:
    """Empty the write-ahead log, which has copies of erased data; return whether it is empty.

    It is not while another process reads the file for longer than the time-out of SQLite.
    """
    (busy, *_) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    return not busy


@contextmanager
def usable(path: Path) -> Iterator[None]:
    """Raise StoreError where SQLite fails in the block."""
    try:
        yield
    except sqlite3.Error as error:
        raise disk_error(path, error) from None


@contextmanager
def transaction(connection: sqlite3.Connection, path: Path) -> Iterator[None]:
    """Make all changes of the block, or none; raise StoreError where SQLite fails."""
    with usable(path):
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:  # also if interrupted: a part must never be committed
            if connection.in_transaction:  # if the disk is full, SQLite has ended it already
                connection.execute("ROLLBACK")
            raise
        connection.execute("COMMIT")


def purge(connection: sqlite3.Connection, *, before: float) -> None:
    """Erase the published windows that closed before a time, in unix seconds."""
    # Whole windows only: a query with a larger k would have a different answer for a part.
    connection.execute(
        "DELETE FROM classes WHERE published_at IS NOT NULL AND EXISTS (SELECT 1 FROM windows"
        " AS w WHERE w.stream = classes.stream AND w.window = classes.window"
        " AND w.closed_at < ?)",
        (before,),
    )
    connection.execute(
        "DELETE FROM windows WHERE closed_at < ? AND NOT EXISTS"
        " (SELECT 1 FROM classes AS c WHERE c.stream = windows.stream"
        " AND c.window = windows.window)",
        (before,),
    )


class OpenFile(NamedTuple):
    """A store that is open: its connection, and the lock and the mark that `close` settles."""

    db: sqlite3.Connection
    lock: int
    mark: StoreMark

    def close(self) -> None:
        """Close it, and note what it is now."""
        try:
            self.db.close()
            with suppress(OSError):  # it is checked row by row then, as after a crash
                self.mark.close()
        finally:
            os.close(self.lock)


def open_file(path: Path) -> OpenFile:
    """Open or create the file.

    Raises
    ------
    SettingsError
        If it cannot be created or used, belongs to another program, is damaged, missing where
        there was one, or not the one that was used last, has another version, or is in use by
        another gateway.
    StoreError
        If the disk is full, read-only or broken.
    """
    lock = _lock(path)
    try:
        mark = StoreMark(path)
        mark.check_there()
        _make_private(path)
        return OpenFile(_connect(path, mark), lock, mark)
    except BaseException:  # also if interrupted: the lock must be released
        os.close(lock)
        raise


def store_error(path: Path, problem: str) -> SettingsError:
    """Return the error that names the file and its problem."""
    return SettingsError(f"store.path: {path}: {problem}")


def disk_error(path: Path, problem: object) -> StoreError:
    """Return the error that says that the file cannot be used now."""
    return StoreError(f"store.path: {path}: cannot be used: {problem}")


def _os_error(path: Path, error: OSError) -> SettingsError | StoreError:
    if error.errno == errno.ELOOP:
        return store_error(path, "cannot be used: it is a symbolic link; name the file itself")
    if error.errno in _DISK_ERRNOS:
        return disk_error(path, error.strerror)
    return store_error(path, f"cannot be used: {error.strerror}")


def _lock(path: Path) -> int:
    """Lock the file for this process; the lock is released when the process ends in any way."""
    try:
        # A separate file: closing any descriptor of the database would release SQLite's locks.
        lock = os.open(f"{path}-lock", _OPEN, _MODE)
    except OSError as error:
        raise _os_error(path, error) from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        raise store_error(path, "is in use by another gateway") from None
    return lock


def _make_private(path: Path) -> None:
    try:
        made = os.open(path, _OPEN, _MODE)
        try:
            if not stat.S_ISREG(os.fstat(made).st_mode):
                raise store_error(path, "cannot be used: it is no regular file")
            os.fchmod(made, _MODE)  # SQLite uses the same mode for its log and shared memory
        finally:
            os.close(made)
    except OSError as error:
        raise _os_error(path, error) from None


def _connect(path: Path, mark: StoreMark) -> sqlite3.Connection:
    changed = mark.content_changed()
    # It is used by one thread at a time, which may not be this one.
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    try:
        for pragma in (
            "journal_mode=WAL",
            "synchronous=FULL",  # the broker gets its acknowledgement after the commit
            "secure_delete=ON",
            "temp_store=MEMORY",
            "trusted_schema=OFF",
        ):
            connection.execute(f"PRAGMA {pragma}")
        _check(connection, path, mark, changed=changed)
        mark.turn(connection)
    except sqlite3.Error as error:
        connection.close()
        if error.sqlite_errorcode & 0xFF in _DISK_CODES:
            raise disk_error(path, error) from None
        raise store_error(path, f"is damaged, or not a store of records: {error}") from None
    except UnicodeDecodeError:  # of its schema, by Python's sqlite3
        connection.close()
        raise store_error(path, "is damaged, or not a store of records") from None
    except SettingsError:
        connection.close()
        raise
    return connection


def _check(connection: sqlite3.Connection, path: Path, mark: StoreMark, *, changed: bool) -> None:
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (n_tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if n_tables == 0 and (application, version) == (0, 0) and not mark.exists:
        connection.execute("BEGIN IMMEDIATE")
        for statement in SCHEMA.split(";\n"):
            connection.execute(statement)
        connection.execute(
            "INSERT INTO secrets VALUES ('key', ?)", (secrets.token_bytes(_KEY_BYTES),)
        )
        connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version={VERSION}")
        connection.execute("COMMIT")
    elif application != APPLICATION_ID:
        raise store_error(path, "is not a store of records")
    elif version not in READABLE:
        raise store_error(path, f"has version {version}; this gateway reads version {VERSION}")
    elif changed:
        raise mark.damaged()
    elif version != VERSION:
        _upgrade(connection, version)
    (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if found != "ok":
        raise store_error(path, "is damaged")
    if not _all_sealed(connection):
        raise mark.damaged()
    erase_log(connection)  # after a crash it may have parts of windows that were closed


def _upgrade(connection: sqlite3.Connection, version: int) -> None:
    """Turn a file of an older version into one of the newest.

    Version 1 had digests of messages beside their key, and the parts of all windows in one table.
    Version 2 had a row for each part, in a table for each open window. Up to version 3 no row was
    sealed.
    """
    connection.execute("BEGIN IMMEDIATE")
    seal_rows(connection)
    log = PartsLog(connection)
    if version == 1:
        rows = connection.execute(
            "SELECT stream, window, number, vehicle, source, ts, cells FROM parts ORDER BY number"
        ).fetchall()
        connection.execute("DROP TABLE parts")
        connection.execute("DROP TABLE recent")
    elif version == 3:
        rows = []
    else:
        rows = []
        for (stream,) in connection.execute("SELECT id FROM streams").fetchall():
            for window in open_windows(connection, stream):
                rows += connection.execute(
                    "SELECT ?, ?, number, vehicle, source, ts, cells"  # noqa: S608  two numbers
                    f' FROM "{parts_table(stream, window)}" ORDER BY number',
                    (stream, window),
                )
                log.drop(stream, window)
    parts_of: dict[tuple[int, int], list[PartRow]] = {}
    for stream, window, number, *rest in rows:
        parts_of.setdefault((stream, window), []).append(PartRow(number, window, *rest))
    for (stream, window), parts in parts_of.items():
        log.append(stream, window, parts)
    connection.execute(f"PRAGMA user_version={VERSION}")
    connection.execute("COMMIT")
