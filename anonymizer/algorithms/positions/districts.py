"""Districts: fixed parts of the network, in each of which groups are formed independently.

Districts belong to the algorithm, like the atoms: anybody can compute them from the network, the
settings and the expected load. One process may keep all of them, or several workers some each; the
groups are the same. A district is a network of its own. It knows nothing of the others: a device
that leaves it has left its map, and one that comes is new.

The cut is a recursive coordinate bisection [1]_ by load: the part that carries most is halved, and
among the lines near half of its load the one that crosses the fewest roads is taken.

References
----------
.. [1] M. J. Berger, S. H. Bokhari, "A partitioning strategy for nonuniform problems on
   multiprocessors", IEEE Transactions on Computers 36(5), 1987.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

from anonymizer.algorithms.geodesy import chord_of_m, unit_vectors
from anonymizer.algorithms.positions.atoms import Levels
from anonymizer.algorithms.positions.spanning_forest import planar_coordinates
from anonymizer.domain.arrays import FloatArray, Int32Array, IntArray, starts_of
from anonymizer.domain.network import RoadNetwork

_DIRECTIONS = np.pi * np.arange(8) / 8
"""Of the lines that are tried, radians."""
_AROUND_M = 500.0
_TOLERANCE = 0.02
"""By which share of the load of a part the line may be off its middle, to cross fewer roads."""


@dataclass(frozen=True, slots=True, eq=False)
class Districts:
    """The cut of a network.

    `of_node`: district of each node, and `number_of`: its number within it, shape (nodes,), int32.
    """

    n: int
    of_node: Int32Array
    number_of: Int32Array

    def nodes(self, district: int) -> Int32Array:
        """Return the nodes of a district, by their numbers in it."""
        return np.flatnonzero(self.of_node == district).astype(np.int32)


def cut_into_districts(
    network: RoadNetwork, n: int, *, load: FloatArray, least_nodes: int
) -> Districts:
    """Cut a network into districts of about equal load.

    `load`: share of the devices that is expected at each node, or anything proportional to it, >=
    0, shape (nodes,). A connected piece of fewer than `least_nodes` moves to the district of a
    larger piece beside it, if there is one.

    Raises
    ------
    ValueError
        If the network has too few nodes for so many.
    """
    of_node = np.zeros(network.n_nodes, np.int32)
    # Even where nobody is expected, a node is better here than there.
    load = load / (load.sum() or 1.0) + 1e-9 / network.n_nodes
    points = np.stack(planar_coordinates(network))
    parts = [np.arange(network.n_nodes)]
    while len(parts) < n:
        carried = [load[part].sum() if len(part) >= 2 * least_nodes else -1.0 for part in parts]
        heaviest = int(np.argmax(carried))
        if carried[heaviest] < 0:
            raise ValueError(f"the network has room for {len(parts)} districts")
        part = parts[heaviest]
        parts[heaviest : heaviest + 1] = _halves(network, part, points, load, least=least_nodes)
    for number, part in enumerate(parts):
        of_node[part] = number
    while _move_splinters(network, of_node, least_nodes):
        pass
    order = np.argsort(of_node, kind="stable")
    first = starts_of(np.bincount(of_node, minlength=n))
    number_of = np.empty(network.n_nodes, np.int32)
    number_of[order] = np.arange(network.n_nodes) - first[of_node[order]]
    return Districts(n, of_node, number_of)


def expected_load(network: RoadNetwork) -> FloatArray:
    """Return what the network says, else the junctions within 500 m of each, shape (nodes,).

    Traffic is where streets are dense, and so are the streets around.
    """
    if network.load_at is not None:
        return network.load_at
    if not network.has_coordinates:
        return np.ones(network.n_nodes)
    points = unit_vectors(network.lat, network.lon)
    tree, reach = cKDTree(points), chord_of_m(_AROUND_M)
    return np.asarray(tree.query_ball_point(points, reach, return_length=True), np.float64)


def _halves(
    network: RoadNetwork, part: IntArray, points: FloatArray, load: FloatArray, *, least: int
) -> tuple[IntArray, IntArray]:
    """Split nodes by the line that crosses the fewest roads among those near half of the load."""
    n = len(part)
    place = np.full(network.n_nodes, -1)
    place[part] = np.arange(n)
    tail, head = place[tails(network)], place[network.neighbour_of]
    once = (tail >= 0) & (tail < head)
    tail, head = tail[once], head[once]
    found: list[tuple[int, float, IntArray, IntArray]] = []
    for angle in _DIRECTIONS:
        along = np.cos(angle) * points[0, part] + np.sin(angle) * points[1, part]
        order = np.argsort(along, kind="stable")
        rank = np.empty(n, np.int64)
        rank[order] = np.arange(n)
        first, last = np.minimum(rank[tail], rank[head]), np.maximum(rank[tail], rank[head])
        # A cut at i puts the first i nodes on one side.
        steps = np.bincount(first + 1, minlength=n + 2) - np.bincount(last + 1, minlength=n + 2)
        n_crossed = np.cumsum(steps)[: n + 1]
        share = np.concatenate([[0.0], np.cumsum(load[part[order]])])
        off = np.abs(share / share[-1] - 0.5)
        may = np.arange(least, n - least + 1)
        near = may[off[may] <= max(_TOLERANCE, off[may].min())]
        at = near[np.lexsort((off[near], n_crossed[near]))[0]]
        found.append((int(n_crossed[at]), float(off[at]), order[:at], order[at:]))
    _, _, left, right = min(found, key=lambda each: each[:2])
    return np.sort(part[left]), np.sort(part[right])


def _move_splinters(network: RoadNetwork, of_node: Int32Array, least_nodes: int) -> bool:
    """Move small pieces to the district of the largest piece beside them; return if any moved."""
    piece_of = _components(network, of_node)
    size = np.bincount(piece_of)
    tail, head = piece_of[tails(network)], piece_of[network.neighbour_of]
    # Pieces are numbered by size, so the smallest number beside a piece is its largest neighbour.
    target = np.arange(len(size))
    np.minimum.at(target, tail, head)
    moves = (size < least_nodes) & (target < np.arange(len(size)))
    moves &= ~moves[target]
    district = np.empty(len(size), np.int32)
    district[piece_of] = of_node
    of_node[:] = np.where(moves, district[target], district)[piece_of]
    return bool(moves.any())


def network_of(network: RoadNetwork, districts: Districts, district: int) -> RoadNetwork:
    """Return the network of a district: roads to others are left out, all are straight."""
    of_node, nodes = districts.of_node, districts.nodes(district)
    tail = tails(network)
    kept = np.flatnonzero((of_node[tail] == district) & (of_node[network.neighbour_of] == district))
    n_arcs = np.bincount(districts.number_of[tail[kept]], minlength=len(nodes))
    alone = replace(
        network,
        node_id=network.node_id[nodes],
        lat=network.lat[nodes],
        lon=network.lon[nodes],
        first_arc_of=starts_of(n_arcs).astype(np.int32),
        neighbour_of=districts.number_of[network.neighbour_of[kept]],
        length_m=network.length_m[kept],
        speed_mps=network.speed_mps[kept],
        drivable=network.drivable[kept],
        component_of=np.zeros(len(nodes), np.int32),
        shapes=None,
        way_of=None,
        load_at=None,
        layers=(),
    )
    return replace(alone, component_of=_components(alone, alone.component_of))


def joined_levels(districts: Districts, levels: Sequence[Levels]) -> IntArray:
    """Return the atom of each node at each level, shape (levels, nodes).

    Parameters
    ----------
    levels
        Of each district. Where one has fewer than others, its largest atoms stand for more.
    """
    at = np.full((max(len(each.at) for each in levels), len(districts.of_node)), -1, np.int64)
    n_atoms = 0
    for district, each in enumerate(levels):
        own = each.at[np.minimum(np.arange(len(at)), len(each.at) - 1)]
        at[:, districts.nodes(district)] = np.where(own < 0, own, own + n_atoms)
        n_atoms += int(own.max(initial=-1)) + 1
    return at


def _components(network: RoadNetwork, of_node: Int32Array) -> Int32Array:
    """Return the component of each node without roads between parts, numbered by size."""
    n, tail, head = network.n_nodes, tails(network), network.neighbour_of
    kept = of_node[tail] == of_node[head]
    first = starts_of(np.bincount(tail[kept], minlength=n))
    arcs = csr_array((np.ones(kept.sum(), np.int8), head[kept], first), shape=(n, n))
    _, label = connected_components(arcs, directed=False)
    _, first_node, size = np.unique(label, return_index=True, return_counts=True)
    number = np.empty(len(size), np.int32)
    number[np.lexsort((first_node, -size))] = np.arange(len(size), dtype=np.int32)
    return number[label]


def tails(network: RoadNetwork) -> IntArray:
    """Return the node at which each arc begins, shape (arcs,)."""
    return np.repeat(np.arange(network.n_nodes), np.diff(network.first_arc_of))
