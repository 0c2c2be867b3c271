import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.records import local_search
from anonymizer.algorithms.records.classes import SUPPRESSED, classes_of
from anonymizer.algorithms.records.criteria import class_keeps, loss
from anonymizer.algorithms.records.hilbert import hilbert_order
from anonymizer.algorithms.records.local_search import best
from anonymizer.algorithms.records.problem import Cost, Problem, make_problem
from anonymizer.algorithms.records.sweep import sweep
from anonymizer.domain.arrays import Int32Array, IntArray
from anonymizer.domain.promises import Promise
from anonymizer.domain.records import Attribute, Records, Schema
from tests.algorithms.records import naive
from tests.algorithms.records.made import SCHEMA, counts_alone, promises, records
from tests.algorithms.records.real_tables import adult
from tests.algorithms.records.test_boxes import WIDE, large

ROOT = Path(__file__).parents[3]
TABLES = st.booleans().flatmap(lambda repeats: records(repeats=repeats))
PROMISES = promises() | counts_alone()


def order_of(table: Records, schema: Schema = SCHEMA) -> IntArray:
    return hilbert_order(table.qi, [a.size for a in schema.qis])


def cost_of(problem: Problem, class_of: Int32Array, dm_weight: float = 0.0) -> float:
    classes = classes_of(class_of)
    lost = sum(len(classes[c]) * loss(problem, classes[c]) for c in range(len(classes)))
    sizes = np.diff(classes.first_of)
    dm = float((sizes**2).sum())
    return lost / (problem.n * problem.n_qis) + dm_weight * dm / (problem.n * problem.k)


@pytest.mark.compiled
@given(TABLES, PROMISES, st.sampled_from(Cost), st.integers(1, 12))
def test_every_class_keeps_the_promise_whenever_the_search_is_stopped(
    table: Records, promise: Promise, cost: Cost, n_steps: int
) -> None:
    problem = make_problem(table, SCHEMA, promise, cost=cost)
    asked = iter([True] * n_steps)
    class_of = best(problem, order_of(table), keep_going=lambda: next(asked, False), seed=1)
    numbers = sorted(set(class_of.tolist()) - {SUPPRESSED})
    assert numbers == list(range(len(numbers)))
    for c in numbers:
        assert naive.keeps(table, SCHEMA, promise, np.flatnonzero(class_of == c).tolist())


_WARMED = """
import sys
import numpy as np
from anonymizer.algorithms.records.local_search import best, warm_up
from anonymizer.algorithms.records.problem import make_problem
from anonymizer.domain.promises import Promise
from anonymizer.domain.records import Records
from tests.algorithms.records.made import SCHEMA

def compiled():
    modules = [m for name, m in sys.modules.items() if name.startswith("anonymizer.algorithms")]
    found = [k for m in modules for k in vars(m).values()]
    kernels = {id(k): k for k in found if isinstance(getattr(k, "signatures", None), list)}
    return sum(len(kernel.signatures) for kernel in kernels.values())

promise = Promise(k=3, d=2, l=2, max_share=0.9, max_source_share=0.8, entropy_l=1.2, t=0.9)
warm_up(SCHEMA, promise)
before = compiled()
rng = np.random.default_rng(1)
draw = lambda some: np.column_stack([rng.integers(0, a.size, 300) for a in some]).astype(np.int32)
table = Records(draw(SCHEMA.qis), draw(SCHEMA.sensitive), np.arange(300, dtype=np.int32))
turns = iter(range(40))
best(make_problem(table, SCHEMA, promise), np.arange(300),
     keep_going=lambda: next(turns, None) is not None, time_left=lambda: 0.5, seed=1)
assert 0 < before == compiled(), (before, compiled())
"""


@pytest.mark.compiled
def test_a_search_that_was_warmed_up_compiles_nothing_more() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _WARMED], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.compiled
@given(TABLES, PROMISES)
def test_nobody_is_left_out_where_the_whole_table_can_be_one_class(
    table: Records, promise: Promise
) -> None:
    problem = make_problem(table, SCHEMA, promise)
    asked = iter([True] * 4)
    class_of = best(problem, order_of(table), keep_going=lambda: next(asked, False), seed=1)
    if naive.keeps(table, SCHEMA, promise, range(table.n)):
        assert (class_of != SUPPRESSED).all()


