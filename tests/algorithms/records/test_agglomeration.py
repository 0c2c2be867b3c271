import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.records.agglomeration import agglomerate, merger_cost
from anonymizer.algorithms.records.classes import SUPPRESSED
from anonymizer.algorithms.records.hilbert import hilbert_order
from anonymizer.algorithms.records.neighbors import neighbors_of
from anonymizer.algorithms.records.partition import partition_of
from anonymizer.algorithms.records.problem import Cost, make_problem
from anonymizer.algorithms.records.tally import Tally, blank_tally
from anonymizer.domain.arrays import Int32Array
from anonymizer.domain.promises import Promise
from anonymizer.domain.records import Records
from tests.algorithms.records import naive
from tests.algorithms.records.made import SCHEMA, counts_alone, promises, records

COSTS = st.sampled_from(Cost)


def posed(
    table: Records, promise: Promise, cost: Cost, crowding: float = 0.0
) -> tuple[Records, Tally]:
    """The table along the Hilbert curve, and its problem."""
    table = table.only(hilbert_order(table.qi, [a.size for a in SCHEMA.qis]))
    return table, blank_tally(make_problem(table, SCHEMA, promise, cost=cost), crowding)


def merged(tally: Tally) -> Int32Array:
    class_of = agglomerate(
        tally, neighbors_of(tally.problem, len(SCHEMA.qis)), keep_going=lambda: True
    )
    assert class_of is not None
    return class_of


@pytest.mark.compiled
@given(
    st.booleans().flatmap(lambda repeats: records(repeats=repeats)),
    promises() | counts_alone(),
    COSTS,
)
def test_every_class_keeps_the_promise(table: Records, promise: Promise, cost: Cost) -> None:
    table, tally = posed(table, promise, cost)
    class_of = merged(tally)
    numbers = sorted(set(class_of.tolist()) - {SUPPRESSED})
    assert numbers == list(range(len(numbers)))
    for c in numbers:
        assert naive.keeps(table, SCHEMA, promise, np.flatnonzero(class_of == c).tolist())


@given(records(), st.integers(1, 4), COSTS)
def test_with_k_alone_a_table_of_few_tuples_is_published_whole(
    table: Records, k: int, cost: Cost
) -> None:
    table, tally = posed(table, Promise(k=k), cost)
    # A class has a value of each quasi-identifier.
    has_values = all(
        (codes != a.missing).any() for codes, a in zip(table.qi.T, SCHEMA.qis, strict=True)
    )
    if table.n >= k and has_values:
        assert (merged(tally) != SUPPRESSED).all()


@pytest.mark.compiled
@given(records(), COSTS, st.sampled_from([0.0, 0.3]), st.data())
def test_a_merger_costs_what_the_union_loses_more(
    table: Records, cost: Cost, crowding: float, data: st.DataObject
) -> None:
    table, tally = posed(table, Promise(k=1), cost, crowding)
    in_b = data.draw(st.lists(st.booleans(), min_size=table.n, max_size=table.n))
    if len(set(in_b)) < 2:
        return
    partition = partition_of(np.array(in_b).astype(np.int32), tally)

    def paid(member: list[int]) -> float:
        lost = len(member) * naive.loss(table, SCHEMA, cost, member)
        return lost + crowding * len(member) ** 2

    one = [i for i in range(table.n) if not in_b[i]]
    other = [i for i in range(table.n) if in_b[i]]
    more = paid(one + other) - paid(one) - paid(other)
    assert merger_cost(0, 1, np.inf, tally, partition) == pytest.approx(more, abs=1e-9)


def test_without_time_there_is_no_agglomeration() -> None:
    table = Records(
        np.array([[0, 0, 0], [1, 0, 0]], np.int32),
        np.zeros((2, 1), np.int32),
        np.arange(2, dtype=np.int32),
    )
    _, tally = posed(table, Promise(k=2), Cost.RANGE)
    neighbors = neighbors_of(tally.problem, 3)
    assert agglomerate(tally, neighbors, keep_going=lambda: False) is None
