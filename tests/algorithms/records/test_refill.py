"""Which records a class takes when its label gets narrower."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.records.classes import SUPPRESSED
from anonymizer.algorithms.records.hilbert import hilbert_order
from anonymizer.algorithms.records.local_search import Search, search_from
from anonymizer.algorithms.records.moves import refill
from anonymizer.algorithms.records.neighbors import neighbors_of
from anonymizer.algorithms.records.problem import Cost, make_problem
from anonymizer.algorithms.records.refill import choose, gained
from anonymizer.algorithms.records.sweep import sweep
from anonymizer.algorithms.records.tally import blank_tally, tally_members
from anonymizer.domain.promises import Promise
from anonymizer.domain.records import Records
from tests.algorithms.records import naive
from tests.algorithms.records.made import SCHEMA, counts_alone, promises, records

COSTS = st.sampled_from(Cost)
QIS = len(SCHEMA.qis)


def begun(table: Records, promise: Promise, cost: Cost) -> tuple[Records, Search]:
    """A search from the sweep, and the table in its order."""
    table = table.only(hilbert_order(table.qi, [a.size for a in SCHEMA.qis]))
    problem = make_problem(table, SCHEMA, promise, cost=cost)
    tally = blank_tally(problem)
    first = sweep(problem, np.arange(table.n))
    return table, search_from(first, tally, neighbors_of(tally.problem, QIS))


@pytest.mark.compiled
@given(records(), COSTS, st.integers(1, 3), st.integers(1, 4))
def test_a_class_takes_what_its_label_covers_from_those_that_lose_most(
    table: Records, cost: Cost, k: int, n: int
) -> None:
    table, search = begun(table, Promise(k=k, d=1), cost)
    tally, partition, reach = search.tally, search.partition, search.scratch.reach
    class_of = search.class_of
    member = np.flatnonzero(class_of == 0)[:2]
    if not len(member):
        return
    lost = partition.of_class["loss"]
    narrow = naive.loss(table, SCHEMA, cost, member.tolist())
    covered = [
        j
        for j in np.flatnonzero((class_of > 0) & (class_of != SUPPRESSED)).tolist()
        if naive.loss(table, SCHEMA, cost, [*member.tolist(), j]) <= narrow
    ]
    spare = dict(enumerate((np.bincount(class_of[class_of >= 0]) - k).tolist()))
    worth: list[float] = []
    for j in sorted(covered, key=lambda j: -lost[class_of[j]]):
        b = int(class_of[j])
        if spare[b] > 0 and len(worth) < n:
            spare[b] -= 1
            worth.append(lost[b])
    tally_members(member, tally)
    n_taken = choose(int(member[0]), 0, n, tally, partition, reach)
    taken = reach.taken[:n_taken]
    assert taken["worth"] == pytest.approx(worth)
    assert len(set(taken["record"].tolist())) == n_taken
    assert set(taken["record"].tolist()) <= set(covered)
    assert (class_of[taken["record"]] == taken["donor"]).all()
    assert not reach.n_given.any()


@pytest.mark.compiled
@given(records(), promises() | counts_alone(), COSTS)
def test_what_donors_gain_is_the_fall_of_their_cost_and_they_keep_the_promise(
    table: Records, promise: Promise, cost: Cost
) -> None:
    table, search = begun(table, promise, cost)
    taken, class_of = search.scratch.reach.taken, search.class_of
    given_up = np.flatnonzero(class_of >= 0)[::3]
    taken["record"][: len(given_up)] = given_up
    taken["donor"][: len(given_up)] = class_of[given_up]
    gain, keeps = 0.0, True
    for b in set(class_of[given_up].tolist()):
        before = np.flatnonzero(class_of == b).tolist()
        after = [j for j in before if j not in given_up]
        keeps = keeps and bool(after) and naive.keeps(table, SCHEMA, promise, after)
        gain += len(before) * naive.loss(table, SCHEMA, cost, before)
        gain -= len(after) * naive.loss(table, SCHEMA, cost, after) if after else 0.0
    found = gained(len(given_up), search.tally, search.partition, search.scratch.reach)
    assert found == pytest.approx(gain if keeps else -1.0)


@pytest.mark.compiled
def test_a_class_of_k_gives_up_a_record_and_takes_one_that_fits() -> None:
    one, other = [0, 0, 0], [3, 4, 2]
    qi = np.array([one, one, other, one, *6 * [other]], np.int32)
    table = Records(qi, np.zeros((10, 1), np.int32), np.arange(10, dtype=np.int32))
    tally = blank_tally(make_problem(table, SCHEMA, Promise(k=3, d=1)))
    class_of = np.array([0, 0, 0, 1, 1, 1, 1, 2, 2, 2], np.int32)
    search = search_from(class_of, tally, neighbors_of(tally.problem, QIS))
    before, scratch = search.cost, search.scratch
    scratch.stay[:2], scratch.journal["record"][0] = [0, 1], 2
    change = refill(0, 1, 2, -1e-9, search.orders, tally, search.partition, scratch)
    assert change == pytest.approx(-before)
    assert search.cost == pytest.approx(0)
    assert search.class_of.tolist() == [0, 0, 2, 0, 1, 1, 1, 2, 2, 2]
