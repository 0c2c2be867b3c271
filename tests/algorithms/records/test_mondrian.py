import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.records.mondrian import mondrian
from anonymizer.algorithms.records.problem import make_problem
from anonymizer.domain.promises import Promise
from anonymizer.domain.records import Records, Schema
from tests.algorithms.records import naive_classes
from tests.algorithms.records.made import SCHEMA, categories, counts_alone, promises, records

TABLES = st.booleans().flatmap(lambda repeats: records(repeats=repeats))
PROMISES = promises() | counts_alone()


@given(TABLES, PROMISES)
def test_the_table_is_cut_as_the_plain_recursion_cuts_it(table: Records, promise: Promise) -> None:
    found = mondrian(make_problem(table, SCHEMA, promise)).tolist()
    assert found == naive_classes.mondrian(table, SCHEMA, promise)


def test_a_value_that_most_have_does_not_hinder_a_cut() -> None:
    schema = Schema((categories("home", "xy"),), (), ((0,),))
    qi = np.array([[0], [1], [1], [1], [0], [1]], np.int32)
    table = Records(qi, np.zeros((6, 0), np.int32), np.arange(6, dtype=np.int32))
    assert mondrian(make_problem(table, schema, Promise(k=2))).tolist() == [0, 1, 1, 1, 0, 1]


def test_an_empty_table_has_no_class() -> None:
    none = Records(np.zeros((0, 3), np.int32), np.zeros((0, 1), np.int32), np.zeros(0, np.int32))
    assert mondrian(make_problem(none, SCHEMA, Promise(k=1))).tolist() == []
