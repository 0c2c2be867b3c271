"""Published rows: the generalized records, sorted by class, and the row each one came from."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from anonymizer.algorithms.records.classes import SUPPRESSED, classes_of
from anonymizer.algorithms.records.generalization import generalize
from anonymizer.algorithms.records.ordering import canonical, numbered, published_order
from anonymizer.algorithms.records.problem import Cost
from anonymizer.app.anonymize.class_labels import Labelling
from anonymizer.domain.arrays import Int32Array
from anonymizer.errors import InputError
from anonymizer.files.coded_table import CodedTable

CLASS_COLUMN = "class_id"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Publication:
    """The published rows of a table."""

    class_of: Int32Array
    """Class number of each record in the release."""
    frame: pl.DataFrame
    """The rows, sorted by class; labels as categories, which take a tenth of the memory of text."""
    out_row: Int32Array
    """Row of the release of each row of the table, negative where suppressed; for the auditor
    alone."""
    labelled: tuple[str, ...] = ()
    """Names of the columns of labels."""

    def as_text(self) -> pl.DataFrame:
        """Return the rows with text as labels: 16 bytes and more for each."""
        labels = [name for name in self.labelled if name in self.frame.columns]
        return self.frame.with_columns(pl.col(labels).cast(pl.String))

    def row_map(self) -> pl.DataFrame:
        """Return the row of the release of each row of the table, null where suppressed."""
        rows = pl.DataFrame({"in_row": np.arange(len(self.out_row)), "out_row": self.out_row})
        return rows.with_columns(pl.col("out_row").cast(pl.Int64).replace(-1, None))


def publish(
    coded: CodedTable, class_of: Int32Array, cost: Cost, labelling: Labelling
) -> Publication:
    """Return the published rows of classes; nothing in them depends on the order of the table.

    Parameters
    ----------
    class_of
        Class of each record, numbers from 0 without a gap, or `SUPPRESSED`; at least one.
    labelling
        How each quasi-identifier is labelled.

    Raises
    ------
    InputError
        If a column has the name of the column of class numbers.
    """
    names = [*(qi.name for qi in coded.schema.qis), *coded.open.columns]
    if CLASS_COLUMN in names:
        raise InputError(f"column {CLASS_COLUMN}: the release has one of this name")
    classes = classes_of(class_of)
    general = generalize(coded.records.qi, classes, coded.schema, cost)
    # One number for all that is published of a record; that of a suppressed one is not used.
    rank = numbered(labelling.rank(general))
    shown = numbered(np.column_stack([rank[class_of], coded.open_code]))
    number_of = canonical(class_of, shown[:, None].astype(np.int32))
    order = published_order(number_of, coded.open_code)
    former = class_of[order]  # the labels are in the order of the former numbers
    columns = [pl.Series(CLASS_COLUMN, number_of[order].astype(np.int64))]
    for j, qi in enumerate(coded.schema.qis):
        label = pl.Series(qi.name, labelling.texts(general, j), dtype=pl.String)
        columns.append(label.cast(pl.Enum(label.unique(maintain_order=True))).gather(former))
    columns += [column.gather(order) for column in coded.open]
    out_row = np.full(coded.n_rows, SUPPRESSED, np.int32)
    out_row[coded.row[order]] = np.arange(len(order))
    labelled = tuple(qi.name for qi in coded.schema.qis)
    return Publication(number_of, pl.DataFrame(columns), out_row, labelled)
