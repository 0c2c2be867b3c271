"""The rows that are published, and which row of the table each one was."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from anonymizer.algorithms.records.classes import SUPPRESSED, canonical, classes_of
from anonymizer.algorithms.records.generalization import generalize
from anonymizer.algorithms.records.ordering import numbered, published_order
from anonymizer.algorithms.records.problem import Cost
from anonymizer.app.anonymize.class_labels import Wording
from anonymizer.domain.arrays import Int32Array, IntArray
from anonymizer.errors import InputError
from anonymizer.files.coded_table import CodedTable

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
