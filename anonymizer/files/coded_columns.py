"""Coded columns: the attribute of one column, the code of each cell, and times as minutes."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import polars as pl

from anonymizer.algorithms.records.attributes import (
    Branch,
    Interval,
    categories,
    numbers,
    places_of,
    rising,
    times,
)
from anonymizer.algorithms.records.generalized_values import MISSING, number
from anonymizer.algorithms.records.time_columns import Level, TimeCells, read_times
from anonymizer.domain.arrays import BoolArray, FloatArray, Int32Array, IntArray
from anonymizer.domain.date_forms import LIKE_A_DATE, YEAR_OF_EITHER_CENTURY, with_century
from anonymizer.domain.records import Attribute
from anonymizer.errors import InputError
from anonymizer.files.tables import TextTable
from anonymizer.files.written_numbers import plain_numbers, read_as_numbers

if TYPE_CHECKING:
    from anonymizer.files.quantities import Quantities

_MOSTLY = 0.5
"""Share of cells from which categories are said to look like dates."""
_SAFE_DIGITS = 15
"""A decimal of so many digits is read back from the float nearest to it."""
_SAMPLE, _TIMES_EACH = 10_000, 4
"""Rows of a table whose distinct cells are looked for, and how often each occurs at least."""
TEXT = (pl.String, pl.Categorical, pl.Enum)
_DIGIT_SOON = r"^.{0,5}\d"
_MAY_HAVE_UNITS = ("categories", "categories, although most cells are numbers")
MINUTES_OF_DAY = Interval(0, 1439, 1)
"""The domain of a time of day."""
_DATE = r"(?:\d{4}[-/]\d{1,2}[-/]\d{1,2}[T ]+)?"
_CLOCK = r"([01]?\d|2[0-3]):([0-5]\d)(?::[0-5]\d(?:[.,]\d+)?)?"
_ZONE = r"(?: ?(?:Z|[+-]\d\d:?\d\d))?"
_TIME = f"^{_DATE}{_CLOCK}{_ZONE}$"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ColumnRules:
    """Declaration of one column; see `Declared`.

    `file` names the hierarchy in messages. `plain`: numbers are written in one way only, and what
    is none is a category.
    """

    branches: Sequence[Branch] = ()
    file: str = "its hierarchy"
    calendar: Sequence[Level] = ()
    order: Sequence[str] | None = None
    interval: Interval | None = None
    as_category: bool = False
    markers: Sequence[str] = ()
    markers_are_values: bool = False
    plain: bool = False


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Coded:
    """An attribute, the code of each cell of its column, and how it was read.

    `missing`: which cells state nothing, also where that counts as a value; shape (rows,).
    """

    attribute: Attribute
    code: Int32Array
    read_as: str
    missing: BoolArray


def code_column(table: TextTable, name: str, rules: ColumnRules) -> Coded:
    """Return the attribute of one column and the code of each cell.

    Raises
    ------
    InputError
        As for `code_table`.

    Notes
    -----
    A column is numeric if a parquet file declares it so, or if every cell reads as a number (`007`
    does not), unless an order or a hierarchy of other values is declared. Numbers may have decimal
    commas and separators of thousands, if all cells are written alike, and a unit (`quantities`).
    Dates, times and durations
    are known by their cells, too (`time_columns`), unless an order, a hierarchy of categories or a
    domain is declared.

    In a large table, distinct cells are read once each.
    """
    if (few := distinct_cells(table.frame[name])) is not None:
        try:
            read = _code_cells(TextTable(table.path, few.cells.to_frame()), name, rules, few.n)
        except InputError:
            pass  # the whole column is read for the row that the message names
        else:
            return Coded(
                read.attribute, read.code[few.cell_of], read.read_as, read.missing[few.cell_of]
            )
    return _code_cells(table, name, rules)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class DistinctCells:
    """The distinct cells of a column, how often each occurs, and which of them each row has."""

    cells: pl.Series
    n: pl.Series
    cell_of: IntArray


def distinct_cells(column: pl.Series) -> DistinctCells | None:
    """Return the distinct cells of a column, None where to look at these alone saves little.

    Floats are left as they are: -0.0 and 0.0 would count as one cell.
    """
    sample = column.head(_SAMPLE)
    if len(sample) < _SAMPLE or column.dtype.is_float() or column.dtype.is_nested():
        return None
    if column.dtype == pl.Object or _TIMES_EACH * sample.n_unique() > _SAMPLE:
        return None
    frame = pl.DataFrame({"cell": column})
    found = frame.group_by("cell", maintain_order=True).len("n").with_row_index("number")
    if _TIMES_EACH * len(found) > len(column):
        return None
    cell_of = frame.join(found, on="cell", how="left", nulls_equal=True, maintain_order="left")
    return DistinctCells(
        found["cell"].alias(column.name), found["n"], cell_of["number"].to_numpy().astype(np.int64)
    )


def _code_cells(
    table: TextTable, name: str, rules: ColumnRules, counts: pl.Series | None = None
) -> Coded:
    """As `code_column`, of a table whose cells occur `counts` times each; None: once."""
    if _declares_numbers(rules):
        known = _with_unit(table, name, rules)
        if not isinstance(known, str):
            return _code_quantities(table, name, rules, known)
    values, how = _numbers(table, name, rules, counts)
    try:
        if values is not None:
            return _code_numbers(table, name, rules, values, how)
        found = how if _is_of_categories(rules) else _times(table, name, rules)
        if isinstance(found, TimeCells):
            return _code_times(table, name, rules, found)
        how = how if found == "categories" else found
        if how in _MAY_HAVE_UNITS:
            held = _with_unit(table, name, rules)
            if not isinstance(held, str):
                return _code_quantities(table, name, rules, held)
            how = how if held == "categories" else held
        return _code_categories(table, name, rules, how)
    except ValueError as error:
        raise InputError(f"{table.path}: column {name}: {error}") from None


def _with_unit(table: TextTable, name: str, rules: ColumnRules) -> "Quantities | str":
    """Return a column of text as numbers with one unit, or what else it holds."""
    if rules.as_category or rules.order is not None or table.frame[name].dtype not in TEXT:
        return "categories"
    if rules.branches and not _declares_numbers(rules):
        return "categories"
    column = _present(table, name, rules)[0]
    if 2 * column.str.contains(_DIGIT_SOON).sum() <= len(column) - column.null_count():
        return "categories"
    from anonymizer.files.quantities import quantities  # noqa: PLC0415  few columns have a unit

    return quantities(column, as_written=rules.plain)


def _declares_numbers(rules: ColumnRules) -> bool:
    """Return whether a domain or a hierarchy of numbers is declared."""
    leaves = [branch[0] for branch in rules.branches if not _marks(branch[0], rules)]
    return rules.interval is not None or (bool(leaves) and read_as_numbers(pl.Series(leaves)))


def _code_quantities(table: TextTable, name: str, rules: ColumnRules, found: "Quantities") -> Coded:
    bare = TextTable(table.path, table.frame.with_columns(found.numbers))
    coded = _code_cells(bare, name, rules)
    attribute = replace(coded.attribute, unit=found.unit)
    return replace(coded, attribute=attribute, read_as=found.how)


def texts(table: TextTable, name: str) -> pl.Series:
    """Return a column as stripped text, null where a cell is empty.

    Raises `InputError` if it holds neither text, numbers, booleans nor times, or a time that has no
    date.
    """
    column = table.frame[name]
    if column.dtype.is_float():
        cells = [None if x is None or np.isnan(x) else number(x) for x in _doubles(column)]
        return pl.Series(name, cells, pl.String)
    if column.dtype.is_temporal():
        if column.dtype in (pl.Date, pl.Datetime):  # polars panics where it can name no year
            beyond = column.dt.year().is_null() & column.is_not_null()
            _refuse(table, name, beyond.to_numpy(), "is no date of the calendar")
        return column.dt.to_string("iso:strict")
    known = (pl.String, pl.Categorical, pl.Enum, pl.Boolean, pl.Null)
    if not (column.dtype.is_integer() or column.dtype.is_decimal() or column.dtype in known):
        raise InputError(
            f"{table.path}: column {name}: must hold text or numbers, not {column.dtype}"
        )
    return column.cast(pl.String).str.strip_chars().replace("", None)


def _doubles(column: pl.Series) -> pl.Series:
    """Return floats as doubles: those of 32 bits as they are written, 0.1 and not 0.1000000015."""
    written = column.cast(pl.String) if column.dtype == pl.Float32 else column
    return written.cast(pl.Float64)


def is_missing(column: pl.Series, markers: Sequence[str]) -> BoolArray:
    """Return which cells of a text column are empty or hold a marker."""
    missing: BoolArray = (column.is_null() | column.is_in([MISSING, *markers])).to_numpy()
    return missing


_Numbers: TypeAlias = FloatArray | list[Decimal | None]
"""The numbers of a column, NaN or None where one is missing; decimals if some are no floats."""


def _numbers(
    table: TextTable, name: str, rules: ColumnRules, counts: pl.Series | None
) -> tuple[_Numbers | None, str]:
    """Return a column as numbers, None if it holds categories, and how it was read."""
    leaves = [branch[0] for branch in rules.branches if not _marks(branch[0], rules)]
    by_order = rules.order is not None or rules.as_category
    if by_order or (leaves and not read_as_numbers(pl.Series(leaves))):
        if rules.interval is not None:
            raise InputError(f"{table.path}: column {name}: has categories, and a range declared")
        return None, "categories"
    how, column = "numbers", table.frame[name]
    if column.dtype.is_float():
        values = _doubles(column).fill_null(np.nan).to_numpy(writable=True)
        values[np.isin(values, [float(m) for m in rules.markers if _is_number(m)])] = np.nan
        _refuse(table, name, np.isinf(values), "is not finite: leave it empty if unknown")
    else:
        declared_so = column.dtype.is_integer() or column.dtype.is_decimal()
        column, missing = _present(table, name, rules)
        if not declared_so and not rules.plain:
            try:
                column, how = plain_numbers(column, counts)
            except ValueError as error:
                raise InputError(f"{table.path}: column {name}: {error}") from None
        read = declared_so or read_as_numbers(column.drop_nulls())
        if rules.interval is None and not leaves and not read:
            return None, "categories" if how == "numbers" else how
        values = column.cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy()
        _refuse(table, name, ~missing & ~np.isfinite(values), "is not a number")
        if not _are_floats(column):
            return [None if cell is None else Decimal(cell) for cell in column], how
    if rules.interval is None and not leaves and np.isnan(values).all():
        return None, "categories"
    return values, how


def _are_floats(column: pl.Series) -> bool:
    """Return whether the float nearest to each number is written like it."""
    plain = ~column.str.contains("[eE]")
    few = column.str.count_matches("[0-9]") <= _SAFE_DIGITS
    unsure = column.filter(~(plain & few)).unique()
    return all(Decimal(cell) == Decimal(repr(float(cell))) for cell in unsure if cell is not None)


def _code_numbers(
    table: TextTable, name: str, rules: ColumnRules, values: _Numbers, how: str
) -> Coded:
    branches = tuple(branch for branch in rules.branches if not _marks(branch[0], rules))
    if rules.calendar:
        raise ValueError("has a calendar, and holds numbers")
    if isinstance(values, list):
        missing = np.array([value is None for value in values])
        code, position, exact = _places_of_decimals(rules, branches, values)
    else:
        missing, exact = np.isnan(values), []
        code, position = _places(rules, branches, values[~missing], np.where(missing, 0.0, values))
    if rules.markers_are_values:
        _refuse(table, name, missing, "is missing, and no number can stand for that")
    outside = (code < 0) & ~missing
    if branches and outside.any():
        _refuse_without_leaf(table, name, rules, outside)
    _refuse(table, name, outside, "lies outside its domain, or between two steps")
    has_missing = bool(missing.any())
    attribute = numbers(name, position, branches=branches, missing=has_missing, exact=exact)
    code[missing] = attribute.missing
    return Coded(attribute, code, how, missing)


def _places(
    rules: ColumnRules, branches: Sequence[Branch], there: FloatArray, values: FloatArray
) -> tuple[Int32Array, FloatArray]:
    """Return the code of each value, -1 where it has no place, and the places."""
    if branches:
        position = np.unique([float(branch[0]) for branch in branches])
        if rules.interval is not None:
            position = position[(position >= rules.interval.lo) & (position <= rules.interval.hi)]
    else:
        interval = rules.interval or Interval(float(there.min()), float(there.max()))
        position = places_of(interval, there[(there >= interval.lo) & (there <= interval.hi)])
    if not len(position):
        return np.full(len(values), -1, np.int32), position
    code = np.minimum(np.searchsorted(position, values), len(position) - 1).astype(np.int32)
    return np.where(position[code] == values, code, np.int32(-1)), position


def _places_of_decimals(
    rules: ColumnRules, branches: Sequence[Branch], values: Sequence[Decimal | None]
) -> tuple[Int32Array, FloatArray, list[Decimal]]:
    """Return the code of each value, -1 where it has no place, and the places twice."""
    there = {value for value in values if value is not None}
    at = rules.interval
    if branches:
        there = {Decimal(branch[0]) for branch in branches}
    if at is not None:
        there = {value for value in there if at.lo <= float(value) <= at.hi}
        lo, hi = Decimal(repr(at.lo)), Decimal(repr(at.hi))
        if at.step is not None and not branches:
            step = Decimal(repr(at.step))
            there = {lo + i * step for i in range(round((at.hi - at.lo) / at.step) + 1)}
        elif not branches:
            there |= {lo, hi}
    exact = sorted(there)
    code_of = {value: code for code, value in enumerate(exact)}
    code = [-1 if value is None else code_of.get(value, -1) for value in values]
    return np.array(code, np.int32), rising(exact), exact


def _code_categories(table: TextTable, name: str, rules: ColumnRules, how: str) -> Coded:
    column = texts(table, name)
    missing = is_missing(column, rules.markers)
    column = column.set(pl.Series(missing), MISSING)
    branches = tuple((_plain(branch[0], rules), *branch[1:]) for branch in rules.branches)
    there = column.unique().sort().to_list()
    domain = [_plain(label, rules) for label in rules.order or ()]
    domain = domain or [branch[0] for branch in branches] or there
    if MISSING in there:
        domain.append(MISSING)
        if branches and all(branch[0] != MISSING for branch in branches):
            branches += ((MISSING, branches[0][-1]),)
    domain = list(dict.fromkeys(domain))
    marker = MISSING if MISSING in domain and not rules.markers_are_values else None
    attribute = categories(name, domain, branches=branches, marker=marker)
    code_of = {label: code for code, label in enumerate(attribute.label)}
    code = column.replace_strict(code_of, default=-1, return_dtype=pl.Int32).to_numpy()
    if branches and (code < 0).any():
        _refuse_without_leaf(table, name, rules, code < 0)
    _refuse(table, name, code < 0, "lies outside its domain")
    return Coded(attribute, code, how, missing)


def _times(table: TextTable, name: str, rules: ColumnRules) -> TimeCells | str:
    """Return the times of a column, or what it holds instead."""
    cells = _present(table, name, rules)[0].drop_nulls().unique().sort()
    found = read_times(cells)
    if found == "categories" and cells.str.contains(LIKE_A_DATE).sum() > _MOSTLY * len(cells):
        read_times(map(with_century, cells))  # says so if the day or the month may come first
        found = "categories, although most cells look like dates"
        if cells.str.contains(YEAR_OF_EITHER_CENTURY).any():
            found += " (write their years with four digits)"
    if rules.calendar and not isinstance(found, TimeCells):
        raise ValueError("has a calendar, and holds no dates or times")
    return found


def _is_of_categories(rules: ColumnRules) -> bool:
    """Return whether a column is declared so that it holds no times."""
    return bool(
        rules.as_category
        or rules.plain
        or rules.branches
        or rules.order is not None
        or rules.interval is not None
    )


def _present(table: TextTable, name: str, rules: ColumnRules) -> tuple[pl.Series, BoolArray]:
    """Return a column as text, null where a value is missing, and where that is."""
    column = texts(table, name)
    missing = is_missing(column, rules.markers)
    return column.set(pl.Series(missing), None), missing


def _code_times(table: TextTable, name: str, rules: ColumnRules, cells: TimeCells) -> Coded:
    column, missing = _present(table, name, rules)
    if rules.markers_are_values:
        _refuse(table, name, missing, "is missing, and no time can stand for that")
    # Of several writings of one time, the shortest stands for all.
    written: dict[Fraction, str] = {}
    for cell in sorted(cells.number_of, key=lambda cell: (len(cell), cell)):
        written.setdefault(cells.number_of[cell], cell)
    value = sorted(written)
    text = [written[each] for each in value]
    branches = [cells.branch(cell, rules.calendar) for cell in text] if rules.calendar else []
    attribute = times(name, value, text, branches=branches, missing=bool(missing.any()))
    rank = {each: code for code, each in enumerate(value)}
    code_of = {cell: rank[each] for cell, each in cells.number_of.items()}
    code = column.replace_strict(code_of, default=attribute.missing, return_dtype=pl.Int32)
    return Coded(attribute, code.to_numpy(writable=True), cells.read_as, missing)


def _refuse(table: TextTable, name: str, faulty: BoolArray, why: str) -> None:
    if faulty.any():
        row = int(np.argmax(faulty)) + 1
        raise InputError(f"{table.path}: column {name}, row {row}: {why}")


def _refuse_without_leaf(
    table: TextTable, name: str, rules: ColumnRules, faulty: BoolArray
) -> None:
    """Say which value a hierarchy lacks, so that it can be put in."""
    cells = texts(table, name)
    faulty = faulty & ~cells.is_in([branch[0] for branch in rules.branches]).to_numpy()
    values = cells.filter(pl.Series(faulty)).unique(maintain_order=True)
    if len(values):
        others = f", nor have {len(values) - 1} other values" if len(values) > 1 else ""
        _refuse(table, name, faulty, f"{values[0]!r} has no leaf in {rules.file}{others}")


def _marks(label: str, rules: ColumnRules) -> bool:
    return label == MISSING or label in rules.markers


def _plain(label: str, rules: ColumnRules) -> str:
    return MISSING if _marks(label, rules) else label


@lru_cache(1 << 12)  # the words for missing are asked for at each column
def _is_number(text: str) -> bool:
    return read_as_numbers(pl.Series([text]))


def with_minutes(table: TextTable, names: Iterable[str], markers: Sequence[str] = ()) -> TextTable:
    """Return a table whose columns of times hold minutes of the day, null where one is missing.

    Parameters
    ----------
    names
        Columns of times: text such as `2023-01-03 00:33:06` or `0:33`, times of a parquet file, or
        numbers, which are taken as minutes.
    markers
        Texts that mean "missing", in addition to an empty cell and `?`.

    Raises
    ------
    InputError
        If a cell is none of these; the message names the column and the row, never the value.

    Notes
    -----
    The hour is taken as written; times with a zone are not converted.
    """
    return TextTable(
        table.path,
        table.frame.with_columns([_minutes(table, name, markers) for name in names]),
    )


def _minutes(table: TextTable, name: str, markers: Sequence[str]) -> pl.Series:
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
