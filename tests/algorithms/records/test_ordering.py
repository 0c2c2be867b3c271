from collections.abc import Sequence
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.records.hilbert import hilbert_order
from tests.algorithms.records import naive_classes


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[list[int]], list[int]]:
    """Rows of codes and the sizes of their domains; a few sizes, so that keys repeat."""
    size = st.sampled_from([1, 2, 3, 7, 8, 9, 74, 1_000_000, 2**31])
    sizes = draw(st.lists(size, min_size=1, max_size=8))
    row = st.tuples(*(st.integers(0, s - 1) | st.integers(0, min(s, 3) - 1) for s in sizes))
    return [list(r) for r in draw(st.lists(row, max_size=30))], sizes


def ours(rows: Sequence[Sequence[int]], sizes: Sequence[int]) -> list[int]:
    codes = np.array(rows, np.int32).reshape(len(rows), len(sizes))
    order: list[int] = hilbert_order(codes, sizes).tolist()
    return order


@given(tables())
def test_the_order_is_that_of_the_published_curve_whatever_dimensions_and_bits(
    table: tuple[list[list[int]], list[int]],
) -> None:
    rows, sizes = table
    assert ours(rows, sizes) == naive_classes.hilbert_order(rows, sizes)


@pytest.mark.parametrize(("dimensions", "bits"), [(1, 5), (2, 4), (3, 3), (6, 2)])
def test_neighbours_on_the_curve_are_neighbours_in_space(dimensions: int, bits: int) -> None:
    rows = list(product(range(1 << bits), repeat=dimensions))
    path = np.array(rows)[ours(rows, [1 << bits] * dimensions)]
    assert (np.abs(np.diff(path, axis=0)).sum(axis=1) == 1).all()


@pytest.mark.parametrize("n", [255, 256, 257, 2_000])
def test_tables_of_many_blocks_are_ordered_as_a_whole(n: int) -> None:
    sizes = [74, 9, 7, 15, 6, 42]
    rows = np.random.default_rng(1).integers(0, sizes, (n, len(sizes))).tolist()
    assert ours(rows, sizes) == naive_classes.hilbert_order(rows, sizes)


def test_a_domain_far_larger_than_its_values_orders_them_all_the_same() -> None:
    rows = [[999_999, 0, 5], [0, 2, 5], [999_999, 0, 5], [500_000, 1, 0]]
    sizes = [1_000_000, 3, 6]
    assert ours(rows, sizes) == naive_classes.hilbert_order(rows, sizes)


@pytest.mark.parametrize("shape", [(0, 3), (4, 0)])
def test_without_records_or_columns_the_order_is_that_of_the_table(shape: tuple[int, int]) -> None:
    order = hilbert_order(np.zeros(shape, np.int32), [5] * shape[1])
    assert order.tolist() == list(range(shape[0]))
