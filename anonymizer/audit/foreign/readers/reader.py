"""A reader: one kind of file, how it is recognized, and how it becomes a table."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from anonymizer.errors import InputError
from anonymizer.unfolding import MAX_BYTES

HEAD_BYTES = 4096
"""First bytes of a file, by which it is recognized."""
MOST_BYTES = MAX_BYTES // 8
"""Of a file that becomes Python objects, several times as large; a table may be larger."""


@dataclass(frozen=True, slots=True)
class FileKind:
    """A kind of file."""

    name: str
    """In words."""
    recognizes: Callable[[Path, bytes], bool]
    """Whether a file is of it, by its path and its first bytes."""
    read: Callable[[Path], pl.DataFrame]
    """Return its rows; a column that says in which file or track they were is named by `_`."""


def check_size(path: Path) -> None:
    """Raise an InputError if a file is too large for a reader of Python objects."""
    if path.stat().st_size > MOST_BYTES:
        most = f"{MOST_BYTES >> 20} MiB"
        raise InputError(f"{path}: is larger than {most}: make several of it, or a csv or parquet")


def json_of(path: Path, data: bytes | None = None) -> Any:  # noqa: ANN401  of JSON
    """Return what a JSON file, or some of its bytes, holds.

    Raises `InputError` if it is none, or too large.
    """
    if data is None:
        check_size(path)
        data = path.read_bytes()
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError):
        raise InputError(f"{path}: is no JSON") from None


def frame_of(rows: list[dict[str, Any]]) -> pl.DataFrame:
    """Return rows as texts and numbers; what is neither is JSON in a text."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = {}
    for name in names:
        values = [row.get(name) for row in rows]
        if any(isinstance(value, dict | list) for value in values):
            values = [
                None if each is None else msgspec.json.encode(each).decode() for each in values
            ]
        is_number = all(
            value is None or (isinstance(value, int | float) and not isinstance(value, bool))
            for value in values
        )
        columns[name] = (
            pl.Series(name, values, pl.Float64, strict=False)
            if is_number and any(isinstance(value, float) for value in values)
            else pl.Series(name, [None if each is None else str(each) for each in values])
        )
    return pl.DataFrame(columns)
