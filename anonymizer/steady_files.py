"""Files that stay what they are while they are read.

A job that writes a table again first makes it empty: whoever reads it then has a part of the rows,
and nothing in them says so.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from anonymizer.errors import InputError


@contextmanager
def steady(path: Path) -> Iterator[None]:
    """Raise InputError if a file is written or replaced meanwhile.

    Also in place of the error that half a file causes.
    """
    before = _state(path)
    try:
        yield
    except Exception:  # whatever half a file causes; it is raised again
        _check(path, before)
        raise
    _check(path, before)


def _check(path: Path, before: tuple[int, ...]) -> None:
    if _state(path) != before:
        raise InputError(
            f"{path}: was changed while it was read: read it when it is whole"
        ) from None


def _state(path: Path) -> tuple[int, ...]:
    """Return which file it is, its bytes and when it was written; nothing if there is none."""
    try:
        found = path.stat()
    except OSError:
        return ()
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
