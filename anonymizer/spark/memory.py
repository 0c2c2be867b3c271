"""Memory of workers: whether the rows that one of them holds at once are not too long.

A file of a kilobyte can hold a text of a megabyte in each of a million rows. As for other tables, a
worker holds at most `MAX_BYTES` of values.
"""

from typing import Any

from anonymizer.errors import InputError
from anonymizer.spark.survey import TABLE
from anonymizer.unfolding import MAX_BYTES


def check_memory(table: Any, n_at_once: int, *, max_bytes: int = MAX_BYTES) -> None:  # noqa: ANN401  pyspark is an extra
    """Refuse a data frame of Spark of which the `n_at_once` longest rows are too long together.

    Which rows meet on a worker is not known before. Spark reads the table once, and sends a few
    numbers.

    Raises
    ------
    InputError
        If they are; the message says what to do.
    """
    from pyspark.sql import functions as sql  # noqa: PLC0415  an extra

    sizes = [_size(field) for field in table.schema.fields]
    rows = table.select(sum(sizes, sql.lit(0)).cast("long").alias("size"))
    longest = rows.orderBy(sql.desc("size")).limit(n_at_once)
    n_bytes = longest.agg(sql.sum("size")).first()[0] or 0
    if n_bytes > max_bytes:
        raise InputError(
            f"{TABLE}: {n_at_once:,} of its rows, which a worker may hold at once, can be larger"
            f" than {max_bytes / 1024**3:g} GiB: shorten texts, leave out columns, or lower"
            " rows_per_range"
        )


def _size(field: Any) -> Any:  # noqa: ANN401  likewise
    """Return the bytes of a column's cell; nested values count as they are written."""
    from pyspark.sql import functions as sql  # noqa: PLC0415  an extra
    from pyspark.sql.types import ArrayType, BinaryType, MapType, StringType, StructType  # noqa: PLC0415

    cell = sql.col(f"`{field.name.replace('`', '``')}`")
    if isinstance(field.dataType, StringType | BinaryType):
        size = sql.octet_length(cell)
    elif isinstance(field.dataType, ArrayType | MapType | StructType):
        size = sql.octet_length(sql.to_json(sql.struct(cell)))
    else:
        return sql.lit(8)
    return sql.coalesce(size, sql.lit(0)).cast("long")
