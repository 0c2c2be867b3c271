"""Coded tables: a table and the declaration of its columns become records with codes for values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np
import polars as pl

from anonymizer.algorithms.records.attributes import Branch, Interval
from anonymizer.algorithms.records.time_columns import Level
from anonymizer.domain.arrays import BoolArray, Int32Array, IntArray
from anonymizer.domain.records import Attribute, Records, Schema
from anonymizer.domain.spellings import NO_VALUE
from anonymizer.errors import InputError, SettingsError
from anonymizer.files.coded_columns import (
    MINUTES_OF_DAY,
    TEXT,
    Coded,
    ColumnRules,
    code_column,
    distinct_cells,
    is_missing,
    texts,
    with_minutes,
)
from anonymizer.files.meanings import Fold, Meant, Spelling, meant
from anonymizer.files.tables import TextTable, no_column

Origin: TypeAlias = Literal["range", "order", "hierarchy", "data"]
"""Origin of a domain; all but `data` are declared."""
Reason: TypeAlias = Literal["no_identifier", "states_nothing", "states_no_qi"]
"""Why a row is no record: whose it is, is unknown; it states no QI and no sensitive value, as rows
of blanks do, so that nobody is known to be behind it; or it states none of the QIs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """Declaration of the columns of a table."""

    qis: Sequence[str]
    sensitive: Sequence[str] = ()
    """`qis`, `sensitive`: names of the quasi-identifiers and the sensitive attributes."""
    id: str | None = None
    """The direct identifier; None: every row is a person of its own."""
    sources: Sequence[Sequence[str]] = ()
    """The quasi-identifiers of each source. Those that no source names form one more source."""
    hierarchies: Mapping[str, Sequence[Branch]] = field(default_factory=dict)
    hierarchy_files: Mapping[str, str] = field(default_factory=dict)
    """The files of hierarchies, by attribute, for messages."""
    calendars: Mapping[str, Sequence[Level]] = field(default_factory=dict)
    """By attribute with dates or times: the levels of its hierarchy, from the coarsest."""
    orders: Mapping[str, Sequence[str]] = field(default_factory=dict)
    ranges: Mapping[str, Interval] = field(default_factory=dict)
    """`hierarchies`, `orders`, `ranges`: by attribute: branches of a hierarchy, categories in their
    order, the interval of a number."""
    categories: Sequence[str] = ()
    """Attributes whose values are categories although they look like numbers."""
    times: Sequence[str] = ()
    """Attributes whose values are local times; their codes are minutes of the day."""
    markers: Sequence[str] = NO_VALUE
    """Texts that mean "missing", in addition to an empty cell and `?`. All are published as `?` in
    quasi-identifiers."""
    markers_are_values: bool = False
    """Whether a missing value counts as one more category, as in the paper."""
    keep: Sequence[str] = ()
    """Further columns, which are published as they are."""
    exact: Sequence[str] = ()
    """Columns of which each writing is a value of its own, and an empty cell or `?` alone is
    missing."""

    def __post_init__(self) -> None:
        if not self.qis:
            raise SettingsError("at least one quasi-identifier is needed")
        roles = [*self.columns]
        if twice := [name for name in roles if roles.count(name) > 1]:
            raise SettingsError(f"column {twice[0]} is declared twice")
        in_sources = [name for source in self.sources for name in source]
        if unknown := [name for name in in_sources if name not in self.qis]:
            raise SettingsError(f"source: {unknown[0]} is not a quasi-identifier")
        if twice := [name for name in in_sources if in_sources.count(name) > 1]:
            raise SettingsError(f"source: {twice[0]} is in two sources")
        named = [*self.ranges, *self.categories, *self.times]
        if unknown := [name for name in named if name not in (*self.qis, *self.sensitive)]:
            raise SettingsError(
                f"{unknown[0]} is neither a quasi-identifier nor a sensitive attribute"
            )
        if unknown := [name for name in self.exact if name not in self.columns]:
            raise SettingsError(f"exact: {unknown[0]} is no declared column")
        others = (*self.ranges, *self.categories, *self.orders, *self.hierarchies)
        if both := [name for name in self.times if name in (*others, *self.calendars)]:
            raise SettingsError(f"{both[0]}: the domain of a time is the minutes of a day")
        if both := [name for name in self.calendars if name in others]:
            raise SettingsError(f"{both[0]}: a calendar is the hierarchy of dates and times alone")
        if unknown := [name for name in self.calendars if name not in self.qis]:
            raise SettingsError(f"calendar: {unknown[0]} is not a quasi-identifier")

    @property
    def columns(self) -> tuple[str, ...]:
        """All declared columns."""
        direct = () if self.id is None else (self.id,)
        return (*direct, *self.qis, *self.sensitive, *self.keep)

    def markers_of(self, name: str) -> Sequence[str]:
        """Return the texts that mean "missing" in a column."""
        return () if name in self.exact else self.markers


