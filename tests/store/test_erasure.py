"""Erasure: after a window has closed, nothing of its parts is in the file or beside it."""

import json
import random
import sqlite3
import struct
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from anonymizer.pipeline.records.store_port import PartRow
from anonymizer.store import RecordStore, ReleaseReader, back_up
from anonymizer.store.parts_log import tables_of_parts
from anonymizer.store.sqlite_file import APPLICATION_ID
from tests.store.kept import CAR, VAN, closed, part, recall, taken


def on_disk(path: Path) -> bytes:
    """Return the file and everything that SQLite keeps beside it."""
    return b"".join(file.read_bytes() for file in path.parent.glob(f"{path.name}*"))


def found(rows: list[PartRow], content: bytes) -> int:
    """Count the parts of which the vehicle, the time or the values can be found."""
    pieces = {content[i : i + 8] for i in range(len(content) - 7)}
    return sum(
        any(trace[:8] in pieces for trace in (row.vehicle, row.cells, struct.pack(">d", row.ts)))
        for row in rows
    )


@pytest.mark.parametrize("seed", range(3))
def test_no_trace_of_a_closed_window_is_left_among_the_parts_of_open_windows(
    path: Path, store: RecordStore, seed: int
) -> None:
    rng = random.Random(seed)  # noqa: S311  no secrets
    rows: dict[int, list[PartRow]] = {}
    number = 0
    for window in range(6):
        for _ in range(30):
            batch, replaced = [], set()
            for _ in range(rng.randrange(1, 80)):
                number += 1
                of = window + rng.randrange(3)
                vehicle, cells = rng.randbytes(16), rng.randbytes(rng.choice([8, 20, 28]))
                batch.append(PartRow(number, of, vehicle, 0, rng.random() * 1e9, cells))
                stored = rows.setdefault(of, [])
                if stored and rng.random() < 0.2:
                    replaced.add((of, rng.choice(stored).number))
                stored.append(batch[-1])
            store.take([taken(*batch, replaced=list(replaced))])
        store.close_window(closed(window=window, floor=window + 1, next_message=window + 1))
    content = on_disk(path)
    assert found([row for window in range(6) for row in rows[window]], content) == 0
    assert found(rows[6], content) > 100


def test_erased_parts_are_not_in_the_log_of_a_gateway_that_was_killed(path: Path) -> None:
    code = (
        "import os, sys; from pathlib import Path; from anonymizer.store import record_store\n"
        "from tests.store.kept import closed, part, recall, taken\n"
        "store = record_store.RecordStore(Path(sys.argv[1]), keep_published_s=1); recall(store)\n"
        "store.take([taken(part(1))])\n"
        "record_store.erase_log = lambda _: os.kill(os.getpid(), 9)\n"
        "store.close_window(closed())"
    )
    assert subprocess.run([sys.executable, "-c", code, path], check=False).returncode == -9
    assert found([part(1)], on_disk(path)) == 1
    with closing(RecordStore(path, keep_published_s=1)):  # the end would erase the log, too
        assert found([part(1)], on_disk(path)) == 0


def test_a_reader_delays_the_erasure_of_the_log_until_it_is_gone(
    path: Path, store: RecordStore
) -> None:
    store._db.execute("PRAGMA busy_timeout = 10")
    store.take([taken(part(1))])
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM streams").fetchall()
        store.close_window(closed())
        assert found([part(1)], on_disk(path)) == 1
    store.take([taken(news={"received": 1})])
    assert found([part(1)], on_disk(path)) == 0


def test_parts_of_a_stream_with_another_declaration_are_not_left_in_the_log(
    path: Path, store: RecordStore
) -> None:
    store.take([taken(part(1))])
    recall(store, shape="b")
    assert found([part(1)], on_disk(path)) == 0
    store.take([taken(part(2))])
    assert store.retire([]) == 1
    assert found([part(2)], on_disk(path)) == 0


