"""Statistics in a release: the persons and the means of measures of each class."""

from collections.abc import Sequence

import numpy as np
import polars as pl

from anonymizer.app.anonymize.publication import CLASS_COLUMN, Publication
from anonymizer.domain.arrays import FloatArray
from anonymizer.errors import InputError, SettingsError
from anonymizer.files.coded_columns import is_missing, texts
from anonymizer.files.coded_table import CodedTable, Declared
from anonymizer.files.tables import TextTable, no_column

COUNT_COLUMN = "count"
MEAN_PREFIX = "mean_"


def measured(table: TextTable, declared: Declared, names: Sequence[str]) -> FloatArray:
    """Return the measures of each row of a table, NaN where it has none, shape (rows, measures).

    Raises
    ------
    InputError
        If a column is missing or contains anything but numbers.
    SettingsError
        If one is named twice or is declared in another role than that of a quasi-identifier.
    """
    measure = np.full((len(table), len(names)), np.nan)
    for m, name in enumerate(names):
        if (name in declared.columns and name not in declared.qis) or name in names[:m]:
            raise SettingsError(f"measure: column {name} is declared twice")
        if name not in table.frame.columns:
            raise no_column(table.path, name, table.frame.columns)
        column = texts(table, name)
        missing = is_missing(column, declared.markers)
        value = column.cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy()
        if (faulty := ~missing & ~np.isfinite(value)).any():
            row = int(np.argmax(faulty)) + 1
            raise InputError(f"{table.path}: column {name}, row {row}: is not a number")
        measure[~missing, m] = value[~missing]
    return measure


def with_summaries(
    publication: Publication,
    coded: CodedTable,
    measure: FloatArray,
    names: Sequence[str],
    *,
    k: int,
) -> tuple[pl.DataFrame, int]:
    """Return the published rows with columns for the persons and means of their classes.

    Parameters
    ----------
    measure
        Measures of each record, shape (records, measures).
    k
        Least number of persons in a mean.

    Returns
    -------
    frame
        `count`: distinct persons of the class; `mean_NAME`: the mean of a measure, null where
        fewer than k persons of the class have one.
    n_withheld
        Number of means that are withheld.

    Raises
    ------
    InputError
        If a published column has one of these names.
    """
    from anonymizer.algorithms.kaca.class_statistics import (  # noqa: PLC0415  few releases have means
        summarize,
    )

    titles = [COUNT_COLUMN, *(f"{MEAN_PREFIX}{name}" for name in names)]
    if taken := [title for title in titles if title in publication.frame.columns]:
        raise InputError(f"column {taken[0]}: the release has one of this name")
    # Sums of floats depend on the order, which must not be that of the table.
    order = np.lexsort((coded.records.person, *measure.T))
    class_of, person = publication.class_of[order], coded.records.person[order]
    summary = summarize(class_of, person, measure[order], k=k)
    of = publication.frame[CLASS_COLUMN]
    columns = [pl.Series(COUNT_COLUMN, summary.n_persons.astype(np.int64)).gather(of)]
    for title, mean in zip(titles[1:], summary.mean.T, strict=True):
        columns.append(pl.Series(title, mean.copy()).fill_nan(None).gather(of))
    return publication.frame.with_columns(columns), int(np.isnan(summary.mean).sum())
