"""A spanning forest of the road network with compact subtrees, built once.

Recursive bisection divides the network into parts, and neighbours within a part are joined before
parts are joined to each other. A walk from the leaves therefore collects devices that are close
together.

References
----------
.. [1] M. J. Berger, S. H. Bokhari, "A partitioning strategy for nonuniform problems on
   multiprocessors", IEEE Transactions on Computers 36(5), 1987 (recursive coordinate bisection).
.. [2] J. B. Kruskal, "On the shortest spanning subtree of a graph and the traveling salesman
   problem", Proceedings of the AMS 7(1), 1956.
"""

from dataclasses import dataclass

import numpy as np

from anonymizer.algorithms.kernels import kernel
from anonymizer.domain.arrays import FloatArray, Int32Array, IntArray
from anonymizer.domain.network import RoadNetwork


@dataclass(frozen=True, slots=True, eq=False)
class SpanningForest:
    """One rooted tree for each connected component."""

    parent_of: Int32Array
    """Shape (nodes,), int32; a root is its own parent."""
    order: Int32Array
    """Nodes tree by tree, with every parent before its children, shape (nodes,), int32; reversed it
    puts children before parents."""


def spanning_forest(network: RoadNetwork) -> SpanningForest:
    """Return the forest that joins first what recursive coordinate bisection separates last.

    Edges are added by Kruskal's algorithm [2]_, sorted by the depth at which the bisection [1]_
    separates their ends, deepest first, then by length.

    Notes
    -----
    O(n log^2 n), once. A network without coordinates is bisected in the order of its nodes.
    """
    path = _bisect(*planar_coordinates(network))
    tail = np.repeat(np.arange(network.n_nodes), np.diff(network.first_arc_of))
    once = tail < network.neighbour_of
    tail, head = tail[once], network.neighbour_of[once].astype(np.int64)
    # The more leading bits two paths share, the deeper the bisection separates them.
    differing_bits = path[tail] ^ path[head]
    height = _highest_bit(differing_bits)
    by = np.lexsort((network.length_m[once], height))
    kept = _kruskal(tail[by], head[by], network.n_nodes)
    return SpanningForest(*_rooted(tail[by][kept], head[by][kept], network.n_nodes))


def compact_parts(network: RoadNetwork, n: int) -> Int32Array:
    """Return for each node which of `n` compact parts of about equal size it is in, from 0.

    Parameters
    ----------
    n
        A power of two.
    """
    return parts_of(*planar_coordinates(network), n)


def parts_of(x: FloatArray, y: FloatArray, n: int) -> Int32Array:
    """Return for each point which of `n` compact parts of about equal size it is in, from 0.

    `x`, `y`: place of each point in equally long units, shape (points,); `n`: a power of two.
    """
    depth = max(len(x) - 1, 0).bit_length()
    return (_bisect(x, y) >> max(depth - (n.bit_length() - 1), 0)).astype(np.int32)


def fold(n_in: IntArray, least: int) -> IntArray:
    """Return the part that each part follows, because it has too few devices of its own.

    `n_in`: devices in each part, a power of two of them; parts 2i and 2i + 1 are halves of one
    whole, and so on. A half with fewer than `least` devices follows the other half; a whole in
    which there are not twice as many is one part.
    """
    follows = np.arange(len(n_in))
    wholes = [(0, len(n_in))]
    while wholes:
        start, end = wholes.pop()
        if end - start == 1:
            continue
        middle = (start + end) // 2
        left, right = int(n_in[start:middle].sum()), int(n_in[middle:end].sum())
        if min(left, right) >= least:
            wholes += [(start, middle), (middle, end)]
        elif left + right < 2 * least:
            # Always the same one: a part that changes whom it follows makes devices wait.
            follows[start:end] = start
        elif left < right:
            wholes.append((middle, end))
            follows[start:middle] = middle
        else:
            wholes.append((start, middle))
            follows[middle:end] = start
    while (follows != follows[follows]).any():
        follows = follows[follows]
    return follows