@pytest.mark.compiled
@given(TABLES, PROMISES, st.sampled_from(Cost), st.sampled_from([0.0, 0.05]))
def test_it_is_never_worse_than_the_sweep(
    table: Records, promise: Promise, cost: Cost, dm_weight: float
) -> None:
    problem = make_problem(table, SCHEMA, promise, cost=cost)
    order = order_of(table)
    swept = sweep(problem, order)
    asked = iter([True] * 4)
    class_of = best(
        problem, order, dm_weight=dm_weight, keep_going=lambda: next(asked, False), seed=1
    )
    if (swept != SUPPRESSED).all():
        assert (class_of != SUPPRESSED).all()
        less = cost_of(problem, class_of, dm_weight)
        assert less <= cost_of(problem, swept, dm_weight) + 1e-9


@given(TABLES, PROMISES)
def test_without_time_the_sweep_is_the_answer(table: Records, promise: Promise) -> None:
    problem, order = make_problem(table, SCHEMA, promise), order_of(table)
    class_of = best(problem, order, keep_going=lambda: False, seed=1)
    swept = sweep(problem, order)
    published = swept != SUPPRESSED
    assert (class_of[published] == swept[published]).all()


def test_without_time_nothing_is_merged_where_equal_records_are_classes_already() -> None:
    # Ten equal records and three others: the sweep cuts them in threes, a merge would keep them.
    qi = np.zeros((13, 3), np.int32)
    qi[10:, 2] = 1
    table = Records(qi, np.zeros((13, 1), np.int32), np.arange(13, dtype=np.int32))
    problem = make_problem(table, SCHEMA, Promise(k=3, d=1, l=1, max_share=1, max_source_share=1))
    class_of = best(problem, np.arange(13), keep_going=lambda: False, seed=1)
    assert class_of.tolist() == sweep(problem, np.arange(13)).tolist()


def made(n: int) -> Records:
    """Records of `SCHEMA` whose values depend on each other."""
    rng = np.random.default_rng(5)
    age = rng.integers(0, 4, n)
    work = np.where(rng.random(n) < 0.7, age, rng.integers(0, 6, n))
    home = np.where(rng.random(n) < 0.7, age % 3, rng.integers(0, 3, n))
    qi = np.column_stack([age, work, home]).astype(np.int32)
    illness = rng.integers(0, 3, (n, 1)).astype(np.int32)
    return Records(qi, illness, np.arange(n, dtype=np.int32))


@pytest.mark.compiled
def test_it_comes_to_an_end_by_itself_and_equal_seeds_give_equal_classes() -> None:
    table = made(120)
    problem, order = make_problem(table, SCHEMA, Promise(k=4, d=2)), order_of(table)
    one = best(problem, order, keep_going=lambda: True, seed=7)
    assert (one == best(problem, order, keep_going=lambda: True, seed=7)).all()
    assert cost_of(problem, one) < 0.9 * cost_of(problem, sweep(problem, order))


@pytest.mark.compiled
def test_a_search_bounded_by_work_repeats_itself_and_more_work_loses_less() -> None:
    table = made(4_000)
    problem, order = make_problem(table, SCHEMA, Promise(k=10, d=3)), order_of(table)

    def found(work: int) -> Int32Array:
        return best(problem, order, keep_going=lambda: True, work=work, seed=7)

    little, more = found(1), found(20_000_000)
    assert (more == found(20_000_000)).all()
    assert cost_of(problem, more) < cost_of(problem, little)


