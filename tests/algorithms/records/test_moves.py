import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.records.classes import SUPPRESSED
from anonymizer.algorithms.records.draws import draw
from anonymizer.algorithms.records.effort import Effort
from anonymizer.algorithms.records.hilbert import hilbert_order
from anonymizer.algorithms.records.local_search import Search, improve, search_from
from anonymizer.algorithms.records.moves import make_moves
from anonymizer.algorithms.records.neighbors import neighbors_of
from anonymizer.algorithms.records.partition import partition_of
from anonymizer.algorithms.records.problem import Cost, make_problem
from anonymizer.algorithms.records.sweep import sweep
from anonymizer.algorithms.records.tally import Tally, blank_tally
from anonymizer.domain.arrays import Int32Array
from anonymizer.domain.promises import Promise
from anonymizer.domain.records import Records
from tests.algorithms.records import naive
from tests.algorithms.records.made import SCHEMA, counts_alone, promises, records

TABLES = st.booleans().flatmap(lambda repeats: records(repeats=repeats))
PROMISES = promises() | counts_alone()
COSTS = st.sampled_from(Cost)


def begun(table: Records, promise: Promise, cost: Cost, crowding: float) -> tuple[Records, Search]:
    """A search from the sweep, and the table in the order of the search."""
    table = table.only(hilbert_order(table.qi, [a.size for a in SCHEMA.qis]))
    problem = make_problem(table, SCHEMA, promise, cost=cost)
    first = sweep(problem, np.arange(table.n))
    return table, started(first, blank_tally(problem, crowding))


def started(class_of: Int32Array, tally: Tally) -> Search:
    return search_from(class_of, tally, neighbors_of(tally.problem, int(tally.head[0]["n_qis"])))


def move(search: Search, *, heat: float, seed: int) -> None:
    draws = draw(np.random.default_rng(seed), 2000)
    make_moves(
        heat, 1_000_000, draws, search.orders, search.tally, search.partition, search.scratch
    )


def plain_cost(table: Records, search: Search, cost: Cost, crowding: float) -> float:
    class_of = search.class_of
    total = 0.0
    for c in range(class_of.max(initial=SUPPRESSED) + 1):
        member = np.flatnonzero(class_of == c).tolist()
        total += len(member) * naive.loss(table, SCHEMA, cost, member)
        total += crowding * len(member) ** 2
    return total


@given(TABLES, PROMISES, COSTS, st.sampled_from([0.0, 0.1]), st.sampled_from([0.0, 5.0]))
def test_every_partition_on_the_way_keeps_the_promise_and_costs_what_is_said(
    table: Records, promise: Promise, cost: Cost, crowding: float, heat: float
) -> None:
    table, search = begun(table, promise, cost, crowding)
    for seed in range(3):
        move(search, heat=heat, seed=seed)
        class_of = search.class_of
        for c in range(class_of.max(initial=SUPPRESSED) + 1):
            member = np.flatnonzero(class_of == c).tolist()
            assert naive.keeps(table, SCHEMA, promise, member)
        assert search.cost == pytest.approx(plain_cost(table, search, cost, crowding))


@pytest.mark.compiled
@given(records(), promises(), COSTS, st.sampled_from([0.4, 0.6]), st.sampled_from([0.0, 2.0]))
def test_a_record_in_a_class_above_the_preferred_share_costs_its_price_for_each_column(
    table: Records, promise: Promise, cost: Cost, share: float, heat: float
) -> None:
    table = table.only(hilbert_order(table.qi, [a.size for a in SCHEMA.qis]))
    problem = make_problem(table, SCHEMA, promise, cost=cost)
    tally = blank_tally(problem, prefer_share=share, share_price=0.25)
    search = started(sweep(problem, np.arange(table.n)), tally)
    for seed in range(2):
        move(search, heat=heat, seed=seed)
        plain = plain_cost(table, search, cost, 0.0)
        for c in range(search.class_of.max(initial=SUPPRESSED) + 1):
            member = np.flatnonzero(search.class_of == c).tolist()
            plain += 0.25 * len(member) * naive.n_above(table, member, share)
        assert search.cost == pytest.approx(plain)


@given(TABLES, PROMISES, COSTS)
def test_what_is_known_of_a_class_is_what_its_members_say(
    table: Records, promise: Promise, cost: Cost
) -> None:
    _, search = begun(table, promise, cost, 0.0)
    move(search, heat=1.0, seed=0)
    rule = search.tally.problem.rule
    n_classes = int(search.tally.head[0]["n_classes"])
    fresh = partition_of(search.class_of, search.tally)
    for name in ("size", "loss"):
        known, true = search.partition.of_class[name][:n_classes], fresh.of_class[name][:n_classes]
        assert known == pytest.approx(true)
    known, true = search.partition.outline[:n_classes], fresh.outline[:n_classes]
    for name in ("lo", "hi", "loss"):
        assert known[name][:, :3] == pytest.approx(true[name][:, :3])
    bound = np.maximum(known["most"], known["next_most"])
    bounded = rule["share"] < 1
    assert (bound >= true["most"])[:, bounded].all()
    assert (search.partition.bits[:n_classes] == fresh.bits[:n_classes]).all()


@pytest.mark.compiled
@given(TABLES, PROMISES, COSTS, st.integers(0, 5))
def test_a_cold_search_never_makes_it_worse(
    table: Records, promise: Promise, cost: Cost, seed: int
) -> None:
    _, search = begun(table, promise, cost, 0.05)
    last = search.cost
    for step in range(3):
        move(search, heat=0.0, seed=10 * seed + step)
        assert search.cost <= last + 1e-9
        last = search.cost


@given(TABLES, PROMISES)
def test_a_record_has_a_class_wherever_one_keeps_the_promise_with_it(
    table: Records, promise: Promise
) -> None:
    table, search = begun(table, promise, Cost.RANGE, 0.0)
    class_of = search.class_of
    left_out = np.flatnonzero(class_of == SUPPRESSED)
    swept = sweep(make_problem(table, SCHEMA, promise), np.arange(table.n))
    assert set(left_out) <= set(np.flatnonzero(swept == SUPPRESSED))


def test_a_search_that_is_stopped_while_hot_gives_no_worse_than_its_start() -> None:
    rng = np.random.default_rng(3)
    qi = np.column_stack([rng.integers(0, a.size, 200) for a in SCHEMA.qis]).astype(np.int32)
    table = Records(qi, np.zeros((200, 1), np.int32), np.arange(200, dtype=np.int32))
    _, search = begun(table, Promise(k=5), Cost.RANGE, 0.0)
    start = search.cost
    asked = iter([True, False])
    found = improve(
        search,
        effort=Effort(lambda: next(asked), lambda: 1.0, None),
        cools=True,
        rng=rng,
        progress=lambda _loss: None,
    )
    assert started(found, search.tally).cost <= start


def test_a_search_finds_two_groups_that_the_order_mixed() -> None:
    qi = np.array([[0, 0, 0], [3, 4, 2]] * 10, np.int32)
    table = Records(qi, np.zeros((20, 1), np.int32), np.arange(20, dtype=np.int32))
    problem = make_problem(table, SCHEMA, Promise(k=5))
    search = started(np.repeat([0, 1], 10).astype(np.int32), blank_tally(problem))
    assert search.cost > 0
    move(search, heat=0.0, seed=1)
    assert search.cost == pytest.approx(0)
