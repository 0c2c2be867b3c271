"""Releases of others in a file: each once, whole, and with the place in the topic."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from anonymizer.errors import SettingsError, StoreError
from anonymizer.pipeline.records.release_messages import (
    ReleasedClasses,
    decode_release,
    encode_classes,
    encode_window,
)
from anonymizer.pipeline.records.store_port import PublishedWindow
from anonymizer.store import ReleaseFile, ReleaseReader

TOPIC = "t.releases"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "releases.sqlite"


@pytest.fixture
def file(path: Path) -> Iterator[ReleaseFile]:
    opened = ReleaseFile(path, keep_published_s=100)
    yield opened
    opened.close()


def window(number: int, *, n_classes: int, closed_at: float = 1000.0) -> PublishedWindow:
    summary = {"records": 9.0, "published": 8.0, "classes": float(n_classes), "k": 4.0}
    return PublishedWindow("fleet", number, number * 10.0, number * 10.0 + 10, closed_at, summary)


def add(file: ReleaseFile, *parts: ReleasedClasses | PublishedWindow, now: float = 1000.0) -> None:
    file.add(parts, topic=TOPIC, offsets={1: 5}, now=now)


@pytest.mark.parametrize(
    "part", [ReleasedClasses("fleet", -3, [b"a", b""]), window(7, n_classes=2)]
)
def test_parts_of_releases_are_read_as_they_were_written(
    part: ReleasedClasses | PublishedWindow,
) -> None:
    value = encode_window(part) if isinstance(part, PublishedWindow) else encode_classes(part)
    assert decode_release(value) == part


@pytest.mark.parametrize("value", [b"", b"P", b"Q\x91\x01", b"R\x90", b"P\xff"])
def test_other_bytes_are_no_part_of_a_release(value: bytes) -> None:
    with pytest.raises(ValueError, match="no part of a release"):
        decode_release(value)


@pytest.mark.parametrize("first", [0, 1, 2])
def test_a_window_is_shown_when_all_its_parts_are_there_in_any_order(
    file: ReleaseFile, path: Path, first: int
) -> None:
    parts: list[ReleasedClasses | PublishedWindow] = [
        ReleasedClasses("fleet", 7, [b"a", b"b"]),
        window(7, n_classes=3),
        ReleasedClasses("fleet", 7, [b"c"]),
    ]
    reader = ReleaseReader(path)
    for part in parts[first:] + parts[:first]:
        assert reader.count(["fleet"]) == 0
        add(file, part)
    [found] = reader.newest(["fleet"], limit=9, offset=0)
    assert (found.window, found.start, found.end, found.k, found.n_classes) == (7, 70, 80, 4, 3)
    assert sorted(reader.classes(found)) == [b"a", b"b", b"c"]


def test_after_a_restart_it_goes_on_where_it_was(file: ReleaseFile, path: Path) -> None:
    add(file, window(1, n_classes=0))
    with pytest.raises(SettingsError, match="in use"):
        ReleaseFile(path, keep_published_s=100)
    file.close()
    file.close()
    again = ReleaseFile(path, keep_published_s=100)
    assert again.offsets(TOPIC) == {1: 5}
    assert again.offsets("other") == {}
    again.close()
    assert ReleaseReader(path).count(["fleet"]) == 1


def test_old_releases_are_erased_whole_or_not(file: ReleaseFile, path: Path) -> None:
    add(file, ReleasedClasses("fleet", 1, [b"a"]), window(1, n_classes=1))
    add(file, ReleasedClasses("fleet", 2, [b"never whole"]))
    add(file, ReleasedClasses("fleet", 3, [b"b"]), window(3, n_classes=1, closed_at=1090), now=1090)
    add(file, now=1101)
    assert [each.window for each in ReleaseReader(path).newest(["fleet"], limit=9, offset=0)] == [3]
    with sqlite3.connect(path) as db:
        assert db.execute("SELECT payload FROM classes").fetchall() == [(b"b",)]


def test_what_cannot_be_stored_leaves_the_file_as_it_was(file: ReleaseFile, path: Path) -> None:
    with sqlite3.connect(path) as other:
        other.execute(
            "CREATE TRIGGER full BEFORE INSERT ON windows BEGIN SELECT RAISE(ABORT, ''); END"
        )
    with pytest.raises(StoreError):
        add(file, ReleasedClasses("fleet", 1, [b"a"]), window(1, n_classes=1))
    assert file.offsets(TOPIC) == {}
    with sqlite3.connect(path) as db:
        assert db.execute("SELECT count(*) FROM classes").fetchone() == (0,)
