"""Stores that older programs have written, as they wrote them: `versions/N.sql` is a dump of each.

Versions 1 and 2 are in `test_erasure.py`; older programs refuse a newer store by its number.
"""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from anonymizer.errors import SettingsError
from anonymizer.store import RecordStore, ReleaseReader, back_up
from anonymizer.store.sqlite_file import READABLE, VERSION
from tests.store.kept import CAR, VAN, part

DUMPS = sorted((Path(__file__).parent / "versions").glob("*.sql"))


def loaded(dump: Path, folder: Path) -> Path:
    path = folder / "records.sqlite"
    with closing(sqlite3.connect(path)) as db:
        db.executescript(dump.read_text())
    return path


def check(store: RecordStore, *, whole: bool = True) -> None:
    recalled = store.recall("fleet", shape="a", n_sources=2, histories="h")
    assert (recalled.floor, recalled.next_message, recalled.released_until) == (8, 3, 80.0)
    assert recalled.newest == [3.0, float("-inf")]
    assert recalled.parts == [part(3, window=9)] * whole
    memory = {CAR: b"c" * 40, VAN: b"v" * 40}
    assert store.memories("fleet", [CAR, VAN]) == (memory if whole else {})
    if whole:
        counts = {"received": 3, "published": 2, "suppressed/no_class": 1}
        assert recalled.counts == counts
        assert store.session == b"session"
        assert store.kept_places() == {"topic 0": 17}
        assert [each.message.payload for each in store.waiting(limit=9)] == [b"two"]


@pytest.mark.parametrize("dump", DUMPS, ids=lambda dump: dump.stem)
def test_a_store_of_an_older_program_is_taken_over_whole(dump: Path, tmp_path: Path) -> None:
    path = loaded(dump, tmp_path)
    before = ReleaseReader(path).count(["fleet"])
    for _ in range(2):  # converted, and opened again
        with closing(RecordStore(path, keep_published_s=1e9)) as store:
            check(store)
            assert not store.folds_ids  # its histories have keys of ids as they were written
    assert ReleaseReader(path).count(["fleet"]) == before


@pytest.mark.parametrize("dump", DUMPS, ids=lambda dump: dump.stem)
def test_what_an_older_program_has_published_can_be_copied(dump: Path, tmp_path: Path) -> None:
    back_up(loaded(dump, tmp_path), tmp_path / "copy")
    with closing(RecordStore(tmp_path / "copy", keep_published_s=1e9)) as store:
        check(store, whole=False)


def test_every_version_but_those_written_by_hand_has_a_dump() -> None:
    assert [int(dump.stem) for dump in DUMPS] == [v for v in READABLE if 2 < v < VERSION]


@pytest.mark.parametrize("version", ["4", "5"])
def test_a_seal_of_an_older_version_that_is_wrong_is_noticed(tmp_path: Path, version: str) -> None:
    path = loaded(next(dump for dump in DUMPS if dump.stem == version), tmp_path)
    with closing(sqlite3.connect(path)) as db:
        db.execute("UPDATE streams SET closed_before = 1 WHERE name = 'fleet'")
        db.commit()
    with pytest.raises(SettingsError, match="is damaged"):
        RecordStore(path, keep_published_s=1e9)
