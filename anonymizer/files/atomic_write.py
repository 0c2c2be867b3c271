"""Atomic writing: several files are replaced together, or none of them.

A file that is being written has no name (`O_TMPFILE`), so that nothing is left of it whatever ends
the program. Where the system has no such files, it has a hidden name in the same folder, which only
SIGKILL and SIGTERM leave behind.
"""

import errno
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from io import BufferedWriter, FileIO
from pathlib import Path
from typing import BinaryIO, cast

from anonymizer.errors import InputError

_UNNAMED = getattr(os, "O_TMPFILE", 0)
_DO = {
    errno.ENOSPC: "make room, or name a file on another disk",
    errno.EDQUOT: "make room, or name a file on another disk",
    errno.EFBIG: "raise the limit on the size of files (ulimit -f)",
}
"""What to do about what the system says."""
_NUMBER = re.compile(r" \(os error \d+\)")
"""As polars ends what the system says."""


@dataclass(frozen=True, slots=True)
class FileToWrite:
    """One file to write."""

    write: Callable[[BinaryIO], object]
    """Function that writes the content."""
    private: bool = False
    """Whether only the owner may read the file."""


def of_content(content: str | bytes, *, private: bool = False) -> FileToWrite:
    """Return a file with this content, text in UTF-8."""
    data = content.encode() if isinstance(content, str) else content
    return FileToWrite(lambda file: file.write(data), private=private)


def check_distinct(written: Iterable[Path | None], read: Iterable[Path | None] = ()) -> None:
    """Check that no file would be written over one that is read, or written twice.

    None stands for a file that is not wanted, and `-` for standard output.

    Raises `InputError` if a file is named twice.
    """
    named = {each.resolve() for each in read if each is not None}
    for each in written:
        if each is None or each == Path("-"):
            continue
        if each.resolve() in named:
            raise InputError(f"{each}: is named twice")
        named.add(each.resolve())


def named_file(path: Path) -> Path:
    """Return the path of a file to write; raise InputError if it is `-`, standard output."""
    if path == Path("-"):
        raise InputError("-: cannot be written: standard output is no file; name one")
    return path


def write_whole(parts: Mapping[Path, FileToWrite]) -> None:
    """Write several files, all of them or none.

    When all are complete, they take their places, in the given order.

    Raises `InputError` if a file cannot be written. An existing file of that name is then
    unchanged.
    """
    with ExitStack() as made:
        new = {}
        for path, part in parts.items():
            new[path] = made.enter_context(_beside(path, private=part.private))
            with naming(path):
                part.write(new[path].file)
                new[path].finish()
        for path, each in new.items():
            with naming(path):
                each.take_place()


@contextmanager
def whole_file(path: Path, *, private: bool = False) -> Iterator[BinaryIO]:
    """Yield a file to write, which takes its place when the block ends without an error.

    What is there and no regular file, such as a pipe, is written to directly.

    Raises `InputError` if the file cannot be written. An existing file of that name is then
    unchanged.
    """
    with ExitStack() as made:
        with naming(path):
            file: BinaryIO
            new: _Beside | None
            if path.exists() and not path.is_file() and not path.is_dir():
                number = os.open(path, os.O_WRONLY)
                file = made.enter_context(BufferedWriter(_NamedFile(path, number)))
                new = None
            else:
                new = made.enter_context(_beside(path, private=private))
                file = new.file
        yield file
        with naming(path):
            if new is None:
                file.flush()
            else:
                new.finish()
                new.take_place()


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Say of an error of the system which file cannot be written, and what to do about it."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {said_of(error)}") from None


def said_of(error: OSError) -> str:
    """Return what the system says of a file that it cannot write, and what to do about it."""
    said = error.strerror or _NUMBER.sub("", str(error))
    for code, do in _DO.items():
        if os.strerror(code) in said:  # polars gives no number
            return f"{said}: {do}"
    return said


class _NamedFile(FileIO):
    """A file whose errors name its place."""

    def __init__(self, place: Path, number: int) -> None:
        super().__init__(number, "wb")
        self._place = place

    def write(self, data: object, /) -> int:
        with naming(self._place):
            return super().write(cast("bytes", data))  # whatever a file takes


class _Beside:
    """A file in the folder of its place, which it takes when it is whole."""

    def __init__(self, path: Path, mode: int) -> None:
        self._place = place = path.resolve()
        self._hidden = place.with_name(f".{place.name}.{os.getpid()}.part")
        self._has_name = False
        opened = _without_name(place.parent, mode)
        if opened is None:
            opened = os.open(self._hidden, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode)
            self._has_name = True
        self.file = BufferedWriter(_NamedFile(path, opened))

    def finish(self) -> None:
        self.file.flush()
        os.fsync(self.file.fileno())

    def take_place(self) -> None:
        if not self._has_name:
            number = self.file.fileno()
            # With a folder stated, Python follows the link to the file that has no name.
            os.link(f"/proc/self/fd/{number}", self._hidden, src_dir_fd=number)
            self._has_name = True
        self._hidden.replace(self._place)
        self._has_name = False

    def drop(self) -> None:
        with suppress(OSError, InputError):  # what could not be written is still to be written
            self.file.close()
        if self._has_name:
            self._hidden.unlink(missing_ok=True)


def _without_name(folder: Path, mode: int) -> int | None:
    """Open a file without a name; None if the system has none that can be named later."""
    if not _UNNAMED:
        return None
    try:
        number = os.open(folder, _UNNAMED | os.O_WRONLY, mode)
    except OSError:
        return None
    if Path(f"/proc/self/fd/{number}").exists():
        return number
    os.close(number)
    return None


@contextmanager
def _beside(path: Path, *, private: bool) -> Iterator[_Beside]:
    if path.exists() and not path.is_file():  # such as /dev/null, which root could replace
        raise InputError(f"{path}: cannot be written: is no regular file")
    # A link stays, /dev/stdout for one; its target is replaced.
    with naming(path):
        new = _Beside(named_file(path), 0o600 if private else 0o666)
    try:
        yield new
    finally:
        new.drop()
