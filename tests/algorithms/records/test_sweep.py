import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.records.classes import SUPPRESSED
from anonymizer.algorithms.records.criteria import why_impossible
from anonymizer.algorithms.records.hilbert import hilbert_order
from anonymizer.algorithms.records.problem import make_problem
from anonymizer.algorithms.records.sweep import sweep
from anonymizer.domain.arrays import IntArray
from anonymizer.domain.promises import Promise
from anonymizer.domain.records import Attribute, Records, Schema
from tests.algorithms.records import naive, naive_classes
from tests.algorithms.records.made import (
    SCHEMA,
    categories,
    counts_alone,
    numbers,
    promises,
    records,
)

TABLES = st.booleans().flatmap(lambda repeats: records(repeats=repeats))
PROMISES = promises() | counts_alone()


def order_of(table: Records) -> IntArray:
    return hilbert_order(table.qi, [a.size for a in SCHEMA.qis])


def swept(table: Records, promise: Promise, schema: Schema = SCHEMA) -> list[int]:
    order = hilbert_order(table.qi, [a.size for a in schema.qis])
    found: list[int] = sweep(make_problem(table, schema, promise), order).tolist()
    return found


def table_of(*rows: tuple[int, ...], sensitive: int = 0) -> Records:
    """Records of a person each; the last `sensitive` values of a row are sensitive."""
    cells = np.array(rows, np.int32)
    cut = cells.shape[1] - sensitive
    own, theirs = np.ascontiguousarray(cells[:, :cut]), np.ascontiguousarray(cells[:, cut:])
    return Records(own, theirs, np.arange(len(rows), dtype=np.int32))


@given(TABLES, PROMISES)
def test_classes_close_as_soon_as_the_plain_words_say_so(table: Records, promise: Promise) -> None:
    order = order_of(table)
    expected = naive_classes.sweep(
        order.tolist(), lambda member: naive.keeps(table, SCHEMA, promise, member)
    )
    assert sweep(make_problem(table, SCHEMA, promise), order).tolist() == expected


@given(records(max_n=80), st.integers(1, 5), st.integers(1, 3), st.integers(1, 3))
def test_k_d_and_l_alone_give_the_classes_of_the_listing(
    table: Records,
    k: int,
    d: int,
    l: int,  # noqa: E741  the field's name for it
) -> None:
    unmarked = Schema(
        tuple(numbers("", *range(a.size)) for a in SCHEMA.qis), SCHEMA.sensitive, SCHEMA.sources
    )
    rows = np.hstack([table.qi, table.sensitive]).tolist()
    order = order_of(table).tolist()
    expected = naive_classes.sweep_by_sets(rows, order, k, [d, d, d, l])
    assert swept(table, Promise(k=k, d=d, l=l), unmarked) == expected


@given(TABLES, PROMISES)
def test_no_class_breaks_its_promise_and_numbers_have_no_gap(
    table: Records, promise: Promise
) -> None:
    class_of = swept(table, promise)
    classes = set(class_of) - {SUPPRESSED}
    assert classes == set(range(len(classes)))
    for c in classes:
        member = [i for i, of in enumerate(class_of) if of == c]
        assert naive.keeps(table, SCHEMA, promise, member)


@given(TABLES, PROMISES)
def test_nothing_is_suppressed_where_the_whole_table_keeps_the_promise(
    table: Records, promise: Promise
) -> None:
    if naive.keeps(table, SCHEMA, promise, range(table.n)):
        assert SUPPRESSED not in swept(table, promise)


@given(TABLES, PROMISES)
def test_what_is_called_impossible_is(table: Records, promise: Promise) -> None:
    reason = why_impossible(make_problem(table, SCHEMA, promise), SCHEMA)
    if reason is not None:
        assert set(swept(table, promise)) == {SUPPRESSED}


@given(TABLES, st.integers(1, 8), st.integers(1, 4), st.integers(1, 3))
def test_a_table_without_a_class_of_k_d_and_l_is_refused(
    table: Records,
    k: int,
    d: int,
    l: int,  # noqa: E741  the field's name for it
) -> None:
    promise = Promise(k=k, d=d, l=l)
    reason = why_impossible(make_problem(table, SCHEMA, promise), SCHEMA)
    assert (reason is not None) == (set(swept(table, promise)) == {SUPPRESSED})


SEX = categories("sex", "mf")
MARKED = categories("work", "ab", missing=True)
ILL = categories("illness", "xyz")


