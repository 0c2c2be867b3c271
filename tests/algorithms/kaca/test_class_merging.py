import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from anonymizer.algorithms.kaca.class_merging import join_alike, merge
from anonymizer.algorithms.kaca.features import features
from anonymizer.algorithms.records.classes import SUPPRESSED
from anonymizer.algorithms.records.problem import make_problem
from anonymizer.domain.promises import Promise
from anonymizer.domain.records import Records
from tests.algorithms.kaca import naive
from tests.algorithms.kaca.made import HOW, TOLL, exits, toll
from tests.algorithms.records import naive as judges
from tests.algorithms.records.made import SCHEMA, promises
from tests.algorithms.records.made import records as tables


def drawn_classes(data: st.DataObject, n: int, most: int = 8) -> np.ndarray:
    drawn = data.draw(st.lists(st.integers(0, most), min_size=n, max_size=n))
    return np.unique(drawn, return_inverse=True)[1].astype(np.int32)


@given(exits(), st.data(), st.integers(1, 5))
def test_what_is_below_k_joins_the_nearest_that_is_not(
    records: Records, data: st.DataObject, k: int
) -> None:
    class_of = drawn_classes(data, records.n)
    feature = features(records, TOLL, HOW)
    assume(any(len(own) >= k for own in naive.members(class_of.tolist()).values()))
    expected = naive.merged(feature.of().tolist(), class_of.tolist(), k)
    assume(expected)
    found = merge(make_problem(records, TOLL, Promise(k=k)), feature, class_of)
    assert {frozenset(own) for own in naive.members(found.tolist()).values()} == expected[0]


@given(st.booleans().flatmap(lambda r: tables(repeats=r)), promises(), st.data())
def test_merging_ends_with_classes_that_keep_the_promise_and_leaves_good_ones_together(
    table: Records, promise: Promise, data: st.DataObject
) -> None:
    class_of = drawn_classes(data, table.n)
    problem = make_problem(table, SCHEMA, promise)
    found = merge(problem, features(table, SCHEMA), class_of)
    for own in naive.members(found.tolist()).values():
        assert judges.keeps(table, SCHEMA, promise, own)
    for own in naive.members(class_of.tolist()).values():
        assert len({int(found[i]) for i in own}) == 1
        if judges.keeps(table, SCHEMA, promise, own):
            assert found[own[0]] != SUPPRESSED


def test_near_classes_are_paired_until_one_keeps_the_promise() -> None:
    records = toll([0] * 8, [0, 1, 10, 11, 1000, 1001, 1010, 1011])
    class_of = np.arange(8, dtype=np.int32)
    problem = make_problem(records, TOLL, Promise(k=4))
    found = merge(problem, features(records, TOLL, HOW), class_of)
    assert found.tolist() == [0] * 4 + [1] * 4


def test_a_class_that_would_break_every_near_promise_is_suppressed_alone() -> None:
    # Trucks 0-3 in two sections each; a lone fifth exit cannot join without a share above half.
    records = toll([0, 1, 0, 1, 0], [5, 5, 6, 6, 7])
    problem = make_problem(records, TOLL, Promise(k=2, max_share=0.5))
    class_of = np.array([0, 0, 1, 1, 2], np.int32)
    problem_of_section = make_problem(records, TOLL, Promise(k=2))
    feature = features(records, TOLL, HOW)
    assert merge(problem_of_section, feature, class_of).tolist() == [0, 0, 1, 1, 1]
    minutes_apart = toll([0, 1, 0, 1, 0], [5, 6, 6, 7, 7])
    problem = make_problem(minutes_apart, TOLL, Promise(k=2, max_share=0.5))
    assert merge(problem, feature, class_of).tolist() == [0, 0, 1, 1, SUPPRESSED]


@given(exits(), st.data())
def test_classes_of_one_and_the_same_record_become_one_and_others_stay(
    records: Records, data: st.DataObject
) -> None:
    class_of = drawn_classes(data, records.n)
    found = join_alike(make_problem(records, TOLL, Promise(k=1)), records.qi, class_of)
    rows = [tuple(row) for row in records.qi.tolist()]
    key = {
        c: rows[own[0]] if len({rows[i] for i in own}) == 1 else c
        for c, own in naive.members(class_of.tolist()).items()
    }
    for i in range(records.n):
        for j in range(records.n):
            same = key[int(class_of[i])] == key[int(class_of[j])]
            assert (found[i] == found[j]) == same


def test_classes_of_one_and_the_same_record_stay_apart_where_one_would_break_the_promise() -> None:
    # Truck 0 is in both with the same value: together one value has two thirds of what is told.
    twins = Records(
        np.zeros((4, 3), np.int32),
        np.array([[0], [1], [0], [1]], np.int32),
        np.array([0, 1, 0, 2], np.int32),
    )
    class_of = np.array([0, 0, 1, 1], np.int32)
    alike = make_problem(twins, SCHEMA, Promise(k=2, entropy_l=2.0))
    assert join_alike(alike, twins.qi, class_of).tolist() == [0, 0, 1, 1]
    assert join_alike(make_problem(twins, SCHEMA, Promise(k=2)), twins.qi, class_of).tolist() == [
        0,
        0,
        0,
        0,
    ]
