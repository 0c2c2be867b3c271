"""First pass over a table on Spark: its domains, and how often each value occurs.

The distinct values of a column are few where it is worth generalizing, so the driver codes them as
it codes any table. Workers look up the code of a cell among them.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from anonymizer.algorithms.records.attributes import MOST_STEPS
from anonymizer.app.anonymize.plan import ReleasePlan, banded
from anonymizer.domain.arrays import BoolArray, Int32Array, IntArray
from anonymizer.domain.records import Attribute, Schema
from anonymizer.errors import GuaranteeError, InputError
from anonymizer.files.coded_table import (
    Declared,
    Origin,
    code_declared,
    meaning_of,
    origin_of,
    sources_of,
)
from anonymizer.files.meanings import Fold
from anonymizer.files.tables import TextTable

TABLE = Path("table")
"""What messages call the table."""
MOST_VALUES = MOST_STEPS
"""Most distinct values of a column."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ColumnValues:
    """The distinct values of one column, and their codes."""

    attribute: Attribute
    """The attribute."""
    value: pl.Series
    """Every value as it is written, null last where there is one."""
    shown: pl.Series
    """What is published of each value."""
    code: Int32Array
    """Code of each value."""
    count: IntArray
    """How often it occurs."""
    read_as: str
    """What the cells were taken for."""
    missing: BoolArray
    """Which values state nothing."""
    folds: Sequence[Fold]
    """What was folded."""

    @property
    def usual(self) -> IntArray:
        """How often each code occurs in the table."""
        return np.bincount(self.code, self.count, self.attribute.size).astype(np.int64)

    def index_of(self, cells: pl.Series) -> Int32Array:
        """Return the index of each cell among the values.

        Raises
        ------
        GuaranteeError
            If a cell was not there in the first pass.
        """
        there, cells = self.value.drop_nulls(), plain(cells)
        index = np.full(len(cells), -1, np.int32)
        if len(there):
            known = pl.Series(np.arange(len(there), dtype=np.int32))
            found = cells.replace_strict(there, known, default=-1, return_dtype=pl.Int32)
            index = found.fill_null(-1).to_numpy().copy()
        if len(there) < len(self.value):
            index[cells.is_null().to_numpy()] = len(there)
        if (index < 0).any():
            raise GuaranteeError("the table changed while it was read: nothing is published")
        return index


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TableSurvey:
    """What the first pass found."""

    columns: Mapping[str, ColumnValues]
    """The values of each quasi-identifier and sensitive attribute, by name."""
    schema: Schema
    """Their roles."""

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(next(iter(self.columns.values())).count.sum())

    @property
    def usual_qi(self) -> list[IntArray]:
        """How often each code of each quasi-identifier occurs."""
        return [self.columns[qi.name].usual for qi in self.schema.qis]

    @property
    def usual(self) -> list[IntArray]:
        """How often each code of each sensitive attribute occurs."""
        return [self.columns[attribute.name].usual for attribute in self.schema.sensitive]

    def origin(self, declared: Declared) -> dict[str, Origin]:
        """Return the origin of the domain of each attribute."""
        return {name: origin_of(declared, each.attribute) for name, each in self.columns.items()}


def survey(frame: Any, declared: Declared, plan: ReleasePlan) -> TableSurvey:  # noqa: ANN401  pyspark is an extra
    """Return the domains and the counts of a data frame of Spark.

    Raises
    ------
    InputError
        As for `code_table`, and if a column has more than `MOST_VALUES` distinct values.
    SettingsError
        If bands are declared for what is no numeric sensitive attribute.
    """
    columns = {}
    for name in (*declared.qis, *declared.sensitive):
        counted = frame.groupBy(name).count().limit(MOST_VALUES + 1).toArrow()
        if len(counted) > MOST_VALUES:
            raise InputError(
                f"{TABLE}: column {name}: has more than {MOST_VALUES:,} distinct values: round them"
            )
        columns[name] = _values(pl.DataFrame(pl.from_arrow(counted)), declared, name)
    sensitive = {name: columns[name].attribute for name in declared.sensitive}
    for name, edges in plan.bands.items():
        attribute, band_of = banded(sensitive, name, edges)
        code = band_of[columns[name].code]
        columns[name] = replace(columns[name], attribute=attribute, code=code)
    schema = Schema(
        qis=tuple(columns[name].attribute for name in declared.qis),
        sensitive=tuple(columns[name].attribute for name in declared.sensitive),
        sources=sources_of(declared),
    )
    return TableSurvey(columns, schema)


def states(frame: Any, found: TableSurvey, names: Sequence[str]) -> Any:  # noqa: ANN401  likewise
    """Return a condition: that a row of the data frame states one of these columns."""
    from pyspark.sql import functions as sql  # noqa: PLC0415  an extra

    stated = sql.lit(False)
    for name in names:
        column, cell = found.columns[name], frame[name]
        nothing = column.value.filter(pl.Series(column.missing)).drop_nulls().to_list()
        there = cell.isNotNull() & ~cell.isin(nothing)
        if column.value.dtype.is_float():
            there &= ~sql.isnan(cell)
        stated |= there
    return stated


def plain(cells: pl.Series) -> pl.Series:
    """Return a column with null in place of NaN."""
    return cells.fill_nan(None) if cells.dtype.is_float() else cells


def _values(counted: pl.DataFrame, declared: Declared, name: str) -> ColumnValues:
    counted = counted.with_columns(plain(counted[name])).group_by(name).agg(pl.col("count").sum())
    counted = counted.sort(name, nulls_last=True)
    meant = meaning_of(counted[name], declared, counts=counted["count"])
    shown = meant.of(counted[name])
    with _without_rows():
        coded = code_declared(TextTable(TABLE, shown.to_frame()), declared, name)
    count = counted["count"].to_numpy().astype(np.int64)
    return ColumnValues(
        coded.attribute,
        counted[name],
        shown,
        coded.code,
        count,
        coded.read_as,
        coded.missing,
        meant.folds,
    )


@contextmanager
def _without_rows() -> Iterator[None]:
    """Leave the number of a row out of error messages: it counts distinct values, not rows."""
    try:
        yield
    except InputError as error:
        raise InputError(re.sub(r", row \d+", "", str(error))) from None
