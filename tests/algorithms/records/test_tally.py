from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from anonymizer.algorithms.records.classes import SUPPRESSED
from anonymizer.algorithms.records.local_search import search_from
from anonymizer.algorithms.records.neighbors import neighbors_of
from anonymizer.algorithms.records.optimal_cuts import split
from anonymizer.algorithms.records.problem import make_problem
from anonymizer.algorithms.records.sweep import sweep
from anonymizer.algorithms.records.tally import Tally, add, blank_tally, clear, tally_keeps
from anonymizer.domain.arrays import BoolArray, IntArray
from anonymizer.domain.promises import Promise
from anonymizer.domain.records import Records, Schema
from tests.algorithms.records import naive
from tests.algorithms.records.made import SCHEMA, categories, numbers, promises, records

TABLES = st.booleans().flatmap(lambda repeats: records(max_n=20, repeats=repeats))
SCHEMAS = st.sampled_from(
    [
        SCHEMA,
        replace(SCHEMA, sensitive=(categories("illness", "fg", missing=True),)),
        replace(SCHEMA, sensitive=(numbers("salary", 1, 2, 10),)),
    ]
)
LAST_TURN = 2_000_000_000


def _verdicts(order: IntArray, tally: Tally) -> BoolArray:
    """Add one record after the other; return whether the class keeps the promise after each."""
    out = np.zeros(len(order), np.bool_)
    clear(tally)
    for x in range(len(order)):
        add(order[x], tally)
        out[x] = tally_keeps(tally)
    return out


# A kernel on disk would outlive a change of what it calls.
NOT_ON_DISK: dict[str, Any] = {"cache": False}
verdicts: Callable[[IntArray, Tally], BoolArray] = njit(**NOT_ON_DISK)(_verdicts)


@given(TABLES, SCHEMAS, promises(), st.data(), st.booleans())
def test_a_tally_knows_after_every_record_whether_the_class_keeps_the_promise(
    table: Records,
    schema: Schema,
    promise: Promise,
    data: st.DataObject,
    turns_end: bool,  # noqa: FBT001  hypothesis hands it over
) -> None:
    tally = blank_tally(make_problem(table, schema, promise))
    if turns_end:
        tally.head["turn"] = LAST_TURN - 2
    for _ in range(3):  # what is left of one class must not count in the next
        order = data.draw(st.permutations(range(table.n)))[: data.draw(st.integers(1, table.n))]
        expected = [
            naive.keeps(table, schema, promise, order[: end + 1]) for end in range(len(order))
        ]
        assert verdicts(np.array(order), tally).tolist() == expected


def test_a_class_of_markers_alone_has_no_sensitive_value() -> None:
    schema = replace(SCHEMA, sensitive=(categories("illness", "fg", missing=True),))
    marker, who = np.full((3, 1), 2, np.int32), np.arange(3, dtype=np.int32)
    marker[2] = 0
    tally = blank_tally(
        make_problem(Records(np.zeros((3, 3), np.int32), marker, who), schema, Promise(k=1))
    )
    assert verdicts(np.arange(3), tally).tolist() == [False, False, True]


def mixed_late(n_alike: int, n_mixed: int) -> Records:
    """Records that all have one illness at first, and then two in turn."""
    n = n_alike + n_mixed
    illness = np.where(np.arange(n) < n_alike, 0, np.arange(n) % 2)
    qi = np.column_stack([np.arange(n) % a.size for a in SCHEMA.qis])
    return Records(
        qi.astype(np.int32), illness[:, None].astype(np.int32), np.arange(n, dtype=np.int32)
    )


@pytest.mark.compiled
def test_a_long_way_back_to_a_diverse_class_asks_for_time_on_the_way() -> None:
    table, promise = mixed_late(40_000, 12_000), Promise(k=100, entropy_l=1.3)
    problem = make_problem(table, SCHEMA, promise)
    first = sweep(problem, np.arange(table.n))
    asked = 0

    def keep_going() -> bool:
        nonlocal asked
        asked += 1
        return True

    class_of = split(first, blank_tally(problem), keep_going=keep_going)
    assert class_of is not None
    member = [np.flatnonzero(class_of == c).tolist() for c in (0, 1, class_of[-1])]
    assert all(naive.keeps(table, SCHEMA, promise, m) for m in member)
    assert asked > -(-table.n // 100)


@pytest.mark.compiled
def test_where_there_is_no_time_the_rest_stays_suppressed_and_else_joins_a_class() -> None:
    table = mixed_late(0, 5_000)
    tally = blank_tally(make_problem(table, SCHEMA, Promise(k=100, entropy_l=1.9)))
    first = np.full(table.n, SUPPRESSED, np.int32)
    first[:200] = 0
    neighbors = neighbors_of(tally.problem, len(SCHEMA.qis))
    assert (search_from(first, tally, neighbors).class_of == 0).all()
    hurried = search_from(first, tally, neighbors, keep_going=lambda: False).class_of
    assert 0 < (hurried == SUPPRESSED).sum() < table.n - 200
