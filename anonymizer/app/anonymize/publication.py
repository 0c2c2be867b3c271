"""The rows that are published, and which row of the table each one was.

The files of a release.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import BinaryIO

import numpy as np
import polars as pl

from anonymizer.algorithms.records.classes import SUPPRESSED, canonical, classes_of
from anonymizer.algorithms.records.generalization import generalize
from anonymizer.algorithms.records.ordering import numbered, published_order
from anonymizer.algorithms.records.problem import Cost
from anonymizer.app.anonymize.class_labels import Wording
from anonymizer.app.anonymize.table_anonymization import Anonymized
from anonymizer.domain.arrays import Int32Array, IntArray
from anonymizer.errors import InputError
from anonymizer.files.atomic_write import Part, write_whole
from anonymizer.files.coded_table import CodedTable
from anonymizer.files.tables import ending, write_table

CLASS_COLUMN = "class_id"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Publication:
    """What leaves.

    Attributes
    ----------
    class_of
        Class of each record as it is numbered in the release.
    frame
        The rows, sorted by class.
    out_row
        Row of the release that each row of the table became, negative where it was suppressed;
        for the auditor alone.
    """

    class_of: Int32Array
    frame: pl.DataFrame
    out_row: IntArray


def publish(coded: CodedTable, class_of: Int32Array, cost: Cost, wording: Wording) -> Publication:
    """Return what is published of classes; nothing in it depends on the order of the table.

    Parameters
    ----------
    class_of
        Class of each record, numbers from 0 without a gap, or `SUPPRESSED`; at least one.
    wording
        How each quasi-identifier is told.

    Raises
    ------
    InputError
        If a column is called as the one that numbers the classes.
    """
    names = [*(qi.name for qi in coded.schema.qis), *coded.open.columns]
    if CLASS_COLUMN in names:
        raise InputError(f"column {CLASS_COLUMN}: the release has one of this name")
    classes = classes_of(class_of)
    told = generalize(coded.records.qi, classes, coded.schema, cost)
    # One number for all that is told of a record; of one that is left out it is never looked at.
    shown = numbered(np.column_stack([numbered(wording.rank(told))[class_of], coded.open_code]))
    number_of = canonical(class_of, shown[:, None].astype(np.int32))
    order = published_order(number_of, coded.open_code)
    # Equal numbers in both: a class's text stands at the number it had.
    was = class_of[order]
    columns = [pl.Series(CLASS_COLUMN, number_of[order].astype(np.int64))]
    for j, qi in enumerate(coded.schema.qis):
        columns.append(pl.Series(qi.name, wording.texts(told, j), dtype=pl.String).gather(was))
    columns += [column.gather(order) for column in coded.open]
    out_row = np.full(coded.n_rows, SUPPRESSED, np.int64)
    out_row[coded.row[order]] = np.arange(len(order))
    return Publication(number_of, pl.DataFrame(columns), out_row)


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Where the files go; None: no such file.

    Attributes
    ----------
    table
        The table that was read: none of the others may be it.
    out
        The release.
    report, page
        The report, as JSON and as a page.
    auditor_map
        Which row became which; its owner alone may read it.
    """

    table: Path
    out: Path
    report: Path | None = None
    page: Path | None = None
    auditor_map: Path | None = None

    def __post_init__(self) -> None:
        ending(self.out)
        places = [self.table, self.out, self.report, self.page, self.auditor_map]
        seen: set[Path] = set()
        for path in filter(None, places):
            if path.resolve() in seen:
                raise InputError(f"{path}: is named twice")
            seen.add(path.resolve())


def write_release(anonymized: Anonymized, places: Places) -> None:
    """Write the files of a release, all of them or none.

    Raises
    ------
    InputError
        If one cannot be written.
    """
    publication, report = anonymized.publication, anonymized.report
    parts: dict[Path, Part] = {}
    if places.auditor_map is not None:
        parts[places.auditor_map] = Part(partial(_write_map, publication=publication), private=True)
    if places.report is not None:
        parts[places.report] = Part(_text(lambda: report.model_dump_json(indent=2) + "\n"))
    if places.page is not None:
        from anonymizer.app.anonymize.report_page import page  # noqa: PLC0415  plots take long to load

        parts[places.page] = Part(_text(lambda: page(report, publication)))
    form = ending(places.out)
    parts[places.out] = Part(partial(write_table, frame=publication.frame, form=form))
    write_whole(parts)


def _write_map(file: BinaryIO, *, publication: Publication) -> None:
    out_row = publication.out_row
    rows = pl.DataFrame({"in_row": np.arange(len(out_row)), "out_row": out_row})
    rows.with_columns(pl.col("out_row").replace(-1, None)).write_csv(file)


def _text(compose: Callable[[], str]) -> Callable[[BinaryIO], object]:
    return lambda file: file.write(compose().encode())
