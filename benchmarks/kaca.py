"""Benchmarks of KACA: K-Means as published against the fast method, by time and loss."""

import time
from collections.abc import Sequence

import numpy as np

from anonymizer.algorithms.kaca.clustering import Method
from anonymizer.algorithms.kaca.clustering import kaca as kaca_classes
from anonymizer.algorithms.kaca.features import Feature, features, sum_of_squares
from anonymizer.algorithms.records.classes import classes_of
from anonymizer.algorithms.records.generalization import generalize
from anonymizer.domain.arrays import Int32Array
from anonymizer.domain.promises import Promise
from anonymizer.domain.records import Records, Schema
from benchmarks.tables import Cell, Table
from benchmarks.timing import runs_for
from experiments.toll_table import HOW, toll_exits

_K = 5
_SEED = 1
_KMEANS_RECORDS = {10: 10_000, 1: 100_000}
"""Largest number of records for K-Means, by number of random starts."""
_WARM = 100


def kaca(cases: Sequence[tuple[str, int]]) -> list[Table]:
    """Form classes of generated toll exits by both methods: (`toll` or `weighed`, records)."""
    columns = (
        "table",
        "records",
        "method",
        "s",
        "to fast",
        "classes",
        "largest",
        "sum of squares",
        "NCP, %",
    )
    notes = (
        f"exits of trucks on one day, k = {_K} distinct trucks. toll: section and minute.",
        "weighed: also axles and tonnes; in sums of squares each attribute is divided by its span.",
        "kmeans: scikit-learn's, n // k clusters, ten random starts (as published) or one, then",
        "merged; quadratic, so run once and not for all sizes. Both in CPU time on one thread.",
        "NCP: mean width of the ranges of records, with sections in alphabetical order.",
    )
    rows = [row for case in cases for row in _rows(*case)]
    return [Table("KACA: time and information loss", columns, rows, notes)]


def _rows(name: str, n: int) -> list[tuple[Cell, ...]]:
    records, schema, _ = toll_exits(n, seed=_SEED, weighed=name == "weighed")
    how = HOW[: len(schema.qis)]

    def form(method: Method, some: Records, n_init: int = 1) -> tuple[float, Int32Array]:
        began = time.process_time()
        class_of = kaca_classes(some, schema, Promise(k=_K), method=method, how=how, n_init=n_init)
        return time.process_time() - began, class_of

    runs = [form(Method.FAST, records) for _ in range(runs_for(n) + 1)]
    fast_s, fast = min(s for s, _ in runs[1:]), runs[0][1]
    rows: list[tuple[Cell, ...]] = []
    form(Method.KMEANS, records.only(np.arange(min(n, _WARM))))  # imports scikit-learn
    for n_init, most in _KMEANS_RECORDS.items():
        if n <= most:
            s, slow = form(Method.KMEANS, records, n_init)
            lost = _lost(records, schema, how, slow)
            rows.append((name, n, f"kmeans, {n_init}", s, s / fast_s, *lost))
    return [*rows, (name, n, "fast", fast_s, "", *_lost(records, schema, how, fast))]


def _lost(
    records: Records, schema: Schema, how: Sequence[Feature], class_of: Int32Array
) -> tuple[int, int, float, float]:
    """Return number of classes, size of the largest, sum of squares and NCP in per cent."""
    general = generalize(records.qi, classes_of(class_of), schema)
    size = np.bincount(class_of[class_of >= 0])
    widths = [
        (qi.position[general.hi[:, j]] - qi.position[general.lo[:, j]]) / qi.span
        for j, qi in enumerate(schema.qis)
    ]
    ncp = float(np.mean([np.average(width, weights=size) for width in widths]))
    squares = sum_of_squares(features(records, schema, how), class_of)
    return len(size), int(size.max()), squares, 100 * ncp
