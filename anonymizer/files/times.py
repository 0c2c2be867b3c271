"""Times of day: columns of local times as minutes since midnight."""

from collections.abc import Iterable, Sequence

import polars as pl

from anonymizer.algorithms.records.attributes import Interval
from anonymizer.errors import InputError
from anonymizer.files.coded_columns import is_missing, texts
from anonymizer.files.tables import Table

MINUTES_OF_DAY = Interval(0, 1439, 1)
"""The domain of a time of day."""
_DATE = r"(?:\d{4}[-/]\d{1,2}[-/]\d{1,2}[T ]+)?"
_CLOCK = r"([01]?\d|2[0-3]):([0-5]\d)(?::[0-5]\d(?:[.,]\d+)?)?"
_ZONE = r"(?: ?(?:Z|[+-]\d\d:?\d\d))?"
_TIME = f"^{_DATE}{_CLOCK}{_ZONE}$"


def with_minutes(table: Table, names: Iterable[str], markers: Sequence[str] = ()) -> Table:
    """Return a table whose columns of times hold minutes of the day, null where one is missing.

    Parameters
    ----------
    names
        Columns of times: text such as `2023-01-03 00:33:06` or `0:33`, the times of a parquet
        file, or numbers, which are minutes already.
    markers
        Texts that mean "missing", besides an empty cell and `?`.

    Raises
    ------
    InputError
        If a cell is none of these; the message names column and row, never the value.

    Notes
    -----
    The hour is taken as it is written: what has a zone is not moved to another one.
    """
    return Table(
        table.path,
        table.frame.with_columns([_minutes(table, name, markers) for name in names]),
    )


def _minutes(table: Table, name: str, markers: Sequence[str]) -> pl.Series:
    column = table.frame[name]
    if column.dtype == pl.Time or isinstance(column.dtype, pl.Datetime):
        return column.dt.hour().cast(pl.Int64) * 60 + column.dt.minute()
    text = texts(table, name)
    text = text.set(pl.Series(is_missing(text, markers)), None)
    number = text.cast(pl.Float64, strict=False)
    if number.null_count() == text.null_count():
        return number
    hour, minute = (text.str.extract(_TIME, part).cast(pl.Int64) for part in (1, 2))
    if (faulty := hour.is_null() & text.is_not_null()).any():
        row = faulty.arg_max()
        at = 0 if row is None else row + 1
        raise InputError(f"{table.path}: column {name}, row {at}: is no time of day")
    return hour * 60 + minute
