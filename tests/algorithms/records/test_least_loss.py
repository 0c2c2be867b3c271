"""The least loss: no release is below it, and on a small table it is the plain one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.records import least_loss as module
from anonymizer.algorithms.records.boxes import boxes
from anonymizer.algorithms.records.classes import SUPPRESSED
from anonymizer.algorithms.records.least_loss import least_loss
from anonymizer.algorithms.records.problem import Cost, make_problem
from anonymizer.domain.arrays import Int32Array
from anonymizer.domain.promises import Promise
from anonymizer.domain.records import Records
from tests.algorithms.records import naive
from tests.algorithms.records.made import SCHEMA, counts_alone, promises, records
from tests.algorithms.records.test_boxes import WIDE, large

TABLES = st.booleans().flatmap(lambda repeats: records(max_n=14, repeats=repeats))


def gcp(table: Records, cost: Cost, class_of: Int32Array) -> float:
    lost = float((class_of == SUPPRESSED).sum() * len(SCHEMA.qis))
    for c in set(class_of.tolist()) - {SUPPRESSED}:
        member = np.flatnonzero(class_of == c).tolist()
        lost += len(member) * naive.loss(table, SCHEMA, cost, member)
    return lost / (table.n * len(SCHEMA.qis))


@pytest.mark.parametrize("cost", list(Cost))
@given(table=TABLES, promise=promises() | counts_alone(), seed=st.integers(0, 99))
def test_no_classes_that_keep_the_promise_lose_less(
    cost: Cost, table: Records, promise: Promise, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    least = least_loss(
        make_problem(table, SCHEMA, promise, cost=cost),
        rng.integers(-1, 3, table.n).astype(np.int32),
    )
    for n_classes in (1, 2, 3, 4):
        class_of = rng.integers(0, n_classes, table.n).astype(np.int32)
        for c in range(n_classes):
            member = np.flatnonzero(class_of == c)
            if not len(member) or not naive.keeps(table, SCHEMA, promise, member.tolist()):
                class_of[member] = SUPPRESSED
        assert least <= gcp(table, cost, class_of) + 1e-9


@given(table=records(max_n=25), k=st.integers(1, 5))
def test_with_k_alone_it_is_the_mean_distance_of_the_nearest(table: Records, k: int) -> None:
    def apart(i: int, j: int) -> float:
        return naive.loss(table, SCHEMA, Cost.RANGE, [i, j])

    rows = range(table.n)
    expected = [
        sorted([*(apart(i, j) for j in rows if j != i), *[3.0] * k])[k - 2] if k > 1 else 0.0
        for i in rows
    ]
    problem = make_problem(table, SCHEMA, Promise(k=k, d=0))
    found = least_loss(problem, np.zeros(table.n, np.int32))
    assert found == pytest.approx(np.mean(expected) / 3)


def test_a_bound_from_a_sample_is_below_the_one_from_all(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = make_problem(large(3_000), WIDE, Promise(k=5))
    class_of, _ = boxes(problem, np.arange(problem.n))
    exact = least_loss(problem, class_of)
    monkeypatch.setattr(module, "SAMPLED", 1_000)
    found = [least_loss(problem, class_of, seed=seed) for seed in range(10)]
    assert 0.3 * exact < min(found) <= max(found) < exact
    assert len(set(found)) == len(found)


def test_nothing_is_lost_of_nothing_or_by_nobody() -> None:
    none = Records(np.zeros((0, 4), np.int32), np.zeros((0, 1), np.int32), np.zeros(0, np.int32))
    assert least_loss(make_problem(none, WIDE, Promise(k=1)), np.zeros(0, np.int32)) == 0
    same = Records(
        np.ones((9, 4), np.int32), np.ones((9, 1), np.int32), np.arange(9, dtype=np.int32)
    )
    assert least_loss(make_problem(same, WIDE, Promise(k=9)), np.zeros(9, np.int32)) == 0
