"""The case of a table: the original, its release, and what the audit is asked to require."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

from anonymizer.algorithms.records.label_text import LabelText
from anonymizer.algorithms.records.measures import Measures, measure
from anonymizer.algorithms.records.time_text import TimeText
from anonymizer.algorithms.releases.released_classes import Published
from anonymizer.app.anonymize.plan import with_bands
from anonymizer.app.table_options import AT_RISK, LabelForm
from anonymizer.domain.arrays import Int32Array, IntArray
from anonymizer.domain.promises import Promise
from anonymizer.domain.records import Attribute, Records, Schema
from anonymizer.files.coded_table import CodedTable, Declared, cells_of
from anonymizer.files.published_tables import PublishedTable
from anonymizer.files.quantities import numbers_of
from anonymizer.files.tables import TextTable


class Day(NamedTuple):
    """A table, its release, and which row became which."""

    original: Path
    release: Path
    auditor_map: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class TableDemands:
    """What an audit of a table requires, and what it knows besides; see `audit_table`."""

    promise: Promise
    bands: Mapping[str, Sequence[float]]
    labels: Mapping[str, LabelForm] = field(default_factory=dict)
    measures: Sequence[str] = ()
    n_own: int = 0
    seed: int = 0
    population: TextTable | int | None = None
    at_risk: float = AT_RISK
    reasons: Mapping[str, str] = field(default_factory=dict)
    days: tuple[Day, Day] | None = None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TableCase:
    """The original, the release, which row became which, and what was promised.

    `row`: of the original, of each record; `class_of`, `row_of`: published class, and row of the
    release, negative if it was suppressed; `n_nobodys`: published rows whose original is nobody's,
    as it has no identifier or states nothing; `beside_few`: classes of the release with somebody
    who states no quasi-identifier, beside how many persons who do, rising;
    `banded`: the original with bands of sensitive numbers; `reached`: what its classes reach.
    """

    original: TextTable
    declared: Declared
    records: Records
    schema: Schema
    row: IntArray
    release: PublishedTable
    seen: Published
    class_of: Int32Array
    row_of: IntArray
    n_nobodys: int
    beside_few: IntArray
    asked: TableDemands
    banded: CodedTable
    reached: Measures

    @property
    def open_columns(self) -> list[str]:
        """The columns that are published as they are."""
        kept = [name for name in self.declared.keep if name in self.release.columns]
        return [*self.declared.sensitive, *kept]


def table_case(
    original: TextTable,
    declared: Declared,
    coded: CodedTable,
    release: PublishedTable,
    out_row: IntArray,
    *,
    asked: TableDemands,
) -> TableCase:
    """Return the case of a release; `out_row`: its row of each row of the original."""
    row_of = out_row[coded.row]
    class_of = np.where(row_of >= 0, release.class_of[row_of], -1).astype(np.int32)
    # A class may consist of rows without an identifier only; the other classes are renumbered.
    there, dense = np.unique(class_of[class_of >= 0], return_inverse=True)
    seen = release.seen()
    if len(there) < seen.n_classes:
        seen = seen.only(there)
    class_of[class_of >= 0] = dense
    banded = with_bands(coded, asked.bands)
    return TableCase(
        original=original,
        declared=declared,
        records=coded.records,
        schema=coded.schema,
        row=coded.row,
        release=release,
        seen=seen,
        class_of=class_of,
        row_of=row_of,
        n_nobodys=sum(
            int((out_row[coded.left_out[why]] >= 0).sum())
            for why in ("no_identifier", "states_nothing")
        ),
        beside_few=_company_of_silent(coded, release, out_row),
        asked=asked,
        banded=banded,
        reached=measure(banded.records, banded.schema, class_of),
    )


def _company_of_silent(coded: CodedTable, release: PublishedTable, out_row: IntArray) -> IntArray:
    """Return how many persons who state a QI each class has in which somebody states none."""
    silent = out_row[coded.left_out["states_no_qi"]]
    row_of = out_row[coded.row]
    of_person = np.column_stack([release.class_of[row_of], coded.records.person])[row_of >= 0]
    n_persons = np.bincount(np.unique(of_person, axis=0)[:, 0], minlength=release.n)
    return np.sort(n_persons[np.unique(release.class_of[silent[silent >= 0]])])


def cells_of_column(
    table: TextTable, declared: Declared, qi: Attribute
) -> tuple[pl.Series, TimeText | None]:
    """Return a column as text, and the reader of its times, if it has any."""
    cells = cells_of(table, declared, qi.name)
    times = TimeText(cells.drop_nulls().unique()) if qi.written else None
    return (numbers_of(cells) if qi.numeric and times is None else cells), times


def reader_of(
    declared: Declared, qi: Attribute, forms: Mapping[str, LabelForm], times: TimeText | None
) -> LabelText:
    """Return the reader of the labels of a column."""
    form = forms.get(qi.name, "plain")
    return LabelText(
        numeric=qi.numeric,
        branches=declared.hierarchies.get(qi.name, ()) if form == "plain" else (),
        by_hour=form == "hours",
        times=times,
        levels=declared.calendars.get(qi.name, ()),
        unit=qi.unit,
    )
