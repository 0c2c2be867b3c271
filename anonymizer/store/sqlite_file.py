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
from pathlib import Path
from typing import NamedTuple

from anonymizer.errors import SettingsError, StoreError
from anonymizer.pipeline.records.store_port import PartRow
from anonymizer.store.log_damage import is_damaged
from anonymizer.store.parts_log import PartsLog
from anonymizer.store.row_seals import SEALED, all_sound, keep_sealed, know_seals, seal_all
from anonymizer.store.store_mark import StoreMark

APPLICATION_ID = 0x616E7265
VERSION = 6
READABLE = (1, VERSION)
"""Versions of releases, whose published windows can be read; a gateway turns the first into the
newest."""
_KEY_BYTES = 32
FOLDS_IDS = "folds ids"
"""Name of the secret that is there if a key of a vehicle is that of all writings of its id."""
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
SCHEMA = """
CREATE TABLE secrets (name TEXT PRIMARY KEY, value BLOB NOT NULL, seal INTEGER) WITHOUT ROWID;

CREATE TABLE streams (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    shape TEXT NOT NULL,
    newest BLOB NOT NULL,            -- newest event time of each source, float64; in a closed
                                     -- window, only the end of that window
    closed_before INTEGER,           -- windows before this one take nothing more
    next_message INTEGER NOT NULL,
    seal INTEGER                     -- checksum of the row, in every table
);

CREATE TABLE accounts (
    stream INTEGER NOT NULL,
    outcome TEXT NOT NULL,           -- 'received', 'published', 'suppressed/overload', ...
    n INTEGER NOT NULL,
    seal INTEGER,
    PRIMARY KEY (stream, outcome)
) WITHOUT ROWID;

CREATE TABLE windows (
    stream INTEGER NOT NULL,
    window INTEGER NOT NULL,
    starts REAL NOT NULL,
    ends REAL NOT NULL,
    closed_at REAL NOT NULL,
    summary TEXT NOT NULL,           -- JSON: sizes and measures
    seal INTEGER,
    PRIMARY KEY (stream, window)
) WITHOUT ROWID;
CREATE INDEX ended ON windows (stream, ends);
CREATE INDEX closed ON windows (closed_at);

-- Published, or about to be: exactly these bytes, whatever happens.
CREATE TABLE classes (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    stream INTEGER NOT NULL,
    window INTEGER NOT NULL,
    topic TEXT NOT NULL,
    payload BLOB NOT NULL,
    n_parts INTEGER NOT NULL,
    published_at REAL,
    seal INTEGER
);
CREATE INDEX waiting ON classes (number) WHERE published_at IS NULL;
CREATE INDEX of_window ON classes (stream, window);

-- History of each vehicle: what its published classes have in common over all windows.
CREATE TABLE vehicles (
    stream INTEGER NOT NULL,
    vehicle BLOB NOT NULL,
    seen INTEGER NOT NULL,           -- last window that it was published in
    state BLOB NOT NULL,
    seal INTEGER,
    PRIMARY KEY (stream, vehicle)
) WITHOUT ROWID;
CREATE INDEX unseen ON vehicles (stream, seen);

-- Of a bridge, which takes releases from a topic.
CREATE TABLE offsets (
    topic TEXT NOT NULL,
    partition INTEGER NOT NULL,
    next INTEGER NOT NULL,           -- the first message that is not in this file yet
    seal INTEGER,
    PRIMARY KEY (topic, partition)
) WITHOUT ROWID;
"""


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
        "DELETE FROM classes WHERE published_at IS NOT NULL AND (stream, window) IN"
        " (SELECT stream, window FROM windows WHERE closed_at < ?)",
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
    is_as_closed = mark.is_as_closed()
    if mark.is_of_this_boot and is_damaged(path.with_name(f"{path.name}-wal")):
        raise mark.damaged()
    # It is used by one thread at a time, which may not be this one.
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    try:
        for pragma in (
            "journal_mode=WAL",
            "wal_autocheckpoint=0",  # `erase_log` empties it: old frames would hide damage
            "synchronous=FULL",  # the broker gets its acknowledgement after the commit
            "secure_delete=ON",
            "temp_store=MEMORY",
            "trusted_schema=OFF",
        ):
            connection.execute(f"PRAGMA {pragma}")
        know_seals(connection)
        _check(connection, path, mark, is_as_closed=is_as_closed)
        keep_sealed(connection)
        mark.turn(connection, VERSION)
    except sqlite3.Error as error:
        connection.close()
        # An error of Python's own module, as of a text that is none, has no code.
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in _DISK_CODES:
            raise disk_error(path, error) from None
        raise mark.lost(f"is damaged, or not a store of records: {error}") from None
    except UnicodeDecodeError:  # of its schema, by Python's sqlite3
        connection.close()
        raise mark.lost("is damaged, or not a store of records") from None
    except SettingsError:
        connection.close()
        raise
    return connection


def _check(
    connection: sqlite3.Connection, path: Path, mark: StoreMark, *, is_as_closed: bool | None
) -> None:
    """Check what the file is, and what is in it unless it is byte by byte what was closed."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (n_tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if n_tables == 0 and (application, version) == (0, 0) and not mark.exists:
        _create(connection)
    elif application != APPLICATION_ID:
        raise store_error(path, "is not a store of records")
    elif version not in READABLE:
        raise store_error(
            path,
            f"has version {version}; this gateway reads version {VERSION}: start the gateway that"
            " wrote it, or put a backup of this one there",
        )
    elif is_as_closed is False or mark.version not in {0, version}:
        raise mark.damaged()
    elif version != VERSION:
        _upgrade(connection)
    if not is_as_closed:
        (found,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
        if found != "ok":
            raise mark.lost("is damaged")
        if not all_sound(connection):
            raise mark.damaged()
    erase_log(connection)  # after a crash it may have parts of windows that were closed


def _create(connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN IMMEDIATE")
    for statement in SCHEMA.split(";\n"):
        connection.execute(statement)
    connection.executemany(
        "INSERT INTO secrets (name, value) VALUES (?, ?)",
        [("key", secrets.token_bytes(_KEY_BYTES)), (FOLDS_IDS, b"1")],
    )
    seal_all(connection)
    connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version={VERSION}")
    connection.execute("COMMIT")


def _upgrade(connection: sqlite3.Connection) -> None:
    """Turn a file of version 1 into one of the newest.

    It had no seals, no window was found by its times, the parts of all windows were in one table,
    and digests of messages beside their key.
    """
    connection.execute("BEGIN IMMEDIATE")
    for statement in SCHEMA.split(";\n"):
        if any(new in statement for new in ("TABLE offsets", "INDEX ended", "INDEX closed")):
            connection.execute(statement)
    for table in SEALED:
        if table != "offsets":
            connection.execute(f"ALTER TABLE {table} ADD COLUMN seal INTEGER")
    log = PartsLog(connection)
    parts_of: dict[tuple[int, int], list[PartRow]] = {}
    for stream, window, number, *rest in connection.execute(
        "SELECT stream, window, number, vehicle, source, ts, cells FROM parts ORDER BY number"
    ).fetchall():
        parts_of.setdefault((stream, window), []).append(PartRow(number, window, *rest))
    connection.execute("DROP TABLE parts")
    connection.execute("DROP TABLE recent")
    for (stream, window), parts in parts_of.items():
        log.append(stream, window, parts)
    seal_all(connection)
    connection.execute(f"PRAGMA user_version={VERSION}")
    connection.execute("COMMIT")