def intervals_of(domains: Mapping[str, Sequence[float]]) -> dict[str, Interval]:
    """Return the declared domains of numbers: the ends, and where there is one the step.

    Raises `SettingsError` if there are fewer or more numbers than these, or they make no interval.
    """
    intervals = {}
    for name, parts in domains.items():
        try:
            ends = [float(part) for part in parts]
        except (TypeError, ValueError):
            ends = []
        if not 2 <= len(ends) <= 3:
            in_python = "in Python (lo, hi) or (lo, hi, step)"
            raise SettingsError(f"domain: {name}: must be LO:HI or LO:HI:STEP, {in_python}")
        try:
            intervals[name] = Interval(*ends)
        except ValueError as error:
            raise SettingsError(f"domain: {name}: {error}") from None
    return intervals


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CodedTable:
    """A table with codes for values."""

    records: Records
    schema: Schema
    """`records`, `schema`: the rows that can be anonymized, and their attributes."""
    row: IntArray
    """Row of the table of each record, from 0, shape (records,)."""
    n_rows: int
    """Rows of the table."""
    left_out: Mapping[Reason, IntArray]
    """The rows that are no records, by the first reason that fits."""
    open: pl.DataFrame
    """The columns that are published as they are: sensitive attributes and kept columns."""
    open_code: Int32Array
    """Rank of each cell of `open` in its column, shape (records, columns of `open`)."""
    origin: dict[str, Origin]
    read_as: dict[str, str]
    """`origin`, `read_as`: origin of the domain of each attribute, and what its cells were taken
    for, by name."""
    spelling: Mapping[str, Spelling] = field(default_factory=dict)
    """How cells are counted and published that are written otherwise, by attribute."""
    folds: Sequence[Fold] = ()
    """What was folded, see `meanings`."""


def code_table(table: TextTable, declared: Declared) -> CodedTable:
    """Return a table with codes for values.

    Raises
    ------
    InputError
        If a value is outside its declared domain, is not a number although one is declared, or is
        neither text nor number; the message names the column and the row (from 1, without the
        header), the value only if it lacks a leaf in a hierarchy. Also if a column is missing, or
        if a hierarchy does not fit the order of its attribute.

    Notes
    -----
    A row is a person only by evidence. Where all quasi-identifiers are missing, nobody could hide
    among such rows but people of whom as little is known, and a row of blanks may be nobody at all;
    unless a missing value counts as a value, then only rows that state nothing are left out. An
    attribute without a declared order has the order of its hierarchy, else that of its numbers or
    texts. O(n log n).
    """
    if absent := [name for name in declared.columns if name not in table.frame.columns]:
        raise no_column(table.path, absent[0], table.frame.columns)
    table, spelling, folds = in_meaning(table, declared)
    table = with_minutes(table, declared.times, declared.markers)
    names = (*declared.qis, *declared.sensitive)
    coded = {name: _code(table, declared, name) for name in names}
    left_out = _no_records(table, declared, {name: each.missing for name, each in coded.items()})
    row = np.delete(np.arange(len(table)), np.concatenate([*left_out.values()]))
    if not len(row):
        raise InputError(f"{table.path}: no row states a quasi-identifier of somebody")
    shown = table.frame.select(*declared.sensitive, *declared.keep)
    if shown.width and len(row) < len(table):
        shown = shown[row]
    return CodedTable(
        records=Records(
            qi=_columns([coded[name].code[row] for name in declared.qis], len(row)),
            sensitive=_columns([coded[name].code[row] for name in declared.sensitive], len(row)),
            person=_persons(table, declared, row),
        ),
        schema=Schema(
            qis=tuple(coded[name].attribute for name in declared.qis),
            sensitive=tuple(coded[name].attribute for name in declared.sensitive),
            sources=sources_of(declared),
        ),
        row=row,
        n_rows=len(table),
        left_out=left_out,
        open=shown,
        open_code=open_codes(shown, len(row), table.path),
        spelling=spelling,
        folds=folds,
        read_as={name: coded[name].read_as for name in names},
        origin={name: origin_of(declared, coded[name].attribute) for name in names},
    )


