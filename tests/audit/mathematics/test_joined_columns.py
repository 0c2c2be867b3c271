"""What columns say together, against a naive twin."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.audit.mathematics.joined_columns import (
    PlacedColumn,
    fewer_records,
    joined_columns,
    some_of,
)
from anonymizer.audit.mathematics.repeated_columns import RankedColumn, TriedRecords

CELLS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=40)


def placed(values: list[int], *, numeric: bool) -> PlacedColumn:
    places, rank = np.unique(values, return_inverse=True)
    ranked = RankedColumn(rank.astype(np.int64), numeric)
    return PlacedColumn(ranked, places[rank].astype(np.float64) / 10)


@given(CELLS)
def test_numbers_are_added_and_subtracted_and_ranks_are_those_of_the_exact_results(
    cells: list[tuple[int, int]],
) -> None:
    ones, others = zip(*cells, strict=True)
    added, subtracted, _ = joined_columns(
        placed(list(ones), numeric=True), placed(list(others), numeric=True)
    )
    for found, exact in (
        (added, [a + b for a, b in cells]),
        (subtracted, [a - b for a, b in cells]),
    ):
        assert found.rank.tolist() == [sorted(set(exact)).index(each) for each in exact]


@given(st.lists(st.tuples(*[st.integers(0, 9)] * 3), min_size=1, max_size=40))
def test_three_numbers_are_added_and_subtracted_in_each_way(
    cells: list[tuple[int, int, int]],
) -> None:
    *sums, _ = joined_columns(
        *(placed(list(each), numeric=True) for each in zip(*cells, strict=True))
    )
    for found, (x, y) in zip(sums, [(1, 1), (1, -1), (-1, 1), (-1, -1)], strict=True):
        exact = [a + x * b + y * c for a, b, c in cells]
        assert found.rank.tolist() == [sorted(set(exact)).index(each) for each in exact]


@given(CELLS)
def test_categories_have_the_cells_of_a_grid_and_equal_pairs_one_cell(
    cells: list[tuple[int, int]],
) -> None:
    ones, others = zip(*cells, strict=True)
    [grid] = joined_columns(placed(list(ones), numeric=False), placed(list(others), numeric=False))
    cell_of = dict(zip(cells, grid.rank.tolist(), strict=True))
    assert [cell_of[each] for each in cells] == grid.rank.tolist()
    n_rows = max(int((len(cells) / 4) ** 0.5), 1)
    assert len(set(grid.rank.tolist())) <= max(len(cells) / 4, 1)
    if max(len(set(ones)), len(set(others))) <= n_rows:
        assert len(set(cell_of.values())) == len(cell_of)


@given(st.lists(st.integers(-1, 6), min_size=1, max_size=60), st.integers(1, 20))
def test_only_classes_that_are_there_as_a_whole_are_tried(class_of: list[int], n: int) -> None:
    rows = np.arange(len(class_of))
    drawn = TriedRecords(rows, np.array(class_of), rows % 2)
    places = rows[:n]
    few = some_of(drawn, places)
    for at, found in zip(places, few.class_of, strict=True):
        own = [i for i, each in enumerate(class_of) if each == class_of[at]]
        whole = class_of[at] >= 0 and max(own) < n
        assert found == (class_of[at] if whole else -1)
    assert few.fold.tolist() == drawn.fold[places].tolist()


def test_of_many_records_whole_classes_are_tried_and_others_learned_from() -> None:
    n = 30_000
    drawn = TriedRecords(np.arange(n), np.arange(n) // 10 - 500, np.arange(n) % 2)
    drawn = TriedRecords(drawn.rows, np.maximum(drawn.class_of, -1), drawn.fold)
    places = fewer_records(drawn, np.random.default_rng(0))
    few = some_of(drawn, places)
    assert (few.class_of >= 0).sum() >= 3_000
    assert len(places) <= 12_010
