from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.records.classes import SUPPRESSED
from anonymizer.algorithms.records.criteria import class_keeps
from anonymizer.algorithms.records.problem import make_problem
from anonymizer.algorithms.records.verification import (
    ONE_EACH,
    PARTS,
    Violation,
    short_classes,
    verify_classes,
)
from anonymizer.domain.arrays import Int32Array
from anonymizer.domain.promises import Promise
from anonymizer.domain.records import Attribute, Records, Schema
from anonymizer.errors import SettingsError
from tests.algorithms.records import naive
from tests.algorithms.records.made import SCHEMA, numbers, promises
from tests.algorithms.records.made import records as tables
from tests.algorithms.records.partitions import partitions
from tests.examples import many

NEUTRAL = Promise(k=1, d=0, l=0)


def without_all_but(promise: Promise, part: str) -> Promise:
    return replace(NEUTRAL, **{part: getattr(promise, part)})


@many(3)
@given(partitions(), promises())
def test_exactly_the_classes_that_break_a_part_are_named_with_it(
    made: tuple[Records, Int32Array], promise: Promise
) -> None:
    table, class_of = made
    found = verify_classes(table, SCHEMA, promise, class_of)
    named = {(v.class_number, v.part) for v in found}
    for c in range(class_of.max(initial=-1) + 1):
        member = np.flatnonzero(class_of == c).tolist()
        heavy = {p for p, n in Counter(table.person[class_of >= 0].tolist()).items() if n > 1}
        is_repeated = not heavy.isdisjoint(table.person[member].tolist())
        assert ((c, ONE_EACH) in named) == is_repeated
        for part in set(PARTS) - {ONE_EACH}:
            keeps = naive.keeps(table, SCHEMA, without_all_but(promise, part), member)
            assert ((c, part) in named) == (not keeps), part


@given(partitions(), promises(), st.sampled_from([1, 3, 10**6]))
def test_what_is_found_does_not_depend_on_how_far_apart_the_numbers_of_classes_are(
    made: tuple[Records, Int32Array], promise: Promise, step: int
) -> None:
    table, class_of = made
    apart = np.where(class_of < 0, class_of, class_of * step).astype(np.int32)
    found = verify_classes(table, SCHEMA, promise, class_of)
    expected = [replace(each, class_number=each.class_number * step) for each in found]
    assert [*verify_classes(table, SCHEMA, promise, apart)] == expected


GOOD = Records(
    qi=np.array([[0, 0, 0], [1, 1, 1], [2, 2, 2], [3, 3, 0]] * 2, np.int32),
    sensitive=np.array([[0], [1], [2], [0]] * 2, np.int32),
    person=np.arange(8, dtype=np.int32),
)
HALVES = np.repeat([0, 1], 4).astype(np.int32)
STRICT = Promise(
    k=4,
    d=3,
    l=3,
    max_share=0.5,
    max_source_share=0.25,
    min_spread={"age": 8.0},
    entropy_l=2.8,
    t=0.0,
)


def spoilt(*, row: int, qi: tuple[int, ...] = (), illness: int = -1, person: int = -1) -> Records:
    """`GOOD`, with one record changed."""
    changed = Records(GOOD.qi.copy(), GOOD.sensitive.copy(), GOOD.person.copy())
    if qi:
        changed.qi[row] = qi
    if illness >= 0:
        changed.sensitive[row] = illness
    if person >= 0:
        changed.person[row] = person
    return changed


def test_a_release_that_keeps_all_is_found_in_order() -> None:
    assert verify_classes(GOOD, SCHEMA, STRICT, HALVES) == ()


@pytest.mark.parametrize(
    ("broken", "promise", "violation"),
    [
        (spoilt(row=5, person=4), Promise(k=4), Violation(1, "k")),
        (spoilt(row=2, qi=(2, 2, 0)), Promise(k=4, d=3), Violation(0, "d", "home")),
        (
            spoilt(row=2, qi=(2, 2, 0)),
            Promise(k=4, max_share=0.5),
            Violation(0, "max_share", "home"),
        ),
        (
            spoilt(row=4, qi=(1, 1, 0)),
            Promise(k=4, max_source_share=0.25),
            Violation(1, "max_source_share", "age + work"),
        ),
        (
            spoilt(row=3, qi=(2, 3, 0)),
            Promise(k=4, min_spread={"age": 8.0}),
            Violation(0, "min_spread", "age"),
        ),
        (spoilt(row=6, illness=0), Promise(k=4, l=3), Violation(1, "l", "illness")),
        (
            spoilt(row=6, illness=0),
            Promise(k=4, entropy_l=2.0),
            Violation(1, "entropy_l", "illness"),
        ),
    ],
)
def test_each_kind_of_breach_is_found_alone_where_it_is(
    broken: Records, promise: Promise, violation: Violation
) -> None:
    found = verify_classes(broken, SCHEMA, promise, HALVES)
    assert [v for v in found if (v.part, v.attribute) == (violation.part, violation.attribute)] == [
        violation
    ]
    assert {v.class_number for v in found} == {violation.class_number}


