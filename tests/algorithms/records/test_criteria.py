import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.records.criteria import above_their_bound, class_keeps, loss
from anonymizer.algorithms.records.problem import Cost, Problem, make_problem
from anonymizer.domain.arrays import IntArray
from anonymizer.domain.promises import Promise
from anonymizer.domain.records import Records
from tests.algorithms.records import naive
from tests.algorithms.records.made import SCHEMA, promises, records


def keeps(problem: Problem, member: IntArray) -> bool:
    return class_keeps(problem.arrays, problem.k, member)


@given(st.booleans().flatmap(lambda r: records(repeats=r)), promises(), st.data())
def test_a_class_keeps_its_promise_exactly_when_the_plain_words_say_so(
    table: Records, promise: Promise, data: st.DataObject
) -> None:
    member = data.draw(st.sets(st.integers(0, table.n - 1), min_size=1))
    problem = make_problem(table, SCHEMA, promise)
    assert keeps(problem, np.array(sorted(member))) == naive.keeps(
        table, SCHEMA, promise, sorted(member)
    )


@pytest.mark.parametrize("cost", list(Cost))
@given(table=records(), data=st.data())
def test_a_class_costs_what_the_definition_says(
    cost: Cost, table: Records, data: st.DataObject
) -> None:
    member = data.draw(st.sets(st.integers(0, table.n - 1), min_size=1))
    problem = make_problem(table, SCHEMA, Promise(k=1), cost=cost)
    expected = naive.loss(table, SCHEMA, cost, sorted(member))
    assert loss(problem, np.array(sorted(member))) == pytest.approx(expected)


def test_the_missing_marker_is_no_value_and_a_persons_second_record_no_second_person() -> None:
    table = Records(
        qi=np.array([[0, 5, 0], [1, 0, 1], [1, 0, 1]], np.int32),
        sensitive=np.array([[0], [1], [2]], np.int32),
        person=np.array([0, 1, 1], np.int32),
    )
    everyone = np.arange(3)
    assert keeps(make_problem(table, SCHEMA, Promise(k=2)), everyone)
    assert not keeps(make_problem(table, SCHEMA, Promise(k=3)), everyone)
    assert not keeps(make_problem(table, SCHEMA, Promise(k=1, d=2)), everyone)


def test_a_column_with_a_value_too_frequent_for_the_bound_is_named_with_both_shares() -> None:
    table = Records(
        qi=np.array([[0, 0, 0], [0, 1, 1], [0, 2, 2], [1, 3, 3]], np.int32),
        sensitive=np.zeros((4, 1), np.int32),
        person=np.arange(4, dtype=np.int32),
    )

    def named(share: float) -> list[str]:
        return above_their_bound(make_problem(table, SCHEMA, Promise(k=2, max_share=share)), SCHEMA)

    assert named(1.0) == []
    assert named(0.7) == ["age: one value has 75.0% of the table, 70.0% of a class at most"]
    assert named(0.8) == []
