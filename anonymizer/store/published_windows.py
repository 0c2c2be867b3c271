"""The published windows of a store, read beside the gateway that writes it."""

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from anonymizer.pipeline.records.store_port import Release
from anonymizer.store.sqlite_file import APPLICATION_ID, VERSION, mistake

# Whole windows alone: of a part of one, a larger k would be answered otherwise than of all of it.
_WHOLE = (
    " FROM windows AS w JOIN streams ON streams.id = w.stream"
    " WHERE NOT EXISTS (SELECT 1 FROM classes AS c WHERE c.published_at IS NULL"
    " AND c.stream = w.stream AND c.window = w.window)"
    " AND (SELECT count(*) FROM classes AS c WHERE c.stream = w.stream AND c.window = w.window)"
    " = json_extract(w.summary, '$.classes')"
)


class ReleaseReader:
    """Reads what was published, and nothing else; implements `releases.ReleaseStore`.

    Every call opens the file anew and lets it go at once: whoever reads for long keeps the
    gateway from erasing what lies in its write-ahead log. About 0.2 ms.

    Parameters
    ----------
    path
        Of a store that is there.

    Raises
    ------
    SettingsError
        From any method, if the file cannot be read or is no store.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def within(self, stream: str, *, start: float, end: float, limit: int) -> list[Release]:
        """Return the releases whose windows lie within a time, oldest first."""
        return self._releases(
            f"{_WHOLE} AND name = ? AND starts >= ? AND ends <= ? ORDER BY starts LIMIT ?",
            (stream, start, end, limit),
        )

    def newest(self, streams: Sequence[str], *, limit: int, offset: int) -> list[Release]:
        """Return releases of streams, newest first."""
        marks = ", ".join("?" * len(streams))
        return self._releases(
            f"{_WHOLE} AND name IN ({marks}) ORDER BY starts DESC, name LIMIT ? OFFSET ?",
            (*streams, limit, offset),
        )

    def count(self, streams: Sequence[str]) -> int:
        """Return how many releases of streams there are."""
        marks = ", ".join("?" * len(streams))
        with self._reading() as db:
            (n,) = db.execute(
                f"SELECT count(*) {_WHOLE} AND name IN ({marks})",
                tuple(streams),
            ).fetchone()
        return int(n)

    def classes(self, release: Release) -> list[bytes]:
        """Return the classes of a release, as they were published; fewer while they are erased."""
        with self._reading() as db:
            rows = db.execute(
                "SELECT payload FROM classes JOIN streams ON streams.id = stream"
                " WHERE name = ? AND window = ? AND published_at IS NOT NULL ORDER BY number",
                (release.stream, release.window),
            ).fetchall()
        return [row[0] for row in rows]

    def _releases(self, query: str, values: tuple[Any, ...]) -> list[Release]:
        with self._reading() as db:
            rows = db.execute(
                f"SELECT name, window, starts, ends, closed_at, summary {query}",
                values,
            ).fetchall()
        return [
            Release(name, window, start, end, closed_at, json.loads(summary))
            for name, window, start, end, closed_at, summary in rows
        ]

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        if not self._path.exists():
            raise mistake(self._path, "there is no such file")
        try:
            # Each thread its own; `mode=ro` makes no file where there is none.
            db = sqlite3.connect(f"file:{quote(str(self._path))}?mode=ro", uri=True)
            try:
                check_kind(db, self._path)
                db.execute("BEGIN")
                yield db
            finally:
                db.close()
        except sqlite3.Error as error:
            raise mistake(self._path, f"cannot be read: {error}") from None


def check_kind(db: sqlite3.Connection, path: Path) -> None:
    """Refuse what is no store of this version.

    Raises
    ------
    SettingsError
        If it is not.
    """
    (application,) = db.execute("PRAGMA application_id").fetchone()
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if (application, version) != (APPLICATION_ID, VERSION):
        raise mistake(path, "is no store of records of this version")
