import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.kaca.bisection import halve, has_persons
from anonymizer.algorithms.kaca.features import Points, features, sum_of_squares
from anonymizer.algorithms.records.problem import make_problem
from anonymizer.domain.arrays import Int32Array
from anonymizer.domain.promises import Promise
from anonymizer.domain.records import Records
from tests.algorithms.kaca import naive
from tests.algorithms.kaca.made import HOW, TOLL, exits, toll
from tests.algorithms.records import naive as judges
from tests.algorithms.records.made import SCHEMA, promises
from tests.algorithms.records.made import records as tables


def halved(records: Records, promise: Promise, *, by_size: bool) -> Int32Array:
    is_toll = records.qi.shape[1] == 2
    p = make_problem(records, TOLL if is_toll else SCHEMA, promise)
    feature = features(records, TOLL, HOW) if is_toll else features(records, SCHEMA)
    member, first_of = halve(feature, by_size, p.arrays, p.k)
    assert sorted(member.tolist()) == list(range(records.n))
    class_of = np.empty(records.n, np.int32)
    class_of[member] = np.repeat(np.arange(len(first_of) - 1), np.diff(first_of))
    return class_of


@given(exits(), st.integers(1, 5))
def test_halves_have_k_records_and_only_equal_ones_stay_in_a_class_of_twice_as_many(
    records: Records, k: int
) -> None:
    class_of = halved(records, Promise(k=k), by_size=True)
    for own in naive.members(class_of.tolist()).values():
        assert len(own) >= min(k, records.n)
        assert len(own) < 2 * k or len({tuple(records.qi[i].tolist()) for i in own}) == 1


@given(st.booleans().flatmap(lambda r: tables(repeats=r)), promises())
def test_what_keeps_the_promise_is_never_split_into_what_does_not(
    table: Records, promise: Promise
) -> None:
    class_of = halved(table, promise, by_size=False)
    if judges.keeps(table, SCHEMA, promise, range(table.n)):
        for own in naive.members(class_of.tolist()).values():
            assert judges.keeps(table, SCHEMA, promise, own)


def test_a_gap_between_clusters_is_where_the_cut_is() -> None:
    # Nine and nine make one class less than eighteen do.
    records = toll([0] * 9 + [4] * 9, [0] * 18)
    feature = features(records, TOLL, HOW)
    class_of = halved(records, Promise(k=5), by_size=True)
    assert sum_of_squares(feature, class_of) == pytest.approx(0)


def test_where_there_is_no_gap_no_class_is_lost_to_a_cut() -> None:
    records = toll([0] * 15, list(range(15)))
    assert halved(records, Promise(k=5), by_size=True).max() + 1 == 3


@given(exits(max_n=200, repeats=True), st.integers(1, 8))
def test_persons_are_counted_up_to_k_as_they_are_in_full(records: Records, k: int) -> None:
    member = np.arange(records.n)
    enough = len(set(records.person.tolist())) >= k
    assert has_persons(records.person, k, member) == enough


@given(exits(), st.integers(1, 5), st.integers(1, 2))
def test_records_are_halved_alike_whether_they_are_fewer_than_places_or_more(
    records: Records, k: int, copies: int
) -> None:
    many = features(records, TOLL, HOW)
    code, places = np.empty_like(many.code), []
    for j, start in enumerate(many.start.tolist()):
        own, at = np.unique(many.code[:, j], return_inverse=True)
        code[:, j] = at + np.arange(records.n) % copies * len(own)  # of equal places, one each
        places.append(np.tile(many.place[start + own], copies))
    starts = np.array([0, len(places[0])])
    few = Points(code, many.column, starts, np.concatenate(places))
    problem = make_problem(records, TOLL, Promise(k=k)).arrays
    found, expected = (halve(points, True, problem, k) for points in (few, many))
    assert found[0].tolist() == expected[0].tolist()
    assert found[1].tolist() == expected[1].tolist()
