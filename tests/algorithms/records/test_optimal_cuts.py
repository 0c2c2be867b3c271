from collections import Counter
from functools import cache
from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.records.optimal_cuts import split
from anonymizer.algorithms.records.problem import Cost, make_problem
from anonymizer.algorithms.records.sweep import sweep
from anonymizer.algorithms.records.tally import blank_tally
from anonymizer.domain.arrays import Int32Array
from anonymizer.domain.promises import Promise
from anonymizer.domain.records import Records
from tests.algorithms.records import naive
from tests.algorithms.records.made import SCHEMA, counts_alone, promises, records

TABLES = st.booleans().flatmap(lambda repeats: records(max_n=14, repeats=repeats))


def cut(table: Records, promise: Promise, cost: Cost, crowding: float) -> Int32Array | None:
    """Cut the table as it lies."""
    problem = make_problem(table, SCHEMA, promise, cost=cost)
    first = sweep(problem, np.arange(table.n))
    return split(first, blank_tally(problem, crowding), keep_going=lambda: True)


def cheapest(table: Records, promise: Promise, cost: Cost, crowding: float) -> float:
    """Try all runs that are at most twice as long as the shortest one that ends where they do."""

    @cache
    def before(end: int) -> float:
        least, limit = (0.0, 0) if end == 0 else (inf, 0)
        for start in range(end - 1, -1, -1):
            member = range(start, end)
            if start < limit or before(start) == inf:
                continue
            if naive.keeps(table, SCHEMA, promise, member):
                if least == inf:
                    limit = 2 * start - end
                lost = len(member) * naive.loss(table, SCHEMA, cost, member)
                least = min(least, before(start) + lost + crowding * len(member) ** 2)
        return least

    return before(table.n)


@given(
    TABLES,
    promises() | counts_alone(),
    st.sampled_from(Cost),
    st.sampled_from([0.0, 0.1, 1.0]),
)
def test_no_cut_of_runs_costs_less_and_every_run_keeps_the_promise(
    table: Records, promise: Promise, cost: Cost, crowding: float
) -> None:
    class_of = cut(table, promise, cost, crowding)
    if class_of is None:
        return
    size = Counter(class_of.tolist())
    runs = [np.flatnonzero(class_of == c).tolist() for c in range(len(size))]
    assert all(naive.keeps(table, SCHEMA, promise, run) for run in runs)
    assert all(run == list(range(run[0], run[-1] + 1)) for run in runs)
    total = sum(len(r) * naive.loss(table, SCHEMA, cost, r) + crowding * len(r) ** 2 for r in runs)
    if promise.k > 1:  # with classes of one, more than four of them are not reached back over
        assert total == pytest.approx(cheapest(table, promise, cost, crowding))


@given(records(max_n=14), counts_alone())
def test_a_table_that_can_be_swept_by_counts_can_be_cut(table: Records, promise: Promise) -> None:
    swept = sweep(make_problem(table, SCHEMA, promise), np.arange(table.n))
    assert (cut(table, promise, Cost.RANGE, 0.0) is None) == bool((swept < 0).any())


def test_without_time_nothing_is_cut() -> None:
    table = Records(
        np.array([[0, 0, 0], [1, 1, 1]], np.int32),
        np.zeros((2, 1), np.int32),
        np.arange(2, dtype=np.int32),
    )
    problem = make_problem(table, SCHEMA, Promise(k=1))
    first = sweep(problem, np.arange(2))
    assert split(first, blank_tally(problem), keep_going=lambda: False) is None


def test_long_classes_are_cut_in_fewer_places_and_still_keep_the_promise() -> None:
    rng = np.random.default_rng(0)
    n = 3000
    qi = np.column_stack([rng.integers(0, a.size, n) for a in SCHEMA.qis]).astype(np.int32)
    table = Records(qi, np.zeros((n, 1), np.int32), np.arange(n, dtype=np.int32))
    class_of = cut(table, Promise(k=700), Cost.RANGE, 0.001)
    assert class_of is not None
    assert np.bincount(class_of).min() >= 700
    assert len(np.unique(class_of)) >= 3
