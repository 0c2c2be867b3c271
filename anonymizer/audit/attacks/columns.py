"""Columns: whether all are declared, and the statistics of classes true."""

from collections.abc import Iterator

import numpy as np
import polars as pl

from anonymizer.algorithms.kaca.class_statistics import summarize
from anonymizer.app.anonymize.statistics import COUNT_COLUMN, MEAN_PREFIX, measured
from anonymizer.audit.attack import Attack, Criterion, Question, Subject
from anonymizer.audit.findings import Figure, Finding, required
from anonymizer.audit.table_case import TableCase
from anonymizer.files.published_tables import CLASS_COLUMN

_LAST_DIGIT = 0.0051
"""Means are rounded to two digits."""
_BAR = "declared; statistics true"


def columns(case: TableCase) -> Iterator[Finding]:
    """Check that every column is declared, and the statistics of classes."""
    declared, measures = case.declared, case.asked.measures
    known = {CLASS_COLUMN, *declared.columns}
    wrong = 0
    if COUNT_COLUMN in case.release.columns and COUNT_COLUMN not in known:
        known |= {COUNT_COLUMN, *(f"{MEAN_PREFIX}{name}" for name in measures)}
        wrong = _wrong_statistics(case)
    unknown = [name for name in case.release.columns if name not in known]
    figures: dict[str, Figure] = {"n_undeclared": len(unknown), "n_rows_wrong": wrong}
    yield required("columns", figures, _BAR, holds=not any(figures.values()))


def _wrong_statistics(case: TableCase) -> int:
    """Return how many rows have a count or a mean that is not that of their class."""
    measures, k = case.asked.measures, case.asked.promise.k
    measure = measured(case.original, case.declared, measures)[case.row]
    kept = case.row_of >= 0
    of = case.release.class_of[case.row_of[kept]]
    true = summarize(of, case.records.person[kept], measure[kept], k=max(k, 1))
    shown = case.release.table.frame
    wrong = np.zeros(case.release.n, bool)
    columns = [(COUNT_COLUMN, true.n_persons.astype(np.float64))]
    columns += [(f"{MEAN_PREFIX}{name}", true.mean[:, m]) for m, name in enumerate(measures)]
    for name, value in columns:
        if name not in shown.columns:
            return case.release.n
        cell = shown[name].cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy()
        expected = value[case.release.class_of]
        near = np.isclose(cell, expected, rtol=0, atol=_LAST_DIGIT, equal_nan=True)
        # A statistic of fewer than k persons may be left out even where k was not asked for here.
        wrong |= ~(near | (np.isnan(cell) & shown[name].is_null().to_numpy()))
    return int(wrong.sum())


ATTACK = Attack(
    "columns",
    Subject.TABLE,
    columns,
    (
        Question(
            "columns",
            Criterion.TRUTH,
            "Are all columns declared, and are all statistics true?",
            bar=_BAR,
        ),
    ),
)