def test_a_class_unlike_everybody_is_found() -> None:
    far, close = (Promise(k=1, d=0, l=0, t=t) for t in (0.12, 0.125))
    # 0, 1, 2, 0 twice became 0, 1, 2, 0 and 0, 1, 1, 0: 1/8 off each.
    found = verify_classes(spoilt(row=6, illness=1), SCHEMA, far, HALVES)
    assert found == (Violation(0, "t", "illness"), Violation(1, "t", "illness"))
    assert not verify_classes(spoilt(row=6, illness=1), SCHEMA, close, HALVES)


@st.composite
def paid_otherwise(draw: st.DrawFn) -> tuple[Records, Int32Array, list[Attribute]]:
    """A table with classes, and three numbers of the same order: as codes, far, and with gaps."""
    n = draw(st.integers(2, 20))
    codes, classes = st.integers(0, 4), st.integers(0, 2)
    pay: Int32Array = np.array([draw(st.lists(codes, min_size=n, max_size=n))], np.int32).T
    of = np.array(draw(st.lists(classes, min_size=n, max_size=n)), np.int32)
    table = Records(np.zeros((n, 0), np.int32), pay, np.arange(n, dtype=np.int32))
    places = [range(5), (0, 1, 2, 3, 1e8), sorted(draw(st.sets(st.floats(0, 1e9), min_size=5)))[:5]]
    return table, of, [numbers("pay", *each) for each in places]


@given(paid_otherwise(), st.sampled_from([0.05, 0.1, 0.2, 0.4]), st.integers(0, 1))
def test_no_number_far_away_and_no_monotone_map_of_the_numbers_changes_t(
    made: tuple[Records, Int32Array, list[Attribute]], t: float, margin: int
) -> None:
    table, class_of, numbered = made
    promise = Promise(k=1, d=0, l=0, t=t, margin=margin)
    schemas = [Schema((), (each,), ()) for each in numbered]
    found = [verify_classes(table, each, promise, class_of) for each in schemas]
    assert found[0] == found[1] == found[2]
    member = np.flatnonzero(class_of == class_of[0])
    keeps = [class_keeps(make_problem(table, s, promise).arrays, 1, member) for s in schemas]
    assert keeps == [all(each.class_number != class_of[0] for each in found[0])] * 3


def test_numbers_are_as_far_apart_as_their_ranks() -> None:
    """Ten million is the next value after one; no value between them occurs."""
    schema = Schema(qis=(), sensitive=(numbers("pay", 0, 1, 5, 1e7),), sources=())
    table = Records(
        np.zeros((4, 0), np.int32),
        np.array([[0], [1], [0], [3]], np.int32),
        np.arange(4, dtype=np.int32),
    )
    halves = np.array([0, 0, 1, 1], np.int32)
    # A quarter of each class crosses one of two gaps.
    assert not verify_classes(table, schema, Promise(k=1, d=0, l=0, t=0.125), halves)
    assert len(verify_classes(table, schema, Promise(k=1, d=0, l=0, t=0.124), halves)) == 2


def test_numbers_of_classes_may_have_gaps_and_what_is_left_out_is_not_judged() -> None:
    class_of = np.array([SUPPRESSED] * 4 + [7] * 4, np.int32)
    assert verify_classes(GOOD, SCHEMA, Promise(k=5), class_of) == (Violation(7, "k"),)
    nobody = np.full(8, SUPPRESSED, np.int32)
    assert verify_classes(GOOD, SCHEMA, Promise(k=5), nobody) == ()


@pytest.mark.parametrize(
    ("table", "promise", "class_of"),
    [
        (spoilt(row=0, qi=(5, 0, 0)), NEUTRAL, HALVES),
        (spoilt(row=0, qi=(0, -1, 0)), NEUTRAL, HALVES),
        (spoilt(row=0, illness=3), NEUTRAL, HALVES),
        (GOOD, NEUTRAL, HALVES[:-1]),
        (GOOD, Promise(k=1, min_spread={"home": 1.0}), HALVES),
        (GOOD, Promise(k=1, min_spread={"height": 1.0}), HALVES),
    ],
)
def test_what_makes_no_sense_is_refused(
    table: Records, promise: Promise, class_of: Int32Array
) -> None:
    with pytest.raises((ValueError, SettingsError), match=r"domain|shapes|min_spread"):
        verify_classes(table, SCHEMA, promise, class_of)


@many(3)
@given(partitions(), promises(), st.data())
def test_the_order_of_the_records_changes_nothing(
    made: tuple[Records, Int32Array], promise: Promise, data: st.DataObject
) -> None:
    table, class_of = made
    order = np.array(data.draw(st.permutations(range(table.n))))
    assert verify_classes(table, SCHEMA, promise, class_of) == verify_classes(
        table.only(order), SCHEMA, promise, class_of[order]
    )


@many(3)
@given(tables(repeats=True), st.data(), st.integers(1, 3))
def test_a_class_of_too_few_persons_is_found_however_many_records_it_has(
    table: Records, data: st.DataObject, k: int
) -> None:
    drawn = data.draw(st.lists(st.integers(-1, 4), min_size=table.n, max_size=table.n))
    persons = {c: {int(table.person[i]) for i in range(table.n) if drawn[i] == c} for c in drawn}
    found = short_classes(np.array(drawn, np.int32), table.person, k)
    assert found.tolist() == sorted(c for c, who in persons.items() if c >= 0 and len(who) < k)
