import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from anonymizer.algorithms.kaca.features import features, means, nearest, sum_of_squares
from anonymizer.algorithms.kaca.local_improvement import dissolve, improve, linked, recut
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


@given(exits(max_n=60), st.integers(1, 12), st.data())
def test_a_pair_is_cut_as_well_as_any_axis_allows_and_saves_what_it_says(
    records: Records, k: int, data: st.DataObject
) -> None:
    feature = features(records, TOLL, HOW)
    drawn = data.draw(st.lists(st.booleans(), min_size=records.n, max_size=records.n))
    class_of = np.array(drawn, np.int32)
    groups = [np.flatnonzero(class_of == c).tolist() for c in range(2)]
    assume(min(map(len, groups)) >= k)
    problem = make_problem(records, TOLL, Promise(k=k))
    near, found = np.array([[1], [0]]), class_of.copy()
    _, saved = recut(
        feature, True, problem.arrays, k, linked(found, 2), 2, near, np.ones(2, bool)
    )  # fmt: skip
    places = feature.of().tolist()
    before, after = (
        sum(naive.squares([places[i] for i in np.flatnonzero(of == c)]) for c in range(2))
        for of in (class_of, found)
    )
    assert saved == pytest.approx(before - after, abs=1e-9)
    assert after <= min(before, _best_cut(places, groups[0] + groups[1], k)) + 1e-6
    assert np.bincount(found, minlength=2).min() >= k


def _best_cut(places: list[list[float]], pool: list[int], k: int) -> float:
    best = np.inf
    for axis in (np.array(places) - places[pool[0]]).T:
        order = sorted(pool, key=axis.__getitem__)
        if axis[order[0]] < axis[order[-1]]:
            for cut in range(k, len(pool) - k + 1):
                halves = ([places[i] for i in half] for half in (order[:cut], order[cut:]))
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
    saved = dissolve(feature, linked(found, len(classes)), mean, near)
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
