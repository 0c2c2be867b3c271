"""Files that are written whole or not at all."""

import os
from pathlib import Path
from typing import BinaryIO

import pytest

from anonymizer.errors import InputError
from anonymizer.files.atomic_write import FileToWrite, write_whole


def part(text: bytes, *, private: bool = False) -> FileToWrite:
    return FileToWrite(lambda file: file.write(text), private=private)


def test_files_take_their_places_and_leave_nothing_beside_them(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_bytes(b"old")
    write_whole({one: part(b"1"), two: part(b"2", private=True)})
    assert (one.read_bytes(), two.read_bytes()) == (b"1", b"2")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one", "two"]
    assert two.stat().st_mode & 0o777 == 0o600


def test_where_one_cannot_be_written_none_is_and_what_was_there_stays(tmp_path: Path) -> None:
    one = tmp_path / "one"
    one.write_bytes(b"old")
    for bad in (tmp_path / "no folder" / "two", tmp_path):
        with pytest.raises(InputError, match=f"{bad}: cannot be written"):
            write_whole({one: part(b"1"), bad: part(b"2")})
        assert one.read_bytes() == b"old"
        assert [path.name for path in tmp_path.iterdir()] == ["one"]


def test_a_link_stays_a_link_and_what_is_no_regular_file_is_not_replaced(tmp_path: Path) -> None:
    place, link, pipe = (tmp_path / name for name in ("place", "link", "pipe"))
    place.write_bytes(b"old")
    link.symlink_to(place)
    os.mkfifo(pipe)
    write_whole({link: part(b"new")})
    assert link.is_symlink()
    assert place.read_bytes() == b"new"
    with pytest.raises(InputError, match="pipe: cannot be written: is no regular file"):
        write_whole({pipe: part(b"new")})
    assert pipe.is_fifo()


def test_no_file_is_named_like_standard_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=r"^-: cannot be written: standard output is no file"):
        write_whole({tmp_path / "one": part(b"1"), Path("-"): part(b"2")})
    assert not list(tmp_path.iterdir())


def test_a_full_disk_is_told_whoever_says_so(tmp_path: Path) -> None:
    def full(_: BinaryIO) -> None:
        raise OSError("No space left on device")  # as of polars, without a number

    with pytest.raises(InputError, match="one: cannot be written: No space left on device"):
        write_whole({tmp_path / "one": FileToWrite(full)})


def test_a_place_that_is_taken_meanwhile_is_one_line(tmp_path: Path) -> None:
    def take(file: BinaryIO) -> None:
        file.write(b"1")
        (tmp_path / "one").mkdir()

    with pytest.raises(InputError, match="one: cannot be written"):
        write_whole({tmp_path / "one": FileToWrite(take)})
    assert [path.name for path in tmp_path.iterdir()] == ["one"]


def test_what_fails_while_it_is_written_leaves_nothing(tmp_path: Path) -> None:
    def fail(file: BinaryIO) -> None:
        file.write(b"half")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write_whole({tmp_path / "one": part(b"1"), tmp_path / "two": FileToWrite(fail)})
    assert list(tmp_path.iterdir()) == []
