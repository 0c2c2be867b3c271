import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.records.hilbert import hilbert_order
from anonymizer.algorithms.records.neighbors import N_NEAR, NONE, Neighbors, neighbors_of
from anonymizer.algorithms.records.problem import Cost, make_problem
from anonymizer.algorithms.records.tally import blank_tally
from anonymizer.domain.promises import Promise
from anonymizer.domain.records import Attribute, Records, Schema
from tests.algorithms.records import naive
from tests.algorithms.records.made import SCHEMA, records

COSTS = st.sampled_from(Cost)


def found(table: Records, cost: Cost, schema: Schema = SCHEMA) -> tuple[Records, Neighbors]:
    """The table along the Hilbert curve, and its neighbours."""
    table = table.only(hilbert_order(table.qi, [a.size for a in schema.qis]))
    tally = blank_tally(make_problem(table, schema, Promise(k=2), cost=cost))
    return table, neighbors_of(tally.problem, len(schema.qis))


@pytest.mark.compiled
@given(records(), COSTS)
def test_the_neighbors_of_a_small_table_are_all_other_tuples_the_nearest_first(
    table: Records, cost: Cost
) -> None:
    table, (tuple_of, first, near) = found(table, cost)
    n_tuples = len({tuple(row) for row in table.qi.tolist()})
    if n_tuples > N_NEAR:
        return
    assert len(near) == len(first) - 1 == n_tuples
    for i, t in enumerate(tuple_of.tolist()):
        assert first[t] <= i < first[t + 1]
        assert (table.qi[i] == table.qi[first[t]]).all()
    for t, each in enumerate(near.tolist()):
        assert sorted(each) == [u for u in range(n_tuples) if u != t]
        away = [naive.loss(table, SCHEMA, cost, [first[t], first[u]]) for u in each]
        assert away == pytest.approx(sorted(away), abs=1e-6)


@pytest.mark.compiled
def test_most_of_the_truly_nearest_are_found_in_a_large_table() -> None:
    rng = np.random.default_rng(2)
    schema = Schema(
        qis=tuple(Attribute(name, np.arange(60.0 if name == "a" else 6.0)) for name in "abcdef"),
        sensitive=(),
        sources=((0,),),
    )
    common = rng.integers(0, 6, 3000)
    columns = [np.clip(common * 9 + rng.integers(0, 9, 3000), 0, 59)]
    columns += [np.where(rng.random(3000) < 0.5, common, rng.integers(0, 6, 3000)) for _ in "bcdef"]
    qi = np.column_stack(columns).astype(np.int32)
    table = Records(qi, np.zeros((3000, 0), np.int32), np.arange(3000, dtype=np.int32))
    table, (_, first, near) = found(table, Cost.RANGE, schema)
    tuples = table.qi[first[:-1]] / np.array([59, 5, 5, 5, 5, 5])
    shares = []
    for t in range(0, len(tuples), 100):
        away = np.abs(tuples - tuples[t]).sum(axis=1)
        away[t] = np.inf
        assert t not in near[t]
        limit = np.sort(away)[N_NEAR - 1] + 1e-6
        shares.append((away[near[t]] <= limit).mean())
    assert np.mean(shares) > 0.9


def test_without_time_the_lists_are_empty_and_of_full_length() -> None:
    table = Records(
        np.array([[0, 0, 0], [1, 0, 0], [1, 0, 0]], np.int32),
        np.zeros((3, 1), np.int32),
        np.arange(3, dtype=np.int32),
    )
    tally = blank_tally(make_problem(table, SCHEMA, Promise(k=2)))
    tuple_of, first, near = neighbors_of(tally.problem, 3, keep_going=lambda: False)
    assert tuple_of.tolist() == [0, 1, 1]
    assert first.tolist() == [0, 1, 3]
    assert near.tolist() == [[NONE], [NONE]]
