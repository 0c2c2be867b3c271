"""Published windows, read and copied while the gateway writes to the store."""

import fcntl
import json
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest

from anonymizer.errors import InputError, SettingsError
from anonymizer.store import RecordStore, ReleaseReader, back_up
from tests.store.kept import closed, part, recall, taken


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a b?.sqlite"


def release(store: RecordStore, window: int, *payloads: bytes, at: float = 1000.0) -> None:
    """Close a window; its classes wait to be published."""
    summary = {"records": 9, "published": 8, "classes": len(payloads), "k": 4, "promised_k": 3}
    start = window * 10.0
    how = {"window": window, "start": start, "end": start + 10, "at": at, "floor": window + 1}
    store.close_window(closed(*payloads, summary=summary, **how))


def publish(store: RecordStore, *, most: int = 100, at: float = 1000.0) -> None:
    store.published([w.number for w in store.waiting(limit=most)], {}, at=at)


def test_a_window_is_a_release_once_all_its_classes_are_published(
    store: RecordStore, path: Path
) -> None:
    reader = ReleaseReader(path)
    release(store, 7, b"a", b"b")
    assert reader.count(["fleet"]) == 0
    publish(store, most=1)
    assert reader.newest(["fleet"], limit=9, offset=0) == []
    publish(store)
    [found] = reader.newest(["fleet"], limit=9, offset=0)
    assert (found.stream, found.window, found.start, found.end) == ("fleet", 7, 70.0, 80.0)
    assert (found.k, found.n_classes, found.n_records, found.n_published) == (3, 2, 9, 8)
    assert reader.classes(found) == [b"a", b"b"]
    assert reader.classes(found, limit=1) == [b"a"]
    assert reader.count(["other"]) == 0


def test_releases_are_found_by_their_time_and_in_pages(store: RecordStore, path: Path) -> None:
    reader = ReleaseReader(path)
    for window in range(4):
        release(store, window, b"a")
    release(store, 4)  # without any class
    publish(store)
    assert [r.window for r in reader.newest(["fleet"], limit=2, offset=1)] == [3, 2]
    inside = reader.within("fleet", start=10.0, end=35.0, limit=9)
    assert [r.window for r in inside] == [1, 2]
    assert [r.window for r in reader.within("fleet", start=0, end=1e9, limit=3)] == [0, 1, 2]
    assert reader.count(["fleet"]) == 5


def test_old_releases_are_erased_by_whole_windows(store: RecordStore, path: Path) -> None:
    reader = ReleaseReader(path)
    release(store, 1, b"a", b"b", at=1000.0)
    publish(store, most=1, at=1000.0)
    publish(store, at=1099.0)
    release(store, 2, b"c", at=1099.0)
    publish(store, at=1099.0)
    assert reader.count(["fleet"]) == 2
    release(store, 3, b"d", at=1101.0)
    publish(store)
    assert [r.window for r in reader.newest(["fleet"], limit=9, offset=0)] == [3, 2]


def test_a_file_that_is_not_a_store_is_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="there is no such file"):
        ReleaseReader(tmp_path / "nothing").count(["a"])
    text = tmp_path / "text"
    text.write_text("no database at all, and long enough to be read as one")
    with pytest.raises(SettingsError, match="cannot be read"):
        ReleaseReader(text).count(["a"])
    other = tmp_path / "other.sqlite"
    with closing(sqlite3.connect(other)) as db:
        db.execute("CREATE TABLE t (a)")
    for read in (
        lambda: ReleaseReader(other).count(["a"]),
        lambda: back_up(other, tmp_path / "copy"),
        lambda: back_up(other, tmp_path / "copy", everything=True),
    ):
        with pytest.raises(SettingsError, match="not a store of records of this version"):
            read()
    with pytest.raises(SettingsError, match="there is no such file"):
        back_up(tmp_path / "nothing", tmp_path / "copy")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["other.sqlite", "text"]


def test_a_copy_made_while_the_gateway_writes_contains_published_data_only(
    store: RecordStore, path: Path, tmp_path: Path
) -> None:
    store.take([taken(part(1, window=9))])
    release(store, 7, b"payload-of-7")
    publish(store)
    release(store, 8, b"payload-of-8")
    copy = tmp_path / "copy.sqlite"
    back_up(path, copy)
    content = copy.read_bytes()
    assert b"payload-of-7" in content
    assert b"payload-of-8" not in content
    assert b"car-key" not in content
    assert b"raw-" not in content
    assert store.secret not in content
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert [r.window for r in ReleaseReader(copy).newest(["fleet"], limit=9, offset=0)] == [7]
    again = RecordStore(copy, keep_published_s=100)
    recalled = recall(again)
    assert (recalled.floor, list(recalled.parts)) == (9, [])  # no window is made again
    again.close()


def test_a_copy_of_everything_continues_where_the_store_was(
    store: RecordStore, path: Path, tmp_path: Path
) -> None:
    store.take([taken(part(1, window=9))])
    copy = tmp_path / "copy.sqlite"
    back_up(path, copy, everything=True)
    again = RecordStore(copy, keep_published_s=100)
    assert (again.secret, len(recall(again).parts)) == (store.secret, 1)
    again.close()


@pytest.mark.usefixtures("store")
def test_a_copy_does_not_replace_an_existing_file(path: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.sqlite"
    copy.write_text(json.dumps("precious"))
    with pytest.raises(InputError, match="already exists"):
        back_up(path, copy)
    with pytest.raises(InputError, match="cannot be written"):
        back_up(path, tmp_path / "nowhere" / "copy.sqlite")
    assert copy.read_text() == '"precious"'


@pytest.mark.parametrize("everything", [True, False])
def test_a_copy_takes_the_place_of_what_a_killed_one_left_and_leaves_a_living_one_alone(
    store: RecordStore, path: Path, tmp_path: Path, *, everything: bool
) -> None:
    release(store, 7, b"payload-of-7")
    publish(store)
    copy, part = tmp_path / "copy.sqlite", tmp_path / "copy.sqlite.part"
    for suffix in ("", "-wal", "-shm", "-journal", "-lock", "-mark"):
        part.with_name(part.name + suffix).write_bytes(b"half of a copy" * 999)
    with part.open("rb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(InputError, match="another backup"):
            back_up(path, copy, everything=everything)
        assert part.stat().st_size
    back_up(path, copy, everything=everything)
    assert [r.window for r in ReleaseReader(copy).newest(["fleet"], limit=9, offset=0)] == [7]
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert not list(tmp_path.glob("copy.sqlite.part*"))
