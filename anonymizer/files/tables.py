"""Tables of records, read from csv and parquet."""

import csv
import gzip
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import BinaryIO, cast
from unicodedata import category, normalize

import numpy as np
import polars as pl
import polars.selectors as cs

from anonymizer.errors import InputError
from anonymizer.files.byte_columns import with_text_of_bytes
from anonymizer.files.csv_text import NOT_UTF_8, UTF_8, CsvText, csv_text
from anonymizer.steady_files import steady
from anonymizer.unfolding import (
    UnfoldingError,
    check_frame,
    check_lines,
    check_unfolding,
    parquet_source,
    polars_source,
)

KNOWN_ENDINGS = (".csv", ".csv.gz", ".parquet")
_ALSO_CSV = (".txt", ".tsv")
_BLANK = r"^\s|\s$|^$"
"""What has blanks around it, or is empty."""
_CHUNK_BYTES = 2**24
_MOST_HEADER_BYTES = 2**24
_LIKENESS = 0.7
"""How like a column its name must be to be proposed."""
_LF, _CR = 10, 13
_SEPARATORS = (",", ";", "\t", "|")
_MOST_TITLES = 20
"""Lines among which the heading is looked for, below titles."""
_SECOND = 2
_UNREAD_SEPARATORS = {
    **{mark: mark for mark in (":", "^", "~")},
    "\uff0c": "full-width commas",
    "\uff1b": "full-width semicolons",
    "\x01": "control signs",
    "\x1f": "control signs",
    " ": "blanks",
}
_NEVER_WITHIN = ("^", "~", "full-width commas", "full-width semicolons", "control signs")
"""Of these, no name of a column has any."""
_ESCAPED = r"^'('*[=+\-@\t\r])"


@dataclass(frozen=True, slots=True, eq=False)
class TextTable:
    """A table that was read from a file."""

    path: Path
    """The file, for messages."""
    frame: pl.DataFrame
    """The requested columns. Those of a csv are stripped text, null where a cell is empty."""
    encoding: str = ""
    """What a csv was read as that is no UTF-8; else empty."""

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.frame)

    def __repr__(self) -> str:
        """Return the size alone: no value may appear in a log."""
        return f"TextTable({len(self.frame)} rows, {len(self.frame.columns)} columns)"


def read_table(path: str | Path, columns: Iterable[str] | None = None) -> TextTable:
    """Read a table with a header; cells of a csv are separated by `,`, `;`, `|` or tabs.

    What spreadsheets write is read, too: see `csv_text`.

    Parameters
    ----------
    path
        Ends in .csv, .csv.gz or .parquet; .txt, .tsv and these with .gz are read like .csv.
    columns
        Columns to read, each once; None: all.

    Raises
    ------
    InputError
        If the file is missing, damaged, too large once it is unpacked (see `check_unfolding`) or
        has no rows, or a column is missing or occurs twice.
    """
    path = Path(path)
    wanted = None if columns is None else list(dict.fromkeys(columns))
    with reading(path, _form(path).removeprefix("."), fault=_fault):
        check_unfolding(path, wanted)
        text = UTF_8 if _form(path) == ".parquet" else _text(path)
        frame = _parquet(path, wanted) if _form(path) == ".parquet" else _csv(path, text, wanted)
    if not len(frame):
        raise InputError(f"{path}: has no rows")
    return TextTable(path, frame, text.encoding)


def text_of_csv(path: Path) -> CsvText:
    """Return the text of a csv with its separator; see `csv_text`.

    Raises `InputError` if it is in no encoding that is read.
    """
    text = _text(path)
    return text._replace(separator=text.separator or _separator(path, text))


def _text(path: Path) -> CsvText:
    try:
        return csv_text(lambda: _opened_bytes(path))
    except ValueError as error:
        raise InputError(f"{path}: {error}") from None


@contextmanager
def reading(
    path: Path, form: str, *, fault: Callable[[Path], str | None] = lambda _: None
) -> Iterator[None]:
    """Say in one line why a file of data cannot be read, without quoting a row of it.

    Nor is one that changes meanwhile, see `steady`. `fault`: returns what is wrong with one that is
    not well-formed, if it is known.
    """
    try:
        with path.open("rb"):
            pass  # the system reports a folder and a missing file in one way, polars in many
        with steady(path):
            yield
    except UnfoldingError as error:
        raise InputError(f"{path}: {error}") from None
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or 'damaged'}") from None
    except pl.exceptions.NoDataError:
        raise InputError(f"{path}: is empty") from None
    except (pl.exceptions.PolarsError, EOFError, UnicodeDecodeError):  # may quote a row
        unread = ", or has a column of a type that is not read" * (form == "parquet")
        why = fault(path) or f"is not well-formed {form}{unread}"
        raise InputError(f"{path}: {why}") from None


