"""Boxes against the plain recursion, and on tables that are larger than a sample."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.cells.tree import leaves
from anonymizer.algorithms.records.best_borders import SAMPLED
from anonymizer.algorithms.records.boxes import boxes, first_cuts
from anonymizer.algorithms.records.classes import SUPPRESSED, classes_of
from anonymizer.algorithms.records.criteria import class_keeps
from anonymizer.algorithms.records.problem import Cost, make_problem
from anonymizer.domain.promises import Promise
from anonymizer.domain.records import Records, Schema
from tests.algorithms.records import naive_classes
from tests.algorithms.records.made import (
    SCHEMA,
    categories,
    counts_alone,
    numbers,
    promises,
    records,
)

TABLES = st.booleans().flatmap(lambda repeats: records(repeats=repeats))
PROMISES = promises() | counts_alone()


@pytest.mark.parametrize("cost", list(Cost))
@given(table=TABLES, promise=PROMISES)
def test_the_table_is_cut_as_the_plain_recursion_cuts_it(
    cost: Cost, table: Records, promise: Promise
) -> None:
    order = np.random.default_rng(table.n).permutation(table.n)
    class_of, _ = boxes(make_problem(table, SCHEMA, promise, cost=cost), order)
    expected = naive_classes.boxes(table, SCHEMA, promise, cost, order.tolist())
    assert class_of.tolist() == expected


@given(TABLES, PROMISES)
def test_the_tree_of_the_cuts_leads_every_record_to_its_class(
    table: Records, promise: Promise
) -> None:
    problem = make_problem(table, SCHEMA, promise)
    class_of, _ = boxes(problem, np.arange(table.n))
    if (class_of != SUPPRESSED).all():
        leaf = leaves(table.qi.astype(np.float32), first_cuts(problem))
        assert len(set(zip(leaf, class_of, strict=True))) == len(set(leaf)) == class_of.max() + 1


@given(TABLES, PROMISES)
def test_classes_lie_side_by_side_and_equal_tuples_share_one(
    table: Records, promise: Promise
) -> None:
    order = np.random.default_rng(table.n).permutation(table.n)
    class_of, by_class = boxes(make_problem(table, SCHEMA, promise), order)
    assert sorted(by_class.tolist()) == list(range(table.n))
    assert (np.diff(class_of[by_class]) >= 0).all()
    turn = np.argsort(order)
    for c in set(class_of.tolist()):
        member = np.flatnonzero(class_of == c)
        place = np.flatnonzero(np.isin(by_class, member))
        assert (np.diff(turn[by_class[place]]) > 0).all()
    of_tuple = dict(zip(map(tuple, table.qi.tolist()), class_of.tolist(), strict=True))
    assert all(
        of_tuple[tuple(row)] == c for row, c in zip(table.qi.tolist(), class_of, strict=True)
    )


WIDE = Schema(
    (*(numbers(name, *range(60)) for name in "abc"), categories("home", "xyz")),
    SCHEMA.sensitive,
    ((0, 1, 2, 3),),
)


def large(n: int) -> Records:
    rng = np.random.default_rng(n)
    qi = np.column_stack([rng.integers(0, qi.size, n) for qi in WIDE.qis]).astype(np.int32)
    sensitive = rng.integers(0, 3, (n, 1)).astype(np.int32)
    return Records(qi, sensitive, np.arange(n, dtype=np.int32))


def test_classes_chosen_by_a_sample_keep_the_promise_of_all() -> None:
    problem = make_problem(large(20 * SAMPLED), WIDE, Promise(k=7, d=2, l=2, max_share=0.9))
    class_of, _ = boxes(problem, np.arange(problem.n))
    classes = classes_of(class_of)
    assert len(classes) > SAMPLED
    assert all(class_keeps(problem.arrays, problem.k, classes[c]) for c in range(len(classes)))
    assert sorted(np.unique(class_of).tolist()) == list(range(len(classes)))


def test_boxes_that_are_stopped_are_coarser() -> None:
    problem = make_problem(large(300), WIDE, Promise(k=2))
    whole, _ = boxes(problem, np.arange(300), keep_going=lambda: False)
    assert set(whole.tolist()) == {0}
    class_of, _ = boxes(problem, np.arange(300))
    assert class_of.max() > 10


def test_a_table_that_is_no_class_has_none() -> None:
    none = Records(np.zeros((0, 3), np.int32), np.zeros((0, 1), np.int32), np.zeros(0, np.int32))
    assert boxes(make_problem(none, SCHEMA, Promise(k=1)), np.arange(0))[0].tolist() == []
    class_of, _ = boxes(make_problem(large(5), WIDE, Promise(k=6)), np.arange(5))
    assert class_of.tolist() == [SUPPRESSED] * 5
