"""Published tables of classes and the auditor's map of rows, as read from files."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from anonymizer.algorithms.records.published_values import ValueReader
from anonymizer.algorithms.releases.released_classes import Published, ReleasedLabels
from anonymizer.domain.arrays import BoolArray, Int32Array, IntArray
from anonymizer.domain.records import Attribute, Schema
from anonymizer.errors import InputError
from anonymizer.files.coded_columns import is_missing, texts
from anonymizer.files.tables import TextTable, no_column, read_table, without_escapes

CLASS_COLUMN = "class_id"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PublishedTable:
    """A published table."""

    table: TextTable
    """The file, with all its columns."""
    class_of: Int32Array
    """Class of each row, numbered from 0 in the order of the file, shape (rows,)."""
    labels: tuple[ReleasedLabels, ...]
    label_texts: tuple[Sequence[str | None], ...]
    """`labels`, `label_texts`: the different labels of each quasi-identifier, as codes and as they
    are written."""
    label_of: Int32Array
    """Index of the label of each row, shape (rows, quasi-identifiers)."""
    sensitive: Int32Array
    """Code of each sensitive value, shape (rows, sensitive attributes)."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of all columns."""
        return tuple(self.table.frame.columns)

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.class_of)

    def uneven(self) -> BoolArray:
        """Return whether rows of a class have different labels, shape (classes, QIs)."""
        first = self.label_of[self._first_row()]
        uneven = np.zeros(first.shape, bool)
        np.logical_or.at(uneven, self.class_of, self.label_of != first[self.class_of])
        return uneven

    def seen(self) -> Published:
        """Return the classes as published; those of an uneven class have its first row's labels."""
        first = self._first_row()
        sets = [_sets(self.class_of, code) for code in self.sensitive.T]
        of_classes = [labels.only(self.label_of[first, j]) for j, labels in enumerate(self.labels)]
        return Published(len(first), tuple(of_classes), tuple(sets))

    def _first_row(self) -> IntArray:
        return np.unique(self.class_of, return_index=True)[1]


def read_published(
    path: str | Path | TextTable,
    schema: Schema,
    *,
    markers_of: Callable[[str], Sequence[str]] = lambda _: (),
) -> PublishedTable:
    """Read a table that `anonymize` has written.

    Parameters
    ----------
    path
        csv, csv.gz or parquet; or a table that has been read, without escapes.
    schema
        The attributes; columns of other names are ignored.
    markers_of
        Returns the texts that mean "missing" in a sensitive column, in addition to an empty cell
        and `?`.

    Raises
    ------
    InputError
        If the file cannot be read, lacks a column, or has a cell outside its attribute's domain;
        the message names column and row (from 1, without the header).
    """
    table = path if isinstance(path, TextTable) else without_escapes(read_table(path))
    names = [a.name for a in (*schema.qis, *schema.sensitive)]
    for name in (CLASS_COLUMN, *names):
        if name not in table.frame.columns:
            raise no_column(table.path, name, table.frame.columns)
    number = texts(table, CLASS_COLUMN)
    if number.null_count():
        row = int(np.argmax(number.is_null().to_numpy())) + 1
        raise InputError(f"{table.path}: column {CLASS_COLUMN}, row {row}: is empty")
    read = [_labels(table, attribute) for attribute in schema.qis]
    return PublishedTable(
        table=table,
        class_of=numbered(number)[1],
        labels=tuple(labels for labels, _, _ in read),
        label_texts=tuple(written for _, written, _ in read),
        label_of=_stacked([of for _, _, of in read], len(table)),
        sensitive=_stacked(
            [_values(table, a, markers_of(a.name)) for a in schema.sensitive], len(table)
        ),
    )


def read_row_map(path: str | Path | TextTable, *, n_rows: int, n_published: int) -> IntArray:
    """Return the row of the release of each row of the table, -1 where suppressed, (n_rows,).

    `path` as for `read_published`.

    Raises `InputError` if the file cannot be read, or does not name every row of both exactly once.
    """
    table = path if isinstance(path, TextTable) else read_table(path, ["in_row", "out_row"])
    row, became = (_row_numbers(table, name) for name in ("in_row", "out_row"))
    if not np.array_equal(np.sort(row), np.arange(n_rows)):
        raise InputError(f"{table.path}: column in_row: does not name each row of the table once")
    out_row = np.empty(n_rows, np.int64)
    out_row[row] = became
    if not np.array_equal(np.sort(out_row[out_row >= 0]), np.arange(n_published)):
        raise InputError(f"{table.path}: column out_row: does not name each published row once")
    return out_row


def _row_numbers(table: TextTable, name: str) -> IntArray:
    column = table.frame[name]
    numbers = column.cast(pl.Int64, strict=False)
    faulty = ((numbers.is_null() & column.is_not_null()) | (numbers < 0)).fill_null(value=False)
    if faulty.any():
        row = int(np.argmax(faulty.to_numpy())) + 1
        raise InputError(f"{table.path}: column {name}, row {row}: is no row number")
    return numbers.fill_null(-1).to_numpy()


def _labels(
    table: TextTable, attribute: Attribute
) -> tuple[ReleasedLabels, Sequence[str | None], Int32Array]:
    """Return the different labels of a column, as written too, and the index of each row's."""
    column = texts(table, attribute.name)
    different, of = numbered(column)
    reader = ValueReader(attribute)
    runs = []
    for number, label in enumerate(different):
        try:
            runs.append(reader.runs(label or ""))
        except ValueError as error:
            row = int(np.argmax(of == number)) + 1
            message = f"{table.path}: column {attribute.name}, row {row}: {error}"
            raise InputError(message) from None
    return ReleasedLabels.of(runs), different, of


def _values(table: TextTable, attribute: Attribute, markers: Sequence[str]) -> Int32Array:
    """Return the code of each cell of a column that is published unchanged."""
    column = texts(table, attribute.name)
    if "?" in attribute.label or attribute.missing >= 0:
        column = column.set(pl.Series(is_missing(column, markers)), "?")
    different, of = numbered(column)
    reader = ValueReader(attribute)
    code = np.empty(len(different), np.int32)
    for number, text in enumerate(different):
        try:
            code[number] = reader.code(text or "")
        except ValueError as error:
            row = int(np.argmax(of == number)) + 1
            message = f"{table.path}: column {attribute.name}, row {row}: {error}"
            raise InputError(message) from None
    return code[of]


def numbered(column: pl.Series) -> tuple[list[str | None], Int32Array]:
    """Return the different cells in order of appearance, and the index of each row's cell."""
    different = column.unique(maintain_order=True)
    number = pl.DataFrame({"cell": different, "number": np.arange(len(different), dtype=np.int32)})
    of = column.to_frame("cell").join(
        number, on="cell", how="left", nulls_equal=True, maintain_order="left"
    )
    return different.to_list(), of["number"].to_numpy()


def _stacked(columns: Sequence[Int32Array], n: int) -> Int32Array:
    if not columns:
        return np.zeros((n, 0), np.int32)
    return np.ascontiguousarray(np.column_stack(columns), np.int32)


def _sets(class_of: Int32Array, code: Int32Array) -> ReleasedLabels:
    """Return the set of codes in the rows of each class."""
    width = int(code.max(initial=0)) + 1
    there = np.unique(class_of.astype(np.int64) * width + code)
    sizes = np.bincount(there // width)
    return ReleasedLabels(
        np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)]), there % width, there % width
    )
