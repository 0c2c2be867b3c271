"""The margin: every criterion holds whichever so many members of a class an adversary made up."""

from dataclasses import replace
from math import inf, log
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymizer.algorithms.kaca.features import Feature
from anonymizer.algorithms.models.registry import MODELS
from anonymizer.algorithms.records.classes import SUPPRESSED
from anonymizer.algorithms.records.content_verification import broken_contents, held_by_lists
from anonymizer.algorithms.records.criteria import class_keeps
from anonymizer.algorithms.records.former import Former
from anonymizer.algorithms.records.problem import make_problem
from anonymizer.algorithms.records.tally import blank_tally, tally_keeps, tally_members
from anonymizer.algorithms.records.verification import held_by, verify_classes
from anonymizer.domain.promises import Promise
from anonymizer.domain.records import Records, Schema
from tests.algorithms.records import naive
from tests.algorithms.records.made import SCHEMA, categories, numbers, promises, records

PAY = replace(
    SCHEMA, sensitive=(categories("illness", "fgh", missing=True), numbers("pay", 0, 1, 3, 10))
)


def with_margin(*, least: int = 1) -> st.SearchStrategy[Promise]:
    def widened(promise: Promise, margin: int) -> Promise:
        return replace(promise, k=promise.k + margin, margin=margin)

    return st.builds(widened, promises(), st.integers(least, 3))


@st.composite
def paid(draw: st.DrawFn) -> Records:
    """Small tables with two sensitive attributes."""
    table = draw(records(max_n=11))
    codes = [draw(st.lists(st.integers(0, 3), min_size=table.n, max_size=table.n)) for _ in "ab"]
    return replace(table, sensitive=np.ascontiguousarray(np.array(codes, np.int32).T))


@settings(max_examples=150)
@given(paid(), with_margin())
def test_a_class_keeps_its_margin_exactly_when_every_removal_leaves_the_criteria(
    table: Records, promise: Promise
) -> None:
    member = np.arange(table.n)
    no_t: dict[str, Any] = {"t": inf}
    exact = replace(promise, **no_t)
    found = class_keeps(make_problem(table, PAY, exact).arrays, exact.k, member)
    assert found == naive.keeps(table, PAY, exact, member.tolist())
    broken = verify_classes(table, PAY, exact, np.zeros(table.n, np.int32))
    assert found == (not broken)


@settings(max_examples=150)
@given(paid(), with_margin())
def test_closeness_with_a_margin_is_bounded_by_what_every_removal_leaves(
    table: Records, promise: Promise
) -> None:
    member = np.arange(table.n)
    close = Promise(k=promise.k, t=0.5 if promise.t == inf else promise.t, margin=promise.margin)
    # Of a class that is not the whole table.
    class_of = np.where(member % 4 == 3, SUPPRESSED, 0).astype(np.int32)
    member = np.flatnonzero(class_of == 0)
    keeps = class_keeps(make_problem(table, PAY, close).arrays, close.k, member)
    assert keeps == (not verify_classes(table, PAY, close, class_of))
    if keeps:
        assert naive.keeps(table, PAY, close, member.tolist())
    plain = replace(close, margin=0)
    assert class_keeps(make_problem(table, PAY, plain).arrays, plain.k, member) == naive.keeps(
        table, PAY, plain, member.tolist()
    )


@pytest.mark.parametrize(("t", "keeps"), [(0.25, False), (0.35, True)])
def test_who_leaves_from_below_takes_a_class_away_from_the_table(t: float, *, keeps: bool) -> None:
    """Eight of ten earn little; of a class of four three, and one if two of these leave."""
    schema = Schema((), (numbers("pay", 0, 1),), ())
    pay = np.array([[0]] * 3 + [[1]] + [[0]] * 5 + [[1]], np.int32)
    table = Records(np.zeros((10, 0), np.int32), pay, np.arange(10, dtype=np.int32))
    promise, member = Promise(k=4, t=t, margin=2), np.arange(4)
    assert class_keeps(make_problem(table, schema, promise).arrays, 4, member) is keeps
    assert naive.keeps(table, schema, promise, member.tolist()) is keeps


