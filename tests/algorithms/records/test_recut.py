"""What recuts know before they cut, against what the cuts find."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.records.criteria import column_loss
from anonymizer.algorithms.records.neighbors import apart
from anonymizer.algorithms.records.problem import Cost, make_problem
from anonymizer.algorithms.records.recut import cheapest_cut, codes_of, distances, may_be_cut
from anonymizer.algorithms.records.tally import Tally, blank_tally, loss_of
from anonymizer.domain.promises import Promise
from anonymizer.domain.records import Attribute, Records, Schema
from tests.algorithms.records.made import SCHEMA, counts_alone, promises, records

COSTS = st.sampled_from(Cost)
QIS = len(SCHEMA.qis)


def tallied(table: Records, promise: Promise, cost: Cost, crowding: float = 0.0) -> Tally:
    return blank_tally(make_problem(table, SCHEMA, promise, cost=cost), crowding)


@pytest.mark.compiled
@given(
    records(),
    promises() | counts_alone(),
    COSTS,
    st.sampled_from([0.0, 0.1]),
    st.sampled_from([0.5, 2.0, 8.0, np.inf]),
)
def test_no_cut_is_refused_that_would_have_been_made(
    table: Records, promise: Promise, cost: Cost, crowding: float, bound: float
) -> None:
    tally = tallied(table, promise, cost, crowding)
    pool = np.arange(table.n)
    cut, _ = cheapest_cut(pool, bound, np.empty(table.n + 1), tally)
    assert cut < 0 or may_be_cut(codes_of(pool, tally), bound, tally)


@pytest.mark.compiled
@given(records(), COSTS)
def test_nearly_all_cuts_that_are_too_dear_are_refused(table: Records, cost: Cost) -> None:
    tally = tallied(table, Promise(k=2, d=1), cost)
    pool, room = np.arange(table.n), np.empty(table.n + 1)
    cut, least = cheapest_cut(pool, np.inf, room, tally)
    if cut >= 0:
        assert not may_be_cut(codes_of(pool, tally), least - 1e-6, tally)


@pytest.mark.compiled
@given(records(), COSTS)
def test_the_distances_to_a_pole_are_what_two_records_lose(table: Records, cost: Cost) -> None:
    tally = tallied(table, Promise(k=2), cost)
    off = np.empty(table.n)
    distances(0, codes_of(np.arange(table.n), tally), off, tally)
    expected = [apart(0, i, np.inf, tally.problem, QIS) for i in range(table.n)]
    assert off == pytest.approx(expected)


@pytest.mark.parametrize("cost", Cost)
def test_a_loss_is_the_same_from_the_table_as_without(cost: Cost) -> None:
    wide = Attribute("wide", np.arange(200.0) ** 2)
    schema = Schema((*SCHEMA.qis, wide), (), ())
    qi = np.zeros((2, len(schema.qis)), np.int32)
    table = Records(qi, np.zeros((2, 0), np.int32), np.arange(2, dtype=np.int32))
    tally = blank_tally(make_problem(table, schema, Promise(k=2), cost=cost))
    assert tally.column["table"][-1] == -1
    for c, attribute in enumerate(schema.qis):
        for lo in range(attribute.size):
            for hi in range(lo, attribute.size):
                plain = column_loss(tally.problem.rule[c], 2, lo, hi, tally.problem.codes)
                assert loss_of(c, 2, lo, hi, tally) == plain
