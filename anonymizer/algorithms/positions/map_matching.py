"""Map matching in its simplest sound form: a position belongs to the nearest node."""

import numpy as np
from scipy.spatial import cKDTree

from anonymizer.algorithms.geodesy import chord_of_m, unit_vectors
from anonymizer.domain.arrays import FloatArray, Int32Array
from anonymizer.domain.network import RoadNetwork

OFF_GRAPH = -1


class NodeLocator:
    """Finds the nearest node of a network, if one is near enough.

    A k-d tree over points of the unit sphere: the chord between two points grows with the
    great circle between them, so the nearest is the nearest everywhere, poles and
    antimeridian included, with no projection to choose.

    Parameters
    ----------
    network
        With coordinates.
    limit_m
        A position further than this from every node is off the graph.

    Raises
    ------
    ValueError
        If the network has no coordinates.
    """

    def __init__(self, network: RoadNetwork, *, limit_m: float) -> None:
        if not network.has_coordinates:
            raise ValueError("positions cannot be located on a network without coordinates")
        self._tree = cKDTree(unit_vectors(network.lat, network.lon))
        # The tree's bound is strict; the limit itself is still on the graph.
        self._bound = float(np.nextafter(chord_of_m(limit_m), np.inf))

    def locate(self, lat: FloatArray, lon: FloatArray) -> Int32Array:
        """Return the nearest node of each position, or `OFF_GRAPH`.

        Parameters
        ----------
        lat, lon
            WGS84 degrees, shape (n,), finite.

        Notes
        -----
        O(n log nodes). Nodes at one and the same place share their devices out to any one of
        them, always the same one.
        """
        distance, node = self._tree.query(unit_vectors(lat, lon), distance_upper_bound=self._bound)
        return np.where(np.isfinite(distance), node, OFF_GRAPH).astype(np.int32)
