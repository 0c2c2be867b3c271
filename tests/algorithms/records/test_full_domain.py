from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymizer.algorithms.records.classes import SUPPRESSED
from anonymizer.algorithms.records.effort import Effort
from anonymizer.algorithms.records.full_domain import repeated_levels
from anonymizer.algorithms.records.local_search import best
from anonymizer.algorithms.records.problem import Cost, Problem, make_problem
from anonymizer.domain.arrays import Int32Array
from anonymizer.domain.promises import Promise
from anonymizer.domain.records import Records, Schema
from tests.algorithms.records import naive
from tests.algorithms.records.made import SCHEMA, categories, numbers, promises, records
from tests.algorithms.records.test_local_search import cost_of, order_of


def made(
    table: Records, promise: Promise, cost: Cost, *, work: int | None, schema: Schema = SCHEMA
) -> Int32Array:
    problem = make_problem(table, schema, promise, cost=cost).arrays
    effort, rng = Effort(lambda: True, None, work), np.random.default_rng(3)
    return repeated_levels(problem, len(schema.qis), k=promise.k, effort=effort, rng=rng)


@pytest.mark.compiled
@settings(max_examples=60)
@given(
    records(repeats=True), promises(), st.sampled_from(Cost), st.none() | st.integers(0, 2_000_000)
)
def test_every_class_keeps_the_promise_after_any_work(
    table: Records, promise: Promise, cost: Cost, work: int | None
) -> None:
    class_of = made(table, promise, cost, work=work)
    numbers = sorted(set(class_of.tolist()) - {SUPPRESSED})
    assert numbers == list(range(len(numbers)))
    for c in numbers:
        assert naive.keeps(table, SCHEMA, promise, np.flatnonzero(class_of == c).tolist())


def _naive(table: Records, k: int) -> set[frozenset[int]]:
    """Classes by the ages, pairs of ages or all, and the jobs, halves or all, of two columns."""
    group: list[Callable[[int], int]] = [lambda v: v, lambda v: v // 2, lambda _: -1]
    lost_by_age = [0.0, 1 / 3, 1.0]  # 0, 1, 2, 3: a pair spans one of three
    lost_by_job = [0.0, 2 / 4, 1.0]
    left, found = list(range(table.n)), set()
    order = sorted(
        product(range(3), range(3)), key=lambda at: lost_by_age[at[0]] + lost_by_job[at[1]]
    )
    for age, job in order:
        alike: dict[tuple[int, int], list[int]] = {}
        for i in left:
            key = group[age](int(table.qi[i, 0])), group[job](int(table.qi[i, 1]))
            alike.setdefault(key, []).append(i)
        for members in alike.values():
            if len(members) >= k:
                found.add(frozenset(members))
                left = [i for i in left if i not in members]
    return found


TWO = Schema(
    qis=(numbers("age", 0, 1, 2, 3), categories("job", "abcd", halves=True)),
    sensitive=(),
    sources=((0, 1),),
)


@settings(max_examples=100)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=30))
def test_classes_are_what_is_alike_at_the_cheapest_levels_among_those_left(
    rows: list[tuple[int, int]],
) -> None:
    n = len(rows)
    table = Records(np.array(rows, np.int32), np.zeros((n, 0), np.int32), np.arange(n, dtype="i"))
    for k in (2, 3):
        class_of = made(table, Promise(k=k, d=1), Cost.TAXONOMY, work=None, schema=TWO)
        found = {
            frozenset(np.flatnonzero(class_of == c).tolist())
            for c in set(class_of.tolist()) - {SUPPRESSED}
        }
        assert found == _naive(table, k)


def spread_table() -> Records:
    rng = np.random.default_rng(0)
    return Records(
        np.column_stack([rng.binomial(3, 0.4, 900), rng.integers(0, 4, 900)]).astype(np.int32),
        np.zeros((900, 0), np.int32),
        np.arange(900, dtype="i"),
    )


def lost(problem: Problem, class_of: Int32Array) -> float:
    return cost_of(problem, class_of) + float((class_of == SUPPRESSED).mean())


def test_more_orders_lose_less_and_equal_work_finds_equal_classes() -> None:
    rng, promise = np.random.default_rng(1), Promise(k=20, d=1)
    qis = tuple(numbers(name, *range(16)) for name in "abcd")
    schema = Schema(qis=qis, sensitive=(), sources=((0, 1, 2, 3),))
    cells = rng.binomial(15, [0.1, 0.3, 0.5, 0.8], (600, 4)).astype(np.int32)
    table = Records(cells, np.zeros((600, 0), np.int32), np.arange(600, dtype="i"))
    problem = make_problem(table, schema, promise, cost=Cost.TAXONOMY)
    one, many, again = (
        made(table, promise, Cost.TAXONOMY, work=work, schema=schema)
        for work in (None, 10**7, 10**7)
    )
    assert np.array_equal(many, again)
    assert lost(problem, many) < lost(problem, one)


def test_a_search_for_large_classes_loses_no_more_than_levels_alone() -> None:
    table, promise = spread_table(), Promise(k=60, d=1)
    problem = make_problem(table, TWO, promise, cost=Cost.TAXONOMY)
    leveled = made(table, promise, Cost.TAXONOMY, work=10**7, schema=TWO)
    found = best(problem, order_of(table, TWO), work=20_000_000, seed=1)
    assert cost_of(problem, found) <= lost(problem, leveled) + 1e-12
