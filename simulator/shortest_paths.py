"""Shortest paths by travel time on a network with one-way streets, by Dijkstra's algorithm."""

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components, dijkstra

from anonymizer.domain.arrays import FloatArray, Int32Array, IntArray
from anonymizer.domain.network import RoadNetwork

MIN_LENGTH_M = 0.1
"""Lower bound, so that a road between two nodes at the same place takes some time."""
MIN_SPEED_MPS = 0.5


class Router:
    """The drivable arcs of a network, and trees of shortest paths over them.

    Attributes
    ----------
    tail_of, length_m, speed_mps
        Tail, length and speed of each arc of the network, shape (arcs,); the last two are above 0.
    strong_of
        Strongly connected component of each node over drivable arcs, shape (n,): two nodes can
        reach each other if and only if they are in the same one.
    """

    def __init__(self, network: RoadNetwork) -> None:
        n = network.n_nodes
        self.tail_of: Int32Array = np.repeat(
            np.arange(n, dtype=np.int32), np.diff(network.first_arc_of)
        )
        self.length_m: FloatArray = np.maximum(network.length_m, MIN_LENGTH_M)
        self.speed_mps: FloatArray = np.maximum(network.speed_mps, MIN_SPEED_MPS)
        self._arc: IntArray = np.flatnonzero(network.drivable)
        self._tail = self.tail_of[self._arc]
        self._head = network.neighbour_of[self._arc]
        travel_s = (self.length_m / self.speed_mps)[self._arc]
        self._reversed = csr_array((travel_s, (self._head, self._tail)), shape=(n, n))
        self.strong_of: Int32Array = connected_components(
            self._reversed, directed=True, connection="strong"
        )[1].astype(np.int32)

    def next_arcs_to(self, node: int) -> Int32Array:
        """Return the first arc of a fastest path from each node to `node`, shape (n,).

        -1 at `node` itself and at nodes without a path. One Dijkstra run, O(arcs log n).
        """
        _, next_nodes_of = dijkstra(
            self._reversed, indices=np.array([node]), return_predecessors=True
        )
        next_node_of = next_nodes_of[0]
        on_path = next_node_of[self._tail] == self._head
        next_arc_of = np.full(len(next_node_of), -1, np.int32)
        next_arc_of[self._tail[on_path]] = self._arc[on_path]
        return next_arc_of
