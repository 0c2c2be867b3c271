"""File of releases that workers have published, from which `ReleaseReader` answers."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from anonymizer.pipeline.records.release_messages import ReleasedClasses
from anonymizer.pipeline.records.store_port import PublishedWindow
from anonymizer.store.sqlite_file import open_file, purge, transaction, usable


class ReleaseFile:
    """A store that takes releases from a topic, each message once, with the place in the topic.

    Parameters
    ----------
    path
        The file; it is created if it does not exist.

    Raises
    ------
    SettingsError
        If the file cannot be created or used, or is in use by another process.
    StoreError
        From any method, if the disk is full, read-only or broken. Nothing has changed then.
    """

    def __init__(self, path: Path, *, keep_published_s: float) -> None:
        self._path, self._keep_published_s = path, keep_published_s
        self._file = open_file(path)
        self._db, self._is_open = self._file.db, True

    def close(self) -> None:
        """Close the file. A second call has no effect."""
        if self._is_open:
            self._is_open = False
            self._file.close()

    def offsets(self, topic: str) -> dict[int, int]:
        """Return the next message of each partition of which there was one."""
        with usable(self._path):
            rows = self._db.execute(
                "SELECT partition, next FROM offsets WHERE topic = ?", (topic,)
            ).fetchall()
        return dict(rows)

    def add(
        self,
        parts: Sequence[ReleasedClasses | PublishedWindow],
        *,
        topic: str,
        offsets: Mapping[int, int],
        now: float,
    ) -> None:
        """Store parts of releases, and which messages of a topic are to be read next.

        `now` is in unix seconds. What is older than `keep_published_s` is erased.
        """
        with transaction(self._db, self._path):
            for part in parts:
                if isinstance(part, PublishedWindow):
                    self._add_window(part)
                else:
                    self._add_classes(part, now)
            self._db.executemany(
                "INSERT OR REPLACE INTO offsets (topic, partition, next) VALUES (?, ?, ?)",
                ((topic, *each) for each in offsets.items()),
            )
            before = now - self._keep_published_s
            purge(self._db, before=before)
            self._db.execute(
                "DELETE FROM classes WHERE published_at < ? AND NOT EXISTS (SELECT 1 FROM windows"
                " AS w WHERE w.stream = classes.stream AND w.window = classes.window)",
                (before,),
            )

    def _add_window(self, release: PublishedWindow) -> None:
        self._db.execute(
            "INSERT OR IGNORE INTO windows (stream, window, starts, ends, closed_at, summary)"
            " VALUES (?, ?, ?, ?, ?, ?)",
            (
                self._id(release.stream),
                release.window,
                release.start,
                release.end,
                release.closed_at,
                json.dumps(dict(release.summary)),
            ),
        )

    def _add_classes(self, classes: ReleasedClasses, now: float) -> None:
        of = self._id(classes.stream)
        self._db.executemany(
            "INSERT INTO classes (stream, window, topic, payload, n_parts, published_at)"
            " VALUES (?, ?, '', ?, 0, ?)",
            ((of, classes.window, payload, now) for payload in classes.payloads),
        )

    def _id(self, stream: str) -> int:
        found = self._db.execute("SELECT id FROM streams WHERE name = ?", (stream,)).fetchone()
        if found:
            return int(found[0])
        made = self._db.execute(
            "INSERT INTO streams (name, shape, newest, next_message) VALUES (?, '', x'', 1)",
            (stream,),
        ).lastrowid
        return int(made or 0)
