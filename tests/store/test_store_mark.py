"""A store that is missing, emptied, replaced or damaged is never taken for a sound one."""

import hashlib
import shutil
import sqlite3
import stat
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from anonymizer.errors import SettingsError
from anonymizer.store import RecordStore, back_up
from anonymizer.store.budget_file import BudgetFile
from anonymizer.store.row_seals import SEALED, seal_of
from anonymizer.store.sqlite_file import SCHEMA, VERSION
from tests.store.kept import CAR, VAN, closed, part, recall, taken

SIDES = ("", "-mark", "-wal", "-shm", "-lock")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "records.sqlite"


def opened(path: Path) -> RecordStore:
    return RecordStore(path, keep_published_s=1e9)


def filled(path: Path) -> None:
    """Leave a store with a published window, histories and an open window."""
    with closing(opened(path)) as store:
        recall(store)
        store.take([taken(part(1), part(2, vehicle=VAN), part(3, window=9))])
        store.close_window(closed(b"one", b"two", memory={CAR: b"c" * 40, VAN: b"v" * 40}))
        store.published([1], {"fleet": {"published": 2}}, at=1001.0)


def content(path: Path) -> str:
    with closing(sqlite3.connect(path)) as db:
        return "\n".join(line for line in db.iterdump() if "'opened'" not in line)


def refused(path: Path) -> str:
    with pytest.raises(SettingsError) as caught:
        opened(path).close()
    assert str(caught.value).startswith(f"store.path: {path}: ")
    return str(caught.value)


@pytest.mark.parametrize(
    "lose", [Path.unlink, lambda path: path.write_bytes(b""), lambda path: path.rename(f"{path}2")]
)
def test_a_store_that_is_missing_or_emptied_is_refused_and_the_way_out_helps(
    lose: Callable[[Path], object], path: Path
) -> None:
    filled(path)
    lose(path)
    assert "is missing or empty" in refused(path)
    assert f"remove {path}-mark, or remove both" in refused(path)
    assert not path.exists() or not path.stat().st_size, "nothing was made in its place"
    path.with_name(f"{path.name}-mark").unlink()
    path.unlink(missing_ok=True)
    opened(path).close()


def test_an_older_copy_is_refused_until_somebody_means_it(path: Path, tmp_path: Path) -> None:
    filled(path)
    back_up(path, tmp_path / "copy", everything=True)
    shutil.copy(path, tmp_path / "file")
    with closing(opened(path)) as store:
        recall(store)
        store.take([taken(part(9, window=9))])
    mark = path.with_name(f"{path.name}-mark")
    for copy in ("copy", "file"):
        closed_mark = mark.read_bytes()
        shutil.copy(tmp_path / copy, path)
        assert "is damaged" in refused(path)
        mark.unlink()
        opened(path).close()
        mark.write_bytes(closed_mark)


def test_an_older_copy_in_the_place_of_a_store_that_was_killed_is_refused(
    path: Path, tmp_path: Path
) -> None:
    filled(path)
    mark = path.with_name(f"{path.name}-mark")
    shutil.copy(path, tmp_path / "older")
    opened(path).close()
    store = opened(path)
    back_up(path, tmp_path / "copy", everything=True)
    of_killed = mark.read_bytes()
    for side in ("", "-wal"):
        shutil.copy(path.with_name(path.name + side), tmp_path / f"killed{side}")
    store.close()
    for name in ("older", "copy", "killed"):
        place = tmp_path / name
        place.with_name(f"{name}-mark").write_bytes(of_killed)
        if name == "killed":
            opened(place).close()
        else:
            assert "is not the store that" in refused(place)


FLIPS = (250, pytest.param(1000, marks=pytest.mark.soak))
"""Bits that are flipped, one at a time."""


