"""Which classes cover a record, by rows of bits."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymizer.algorithms.records.cover import BITS, Cover, blank_cover, look_up, lowest
from anonymizer.algorithms.records.draws import draw
from anonymizer.algorithms.records.hilbert import hilbert_order
from anonymizer.algorithms.records.local_search import Search, search_from
from anonymizer.algorithms.records.moves import make_moves
from anonymizer.algorithms.records.neighbors import neighbors_of
from anonymizer.algorithms.records.partition import best_target, partition_of
from anonymizer.algorithms.records.problem import Cost, make_problem
from anonymizer.algorithms.records.sweep import sweep
from anonymizer.algorithms.records.tally import blank_tally
from anonymizer.domain.promises import Promise
from anonymizer.domain.records import Attribute, Records, Schema
from tests.algorithms.records import naive
from tests.algorithms.records.made import SCHEMA, records

COSTS = st.sampled_from(Cost)
QIS = len(SCHEMA.qis)


def searched(table: Records, cost: Cost, *, k: int = 2) -> tuple[Records, Search]:
    """A search after some moves, and the table in its order."""
    table = table.only(hilbert_order(table.qi, [a.size for a in SCHEMA.qis]))
    problem = make_problem(table, SCHEMA, Promise(k=k, d=1), cost=cost)
    tally = blank_tally(problem)
    first = sweep(problem, np.arange(table.n))
    search = search_from(first, tally, neighbors_of(tally.problem, QIS))
    draws = draw(np.random.default_rng(3), 2000)
    make_moves(0.5, 1_000_000, draws, search.orders, search.tally, search.partition, search.scratch)
    return table, search


def numbers_of(misses: np.ndarray, n_classes: int) -> set[int]:
    bits = [int(word) >> b & 1 for word in misses for b in range(BITS)]
    return {b for b in np.flatnonzero(bits).tolist() if b < n_classes}


@pytest.mark.compiled
@settings(max_examples=25)
@given(records(max_n=20), COSTS)
def test_a_class_covers_a_record_in_a_column_if_its_label_costs_no_more_with_it(
    table: Records, cost: Cost
) -> None:
    table, search = searched(table, cost)
    class_of, partition = search.class_of, search.partition
    n_classes = int(search.tally.head[0]["n_classes"])
    if n_classes == 0:
        return
    members = [np.flatnonzero(class_of == b).tolist() for b in range(n_classes)]

    def missed(i: int, b: int) -> int:
        """In how many columns the label of a class is wider with a record."""
        return sum(
            naive.loss(column, schema, cost, [*members[b], i])
            > naive.loss(column, schema, cost, members[b])
            for column, schema in columns
        )

    columns = [
        (
            Records(table.qi[:, [c]], table.sensitive, table.person),
            Schema((SCHEMA.qis[c],), SCHEMA.sensitive, ((0,),)),
        )
        for c in range(QIS)
    ]
    for i in range(min(table.n, 8)):
        look_up(i, 1, n_classes, search.tally.problem, partition.cover)
        for n_missed in range(2):
            found = numbers_of(partition.cover.misses[n_missed], n_classes)
            assert found == {b for b in range(n_classes) if missed(i, b) == n_missed}


@pytest.mark.compiled
@given(records(), COSTS)
def test_the_rows_follow_every_move(table: Records, cost: Cost) -> None:
    _, search = searched(table, cost)
    n_classes = int(search.tally.head[0]["n_classes"])
    fresh = partition_of(search.class_of, search.tally, covering=True)
    known = np.unpackbits(search.partition.cover.row.view(np.uint8), axis=1, bitorder="little")
    true = np.unpackbits(fresh.cover.row.view(np.uint8), axis=1, bitorder="little")
    assert (known[:, :n_classes] == true[:, :n_classes]).all()


@pytest.mark.compiled
@given(records(), COSTS)
def test_no_class_that_covers_a_record_costs_less_than_the_one_found(
    table: Records, cost: Cost
) -> None:
    _, search = searched(table, cost)
    tally, partition = search.tally, search.partition
    asked, lost = search.scratch.asked, partition.of_class["loss"]
    n_classes = int(tally.head[0]["n_classes"])
    for i in range(table.n if n_classes else 0):
        look_up(i, 1, n_classes, tally.problem, partition.cover)
        covering = numbers_of(partition.cover.misses[0], n_classes)
        target, grows = best_target(i, -1, np.inf, search.orders, tally, partition, asked)
        assert target >= 0
        assert grows <= min((lost[b] for b in covering), default=np.inf) + 1e-9


def test_the_codes_of_a_large_domain_share_rows() -> None:
    n = 1000
    schema = Schema((Attribute("a", np.arange(float(n))), Attribute("b", np.arange(2.0))), (), ())
    qi = np.column_stack([np.arange(n), np.arange(n) % 2]).astype(np.int32)
    table = Records(qi, np.zeros((n, 0), np.int32), np.arange(n, dtype=np.int32))
    tally = blank_tally(make_problem(table, schema, Promise(k=2, d=1)))
    cover: Cover = blank_cover(tally.problem, 2, 70)
    assert cover.row.shape == (125 + 2, 2)
    partition = partition_of((np.arange(n) // 20).astype(np.int32), tally, covering=True)
    look_up(500, 1, 50, tally.problem, partition.cover)
    found = numbers_of(partition.cover.misses[0], 50)
    assert 25 in found
    assert found <= {24, 25, 26}


def test_looks_take_turns_where_there_are_very_many_classes() -> None:
    n, n_classes = 4, 40_000
    schema = Schema((Attribute("a", np.arange(4.0)),), (), ())
    qi = np.arange(n, dtype=np.int32)[:, None]
    table = Records(qi, np.zeros((n, 0), np.int32), np.arange(n, dtype=np.int32))
    tally = blank_tally(make_problem(table, schema, Promise(k=2, d=1)))
    cover = blank_cover(tally.problem, 1, n_classes)
    read = np.zeros(cover.row.shape[1], bool)
    for look in range(10):
        begin, end = look_up(0, look, n_classes, tally.problem, cover)
        assert 0 < end - begin <= 256
        read[begin:end] = True
    assert read.all()


@given(st.integers(1, 2**64 - 1))
def test_the_lowest_bit_is_found(bits: int) -> None:
    assert lowest(np.uint64(bits)) == (bits & -bits).bit_length() - 1
