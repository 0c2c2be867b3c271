"""The road network as compressed sparse rows: the arrays that every kernel works on."""

from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from anonymizer.domain.arrays import BoolArray, FloatArray, Int32Array, IntArray

NodeNames: TypeAlias = NDArray[np.int64] | NDArray[np.str_]


class Lines(NamedTuple):
    """Drawn lines of roads, from end to end."""

    tail: Int32Array
    head: Int32Array
    """`tail`, `head`: nodes at the beginning and at the end of each line, shape (lines,), int32."""
    first_point_of: IntArray
    """Points of each line in compressed sparse rows, shape (lines + 1,); at least two a line."""
    lat: FloatArray
    lon: FloatArray
    """`lat`, `lon`: WGS84 degrees of the points, shape (points,)."""


@dataclass(frozen=True, slots=True, eq=False)
class Shapes:
    """Corners of roads between their ends."""

    first_corner_of: IntArray
    """Corners of each arc in compressed sparse rows, shape (arcs + 1,), in the order from the tail
    to the head. They are stored once for each road, with the arc whose tail is the smaller node."""
    lat: FloatArray
    lon: FloatArray
    """`lat`, `lon`: WGS84 degrees, shape (corners,)."""


class Layer(NamedTuple):
    """One of several networks that are published as one; no road leads from one to another."""

    source: str
    """What it was loaded from."""
    nodes: slice
    """Its nodes, which follow each other."""
    reach_m: float
    """As of `RoadNetwork`."""


