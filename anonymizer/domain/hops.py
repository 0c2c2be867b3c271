"""Hops: a network as its source has it, without the nodes that were put into long roads.

ADKA speaks of junctions and their neighbours. A node in the middle of a long road is a place, but
no junction: it belongs to the nearer end of its road, and is no hop on the way to the other end.
"""

from typing import NamedTuple

import numpy as np

from anonymizer.domain.arrays import Int32Array, IntArray, starts_of
from anonymizer.domain.network import RoadNetwork


class Walks(NamedTuple):
    """The roads of the source, from junction to junction, each in both directions."""

    first_arc_of: IntArray
    """Compressed sparse rows, shape (walks + 1,)."""
    arc: IntArray
    """Arcs of the network that each walk passes, in this order."""
    tail: IntArray
    head: IntArray
    """`tail`, `head`: junctions at which it begins and ends, shape (walks,). Walks are in the order
    of the arcs with which they begin."""


class Hops(NamedTuple):
    """A simple graph of junctions; nodes are those of the network."""

    junction_of: Int32Array
    """Junction that each node belongs to, itself for a junction, shape (n,)."""
    first_arc_of: Int32Array
    neighbour_of: Int32Array
    """`first_arc_of`, `neighbour_of`: compressed sparse rows as of `RoadNetwork`, in the adjacency
    order of the source. Nodes that are no junctions have no neighbours."""


def walks_of(network: RoadNetwork) -> Walks:
    """Return the roads of the source. O(arcs log arcs)."""
    tail = np.repeat(np.arange(network.n_nodes), np.diff(network.first_arc_of))
    inner = np.zeros(network.n_nodes, np.bool_) if network.inner is None else network.inner
    opposite = network.opposite_arcs()
    here = np.flatnonzero(~inner[tail])
    walk, n_walks = np.arange(len(here)), len(here)
    steps = [(walk, here)]
    while len(here):
        on = inner[network.neighbour_of[here]]
        walk, here = walk[on], here[on]
        # A node within a road has two arcs: the one is the way back.
        here = 2 * network.first_arc_of[network.neighbour_of[here]] + 1 - opposite[here]
        steps.append((walk, here))
    walk_of, arc = (np.concatenate(column) for column in zip(*steps, strict=True))
    arc = arc[np.argsort(walk_of, kind="stable")]
    first = starts_of(np.bincount(walk_of, minlength=n_walks))
    return Walks(first, arc, tail[arc[first[:-1]]], network.neighbour_of[arc[first[1:] - 1]])


def hops_of(network: RoadNetwork) -> Hops:
    """Return the graph of the source. O(1) if no node was put into a road, else O(arcs log arcs).

    A node in the exact middle of a road belongs to the end with the smaller index.
    """
    junction_of = np.arange(network.n_nodes, dtype=np.int32)
    if network.inner is None:
        return Hops(junction_of, network.first_arc_of, network.neighbour_of)
    walks = walks_of(network)
    n_arcs = np.diff(walks.first_arc_of)
    walk = np.repeat(np.arange(len(n_arcs)), n_arcs)
    behind = np.arange(len(walk)) - walks.first_arc_of[walk]
    # The pieces of a road are equally long.
    rows = np.flatnonzero((behind > 0) & (walks.tail <= walks.head)[walk])
    walk, behind = walk[rows], behind[rows]
    at = np.repeat(np.arange(network.n_nodes), np.diff(network.first_arc_of))[walks.arc[rows]]
    junction_of[at] = np.where(2 * behind <= n_arcs[walk], walks.tail[walk], walks.head[walk])
    _, first = np.unique(walks.tail * network.n_nodes + walks.head, return_index=True)
    first = np.sort(first[walks.tail[first] != walks.head[first]])
    n_neighbours = np.bincount(walks.tail[first], minlength=network.n_nodes)
    return Hops(
        junction_of,
        starts_of(n_neighbours).astype(np.int32),
        walks.head[first].astype(np.int32),
    )
