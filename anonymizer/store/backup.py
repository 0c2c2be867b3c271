"""Backup: a copy of the store, made while a gateway writes to it."""

import fcntl
import os
import sqlite3
from pathlib import Path
from urllib.parse import quote

from anonymizer.errors import InputError
from anonymizer.store.published_windows import check_kind
from anonymizer.store.row_seals import SEALED
from anonymizer.store.sqlite_file import open_file, store_error

_PAGES_AT_ONCE = 1000
_COPIED = {
    # `closed_before` is included: a published window must not be made again.
    "streams": "",
    "windows": "",
    "classes": " WHERE published_at IS NOT NULL",
    "secrets": " WHERE name GLOB 'released *'",
}
_BESIDE = ("-wal", "-shm", "-journal", "-lock", "-mark")
"""Files of SQLite, and of the store, beside a store."""


def back_up(path: Path, out: Path, *, everything: bool = False) -> None:
    """Copy a consistent state of a store to a new file.

    Parameters
    ----------
    path, out
        The store, and the file to create.
    everything
        Whether to include secrets: the raw parts of open windows, the key of the vehicle
        digests and the history of each vehicle. Otherwise only published data is copied.

    Raises
    ------
    SettingsError
        If `path` is not a store, or cannot be read.
    InputError
        If `out` already exists, or cannot be written.
    """
    if not path.exists():
        raise store_error(path, "there is no such file")
    if out.exists():
        raise InputError(f"{out}: already exists")
    part = out.with_name(f"{out.name}.part")
    try:
        turn = os.open(part, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise InputError(f"{part}: cannot be written: {error.strerror}") from None
    try:
        fcntl.flock(turn, fcntl.LOCK_EX | fcntl.LOCK_NB)
        try:
            # A backup that was killed may have left something.
            os.fchmod(turn, 0o600)
            os.truncate(turn, 0)
            _remove(part, *_BESIDE)
            (_copy_everything if everything else _copy_published)(path, part)
            part.rename(out)
        finally:
            _remove(part, "", *_BESIDE)
    except BlockingIOError:
        raise InputError(f"{part}: is written by another backup: wait for its end") from None
    except OSError as error:
        raise InputError(f"{part}: cannot be written: {error.strerror}") from None
    except sqlite3.Error as error:
        raise InputError(f"{out}: {path} cannot be copied: {error}") from None
    finally:
        os.close(turn)


def _remove(part: Path, *suffixes: str) -> None:
    for suffix in suffixes:
        part.with_name(part.name + suffix).unlink(missing_ok=True)


def _copy_everything(path: Path, part: Path) -> None:
    source = sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)
    target = sqlite3.connect(part)
    try:
        check_kind(source, path)
        source.backup(target, pages=_PAGES_AT_ONCE)
        target.execute("PRAGMA journal_mode=DELETE")
        # A mark beside the place that it is put to must not take it for the store itself.
        target.execute("DELETE FROM secrets WHERE name = 'opened'")
        target.commit()
    finally:
        target.close()
        source.close()


def _copy_published(path: Path, part: Path) -> None:
    target, lock, _ = open_file(part)  # it gets a new key
    try:
        target.execute("ATTACH ? AS source", (str(path),))
        (application,) = target.execute("PRAGMA source.application_id").fetchone()
        (own,) = target.execute("PRAGMA main.application_id").fetchone()
        if application != own:
            raise store_error(path, "is not a store of records of this version")
        target.execute("BEGIN IMMEDIATE")
        for table, rows in _COPIED.items():
            columns = ", ".join(SEALED[table])
            target.execute(
                f"INSERT INTO {table} ({columns}) SELECT {columns} FROM source.{table}{rows}"  # noqa: S608  names of ours
            )
        target.execute("COMMIT")
        target.execute("DETACH source")
        target.execute("PRAGMA journal_mode=DELETE")
    finally:
        target.close()
        os.close(lock)
