from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.records.bucket_sweep import bucket_sweep
from anonymizer.algorithms.records.classes import SUPPRESSED
from anonymizer.algorithms.records.hilbert import hilbert_order
from anonymizer.algorithms.records.problem import make_problem
from anonymizer.algorithms.records.sweep import sweep
from anonymizer.domain.promises import Promise
from anonymizer.domain.records import Records, Schema
from tests.algorithms.records import naive
from tests.algorithms.records.made import SCHEMA, numbers, promises, records

TABLES = st.booleans().flatmap(lambda repeats: records(repeats=repeats))
UNMARKED = Schema(
    tuple(numbers("", *range(a.size)) for a in SCHEMA.qis), SCHEMA.sensitive, SCHEMA.sources
)


def swept(table: Records, promise: Promise, schema: Schema) -> list[int]:
    order = hilbert_order(table.qi, [a.size for a in schema.qis])
    problem = make_problem(table, schema, promise)
    found: list[int] = bucket_sweep(problem, order, n_sensitive=len(schema.sensitive)).tolist()
    return found


def naive_buckets(
    rows: Sequence[Sequence[int]], order: Sequence[int], promise: Promise
) -> list[int]:
    """The corrected listing, with a list of open records in place of pointers."""
    n_qis = len(rows[0]) - 1
    left = list(order)
    done: list[list[int]] = []
    member: list[int] = []

    def values(column: int) -> set[int]:
        return {rows[i][column] for i in member}

    while left:
        member.append(left.pop(0))
        if len(member) < promise.k or any(len(values(c)) < promise.d for c in range(n_qis)):
            continue
        while len(values(n_qis)) < promise.l:
            new = [i for i in left if rows[i][n_qis] not in values(n_qis)]
            if not new:
                break
            left.remove(new[0])
            member.append(new[0])
        if len(values(n_qis)) >= promise.l:
            done.append(member)
            member = []
    if done:
        done[-1] += member
    class_of = [SUPPRESSED] * len(rows)
    for c, members in enumerate(done):
        for i in members:
            class_of[i] = c
    return class_of


@given(records(max_n=50), st.integers(1, 5), st.integers(1, 3), st.integers(1, 3))
def test_the_classes_are_those_of_the_corrected_listing(
    table: Records,
    k: int,
    d: int,
    l: int,  # noqa: E741  the field's name for it
) -> None:
    rows = np.hstack([table.qi, table.sensitive]).tolist()
    order = hilbert_order(table.qi, [a.size for a in UNMARKED.qis]).tolist()
    expected = naive_buckets(rows, order, promise := Promise(k=k, d=d, l=l))
    assert swept(table, promise, UNMARKED) == expected


@given(TABLES, promises())
def test_no_class_breaks_its_promise_whatever_is_asked_for(
    table: Records, promise: Promise
) -> None:
    class_of = swept(table, promise, SCHEMA)
    classes = set(class_of) - {SUPPRESSED}
    assert classes == set(range(len(classes)))
    for c in classes:
        member = [i for i, of in enumerate(class_of) if of == c]
        assert naive.keeps(table, SCHEMA, promise, member)


@given(records(max_n=80), st.integers(1, 5), st.integers(1, 3))
def test_without_l_the_classes_are_those_of_the_plain_sweep(table: Records, k: int, d: int) -> None:
    order = hilbert_order(table.qi, [a.size for a in SCHEMA.qis])
    plain = sweep(make_problem(table, SCHEMA, Promise(k=k, d=d)), order).tolist()
    assert swept(table, Promise(k=k, d=d), SCHEMA) == plain


def test_a_class_takes_a_lacking_value_from_further_along_the_order() -> None:
    qi = np.arange(6, dtype=np.int32)[:, None] // 2
    table = Records(
        qi=qi,
        sensitive=np.array([[0], [0], [0], [0], [1], [1]], np.int32),
        person=np.arange(6, dtype=np.int32),
    )
    schema = Schema((numbers("x", 0, 1, 2),), (numbers("s", 0, 1),), ((0,),))
    assert swept(table, Promise(k=2, l=2), schema) == [0, 0, 1, 1, 0, 1]


def test_an_empty_table_has_no_classes() -> None:
    none = Records(
        qi=np.zeros((0, 3), np.int32),
        sensitive=np.zeros((0, 1), np.int32),
        person=np.zeros(0, np.int32),
    )
    assert swept(none, Promise(k=2, l=2), SCHEMA) == []