def noticed(images: dict[str, bytes], sound: str, folder: Path, *, n_flips: int, seed: int) -> int:
    """Flip bits in the files of a store, one at a time; return how many were noticed.

    Of the others none has another content.
    """
    rng, flipped, n_noticed = Random(seed), folder / "flipped", 0  # noqa: S311
    n_bits = {side: 8 * len(image) for side, image in images.items() if side in {"", "-wal"}}
    for _ in range(n_flips):
        at = rng.randrange(sum(n_bits.values()))
        for each in SIDES:
            flipped.with_name(flipped.name + each).unlink(missing_ok=True)
        for side, image in images.items():
            changed = bytearray(image)
            if side in n_bits:
                if 0 <= at < n_bits[side]:
                    changed[at // 8] ^= 1 << at % 8
                at -= n_bits[side]
            flipped.with_name(flipped.name + side).write_bytes(changed)
        try:
            opened(flipped).close()
        except SettingsError:
            n_noticed += 1
        else:
            assert content(flipped) == sound
    return n_noticed


def images_of(path: Path) -> dict[str, bytes]:
    files = {side: path.with_name(path.name + side) for side in ("", "-wal", "-mark")}
    return {side: file.read_bytes() for side, file in files.items() if file.exists()}


@pytest.mark.parametrize("n_flips", FLIPS)
def test_a_flipped_bit_in_a_store_is_noticed_or_changes_nothing(
    path: Path, tmp_path: Path, n_flips: int
) -> None:
    filled(path)
    images = images_of(path)
    assert "-wal" not in images
    assert noticed(images, content(path), tmp_path, n_flips=n_flips, seed=4) == n_flips


@pytest.mark.parametrize("n_flips", FLIPS)
@pytest.mark.parametrize("short_log", [True, False], ids=["short log", "long log"])
def test_a_flipped_bit_in_a_store_that_was_killed_is_noticed_or_changes_nothing(
    path: Path, tmp_path: Path, *, short_log: bool, n_flips: int
) -> None:
    """Flips in the file and its log: none is opened with another content."""
    store = opened(path)
    recall(store)
    store.take([taken(*(part(n, window=n % 9) for n in range(200)))])
    store.close_window(closed(b"one", b"two", memory={CAR: b"c" * 40, VAN: b"v" * 40}))
    store.keep_session(b"session")
    if short_log:  # most is in the file
        store._erase_log()
    for n in range(200, 202 if short_log else 210):
        store.take([taken(part(n, window=9), news={"received": 1})], {"topic 0": n})
    store.published([1], {"fleet": {"published": 2}}, at=1001.0)
    images = images_of(path)
    store.close()
    assert len(images["-wal"]) > 20_000
    assert short_log == (len(images["-wal"]) < len(images[""]))
    whole = tmp_path / "whole"
    for side, image in images.items():
        whole.with_name(whole.name + side).write_bytes(image)
    opened(whole).close()
    n = noticed(images, content(whole), tmp_path, n_flips=n_flips, seed=5)
    assert n > n_flips / 4, "the rest is what the log replaces, and empty"
    print(f"{n} of {n_flips} were noticed")  # noqa: T201


def test_what_power_has_cut_off_the_log_is_no_damage(path: Path, tmp_path: Path) -> None:
    store = opened(path)
    recall(store)
    store.take([taken(part(1))])
    before = images_of(path)
    store.take([taken(part(2, window=9))])
    images = images_of(path)
    store.close()
    torn = bytearray(images["-wal"])
    torn[len(before["-wal"]) + 100] ^= 1
    copy = tmp_path / "copy"
    for boot in (False, True):
        for side, image in (images | {"-wal": bytes(torn)}).items():
            copy.with_name(copy.name + side).write_bytes(image)
        mark = copy.with_name("copy-mark")
        if boot:
            mark.write_text(mark.read_text().replace('"boot": "', '"boot": "another'))
            with closing(opened(copy)) as again:
                assert recall(again).parts == [part(1)]
        else:
            assert "is damaged" in refused(copy)
    for length in range(len(before["-wal"]), len(images["-wal"]), 500):
        for side, image in (images | {"-wal": images["-wal"][:length]}).items():
            copy.with_name(copy.name + side).write_bytes(image)
        with closing(opened(copy)) as again:
            assert recall(again).parts == [part(1)]


def test_a_history_that_was_changed_is_noticed_without_the_mark(path: Path) -> None:
    for table, column, value in (
        ("vehicles", "state", b"x" * 40),
        ("vehicles", "seen", 99),
        ("streams", "closed_before", 1),
        ("streams", "newest", bytes(16)),
        ("secrets", "value", b"x"),
        ("accounts", "n", 0),
        ("windows", "ends", 1e9),
        ("classes", "payload", b"{}"),
        ("classes", "published_at", None),
        ("parts 1 2", "parts", b"\x90"),
    ):
        for each in SIDES:
            path.with_name(path.name + each).unlink(missing_ok=True)
        filled(path)
        path.with_name(f"{path.name}-mark").unlink()
        with closing(sqlite3.connect(path)) as db:
            db.execute(f'UPDATE "{table}" SET {column} = ?', (value,))  # noqa: S608
            db.commit()
        assert "is damaged" in refused(path)


def test_a_link_in_the_place_of_a_store_changes_nothing_of_its_target(
    path: Path, tmp_path: Path
) -> None:
    target = tmp_path / "somebody's"
    target.write_bytes(b"")
    target.chmod(0o644)
    path.symlink_to(target)
    assert "is a symbolic link" in refused(path)
    with pytest.raises(SettingsError, match=r"store\.path"):
        BudgetFile(path, "plan")
    assert stat.S_IMODE(target.stat().st_mode) == 0o644
    assert target.read_bytes() == b""


def test_whoever_changes_the_format_of_the_store_raises_its_number() -> None:
    """If this fails: raise VERSION where it was released, and convert older files."""
    looks = f"{SCHEMA}{dict(SEALED)}{seal_of(b'value', 1, 1.5, 'name', None)}"
    assert (VERSION, hashlib.sha256(looks.encode()).hexdigest()[:16]) == (6, "b447a8db97c75672")


@pytest.mark.parametrize("version", [VERSION + 1, VERSION + 7])
def test_an_older_program_refuses_the_store_of_a_newer_one_and_changes_nothing(
    path: Path, version: int
) -> None:
    filled(path)
    with closing(sqlite3.connect(path)) as db:
        db.execute(f"PRAGMA user_version = {version}")
    before = path.read_bytes()
    assert f"has version {version}; this gateway reads version {VERSION}" in refused(path)
    assert path.read_bytes() == before
