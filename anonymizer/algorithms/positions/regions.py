"""The region of a group: whole atoms under its members, and what connects them."""

from typing import NamedTuple

import numpy as np

from anonymizer.algorithms.kernels import kernel
from anonymizer.algorithms.positions.grouping import form_groups
from anonymizer.algorithms.positions.spanning_forest import SpanningForest
from anonymizer.domain.arrays import FloatArray, Int32Array, IntArray, RecordArray
from anonymizer.domain.network import RoadNetwork

_NOBODY = -1
_REACH = 20
"""Nodes looked at for connectors, in multiples of the cap."""


class Atoms(NamedTuple):
    """The network in small connected pieces: the least that a region says of one device.

    Attributes
    ----------
    at
        Atom of each node, negative where its component is too small for one, shape (nodes,).
    first_node_of, node
        Nodes of each atom in compressed sparse rows. A piece may pass through a node of
        another's.
    """

    at: IntArray
    first_node_of: IntArray
    node: Int32Array


def cut_into_atoms(
    forest: SpanningForest,
    *,
    min_nodes: int,
    metres_at: FloatArray | None = None,
    min_metres: float = 0.0,
) -> Atoms:
    """Cut a network into connected pieces, each just large enough.

    Parameters
    ----------
    forest
        Of the network.
    min_nodes
        Nodes in a piece, at least, and as many whose atom it is: a region says that a device is
        at one of these, not that it is at a node that the piece merely passes through.
    metres_at, min_metres
        Road metres each node stands for, and how many a piece must cover.

    Notes
    -----
    The walk that gathers devices, with one device at every node, each of which wants to be
    among `min_nodes`. O(nodes), once.
    """
    n_nodes = len(forest.parent_of)
    pieces = form_groups(
        forest,
        np.ones(n_nodes, np.int32),
        np.full(n_nodes, min_nodes, np.int32),
        min_nodes=min_nodes,
        max_nodes=n_nodes,
        metres_at=metres_at,
        min_metres=min_metres,
    )
    return Atoms(pieces.group_at, pieces.first_node_of, pieces.node)


def with_small_components(atoms: Atoms, network: RoadNetwork) -> Atoms:
    """Return the atoms, with one more for each component that is too small for a sound one.

    A group cannot live there, but a member of a group can stray there and has to be covered.
    """
    stray = np.flatnonzero(atoms.at < 0)
    by_component = stray[np.argsort(network.component_of[stray], kind="stable")]
    _, sizes = np.unique(network.component_of[by_component], return_counts=True)
    at = atoms.at.copy()
    at[by_component] = len(atoms.first_node_of) - 1 + np.repeat(np.arange(len(sizes)), sizes)
    return Atoms(
        at,
        np.concatenate([atoms.first_node_of, atoms.first_node_of[-1] + np.cumsum(sizes)]),
        np.concatenate([atoms.node, by_component.astype(np.int32)]),
    )


def cover(
    network: RoadNetwork,
    atoms: Atoms,
    first_member_of: IntArray,
    place: Int32Array,
    *,
    max_nodes: int,
) -> tuple[IntArray, Int32Array]:
    """Return the region of each group.

    Parameters
    ----------
    network, atoms
        What regions are made of.
    first_member_of, place
        Node of each member in compressed sparse rows; every one in an atom.
    max_nodes
        A group that would need more gets none.

    Returns
    -------
    first_node_of, node
        Regions in compressed sparse rows, nodes rising; empty where the cap was passed.

    Notes
    -----
    The atoms of all members, joined by shortest ways: a breadth-first search from all of them
    at once, which keeps a way wherever two searches meet that were not joined before
    (Mehlhorn's 2-approximation of the Steiner tree, in hops [1]_, but for ways found in the
    same round, which differ by a hop and are taken as they come). The region follows from the
    set of atoms alone. Members in several components give a region of as many parts.
    O(nodes reached) a group.

    References
    ----------
    .. [1] K. Mehlhorn, "A faster approximation algorithm for the Steiner problem in graphs", 1988.
    """
    return _cover(
        network.first_arc_of,
        network.neighbour_of,
        atoms.at,
        atoms.first_node_of,
        atoms.node,
        first_member_of,
        place,
        min(max_nodes, network.n_nodes),
    )


# Marks carry the group that set them and are never cleared. One record a node: one cache line.
_MARK = np.dtype(
    [
        ("seen_by", np.int32),
        ("kept_by", np.int32),  # of a node: it is in the region
        ("laid_by", np.int32),  # of an atom: its nodes are
        ("label", np.int32),  # the atom from which the search came
        ("leader", np.int32),  # of an atom: one that it is joined to
        ("came_from", np.int32),
    ]
)


@kernel
def _sort(items: IntArray | Int32Array) -> None:
    """Sort in place: by insertion, several times as fast for the few that there mostly are."""
    if len(items) > 64:
        items.sort()
        return
    for i in range(1, len(items)):
        item, free = items[i], i
        while free > 0 and items[free - 1] > item:
            items[free] = items[free - 1]
            free -= 1
        items[free] = item