def road_metres(network: RoadNetwork) -> FloatArray:
    """Return the metres of road that each node stands for: half of every road that ends there."""
    tail = np.repeat(np.arange(network.n_nodes), np.diff(network.first_arc_of))
    half = network.length_m / 2
    return np.bincount(tail, weights=half, minlength=network.n_nodes).astype(np.float64)


def planar_coordinates(network: RoadNetwork) -> tuple[FloatArray, FloatArray]:
    """Return planar coordinates for bisecting a network; any smooth projection is good enough."""
    if not network.n_nodes or not network.has_coordinates:
        return np.arange(network.n_nodes, dtype=np.float64), np.zeros(network.n_nodes)
    return network.lon * np.cos(np.radians(network.lat.mean())), network.lat


def _highest_bit(codes: IntArray | Int32Array) -> Int32Array:
    """Return the number of bits of each code, 0 for 0."""
    return np.frexp(codes.astype(np.float64))[1]


def _bisect(x: FloatArray, y: FloatArray) -> IntArray:
    """Return the path of each node through the recursive bisection, one bit for each level."""
    n = len(x)
    path = np.zeros(n, np.int64)
    index = np.arange(n)
    # The parts of one level are consecutive ranges of `index`; `starts` has their bounds.
    starts = np.array([0, n])
    for _ in range(max(n - 1, 0).bit_length()):
        lo, size = starts[:-1], np.diff(starts)
        part = np.repeat(np.arange(len(size)), size)
        px, py = x[index], y[index]
        wider = np.zeros(len(size), np.bool_)
        wider[size > 0] = _extent(px, lo[size > 0]) >= _extent(py, lo[size > 0])
        index = index[np.lexsort((np.where(wider[part], px, py), part))]
        mid = lo + size // 2
        path[index] = 2 * path[index] + (np.arange(n) >= mid[part])
        starts = np.append(np.column_stack([lo, mid]).ravel(), n)
    return path


def _extent(values: FloatArray, starts: IntArray) -> FloatArray:
    """Return the largest less the smallest value of each range of an array."""
    return np.maximum.reduceat(values, starts) - np.minimum.reduceat(values, starts)


@kernel
def _find(leader_of: IntArray, v: int) -> int:
    while leader_of[v] != v:
        leader_of[v] = leader_of[leader_of[v]]
        v = leader_of[v]
    return v


@kernel
def _kruskal(tail: IntArray, head: IntArray, n_nodes: int) -> IntArray:
    """Return the edges that, taken in order, join components that were not joined before."""
    leader_of = np.arange(n_nodes)
    kept = np.empty(len(tail), np.int64)
    n = 0
    for e in range(len(tail)):
        a, b = _find(leader_of, tail[e]), _find(leader_of, head[e])
        if a != b:
            leader_of[max(a, b)] = min(a, b)
            kept[n] = e
            n += 1
    return kept[:n].copy()


@kernel
def _rooted(tail: IntArray, head: IntArray, n_nodes: int) -> tuple[Int32Array, Int32Array]:
    """Root every tree at its smallest node; return the parents and an order from the roots."""
    first = np.zeros(n_nodes + 1, np.int64)
    for e in range(len(tail)):
        first[tail[e] + 1] += 1
        first[head[e] + 1] += 1
    first = np.cumsum(first)
    fill = first[:-1].copy()
    near = np.empty(2 * len(tail), np.int64)
    for e in range(len(tail)):
        near[fill[tail[e]]] = head[e]
        fill[tail[e]] += 1
        near[fill[head[e]]] = tail[e]
        fill[head[e]] += 1
    parent_of = np.full(n_nodes, -1, np.int32)
    order = np.empty(n_nodes, np.int32)
    n = 0
    for root in range(n_nodes):
        if parent_of[root] >= 0:
            continue
        parent_of[root] = root
        order[n] = root
        at = n
        n += 1
        while at < n:
            v = order[at]
            at += 1
            for i in range(first[v], first[v + 1]):
                w = near[i]
                if parent_of[w] < 0:
                    parent_of[w] = v
                    order[n] = w
                    n += 1
    return parent_of, order
