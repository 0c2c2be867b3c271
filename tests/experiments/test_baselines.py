"""Other ways to publish the same traffic, as well as they can be read."""

import numpy as np
import pytest

from anonymizer.algorithms.utility import density_error
from anonymizer.audit.publications import Traffic, grid, read_devices
from anonymizer.networks import load_network
from experiments.baselines import PlanarLaplace, central_noise, read_noisy, read_shrunk

NETWORK = load_network("grid:12x12")


def test_noise_is_taken_out_as_far_as_it_explains_the_counts() -> None:
    division = grid(NETWORK, 2)
    same = np.full((50, 4), 30.0)
    noisy = same + np.random.default_rng(2).laplace(0.0, 5.0, same.shape)
    assert np.abs(read_shrunk(noisy, 5.0, division).n_at - same).max() < 5
    varied = same + np.arange(50.0)[:, None] * 20.0
    assert read_shrunk(varied, 0.1, division).n_at == pytest.approx(varied, abs=1)


def test_what_knows_the_noise_reads_more_than_what_is_shown() -> None:
    rng = np.random.default_rng(3)
    node = rng.integers(0, NETWORK.n_nodes, (5, 120)).astype(np.int32)
    traffic = Traffic(np.arange(0.0, 300.0, 60.0), node, np.zeros(node.shape))
    division = grid(NETWORK, 6)
    truth = read_devices(traffic, division).n_at
    noise = PlanarLaplace(traffic, NETWORK, scale_m=200.0 / np.log(4.0), rng=rng)
    [undone] = noise.deconvolved([division])
    least = read_devices(traffic, division, least=10).n_at
    assert density_error(truth, undone.n_at) < density_error(truth, least)
    # Noise is nearly all there is: drawn to the mean, it is less.
    noisy, scale = central_noise(traffic, division, epsilon=1.0, rng=rng)
    shown, drawn = read_noisy(noisy, division), read_shrunk(noisy, scale, division)
    assert density_error(truth, drawn.n_at) < density_error(truth, shown.n_at)
