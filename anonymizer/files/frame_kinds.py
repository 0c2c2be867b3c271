"""Data frames of polars and pandas: taken in as polars, given back as the kind that came in.

pandas is no dependency and is never imported here: the owner of a frame has imported it.
Columns are converted one by one through numpy and lists, which works without pyarrow; polars' own
conversion does not.
"""

import sys
from collections.abc import Callable, Iterable
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

import polars as pl

from anonymizer.errors import InputError
from anonymizer.files.byte_columns import with_text_of_bytes
from anonymizer.files.tables import TextTable, no_column, read_table
from anonymizer.unfolding import UnfoldingError, check_frame

DataFrame: TypeAlias = Any
"""A `polars.DataFrame` or a `pandas.DataFrame`."""
FilePath: TypeAlias = str | PathLike[str]


def as_table(
    source: DataFrame | FilePath, columns: Iterable[str] | None = None, *, name: str
) -> TextTable:
    """Return some columns (None: all) of a file or a data frame as a table.

    `name`: what messages call a data frame.

    Raises `InputError` as `read_table`, and for what is neither a path nor a data frame.
    """
    if isinstance(source, str | PathLike):
        return read_table(Path(source), columns)
    try:
        frame = check_frame(as_polars(source, columns, name=name))
    except UnfoldingError as error:
        raise InputError(f"{name}: {error}") from None
    if not len(frame):
        raise InputError(f"{name}: has no rows")
    return TextTable(Path(name), frame)


def as_polars(frame: DataFrame, columns: Iterable[str] | None = None, *, name: str) -> pl.DataFrame:
    """Return some columns (None: all) of a data frame, as polars.

    Raises `InputError` if it is no data frame, lacks a column or has it twice, or a column has no
    one type. The message never quotes a value.
    """
    if not isinstance(frame, pl.DataFrame) and not _is_pandas(frame):
        raise InputError(f"{name}: must be a path, a polars.DataFrame or a pandas.DataFrame")
    there = list(frame.columns)
    wanted = there if columns is None else list(dict.fromkeys(columns))
    for column in wanted:
        if column in there and isinstance(column, str):
            continue
        if not all(isinstance(each, str) for each in there):
            renamed = "pass frame.rename(columns=str)"
            raise InputError(f"{name}: has column names that are not text: {renamed}")
        if _is_pandas(frame) and column in frame.index.names:
            raise InputError(f"{name}: {column} is in the index: pass frame.reset_index()")
        raise no_column(name, column, there)
    if twice := [column for column in wanted if there.count(column) > 1]:
        raise InputError(f"{name}: column {twice[0]} is there twice")
    if isinstance(frame, pl.DataFrame):
        return with_text_of_bytes(frame.select(wanted))
    return with_text_of_bytes(
        pl.DataFrame([_series(frame[column], column, name) for column in wanted])
    )


def in_kind_of(given: object, frame: pl.DataFrame) -> DataFrame:
    """Return a frame as the kind of data frame that was given; polars where it was a path."""
    return kind_of(given)(frame)


def kind_of(given: object) -> Callable[[pl.DataFrame], DataFrame]:
    """Return what makes a frame one of the kind that was given, which it does not hold on to."""
    return _as_pandas if _is_pandas(given) else lambda frame: frame


def _as_pandas(frame: pl.DataFrame) -> DataFrame:
    pandas = sys.modules["pandas"]
    columns = {column.name: _pandas_column(column) for column in frame}
    return pandas.DataFrame(columns, index=pandas.RangeIndex(len(frame)))


def _is_pandas(frame: object) -> bool:
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(frame, pandas.DataFrame)


def _series(column: Any, column_name: str, name: str) -> pl.Series:  # noqa: ANN401  of pandas
    if column.dtype.kind in "biuf" and not hasattr(column.dtype, "na_value"):
        return pl.Series(column_name, column.to_numpy())
    values = [
        None if missing else value
        for missing, value in zip(column.isna(), column.tolist(), strict=True)
    ]
    try:
        series = pl.Series(column_name, values)
    except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError):
        # Not chained: the message quotes a value.
        raise InputError(f"{name}: column {column_name}: holds values of several types") from None
    return series


def _pandas_column(column: pl.Series) -> object:
    if column.dtype.is_integer() and column.null_count():
        return sys.modules["pandas"].array(column.to_list(), dtype="Int64")
    return column.to_numpy() if column.dtype.is_numeric() else column.to_list()
