"""Tables of records, written to csv and parquet."""

import gzip
import re
from io import BytesIO
from typing import BinaryIO, cast

import polars as pl
import polars.selectors as cs

_FORMULA = r"^'*[=+\-@\t\r]"
"""What a spreadsheet runs, and what would be taken for it once it is escaped."""
_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
_ALSO_TEXT = cs.categorical() | cs.enum()
_ROWS_AT_ONCE = 100_000
"""Of a csv that is written."""


def write_table(file: BinaryIO, frame: pl.DataFrame, form: str, *, formulas: bool = False) -> None:
    """Write a table in the format of an ending; equal tables give equal bytes.

    Unless `formulas` is set, a cell or name of a csv that a spreadsheet runs (`=HYPERLINK(...)`)
    begins with an apostrophe, which `without_escapes` takes away. Numbers are written as they are.
    """
    if form == ".parquet":
        whole = BytesIO()  # polars tells of a full disk in other words than the system
        frame.write_parquet(whole)
        file.write(whole.getbuffer())
        return
    if not formulas:
        frame = frame.rename(lambda name: f"'{name}" if re.match(_FORMULA, name) else name)
    if form == ".csv":
        _write_csv(file, frame, formulas=formulas)
    else:
        # No name and no time in the header, so that equal tables give equal files.
        with gzip.GzipFile("", "wb", compresslevel=6, fileobj=file, mtime=0) as packed:
            _write_csv(cast(BinaryIO, packed), frame, formulas=formulas)


def _write_csv(file: BinaryIO, frame: pl.DataFrame, *, formulas: bool) -> None:
    """Write rows as text, some at a time: all of them take several times the memory of the file."""
    for at in range(0, max(len(frame), 1), _ROWS_AT_ONCE):
        part = frame.slice(at, _ROWS_AT_ONCE).with_columns(_ALSO_TEXT.cast(pl.String))
        # polars writes no durations.
        part = part.with_columns(cs.temporal().dt.to_string("iso:strict"))
        if not formulas:
            is_text = frame.select(cs.string() | _ALSO_TEXT).columns
            part = part.with_columns(_escaped(name) for name in is_text)
        part.write_csv(file, include_header=at == 0)


def _escaped(name: str) -> pl.Expr:
    cell = pl.col(name)
    runs = cell.str.contains(_FORMULA) & ~cell.str.contains(_NUMBER)
    return pl.when(runs).then("'" + cell).otherwise(cell).alias(name)
