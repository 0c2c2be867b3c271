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
from anonymizer.files.lines_of_exports import stated_alone
from anonymizer.files.rows_of_nobody import TOTAL, Nobodies, missing_texts

_MOST_CELLS, _MOST_ROWS = 2**20, 2**20
"""Distinct cells of a column, and rows with odd ones, that are looked at."""
_MARK = "_is_nobody"


def without_nobodies(table: Any, declared: Declared) -> Any:  # noqa: ANN401  pyspark is an extra
    """Return a data frame of Spark in which rows that nobody is behind state nothing.

    Spark counts the cells of each column of text once, reads the table once for rows that state one
    thing, and again if a cell is odd.
    """
    from pyspark.sql import functions as sql  # noqa: PLC0415  an extra

    names = [*(() if declared.id is None else (declared.id,)), *declared.qis, *declared.sensitive]
    texts = [
        each.name
        for each in table.schema.fields
        if each.name in names and each.dataType.simpleString() == "string"
    ]
    texts = [name for name in texts if name not in declared.exact]
    counted = {name: _counted(table, name, declared) for name in texts}
    alone = _stated_alone(table, counted, declared) if declared.id is None else None
    found = Nobodies.of(counted, declared, alone)
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
    counted: Mapping[str, pl.DataFrame],
    declared: Declared,
) -> dict[str, pl.DataFrame]:
    """As `stated_alone`, of the rows that state at most one cell."""
    from pyspark.sql import functions as sql  # noqa: PLC0415  an extra

    missing = missing_texts(counted, declared)
    n_stated = sql.lit(0)
    for name, words in missing.items():
        lacks = table[name].isNull()
        if table.schema[name].dataType.simpleString() in {"double", "float"}:
            lacks |= sql.isnan(table[name])
        if words:
            lacks |= table[name].isin(words)
        n_stated += sql.when(lacks, 0).otherwise(1)
    rows = table.where(n_stated <= 1).select(*missing).limit(_MOST_ROWS)
    return stated_alone(pl.DataFrame(pl.from_arrow(rows.toArrow())), missing)


def _counted(table: Any, name: str, declared: Declared) -> pl.DataFrame:  # noqa: ANN401  likewise
    """Return the distinct cells of a column; of identifiers, those that may be words."""
    from pyspark.sql import functions as sql  # noqa: PLC0415  an extra

    cells = table.select(table[name].alias("cell")).where("cell is not null")
    if name == declared.id:  # nearly all are different
        is_heading = sql.lower(sql.trim(sql.col("cell"))) == name.lower()
        cells = cells.where(sql.col("cell").rlike(TOTAL) | is_heading)
    counted = cells.groupBy("cell").count().limit(_MOST_CELLS).toArrow()
    return pl.DataFrame(pl.from_arrow(counted)).rename({"count": "n"}).cast({"cell": pl.String})