@kernel
def _unite(marks: RecordArray, a: int, b: int) -> int:
    """Join the parts of two atoms; return 1 if they were apart."""
    while marks[a]["leader"] != a:
        a = marks[a]["leader"]
    while marks[b]["leader"] != b:
        b = marks[b]["leader"]
    if a == b:
        return 0
    marks[max(a, b)]["leader"] = min(a, b)
    return 1


@kernel
def _lay_atoms(
    marks: RecordArray,
    queue: Int32Array,
    g: int,
    atoms: IntArray,
    first_node_of: IntArray,
    node: Int32Array,
) -> tuple[int, int]:
    """Queue the nodes of a group's atoms; return how many, and in how many parts they are."""
    n, parts = 0, 0
    for a in atoms:
        if marks[a]["laid_by"] == g:
            continue
        marks[a]["laid_by"] = g
        marks[a]["leader"] = a
        parts += 1
        for i in range(first_node_of[a], first_node_of[a + 1]):
            v = node[i]
            mark = marks[v]
            if mark["seen_by"] == g:
                parts -= _unite(marks, mark["label"], a)
            else:
                mark["seen_by"] = g
                mark["kept_by"] = g
                mark["label"] = a
                mark["came_from"] = _NOBODY
                queue[n] = v
                n += 1
    return n, parts


@kernel
def _keep_way(marks: RecordArray, g: int, v: int, kept: Int32Array, n: int) -> int:
    """Keep the way by which the search came to a node; return how many nodes are kept then."""
    while v != _NOBODY and marks[v]["kept_by"] != g:
        marks[v]["kept_by"] = g
        if n < len(kept):
            kept[n] = v
        n += 1
        v = marks[v]["came_from"]
    return n


@kernel
def _connect(
    marks: RecordArray,
    queue: Int32Array,
    g: int,
    first_arc_of: Int32Array,
    neighbour_of: Int32Array,
    n: int,
    parts: int,
    kept: Int32Array,
) -> int:
    """Search outwards from `n` queued nodes until all parts are one; return the nodes kept.

    More than `kept` holds means that the cap was passed. Touching atoms are joined first: the
    search sees all of them before it takes its first step.
    """
    n_kept = n
    if parts == 1:
        return n_kept
    for i in range(n):
        u = queue[i]
        for arc in range(first_arc_of[u], first_arc_of[u + 1]):
            w = neighbour_of[arc]
            if marks[w]["seen_by"] == g:
                parts -= _unite(marks, marks[u]["label"], marks[w]["label"])
    head = 0
    while parts > 1 and head < n and n_kept <= len(kept) and head < _REACH * len(kept):
        u = queue[head]
        head += 1
        for arc in range(first_arc_of[u], first_arc_of[u + 1]):
            w = neighbour_of[arc]
            mark = marks[w]
            if mark["seen_by"] != g:
                mark["seen_by"] = g
                mark["label"] = marks[u]["label"]
                mark["came_from"] = u
                queue[n] = w
                n += 1
            elif _unite(marks, marks[u]["label"], mark["label"]):
                parts -= 1
                n_kept = _keep_way(marks, g, u, kept, n_kept)
                n_kept = _keep_way(marks, g, w, kept, n_kept)
    if parts > 1 and head < n:
        return len(kept) + 1
    return n_kept


@kernel
def _cover(
    first_arc_of: Int32Array,
    neighbour_of: Int32Array,
    atom_at: IntArray,
    first_node_of: IntArray,
    node: Int32Array,
    first_member_of: IntArray,
    place: Int32Array,
    max_nodes: int,
) -> tuple[IntArray, Int32Array]:
    n_groups, n_nodes = len(first_member_of) - 1, len(atom_at)
    marks = np.empty(n_nodes, _MARK)
    for v in range(n_nodes):
        marks[v]["seen_by"] = _NOBODY
        marks[v]["kept_by"] = _NOBODY
        marks[v]["laid_by"] = _NOBODY
    queue = np.empty(n_nodes, np.int32)
    kept = np.empty(max_nodes, np.int32)
    region = np.empty(max(1024, 8 * n_groups), np.int32)
    first = np.zeros(n_groups + 1, np.int64)
    for g in range(n_groups):
        members = place[first_member_of[g] : first_member_of[g + 1]]
        # Rising, or the ways would depend on which member is in which atom.
        atoms = atom_at[members]
        _sort(atoms)
        n, parts = _lay_atoms(marks, queue, g, atoms, first_node_of, node)
        first[g + 1] = first[g]
        if n > max_nodes:
            continue
        kept[:n] = queue[:n]
        n = _connect(marks, queue, g, first_arc_of, neighbour_of, n, parts, kept)
        if n > max_nodes:
            continue
        end = first[g] + n
        if end > len(region):
            larger = np.empty(2 * end, np.int32)
            larger[: first[g]] = region[: first[g]]
            region = larger
        _sort(kept[:n])
        region[first[g] : end] = kept[:n]
        first[g + 1] = end
    return first, region[: first[n_groups]].copy()