@pytest.mark.parametrize(
    ("promise", "reason"),
    [
        (Promise(k=5), "there are 4 persons, k = 5"),
        (Promise(k=2, d=3), "sex has 2 values, d = 3"),
        (Promise(k=2, d=2), "work has 1 value, d = 2"),
        (Promise(k=2, l=3), "illness has 2 values, l = 3"),
        (Promise(k=2, min_spread={"age": 9.0}), "age spans less than the 9 asked for"),
        (Promise(k=2, max_share=0.4), "sex has 2 values, and none may be more than 0.4 of a class"),
        (
            Promise(k=2, max_source_share=0.2),
            "(sex, work) has 3 values, and none may be more than 0.2 of a class",
        ),
        (Promise(k=2, entropy_l=2.5), "illness has 2 values, entropy-l = 2.5"),
        (Promise(k=2, l=2), None),
    ],
)
def test_a_refusal_names_the_attribute_and_no_value(promise: Promise, reason: str | None) -> None:
    schema = Schema((SEX, MARKED, numbers("age", 1, 2, 5)), (ILL,), ((0, 1), (2,)))
    table = table_of((0, 0, 0, 0), (1, 0, 1, 1), (1, 2, 2, 1), (0, 0, 0, 0), sensitive=1)
    assert why_impossible(make_problem(table, schema, promise), schema) == reason


def test_a_spread_is_refused_where_nobody_has_a_value() -> None:
    schema = Schema((numbers("age", 1, 2, missing=True),), (), ((0,),))
    problem = make_problem(table_of((2,), (2,)), schema, Promise(k=1, d=0, min_spread={"age": 1.0}))
    assert why_impossible(problem, schema) == "age spans less than the 1 asked for"


def test_the_rest_joins_the_last_class() -> None:
    schema = Schema((numbers("x", *range(8)),), (), ((0,),))
    table = table_of(*((x,) for x in range(7)))
    assert swept(table, Promise(k=3), schema) == [0, 0, 0, 1, 1, 1, 1]


def test_a_rest_that_would_break_a_share_takes_in_as_few_classes_as_keep_it() -> None:
    schema = Schema((SEX,), (), ((0,),))
    half, promise = (0, 1, 0, 1, 1, 0, 0), Promise(k=2, max_share=0.6)
    table = table_of(*((x,) for x in half))
    found = sweep(make_problem(table, schema, promise), np.arange(7)).tolist()
    assert found == [0, 0, 1, 1, 1, 1, 1]


def test_a_rest_that_no_class_can_take_is_suppressed_and_the_classes_stay() -> None:
    schema = Schema((SEX,), (), ((0,),))
    table = table_of((0,), (1,), (0,), (0,))
    found = sweep(make_problem(table, schema, Promise(k=2, max_share=0.5)), np.arange(4)).tolist()
    assert found == [0, 0, SUPPRESSED, SUPPRESSED]


def test_a_class_waits_for_k_persons_however_many_records_they_have() -> None:
    schema = Schema((numbers("x", *range(6)),), (), ((0,),))
    table = Records(
        np.arange(6, dtype=np.int32)[:, None],
        np.zeros((6, 0), np.int32),
        np.array([0, 0, 0, 1, 1, 1], np.int32),
    )
    assert swept(table, Promise(k=2), schema) == [0, 0, 0, 0, 0, 0]


@pytest.mark.parametrize("attribute", [ILL, numbers("salary", 1, 2, 10)], ids=lambda a: a.name)
@pytest.mark.parametrize("t", [0.001, 0.02, 0.1])
def test_closeness_is_found_the_moment_it_is_reached_in_a_long_class(
    attribute: Attribute, t: float
) -> None:
    schema = Schema((numbers("x", *range(200)),), (attribute,), ((0,),))
    rng = np.random.default_rng(3)
    table = table_of(*((x, int(rng.integers(3))) for x in range(200)), sensitive=1)
    promise = Promise(k=2, t=t)
    expected = naive_classes.sweep(
        range(200), lambda member: naive.keeps(table, schema, promise, member)
    )
    assert sweep(make_problem(table, schema, promise), np.arange(200)).tolist() == expected


def test_an_empty_table_has_no_class() -> None:
    assert swept(records_none(), Promise(k=1)) == []
    assert swept(records_none(), Promise(k=1, max_share=0.5)) == []


def records_none() -> Records:
    return Records(np.zeros((0, 3), np.int32), np.zeros((0, 1), np.int32), np.zeros(0, np.int32))
