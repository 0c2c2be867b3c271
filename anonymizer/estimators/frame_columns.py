"""Columns of scikit-learn's rows: their privacy roles, coded as those of any table, and back.

Rows become a table of text and numbers, which `code_table` codes: what its cells mean, who is a
person, and that nobody has two rows is decided there.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import ArrayLike

from anonymizer.algorithms.cells.representatives import is_missing
from anonymizer.algorithms.records.classes import SUPPRESSED
from anonymizer.algorithms.records.generalized_values import MISSING
from anonymizer.algorithms.records.ordering import numbered
from anonymizer.app.anonymize.one_row_each import one_row_each
from anonymizer.app.anonymize.plan import with_bands
from anonymizer.domain.arrays import FloatArray, Int32Array, IntArray
from anonymizer.domain.records import Attribute, Schema
from anonymizer.domain.spellings import NO_VALUE
from anonymizer.errors import InputError, SettingsError
from anonymizer.estimators.data_frames import (
    Column,
    ColumnArray,
    Selected,
    by_place,
    floats,
    holds_numbers,
    lacks_value,
    numbers,
    objects,
    selected,
)
from anonymizer.estimators.moments import Clock
from anonymizer.files.coded_table import CodedTable, Declared, cells_of, code_table
from anonymizer.files.meanings import meant, spelled
from anonymizer.files.tables import TextTable

TABLE = Path("X")
"""What messages call the rows."""
NO_PLACE = -1.0
"""Position of a category that is not in the domain."""
_PERSON = "(person)"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FrameColumns:
    """Roles and domains of columns, learned from the training rows.

    Attributes
    ----------
    names
        Names of all columns.
    qi_columns
        Columns of the quasi-identifiers of `schema`; each is a source of its own.
    declared, schema
        What the columns are, and their attributes.
    originals
        Original values of the codes of each categorical quasi-identifier, by column.
    clocks
        How moments are numbers, by column with dates or times.
    as_objects
        Whether published rows are objects, because some column is not numeric.
    """

    names: tuple[str, ...]
    qi_columns: tuple[int, ...]
    declared: Declared
    schema: Schema
    originals: Mapping[int, ColumnArray]
    clocks: Mapping[int, Clock]
    as_objects: bool

    def values(self, rows: ColumnArray) -> FloatArray:
        """Return the positions of the quasi-identifiers of any rows, shape (n, qis)."""
        places = [
            self._places(rows[:, j], j, qi)
            for j, qi in zip(self.qi_columns, self.schema.qis, strict=True)
        ]
        return np.column_stack([np.zeros((len(rows), 0)), *places])

    def published(
        self, rows: ColumnArray, class_of: Int32Array, representative: FloatArray
    ) -> ColumnArray:
        """Return rows with the representatives of their classes for quasi-identifiers.

        Parameters
        ----------
        representative
            Positions, shape (classes, qis).

        Returns
        -------
        published
            Floats if all columns are numeric, else objects. A suppressed row is NaN in all
            columns: it keeps its place, so that labels of rows still fit. The representative of a
            class most of whose members have no value is missing, too: NaN, or None for a moment.
        """
        out = objects(rows) if self.as_objects else floats(rows)
        kept = class_of != SUPPRESSED
        for at, (j, qi) in enumerate(zip(self.qi_columns, self.schema.qis, strict=True)):
            place = representative[class_of[kept], at]
            if j in self.originals:
                out[kept, j] = self.originals[j][place.astype(np.int64)]
                continue
            place = np.where(is_missing(place, qi), np.nan, place)
            out[kept, j] = self.clocks[j].moments(place) if j in self.clocks else place
        out[~kept] = np.nan
        return out

    def _places(self, column: ColumnArray, j: int, attribute: Attribute) -> FloatArray:
        if attribute.numeric:
            place = _in_numbers(column, self.names[j], self.clocks.get(j))
            # Where no fitted row lacked a value, a missing one lies at the end of the domain.
            return np.where(np.isnan(place), attribute.position[-1], place)
        text = _as_text(column, attribute.name)
        meaning = meant(text, markers=self.declared.markers, known=attribute.label).spelling or {}
        others = {cell: each for cell, each in meaning.items() if cell not in attribute.label}
        table = TextTable(TABLE, spelled(text, others).to_frame())
        code_of = {label: float(code) for code, label in enumerate(attribute.label)}
        cells = cells_of(table, self.declared, attribute.name).fill_null(MISSING)
        return cells.replace_strict(code_of, default=NO_PLACE, return_dtype=pl.Float64).to_numpy()


def code_rows(
    rows: ColumnArray,
    names: Sequence[str],
    *,
    categorical: Selected = (),
    sensitive: Selected = (),
    untouched: Selected = (),
    bands: Mapping[Column, Sequence[float]] | None = None,
    marker: str | None = "?",
    table: Any = None,  # noqa: ANN401  any table
    person: ArrayLike | None = None,
    seed: int = 0,
) -> tuple[FrameColumns, CodedTable]:
    """Return the roles and domains of columns, and the rows as records, one of each person.

    Parameters
    ----------
    rows
        Shape (n, columns).
    categorical
        Columns whose values are categories; all others are numbers.
    sensitive
        Columns that must be diverse within a class; they are published as they are.
    untouched
        Columns that are neither sensitive nor quasi-identifiers.
    bands
        Edges of bands, by sensitive column.
    marker
        One more text that means "missing"; it does not count as a value.
    table
        The rows as they were given, for selectors that are functions.
    person
        Person of each row; None: every row is a person of its own.
    seed
        Of the row that is drawn of each person.

    Raises
    ------
    ValueError
        If a column is unknown, has two roles, or is not numeric although it must be; or if the
        person of a row is missing.
    """
    secret = selected(sensitive, names, table)
    kept = selected(untouched, names, table)
    edges_of = by_place(bands, names)
    category = set(selected(categorical, names, table))
    for both, roles in ((set(secret) & set(kept), "sensitive and untouched"),
                        (category & set(edges_of), "categorical and in bands")):  # fmt: skip
        if both:
            raise ValueError(f"column {names[min(both)]} cannot be both {roles}")
    if not_sensitive := set(edges_of) - set(secret):
        raise ValueError(f"column {names[min(not_sensitive)]} has bands but is not sensitive")
    qis = [j for j in range(len(names)) if j not in {*secret, *kept}]
    if not qis:
        raise ValueError("no column is a quasi-identifier")

    clocks = {
        j: clock
        for j in (*qis, *secret)
        if j not in category and (clock := Clock.of(_there(rows[:, j]))) is not None
    }
    columns = [
        _as_text(rows[:, j], names[j])
        if j in category
        else _with_values(rows[:, j], names[j], clocks.get(j), banded=j in edges_of)
        for j in (*qis, *secret)
    ]
    if person is not None:
        columns.append(_persons(person, len(rows)))
    with as_value_errors():
        declared = Declared(
            qis=[names[j] for j in qis],
            sensitive=[names[j] for j in secret],
            id=None if person is None else _PERSON,
            sources=[[names[j]] for j in qis],
            categories=[names[j] for j in (*qis, *secret) if j in category],
            markers=NO_VALUE if marker is None else (*NO_VALUE, marker),
        )
        coded = code_table(TextTable(TABLE, pl.DataFrame(columns)), declared)
        coded = with_bands(coded, {names[j]: edges for j, edges in edges_of.items()})
        coded, _ = one_row_each(coded, np.zeros((coded.records.n, 0)), seed=seed)
    found = FrameColumns(
        names=tuple(names),
        qi_columns=tuple(qis),
        declared=declared,
        schema=coded.schema,
        originals={
            j: _originals(rows[coded.row, j], coded.records.qi[:, at], qi.label)
            for at, (j, qi) in enumerate(zip(qis, coded.schema.qis, strict=True))
            if not qi.numeric
        },
        clocks=clocks,
        as_objects=rows.dtype.kind not in "biuf"
        and bool(category | clocks.keys() or not all(holds_numbers(rows[:, j]) for j in kept)),
    )
    return found, coded


def some_of(coded: CodedTable, chosen: IntArray) -> CodedTable:
    """Return some of the records of a table with one row of each person."""
    records = coded.records.only(chosen)
    person = numbered(records.person[:, None]).astype(np.int32)
    return replace(coded, records=replace(records, person=person), row=coded.row[chosen])


@contextmanager
def as_value_errors() -> Iterator[None]:
    """Raise what a table is refused for as scikit-learn's estimators do."""
    try:
        yield
    except (InputError, SettingsError) as error:
        raise ValueError(str(error)) from None