def without_escapes(table: TextTable) -> TextTable:
    """Return a csv that `table_writing` has written, with its cells as they were."""
    if _form(table.path) == ".parquet":
        return table
    frame = table.frame.with_columns(cs.string().str.replace(_ESCAPED, "$1"))
    names = {name: re.sub(_ESCAPED, r"\1", name) for name in frame.columns}
    is_clear = len(set(names.values())) == len(names)
    return TextTable(table.path, frame.rename(names) if is_clear else frame)


def ending(path: Path) -> str:
    """Return which of the known endings a path has.

    Raises `InputError` if it has none of them.
    """
    for known in KNOWN_ENDINGS:
        if path.name.lower().endswith(known):
            return known
    raise InputError(f"{path}: a table ends in {', '.join(KNOWN_ENDINGS)}")


def _form(path: Path) -> str:
    """Return the ending of a table to read; text that ends in .txt or .tsv is read like .csv."""
    name = path.name.lower()
    for text in _ALSO_CSV:
        for packed in ("", ".gz"):
            if name.endswith(text + packed):
                return ".csv" + packed
    return ending(path)


def no_column(path: Path | str, name: str, there: Sequence[str]) -> InputError:
    """Return the error of a column that a table lacks, with the one that was probably meant."""
    if "," in name and {part.strip() for part in name.split(",")} <= {*there}:
        return InputError(f"{path}: no column {name}: it takes one, so repeat it for each")
    written = {column.casefold(): column for column in reversed(there)}
    near = get_close_matches(name.casefold(), written, n=1, cutoff=_LIKENESS)
    meant = f"; did you mean {written[near[0]]}?" if near else ""
    return InputError(f"{path}: no column {name}{meant}")


def _parquet(path: Path, wanted: list[str] | None) -> pl.DataFrame:
    source = parquet_source(path)
    _require(path, wanted, list(pl.read_parquet_schema(source)))
    return with_text_of_bytes(check_frame(pl.read_parquet(source, columns=wanted)))


def _csv(path: Path, text: CsvText, wanted: list[str] | None) -> pl.DataFrame:
    with _bytes_of(path, text) as file:
        check_lines(file)
    separator = text.separator or _separator(path, text)
    source = polars_source(path) if text.data is None else text.data
    if wanted and (line := _later_heading(path, text, wanted)) is not None:
        above = "the line above it" if line == _SECOND else f"the {line - 1} lines above it"
        raise InputError(f"{path}: the heading seems to be line {line}: take {above} out")
    uneven = wanted is not None and _is_uneven(path, text, separator)
    if uneven and (fault := _fault(path, text)) is not None:
        raise InputError(f"{path}: {fault}")  # polars looks at the wanted columns alone
    header = pl.read_csv(source, n_rows=0, infer_schema=False, separator=separator).columns
    asked = {_heading(name): name for name in wanted or ()}
    name_of = {column: asked.get(_heading(column), _heading(column)) for column in header}
    if len(header) == 1 and (mark := _unread_separator(header[0], wanted)) is not None:
        raise InputError(f"{path}: cells seem to be separated by {mark}, not by , ; | or tabs")
    _require(path, wanted, list(name_of.values()))
    there = [each for each in header if wanted is None or name_of[each] in wanted]
    frame = pl.read_csv(source, columns=there, infer_schema=False, separator=separator)
    if frame[:, -1].null_count() and (fault := _fault(path, text)) is not None:
        raise InputError(f"{path}: {fault}")  # short rows would be filled up
    frame = frame.rename({each: name_of[each] for each in there})
    # A copy of all texts may take as much memory as they do.
    blank = frame.select(pl.all().str.contains(_BLANK).any())
    blanks = [name for name in frame.columns if blank[name].item()]
    frame = frame.with_columns(pl.col(blanks).str.strip_chars().replace("", None))
    return frame if wanted is None else frame.select(wanted)