def in_meaning(
    table: TextTable, declared: Declared
) -> tuple[TextTable, dict[str, Spelling], tuple[Fold, ...]]:
    """Return a table whose identifier, QIs and sensitive attributes hold one writing of each value.

    Columns that are exact or no text are as they were. And spelling and folds, see `CodedTable`.
    """
    from anonymizer.files.rows_of_nobody import without_nobodies  # noqa: PLC0415  not to declare

    direct = () if declared.id is None else (declared.id,)
    table = without_nobodies(table, declared)
    found = {
        name: meaning_of(table.frame[name], declared)
        for name in (*direct, *declared.qis, *declared.sensitive)
    }
    columns = {name: each.of(table.frame[name]) for name, each in found.items()}
    folds = tuple(fold for each in found.values() for fold in each.folds)
    if declared.id is not None:
        columns[declared.id], joined = persons_of(columns[declared.id], declared)
        folds = (*joined, *folds)
    spelling = {name: each.spelling for name, each in found.items() if each.spelling is not None}
    return TextTable(table.path, table.frame.with_columns(columns.values())), spelling, folds


def persons_of(
    ids: pl.Series, declared: Declared, *, counts: pl.Series | None = None
) -> tuple[pl.Series, tuple[Fold, ...]]:
    """Return identifiers by what they mean, one writing of each person, and whom that joined.

    `counts` as for `meant`.
    """
    from anonymizer.files.person_keys import with_person_keys  # noqa: PLC0415  not to declare

    if declared.id in declared.exact:
        return ids, ()
    return with_person_keys(ids, declared.markers, counts=counts)


def meant_like(table: TextTable, other: TextTable, declared: Declared) -> TextTable:
    """Return a table with the quasi-identifiers in the spelling of another that means the same."""
    columns = []
    for column in table.frame.select(declared.qis):
        own, name = other.frame[column.name], column.name
        if own.dtype in TEXT and name not in declared.exact:
            known = own.cast(pl.String).drop_nulls().unique().to_list()
            columns.append(meant(column, markers=declared.markers, known=known).of(column))
    return TextTable(table.path, table.frame.with_columns(columns))


def meaning_of(column: pl.Series, declared: Declared, *, counts: pl.Series | None = None) -> Meant:
    """Return what a declared column means; `counts` as for `meant`."""
    name = column.name
    if name in declared.exact:
        return Meant(None)
    known = [*declared.orders.get(name, ()), *(b[0] for b in declared.hierarchies.get(name, ()))]
    return meant(column, markers=declared.markers, known=known, counts=counts)


def _no_records(
    table: TextTable, declared: Declared, missing: Mapping[str, BoolArray]
) -> dict[Reason, IntArray]:
    """Return the rows that are no records; `missing`: which cells of each attribute are."""
    has_nobody = np.zeros(len(table), bool)
    if declared.id is not None:
        has_nobody = is_missing(texts(table, declared.id), declared.markers_of(declared.id))
        if has_nobody.all():
            raise InputError(f"{table.path}: column {declared.id}: has no identifier")
    no_qi = np.logical_and.reduce([missing[name] for name in declared.qis])
    nothing = np.logical_and.reduce([no_qi, *(missing[name] for name in declared.sensitive)])
    some = no_qi & ~nothing & (not declared.markers_are_values)
    return {
        "no_identifier": np.flatnonzero(has_nobody),
        "states_nothing": np.flatnonzero(nothing & ~has_nobody),
        "states_no_qi": np.flatnonzero(some & ~has_nobody),
    }


