"""The outlook of a search: what is said of twice the work is near what it saves."""

from dataclasses import replace
from functools import partial

import pytest

from anonymizer.algorithms.records.classes import classes_of
from anonymizer.algorithms.records.criteria import loss
from anonymizer.algorithms.records.hilbert import hilbert_order
from anonymizer.algorithms.records.local_search import best
from anonymizer.algorithms.records.outlook import saved_by_twice_the_work
from anonymizer.algorithms.records.problem import Problem, make_problem
from anonymizer.domain.arrays import Int32Array, IntArray
from anonymizer.domain.promises import Promise
from anonymizer.domain.records import Records
from tests.algorithms.records.test_boxes import WIDE, large
from tests.lanes import some

SIZES = [qi.size for qi in WIDE.qis]


def lost(problem: Problem, class_of: Int32Array) -> float:
    classes = classes_of(class_of)
    return sum(len(classes[c]) * loss(problem, classes[c]) for c in range(len(classes)))


def part_of(table: Records, rows: IntArray) -> Problem:
    return make_problem(table.only(rows), WIDE, Promise(k=8), table=table)


@pytest.mark.compiled
@pytest.mark.parametrize("work", some([15_000_000, 60_000_000], [15_000_000]))
def test_what_is_said_of_twice_the_work_is_near_what_it_saves(work: int) -> None:
    table = large(12_000)
    problem, order = make_problem(table, WIDE, Promise(k=8)), hilbert_order(table.qi, SIZES)

    def said_of() -> float | None:
        bare = replace(problem, cells=table.qi)
        parts = partial(part_of, table)
        return saved_by_twice_the_work(bare, parts, work=work, seed=1)

    class_of = best(problem, order, work=work, seed=1)
    more = best(problem, order, work=2 * work, seed=1)
    saved = 1 - lost(problem, more) / lost(problem, class_of)
    said = said_of()
    assert said is not None
    assert said == said_of()
    assert said == pytest.approx(saved, abs=0.05)


def test_nothing_is_said_of_few_records_or_of_persons_with_several() -> None:
    table = large(9_999)
    few = make_problem(table, WIDE, Promise(k=8))
    assert saved_by_twice_the_work(few, partial(part_of, table), work=1, seed=0) is None
    table = large(12_000)
    shared = make_problem(replace(table, person=table.person // 2), WIDE, Promise(k=8))
    assert saved_by_twice_the_work(shared, partial(part_of, table), work=1, seed=0) is None
