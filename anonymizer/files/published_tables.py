"""A published table of classes, and the auditor's map: files in, what they say out.

Published labels as text: which codes of an attribute each one allows.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from anonymizer.algorithms.attacks.released_classes import Labels, Published
from anonymizer.domain.arrays import BoolArray, Int32Array, IntArray
from anonymizer.domain.records import NO_CODE, Attribute, Schema
from anonymizer.errors import InputError
from anonymizer.files.coded_columns import is_missing, texts
from anonymizer.files.tables import Table, read_table

MISSING = "?"
_RANGE = re.compile(r"\[(-?[0-9]+(?:\.[0-9]+)?)-(-?[0-9]+(?:\.[0-9]+)?)\]")
_PART = re.compile(r"(?:[^\\|}]|\\.)+")
_HOURS = re.compile(r"[^()]+\((\d\d)-(\d\d)\)")
_AREAS = ("区域", " area")
_EVERYWHERE = ("全部区域", "all areas")
_UNKNOWN = (("未知区域", "unknown area"), ("未知时段", "unknown time"))
"""What stands for no category, and for no time."""
_CLOSE = 1e-9
"""How far a number may lie beside its place, as a share of the domain's greatest number."""

Run = tuple[int, int]
"""First and last of codes that follow each other."""


def runs_of(label: str, attribute: Attribute) -> list[Run]:
    r"""Return the codes that a label allows, as rising runs that do not touch.

    Parameters
    ----------
    label
        `[lo-hi]`, a number, a category or a node of the hierarchy; or several of these, or `?`,
        as `{a|b}`, in which a `\` stands before each `\`, `|` and `}` of a name. Or a label of
        KACA in either language: a region, or the hours of a day whose minutes are the domain.

    Raises
    ------
    ValueError
        If it is none of these, or allows nothing.

    Notes
    -----
    A node allows its leaves; the missing marker is allowed only by name.
    """
    inside = label[1:-1] if label.startswith("{") and label.endswith("}") else None
    if inside is None:
        parts = [label]
    else:
        found = _PART.findall(inside)
        if not found or "|".join(found) != inside:
            raise ValueError("is no label")
        parts = [re.sub(r"\\(.)", r"\1", part) for part in found]
    return _merged([run for part in parts for run in _runs_of_part(part, attribute)])


def _runs_of_part(part: str, attribute: Attribute) -> list[Run]:
    if part in attribute.label:
        code = attribute.label.index(part)
        return [(code, code)]
    if part == MISSING and attribute.missing != NO_CODE:
        return [(attribute.missing, attribute.missing)]
    tree = attribute.hierarchy
    if tree is not None and part in tree.label:
        below = (tree.ancestor == tree.label.index(part)).any(axis=1)
        return [(int(c), int(c)) for c in np.flatnonzero(below) if c != attribute.missing]
    if (told := _codes_of_words(part, attribute)) is not None:
        return [(code, code) for code in told]
    if not attribute.numeric:
        raise ValueError("is no label")
    ends = _RANGE.fullmatch(part)
    try:
        lo, hi = (float(ends[1]), float(ends[2])) if ends else (float(part), float(part))
    except ValueError:
        raise ValueError("is no label") from None
    place = attribute.position[: None if attribute.missing == NO_CODE else attribute.missing]
    if not len(place) or not (math.isfinite(lo) and math.isfinite(hi)):
        raise ValueError("is no label")
    close = _CLOSE * max(1.0, float(np.abs(place).max()))
    first = int(np.searchsorted(place, lo - close))
    last = int(np.searchsorted(place, hi + close, side="right")) - 1
    if last < first:
        raise ValueError("lies outside its domain")
    return [(first, last)]


def _codes_of_words(part: str, attribute: Attribute) -> list[int] | None:
    """Return the codes that a region or a part of the day allows; None: it is neither."""
    if part in _UNKNOWN[attribute.numeric] and attribute.missing != NO_CODE:
        return [attribute.missing]
    if attribute.numeric:
        return _codes_of_hours(part, attribute)
    area = next((area for area in _AREAS if part.endswith(area)), None)
    begin = "" if part in _EVERYWHERE else part.removesuffix(area or "")
    if part not in _EVERYWHERE and (area is None or not begin):
        return None
    there = enumerate(attribute.label)
    return [c for c, name in there if c != attribute.missing and name.startswith(begin)] or None


def _codes_of_hours(part: str, attribute: Attribute) -> list[int] | None:
    found = _HOURS.fullmatch(part)
    if found is None:
        return None
    first, end = int(found[1]), int(found[2])
    real = np.flatnonzero(np.arange(attribute.size) != attribute.missing)
    hour = attribute.position[real] / 60
    if not (first < 24 and 0 < end <= 24 and ((hour >= 0) & (hour < 24)).all()):
        return None
    within = (hour >= first) & (hour < end) if first < end else (hour >= first) | (hour < end)
    return real[within].tolist() or None


def _merged(runs: list[Run]) -> list[Run]:
    merged: list[Run] = []
    for lo, hi in sorted(runs):
        if merged and lo <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], hi))
        else:
            merged.append((lo, hi))
    return merged


