"""The road network, as the arrays every kernel works on."""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from anonymizer.domain.arrays import BoolArray, FloatArray, Int32Array

NodeNames: TypeAlias = NDArray[np.int64] | NDArray[np.str_]


@dataclass(frozen=True, slots=True, eq=False)
class RoadNetwork:
    """A simple undirected graph in compressed sparse rows, with what a drive along it needs.

    Node `v` is an index in `0..n-1`; its neighbours are
    `neighbour_of[first_arc_of[v]:first_arc_of[v + 1]]`, in the adjacency order of the source.
    Every road is two arcs, one each way; no arc leads to its own node and no pair of nodes is
    joined twice. Build one with `anonymizer.networks`.

    Attributes
    ----------
    node_id
        The source's own names, shape (n,), unique: int64 where all are integers, else text.
        Published regions speak of nodes by these.
    lat, lon
        WGS84 degrees, shape (n,); NaN throughout when the source has no coordinates.
    first_arc_of
        Shape (n + 1,), int32.
    neighbour_of
        Shape (arcs,), int32.
    length_m
        Length of each arc, shape (arcs,).
    speed_mps
        Free-flow speed of each arc, shape (arcs,).
    drivable
        False for an arc against a one-way road, shape (arcs,). Cloaking does not look at it.
    component_of
        Connected component of each node, shape (n,), int32, numbered by size, largest 0
        (ties by smallest node index).
    """

    node_id: NodeNames
    lat: FloatArray
    lon: FloatArray
    first_arc_of: Int32Array
    neighbour_of: Int32Array
    length_m: FloatArray
    speed_mps: FloatArray
    drivable: BoolArray
    component_of: Int32Array

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return len(self.node_id)

    @property
    def n_roads(self) -> int:
        """Number of undirected edges."""
        return len(self.neighbour_of) // 2

    @property
    def n_components(self) -> int:
        """Number of connected components."""
        return int(self.component_of.max()) + 1 if len(self.component_of) else 0

    @property
    def has_coordinates(self) -> bool:
        """Whether positions can be located on this network."""
        return not bool(np.isnan(self.lat).any())
