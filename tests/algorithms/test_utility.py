"""Utility measures: 0 or 1 for what is exact, and as their definitions say for the rest."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from anonymizer.algorithms.utility import (
    density_error,
    divergence,
    hotspot_gain,
    popularity_tau,
    query_error,
    speed_error,
)
from anonymizer.domain.arrays import FloatArray

tables = arrays(np.float64, (3, 12), elements=st.integers(0, 9).map(float))


def naive_divergence(p: list[float], q: list[float]) -> float:
    """Entropy of the mean less the mean of the entropies."""

    def entropy(shares: list[float]) -> float:
        return -sum(share * math.log2(share) for share in shares if share)

    p = [each / sum(p) for each in p]
    q = [each / sum(q) for each in q]
    middle = [(a + b) / 2 for a, b in zip(p, q, strict=True)]
    return entropy(middle) - (entropy(p) + entropy(q)) / 2


@given(tables, tables)
def test_the_divergence_is_that_of_the_definition(a: FloatArray, b: FloatArray) -> None:
    for p, q, found in zip(a, b, divergence(a, b), strict=True):
        if p.sum() and q.sum():
            assert found == pytest.approx(naive_divergence(p.tolist(), q.tolist()), abs=1e-9)
        else:
            assert found == (p.sum() != q.sum())


@given(tables)
def test_the_true_counts_are_of_full_utility(table: FloatArray) -> None:
    rng = np.random.default_rng(0)
    assert density_error(table, table) == 0
    assert query_error(table, table, sides=(3, 4), n_queries=20, rng=rng) == 0
    assert hotspot_gain(table, table, n=4) == pytest.approx(1)
    total = table.sum(axis=0)
    if len(np.unique(total)) > 1:
        assert popularity_tau(table, table) == pytest.approx(1)


@given(tables, st.floats(0.5, 3))
def test_the_measures_of_shape_do_not_depend_on_the_total(table: FloatArray, by: float) -> None:
    assert density_error(table, table * by) == pytest.approx(0, abs=1e-9)
    assert hotspot_gain(table, table * by) == pytest.approx(1)


def test_distributions_without_a_common_cell_are_as_far_as_can_be() -> None:
    assert density_error(np.array([[1.0, 0.0]]), np.array([[0.0, 5.0]])) == pytest.approx(1)


def test_a_query_error_is_relative_to_the_answer_but_to_1_percent_at_least() -> None:
    true, published = np.array([[100.0]]), np.array([[90.0]])
    rng = np.random.default_rng(1)
    # A box of one cell holds it or nothing.
    found = query_error(true, published, sides=(1, 1), n_queries=400, rng=rng)
    share_of_boxes_with_it = 1 / 2
    assert found == pytest.approx(0.1 * share_of_boxes_with_it, abs=0.02)
    with_none = query_error(
        np.array([[0.0, 200.0]]), np.array([[1.0, 200.0]]), sides=(1, 2), n_queries=400, rng=rng
    )
    assert 0 < with_none <= 0.5


def test_hotspots_in_reverse_order_gain_less() -> None:
    true = np.array([[8.0, 4.0, 2.0, 1.0]])
    backwards = hotspot_gain(true, true[:, ::-1], n=2)
    assert backwards == pytest.approx((1 + 2 / math.log2(3)) / (8 + 4 / math.log2(3)))
    assert popularity_tau(true, true[:, ::-1]) == pytest.approx(-1)


speeds = st.lists(st.one_of(st.none(), st.floats(0, 30)), min_size=4, max_size=4)


@given(speeds, speeds, st.lists(st.integers(0, 3), min_size=4, max_size=4))
def test_the_speed_error_is_that_of_the_naive_twin(
    true: list[float | None], published: list[float | None], weight: list[int]
) -> None:
    shown = [each for each in published if each is not None]
    errors, n = 0.0, 0
    for one, other, w in zip(true, published, weight, strict=True):
        if one is not None and shown:
            errors += w * abs((sum(shown) / len(shown) if other is None else other) - one)
            n += w
    was, said = (np.array(each, np.float64) for each in (true, published))  # None is NaN
    found = speed_error(was, said, np.array(weight, np.float64))
    assert found == (pytest.approx(errors / n) if n else None)