VERSION_1 = """
CREATE TABLE secrets (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE streams (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, shape TEXT NOT NULL,
    newest BLOB NOT NULL, closed_before INTEGER, next_message INTEGER NOT NULL);
CREATE TABLE accounts (stream INTEGER NOT NULL, outcome TEXT NOT NULL, n INTEGER NOT NULL,
    PRIMARY KEY (stream, outcome)) WITHOUT ROWID;
CREATE TABLE parts (stream INTEGER NOT NULL, number INTEGER NOT NULL, window INTEGER NOT NULL,
    vehicle BLOB NOT NULL, source INTEGER NOT NULL, ts REAL NOT NULL, cells BLOB NOT NULL,
    PRIMARY KEY (stream, number)) WITHOUT ROWID;
CREATE INDEX open ON parts (stream, window);
CREATE TABLE recent (batch INTEGER PRIMARY KEY, digests BLOB NOT NULL);
CREATE TABLE windows (stream INTEGER NOT NULL, window INTEGER NOT NULL, starts REAL NOT NULL,
    ends REAL NOT NULL, closed_at REAL NOT NULL, summary TEXT NOT NULL,
    PRIMARY KEY (stream, window)) WITHOUT ROWID;
CREATE TABLE classes (number INTEGER PRIMARY KEY AUTOINCREMENT, stream INTEGER NOT NULL,
    window INTEGER NOT NULL, topic TEXT NOT NULL, payload BLOB NOT NULL, n_parts INTEGER NOT NULL,
    published_at REAL);
CREATE INDEX waiting ON classes (number) WHERE published_at IS NULL;
CREATE INDEX of_window ON classes (stream, window);
CREATE TABLE vehicles (stream INTEGER NOT NULL, vehicle BLOB NOT NULL, seen INTEGER NOT NULL,
    state BLOB NOT NULL, PRIMARY KEY (stream, vehicle)) WITHOUT ROWID;
CREATE INDEX unseen ON vehicles (stream, seen);
"""
PARTS = (part(1), part(2, window=8), part(3, window=8, vehicle=VAN))


def write_old_version(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.executescript(VERSION_1)
        db.execute("PRAGMA user_version = 1")
        db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        db.execute("INSERT INTO secrets VALUES ('key', ?)", (b"k" * 32,))
        db.execute("INSERT INTO streams VALUES (1, 'fleet', 'a', ?, 7, 3)", (bytes(16),))
        db.executemany("INSERT INTO parts VALUES (1, ?, ?, ?, ?, ?, ?)", PARTS)
        db.execute("INSERT INTO recent VALUES (1, ?)", (b"digests of messages",))
        summary = {"records": 4, "published": 4, "classes": 1, "promised_k": 4}
        db.execute("INSERT INTO windows VALUES (1, 6, 60, 70, 0, ?)", (json.dumps(summary),))
        db.execute("INSERT INTO classes VALUES (1, 1, 6, 't', 'one', 4, 0.0)")
        db.execute("INSERT INTO classes VALUES (2, 1, 5, 't', ?, 4, NULL)", (b"two",))
        db.execute("INSERT INTO accounts VALUES (1, 'received', 3)")
        db.execute("INSERT INTO vehicles VALUES (1, ?, 6, ?)", (CAR, b"c" * 40))
        db.commit()


def test_a_file_of_the_first_release_keeps_its_open_windows_and_loses_its_digests(
    path: Path,
) -> None:
    write_old_version(path)
    assert ReleaseReader(path).count(["fleet"]) == 1  # before a gateway has opened it
    back_up(path, path.with_name("copy"))
    assert ReleaseReader(path.with_name("copy")).count(["fleet"]) == 1
    for _ in range(2):  # converted, and opened again
        with closing(RecordStore(path, keep_published_s=1e9)) as store:
            assert store.secret == b"k" * 32
            assert not store.folds_ids  # its histories have keys of ids as they were written
            recalled = recall(store)
            assert recalled.parts == [*PARTS]
            assert (recalled.floor, recalled.next_message) == (7, 3)
            assert recalled.counts == {"received": 3}
            assert store.memories("fleet", [CAR, VAN]) == {CAR: b"c" * 40}
            assert [each.message.payload for each in store.waiting(limit=9)] == [b"two"]
            assert len(tables_of_parts(store._db)) == 2
    content = on_disk(path)
    assert b"digests of messages" not in content
    assert CAR in content
    assert ReleaseReader(path).count(["fleet"]) == 1
