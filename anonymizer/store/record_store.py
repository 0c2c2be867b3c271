"""The record store: raw parts, histories and releases of the records flow in a SQLite file.

Every method that changes anything is one transaction, or many are one together (`at_once`).
"""

import contextlib
import json
import shutil
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import MappingProxyType

import numpy as np

from anonymizer.algorithms.windows import NEVER
from anonymizer.domain.outcomes import Outcome
from anonymizer.pipeline.ledger import label_of
from anonymizer.pipeline.ports import Outgoing
from anonymizer.pipeline.records.store_port import (
    ClosedWindow,
    PartRow,
    Recalled,
    Taken,
    Waiting,
)
from anonymizer.store.parts_log import PartsLog
from anonymizer.store.sqlite_file import (
    FOLDS_IDS,
    disk_error,
    erase_log,
    open_file,
    purge,
    transaction,
    usable,
)

_VEHICLES_PER_QUERY = 500
_MOST_LOG_BYTES = 4 << 20
_LEAP_S = 30 * 86_400.0
_NO_LEAP = np.array([NEVER, NEVER], "<i8").tobytes()
_NOWHERE: Mapping[str, int] = MappingProxyType({})


class RecordStore:
    """A SQLite file; implements `anonymizer.pipeline.records.store_port.Store`.

    Deleted data is overwritten with zeros in the file, and its write-ahead log is emptied. Of a
    closed window, the file has what is published, counts, and the histories of vehicles.

    Parameters
    ----------
    path
        Path of the file, which is created if it does not exist.
    min_free_bytes
        If less is free on the disk, `check_space` raises.

    Raises
    ------
    SettingsError
        If the file cannot be used, for a reason that needs the operator.
    StoreError
        If it cannot be used at present, for example because the disk is full. Any method raises
        it too, and has changed nothing then. Use another object afterwards, as after a crash.
    """

    def __init__(self, path: Path, *, keep_published_s: float, min_free_bytes: int = 0) -> None:
        self._path = path
        self._keep_published_s = keep_published_s
        self._min_free_bytes = min_free_bytes
        self._file = open_file(path)
        self._db, self._is_open = self._file.db, True
        self._parts = PartsLog(self._db)
        self._id_of: dict[str, int] = {}
        with self._reading():
            self.secret = self._kept("key")
            self.folds_ids = bool(self._kept(FOLDS_IDS))
        self._log_has_erased_data = False
        self._is_within = False
        self._purge_before: float | None = None

    def close(self) -> None:
        """Close the file. A second call has no effect."""
        if self._is_open:
            self._is_open = False
            self._file.close()

    @property
    def size_bytes(self) -> int:
        """Size of the file and its write-ahead log, without one whose size cannot be read."""
        n = 0
        for file in (self._path, self._path.with_name(self._path.name + "-wal")):
            with contextlib.suppress(OSError):  # SQLite may remove the log at any moment
                n += file.stat().st_size
        return n

    @property
    def free_bytes(self) -> int:
        """Free space on the disk of the file."""
        try:
            return shutil.disk_usage(self._path).free
        except OSError as error:
            raise disk_error(self._path, error.strerror) from None

    def check_space(self) -> None:
        """Raise StoreError if the disk is nearly full; see `Store.check_space`."""
        if self._min_free_bytes and self.free_bytes < self._min_free_bytes:
            raise disk_error(self._path, f"less than {self._min_free_bytes} bytes are free")

    @contextlib.contextmanager
    def at_once(self) -> Iterator[None]:
        """Make all changes of the block in one transaction; see `Store.at_once`."""
        with self._transaction():
            self._is_within = True
            try:
                yield
            finally:
                self._is_within = False
            self._purge()
        self._erase_log()

    @property
    def session(self) -> bytes:
        """What `keep_session` stored last; empty: nothing."""
        with self._reading():
            return self._kept("session")

    def keep_session(self, session: bytes) -> None:
        """Store what is known of the session that the broker keeps for records."""
        with self._transaction():
            self._keep("session", session)

    def recall(self, stream: str, *, shape: str, n_sources: int, histories: str = "") -> Recalled:
        """Return the stored state of a stream; see `Store.recall`."""
        # Beside the secrets: a column of `streams` would be a new version of the file.
        meaning = f"histories {stream}", histories.encode()
        with self._transaction():
            known = self._db.execute(
                "SELECT id, shape FROM streams WHERE name = ?", (stream,)
            ).fetchone()
            if known is None:
                self._db.execute(
                    "INSERT INTO streams (name, shape, newest, next_message) VALUES (?, ?, x'', 1)",
                    (stream, shape),
                )
            elif known[1] != shape:
                same = "SELECT 1 FROM secrets WHERE (name, value) = (?, ?)"
                kept = histories and self._db.execute(same, meaning).fetchone()
                self._forget(known[0], histories=not kept)
                self._db.execute(
                    "UPDATE streams SET shape = ?, closed_before = NULL, newest = x'' WHERE id = ?",
                    (shape, known[0]),
                )
            self._keep(*meaning)
        self._erase_log()
        with self._reading():
            return self._recalled(stream, n_sources)

    def retire(self, streams: Iterable[str]) -> int:
        """Erase the raw parts of all other streams as redeclared; return their number."""
        with self._transaction():
            known = self._db.execute("SELECT id, name FROM streams").fetchall()
            kept = set(streams)
            n = sum(self._forget(id_) for id_, name in known if name not in kept)
        self._erase_log()
        return n

    def kept_places(self) -> dict[str, int]:
        """Return the place from which to read each partition; see `Store.kept_places`."""
        with self._reading():
            rows = self._db.execute(
                "SELECT substr(name, 7), CAST(value AS INTEGER) FROM secrets"
                " WHERE name LIKE 'place %'"
            ).fetchall()
        return dict(rows)

    def take(self, batches: Sequence[Taken], places: Mapping[str, int] = _NOWHERE) -> None:
        """Store the changes of a batch of messages; see `Store.take`."""
        with self._transaction():
            self._db.executemany(
                "INSERT OR REPLACE INTO secrets (name, value) VALUES (?, CAST(? AS BLOB))",
                ((f"place {name}", str(to)) for name, to in places.items()),
            )
            for taken in batches:
                of = self._id_of[taken.stream]
                self._put_parts(of, taken)
                self._db.execute(
                    "UPDATE streams SET closed_before = ?, newest = ? WHERE id = ?",
                    (taken.floor, _packed(taken.newest), of),
                )
                self._account(of, taken.news)
        if self._log_has_erased_data or self._log_is_long():
            self._erase_log()

    def erase(self, stream: str, parts: Sequence[PartRow], news: Mapping[str, int]) -> None:
        """Erase parts of open windows; see `Store.erase`."""
        of = self._id_of[stream]
        with self._transaction():
            for window in {part.window for part in parts}:
                numbers = [part.number for part in parts if part.window == window]
                self._parts.erase(of, window, numbers)
            self._account(of, news)
        self._erase_log()

    def memories(self, stream: str, vehicles: Sequence[bytes]) -> dict[bytes, bytes]:
        """Return the stored histories of vehicles; see `Store.memories`."""
        of = self._id_of[stream]
        found: dict[bytes, bytes] = {}
        with self._reading():
            for i in range(0, len(vehicles), _VEHICLES_PER_QUERY):
                some = vehicles[i : i + _VEHICLES_PER_QUERY]
                marks = ", ".join("?" * len(some))
                rows = self._db.execute(
                    "SELECT vehicle, state FROM vehicles"  # noqa: S608  only marks are inserted
                    f" WHERE stream = ? AND vehicle IN ({marks})",
                    (of, *some),
                )
                found |= dict(rows)
        return found

    def close_window(self, closed: ClosedWindow) -> None:
        """Close a window and erase its parts; see `Store.close_window`."""
        of, window = self._id_of[closed.stream], closed.window
        with self._transaction():
            self._db.execute(
                "INSERT INTO windows (stream, window, starts, ends, closed_at, summary)"
                " VALUES (?, ?, ?, ?, ?, ?)",
                (
                    of,
                    closed.window,
                    closed.start,
                    closed.end,
                    closed.at,
                    json.dumps(closed.summary),
                ),
            )
            self._db.executemany(
                "INSERT INTO classes (stream, window, topic, payload, n_parts)"
                " VALUES (?, ?, ?, ?, ?)",
                (
                    (of, window, message.topic, message.payload, n)
                    for message, n in zip(closed.messages, closed.n_parts, strict=True)
                ),
            )
            self._db.executemany(
                "INSERT OR REPLACE INTO vehicles VALUES (?1, ?2, ?3, ?4, row_seal(?1, ?2, ?3, ?4))",
                ((of, vehicle, window, state) for vehicle, state in closed.memory.items()),
            )
            self._db.execute(
                "DELETE FROM vehicles WHERE stream = ? AND seen < ?",
                (of, self._forget_before(of, closed)),
            )
            self._parts.drop(of, window)
            self._db.execute(
                "UPDATE streams SET closed_before = ?, newest = ?, next_message = ? WHERE id = ?",
                (closed.floor, _packed(closed.newest), closed.next_message, of),
            )
            self._account(of, closed.news)
            self._purge_before = closed.at - self._keep_published_s
            if not self._is_within:
                self._purge()
        self._erase_log()

    def go_on(self, stream: str, *, floor: int, starts: float) -> int:
        """Let a stream go on whose windows a clock has closed that was ahead; see `Store.go_on`."""
        of = self._id_of[stream]
        with self._transaction():
            found = self._db.execute(
                "SELECT starts, ends FROM windows WHERE stream = ? AND ends > ?", (of, starts)
            )
            spans = _joined([*self._released(stream), *found])
            self._keep(f"released {stream}", np.array(spans, "<f8").tobytes())
            self._db.execute("DELETE FROM secrets WHERE name = ?", (f"lasting {stream}",))
            n = self._parts.drop_all(of)
            self._account(of, {label_of(Outcome.LATE): n})
            self._db.execute(
                "UPDATE streams SET closed_before = ?, newest = x'' WHERE id = ?", (floor, of)
            )
        self._erase_log()
        return n

    def waiting(self, *, limit: int) -> list[Waiting]:
        """Return the classes that wait to be published, oldest first."""
        with self._reading():
            rows = self._db.execute(
                "SELECT number, name, n_parts, topic, payload FROM classes"
                " JOIN streams ON streams.id = classes.stream"
                " WHERE published_at IS NULL ORDER BY number LIMIT ?",
                (limit,),
            ).fetchall()
        return [
            Waiting(n, stream, parts, Outgoing(*message)) for n, stream, parts, *message in rows
        ]

    def published(
        self, numbers: Sequence[int], news: Mapping[str, Mapping[str, int]], *, at: float
    ) -> None:
        """Mark classes as accepted by the broker; see `Store.published`."""
        with self._transaction():
            self._db.executemany(
                "UPDATE classes SET published_at = ? WHERE number = ?", ((at, n) for n in numbers)
            )
            for stream, of_stream in news.items():
                self._account(self._id(stream), of_stream)

    def suppressed(self, numbers: Sequence[int], news: Mapping[str, Mapping[str, int]]) -> None:
        """Erase classes that will not be published; see `Store.suppressed`."""
        with self._transaction():
            self._db.executemany("DELETE FROM classes WHERE number = ?", ((n,) for n in numbers))
            for stream, of_stream in news.items():
                self._account(self._id(stream), of_stream)
        self._erase_log()

    def classes(self, stream: str, *, start: float, end: float) -> list[bytes]:
        """Return the published payloads of all windows within a time span."""
        with self._reading():
            rows = self._db.execute(
                "SELECT payload FROM classes"
                " JOIN streams ON streams.id = classes.stream"
                " JOIN windows USING (stream, window)"
                " WHERE name = ? AND starts >= ? AND ends <= ? AND published_at IS NOT NULL"
                " ORDER BY number",
                (stream, start, end),
            ).fetchall()
        return [row[0] for row in rows]

    def accounts(self) -> dict[str, dict[str, int]]:
        """Return the accounts of every stream that was ever declared, without zeros."""
        with self._reading():
            rows = self._db.execute(
                "SELECT name, outcome, n FROM accounts JOIN streams ON streams.id = stream"
            ).fetchall()
        found: dict[str, dict[str, int]] = {}
        for stream, outcome, n in rows:
            if n:
                found.setdefault(stream, {})[outcome] = n
        return found

    def _recalled(self, stream: str, n_sources: int) -> Recalled:
        of, newest, floor, next_message = self._db.execute(
            "SELECT id, newest, closed_before, next_message FROM streams WHERE name = ?",
            (stream,),
        ).fetchone()
        self._id_of[stream] = of
        counts = self._db.execute("SELECT outcome, n FROM accounts WHERE stream = ?", (of,))
        n_waiting, n_unpublished = self._db.execute(
            "SELECT count(*), coalesce(sum(n_parts), 0) FROM classes"
            " WHERE published_at IS NULL AND stream = ?",
            (of,),
        ).fetchone()
        released = self._released(stream)
        # Windows of a clock that was ahead are no reason to refuse the time before them.
        apart = " AND NOT (starts >= ? AND ends <= ?)" * len(released)
        (until,) = self._db.execute(
            f"SELECT coalesce(max(ends), -9e999) FROM windows WHERE stream = ?{apart}",  # noqa: S608  marks
            (of, *(time for span in released for time in span)),
        ).fetchone()
        times: list[float] = np.frombuffer(newest, "<f8").tolist()
        return Recalled(
            newest=times or [float("-inf")] * n_sources,
            floor=floor,
            parts=self._parts.read(of),
            counts=dict(counts.fetchall()),
            n_waiting=n_waiting,
            n_unpublished=n_unpublished,
            next_message=next_message,
            released_until=until,
            released=released,
        )

    def _released(self, stream: str) -> list[tuple[float, float]]:
        """Return the times that a clock that was ahead has closed, as `go_on` has stored them."""
        times = np.frombuffer(self._kept(f"released {stream}"), "<f8").reshape(-1, 2)
        return [(start, end) for start, end in times.tolist()]

    def _kept(self, name: str) -> bytes:
        """Return what is kept under a name; empty: nothing."""
        found = self._db.execute("SELECT value FROM secrets WHERE name = ?", (name,)).fetchone()
        return bytes(found[0]) if found else b""

    def _keep(self, name: str, value: bytes) -> None:
        self._db.execute(
            "INSERT OR REPLACE INTO secrets (name, value) VALUES (?, ?)", (name, value)
        )

    def _forget_before(self, of: int, closed: ClosedWindow) -> int:
        """Return the window since which a vehicle must have been published to be remembered.

        A leap of the windows is a clock that was put forward, or a long rest: what was remembered
        before it is forgotten only when as much time has passed after it.
        """
        name, wanted = f"lasting {closed.stream}", closed.forget_before
        leapt, kept_since = np.frombuffer(self._kept(name) or _NO_LEAP, "<i8").tolist()
        (ended,) = self._db.execute(
            "SELECT max(ends) FROM windows WHERE stream = ? AND ends <= ?", (of, closed.start)
        ).fetchone()
        if ended is not None and closed.start - ended > _LEAP_S:
            before = wanted - int((closed.start - ended) / (closed.end - closed.start))
            kept_since = min(before, kept_since) if wanted < leapt else before
            leapt = closed.window
            self._keep(name, np.array([leapt, kept_since], "<i8").tobytes())
        return min(wanted, kept_since) if wanted < leapt else wanted

    def _forget(self, of: int, *, histories: bool = True) -> int:
        """Erase the raw parts of a stream, and what is known of vehicles; return their number."""
        n = self._parts.drop_all(of)
        if histories:
            self._db.execute("DELETE FROM vehicles WHERE stream = ?", (of,))
        self._account(of, {label_of(Outcome.SUPPRESSED__REDECLARED): n})
        return n

    def _id(self, stream: str) -> int:
        if stream not in self._id_of:  # it is no longer declared, but has classes to publish
            (self._id_of[stream],) = self._db.execute(
                "SELECT id FROM streams WHERE name = ?", (stream,)
            ).fetchone()
        return self._id_of[stream]

    def _account(self, of: int, news: Mapping[str, int]) -> None:
        self._db.executemany(
            "INSERT INTO accounts (stream, outcome, n) VALUES (?, ?, ?)"
            " ON CONFLICT (stream, outcome) DO UPDATE SET n = n + excluded.n",
            ((of, outcome, n) for outcome, n in news.items()),
        )

    def _put_parts(self, of: int, taken: Taken) -> None:
        parts: dict[int, list[PartRow]] = {}
        replaced: dict[int, list[int]] = {}
        for part in taken.parts:
            parts.setdefault(part.window, []).append(part)
        for window, number in taken.replaced:
            replaced.setdefault(window, []).append(number)
        for window in parts | replaced:
            self._parts.append(of, window, parts.get(window, []), replaced.get(window, []))

    def _erase_log(self) -> None:
        if not self._is_within:
            with self._reading():
                self._log_has_erased_data = not erase_log(self._db)

    def _purge(self) -> None:
        if self._purge_before is not None:
            purge(self._db, before=self._purge_before)
            self._purge_before = None

    def _log_is_long(self) -> bool:
        try:
            log = self._path.with_name(f"{self._path.name}-wal")
            return log.stat().st_size > _MOST_LOG_BYTES
        except OSError:
            return False

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        if self._is_within:
            with self._reading():
                yield
            return
        try:
            with transaction(self._db, self._path):
                yield
        except BaseException:  # also if interrupted: nothing of it is there
            with contextlib.suppress(sqlite3.Error):
                self._parts.begin_again()
            raise

    def _reading(self) -> AbstractContextManager[None]:
        return usable(self._path)


def _packed(newest: Sequence[float]) -> bytes:
    return np.array(newest, "<f8").tobytes()


def _joined(spans: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the same times in order, spans that touch or overlap as one."""
    found: list[tuple[float, float]] = []
    for start, end in sorted(spans):
        touches = bool(found) and start <= found[-1][1]
        found.append((found[-1][0], max(found.pop()[1], end)) if touches else (start, end))
    return found