def _heading(column: str) -> str:
    """Return a name without signs that nobody sees, in one Unicode form."""
    seen = "".join(sign for sign in column if category(sign) != "Cf")
    return normalize("NFC", seen).strip()


def _later_heading(path: Path, text: CsvText, wanted: Sequence[str]) -> int | None:
    """Return which line below the first has all wanted names, if that has not; None: no one."""
    names = {_heading(name) for name in wanted}
    with _bytes_of(path, text) as file:
        lines = [file.readline(_MOST_HEADER_BYTES) for _ in range(_MOST_TITLES)]
    for number, line in enumerate(lines, 1):
        shown = line.decode(errors="replace")
        rows = (shown.split(mark) for mark in _SEPARATORS)
        if any(names <= {_heading(cell.strip().strip('"')) for cell in row} for row in rows):
            return number if number > 1 else None
    return None


def _separator(path: Path, text: CsvText = UTF_8) -> str:
    with _bytes_of(path, text) as file:
        header = file.readline(_MOST_HEADER_BYTES)
    if b"\0" in header:
        raise InputError(f"{path}: {NOT_UTF_8}")
    if b"\r" in header.rstrip(b"\r\n"):
        raise InputError(f"{path}: ends its lines with CR alone: save it with LF")
    return max(_SEPARATORS, key=lambda mark: header.count(mark.encode()))


def _unread_separator(header: str, wanted: Sequence[str] | None) -> str | None:
    """Return in words what seems to separate the names of a header that is read as one name."""
    for mark, words in _UNREAD_SEPARATORS.items():
        names = [name.strip() for name in header.split(mark)]
        if len(names) > 1 and (words in _NEVER_WITHIN if wanted is None else {*wanted} <= {*names}):
            return words
    return None


def _is_uneven(path: Path, text: CsvText, separator: str) -> bool:
    """Return whether two lines differ in their number of separators, as ragged rows do."""
    expected, rest, mark = -1, b"", ord(separator)
    with _bytes_of(path, text) as file:
        while chunk := file.read(_CHUNK_BYTES):
            chunk, _, rest = (rest + chunk).rpartition(b"\n")
            byte = np.frombuffer(chunk + b"\n" if chunk else b"", np.uint8)
            ends = np.flatnonzero(byte == _LF)
            lengths = np.diff(ends, prepend=-1) - 1
            bare = (lengths == 0) | ((lengths == 1) & (byte[ends - 1] == _CR))
            before = np.searchsorted(np.flatnonzero(byte == mark), ends)
            n = np.diff(before, prepend=0)[~bare]
            if len(n):
                expected = int(n[0]) if expected < 0 else expected
                if (n != expected).any():
                    return True
    return bool(rest.strip()) and expected >= 0 and rest.count(separator.encode()) != expected


def _fault(path: Path, text: CsvText = UTF_8) -> str | None:
    """Return what is wrong with a csv, by its row; None: no fault is known."""
    if _form(path) == ".parquet":
        return None
    try:
        with TextIOWrapper(_bytes_of(path, text), "utf-8-sig", newline="") as file:
            rows = csv.reader(file, delimiter=text.separator or _separator(path, text))
            n_columns = len(next(rows))
            for number, row in enumerate(rows, 1):
                if row and len(row) != n_columns:
                    comment = ", and begins with #: take lines of comment out"
                    found = f"row {number}: has {len(row)} cells, and the header {n_columns}"
                    return found + comment * row[0].lstrip().startswith("#")
    except UnicodeDecodeError:
        return NOT_UTF_8
    except (csv.Error, OSError, EOFError):
        return None
    return None


def _bytes_of(path: Path, text: CsvText) -> BinaryIO:
    return _opened_bytes(path) if text.data is None else BytesIO(text.data)


def _opened_bytes(path: Path) -> BinaryIO:
    return cast(BinaryIO, gzip.open(path, "rb")) if _form(path) == ".csv.gz" else path.open("rb")


def _require(path: Path, wanted: list[str] | None, there: list[str]) -> None:
    for name in wanted or ():
        if name not in there:
            raise no_column(path, name, there)
    # polars appends this ending to the second column of a name.
    for name in wanted or there:
        if f"{name}_duplicated_0" in there or there.count(name) > 1:
            raise InputError(f"{path}: column {name} occurs twice")
