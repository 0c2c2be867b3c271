import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.kaca.features import features, means, nearest, sum_of_squares
from anonymizer.algorithms.kaca.local_improvement import dissolve, improve
from anonymizer.algorithms.records.classes import SUPPRESSED, classes_of
from anonymizer.algorithms.records.problem import make_problem
from anonymizer.domain.promises import Promise
from anonymizer.domain.records import Records
from tests.algorithms.kaca import naive
from tests.algorithms.kaca.made import HOW, TOLL, exits, toll
from tests.algorithms.records import naive as judges
from tests.algorithms.records.made import SCHEMA, promises
from tests.algorithms.records.made import records as tables


@given(exits(), st.integers(1, 5), st.data())
def test_improving_never_loses_more_and_keeps_k(
    records: Records, k: int, data: st.DataObject
) -> None:
    groups = data.draw(st.integers(1, max(records.n // k, 1)))
    class_of = np.sort(np.arange(records.n, dtype=np.int32) % groups)
    feature = features(records, TOLL, HOW)
    problem = make_problem(records, TOLL, Promise(k=k))
    found = improve(problem, feature, class_of, by_size=True, may_grow=True)
    assert sum_of_squares(feature, found) <= sum_of_squares(feature, class_of) + 1e-12
    for own in naive.members(found.tolist()).values():
        assert len(own) >= min(k, records.n)


@given(st.booleans().flatmap(lambda r: tables(repeats=r)), promises(), st.data())
def test_improving_keeps_the_whole_promise_and_leaves_out_nobody_more(
    table: Records, promise: Promise, data: st.DataObject
) -> None:
    drawn = data.draw(st.lists(st.integers(0, 2), min_size=table.n, max_size=table.n))
    groups = naive.members(drawn)
    class_of = np.full(table.n, SUPPRESSED, np.int32)
    for c, own in enumerate(g for g in groups.values() if judges.keeps(table, SCHEMA, promise, g)):
        class_of[own] = c
    feature = features(table, SCHEMA)
    grows = promise.max_share == promise.max_source_share == promise.entropy_l == 1.0
    found = improve(
        make_problem(table, SCHEMA, promise),
        feature,
        class_of,
        by_size=False,
        may_grow=grows and promise.t > 1,
    )
    assert ((found == SUPPRESSED) == (class_of == SUPPRESSED)).all()
    assert sum_of_squares(feature, found) <= sum_of_squares(feature, class_of) + 1e-12
    for own in naive.members(found.tolist()).values():
        assert judges.keeps(table, SCHEMA, promise, own)


@given(exits(max_n=30), st.integers(2, 5))
def test_two_classes_that_are_left_are_cut_as_well_as_any_axis_allows(
    records: Records, k: int
) -> None:
    feature = features(records, TOLL, HOW)
    class_of = (np.arange(records.n) * 2 // records.n).astype(np.int32)
    problem = make_problem(records, TOLL, Promise(k=k))
    found = improve(problem, feature, class_of, by_size=True, may_grow=True)
    groups = list(naive.members(found.tolist()).values())
    if len(groups) == 2 and min(map(len, groups)) >= k:
        best = _best_cut(feature.of().tolist(), groups[0] + groups[1], k)
        # Rounds end when one saves less than a fiftieth.
        assert sum_of_squares(feature, found) <= best * 1.021 + 1e-9


def _best_cut(points: list[list[float]], pool: list[int], k: int) -> float:
    best = np.inf
    for axis in range(len(points[0])):
        order = sorted(pool, key=lambda i: (points[i][axis], i))
        for cut in range(k, len(order) - k + 1):
            halves = [[points[i] for i in order[:cut]], [points[i] for i in order[cut:]]]
            # Among equal values any order may have been tried; only clear cuts are compared.
            if halves[0][-1][axis] < halves[1][0][axis]:
                best = min(best, sum(map(naive.squares, halves)))
    return best


@given(exits(), st.data())
def test_giving_up_classes_saves_at_least_what_it_says_and_loses_nobody(
    records: Records, data: st.DataObject
) -> None:
    drawn = data.draw(st.lists(st.integers(0, 6), min_size=records.n, max_size=records.n))
    class_of = np.unique(drawn, return_inverse=True)[1].astype(np.int32)
    feature = features(records, TOLL, HOW)
    mean, classes, found = means(feature, class_of), classes_of(class_of), class_of.copy()
    _, near = nearest(mean, mean, 4)
    saved = dissolve(feature, found, classes.first_of, classes.member, mean, near)
    assert sum_of_squares(feature, _dense(found)) <= (
        sum_of_squares(feature, class_of) - saved + 1e-9
    )
    sizes = np.bincount(found, minlength=len(classes))
    assert all(size == 0 or size >= len(classes[c]) for c, size in enumerate(sizes.tolist()))


def _dense(class_of: np.ndarray) -> np.ndarray:
    return np.unique(class_of, return_inverse=True)[1].astype(np.int32)


def test_a_class_between_two_crowds_is_given_up_to_both() -> None:
    records = toll([0] * 14, [480] * 5 + [480, 480, 485, 485] + [485] * 5)
    class_of = np.array([0] * 5 + [1] * 4 + [2] * 5, np.int32)
    feature = features(records, TOLL, HOW)
    problem = make_problem(records, TOLL, Promise(k=4))
    found = improve(problem, feature, class_of, by_size=True, may_grow=True)
    assert found.tolist() == [0] * 7 + [1] * 7
    assert sum_of_squares(feature, found) == pytest.approx(0)


def test_large_classes_are_cut_as_small_ones_are_and_a_crowd_is_left_alone() -> None:
    minutes = np.random.default_rng(0).permutation(120)
    records = toll([0] * 120, minutes.tolist())
    class_of = (np.arange(120) % 2).astype(np.int32)
    feature = features(records, TOLL, HOW)
    problem = make_problem(records, TOLL, Promise(k=60))
    found = improve(problem, feature, class_of, by_size=True, may_grow=False)
    assert len(set(zip((minutes < 60).tolist(), found.tolist(), strict=True))) == 2

    crowd = toll([0] * 200, [0] * 195 + [1, 2, 3, 4, 5])
    class_of = np.array([0] * 199 + [1], np.int32)
    feature = features(crowd, TOLL, HOW)
    problem = make_problem(crowd, TOLL, Promise(k=1))
    found = improve(problem, feature, class_of, by_size=True, may_grow=False)
    assert found.tolist() == class_of.tolist()