@settings(max_examples=100)
@given(paid(), with_margin(least=0), st.data())
def test_a_tally_keeps_what_the_class_keeps(
    table: Records, promise: Promise, data: st.DataObject
) -> None:
    problem = make_problem(table, PAY, promise)
    tally = blank_tally(problem)
    for _ in range(2):  # the second class finds the marks of the first
        chosen = data.draw(st.sets(st.integers(0, table.n - 1), min_size=1))
        member = np.array(sorted(chosen))
        tally_members(member, tally)
        assert bool(tally_keeps(tally)) == class_keeps(problem.arrays, problem.k, member)


METHODS = [
    # A search as plain Python takes minutes.
    pytest.param(name, how, marks=[pytest.mark.compiled] if how == "best" else [])
    for name in ("kd", "kld", "kaca", "cells")
    for how in MODELS[name].methods
]


@pytest.mark.parametrize(("model", "how"), METHODS)
@settings(max_examples=5, deadline=None)
@given(table=records(max_n=60), promise=with_margin())
def test_every_method_makes_classes_with_their_margin(
    model: str, how: str, table: Records, promise: Promise
) -> None:
    if model == "kaca":
        promise = Promise(k=promise.k, d=promise.d, l=promise.l, margin=promise.margin)
    turns = iter(range(20, 0, -1))
    former = Former(
        schema=SCHEMA,
        promise=promise,
        model=MODELS[model],
        method=how,
        features=features_of(model),
    )
    class_of = former.classes(table, time_left=lambda: next(turns, 0) / 20)
    assert not verify_classes(table, SCHEMA, promise, class_of)


def features_of(model: str) -> list[Feature]:
    return [Feature(None, 1.0, 1.0) for _ in SCHEMA.qis] if model == "kaca" else []


def test_one_who_says_something_else_does_not_make_a_class_diverse() -> None:
    """Forty brakes and one engine: whoever owns the engine reads the forty."""
    schema = Schema((), (categories("fault", ["brakes", "engine"]),), ())
    fault = np.array([[0]] * 40 + [[1]], np.int32)
    table = Records(np.zeros((41, 0), np.int32), fault, np.arange(41, dtype=np.int32))
    one = np.zeros(41, np.int32)
    assert not verify_classes(table, schema, Promise(k=10, l=2), one)
    for n_engines, keeps in ((1, False), (3, False), (4, True)):
        table.sensitive[41 - n_engines :] = 1
        promise = Promise(k=13, l=2, margin=3)
        assert (not verify_classes(table, schema, promise, one)) is keeps
        problem = make_problem(table, schema, promise)
        assert class_keeps(problem.arrays, problem.k, np.arange(41)) is keeps


def test_a_margin_needs_one_record_of_each_person() -> None:
    table = Records(np.zeros((2, 3), np.int32), np.zeros((2, 1), np.int32), np.zeros(2, np.int32))
    with pytest.raises(ValueError, match="one record of each person"):
        make_problem(table, SCHEMA, Promise(k=2, margin=1))


lists = st.lists(st.sampled_from([None, "a", "b", "c"]), min_size=4, max_size=9)


@given(lists, st.integers(0, 3), st.integers(1, 3), st.sampled_from([1.0, 1.5, 2.0]))
def test_what_leaves_is_refused_exactly_where_the_records_would_be(
    values: list[str | None],
    margin: int,
    least: int,
    entropy_l: float,
) -> None:
    promise = Promise(k=len(values), l=least, entropy_l=entropy_l, margin=margin)
    content = {"k": len(values), "count": len(values), "sensitive": {"fault": values}}
    code = np.array([["abc".index(v) if v else 3] for v in values], np.int32)
    n = len(values)
    table = Records(np.zeros((n, 0), np.int32), code, np.arange(n, dtype=np.int32))
    schema = Schema((), (categories("fault", "abc", missing=True),), ())
    holds = not verify_classes(table, schema, promise, np.zeros(n, np.int32))
    assert (not broken_contents([content], promise, {"fault": ()})) is holds