CLASS_COLUMN = "class_id"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Release:
    """A published table.

    Attributes
    ----------
    columns
        Names of all of them.
    class_of
        Class of each row, numbered from 0 in the order of the file, shape (rows,).
    labels
        Of each quasi-identifier, the different labels that there are.
    label_of
        Which of them each row bears, shape (rows, quasi-identifiers).
    sensitive
        Code of each sensitive value, shape (rows, sensitive attributes).
    """

    columns: tuple[str, ...]
    class_of: Int32Array
    labels: tuple[Labels, ...]
    label_of: Int32Array
    sensitive: Int32Array

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.class_of)

    def uneven(self) -> BoolArray:
        """Return whether rows of a class bear different labels, shape (classes, QIs)."""
        first = self.label_of[self._first_row()]
        uneven = np.zeros(first.shape, bool)
        np.logical_or.at(uneven, self.class_of, self.label_of != first[self.class_of])
        return uneven

    def seen(self) -> Published:
        """Return what its reader sees of the classes; of an uneven one the first row's labels."""
        first = self._first_row()
        sets = [_sets(self.class_of, code) for code in self.sensitive.T]
        of_classes = [labels.only(self.label_of[first, j]) for j, labels in enumerate(self.labels)]
        return Published(len(first), tuple(of_classes), tuple(sets))

    def _first_row(self) -> IntArray:
        return np.unique(self.class_of, return_index=True)[1]


def read_published(path: str | Path, schema: Schema, *, markers: Sequence[str] = ()) -> Release:
    """Read a table that `anonymize` has written.

    Parameters
    ----------
    path
        csv, csv.gz or parquet.
    schema
        What its columns are; those that it does not name are not looked at.
    markers
        Texts that mean "missing" in sensitive columns, besides an empty cell and `?`.

    Raises
    ------
    InputError
        If the file cannot be read, lacks a column, or has a cell that its attribute does not
        know; the message names column and row (from 1, without the header).
    """
    table = read_table(path)
    names = [a.name for a in (*schema.qis, *schema.sensitive)]
    for name in (CLASS_COLUMN, *names):
        if name not in table.frame.columns:
            raise InputError(f"{table.path}: no column {name}")
    number = texts(table, CLASS_COLUMN)
    if number.null_count():
        row = int(np.argmax(number.is_null().to_numpy())) + 1
        raise InputError(f"{table.path}: column {CLASS_COLUMN}, row {row}: is empty")
    read = [_labels(table, attribute) for attribute in schema.qis]
    return Release(
        columns=tuple(table.frame.columns),
        class_of=_numbered(number)[1],
        labels=tuple(labels for labels, _ in read),
        label_of=_stacked([of for _, of in read], len(table)),
        sensitive=_stacked([_values(table, a, markers) for a in schema.sensitive], len(table)),
    )


def read_row_map(path: str | Path, *, n_rows: int, n_published: int) -> IntArray:
    """Return which row of the release each row of the table became, -1 where none, (n_rows,).

    Raises
    ------
    InputError
        If the file cannot be read, or does not name every row of both once.
    """
    table = read_table(path, ["in_row", "out_row"])
    row, became = (_row_numbers(table, name) for name in ("in_row", "out_row"))
    if not np.array_equal(np.sort(row), np.arange(n_rows)):
        raise InputError(f"{table.path}: column in_row: does not name each row of the table once")
    out_row = np.empty(n_rows, np.int64)
    out_row[row] = became
    if not np.array_equal(np.sort(out_row[out_row >= 0]), np.arange(n_published)):
        raise InputError(f"{table.path}: column out_row: does not name each published row once")
    return out_row


def _row_numbers(table: Table, name: str) -> IntArray:
    column = table.frame[name]
    numbers = column.cast(pl.Int64, strict=False)
    faulty = ((numbers.is_null() & column.is_not_null()) | (numbers < 0)).fill_null(value=False)
    if faulty.any():
        row = int(np.argmax(faulty.to_numpy())) + 1
        raise InputError(f"{table.path}: column {name}, row {row}: is no row number")
    return numbers.fill_null(-1).to_numpy()


def _labels(table: Table, attribute: Attribute) -> tuple[Labels, Int32Array]:
    """Return the different labels of a column, and which one each row bears."""
    column = texts(table, attribute.name)
    different, of = _numbered(column)
    runs = []
    for number, label in enumerate(different):
        try:
            runs.append(runs_of(label or "", attribute))
        except ValueError as error:
            row = int(np.argmax(of == number)) + 1
            message = f"{table.path}: column {attribute.name}, row {row}: {error}"
            raise InputError(message) from None
    sizes = np.array([len(each) for each in runs], np.int64)
    ends = np.array([run for each in runs for run in each], np.int64).reshape(-1, 2)
    first_of = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    return Labels(first_of, ends[:, 0].copy(), ends[:, 1].copy()), of


def _values(table: Table, attribute: Attribute, markers: Sequence[str]) -> Int32Array:
    """Return the code of each cell of a column that is published as it is."""
    column = texts(table, attribute.name)
    if "?" in attribute.label or attribute.missing >= 0:
        column = column.set(pl.Series(is_missing(column, markers)), "?")
    different, of = _numbered(column)
    code = np.empty(len(different), np.int32)
    for number, text in enumerate(different):
        try:
            ((code[number], last),) = runs_of(_escaped(text or ""), attribute)
            if last != code[number]:
                raise ValueError("is no value")  # noqa: TRY301  both are said with the row
        except ValueError as error:
            row = int(np.argmax(of == number)) + 1
            message = f"{table.path}: column {attribute.name}, row {row}: {error}"
            raise InputError(message) from None
    return code[of]


def _escaped(text: str) -> str:
    for special in "\\|}":
        text = text.replace(special, "\\" + special)
    return f"{{{text}}}"


def _numbered(column: pl.Series) -> tuple[list[str | None], Int32Array]:
    """Return the different cells in order of appearance, and which one each row has."""
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


def _sets(class_of: Int32Array, code: Int32Array) -> Labels:
    """Return the set of the codes that stand beside the rows of each class."""
    width = int(code.max(initial=0)) + 1
    there = np.unique(class_of.astype(np.int64) * width + code)
    sizes = np.bincount(there // width)
    return Labels(
        np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)]), there % width, there % width
    )
