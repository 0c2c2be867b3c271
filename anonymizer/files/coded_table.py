"""Codes in place of values: a table and what is declared of its columns become records."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np
import polars as pl

from anonymizer.algorithms.records.attributes import Branch, Interval
from anonymizer.domain.arrays import Int32Array, IntArray
from anonymizer.domain.records import Attribute, Records, Schema
from anonymizer.errors import InputError, SettingsError
from anonymizer.files.coded_columns import (
    MINUTES_OF_DAY,
    Coded,
    ColumnRules,
    code_column,
    is_missing,
    texts,
    with_minutes,
)
from anonymizer.files.tables import Table

Origin: TypeAlias = Literal["range", "order", "hierarchy", "data"]
"""Where a domain is from; all but the last are declared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """What the columns of a table are.

    Attributes
    ----------
    qis, sensitive
        Quasi-identifiers and sensitive attributes, by name.
    id
        The direct identifier; None: every row is a person of its own.
    sources
        The quasi-identifiers that each source tells; what none of them names is the last one's.
    hierarchies, orders, ranges
        By attribute: branches of a hierarchy, categories in their order, the ends of a number.
    categories
        Attributes whose values are no numbers though they look like it.
    times
        Attributes whose values are local times: what counts is the minute of the day.
    markers
        Texts that mean "missing", besides an empty cell and `?`. All are published as `?`.
    markers_are_values
        Whether a missing value counts as one more category, as in the paper.
    keep
        Further columns, to be published as they are.
    """

    qis: Sequence[str]
    sensitive: Sequence[str] = ()
    id: str | None = None
    sources: Sequence[Sequence[str]] = ()
    hierarchies: Mapping[str, Sequence[Branch]] = field(default_factory=dict)
    orders: Mapping[str, Sequence[str]] = field(default_factory=dict)
    ranges: Mapping[str, Interval] = field(default_factory=dict)
    categories: Sequence[str] = ()
    times: Sequence[str] = ()
    markers: Sequence[str] = ()
    markers_are_values: bool = False
    keep: Sequence[str] = ()

    def __post_init__(self) -> None:
        if not self.qis:
            raise SettingsError("at least one quasi-identifier is needed")
        roles = [*self.columns]
        if twice := [name for name in roles if roles.count(name) > 1]:
            raise SettingsError(f"column {twice[0]} is declared twice")
        told = [name for source in self.sources for name in source]
        if astray := [name for name in told if name not in self.qis]:
            raise SettingsError(f"source: {astray[0]} is no quasi-identifier")
        if twice := [name for name in told if told.count(name) > 1]:
            raise SettingsError(f"source: {twice[0]} is told by two sources")
        named = [*self.ranges, *self.categories, *self.times]
        if astray := [name for name in named if name not in (*self.qis, *self.sensitive)]:
            raise SettingsError(f"{astray[0]} is neither quasi-identifier nor sensitive attribute")
        others = (*self.ranges, *self.categories, *self.orders, *self.hierarchies)
        if astray := [name for name in self.times if name in others]:
            raise SettingsError(f"{astray[0]}: the domain of a time is the minutes of a day")

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns that matter."""
        direct = () if self.id is None else (self.id,)
        return (*direct, *self.qis, *self.sensitive, *self.keep)


@dataclass(frozen=True, slots=True, eq=False)
class CodedTable:
    """A table in codes.

    Attributes
    ----------
    records, schema
        Of the rows that can be anonymized.
    row
        Which row of the table each record is, 0 and up, shape (records,).
    n_rows
        Rows of the table. Those that are no record have no identifier.
    open
        What is published as it is, of each record: sensitive attributes and kept columns.
    open_code
        A number for each of these cells, equal where they are, rising with them; shape (records,
        columns of `open`).
    origin
        Where the domain of each attribute is from, by name.
    """

    records: Records
    schema: Schema
    row: IntArray
    n_rows: int
    open: pl.DataFrame
    open_code: Int32Array
    origin: dict[str, Origin]

    def __repr__(self) -> str:
        """Say nothing of what is in it."""
        return f"CodedTable({self.records.n} records of {self.n_rows} rows)"


def code_table(table: Table, declared: Declared) -> CodedTable:
    """Return a table in codes.

    Raises
    ------
    InputError
        If a value lies outside its declared domain, is no number where one is declared, or is
        neither text nor number; the message names column and row (from 1, without the header),
        never the value. If a column is missing, or its hierarchy does not fit its order.

    Notes
    -----
    Rows without an identifier are no records: it cannot be said whom they hide. The order of an
    attribute without a declared one is that of its hierarchy, else of the numbers or the text.
    O(n log n).
    """
    if absent := [name for name in declared.columns if name not in table.frame.columns]:
        raise InputError(f"{table.path}: no column {absent[0]}")
    table = with_minutes(table, declared.times, declared.markers)
    person, row = _persons(table, declared)
    names = (*declared.qis, *declared.sensitive)
    coded = {name: _code(table, declared, name) for name in names}
    shown = table.frame[row].select(*declared.sensitive, *declared.keep)
    return CodedTable(
        records=Records(
            qi=_columns([coded[name].code[row] for name in declared.qis], len(row)),
            sensitive=_columns([coded[name].code[row] for name in declared.sensitive], len(row)),
            person=person,
        ),
        schema=Schema(
            qis=tuple(coded[name].attribute for name in declared.qis),
            sensitive=tuple(coded[name].attribute for name in declared.sensitive),
            sources=_sources(declared),
        ),
        row=row,
        n_rows=len(table),
        open=shown,
        open_code=_columns([_ranked(table, column) for column in shown], len(row)),
        origin={name: _origin(declared, name, coded[name].attribute) for name in names},
    )


def _persons(table: Table, declared: Declared) -> tuple[Int32Array, IntArray]:
    """Return whose each record is, and the rows that have an identifier."""
    if declared.id is None:
        return np.arange(len(table), dtype=np.int32), np.arange(len(table))
    column = texts(table, declared.id)
    row: IntArray = np.flatnonzero(~is_missing(column, declared.markers))
    if not len(row):
        raise InputError(f"{table.path}: column {declared.id}: has no identifier")
    named = column.gather(row)
    return (named.rank("dense") - 1).cast(pl.Int32).to_numpy(), row


def _code(table: Table, declared: Declared, name: str) -> Coded:
    is_time = name in declared.times
    rules = ColumnRules(
        branches=declared.hierarchies.get(name, ()),
        order=declared.orders.get(name),
        interval=MINUTES_OF_DAY if is_time else declared.ranges.get(name),
        as_category=name in declared.categories,
        markers=() if is_time else declared.markers,  # its markers are gone: 0 is midnight
        markers_are_values=declared.markers_are_values,
    )
    return code_column(table, name, rules)


def _sources(declared: Declared) -> tuple[tuple[int, ...], ...]:
    place = {name: j for j, name in enumerate(declared.qis)}
    told = [tuple(place[name] for name in source) for source in declared.sources if source]
    rest = tuple(set(place.values()) - {j for source in told for j in source})
    return (*told, tuple(sorted(rest))) if rest else tuple(told)


def _origin(declared: Declared, name: str, attribute: Attribute) -> Origin:
    if attribute.numeric and name in (*declared.ranges, *declared.times):
        return "range"
    if not attribute.numeric and name in declared.orders:
        return "order"
    return "hierarchy" if name in declared.hierarchies else "data"


def _ranked(table: Table, column: pl.Series) -> Int32Array:
    """Return a number for each cell, equal where they are, rising with them."""
    if column.dtype.is_nested() or column.dtype == pl.Object:
        raise InputError(f"{table.path}: column {column.name}: holds what no csv could")
    return column.rank("dense").fill_null(0).cast(pl.Int32).to_numpy()


def _columns(columns: Sequence[Int32Array], n: int) -> Int32Array:
    if not columns:
        return np.zeros((n, 0), np.int32)
    return np.ascontiguousarray(np.column_stack(columns), np.int32)
