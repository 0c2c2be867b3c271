"""The record store: one file, one process at a time, whole transactions only."""

import errno
import os
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any

import pytest

from anonymizer.errors import SettingsError, StoreError
from anonymizer.store import RecordStore
from tests.store.kept import CAR, VAN, closed, part, recall, taken


@pytest.fixture
def store(path: Path) -> Iterator[RecordStore]:
    opened = RecordStore(path, keep_published_s=100)
    yield opened
    opened.close()


def reopened(store: RecordStore, path: Path) -> RecordStore:
    store.close()
    return RecordStore(path, keep_published_s=100)


def test_stored_parts_survive_a_restart(store: RecordStore, path: Path) -> None:
    assert recall(store).newest == [float("-inf")] * 2
    store.take([taken(part(1), part(2, vehicle=VAN))])
    with closing(reopened(store, path)) as again:
        recalled = recall(again)
        assert recalled.parts == [part(1), part(2, vehicle=VAN)]
        assert recalled.newest == [3.0, float("-inf")]
        assert (recalled.floor, recalled.counts) == (5, {"received": 2})


def test_the_key_is_generated_once_for_each_store(store: RecordStore, path: Path) -> None:
    secret = store.secret
    assert len(secret) == 32
    with closing(reopened(store, path)) as again:
        assert again.secret == secret
    with closing(RecordStore(path.with_name("other"), keep_published_s=1)) as other:
        assert other.secret != secret


def test_replaced_parts_are_not_restored(store: RecordStore) -> None:
    recall(store)
    store.take([taken(part(1), part(2))])
    store.take([taken(part(3), replaced=[(7, 1), (7, 2)])])
    assert recall(store).parts == [part(3)]


def test_a_window_with_many_replaced_parts_does_not_grow_without_end(
    store: RecordStore, path: Path
) -> None:
    recall(store)
    n, sizes = 4_000, []
    for round_ in range(12):
        fresh = range(round_ * n, (round_ + 1) * n)
        old = [(7, number - n) for number in fresh] if round_ else []
        store.take([taken(*map(part, fresh), replaced=old)])
        sizes.append(store._db.execute("PRAGMA page_count").fetchone()[0])
    assert max(sizes) < 5 * sizes[0]
    with closing(reopened(store, path)) as again:
        assert recall(again).parts == [*map(part, fresh)]


def test_closing_a_window_stores_its_classes_and_erases_its_parts(
    store: RecordStore, path: Path
) -> None:
    recall(store)
    store.take([taken(part(1), part(2, window=8))])
    store.close_window(closed(b"one", b"two"))
    recalled = recall(store)
    assert recalled.parts == [part(2, window=8)]
    assert (recalled.floor, recalled.next_message) == (8, 3)
    assert (recalled.n_waiting, recalled.n_unpublished) == (2, 4)
    assert recalled.counts == {"received": 2, "suppressed/no_class": 1}
    assert [waiting.message.payload for waiting in store.waiting(limit=9)] == [b"one", b"two"]
    for file in path.parent.glob("records.sqlite*"):
        assert part(1).cells not in file.read_bytes()
    assert any(part(2).cells in file.read_bytes() for file in path.parent.glob("records.sqlite*"))


def test_a_window_is_never_closed_twice_and_a_failure_changes_nothing(store: RecordStore) -> None:
    recall(store)
    store.close_window(closed(b"one"))
    store.take([taken(part(1))])
    with pytest.raises(StoreError, match=r"store\.path: .*: cannot be used: "):
        store.close_window(closed(b"another partition", next_message=9))
    recalled = recall(store)
    assert recalled.parts == [part(1)]
    assert (recalled.n_waiting, recalled.next_message) == (1, 2)
    assert recalled.counts == {"received": 1, "suppressed/no_class": 1}


def test_closing_a_window_that_fails_halfway_changes_nothing(store: RecordStore) -> None:
    recall(store)
    store.take([taken(part(1))])
    with pytest.raises(ValueError, match="shorter"):
        store.close_window(closed(b"one", b"two", n_parts=[2]))
    assert recall(store).parts == [part(1)]
    store.close_window(closed(b"one"))
    assert [waiting.message.payload for waiting in store.waiting(limit=9)] == [b"one"]


