from collections import Counter
from itertools import groupby

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.records.ordering import arranged, numbered, published_order
from anonymizer.domain.records import Records
from tests.algorithms.records.made import records


@given(records(repeats=True), st.integers(0, 99))
def test_the_order_of_the_table_leaves_no_trace(table: Records, seed: int) -> None:
    shuffled = np.random.default_rng(seed).permutation(table.n)
    other = table.only(shuffled)
    one, two = arranged(table, table.sensitive), arranged(other, other.sensitive)
    assert sorted(one.tolist()) == list(range(table.n))
    assert table.qi[one].tolist() == other.qi[two].tolist()
    assert table.sensitive[one].tolist() == other.sensitive[two].tolist()
    assert table.person[one].tolist() == other.person[two].tolist()


@given(records())
def test_records_that_are_alike_are_next_to_each_other_with_their_sensitive_values_mixed(
    table: Records,
) -> None:
    order = arranged(table, table.sensitive)
    rows = [(tuple(table.qi[i].tolist()), int(table.sensitive[i, 0])) for i in order]
    assert [qi for qi, _ in rows] == sorted(qi for qi, _ in rows)
    for _, alike in groupby(rows, key=lambda row: row[0]):
        values = [value for _, value in alike]
        total, seen = Counter(values), Counter[int]()
        for n, value in enumerate(values, start=1):
            seen[value] += 1
            # Never more than one record ahead of or behind its share.
            assert abs(seen[value] - n * total[value] / len(values)) <= len(total)


@given(records())
def test_the_order_is_that_of_its_words(table: Records) -> None:
    """By quasi-identifiers, then by the share of the records of one content that came before."""
    rows = list(
        zip(table.qi.tolist(), table.sensitive.tolist(), table.person.tolist(), strict=True)
    )
    alike = Counter((tuple(qi), tuple(sa)) for qi, sa, _ in rows)
    before, key = Counter[tuple[tuple[int, ...], tuple[int, ...]]](), {}
    for i in sorted(range(table.n), key=lambda i: (rows[i][2], i)):
        content = tuple(rows[i][0]), tuple(rows[i][1])
        share = (before[content] + 0.5) / alike[content]
        before[content] += 1
        key[i] = (content[0], share, content, rows[i][2])
    order = arranged(table, table.sensitive).tolist()
    assert [key[i] for i in order] == sorted(key.values())


def test_two_values_in_equal_number_alternate() -> None:
    table = Records(
        qi=np.zeros((6, 1), np.int32),
        sensitive=np.array([[0], [0], [0], [1], [1], [1]], np.int32),
        person=np.arange(6, dtype=np.int32),
    )
    order = arranged(table, table.sensitive)
    assert table.sensitive[order, 0].tolist() == [0, 1, 0, 1, 0, 1]


def test_no_records_have_an_order() -> None:
    nothing = np.zeros((0, 2), np.int32)
    table = Records(nothing, nothing, np.zeros(0, np.int32))
    assert arranged(table, nothing).tolist() == []


def test_published_rows_are_sorted_by_class_then_by_what_is_told() -> None:
    class_of = np.array([1, -1, 0, 1, 0], np.int32)
    open_code = np.array([[2, 0], [0, 0], [1, 1], [1, 5], [1, 0]], np.int32)
    assert published_order(class_of, open_code).tolist() == [4, 2, 3, 0]


@given(records(), st.integers(1, 10**6))
def test_equal_rows_have_one_number_and_numbers_rise_with_the_rows(
    table: Records, step: int
) -> None:
    """Codes far apart leave most of the possible numbers out: they are sorted, not looked up."""
    rows = [tuple(row) for row in (table.qi.astype(np.int64) * step).tolist()]
    place = {row: i for i, row in enumerate(sorted(set(rows)))}
    assert numbered(np.array(rows).reshape(table.qi.shape)).tolist() == [place[row] for row in rows]
