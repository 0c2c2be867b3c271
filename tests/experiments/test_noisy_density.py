"""Density from places with known noise: the noise is undone."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from anonymizer.algorithms.region_density import CLOSE, MOST_ROUNDS
from experiments import noisy_density
from experiments.noisy_density import NoisyDensity

# Nodes a kilometre apart are cells of their own.
X_M = np.array([0.0, 1000.0, 2000.0, 0.0])
Y_M = np.array([0.0, 0.0, 0.0, 1000.0])
places = st.lists(st.tuples(st.floats(-500, 2500), st.floats(-500, 1500)), min_size=1, max_size=8)


def naive_round(
    seen: list[tuple[float, float]], density: list[float], scale_m: float
) -> list[float]:
    nodes = list(zip(X_M.tolist(), Y_M.tolist(), strict=True))
    found = [0.0] * len(nodes)
    for x, y in seen:
        weight = [
            share * np.exp(-np.hypot(x - u, y - v) / scale_m)
            for (u, v), share in zip(nodes, density, strict=True)
        ]
        for node, each in enumerate(weight):
            found[node] += each / sum(weight) / len(seen)
    return found


def naive_density(seen: list[tuple[float, float]], scale_m: float) -> list[float]:
    density = [1 / len(X_M)] * len(X_M)
    for _ in range(MOST_ROUNDS):
        found = naive_round(seen, density, scale_m)
        moved = sum(abs(a - b) for a, b in zip(found, density, strict=True)) / 2
        density = found
        if moved < CLOSE:
            break
    return density


@settings(max_examples=20, deadline=None)
@given(places)
@example([(0.0, 487.0)])  # between two nodes: not final after `MOST_ROUNDS`
def test_the_density_is_that_of_the_naive_twin(seen: list[tuple[float, float]]) -> None:
    x_m, y_m = np.array(seen).T
    found = NoisyDensity(X_M, Y_M, x_m, y_m, scale_m=400.0)
    expected = found.expected(np.arange(len(seen)))
    assert expected.sum() == pytest.approx(len(seen))
    naive = naive_round(seen, naive_density(seen, 400.0), 400.0)
    # Rounding may end one of the two a round later, which moves less than `CLOSE`.
    assert expected / len(seen) == pytest.approx(naive, abs=CLOSE)


def test_noise_is_undone() -> None:
    rng = np.random.default_rng(1)
    true = rng.choice(4, 4000, p=[0.7, 0.1, 0.1, 0.1])
    radius, angle = rng.gamma(2.0, 400.0, 4000), rng.uniform(0, 2 * np.pi, 4000)
    x_m, y_m = X_M[true] + radius * np.cos(angle), Y_M[true] + radius * np.sin(angle)
    found = NoisyDensity(X_M, Y_M, x_m, y_m, scale_m=400.0).expected(np.arange(4000)) / 4000
    nearest = np.hypot(x_m[:, None] - X_M, y_m[:, None] - Y_M).argmin(axis=1)
    as_seen = np.bincount(nearest, minlength=4) / 4000
    share = np.bincount(true, minlength=4) / 4000
    assert np.abs(found - share).sum() < np.abs(as_seen - share).sum() / 2


def test_a_place_far_from_all_nodes_is_left_out() -> None:
    found = NoisyDensity(X_M, Y_M, np.array([0.0, 1e7]), np.zeros(2), scale_m=400.0)
    assert found.expected(np.array([1])).sum() == 0
    assert found.expected(np.arange(2)).sum() == pytest.approx(1)


def test_nodes_that_the_noise_cannot_tell_apart_share_their_devices() -> None:
    x_m = np.array([0.0, 1.0, 5000.0])
    found = NoisyDensity(x_m, np.zeros(3), np.zeros(5), np.zeros(5), scale_m=100.0)
    n = found.expected(np.arange(5))
    assert n[0] == n[1] == pytest.approx(2.5)
    assert noisy_density._CELL * 100.0 > 1.0
