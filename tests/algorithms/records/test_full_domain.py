from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymizer.algorithms.records.classes import SUPPRESSED
from anonymizer.algorithms.records.full_domain import levels_of, repeated_levels
from anonymizer.algorithms.records.local_search import best
from anonymizer.algorithms.records.problem import Cost, make_problem
from anonymizer.domain.arrays import Int32Array
from anonymizer.domain.promises import Promise
from anonymizer.domain.records import Records, Schema
from tests.algorithms.records import naive
from tests.algorithms.records.made import SCHEMA, categories, numbers, promises, records
from tests.algorithms.records.test_local_search import cost_of, order_of

ALL = 10_000


def made(
    table: Records, promise: Promise, cost: Cost, *, most: int = ALL, schema: Schema = SCHEMA
) -> Int32Array:
    problem = make_problem(table, schema, promise, cost=cost).arrays
    levels = levels_of(problem, len(schema.qis))
    rng = np.random.default_rng(3)
    return repeated_levels(problem, levels, k=promise.k, most=most, rng=rng)


@pytest.mark.compiled
@settings(max_examples=60)
@given(records(repeats=True), promises(), st.sampled_from(Cost), st.integers(1, 300))
def test_every_class_keeps_the_promise_from_however_many_combinations(
    table: Records, promise: Promise, cost: Cost, most: int
) -> None:
    class_of = made(table, promise, cost, most=most)
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
        class_of = made(table, Promise(k=k, d=1), Cost.TAXONOMY, schema=TWO)
        found = {
            frozenset(np.flatnonzero(class_of == c).tolist())
            for c in set(class_of.tolist()) - {SUPPRESSED}
        }
        expected = _naive(table, k)
        rest = set(range(n)).difference(*expected)
        if rest and expected:  # the class formed last takes them
            assert len(found - expected) == 1
            [last] = found - expected
            assert last - rest in expected
            assert rest < last
        else:
            assert found == expected


def test_a_search_for_large_classes_loses_no_more_than_levels_alone() -> None:
    rng = np.random.default_rng(0)
    table = Records(
        np.column_stack([rng.binomial(3, 0.4, 900), rng.integers(0, 4, 900)]).astype(np.int32),
        np.zeros((900, 0), np.int32),
        np.arange(900, dtype="i"),
    )
    promise = Promise(k=60, d=1)
    problem = make_problem(table, TWO, promise, cost=Cost.TAXONOMY)
    leveled = made(table, promise, Cost.TAXONOMY, schema=TWO)
    found = best(problem, order_of(table, TWO), work=20_000_000, seed=1)
    assert cost_of(problem, found) <= cost_of(problem, leveled) + 1e-12
