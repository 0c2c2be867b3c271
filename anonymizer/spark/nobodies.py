"""Rows of a table on Spark that nobody is behind: headings, totals, units and marks.

The rule is that of other tables, see `rows_of_nobody`, but for the last lines: rows on Spark have
no order. The driver judges the few rows that have such a cell.
"""

from collections.abc import Mapping
from functools import reduce
from operator import and_, or_
from typing import Any

import polars as pl

from anonymizer.files.coded_table import Declared
from anonymizer.files.lines_of_exports import lacks, stated_alone
from anonymizer.files.rows_of_nobody import TOTAL, Nobodies, missing_texts
from anonymizer.spark.survey import ValueCounts

_MOST_CELLS, _MOST_ROWS = 2**20, 2**20
"""Distinct identifiers that may be words, and rows with odd cells, that are looked at."""
_MARK = "_is_nobody"


def without_nobodies(table: Any, declared: Declared, counted: ValueCounts) -> Any:  # noqa: ANN401  pyspark is an extra
    """Return a data frame of Spark in which rows that nobody is behind state nothing.

    `counted`: the values of all columns but the identifier. Spark reads the table for those of its
    identifiers that may be words, for rows that state one thing, if cells lack in all columns but
    one, and if a cell is odd. The same object where there are no such rows.
    """
    from pyspark.sql import functions as sql  # noqa: PLC0415  an extra

    names = [*(() if declared.id is None else (declared.id,)), *declared.qis, *declared.sensitive]
    texts = {
        name: _words(table, name) if name == declared.id else _texts(counted[name])
        for name in names
        if name not in declared.exact and _kind(table, name) == "string"
    }
    alone = _stated_alone(table, counted, texts, declared) if declared.id is None else None
    found = Nobodies.of(texts, declared, alone)
    odd = {name: cells for name, cells in found.cells.items() if cells}
    is_nobody = found.rows(None)
    if not odd or is_nobody is None:
        return table
    may_be = reduce(or_, (table[name].isin(cells) for name, cells in odd.items()))
    rows = table.where(may_be).select(*names).limit(_MOST_ROWS)
    seen = pl.DataFrame(pl.from_arrow(rows.toArrow()))
    nobodies = seen.filter(is_nobody).unique()
    if not len(nobodies):
        return table
    spark, kinds = table.sparkSession, rows.schema
    known = spark.createDataFrame(nobodies.rows(), kinds).toDF(
        *(f"{_MARK}{i}" for i in range(len(names)))
    )
    known = sql.broadcast(known.withColumn(_MARK, sql.lit(1)))
    same = (table[name].eqNullSafe(known[f"{_MARK}{i}"]) for i, name in enumerate(names))
    joined = table.join(known, reduce(and_, same), "left")
    return joined.select(
        *(sql.when(known[_MARK].isNull(), table[each]).alias(each) for each in table.columns)
    )


def _stated_alone(
    table: Any,  # noqa: ANN401  likewise
    counted: ValueCounts,
    texts: Mapping[str, pl.DataFrame],
    declared: Declared,
) -> dict[str, pl.DataFrame]:
    """As `stated_alone`, of the rows that state at most one cell."""
    from pyspark.sql import functions as sql  # noqa: PLC0415  an extra

    missing = missing_texts(texts, declared)
    if sum(not lacks(counted[name][name], missing[name]).any() for name in missing) > 1:
        return {}  # each row states these
    n_stated = sql.lit(0)
    for name, words in missing.items():
        lacking = table[name].isNull()
        if _kind(table, name) in {"double", "float"}:
            lacking |= sql.isnan(table[name])
        if words:
            lacking |= table[name].isin(words)
        n_stated += sql.when(lacking, 0).otherwise(1)
    rows = table.where(n_stated <= 1).select(*missing).limit(_MOST_ROWS)
    return stated_alone(pl.DataFrame(pl.from_arrow(rows.toArrow())), missing)


def _kind(table: Any, name: str) -> str:  # noqa: ANN401  likewise
    return str(table.schema[name].dataType.simpleString())


def _texts(counted: pl.DataFrame) -> pl.DataFrame:
    """Return the cells that are not null, and how often each is there, as `Nobodies.of` asks."""
    cell, n = counted.columns
    return counted.select(pl.col(cell).cast(pl.String).alias("cell"), n=n).drop_nulls("cell")


def _words(table: Any, name: str) -> pl.DataFrame:  # noqa: ANN401  likewise
    """Return the identifiers that may be words: nearly all are different."""
    from pyspark.sql import functions as sql  # noqa: PLC0415  an extra

    cell = table[name]
    may_be = cell.rlike(TOTAL) | (sql.lower(sql.trim(cell)) == name.lower())
    words = table.where(may_be).groupBy(name).count().limit(_MOST_CELLS).toArrow()
    return _texts(pl.DataFrame(pl.from_arrow(words)))