@pytest.mark.compiled
@pytest.mark.parametrize("repeats", [False, True])
def test_a_search_in_blocks_of_whole_classes_loses_hardly_more(
    *, repeats: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = made(3_000)
    if repeats:
        table = replace(table, person=table.person // 2)
    problem, order = make_problem(table, SCHEMA, Promise(k=10, d=2)), order_of(table)
    whole = best(problem, order, work=30_000_000, seed=7)
    monkeypatch.setattr(local_search, "_BLOCK", 700)
    told: list[float] = []
    class_of = best(problem, order, work=30_000_000, seed=7, progress=told.append)
    classes = classes_of(class_of)
    assert all(class_keeps(problem.arrays, 10, classes[c]) for c in range(len(classes)))
    assert sorted(np.unique(class_of).tolist()) == list(range(len(classes)))
    assert repeats == (class_of == whole).all()  # a person's rows may lie in several blocks
    assert cost_of(problem, class_of) < 1.15 * cost_of(problem, whole)
    assert told


@pytest.mark.compiled
def test_classes_do_not_depend_on_how_joint_tuples_are_numbered() -> None:
    table = large(12_000)
    problem = make_problem(table, WIDE, Promise(k=8, max_source_share=0.3))
    c, order = problem.n_qis, np.arange(table.n)
    first, size = int(problem.rule["first_position"][c]), int(problem.rule["size"][c])
    cells, rule, usual = problem.cells.copy(), problem.rule.copy(), np.zeros(3 * size)
    cells[:, c] *= 3
    rule["size"][c] *= 3
    rule["first_position"][c + 1 :] += 2 * size
    usual[::3] = problem.usual[first : first + size]
    sparse = replace(
        problem,
        cells=cells,
        rule=rule,
        position=np.insert(problem.position, first, np.arange(2 * size)),
        usual=np.r_[problem.usual[:first], usual, problem.usual[first + size :]],
    )
    found, other = (best(each, order, work=20_000_000, seed=1) for each in (problem, sparse))
    assert (found == other).all()
    assert found.max() > 1_000


@pytest.mark.compiled
def test_more_records_of_a_kind_never_lose_more_even_without_work() -> None:
    rng = np.random.default_rng(3)
    lost = []
    for n in (2_000, 8_000, 32_000):
        qi = np.column_stack([rng.integers(0, 60, n) for _ in range(8)]).astype(np.int32)
        schema = Schema(
            tuple(Attribute(f"x{j}", np.arange(60.0)) for j in range(8)), (), ((*range(8),),)
        )
        table = Records(qi, np.zeros((n, 0), np.int32), np.arange(n, dtype=np.int32))
        problem = make_problem(table, schema, Promise(k=10))
        order = hilbert_order(qi, [60] * 8)
        lost.append(cost_of(problem, best(problem, order, work=1, seed=0)))
        assert lost[-1] <= cost_of(problem, sweep(problem, order))
    assert lost == sorted(lost, reverse=True)


@pytest.mark.compiled
def test_a_smaller_k_loses_less_however_many_classes_it_makes() -> None:
    rng = np.random.default_rng(8)
    n = 9_000
    kind = rng.integers(0, 8, n)
    columns = [kind * 8 + rng.integers(0, 12, n)]
    columns += [np.where(rng.random(n) < 0.7, kind, rng.integers(0, 8, n)) for _ in range(5)]
    qi = np.column_stack(columns).astype(np.int32)
    table = Records(qi, np.zeros((n, 0), np.int32), np.arange(n, dtype=np.int32))
    sizes = [68, *5 * [8]]
    schema = Schema(
        tuple(Attribute(f"x{j}", np.arange(float(size))) for j, size in enumerate(sizes)),
        (),
        (tuple(range(6)),),
    )
    order, losses = order_of(table, schema), []
    for k in (2, 3, 5):
        problem = make_problem(table, schema, Promise(k=k))
        asked = iter(range(150))
        class_of = best(
            problem,
            order,
            keep_going=lambda asked=asked: next(asked, None) is not None,  # type: ignore[misc]
            seed=1,
        )
        losses.append(cost_of(problem, class_of))
    # Where a record finds none but the classes beside it in one order, these are 0.66 and 0.64.
    assert losses[0] < 0.6 * losses[1]
    assert losses[1] < 0.6 * losses[2]


@pytest.mark.compiled
def test_a_weight_on_discernibility_gives_smaller_classes() -> None:
    table = made(300)
    problem, order = make_problem(table, SCHEMA, Promise(k=4, d=2)), order_of(table)
    dm = []
    for weight in (0.0, 1.0):
        asked = iter([True] * 60)
        class_of = best(
            problem,
            order,
            dm_weight=weight,
            keep_going=lambda asked=asked: next(asked, False),  # type: ignore[misc]
            seed=1,
        )
        dm.append(int((np.bincount(class_of) ** 2).sum()))
    assert dm[1] < 0.8 * dm[0]


@pytest.mark.compiled
@pytest.mark.parametrize("cost", [Cost.RANGE, Cost.TAXONOMY])
def test_a_weight_on_discernibility_buys_it_and_costs_hardly_more_than_without(cost: Cost) -> None:
    table = made(100)
    problem, order = make_problem(table, SCHEMA, Promise(k=4), cost=cost), order_of(table)
    found = {}
    for weight in (0.0, 0.01, 0.2, 2.0):
        class_of = best(problem, order, dm_weight=weight, seed=1)
        found[weight] = (cost_of(problem, class_of), int((np.bincount(class_of) ** 2).sum()))
    loss_without, dm_without = found[0.0]
    for weight, (lost, dm) in found.items():
        price = weight / (table.n * problem.k)
        assert lost + price * dm <= 1.05 * (loss_without + price * dm_without)
    assert found[2.0][1] < dm_without


def test_progress_is_the_information_loss_so_far() -> None:
    table = made(120)
    problem, order = make_problem(table, SCHEMA, Promise(k=4, d=2)), order_of(table)
    told: list[float] = []
    class_of = best(problem, order, keep_going=lambda: True, seed=7, progress=told.append)
    assert min(told) == pytest.approx(cost_of(problem, class_of))


# On the real data: what was asked for, and what it came to.

TIME_S = 20.0


def released(problem: Problem, order: IntArray, dm_weight: float = 0.0) -> tuple[float, int]:
    """Return GCP and DM of what is found in `TIME_S` of this process; nobody is left out."""
    asked = iter([True] * 400)
    best(problem, order, keep_going=lambda: next(asked, False), seed=0)  # compiles

    began = time.process_time()

    def time_left() -> float:
        return max(0.0, 1 - (time.process_time() - began) / TIME_S)

    class_of = best(
        problem,
        order,
        dm_weight=dm_weight,
        keep_going=lambda: time_left() > 0,
        time_left=time_left,
        seed=1,
    )
    assert (class_of != SUPPRESSED).all()
    classes = classes_of(class_of)
    assert all(class_keeps(problem.arrays, problem.k, classes[c]) for c in range(len(classes)))
    return cost_of(problem, class_of), int((np.diff(classes.first_of) ** 2).sum())


@pytest.mark.data
@pytest.mark.soak
@pytest.mark.parametrize(
    ("cost", "bar", "markers_are_values"),
    [(Cost.RANGE, 0.165, True), (Cost.SET, 0.122, True), (Cost.TAXONOMY, 0.385, True),
     (Cost.RANGE, 0.185, False), (Cost.SET, 0.14, False), (Cost.TAXONOMY, 0.395, False)],
)  # fmt: skip
def test_adult_loses_half_of_what_the_paper_loses(
    cost: Cost, bar: float, *, markers_are_values: bool
) -> None:
    table, schema = adult(markers_are_values=markers_are_values, sensitive=None)
    problem = make_problem(table, schema, Promise(k=20, d=2), cost=cost)
    gcp, _ = released(problem, order_of(table, schema))
    assert gcp <= bar


@pytest.mark.data
@pytest.mark.soak
def test_adult_has_a_release_of_small_classes_that_loses_little() -> None:
    table, schema = adult(markers_are_values=False, sensitive=None)
    problem = make_problem(table, schema, Promise(k=20, d=2))
    gcp, dm = released(problem, order_of(table, schema), dm_weight=0.4)
    assert gcp <= 0.21
    assert dm <= 1.2e6


@pytest.mark.data
@pytest.mark.soak
@pytest.mark.parametrize(
    ("l", "bar", "markers_are_values"),
    [(3, 0.17, True), (4, 0.18, True), (5, 0.21, True),
     (3, 0.19, False), (4, 0.20, False), (5, 0.24, False)],
)  # fmt: skip
def test_adult_with_diverse_race_loses_little_more(
    l: int,  # noqa: E741
    bar: float,
    *,
    markers_are_values: bool,
) -> None:
    table, schema = adult(markers_are_values=markers_are_values, sensitive="race")
    problem = make_problem(table, schema, Promise(k=20, d=2, l=l))
    gcp, _ = released(problem, order_of(table, schema))
    assert gcp <= bar
