"""Map matching in its simplest sound form: a position is matched to the nearest node."""

import numpy as np
from scipy.spatial import cKDTree

from anonymizer.algorithms.geodesy import chord_of_m, unit_vectors
from anonymizer.domain.arrays import FloatArray, Int32Array
from anonymizer.domain.network import RoadNetwork

OFF_GRAPH = -1


class NodeLocator:
    """Finds the nearest node of a network within a limit.

    It uses a k-d tree over points on the unit sphere. The chord between two points grows with
    their great-circle distance, so the nearest point is correct everywhere, including the poles
    and the antimeridian, and no projection has to be chosen.

    Parameters
    ----------
    network
        A network with coordinates.
    limit_m
        A position farther than this from every node is off the graph.

    Raises
    ------
    ValueError
        If the network has no coordinates.
    """

    def __init__(self, network: RoadNetwork, *, limit_m: float) -> None:
        if not network.has_coordinates:
            raise ValueError("positions cannot be located on a network without coordinates")
        self._tree = cKDTree(unit_vectors(network.lat, network.lon))
        # The tree's bound is exclusive; a position at the limit itself is still on the graph.
        self._bound = float(np.nextafter(chord_of_m(limit_m), np.inf))

    def locate(self, lat: FloatArray, lon: FloatArray) -> Int32Array:
        """Return the nearest node of each position, or `OFF_GRAPH`.

        Parameters
        ----------
        lat, lon
            WGS84 degrees, shape (n,), finite.

        Notes
        -----
        O(n log nodes). Of several nodes at the same place, always the same one is returned.
        """
        distance, node = self._tree.query(unit_vectors(lat, lon), distance_upper_bound=self._bound)
        return np.where(np.isfinite(distance), node, OFF_GRAPH).astype(np.int32)
