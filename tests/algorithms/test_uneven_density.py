import numpy as np
import pytest
from scipy.sparse import csr_array

from anonymizer.algorithms.uneven_density import (
    USUAL,
    DensityFit,
    count_variance,
    fit_density,
    halve,
    shares_of,
)
from anonymizer.domain.arrays import FloatArray

SIDE = 16
X, Y = (each.ravel().astype(float) for each in np.meshgrid(np.arange(SIDE), np.arange(SIDE)))
HALVES = halve(X, Y)
SIDES = HALVES.side.toarray()
"""For each area and node: 1 or -1 for the halves, 0 outside."""
ALIKE = np.ones(SIDE * SIDE)
SQUARES = (Y // 2 * (SIDE // 2) + X // 2).astype(np.int64)
"""Regions of four nodes."""
REGIONS = csr_array((ALIKE, (SQUARES, np.arange(SIDE * SIDE))))


def drawn(rng: np.random.Generator, variance: float) -> FloatArray:
    """Return a density whose halves differ by normal errors of this variance, area by area."""
    error = rng.normal(0, np.sqrt(variance), len(SIDES))
    density: FloatArray = np.maximum(1 + error[:, None] * SIDES, 0.01).prod(axis=0)
    return density


def fit_to(density: FloatArray, n_devices: int) -> DensityFit:
    n = REGIONS @ (density / density.sum()) * n_devices
    return fit_density(HALVES, shares_of(REGIONS, ALIKE), [n], ALIKE)


def test_every_area_is_cut_into_two_halves_down_to_single_nodes() -> None:
    halves = halve(np.array([0.0, 5, 1, 4, 2]), np.zeros(5))
    dense = halves.side.toarray()
    # Nodes 0, 2 and 4 are west of 3 and 1; then 0 and 2 of 4, and so on.
    assert dense.tolist() == [
        [1, -1, 1, -1, 1],
        [1, 0, 1, 0, -1],
        [0, -1, 0, 1, 0],
        [1, 0, -1, 0, 0],
        [0, 0, 0, 0, 1],
        [0, 0, 0, 1, 0],
        [0, 1, 0, 0, 0],
    ]
    assert halves.first_area_of.tolist() == [0, 1, 3, 7]
    assert halve(np.zeros(1), np.zeros(1)).side.shape == (0, 1)


def test_a_region_without_weight_spreads_its_devices_evenly() -> None:
    regions = csr_array(np.array([[1.0, 1, 0], [0, 1, 1]]))
    shares = shares_of(regions, np.array([0.0, 0, 3])).toarray()
    assert shares.tolist() == [[0.5, 0.5, 0], [0, 0, 1]]


def test_the_variance_of_counts_is_that_of_the_densities_drawn() -> None:
    rng, variance = np.random.default_rng(1), 0.01
    regions = csr_array((ALIKE, ((X // 8).astype(np.int64), np.arange(SIDE * SIDE))))
    cells = csr_array((ALIKE, (np.arange(SIDE * SIDE), (Y // 5).astype(np.int64))))
    n = np.array([30.0, 70.0])
    counts = [n @ (shares_of(regions, drawn(rng, variance)) @ cells).toarray() for _ in range(1500)]
    fit = DensityFit(ALIKE, np.full(HALVES.side.shape[0], variance))
    found = count_variance(HALVES, shares_of(regions, ALIKE), n, cells, fit)
    assert found == pytest.approx(np.var(counts, axis=0), rel=0.1)


def test_density_moves_to_where_regions_show_devices() -> None:
    west = np.where(X < SIDE / 2, 1.5, 0.5)
    weight = fit_to(west, 2000).weight
    assert weight[X < SIDE / 2].mean() / weight[X >= SIDE / 2].mean() == pytest.approx(3, rel=0.1)
    # A region says nothing about which of its nodes devices are at.
    assert np.ptp(weight[SQUARES[0] == SQUARES]) < 1e-9
    # Seven devices are none.
    assert fit_to(west, 7).weight.tolist() == ALIKE.tolist()


@pytest.mark.parametrize(("true", "low", "high"), [(0.0, 0.0, 0.1), (0.5, 0.25, 0.6)])
def test_unevenness_is_read_off_the_release(true: float, low: float, high: float) -> None:
    rng = np.random.default_rng(3)
    left = [fit_to(drawn(rng, true), 3000).variance.max() for _ in range(5)]
    # Where nothing is told, within regions, all of the variance is left.
    assert low < np.mean(left) < high


def test_without_devices_the_usual_unevenness_is_left() -> None:
    n = np.zeros(REGIONS.shape[0])
    fit = fit_density(HALVES, shares_of(REGIONS, ALIKE), [n], ALIKE)
    assert fit.variance == pytest.approx(USUAL)
    assert fit.weight.tolist() == ALIKE.tolist()