def _there(column: ColumnArray) -> ColumnArray:
    return column[~lacks_value(column)]


def _with_values(column: ColumnArray, name: str, clock: Clock | None, *, banded: bool) -> pl.Series:
    """Return a column of numbers or moments as numbers, after checking that it has some."""
    lacks = lacks_value(column)
    if lacks.all():
        raise ValueError(f"column {name} has no value")
    if banded and lacks.any():  # there is no band for a missing value
        raise ValueError(f"column {name} has bands and lacks values")
    return pl.Series(name, _in_numbers(column, name, clock))


def _in_numbers(column: ColumnArray, name: str, clock: Clock | None) -> FloatArray:
    if clock is None:
        return numbers(column, name)
    return clock.numbers(column, lacks_value(column), name)


def _as_text(column: ColumnArray, name: str) -> pl.Series:
    """Return a column of categories as text, null where it lacks a value."""
    text = column.astype(str).astype(object)
    text[lacks_value(column)] = None
    return pl.Series(name, text.tolist(), pl.String)


def _persons(person: ArrayLike, n: int) -> pl.Series:
    who = np.asarray(person)
    if who.shape != (n,):
        raise ValueError("person must have one person for each row")
    if n_unknown := int(lacks_value(who).sum()):
        raise ValueError(f"person is missing in {n_unknown} of {n} rows")
    return _as_text(who, _PERSON)


def _originals(column: ColumnArray, code: Int32Array, label: Sequence[str]) -> ColumnArray:
    """Return a cell for each code; of several, one that is written like the label."""
    text = column.astype(str)
    own = text == np.array(label)[code]
    order = np.lexsort((~own, code))
    first = np.searchsorted(code[order], np.arange(len(label)))
    return column[order[np.minimum(first, len(order) - 1)]]