@dataclass(frozen=True, slots=True, eq=False)
class RoadNetwork:
    """A simple undirected graph in compressed sparse rows, with lengths and speeds of roads.

    Node `v` is an index in `0..n-1`; its neighbours are
    `neighbour_of[first_arc_of[v]:first_arc_of[v + 1]]`, in the adjacency order of the source.
    Every road is two arcs, one in each direction. There are no loops and no parallel roads.
    Build one with `anonymizer.networks`.

    Attributes
    ----------
    node_id
        The source's own names, unique, shape (n,): int64 if all are integers, else text.
        Published regions name nodes by these.
    lat, lon
        WGS84 degrees, shape (n,); all NaN if the source has no coordinates.
    first_arc_of
        Shape (n + 1,), int32.
    neighbour_of
        Shape (arcs,), int32.
    length_m
        Length of each arc, shape (arcs,).
    speed_mps
        Free-flow speed of each arc, shape (arcs,).
    drivable
        False for an arc against the direction of a one-way road, shape (arcs,). Cloaking
        ignores it.
    component_of
        Connected component of each node, shape (n,), int32. Components are numbered by size,
        0 being the largest; ties are broken by the smallest node index.
    shapes
        Corners of the roads; None: all are straight.
    way_of
        Way of OpenStreetMap of each arc, 0 for none, shape (arcs,); None: the source has no ways.
    load_at
        Devices expected at each node, or anything proportional to them, shape (n,); None: the
        source does not say.
    reach_m
        Positions this far from every line still belong to the network, whatever the limit: where
        nodes are places and not points on roads.
    layers
        The networks that it consists of, if there are several.
    inner
        Nodes that were put into long roads and that the source does not have, shape (n,). Each
        has two neighbours. None: there are none.
    account
        What became of everything that the source calls a road, in words; empty if all are used.

    Notes
    -----
    About 32 bytes a node, 25 bytes an arc and 16 bytes a corner: 95 to 140 bytes a node in all.
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
    shapes: Shapes | None = None
    way_of: IntArray | None = None
    load_at: FloatArray | None = None
    reach_m: float = 0.0
    layers: tuple[Layer, ...] = ()
    inner: BoolArray | None = None
    account: str = ""

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

    def alone(self, layer: Layer) -> "RoadNetwork":
        """Return one of its layers, for finding positions on it."""
        first, end = layer.nodes.start, layer.nodes.stop
        arcs = slice(int(self.first_arc_of[first]), int(self.first_arc_of[end]))
        shapes = self.shapes
        if shapes is not None:
            corners = shapes.first_corner_of[arcs.start : arcs.stop + 1]
            drawn = slice(int(corners[0]), int(corners[-1]))
            shapes = Shapes(corners - corners[0], shapes.lat[drawn], shapes.lon[drawn])
        return RoadNetwork(
            self.node_id[layer.nodes],
            self.lat[layer.nodes],
            self.lon[layer.nodes],
            self.first_arc_of[first : end + 1] - self.first_arc_of[first],
            self.neighbour_of[arcs] - np.int32(first),
            self.length_m[arcs],
            self.speed_mps[arcs],
            self.drivable[arcs],
            self.component_of[layer.nodes],
            shapes,
            reach_m=layer.reach_m,
            inner=None if self.inner is None else self.inner[layer.nodes],
        )

    def opposite_arcs(self) -> IntArray:
        """Return the arc in the other direction of each arc, shape (arcs,)."""
        tail = np.repeat(np.arange(self.n_nodes), np.diff(self.first_arc_of))
        opposite = np.empty(len(tail), np.int64)
        opposite[np.lexsort((tail, self.neighbour_of))] = np.lexsort((self.neighbour_of, tail))
        return opposite

    def lines(self) -> Lines:
        """Return the drawn line of each road, once, from its smaller node to its larger."""
        tail = np.repeat(np.arange(self.n_nodes, dtype=np.int32), np.diff(self.first_arc_of))
        arc = np.flatnonzero(tail < self.neighbour_of)
        tail, head = tail[arc], self.neighbour_of[arc]
        n_corners = np.zeros(len(arc), np.int64)
        if self.shapes is not None:
            n_corners = np.diff(self.shapes.first_corner_of)[arc]
        first_point_of = np.concatenate(([0], np.cumsum(n_corners + 2)))
        inner = np.ones(int(first_point_of[-1]), np.bool_)
        first, last = first_point_of[:-1], first_point_of[1:] - 1
        inner[first] = inner[last] = False

        def column(of_node: FloatArray, of_corner: FloatArray | None) -> FloatArray:
            points = np.empty(len(inner))
            points[first], points[last] = of_node[tail], of_node[head]
            if of_corner is not None:
                points[inner] = of_corner
            return points

        shapes = self.shapes
        lat = column(self.lat, None if shapes is None else shapes.lat)
        lon = column(self.lon, None if shapes is None else shapes.lon)
        return Lines(tail, head, first_point_of, lat, lon)


CHARACTER_BYTES = np.dtype("U1").itemsize
"""Of a text in an array."""


class NodeIndex:
    """Finds nodes by their names. O(n log n) to build, O(log n) to find one.

    `node_id`: names of the nodes, unique, shape (n,), as in `RoadNetwork.node_id`.
    """

    def __init__(self, node_id: NodeNames) -> None:
        self._node_id = node_id
        self._order = np.argsort(node_id, kind="stable")

    def find(self, names: NodeNames) -> IntArray:
        """Return the index of each named node, -1 for unknown ones, shape of `names`.

        An integer and the text that spells it are the same name.
        """
        if names.dtype.kind != self._node_id.dtype.kind:
            return NodeIndex(self._node_id.astype(np.str_)).find(names.astype(np.str_))
        if names.dtype != self._node_id.dtype:
            return self._find_as_wide(names)
        place = np.searchsorted(self._node_id, names, sorter=self._order)
        found = np.full(len(names), -1, np.int64)
        inside = np.flatnonzero(place < len(self._order))
        node = self._order[place[inside]]
        known = self._node_id[node] == names[inside]
        found[inside[known]] = node[known]
        return found

    def _find_as_wide(self, names: NodeNames) -> IntArray:
        """Find texts of another width; who is too long for the shorter one is not there.

        numpy would make all as wide as the longest of both: one name of a megabyte among half a
        million short ones takes two terabytes.
        """
        both: tuple[NDArray[Any], NDArray[Any]] = names, self._node_id
        width = min((each.dtype for each in both), key=lambda each: each.itemsize)
        most = width.itemsize // CHARACTER_BYTES
        maybe, nodes = (np.flatnonzero(np.char.str_len(each) <= most) for each in both)
        place = NodeIndex(both[1][nodes].astype(width)).find(both[0][maybe].astype(width))
        found = np.full(len(names), -1, np.int64)
        found[maybe[place >= 0]] = nodes[place[place >= 0]]
        return found
