"""Cloaking regions made of atoms: the atoms of all members of a group, joined by connectors."""

import numpy as np

from anonymizer.algorithms.digit_sort import N_DIGITS, sort_by_digits
from anonymizer.algorithms.kernels import (
    copy_items,
    inlined_kernel,
    inner_kernel,
    kernel,
    sort_in_place,
)
from anonymizer.algorithms.positions.atoms import Levels
from anonymizer.domain.arrays import Int32Array, IntArray, RecordArray, check_indices
from anonymizer.domain.network import RoadNetwork

_NONE = -1
_REACH = 20
"""Limit on the nodes searched for connectors, in multiples of the cap."""


def cover(
    network: RoadNetwork,
    levels: Levels,
    first_member_of: IntArray,
    place: Int32Array,
    level_of: IntArray,
    *,
    max_nodes: int,
) -> tuple[IntArray, Int32Array]:
    """Return the region of each group.

    `place`: node of each member in compressed sparse rows; `level_of`: level of its atom, shape
    (members,). Regions are in compressed sparse rows, nodes rising; empty if one would need more
    than `max_nodes`.

    Raises
    ------
    ValueError
        If there is no such node or level: the kernel would read beyond its arrays.

    Notes
    -----
    The atoms of all members are joined by shortest paths, found by one breadth-first search from
    all of them at once: wherever two searches meet that were not joined before, their path is
    kept. This is Mehlhorn's 2-approximation of the Steiner tree in hops [1]_, except that paths
    found in the same round may differ by one hop and are taken in the order found. The region
    depends only on the set of atoms. Members in several components give a region of as many
    parts. O(nodes reached) a group.

    References
    ----------
    .. [1] K. Mehlhorn, "A faster approximation algorithm for the Steiner problem in graphs", 1988.
    """
    if len(place) and (min(place.min(), level_of.min()) < 0):
        raise ValueError("a member has no place")
    check_indices(place, network.n_nodes)
    check_indices(level_of, len(levels.at))
    # The system gives out zeros: a node that no search reaches costs nothing.
    marks = np.zeros(max(network.n_nodes, len(levels.first_node_of) - 1), _MARK)
    return _cover(
        marks,
        network.first_arc_of,
        network.neighbour_of,
        levels.at,
        levels.first_atom_of,
        levels.first_node_of,
        levels.node,
        first_member_of,
        place,
        level_of,
        min(max_nodes, network.n_nodes),
    )


# Marks carry the number of the group that set them, from one, and are never cleared. The entries
# for node v and for atom v share a record.
_MARK = np.dtype(
    [
        ("seen_by", np.int32),  # node: reached by the search
        ("kept_by", np.int32),  # node: part of the region
        ("placed_by", np.int32),  # atom: its nodes are queued
        ("label", np.int32),  # node: atom from which the search reached it
        ("leader", np.int32),  # atom: parent in the union-find forest
        ("came_from", np.int32),  # node: previous node of the search
    ]
)


@inlined_kernel
def _unite(marks: RecordArray, a: int, b: int) -> int:
    """Join the parts of two atoms (union-find); return 1 if they were separate."""
    while marks[a]["leader"] != a:
        a = marks[a]["leader"]
    while marks[b]["leader"] != b:
        b = marks[b]["leader"]
    if a == b:
        return 0
    marks[max(a, b)]["leader"] = min(a, b)
    return 1


@inner_kernel
def _queue_atoms(
    marks: RecordArray,
    queue: Int32Array,
    g: int,
    atoms: Int32Array,
    first_node_of: IntArray,
    node: Int32Array,
) -> tuple[int, int]:
    """Queue the nodes of a group's atoms; return their number and that of connected parts.

    Atoms of different levels may overlap, as those of one level may in their connectors.
    """
    n, parts = 0, 0
    for a in atoms:
        if marks[a]["placed_by"] == g:
            continue
        marks[a]["placed_by"] = g
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
                mark["came_from"] = _NONE
                queue[n] = v
                n += 1
    return n, parts


@inner_kernel
def _keep_path(marks: RecordArray, g: int, v: int, kept: Int32Array, n: int) -> int:
    """Keep the path by which the search reached a node; return the new number of kept nodes."""
    while v != _NONE and marks[v]["kept_by"] != g:
        marks[v]["kept_by"] = g
        if n < len(kept):
            kept[n] = v
        n += 1
        v = marks[v]["came_from"]
    return n


@inner_kernel
def _join_adjacent(
    marks: RecordArray,
    queue: Int32Array,
    g: int,
    first_arc_of: Int32Array,
    neighbour_of: Int32Array,
    n: int,
    parts: int,
) -> int:
    """Join atoms with neighbouring nodes among `n` queued ones; return how many parts are left."""
    for i in range(n):
        if parts == 1:
            break
        u = queue[i]
        for arc in range(first_arc_of[u], first_arc_of[u + 1]):
            w = neighbour_of[arc]
            if marks[w]["seen_by"] == g:
                parts -= _unite(marks, marks[u]["label"], marks[w]["label"])
    return parts


@inner_kernel
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
    """Search outwards from `n` queued nodes until all parts are joined; return the kept number.

    A number beyond the length of `kept` means that the cap was exceeded. Adjacent atoms are
    joined before the search takes its first step.
    """
    n_kept = n
    if parts == 1:
        return n_kept
    parts = _join_adjacent(marks, queue, g, first_arc_of, neighbour_of, n, parts)
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
                n_kept = _keep_path(marks, g, u, kept, n_kept)
                n_kept = _keep_path(marks, g, w, kept, n_kept)
    if parts > 1 and head < n:
        return len(kept) + 1
    return n_kept


@kernel
def _cover(
    marks: RecordArray,
    first_arc_of: Int32Array,
    neighbour_of: Int32Array,
    atom_at: Int32Array,
    first_atom_of: IntArray,
    first_node_of: IntArray,
    node: Int32Array,
    first_member_of: IntArray,
    place: Int32Array,
    level_of: IntArray,
    max_nodes: int,
) -> tuple[IntArray, Int32Array]:
    n_groups, n_nodes = len(first_member_of) - 1, atom_at.shape[1]
    queue = np.empty(n_nodes, np.int32)
    kept, spare = np.empty(max_nodes, np.int32), np.empty(max_nodes, np.int32)
    ends = np.empty(N_DIGITS, np.int64)
    region = np.empty(max(1024, 8 * n_groups), np.int32)
    first = np.zeros(n_groups + 1, np.int64)
    room = np.empty(64, np.int32)
    for g in range(n_groups):
        start, end = first_member_of[g], first_member_of[g + 1]
        if end - start > len(room):
            room = np.empty(2 * (end - start), np.int32)
        atoms = room[: end - start]
        for i in range(start, end):
            level = level_of[i]
            atoms[i - start] = first_atom_of[level] + atom_at[level, place[i]]
        # Sorted, so that the paths do not depend on which member is in which atom.
        sort_in_place(atoms)
        n, parts = _queue_atoms(marks, queue, g + 1, atoms, first_node_of, node)
        first[g + 1] = first[g]
        if n > max_nodes:
            continue
        copy_items(queue, kept, 0, n)
        n = _connect(marks, queue, g + 1, first_arc_of, neighbour_of, n, parts, kept)
        if n > max_nodes:
            continue
        last = first[g] + n
        if last > len(region):
            larger = np.empty(2 * last, np.int32)
            copy_items(region, larger, 0, first[g])
            region = larger
        sort_by_digits(kept[:n], spare, ends)
        copy_items(kept, region, first[g], n)
        first[g + 1] = last
    return first, region[: first[n_groups]].copy()
