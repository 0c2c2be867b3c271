"""The least loss is a bound: no class of a small table is charged more than it loses."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymizer.algorithms.records.problem import Cost, make_problem
from anonymizer.domain.promises import Promise
from anonymizer.domain.records import Records, Schema
from benchmarks.known_tables import table_of
from benchmarks.least_loss import PASSES, charges
from tests.algorithms.records import naive
from tests.algorithms.records.made import SCHEMA, categories

_SCHEMA = Schema(
    qis=(categories("work", "abcd", halves=True), categories("home", "xyz", halves=True)),
    sensitive=(),
    sources=((0,), (1,)),
)
_ALMOST = 1e-9


def _table(rows: list[tuple[int, int]]) -> Records:
    n = len(rows)
    qi = np.array(rows, np.int32)
    return Records(qi, np.zeros((n, 0), np.int32), np.arange(n, dtype=np.int32))


@settings(max_examples=10, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), min_size=3, max_size=7),
    st.integers(2, 3),
)
def test_no_class_is_charged_more_than_it_loses(rows: list[tuple[int, int]], k: int) -> None:
    table = _table(rows)
    problem = make_problem(table, _SCHEMA, Promise(k=k, d=1), cost=Cost.TAXONOMY)
    charged = charges(problem, passes=20)
    for size in range(k, len(rows) + 1):
        for members in map(list, combinations(range(len(rows)), size)):
            lost = size * naive.loss(table, _SCHEMA, Cost.TAXONOMY, members)
            assert charged[members].sum() <= lost + _ALMOST


@pytest.mark.compiled
def test_it_is_the_loss_of_the_best_release_where_classes_have_nothing_in_common() -> None:
    table = _table([(0, 0), (1, 0), (2, 2), (3, 2)])
    problem = make_problem(table, _SCHEMA, Promise(k=2, d=1), cost=Cost.TAXONOMY)
    assert charges(problem, passes=200).sum() == pytest.approx(4 * 0.5, rel=0.01)


def test_a_table_without_hierarchies_is_refused() -> None:
    table = Records(
        np.zeros((3, 3), np.int32), np.zeros((3, 1), np.int32), np.arange(3, dtype=np.int32)
    )
    problem = make_problem(table, SCHEMA, Promise(k=2, d=1), cost=Cost.TAXONOMY)
    with pytest.raises(ValueError, match="has no hierarchy"):
        charges(problem, passes=1)


@pytest.mark.soak
@pytest.mark.data
@pytest.mark.timeout(3600)
def test_the_bar_of_arx_at_10_cannot_be_reached() -> None:
    records, schema = table_of("arx")
    problem = make_problem(records, schema, Promise(k=10, d=1), cost=Cost.TAXONOMY)
    assert charges(problem, passes=PASSES).sum() / records.qi.size > 0.07
