"""Cells of data frames of pandas and polars, whatever types their columns mix.

scikit-learn asks numpy for one type that all columns have in common. There is none for categories
of text beside nullable numbers, or for times beside anything. Here each column is read for itself.
"""

import sys
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

_PLAIN = {"b": np.bool_, "i": np.int64, "u": np.uint64, "f": np.float64}
"""Types of numbers, by their kind."""


def is_frame(table: object) -> bool:
    """Return whether a table is a data frame of pandas or polars; neither is imported."""
    pandas, polars = sys.modules.get("pandas"), sys.modules.get("polars")
    return any(each and isinstance(table, each.DataFrame) for each in (pandas, polars))


def check_names(frame: Any) -> None:  # noqa: ANN401  either kind
    """Raise `ValueError` if two columns have one name, by which roles are declared."""
    names = list(frame.columns)
    if twice := [name for name in names if isinstance(name, str) and names.count(name) > 1]:
        raise ValueError(f"column {twice[0]} is there twice: rename one of them")


def cells_of(frame: Any) -> NDArray[Any]:  # noqa: ANN401  likewise
    """Return the cells of a data frame, shape (n, columns).

    They are numbers, truth values or times without a zone if all columns are, otherwise objects: a
    number stays one, a category becomes what it stands for, and a missing value None, NaN or NaT.
    """
    read = _of_polars if hasattr(frame, "iter_columns") else _of_pandas
    columns = list(read(frame))
    kinds = {column.dtype.kind for column in columns}
    if columns and (kinds <= set("iuf") or kinds in ({"b"}, {"M"})):
        return np.column_stack(columns)
    cells = np.empty((len(frame), len(columns)), object)
    for j, column in enumerate(columns):
        # numpy makes plain integers of times in nanoseconds.
        cells[:, j] = column.astype("datetime64[us]") if column.dtype.kind == "M" else column
    return cells


def _of_pandas(frame: Any) -> Iterable[NDArray[Any]]:  # noqa: ANN401
    missing = sys.modules["pandas"].NA
    for j in range(frame.shape[1]):
        column = frame.iloc[:, j]
        kind, lacks = column.dtype.kind, bool(column.isna().any())
        if isinstance(column.dtype, np.dtype) and kind in "biufM":
            yield column.to_numpy()
        elif kind in _PLAIN and not lacks:
            yield column.to_numpy(dtype=_PLAIN[kind])
        elif kind == "f":
            yield column.to_numpy(dtype=np.float64, na_value=np.nan)
        else:
            cells = (np.nan if cell is missing else cell for cell in column)
            yield np.fromiter(cells, object, len(column))


def _of_polars(frame: Any) -> Iterable[NDArray[Any]]:  # noqa: ANN401
    for column in frame.iter_columns():
        kept_whole = column.dtype.is_float() or column.null_count() == 0
        if kept_whole and (column.dtype.is_numeric() or str(column.dtype) == "Boolean"):
            cells = column.to_numpy()
            if cells.dtype.kind in _PLAIN:
                yield cells
                continue
        yield np.fromiter(column.to_list(), object, len(column))