def test_of_many_changes_that_are_made_at_once_all_are_stored_or_none(
    store: RecordStore, path: Path
) -> None:
    def close_two_windows(n_parts: Sequence[int]) -> None:
        with store.at_once():
            store.take([taken(part(1), part(2, window=8))])
            store.close_window(closed(b"one"))
            store.close_window(closed(b"two", window=8, floor=9, n_parts=n_parts))

    recall(store)
    with pytest.raises(ValueError, match="shorter"):
        close_two_windows([])
    assert (recall(store).parts, recall(store).n_waiting, recall(store).counts) == ([], 0, {})
    close_two_windows([1])
    for file in path.parent.glob("records.sqlite*"):
        assert part(1).cells not in file.read_bytes()
    with closing(reopened(store, path)) as again:
        assert [waiting.message.payload for waiting in again.waiting(limit=9)] == [b"one", b"two"]
        assert recall(again).parts == []


def test_a_full_disk_is_reported_and_changes_nothing(store: RecordStore) -> None:
    recall(store)
    store.take([taken(part(1))])
    (n_pages,) = store._db.execute("PRAGMA page_count").fetchone()
    store._db.execute(f"PRAGMA max_page_count = {n_pages + 1}")
    with pytest.raises(StoreError, match=r"store\.path: .*: database or disk is full"):
        store.take([taken(*(part(number) for number in range(2, 2_000)))])
    assert recall(store).parts == [part(1)]


def test_a_disk_that_is_nearly_full_is_reported_before_anything_is_stored(path: Path) -> None:
    with closing(RecordStore(path, keep_published_s=1, min_free_bytes=1)) as store:
        store.check_space()
        assert store.free_bytes > 1
    with closing(RecordStore(path, keep_published_s=1, min_free_bytes=2**62)) as store:
        with pytest.raises(StoreError, match=f"less than {2**62} bytes are free"):
            store.check_space()
        assert recall(store).parts == []


def test_classes_that_the_broker_accepted_are_not_published_again(
    store: RecordStore, path: Path
) -> None:
    recall(store)
    store.close_window(closed(b"one", b"two"))
    first, second = store.waiting(limit=9)
    store.published([first.number], {"fleet": {"published": 2}}, at=1001)
    with closing(reopened(store, path)) as again:
        assert again.waiting(limit=9) == [second]
        recalled = recall(again)
        assert (recalled.n_waiting, recalled.n_unpublished) == (1, 2)
        assert again.accounts() == {"fleet": {"published": 2, "suppressed/no_class": 1}}
        assert again.classes("fleet", start=70, end=80) == [b"one"]
        assert again.classes("fleet", start=71, end=90) == []


@pytest.mark.parametrize("together", [False, True])
def test_published_classes_are_kept_for_the_configured_time(
    store: RecordStore, *, together: bool
) -> None:
    recall(store)
    store.close_window(closed(b"one", b"never taken"))
    store.published([store.waiting(limit=1)[0].number], {}, at=1001)
    store.close_window(closed(window=8, at=1100))
    assert store.classes("fleet", start=0, end=99) == [b"one"]
    with store.at_once() if together else nullcontext():
        store.close_window(closed(window=9, at=1102))
    assert store.classes("fleet", start=0, end=99) == []
    assert [waiting.message.payload for waiting in store.waiting(limit=9)] == [b"never taken"]


def test_the_history_of_a_vehicle_is_kept_until_it_is_absent_for_long(store: RecordStore) -> None:
    recall(store)
    many = {b"%016d" % i: b"state" for i in range(1200)}
    store.close_window(closed(memory={CAR: b"1", **many}))
    store.close_window(closed(window=8, memory={CAR: b"2", VAN: b"3"}))
    assert store.memories("fleet", [CAR, VAN, b"unknown"]) == {CAR: b"2", VAN: b"3"}
    assert store.memories("fleet", list(many)) == many
    store.close_window(closed(window=9, forget_before=8))
    assert store.memories("fleet", [CAR, *many]) == {CAR: b"2"}


def test_parts_of_a_stream_with_a_new_declaration_are_erased_and_counted(
    store: RecordStore,
) -> None:
    recall(store)
    store.take([taken(part(1), part(2))])
    store.close_window(closed(b"one", window=6, memory={CAR: b"1"}))
    recalled = recall(store, shape="b")
    assert (recalled.parts, recalled.floor) == ([], None)
    assert recalled.newest == [float("-inf")] * 2
    assert recalled.counts["suppressed/redeclared"] == 2
    assert recalled.n_waiting == 1
    assert store.memories("fleet", [CAR]) == {}


