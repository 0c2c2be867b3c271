"""One device more or less is seen in one of k intervals, wherever a number stands."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.positions.secret_thresholds import SecretThresholds

K, N_INTERVALS = 10, 4000


def told(n: int, interval: int, secret: bytes | None = b"secret") -> tuple[bool, int]:
    thresholds = SecretThresholds(secret, interval=interval)
    number = np.array([n])
    [passes] = thresholds.passes([(1, 7)], number, K).tolist()
    return passes, int(thresholds.levels([(2, 7)], number, K)[0]) if passes else 0


@given(st.integers(0, 60), st.integers(-5, 2**40))
def test_a_figure_is_of_at_least_k_and_says_how_many_more_there_may_be(
    n: int, interval: int
) -> None:
    for secret in (None, b"secret"):
        passes, level = told(n, interval, secret)
        more = SecretThresholds(secret, interval=interval).most_more(K)
        assert not (passes and n < K)
        assert passes or n <= more
        assert level % K == 0
        assert level <= n <= level + more
    assert told(n, interval, None) == (n >= K, n // K * K)
    assert told(n, interval) == told(n, interval)


@pytest.mark.parametrize("n", [10, 14, 19, 25, 30, 33])
def test_wherever_a_number_stands_one_device_less_is_seldom_seen(n: int) -> None:
    changes = [told(n, i)[0] != told(n - 1, i)[0] for i in range(N_INTERVALS)]
    levels = [told(n, i)[1] != told(n - 1, i)[1] for i in range(N_INTERVALS)]
    assert np.mean(changes) < 1.3 / K
    assert np.mean(levels) < 2.5 / K  # it appears, or moves on
    assert any(levels)


def test_every_number_may_be_a_threshold_and_all_are() -> None:
    appears = [next(n for n in range(40) if told(n, i)[0]) for i in range(300)]
    assert set(appears) == set(range(K, 2 * K))


def test_figures_have_thresholds_of_their_own() -> None:
    thresholds = SecretThresholds(b"secret", interval=3)
    keys = [(0, i) for i in range(200)]
    passed = thresholds.passes(keys, np.full(200, K + K // 2), K)
    assert 60 < passed.sum() < 140
