"""Density of devices over nodes, estimated from places with planar Laplace noise.

The noise is known, so that its effect on the density can be undone: the iterative Bayesian update,
which is expectation-maximization for a known channel [1]_.

References
----------
.. [1] E. ElSalamouny, C. Palamidessi, "Generalized iterative Bayesian update and applications to
   mechanisms for privacy protection", IEEE EuroS&P 2020.
"""

import numpy as np
from scipy.sparse import csr_array
from scipy.spatial import cKDTree

from anonymizer.algorithms.region_density import CLOSE, MOST_ROUNDS
from anonymizer.domain.arrays import FloatArray, IntArray

_FARTHEST = 10.0
"""Noise of more than this many times its scale is left out: 1 of 2,000 places."""
_CELL = 0.5
"""Width of a cell, in scales of the noise. It bounds the work, however wide the noise is."""


class NoisyDensity:
    """The density over nodes that explains noisy places.

    Parameters
    ----------
    node_x_m, node_y_m
        The nodes in metres, shape (nodes,). Those that are close together for this noise are one
        cell, in which devices are spread evenly.
    x_m, y_m
        The noisy places, shape (n,), n > 0.
    scale_m
        The probability of a place falls by a factor of e within this distance.

    Notes
    -----
    Rounds of O(n) go on until one moves less than `CLOSE` of the devices, at most `MOST_ROUNDS`.
    O(1,300 n) memory at most. A place that is far from all nodes is left out.
    """

    def __init__(
        self,
        node_x_m: FloatArray,
        node_y_m: FloatArray,
        x_m: FloatArray,
        y_m: FloatArray,
        *,
        scale_m: float,
    ) -> None:
        self._cell_of, centre = _cells(node_x_m, node_y_m, _CELL * scale_m)
        self._nodes_in = np.bincount(self._cell_of)
        noisy = cKDTree(np.stack([x_m, y_m], axis=1))
        far_m = _FARTHEST * scale_m
        near = noisy.sparse_distance_matrix(cKDTree(centre), far_m, output_type="coo_matrix")
        likelihood = np.exp(-near.data / scale_m)
        self._likelihood = csr_array((likelihood, (near.row, near.col)), shape=near.shape)
        self._density = self._nodes_in / len(node_x_m)
        for _ in range(MOST_ROUNDS):
            found = self._in_cells(np.arange(len(x_m)))
            found /= max(float(found.sum()), 1.0)
            moved = float(np.abs(found - self._density).sum()) / 2
            self._density = found
            if moved < CLOSE:
                break

    def expected(self, rows: IntArray) -> FloatArray:
        """Return the expected number of devices at each node, of some places, shape (nodes,)."""
        return (self._in_cells(rows) / self._nodes_in)[self._cell_of]

    def _in_cells(self, rows: IntArray) -> FloatArray:
        some = self._likelihood[rows]
        total = some @ self._density
        weight = np.divide(1.0, total, out=np.zeros_like(total), where=total > 0)
        found: FloatArray = self._density * (some.T @ weight)
        return found


def _cells(x_m: FloatArray, y_m: FloatArray, width_m: float) -> tuple[IntArray, FloatArray]:
    """Return the square cell of each node, and the middle of its nodes, shape (cells, 2)."""
    corner = np.floor(np.stack([x_m, y_m]) / width_m)
    cell_of = np.unique(corner, axis=1, return_inverse=True)[1].ravel()
    n = np.bincount(cell_of)
    centre = np.stack([np.bincount(cell_of, at) / n for at in (x_m, y_m)], axis=1)
    return cell_of, centre