def test_histories_outlast_a_new_declaration_that_gives_them_the_same_meaning(
    store: RecordStore,
) -> None:
    kept = []
    for shape, histories in [("a", "1"), ("b", "1"), ("c", "2"), ("d", ""), ("e", "")]:
        store.recall("fleet", shape=shape, n_sources=2, histories=histories)
        kept.append(store.memories("fleet", [CAR]))
        store.close_window(closed(window=len(kept), memory={CAR: b"state"}))
    assert kept == [{}, {CAR: b"state"}, {}, {}, {}]


def test_parts_of_a_stream_that_is_no_longer_declared_are_erased_and_counted(
    store: RecordStore,
) -> None:
    recall(store)
    recall(store, stream="other")
    store.take([taken(part(1)), taken(part(2), stream="other")])
    assert store.retire(["other"]) == 1
    assert store.accounts()["fleet"] == {"received": 1, "suppressed/redeclared": 1}
    assert recall(store, stream="other").parts == [part(2)]


def test_classes_of_a_stream_that_is_no_longer_declared_are_still_published(
    store: RecordStore, path: Path
) -> None:
    recall(store)
    store.close_window(closed(b"one"))
    with closing(reopened(store, path)) as again:
        [waiting] = again.waiting(limit=9)
        again.published([waiting.number], {"fleet": {"published": 2}}, at=1)
        assert again.accounts()["fleet"]["published"] == 2


def test_a_commit_is_on_the_disk_before_the_broker_gets_its_acknowledgement(
    store: RecordStore,
) -> None:
    full = 2
    assert store._db.execute("PRAGMA synchronous").fetchone() == (full,)
    assert store._db.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_only_its_user_can_read_the_file(store: RecordStore, path: Path) -> None:
    recall(store)
    store.take([taken(part(1))])
    files = list(path.parent.glob("records.sqlite*"))
    assert {"records.sqlite", "records.sqlite-wal"} <= {file.name for file in files}
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    assert store.size_bytes > 4096


def test_a_disk_that_fails_has_no_size_and_ends_nothing(
    store: RecordStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(Path, "stat", fails)
    assert store.size_bytes == 0


def test_an_existing_file_that_others_can_read_becomes_private(path: Path) -> None:
    path.touch(0o644)
    RecordStore(path, keep_published_s=1).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_second_gateway_is_refused_until_the_first_ends(store: RecordStore, path: Path) -> None:
    with pytest.raises(SettingsError, match="is in use by another gateway"):
        RecordStore(path, keep_published_s=1)
    reopened(store, path).close()


def test_a_gateway_that_was_killed_leaves_no_lock(path: Path) -> None:
    code = (
        "import os, sys; from pathlib import Path; from anonymizer.store import RecordStore\n"
        "store = RecordStore(Path(sys.argv[1]), keep_published_s=1); os.kill(os.getpid(), 9)"
    )
    assert subprocess.run([sys.executable, "-c", code, path], check=False).returncode == -9
    RecordStore(path, keep_published_s=1).close()


def other_program(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE mine (x)")
        db.commit()


def newer_version(path: Path) -> None:
    RecordStore(path, keep_published_s=1).close()
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version=99")


def damaged(path: Path) -> None:
    RecordStore(path, keep_published_s=1).close()
    content = bytearray(path.read_bytes())
    content[5000:] = os.urandom(len(content) - 5000)
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda path: path.write_bytes(b"no database " * 100), "Put the newest backup there"),
        (other_program, "is not a store of records"),
        (newer_version, "has version 99; this gateway reads version 6: start the gateway that"),
        (damaged, "Put the newest backup there"),
        (lambda path: path.mkdir(), "cannot be used: "),
    ],
)
def test_a_file_that_is_not_a_sound_store_is_refused_in_one_line_that_names_it(
    spoil: Any,  # noqa: ANN401  a function of a path
    message: str,
    path: Path,
) -> None:
    spoil(path)
    with pytest.raises(SettingsError) as caught:
        RecordStore(path, keep_published_s=1)
    assert str(caught.value).startswith(f"store.path: {path}: ")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_folder_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="cannot be used: No such file or directory"):
        RecordStore(tmp_path / "nowhere" / "records.sqlite", keep_published_s=1)


def test_what_a_batch_counts_is_added_to_what_is_stored(store: RecordStore) -> None:
    recall(store)
    for _ in range(2):
        store.take([taken(news={"received": 2, "late": 1})])
    assert store.accounts() == {"fleet": {"received": 4, "late": 2}}
