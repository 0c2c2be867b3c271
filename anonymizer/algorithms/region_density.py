"""Density of devices over nodes, estimated from published regions: the analyst's best reading.

A region of `session` and `snapshot` is made of public pieces of the network, each of which holds
a device; the nodes that join them hold nobody. So each piece gets one device, and the others are
shared out in proportion to the density at the pieces. That density is unknown, too: it is what
all regions of a release add up to. Expectation-maximization finds both, as iterative Bayesian
updates do for perturbed values [1]_ and perturbed places [2]_.

References
----------
.. [1] D. Agrawal, C. Aggarwal, "On the design and quantification of privacy preserving data mining
   algorithms", PODS 2001.
.. [2] E. ElSalamouny, C. Palamidessi, "Generalized iterative Bayesian update and applications to
   mechanisms for privacy protection", IEEE EuroS&P 2020.
"""

import numpy as np

from anonymizer.algorithms.kernels import kernel
from anonymizer.algorithms.releases.pieces import PieceRegions
from anonymizer.domain.arrays import FloatArray, IntArray

CLOSE = 1e-3
"""The estimate is final when a round moves less than this share of the devices."""
MOST_ROUNDS = 50
_LEAST = 1e-9
"""No node has less than this share of the uniform density, so that every piece has some."""


def estimate_density(
    regions: PieceRegions, n_devices: FloatArray, weight: FloatArray, *, n_nodes: int
) -> FloatArray:
    """Return the density of devices over the nodes that explains the regions, shape (nodes,).

    It is positive and sums to 1; uniform if all weights are 0.

    Parameters
    ----------
    regions
        From `read_regions`.
    n_devices
        Devices in each region while it holds, above 0, shape (regions,).
    weight
        How much each region counts: the sum of its devices over all times, shape (regions,).

    Notes
    -----
    Rounds go on until `CLOSE` is reached, at most `MOST_ROUNDS`; each is O(nodes of the regions).

    A region of one piece says nothing about where in it devices are more likely, but that where
    many regions overlap. That is evidence only if regions do not depend on where devices are, and
    they do. If all regions are single pieces, do without this estimate, and use a uniform density.
    """
    density = np.full(n_nodes, 1.0 / n_nodes)
    region = np.repeat(np.arange(len(n_devices)), nodes_in(regions))
    for _ in range(MOST_ROUNDS):
        share = shares(regions, n_devices, density) * weight[region]
        found = np.bincount(regions.node, share, n_nodes)
        if not found.any():
            return density  # no region holds anybody
        found = np.maximum(found / found.sum(), _LEAST / n_nodes)
        found /= found.sum()
        moved = float(np.abs(found - density).sum()) / 2
        density = found
        if moved < CLOSE:
            break
    return density


def nodes_in(regions: PieceRegions) -> IntArray:
    """Return the number of nodes in the pieces of each region, shape (regions,)."""
    found: IntArray = np.diff(regions.first_node_of[regions.first_piece_of])
    return found


def shares(regions: PieceRegions, n_devices: FloatArray, density: FloatArray) -> FloatArray:
    """Return the share of a region's devices at each of its nodes, in the order of `regions.node`.

    Parameters
    ----------
    n_devices
        Devices in each region, above 0, shape (regions,). If they are fewer than its pieces, all
        pieces have an equal share.
    density
        Positive at all nodes, shape (nodes,).
    """
    return _shares(regions, n_devices, density)


@kernel
def _shares(regions: PieceRegions, n_devices: FloatArray, density: FloatArray) -> FloatArray:
    share = np.empty(len(regions.node))
    for r in range(len(n_devices)):
        first, end = regions.first_piece_of[r], regions.first_piece_of[r + 1]
        in_each = min(1.0 / n_devices[r], 1.0 / (end - first))
        others = 1.0 - in_each * (end - first)
        whole = 0.0
        for j in range(regions.first_node_of[first], regions.first_node_of[end]):
            whole += density[regions.node[j]]
        for piece in range(first, end):
            start, stop = regions.first_node_of[piece], regions.first_node_of[piece + 1]
            inside = 0.0
            for j in range(start, stop):
                inside += density[regions.node[j]]
            for j in range(start, stop):
                share[j] = density[regions.node[j]] * (in_each / inside + others / whole)
    return share
