"""Benchmarks of (k,d)-anonymity: the Hilbert sweep against plain Python, and the local search."""

import time
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from anonymizer.algorithms.records.hilbert import hilbert_order
from anonymizer.algorithms.records.local_search import best as search
from anonymizer.algorithms.records.measures import measure
from anonymizer.algorithms.records.problem import Cost, Problem, make_problem
from anonymizer.algorithms.records.sweep import sweep
from anonymizer.domain.arrays import Int32Array
from anonymizer.domain.promises import Promise
from anonymizer.domain.records import Records, Schema
from benchmarks.tables import Cell, Table
from benchmarks.timing import agree, best_of, best_us, runs_for
from experiments.multisource_tables import adult_like, census_like
from tests.algorithms.records.naive_classes import hilbert_order as plain_order
from tests.algorithms.records.naive_classes import sweep_by_sets

MAKERS: dict[str, Callable[..., tuple[Records, Schema]]] = {
    "adult": partial(adult_like, markers_are_values=True),
    "census": census_like,
}
PAPER_MS = {("adult", 32_561): 300.0, ("census", 2_458_285): 61_900.0}
"""Times stated in the paper for tables of these sizes."""

_K, _D = 20, 2
_SEED = 1
_PEER_RECORDS = 32_561
_WARM_CALLS = 50


def records(cases: Sequence[tuple[str, int]]) -> list[Table]:
    """Time the Hilbert order and the sweep on generated tables of these sizes."""
    columns = (
        "table",
        "records",
        "classes",
        "order, ms",
        "sweep, ms",
        "µs/record",
        "plain",
        "plain/ours",
        "paper, ms",
        "paper/ours",
    )
    notes = (
        f"generated tables in the paper's shapes, six quasi-identifiers, k = {_K}, d = {_D}.",
        "one thread; without reading the table and stating the problem.",
        f"plain: the package hilbertcurve, lists and sets, on at most {_PEER_RECORDS:,} records.",
        "paper: as stated in the paper for Adult and the Census of 1990, on another machine.",
    )
    return [Table("(k,d)-anonymity along the curve", columns, [_row(*c) for c in cases], notes)]


def _row(name: str, n: int) -> tuple[Cell, ...]:
    table, schema = MAKERS[name](n, seed=_SEED)
    sizes = [a.size for a in schema.qis]
    problem = _problem(table, schema)
    order = hilbert_order(table.qi, sizes)
    runs = [problem] * (runs_for(n) + 1)
    order_ms = best_of(lambda p: hilbert_order(p.cells[:, : p.n_qis], sizes), runs) * 1e3
    sweep_ms = best_of(lambda p: sweep(p, order), runs) * 1e3

    few = table.only(np.arange(min(n, _PEER_RECORDS)))
    rows = few.qi.tolist()
    agree(_ours(few, schema).tolist(), _plain(rows, sizes))
    plain = best_us(lambda r: _plain(r, sizes), rows, n_records=few.n, runs=1)
    paper = PAPER_MS.get((name, n))
    us = (order_ms + sweep_ms) * 1e3 / n
    stated: tuple[Cell, Cell] = ("", "") if paper is None else (paper, paper * 1e3 / n / us)
    n_classes = int(sweep(problem, order).max()) + 1
    return name, n, n_classes, order_ms, sweep_ms, us, plain, plain / us, *stated


def best(cases: Sequence[tuple[str, int, float]]) -> list[Table]:
    """Run the search on generated tables for some seconds, and compare it with the sweep."""
    columns = (
        "table",
        "records",
        "sweep, s",
        "sweep, GCP %",
        "search, s",
        "best, GCP %",
        "best/sweep",
        "half the gain, s",
        "nine tenths, s",
    )
    notes = (
        f"tables and promise as in `records`: k = {_K}, d = {_D}; GCP: information loss by ranges.",
        "CPU time on one thread, without reading the table and stating the problem.",
        "half the gain, nine tenths: time until the loss had fallen by this share of its fall.",
    )
    rows = [_searched(*case) for case in cases]
    return [Table("Best: information loss after a time", columns, rows, notes)]


def _searched(name: str, n: int, budget_s: float) -> tuple[Cell, ...]:
    table, schema = MAKERS[name](n, seed=_SEED)
    problem = _problem(table, schema)
    asked = iter([True] * _WARM_CALLS)
    order = hilbert_order(table.qi, [a.size for a in schema.qis])
    search(problem, order, keep_going=lambda: next(asked, False), seed=_SEED)

    began_s = time.process_time()
    order = hilbert_order(table.qi, [a.size for a in schema.qis])
    swept = sweep(problem, order)
    sweep_s = time.process_time() - began_s
    losses: list[tuple[float, float]] = []
    began_s = time.process_time()

    def used_s() -> float:
        return time.process_time() - began_s

    found = search(
        problem,
        order,
        keep_going=lambda: used_s() < budget_s,
        seed=_SEED,
        progress=lambda loss: losses.append((used_s(), loss)),
    )
    search_s = used_s()
    first, last = (measure(table, schema, of).gcp[Cost.RANGE] for of in (swept, found))

    def reached_s(share: float) -> float:
        bar = first - share * (first - last)
        return next((at for at, loss in losses if loss <= bar), search_s)

    lost = (sweep_s, 100 * first, search_s, 100 * last, last / first)
    return name, n, *lost, reached_s(0.5), reached_s(0.9)


def _problem(table: Records, schema: Schema) -> Problem:
    return make_problem(table, schema, Promise(k=_K, d=_D))


def _ours(table: Records, schema: Schema) -> Int32Array:
    order = hilbert_order(table.qi, [a.size for a in schema.qis])
    return sweep(_problem(table, schema), order)


def _plain(rows: Sequence[Sequence[int]], sizes: Sequence[int]) -> list[int]:
    return sweep_by_sets(rows, plain_order(rows, sizes), _K, [_D] * len(sizes))
