"""Reader of the published windows of a store, while a gateway writes to it."""

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from anonymizer.pipeline.records.store_port import PublishedWindow
from anonymizer.store.sqlite_file import APPLICATION_ID, READABLE, store_error

# Only whole windows: a query with a larger k would have a different answer for a part of one.
_WHOLE = (
    " FROM windows AS w JOIN streams ON streams.id = w.stream"
    " WHERE NOT EXISTS (SELECT 1 FROM classes AS c WHERE c.published_at IS NULL"
    " AND c.stream = w.stream AND c.window = w.window)"
    " AND (SELECT count(*) FROM classes AS c WHERE c.stream = w.stream AND c.window = w.window)"
    " = json_extract(w.summary, '$.classes')"
)


class ReleaseReader:
    """Reads published data only; implements `anonymizer.pipeline.records.store_port.ReleaseStore`.

    Every call opens the file and closes it at once, because a long read transaction would keep
    the gateway from erasing its write-ahead log. About 0.2 ms a call.

    Parameters
    ----------
    path
        Path of an existing store.

    Raises
    ------
    SettingsError
        From any method, if the file cannot be read or is not a store.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def within(self, stream: str, *, start: float, end: float, limit: int) -> list[PublishedWindow]:
        """Return the releases whose windows are within a time span, oldest first."""
        return self._releases(
            f"{_WHOLE} AND name = ? AND starts >= ? AND ends <= ? ORDER BY starts LIMIT ?",
            (stream, start, end, limit),
        )

    def newest(self, streams: Sequence[str], *, limit: int, offset: int) -> list[PublishedWindow]:
        """Return the releases of some streams, newest first."""
        marks = ", ".join("?" * len(streams))
        return self._releases(
            f"{_WHOLE} AND name IN ({marks}) ORDER BY starts DESC, name LIMIT ? OFFSET ?",
            (*streams, limit, offset),
        )

    def count(self, streams: Sequence[str]) -> int:
        """Return the number of releases of some streams."""
        marks = ", ".join("?" * len(streams))
        with self._reading() as db:
            (n,) = db.execute(
                f"SELECT count(*) {_WHOLE} AND name IN ({marks})",
                tuple(streams),
            ).fetchone()
        return int(n)

    def classes(self, release: PublishedWindow, *, limit: int = -1) -> list[bytes]:
        """Return the first published payloads of a release; see `ReleaseStore`."""
        with self._reading() as db:
            rows = db.execute(
                "SELECT payload FROM classes JOIN streams ON streams.id = stream"
                " WHERE name = ? AND window = ? AND published_at IS NOT NULL ORDER BY number"
                " LIMIT ?",
                (release.stream, release.window, limit),
            ).fetchall()
        return [row[0] for row in rows]

    def _releases(self, query: str, values: tuple[Any, ...]) -> list[PublishedWindow]:
        with self._reading() as db:
            rows = db.execute(
                f"SELECT name, window, starts, ends, closed_at, summary {query}",
                values,
            ).fetchall()
        return [
            PublishedWindow(name, window, start, end, closed_at, json.loads(summary))
            for name, window, start, end, closed_at, summary in rows
        ]

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        if not self._path.exists():
            raise store_error(self._path, "there is no such file")
        try:
            # A connection for each call, since threads cannot share one; `mode=ro` creates no file.
            db = sqlite3.connect(f"file:{quote(str(self._path))}?mode=ro", uri=True)
            try:
                check_kind(db, self._path)
                db.execute("BEGIN")
                yield db
            finally:
                db.close()
        except sqlite3.Error as error:
            raise store_error(self._path, f"cannot be read: {error}") from None


def check_kind(db: sqlite3.Connection, path: Path) -> None:
    """Check that a database is a store of a version that can be read.

    Raises `SettingsError` if it is not.
    """
    (application,) = db.execute("PRAGMA application_id").fetchone()
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if application != APPLICATION_ID or version not in READABLE:
        raise store_error(path, "is not a store of records of this version")
