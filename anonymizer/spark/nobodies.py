"""Rows of a table on Spark that nobody is behind: headings, totals, units and marks.

The rule is that of other tables, see `rows_of_nobody`, but for the last lines: rows on Spark have
no order. The driver judges the few rows that have such a cell.
"""

from functools import reduce
from operator import and_, or_
from typing import Any

import polars as pl

from anonymizer.files.coded_table import Declared
from anonymizer.files.rows_of_nobody import TOTAL, Nobodies

_MOST_CELLS, _MOST_ROWS = 2**20, 2**20
"""Distinct cells of a column, and rows with odd ones, that are looked at."""
_MARK = "_is_nobody"


def without_nobodies(table: Any, declared: Declared) -> Any:  # noqa: ANN401  pyspark is an extra
    """Return a data frame of Spark in which rows that nobody is behind state nothing.

    Spark counts the cells of each column of text once, and reads the table again if one is odd.
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
    found = Nobodies.of(counted, declared)
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


def _counted(table: Any, name: str, declared: Declared) -> pl.DataFrame:  # noqa: ANN401  likewise
    """Return the distinct cells of a column; of identifiers, those that may be words."""
    from pyspark.sql import functions as sql  # noqa: PLC0415  an extra

    cells = table.select(table[name].alias("cell")).where("cell is not null")
    if name == declared.id:  # nearly all are different
        is_heading = sql.lower(sql.trim(sql.col("cell"))) == name.lower()
        cells = cells.where(sql.col("cell").rlike(TOTAL) | is_heading)
    counted = cells.groupBy("cell").count().limit(_MOST_CELLS).toArrow()
    return pl.DataFrame(pl.from_arrow(counted)).rename({"count": "n"}).cast({"cell": pl.String})
