from collections import defaultdict
from collections.abc import Callable
from itertools import combinations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.records.classes import SUPPRESSED
from anonymizer.algorithms.records.criteria import loss
from anonymizer.algorithms.records.hilbert import hilbert_order
from anonymizer.algorithms.records.problem import Problem, make_problem
from anonymizer.algorithms.records.suppression import form_within_limit, least_dropped
from anonymizer.algorithms.records.sweep import sweep
from anonymizer.domain.arrays import Int32Array, IntArray
from anonymizer.domain.promises import Promise
from anonymizer.domain.records import Records, Schema
from tests.algorithms.records.made import SCHEMA, categories, numbers, promises, records

N_TRIALS = 8


def posed(table: Records, schema: Schema, promise: Promise) -> Callable[[IntArray], Problem]:
    return lambda kept: make_problem(table.only(kept), schema, promise, table=table)


def swept(_kept: IntArray, problem: Problem) -> Int32Array:
    order = hilbert_order(problem.cells[:, : problem.n_qis], problem.rule["size"].tolist())
    return sweep(problem, order)


def formed(
    problem_of: Callable[[IntArray], Problem], n: int, most: int
) -> tuple[IntArray, Int32Array]:
    return form_within_limit(problem_of, swept, n=n, most=most, n_trials=N_TRIALS)


def of(*columns: list[int]) -> Records:
    cells = np.array(columns, np.int32).T.copy()
    n = len(cells)
    return Records(cells, np.zeros((n, 0), np.int32), np.arange(n, dtype=np.int32))


def naive_cost(
    problem_of: Callable[[IntArray], Problem], kept: IntArray, class_of: Int32Array, n: int
) -> float:
    """What all n records lose: those without a class lose every quasi-identifier."""
    problem, members = problem_of(kept), defaultdict(list)
    for place, c in enumerate(class_of.tolist()):
        members[c].append(place)
    n_out = n - len(kept) + len(members.pop(SUPPRESSED, []))
    lost = sum(len(own) * loss(problem, np.array(own)) for own in members.values())
    return lost + n_out * problem.n_qis


def naively_least_dropped(column: list[int], share: float, entropy: float) -> int | None:
    """The smallest number of values without which the others keep both bounds, by trying all."""
    n = len(column)
    for x in range(n):
        for gone in combinations(range(n), x):
            left = [value for i, value in enumerate(column) if i not in gone]
            times = np.unique(left, return_counts=True)[1] / len(left)
            if times.max() <= share + 1e-9 and -(times * np.log(times)).sum() >= entropy - 1e-9:
                return x
    return None


@given(records(), promises(), st.integers(0, 10))
def test_what_is_chosen_is_within_the_limit_and_loses_no_more_than_choosing_none(
    table: Records, promise: Promise, most: int
) -> None:
    n, most = table.n, min(most, table.n)
    problem_of = posed(table, SCHEMA, promise)
    kept, class_of = formed(problem_of, n, most)
    assert len(kept) >= n - most
    assert (np.diff(kept) > 0).all()
    assert ((kept >= 0) & (kept < n)).all()
    everyone = np.arange(n)
    of_all = swept(everyone, problem_of(everyone))
    if (of_all == SUPPRESSED).sum() <= most:
        assert n - (class_of != SUPPRESSED).sum() <= most
        for_all = naive_cost(problem_of, everyone, of_all, n)
        assert naive_cost(problem_of, kept, class_of, n) <= for_all + 1e-6
    assert (class_of == swept(kept, problem_of(kept))).all()


@given(
    st.lists(st.integers(0, 2), min_size=2, max_size=7),
    st.sampled_from([0.5, 0.6, 0.75, 1.0]),
    st.sampled_from([1.0, 1.5, 2.0]),
)
def test_the_least_number_to_drop_is_never_above_the_true_one(
    column: list[int], share: float, entropy_l: float
) -> None:
    """For one value too many it is the true one: others may become too frequent without it."""
    n = len(column)
    table = Records(
        np.array([column], np.int32).T.copy(),
        np.array([column], np.int32).T.copy(),
        np.arange(n, dtype=np.int32),
    )
    schema = Schema((categories("city", "abc"),), (categories("illness", "abc"),), ((0,),))
    promise = Promise(k=1, max_share=share, entropy_l=entropy_l)
    least = least_dropped(make_problem(table, schema, promise))
    true = naively_least_dropped(column, share, float(np.log(entropy_l)))
    assert true is None or least <= true
    if set(column) == {0, 1} and true is not None and entropy_l == 1:
        assert least == true


def test_as_few_rows_of_a_value_that_is_too_frequent_go_as_its_share_allows() -> None:
    """95 of 100 have a; of b there are 5. With 5 of 83 there are 94 % of a."""
    table = of([0] * 95 + [1] * 5, [i % 10 for i in range(100)])
    schema = Schema((categories("city", "ab"), numbers("age", *range(10))), (), ())
    problem_of = posed(table, schema, Promise(k=5, max_share=0.94))
    everyone = np.arange(100)
    assert (swept(everyone, problem_of(everyone)) == SUPPRESSED).all()
    assert least_dropped(problem_of(everyone)) == 17
    kept, class_of = formed(problem_of, 100, 30)
    assert 70 <= len(kept) <= 83
    assert (class_of != SUPPRESSED).any()
    dropped = np.setdiff1d(everyone, kept)
    assert (table.qi[dropped, 0] == 0).all()
    assert least_dropped(problem_of(kept)) == 0


