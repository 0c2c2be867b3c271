"""Numbers of classes: by their content, not by how they were found."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.records.classes import SUPPRESSED, by_class, without_gaps
from anonymizer.algorithms.records.ordering import canonical

TABLES = st.lists(st.tuples(st.integers(-1, 4), st.integers(0, 2), st.integers(0, 2)), max_size=20)


@given(TABLES, st.permutations(range(5)), st.integers(0, 99))
def test_neither_the_order_of_a_table_nor_earlier_numbers_leave_a_trace(
    rows: list[tuple[int, int, int]], renamed: list[int], seed: int
) -> None:
    class_of = np.array([row[0] for row in rows], np.int32)
    cells = np.array([row[1:] for row in rows], np.int32).reshape(-1, 2)
    found = canonical(class_of, cells)
    assert ((found == SUPPRESSED) == (class_of == SUPPRESSED)).all()
    published = class_of != SUPPRESSED
    pairs = {*zip(class_of[published].tolist(), found[published].tolist(), strict=True)}
    assert len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs})
    assert {b for _, b in pairs} == {*range(len(pairs))}

    order = np.random.default_rng(seed).permutation(len(rows))
    other = np.where(published, np.array([*renamed, SUPPRESSED], np.int32)[class_of], SUPPRESSED)
    again = canonical(other[order].astype(np.int32), cells[order])
    listed = [
        sorted(zip(numbers.tolist(), map(tuple, each.tolist()), strict=True))
        for numbers, each in ((found, cells), (again, cells[order]))
    ]
    assert listed[0] == listed[1]


@given(TABLES)
def test_classes_are_numbered_in_the_order_of_their_sorted_records(
    rows: list[tuple[int, int, int]],
) -> None:
    class_of = np.array([row[0] for row in rows], np.int32)
    cells = np.array([row[1:] for row in rows], np.int32).reshape(-1, 2)
    found = canonical(class_of, cells)
    contents = [
        sorted(tuple(row[1:]) for row, each in zip(rows, found.tolist(), strict=True) if each == c)
        for c in range(int(found.max(initial=-1)) + 1)
    ]
    assert contents == sorted(contents)


@given(st.lists(st.integers(-1, 6) | st.integers(-1, 2**31 - 2), max_size=12))
def test_records_are_in_the_order_of_their_classes_however_many_there_are(
    numbers: list[int],
) -> None:
    found = by_class(np.array(numbers, np.int32)).tolist()
    assert found == sorted(range(len(numbers)), key=numbers.__getitem__)


@given(st.lists(st.integers(-1, 6) | st.integers(-1, 10**6), max_size=12))
def test_classes_without_gaps_keep_their_order(numbers: list[int]) -> None:
    found = without_gaps(np.array(numbers, np.int32))
    place = {number: i for i, number in enumerate(sorted({*numbers} - {SUPPRESSED}))}
    assert found.dtype == np.int32
    assert found.tolist() == [place.get(number, SUPPRESSED) for number in numbers]
