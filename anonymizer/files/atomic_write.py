"""Atomic writing: several files are replaced together, or none of them."""

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from anonymizer.errors import InputError


@dataclass(frozen=True, slots=True)
class FileToWrite:
    """One file to write.

    Attributes
    ----------
    write
        Function that writes the content.
    private
        Whether only the owner may read the file.
    """

    write: Callable[[BinaryIO], object]
    private: bool = False


def check_distinct(written: Iterable[Path | None], read: Iterable[Path | None] = ()) -> None:
    """Check that no file would be written over one that is read, or written twice.

    None stands for a file that is not wanted, and `-` for standard output.

    Raises
    ------
    InputError
        If a file is named twice.
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

    Each file is written under a temporary name in its folder. When all are complete, they are
    renamed, in the given order.

    Raises
    ------
    InputError
        If a file cannot be written. An existing file of that name is then unchanged.
    """
    made: dict[Path, Path] = {}
    try:
        for path, part in parts.items():
            if path.exists() and not path.is_file():  # such as /dev/null, which root could replace
                raise InputError(f"{path}: cannot be written: is no regular file")
            # A link stays, /dev/stdout for one; its target is replaced.
            place = named_file(path).resolve()
            made[path] = place.with_name(f".{place.name}.{os.getpid()}.part")
            try:
                _write(made[path], part)
            except OSError as error:
                raise _cannot(path, error) from None
        for path, new in made.items():
            try:
                new.replace(path.resolve())
            except OSError as error:
                raise _cannot(path, error) from None
    finally:
        for new in made.values():
            with suppress(OSError):
                new.unlink(missing_ok=True)


def _write(path: Path, part: FileToWrite) -> None:
    mode = 0o600 if part.private else 0o666  # reduced by the umask
    with os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode), "wb") as file:
        part.write(file)
        file.flush()
        os.fsync(file.fileno())


def _cannot(path: Path, error: OSError) -> InputError:
    return InputError(f"{path}: cannot be written: {error.strerror or error}")
