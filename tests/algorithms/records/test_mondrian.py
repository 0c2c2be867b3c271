import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.records.classes import SUPPRESSED
from anonymizer.algorithms.records.mondrian import mondrian
from anonymizer.algorithms.records.problem import make_problem
from anonymizer.domain.promises import Promise
from anonymizer.domain.records import Records, Schema
from tests.algorithms.records import naive, naive_classes
from tests.algorithms.records.made import SCHEMA, categories, counts_alone, promises, records

TABLES = st.booleans().flatmap(lambda repeats: records(repeats=repeats))
PROMISES = promises() | counts_alone()


@given(TABLES, PROMISES)
def test_the_table_is_cut_as_the_plain_recursion_cuts_it(table: Records, promise: Promise) -> None:
    found = mondrian(make_problem(table, SCHEMA, promise)).tolist()
    assert found == naive_classes.mondrian(table, SCHEMA, promise)


@given(TABLES, PROMISES)
def test_every_class_keeps_the_promise_and_all_or_none_are_published(
    table: Records, promise: Promise
) -> None:
    class_of = mondrian(make_problem(table, SCHEMA, promise)).tolist()
    if SUPPRESSED in class_of:
        assert set(class_of) == {SUPPRESSED}
        assert not naive.keeps(table, SCHEMA, promise, range(table.n))
        return
    for c in set(class_of):
        member = [i for i, of in enumerate(class_of) if of == c]
        assert naive.keeps(table, SCHEMA, promise, member)


def test_a_value_that_most_have_does_not_hinder_a_cut() -> None:
    schema = Schema((categories("home", "xy"),), (), ((0,),))
    qi = np.array([[0], [1], [1], [1], [0], [1]], np.int32)
    table = Records(qi, np.zeros((6, 0), np.int32), np.arange(6, dtype=np.int32))
    assert mondrian(make_problem(table, schema, Promise(k=2))).tolist() == [0, 1, 1, 1, 0, 1]


def test_an_empty_table_has_no_class() -> None:
    none = Records(np.zeros((0, 3), np.int32), np.zeros((0, 1), np.int32), np.zeros(0, np.int32))
    assert mondrian(make_problem(none, SCHEMA, Promise(k=1))).tolist() == []