def test_a_sensitive_value_that_is_too_frequent_for_its_entropy_is_thinned_out() -> None:
    illness = np.array([[0] * 90 + [1] * 10], np.int32).T.copy()
    table = Records(np.zeros((100, 1), np.int32), illness, np.arange(100, dtype=np.int32))
    schema = Schema((numbers("age", 1, 2),), (categories("illness", "ab"),), ())
    problem_of = posed(table, schema, Promise(k=5, entropy_l=1.5))
    assert least_dropped(problem_of(np.arange(100))) == 29
    kept, class_of = formed(problem_of, 100, 40)
    assert 60 <= len(kept) <= 71
    assert (class_of != SUPPRESSED).any()
    assert (illness[np.setdiff1d(np.arange(100), kept)] == 0).all()


def test_as_many_rows_may_go_as_the_limit_allows_where_few_leave_wide_classes() -> None:
    """With 94 % of the rest only all rows are a class; with more gone there are smaller ones."""
    cities = [int(i % 19 == 0) for i in range(400)]
    table = of(cities, [i % 40 for i in range(400)])
    schema = Schema((categories("city", "ab"), numbers("age", *range(40))), (), ())
    problem_of = posed(table, schema, Promise(k=5, max_share=0.94))
    least = least_dropped(problem_of(np.arange(400)))
    kept, class_of = formed(problem_of, 400, least + 60)
    assert least == 34 < 400 - len(kept) <= least + 60
    assert len(np.unique(class_of)) > 5


def test_a_search_is_tried_again_although_nothing_pays_to_be_dropped() -> None:
    table = of([0, 1, 0, 1])
    schema = Schema((numbers("age", *range(10)),), (), ())
    problem_of, asked = posed(table, schema, Promise(k=2)), list[int]()

    def better(kept: IntArray, problem: Problem) -> Int32Array:
        asked.append(len(kept))
        return swept(kept, problem) if len(asked) > 1 else np.array([0, 0, 1, 1], np.int32)

    kept, class_of = form_within_limit(problem_of, better, n=4, most=1, n_trials=2, again=True)
    assert (asked, kept.tolist(), class_of.tolist()) == ([4, 4], [0, 1, 2, 3], [0, 1, 0, 1])


def test_a_cheaper_trial_that_leaves_out_more_than_the_limit_is_not_taken() -> None:
    """Nothing at all would be published of it."""
    schema = Schema((numbers("age", *range(41)),), (), ((0,),))
    ages = of([0] * 10 + [30] * 9 + [40])
    calls = list[int]()

    def greedy(kept: IntArray, problem: Problem) -> Int32Array:
        calls.append(len(kept))
        if len(calls) == 1:
            return np.zeros(problem.n, np.int32)
        age = problem.cells[:, 0]
        return np.where(age == 0, 0, SUPPRESSED).astype(np.int32)  # half of what all lost before

    problem_of = posed(ages, schema, Promise(k=2))
    kept, class_of = form_within_limit(problem_of, greedy, n=20, most=3, n_trials=3)
    assert calls == [20, 19, 19]
    assert (len(kept), set(class_of.tolist())) == (20, {0})


def test_where_the_limit_does_not_suffice_all_are_kept() -> None:
    table = of([0] * 95 + [1] * 5)
    schema = Schema((categories("city", "ab"),), (), ())
    kept, class_of = formed(posed(table, schema, Promise(k=5, max_share=0.94)), 100, 16)
    assert len(kept) == 100
    assert (class_of == SUPPRESSED).all()


def test_the_record_without_which_the_others_lose_least_is_dropped() -> None:
    """One of 41 is far away: a class with it spans nearly everything, twenty times."""
    table = of([*(i % 3 for i in range(20)), *(10 + i % 3 for i in range(20)), 40])
    schema = Schema((numbers("age", *range(41)),), (), ())
    problem_of = posed(table, schema, Promise(k=20))
    assert formed(problem_of, 41, 1)[0].tolist() == list(range(40))
    assert len(formed(problem_of, 41, 5)[0]) == 40
    assert len(formed(problem_of, 41, 0)[0]) == 41
    once = form_within_limit(problem_of, swept, n=41, most=5, n_trials=1)
    ended = form_within_limit(problem_of, swept, n=41, most=5, n_trials=2, keep_going=lambda: False)
    assert len(once[0]) == len(ended[0]) == 41


def test_a_record_is_kept_where_the_others_would_gain_less_than_it_holds() -> None:
    """In classes of two, a record saves its neighbour less than all that is told of itself."""
    table = of([0, 1, 2, 3, 4, 9])
    schema = Schema((numbers("age", *range(10)),), (), ())
    assert len(formed(posed(table, schema, Promise(k=2)), 6, 3)[0]) == 6


def test_closeness_is_that_to_the_whole_table_whatever_is_dropped() -> None:
    """Of those that are kept all are ill; of the table half are."""
    illness = np.array([[0, 0, 0, 0, 1, 1, 1, 1]], np.int32).T.copy()
    table = Records(np.zeros((8, 1), np.int32), illness, np.arange(8, dtype=np.int32))
    schema = Schema((numbers("age", 1, 2),), (categories("illness", "ab"),), ())
    problem = posed(table, schema, Promise(k=2, t=0.3))(np.arange(4))
    assert problem.usual[-2:].tolist() == [0.5, 0.5]
    assert (swept(np.arange(4), problem) == SUPPRESSED).all()