@given(
    st.lists(st.sampled_from([9.0, 2.5, None, 4.0, 10.0]), min_size=1, max_size=6),
    st.integers(0, 3),
    st.sampled_from([1.0, 6.5, 7.5]),
)
def test_a_reader_finds_the_span_that_the_records_have(
    values: list[float | None], margin: int, least: float
) -> None:
    """In whatever order the numbers stand; a criterion that is read may ask for it."""
    pay = numbers("pay", 2.5, 4.0, 9.0, 10.0, missing=True)
    code = np.array([4 if v is None else [*pay.position].index(v) for v in values])
    n_one = np.zeros(len(values), np.int64)
    of_records = held_by(n_one, code, np.zeros(0, np.int32), pay)
    of_content = held_by_lists([values], ())
    assert of_content.spread(margin).tolist() == of_records.spread(margin).tolist()
    assert held_by_lists([values, ["a", None]], ()).spread(0)[1] <= 0 < least


@pytest.mark.parametrize(
    "spoilt",
    [
        {"count": 5},
        {"k": 3},
        {"sensitive": {"fault": [0.0, 9.0, 9.0]}},
        {"sensitive": {"fault": [0.0, 1.0, 2.0, 3.0]}},
        {"sensitive": {"fault": [0.0, 0.0, 0.0, 9.0, 9.0, 9.0]}},  # as diverse, but of six
        {"sensitive": {"fault": [0.0, 4.0, 5.0, 9.0], "other": [None] * 3}},
        {"measures": {"fuel": {"n": 3, "sum": 1, "mean": 1}}},
        {"measures": {"fuel": {"n": 5, "sum": 1, "mean": 1}}},
    ],
)
def test_content_that_weighs_somebody_more_is_refused(spoilt: dict[str, object]) -> None:
    good = {
        "k": 4,
        "count": 4,
        "sensitive": {"fault": [0.0, 4.0, 5.0, 9.0], "other": [None] * 4},
        "measures": {"fuel": {"n": 4, "sum": 9, "mean": 2.25}, "load": None},
    }
    promise, bands = Promise(k=4, l=2, entropy_l=2.0), {"fault": (5.0,)}
    assert broken_contents([good], promise, bands) == set()
    assert broken_contents([good, good | spoilt], promise, bands) == {1}
    assert log(2) <= log(promise.entropy_l)


JOB, PAY_QI = categories("job", "abcd"), numbers("pay", 0, 1, 3, 10)
HALF = Promise(k=4, max_share=0.5, margin=1)
SOURCE = Promise(k=4, max_source_share=0.5, margin=1)
WIDE = Promise(k=4, min_spread={"pay": 5.0}, margin=1)


@pytest.mark.parametrize(
    ("promise", "codes"),
    [(HALF, [[0, 0], [0, 1], [1, 2], [2, 3]]), (SOURCE, [[0, 0], [0, 0], [1, 2], [2, 3]]),
     (WIDE, [[0, 0], [1, 1], [2, 2], [3, 3]])],
)  # fmt: skip
def test_verification_judges_shares_and_spread_by_those_who_stay(
    promise: Promise, codes: list[list[int]]
) -> None:
    """One of four leaves: of three, two are alike, or the highest is gone."""
    schema = Schema((JOB, PAY_QI), (), ((0, 1),))
    qi, person = np.array(codes, np.int32), np.arange(4, dtype=np.int32)
    table, one = Records(qi, np.zeros((4, 0), np.int32), person), np.zeros(4, np.int32)
    assert verify_classes(table, schema, promise, one)
    assert not verify_classes(table, schema, replace(promise, margin=0), one)
