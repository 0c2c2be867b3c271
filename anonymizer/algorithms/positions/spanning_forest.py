"""A hierarchy of the road network that is built once: which nodes belong together, and how.

A spanning forest whose subtrees are compact (neighbours of one quarter are joined before
quarters are), so that walking it from the leaves gathers devices that are near each other.
"""

from dataclasses import dataclass

import numpy as np

from anonymizer.algorithms.kernels import kernel
from anonymizer.domain.arrays import FloatArray, Int32Array, IntArray
from anonymizer.domain.network import RoadNetwork


@dataclass(frozen=True, slots=True, eq=False)
class SpanningForest:
    """One rooted tree for each connected component.

    Attributes
    ----------
    parent_of
        Shape (nodes,), int32; a root is its own parent.
    order
        Every node after its parent, shape (nodes,), int32; backwards it is leaves first.
    """

    parent_of: Int32Array
    order: Int32Array


def spanning_forest(network: RoadNetwork) -> SpanningForest:
    """Return the forest that joins first what recursive bisection parts last.

    Edges are taken in the order of the depth at which recursive coordinate bisection of the
    nodes parts their ends, deepest first, then of length (Kruskal).

    Notes
    -----
    O(n log^2 n), once. On a network without coordinates the bisection is that of the node order.
    """
    quarter = _bisect(*plane(network))
    tail = np.repeat(np.arange(network.n_nodes), np.diff(network.first_arc_of))
    once = tail < network.neighbour_of
    tail, head = tail[once], network.neighbour_of[once].astype(np.int64)
    # The more leading bits two paths of the bisection share, the deeper it parts them.
    parted = quarter[tail] ^ quarter[head]
    height = np.frexp(parted.astype(np.float64))[1]
    by = np.lexsort((network.length_m[once], height))
    kept = _kruskal(tail[by], head[by], network.n_nodes)
    return SpanningForest(*_rooted(tail[by][kept], head[by][kept], network.n_nodes))


def quarters(network: RoadNetwork, n: int) -> Int32Array:
    """Return in which of `n` compact parts of about equal size each node lies, from 0.

    Parameters
    ----------
    n
        A power of two.
    """
    path = _bisect(*plane(network))
    depth = max(network.n_nodes - 1, 0).bit_length()
    return (path >> max(depth - (n.bit_length() - 1), 0)).astype(np.int32)


def road_metres(network: RoadNetwork) -> FloatArray:
    """Return the metres of road that each node stands for: half of every road at it."""
    tail = np.repeat(np.arange(network.n_nodes), np.diff(network.first_arc_of))
    half = network.length_m / 2
    return np.bincount(tail, weights=half, minlength=network.n_nodes).astype(np.float64)


def plane(network: RoadNetwork) -> tuple[FloatArray, FloatArray]:
    """Return coordinates good enough to halve a network by: any smooth map will do."""
    if not network.has_coordinates:
        return np.arange(network.n_nodes, dtype=np.float64), np.zeros(network.n_nodes)
    return network.lon * np.cos(np.radians(network.lat.mean())), network.lat


@kernel
def _bisect(x: FloatArray, y: FloatArray) -> IntArray:
    """Return for each node its path through the recursive halvings, one bit a level."""
    n = len(x)
    path = np.zeros(n, np.int64)
    index = np.arange(n)
    width = 1
    while width < n:
        width *= 2
    # The halves of one level stand one after the other; `starts` marks where.
    starts = np.array([0, n])
    while width > 1:
        width //= 2
        halves = np.empty(2 * len(starts) - 1, np.int64)
        for i in range(len(starts) - 1):
            lo, hi = starts[i], starts[i + 1]
            mid = (lo + hi) // 2
            halves[2 * i], halves[2 * i + 1] = lo, mid
            if hi - lo > 1:
                part = index[lo:hi].copy()
                px, py = x[part], y[part]
                axis = px if px.max() - px.min() >= py.max() - py.min() else py
                index[lo:hi] = part[np.argsort(axis, kind="mergesort")]
            path[index[lo:mid]] = path[index[lo:mid]] * 2
            path[index[mid:hi]] = path[index[mid:hi]] * 2 + 1
        halves[-1] = n
        starts = halves
    return path


@kernel
def _find(leader_of: IntArray, v: int) -> int:
    while leader_of[v] != v:
        leader_of[v] = leader_of[leader_of[v]]
        v = leader_of[v]
    return v


@kernel
def _kruskal(tail: IntArray, head: IntArray, n_nodes: int) -> IntArray:
    """Return which edges, taken in order, join what was not joined before."""
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
    """Root every tree at its smallest node; return parents and an order from the roots down."""
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
