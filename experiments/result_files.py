"""Files of an experiment: tables, plain data, plots, and the manifest of what they depend on."""

import csv
import hashlib
import json
import os
import platform
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias, TypeVar

from anonymizer.errors import InputError
from anonymizer.files.atomic_write import FileToWrite, naming, write_whole

Row: TypeAlias = dict[str, Any]
"""A row of a table, or plain data as JSON holds it."""
T = TypeVar("T")

_LIBRARIES = (
    "anonymizer-gateway", "numpy", "numba", "scipy", "networkx", "matplotlib", "polars",
    "scikit-learn",
)  # fmt: skip


def manifest(options: Row, inputs: Sequence[Path] = ()) -> Row:
    """Return what results depend on: versions, machine, options, and SHA-256 of the input files.

    Parameters
    ----------
    options
        Options of the command as plain data, the seed among them.
    inputs
        Files that were read.

    Raises
    ------
    InputError
        If a file cannot be read.
    """
    try:
        hashes = {file.name: _sha256(file) for file in inputs}
    except OSError as error:
        raise InputError(f"{error.filename}: cannot be read: {error.strerror}") from None
    return {
        "versions": {"python": platform.python_version(), **_installed()},
        "machine": {"processor": platform.machine(), "cores": os.cpu_count()},
        "options": options,
        "input": hashes,
    }


def network_files(source: str) -> list[Path]:
    """Return the files of a network: its own or, of a prefix, its tables; of a made one, none."""
    path = Path(source)
    if path.is_file():
        return [path]
    tables = (path.parent.glob(f"{path.name}_{part}.*") for part in ("nodes", "edges"))
    return sorted(file for found in tables for file in found if file.suffix in {".csv", ".parquet"})


def write_files(out: Path, write_of: Mapping[str, Callable[[Path], object]]) -> list[Path]:
    """Write files to a folder, which is made if it does not exist, and return their paths.

    All of them take their places when they are whole, or none does.

    Parameters
    ----------
    write_of
        For each file name, what writes the file to a path.

    Raises
    ------
    InputError
        If a file cannot be written.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{error.filename}: cannot be written: {error.strerror}") from None
    with tempfile.TemporaryDirectory(prefix="anonymizer-") as aside:
        parts = {}
        for name, write in write_of.items():
            with naming(out / name):
                write(Path(aside) / name)
            parts[out / name] = FileToWrite(partial(_copy, Path(aside) / name))
        write_whole(parts)
    return list(parts)


def write_drawn(
    names: tuple[str, str],
    found: T,
    options: Row,
    out: Path,
    *,
    rows_of: Callable[[T], Sequence[Row]],
    draw: Callable[[T, Path], object],
    inputs: Sequence[Path] = (),
    formats: Sequence[str] = ("png", "svg"),
) -> list[Path]:
    """Write a table, manifest.json and a picture of what was found; return their paths.

    Parameters
    ----------
    names
        Of the picture, without an ending, and of the table.
    options, inputs
        What the results depend on, and files that were read, for the manifest.
    formats
        Kinds of pictures, of `plots.FORMATS`.

    Raises
    ------
    InputError
        If a file cannot be read or written.
    """
    picture, table = names
    write_of: dict[str, Callable[[Path], object]] = {
        table: lambda path: write_csv(rows_of(found), path),
        "manifest.json": lambda path: write_json(manifest(options, inputs), path),
    }
    write_of |= {f"{picture}.{kind}": partial(draw, found) for kind in formats}
    return write_files(out, write_of)


def _copy(path: Path, file: BinaryIO) -> None:
    with path.open("rb") as made:
        shutil.copyfileobj(made, file)


def write_json(data: Row, path: Path) -> None:
    """Write plain data, indented."""
    path.write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")


def write_csv(rows: Sequence[Row], path: Path) -> None:
    """Write rows, with the columns of all of them; lists are separated by blanks."""
    with path.open("w", newline="", encoding="utf-8") as file:
        names = dict.fromkeys(name for row in rows for name in row)
        writer = csv.DictWriter(file, list(names), lineterminator="\n")
        writer.writeheader()
        for row in rows:
            cells = {n: " ".join(map(str, v)) if isinstance(v, list) else v for n, v in row.items()}
            writer.writerow(cells)


def rows_written(rows: Iterable[Row], names: Sequence[str], path: Path) -> Iterator[Row]:
    """Yield rows with these columns, each once it is in the file: what is found is not lost."""
    with path.open("w", newline="", encoding="utf-8", buffering=1) as file:
        writer = csv.DictWriter(file, list(names), lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow(row)
            yield row


def _installed() -> dict[str, str]:
    """Return the versions of the libraries that are installed: some come with extras."""
    found = {}
    for name in _LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _sha256(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