def _persons(table: TextTable, declared: Declared, row: IntArray) -> Int32Array:
    """Return the person of each record."""
    if declared.id is None:
        return np.arange(len(row), dtype=np.int32)
    named = texts(table, declared.id).gather(row)
    return (named.rank("dense") - 1).cast(pl.Int32).to_numpy()


def cells_of(table: TextTable, declared: Declared, name: str) -> pl.Series:
    """Return a declared column as text, null where a value is missing; times as minutes."""
    is_time = name in declared.times
    column = texts(with_minutes(table, [name], declared.markers) if is_time else table, name)
    return column.set(
        pl.Series(is_missing(column, () if is_time else declared.markers_of(name))), None
    )


def code_declared(table: TextTable, declared: Declared, name: str) -> Coded:
    """Return the attribute of one declared column, and the code of each of its cells.

    They are taken as they are written: see `meaning_of`.

    Raises `InputError` as for `code_table`.
    """
    times = [name] if name in declared.times else []
    return _code(with_minutes(table, times, declared.markers), declared, name)


def _code(table: TextTable, declared: Declared, name: str) -> Coded:
    is_time = name in declared.times
    rules = ColumnRules(
        branches=declared.hierarchies.get(name, ()),
        file=declared.hierarchy_files.get(name, "its hierarchy"),
        calendar=declared.calendars.get(name, ()),
        order=declared.orders.get(name),
        interval=MINUTES_OF_DAY if is_time else declared.ranges.get(name),
        as_category=name in declared.categories,
        markers=()
        if is_time
        else declared.markers_of(name),  # already replaced by null; 0 is midnight
        markers_are_values=declared.markers_are_values,
        plain=name not in declared.qis,  # what is published unchanged is read back as it is
    )
    return code_column(table, name, rules)


def sources_of(declared: Declared) -> tuple[tuple[int, ...], ...]:
    """Return the quasi-identifiers of each source, as indices; see `Schema`."""
    place = {name: j for j, name in enumerate(declared.qis)}
    named = [tuple(place[name] for name in source) for source in declared.sources if source]
    rest = tuple(set(place.values()) - {j for source in named for j in source})
    return (*named, tuple(sorted(rest))) if rest else tuple(named)


def origin_of(declared: Declared, attribute: Attribute) -> Origin:
    """Return the origin of the domain of an attribute."""
    name = attribute.name
    if attribute.numeric and name in (*declared.ranges, *declared.times):
        return "range"
    if not attribute.numeric and name in declared.orders:
        return "order"
    return "hierarchy" if name in (*declared.hierarchies, *declared.calendars) else "data"


def open_codes(shown: pl.DataFrame, n: int, path: Path) -> Int32Array:
    """Return the rank of each cell in its column, shape (rows, columns); equal where cells are.

    `n` is the number of rows, which a frame without columns does not know.

    Raises `InputError` if a column holds lists or objects. `path` is for the message.
    """
    for column in shown:
        if column.dtype.is_nested() or column.dtype == pl.Object:
            why = f"holds {column.dtype.base_type()}: make columns of it, or leave it out"
            raise InputError(f"{path}: column {column.name}: {why}")
    return _columns([_ranks(column) for column in shown], n)


def _ranks(column: pl.Series) -> Int32Array:
    if (few := distinct_cells(column)) is not None:
        ranks: Int32Array = _ranks_of(few.cells)[few.cell_of]
        return ranks
    return _ranks_of(column)


def _ranks_of(column: pl.Series) -> Int32Array:
    return column.rank("dense").fill_null(0).cast(pl.Int32).to_numpy()


def _columns(columns: Sequence[Int32Array], n: int) -> Int32Array:
    if not columns:
        return np.zeros((n, 0), np.int32)
    return np.ascontiguousarray(np.column_stack(columns), np.int32)
