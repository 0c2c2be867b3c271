"""Minimal sample uniques, against looking at every set of attributes of every record."""

from collections.abc import Sequence
from itertools import combinations
from math import factorial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.records.special_uniques import special_uniques, unique_by_one

TABLES = st.integers(1, 5).flatmap(
    lambda m: st.lists(st.lists(st.integers(0, 3), min_size=m, max_size=m), min_size=1, max_size=12)
)


def _minimal_sets(rows: Sequence[Sequence[int]], i: int) -> list[tuple[int, ...]]:
    def alone(of: tuple[int, ...]) -> bool:
        return not any(
            all(rows[i][c] == other[c] for c in of) for n, other in enumerate(rows) if n != i
        )

    sets = [
        of for size in range(1, len(rows[i]) + 1) for of in combinations(range(len(rows[i])), size)
    ]
    unique = [of for of in sets if alone(of)]
    return [of for of in unique if not any(set(less) < set(of) for less in unique)]


@given(TABLES)
def test_scores_and_parts_are_those_of_every_minimal_set_counted_one_by_one(
    rows: list[list[int]],
) -> None:
    m = len(rows[0])
    found = special_uniques(np.array(rows, np.int32))
    sets = [_minimal_sets(rows, i) for i in range(len(rows))]
    # A table of one row: nobody else has its values, even if no attribute is looked at.
    weights = [[factorial(m - len(of)) for of in mine] for mine in sets]
    assert found.score.tolist() == [sum(mine) for mine in weights]
    total = sum(map(sum, weights))
    for c in range(m):
        mine = sum(factorial(m - len(of)) for of_row in sets for of in of_row if c in of)
        assert found.part[c] == pytest.approx(mine / total if total else 0)
    assert found.share_unique == pytest.approx(
        sum(rows.count(row) == 1 for row in rows) / len(rows)
    )
    assert ((found.dis > 0) == (found.score > 0)).all()


@given(TABLES, st.integers(1, 3))
def test_where_sets_are_bounded_smaller_ones_count_as_before(
    rows: list[list[int]], largest: int
) -> None:
    m = len(rows[0])
    found = special_uniques(np.array(rows, np.int32), largest=largest)
    for i, score in enumerate(found.score.tolist()):
        mine = [of for of in _minimal_sets(rows, i) if len(of) <= largest]
        assert score == sum(factorial(m - len(of)) for of in mine)


GUIDE = """\
Urban Female incomplete2 Employed
Urban Female incomplete2 Employed
Urban Female incomplete1 NonLF
Urban Male complete2 Employed
Rural Female complete2 Unemployed
Urban Male complete2 Employed
Urban Female complete1 NonLF
Urban Male post2 Unemployed
Urban Female incomplete2 NonLF
Urban Female incomplete2 NonLF""".splitlines()
"""The example of the World Bank's guide to disclosure control, which sdcMicro tests, too."""


def test_the_scores_are_those_of_the_published_example() -> None:
    rows = [line.split() for line in GUIDE]
    codes = [np.unique(column, return_inverse=True)[1] for column in zip(*rows, strict=True)]
    found = special_uniques(np.column_stack(codes).astype(np.int32))
    assert found.score.tolist() == [0, 0, 6, 0, 12, 0, 6, 10, 0, 0]


def test_a_match_is_surely_right_where_no_record_has_a_twin() -> None:
    rows = np.array([[0, 1], [1, 0], [2, 2]], np.int32)
    assert special_uniques(rows, sampled=0.01).dis.tolist() == [1.0, 1.0, 1.0]


def test_a_match_is_less_likely_right_the_more_records_are_paired() -> None:
    unique, pair = [[9, 9]], [[0, 0], [0, 0]]
    few = special_uniques(np.array(unique + pair, np.int32), sampled=0.1)
    many = special_uniques(
        np.array(unique + [[x, x] for x in range(4) for _ in range(2)], np.int32), sampled=0.1
    )
    assert few.dis[0] == pytest.approx(0.1 / (0.1 + 2 * 0.9))
    assert many.dis[0] == pytest.approx(0.1 / (0.1 + 8 * 0.9))


def test_a_table_without_rows_has_no_uniques() -> None:
    found = special_uniques(np.zeros((0, 2), np.int32))
    assert found.share_unique == 0
    assert found.score.shape == found.dis.shape == (0,)


@given(TABLES, st.integers(0, 60))
def test_bounded_work_looks_at_single_attributes_and_at_as_many_sets_as_it_may(
    rows: list[list[int]], n_sets: int
) -> None:
    codes = np.array(rows, np.int32)
    n, m = codes.shape
    all_sets = special_uniques(codes)
    few = special_uniques(codes, most_rows=n_sets * (n + 2_000))
    assert few.alone.tolist() == all_sets.alone.tolist()
    assert few.share_unique == all_sets.share_unique
    assert few.complete == (m == 1 or n_sets >= 2**m - 1)
    if few.complete:
        assert few.score.tolist() == all_sets.score.tolist()


def test_sets_that_are_left_out_are_counted_by_those_that_are_not() -> None:
    codes = np.random.default_rng(0).integers(0, 6, (300, 20), dtype=np.int32)
    whole = special_uniques(codes, largest=3)
    half = special_uniques(codes, largest=3, most_rows=(20 + 190 + 300) * 2_300)
    assert whole.complete
    assert not half.complete
    assert half.score.sum() == pytest.approx(whole.score.sum(), rel=0.1)
    assert half.part == pytest.approx(whole.part, rel=0.25)


@pytest.mark.parametrize("m", [30, 172, 400])
def test_many_attributes_have_scores_that_are_numbers(m: int) -> None:
    rng = np.random.default_rng(m)
    codes = rng.integers(0, 3, (40, m), dtype=np.int32)
    codes[0, 0] = 9  # alone by one attribute: nobody is told apart by less
    found = special_uniques(codes, most_rows=5_000 * 2_040)
    assert np.isfinite(found.score).all()
    assert np.isfinite(found.part).all()
    assert found.dis.max() <= 1
    assert found.dis[0] >= found.dis[found.score < found.score[0]].max()


@given(TABLES)
def test_what_one_attribute_tells_alone_is_counted_without_it(rows: list[list[int]]) -> None:
    def n_unique(without: int | None) -> int:
        seen = [[x for c, x in enumerate(row) if c != without] for row in rows]
        return sum(seen.count(row) == 1 for row in seen)

    lost = unique_by_one(np.array(rows, np.int32))
    m = len(rows[0])
    assert lost.tolist() == [(n_unique(None) - n_unique(c)) / len(rows) for c in range(m)]
