import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.uncertain_counts import (
    count_distribution,
    count_interval,
    least_moves,
    move_bounds,
)
from anonymizer.domain.arrays import FloatArray

DEVICES = st.lists(st.tuples(st.floats(0, 1), st.integers(1, 40)), min_size=1, max_size=6)
SHARES = st.lists(st.integers(0, 5), min_size=3, max_size=3).filter(sum)


def naive(devices: list[tuple[float, int]]) -> FloatArray:
    """Return the probability of each number, a device at a time."""
    found = np.ones(1)
    for p, n in devices:
        for _ in range(n):
            found = np.convolve(found, [1 - p, p])
    return found


@given(DEVICES)
def test_the_distribution_is_that_of_one_device_after_another(
    devices: list[tuple[float, int]],
) -> None:
    p, n = np.array([p for p, _ in devices]), np.array([n for _, n in devices])
    first, probability = count_distribution(p, n)
    expected = naive(devices)
    whole = np.zeros(len(expected))
    whole[first : first + len(probability)] = probability
    assert whole == pytest.approx(expected, abs=1e-10)


def test_the_window_moves_with_the_mean() -> None:
    first, probability = count_distribution(np.array([0.5]), np.array([1_000_000]))
    assert len(probability) < 20_000
    numbers = first + np.arange(len(probability))
    assert probability.sum() == pytest.approx(1)
    assert probability @ numbers == pytest.approx(500_000)
    assert np.sqrt(probability @ (numbers - 500_000.0) ** 2) == pytest.approx(500)


@given(DEVICES, st.sampled_from([0.5, 0.9, 0.95]))
def test_an_interval_is_the_shortest_that_leaves_little_on_each_side(
    devices: list[tuple[float, int]], level: float
) -> None:
    p, n = np.array([p for p, _ in devices]), np.array([n for _, n in devices])
    low, high = count_interval(p, n, level=level)
    probability, tail = naive(devices), (1 - level) / 2 + 1e-9
    assert 0 <= low <= high < len(probability)
    assert probability[:low].sum() <= tail
    assert probability[high + 1 :].sum() <= tail
    assert probability[: low + 1].sum() >= (1 - level) / 2 - 1e-9
    assert probability[high:].sum() >= (1 - level) / 2 - 1e-9


def test_a_device_that_is_somewhere_for_sure_has_no_error() -> None:
    assert count_interval(np.array([1.0, 0.0]), np.array([7, 5]), level=0.95) == (7, 7)


@given(SHARES, SHARES)
def test_moves_have_the_shares_before_and_after_as_their_margins(
    before: list[int], after: list[int]
) -> None:
    p, q = np.array(before) / sum(before), np.array(after) / sum(after)
    moves = least_moves(p, q)
    assert moves.sum(axis=1) == pytest.approx(p)
    assert moves.sum(axis=0) == pytest.approx(q)
    # Nobody moves less: the share that crosses is the distance of the distributions.
    assert 1 - np.trace(moves) == pytest.approx(np.abs(p - q).sum() / 2)
    low, high = move_bounds(p, q)
    for possible in (moves, np.outer(p, q)):
        assert (low <= possible + 1e-12).all()
        assert (possible <= high + 1e-12).all()


def test_moves_on_paper() -> None:
    p, q = np.array([1.0, 0.0]), np.array([0.5, 0.5])
    assert least_moves(p, q).tolist() == [[0.5, 0.5], [0.0, 0.0]]
    assert least_moves(p, p).tolist() == [[1.0, 0.0], [0.0, 0.0]]
    low, high = move_bounds(np.array([0.8, 0.2]), np.array([0.5, 0.5]))
    assert low == pytest.approx(np.array([[0.3, 0.3], [0, 0]]))
    assert high == pytest.approx(np.array([[0.5, 0.5], [0.2, 0.2]]))
