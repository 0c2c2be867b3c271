"""A copy of the store while a gateway writes it."""

import os
import sqlite3
from pathlib import Path
from urllib.parse import quote

from anonymizer.errors import InputError
from anonymizer.store.published_windows import check_kind
from anonymizer.store.sqlite_file import mistake, open_file

_PAGES_AT_ONCE = 1000
_COPIED = (
    # `closed_before` comes along: a window that was published must not be made once more.
    "INSERT INTO streams SELECT * FROM source.streams",
    "INSERT INTO windows SELECT * FROM source.windows",
    "INSERT INTO classes SELECT * FROM source.classes WHERE published_at IS NOT NULL",
)


def back_up(path: Path, out: Path, *, everything: bool = False) -> None:
    """Copy a store to a file that is not there yet, as of one moment.

    Parameters
    ----------
    everything
        Also what nobody may see: the raw parts of open windows, the key of the vehicles' digests
        and what is remembered of each. Otherwise what was published, alone.

    Raises
    ------
    SettingsError
        If `path` is no store, or cannot be read.
    InputError
        If `out` is there already, or cannot be written.
    """
    if not path.exists():
        raise mistake(path, "there is no such file")
    part = out.with_name(f"{out.name}.part")
    if out.exists() or part.exists():
        raise InputError(f"{out if out.exists() else part}: is there already")
    try:
        os.close(os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except OSError as error:
        raise InputError(f"{part}: cannot be written: {error.strerror}") from None
    try:
        (_everything if everything else _published)(path, part)
        part.rename(out)
    except sqlite3.Error as error:
        raise InputError(f"{out}: {path} cannot be copied: {error}") from None
    finally:
        for suffix in ("", "-wal", "-shm", "-lock"):
            part.with_name(part.name + suffix).unlink(missing_ok=True)


def _everything(path: Path, part: Path) -> None:
    source = sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)
    target = sqlite3.connect(part)
    try:
        check_kind(source, path)
        source.backup(target, pages=_PAGES_AT_ONCE)
        target.execute("PRAGMA journal_mode=DELETE")
    finally:
        target.close()
        source.close()


def _published(path: Path, part: Path) -> None:
    target, lock = open_file(part)  # with a key of its own
    try:
        target.execute("ATTACH ? AS source", (str(path),))
        (application,) = target.execute("PRAGMA source.application_id").fetchone()
        (own,) = target.execute("PRAGMA main.application_id").fetchone()
        if application != own:
            raise mistake(path, "is no store of records of this version")
        target.execute("BEGIN IMMEDIATE")
        for statement in _COPIED:
            target.execute(statement)
        target.execute("COMMIT")
        target.execute("DETACH source")
        target.execute("PRAGMA journal_mode=DELETE")
    finally:
        target.close()
        os.close(lock)
