"""Reciprocal grouping: all members of a group get the same region, so it singles out none of them.

One walk over a fixed spanning forest, from the leaves to the roots, collects devices until there
are as many as any of them demands; then the group closes. The groups depend on where all devices
are, never on which device reports, so a region does not reveal the device it is published for.
"""

from typing import NamedTuple

import numpy as np

from anonymizer.algorithms.kernels import kernel, sort_in_place
from anonymizer.algorithms.positions.spanning_forest import SpanningForest
from anonymizer.domain.arrays import FloatArray, Int32Array, IntArray, RecordArray

UNGROUPED = -1
TOO_FEW = -2
TOO_LARGE = -3
TOO_SMALL = -4

_NONE = -1


class Groups(NamedTuple):
    """Groups in compressed sparse rows.

    `k`: the largest demand among the devices of each group. Region of group g:
    `node[first_node_of[g]:first_node_of[g + 1]]`, connected; sorted, because the order of the walk
    would reveal more than the region. `group_at`: group of the devices at each node, or the reason
    why there is none, shape (nodes,): `UNGROUPED` (no devices), `TOO_FEW` (their component holds
    fewer than they demand), `TOO_SMALL` (it is smaller than a region must be), `TOO_LARGE` (their
    region would exceed `max_nodes`).
    """

    k: IntArray
    first_node_of: IntArray
    node: Int32Array
    group_at: IntArray


def form_groups(
    forest: SpanningForest,
    n_at: Int32Array,
    need_at: Int32Array,
    *,
    min_nodes: int,
    max_nodes: int,
    metres_at: FloatArray | None = None,
    min_metres: float = 0.0,
) -> Groups:
    """Partition the devices of a network into groups.

    `n_at`: devices at each node, shape (nodes,); `need_at`: largest demand at each node;
    `metres_at`: road metres that each node stands for. Devices whose group would need more than
    `max_nodes` are left out; a region has at least `min_nodes` and covers `min_metres`.

    Notes
    -----
    O(nodes). Where branches meet, a group closes as soon as it is satisfied, and the next group
    starts there with the node as a mere connector. Two groups may thus share a node, which keeps
    both small. Branches without devices are pruned. The devices left over at a root absorb the
    groups that closed last until there are enough devices, and then the nodes nearest to the
    root until the region is large enough.
    """
    metres = np.zeros(len(n_at)) if metres_at is None else metres_at
    return Groups(
        *_form_groups(
            forest.parent_of,
            forest.order,
            n_at,
            need_at,
            metres,
            min_nodes,
            max_nodes,
            float(min_metres),
        )
    )


# Records instead of parallel arrays: fields that are used together share an argument and a cache
# line. A bin is a group under construction.
_BIN = np.dtype(
    [
        ("devices", np.int64),  # number of devices collected so far
        ("need", np.int64),  # the largest demand among them
        ("metres", np.float64),
        ("size", np.int32),  # number of nodes, in a linked list from head to tail
        ("head", np.int32),
        ("tail", np.int32),
        ("merged_into", np.int32),  # the bin that absorbed this one, itself if none did
        ("node", np.int32),  # entries of the lists; entry b is the first of bin b
        ("next", np.int32),
        ("group", np.int64),  # its group, or the reason why there is none
    ]
)
_NODE = np.dtype(
    [
        ("n_at", np.int32),
        ("need", np.int32),
        ("metres", np.float64),
        ("parent", np.int32),
        ("open", np.int32),  # the open bin that contains this node
        ("home", np.int32),  # the bin that received the node's own devices
        ("seen_by", np.int32),  # the bin that marked the node last
    ]
)
_CLOSED = np.dtype([("bin", np.int32), ("top", np.int32)])


@kernel
def _open(bins: RecordArray, b: int, nodes: RecordArray, v: int) -> None:
    """Start bin b at a node, with the node's own devices unless another bin already has them."""
    at, node = bins[b], nodes[v]
    at["devices"] = 0
    at["need"] = 0
    at["metres"] = node["metres"]
    at["size"] = 1
    at["head"] = b
    at["tail"] = b
    at["merged_into"] = b
    at["node"] = v
    at["next"] = _NONE
    at["group"] = UNGROUPED
    node["open"] = b
    if node["n_at"] > 0 and node["home"] == _NONE:
        at["devices"] = node["n_at"]
        at["need"] = node["need"]
        node["home"] = b


@kernel
def _merge(bins: RecordArray, b: int, other: int) -> None:
    """Merge another bin, with which it shares no node, into bin b."""
    at, its = bins[b], bins[other]
    at["devices"] += its["devices"]
    at["need"] = max(at["need"], its["need"])
    at["metres"] += its["metres"]
    at["size"] += its["size"]
    bins[at["tail"]]["next"] = its["head"]
    at["tail"] = its["tail"]
    its["merged_into"] = b


@kernel
def _has_enough_devices(bins: RecordArray, b: int) -> bool:
    return bool(bins[b]["devices"] >= bins[b]["need"])


@kernel
def _is_large_enough(bins: RecordArray, b: int, min_nodes: int, min_metres: float) -> bool:
    return bool(bins[b]["size"] >= min_nodes and bins[b]["metres"] >= min_metres)


@kernel
def _mark(bins: RecordArray, nodes: RecordArray, b: int) -> None:
    """Mark every node of a bin as seen by it."""
    e = bins[b]["head"]
    while e != _NONE:
        nodes[bins[e]["node"]]["seen_by"] = b
        e = bins[e]["next"]


@kernel
def _add_node(bins: RecordArray, n_bins: int, nodes: RecordArray, b: int, v: int) -> int:
    """Add a node to bin b; its devices, if any, are already in a bin.

    Returns the new number of bins, because the node is made a bin first.
    """
    nodes[v]["seen_by"] = b
    _open(bins, n_bins, nodes, v)
    _merge(bins, b, n_bins)
    return n_bins + 1


@kernel
def _absorb(
    bins: RecordArray, n_bins: int, nodes: RecordArray, b: int, other: int, top: int
) -> int:
    """Merge a closed bin below into bin b, with the nodes on the path up from its top.

    Returns the new number of bins.
    """
    _mark(bins, nodes, b)
    v = nodes[top]["parent"]
    while nodes[v]["seen_by"] != b:
        n_bins = _add_node(bins, n_bins, nodes, b, v)
        v = nodes[v]["parent"]
    if nodes[top]["seen_by"] == b:
        # Both contain the top. The other bin closed there, so the top is the head of its list.
        # They share no node below it: devices that came up later came by other branches.
        its = bins[other]
        its["head"] = bins[its["head"]]["next"]
        its["size"] -= 1
        its["metres"] -= nodes[top]["metres"]
    _merge(bins, b, other)
    return n_bins


@kernel
def _to_arrays(
    bins: RecordArray, nodes: RecordArray, closed: RecordArray
) -> tuple[IntArray, IntArray, Int32Array, IntArray]:
    """Convert closed bins to arrays: k, regions, and the group at each node."""
    n_groups = len(closed)
    k = np.empty(n_groups, np.int64)
    first_node_of = np.zeros(n_groups + 1, np.int64)
    for g in range(n_groups):
        at = bins[closed[g]["bin"]]
        k[g] = at["need"]
        at["group"] = g
        first_node_of[g + 1] = first_node_of[g] + at["size"]
    node = np.empty(first_node_of[-1], np.int32)
    for g in range(n_groups):
        i = first_node_of[g]
        e = bins[closed[g]["bin"]]["head"]
        while e != _NONE:
            node[i] = bins[e]["node"]
            i += 1
            e = bins[e]["next"]
        sort_in_place(node[first_node_of[g] : i])
    group_at = np.full(len(nodes), UNGROUPED, np.int64)
    for v in range(len(nodes)):
        b = nodes[v]["home"]
        if b != _NONE:
            while bins[b]["merged_into"] != b:
                b = bins[b]["merged_into"]
            group_at[v] = bins[b]["group"]
    return k, first_node_of, node, group_at


@kernel
def _merge_into_parent(bins: RecordArray, n_bins: int, nodes: RecordArray, b: int, p: int) -> int:
    """Merge a bin into the open bin of a parent node; return the new number of bins."""
    if nodes[p]["open"] == _NONE:
        _open(bins, n_bins, nodes, p)
        n_bins += 1
    _merge(bins, nodes[p]["open"], b)
    return n_bins


@kernel
def _close(closed: RecordArray, n_closed: int, nodes: RecordArray, b: int, top: int) -> int:
    """Close a bin whose topmost node is `top`; return the new number of closed bins."""
    closed[n_closed]["bin"] = b
    closed[n_closed]["top"] = top
    nodes[top]["open"] = _NONE
    return n_closed + 1


@kernel
def _finish_tree(
    bins: RecordArray,
    n_bins: int,
    nodes: RecordArray,
    closed: RecordArray,
    n_closed: int,
    n_before: int,
    tree: Int32Array,
    min_nodes: int,
    max_nodes: int,
    min_metres: float,
) -> tuple[int, int]:
    """Let the bin left over at a root absorb what is below it until it is satisfied.

    `tree` has the nodes of the tree, parents first; `n_before` bins had closed before it.
    Returns the new numbers of bins and of closed bins.
    """
    root = tree[0]
    b = nodes[root]["open"]
    while not _has_enough_devices(bins, b) and n_closed > n_before:
        n_closed -= 1
        last = closed[n_closed]
        n_bins = _absorb(bins, n_bins, nodes, b, last["bin"], last["top"])
    _mark(bins, nodes, b)
    enough = _has_enough_devices(bins, b)  # the nodes added below bring no more devices
    i = 1
    while enough and not _is_large_enough(bins, b, min_nodes, min_metres) and i < len(tree):
        if nodes[tree[i]]["seen_by"] != b:
            n_bins = _add_node(bins, n_bins, nodes, b, tree[i])
        i += 1
    if not enough:
        n_devices = 0
        for v in tree:
            n_devices += nodes[v]["n_at"]
        # If the tree has enough devices, some were left out on the way up by `max_nodes`.
        bins[b]["group"] = TOO_FEW if n_devices < bins[b]["need"] else TOO_LARGE
    elif not _is_large_enough(bins, b, min_nodes, min_metres):
        bins[b]["group"] = TOO_SMALL
    elif bins[b]["size"] > max_nodes:
        bins[b]["group"] = TOO_LARGE
    else:
        n_closed = _close(closed, n_closed, nodes, b, root)
    return n_bins, n_closed


@kernel
def _form_groups(
    parent_of: Int32Array,
    order: Int32Array,
    n_at: Int32Array,
    need_at: Int32Array,
    metres_at: FloatArray,
    min_nodes: int,
    max_nodes: int,
    min_metres: float,
) -> tuple[IntArray, IntArray, Int32Array, IntArray]:
    n_nodes = len(parent_of)
    # Each node opens at most one bin at itself, one at its parent, and one in `_finish_tree`.
    bins = np.empty(3 * n_nodes + 1, _BIN)
    nodes = np.empty(n_nodes, _NODE)
    closed = np.empty(n_nodes, _CLOSED)
    for v in range(n_nodes):
        at = nodes[v]
        at["n_at"] = n_at[v]
        at["need"] = need_at[v]
        at["metres"] = metres_at[v]
        at["parent"] = parent_of[v]
        at["open"] = _NONE
        at["home"] = _NONE
        at["seen_by"] = _NONE
    n_bins, n_closed, n_before = 0, 0, 0
    end = n_nodes  # end of the current tree in `order`
    for i in range(n_nodes - 1, -1, -1):
        v = order[i]
        p = parent_of[v]
        if nodes[v]["open"] == _NONE and n_at[v] > 0 and nodes[v]["home"] == _NONE:
            _open(bins, n_bins, nodes, v)
            n_bins += 1
            if _has_enough_devices(bins, n_bins - 1) and _is_large_enough(
                bins, n_bins - 1, min_nodes, min_metres
            ):
                n_closed = _close(closed, n_closed, nodes, n_bins - 1, v)
        b = nodes[v]["open"]
        is_open = b != _NONE
        if is_open and p == v:
            n_bins, n_closed = _finish_tree(
                bins,
                n_bins,
                nodes,
                closed,
                n_closed,
                n_before,
                order[i:end],
                min_nodes,
                max_nodes,
                min_metres,
            )
        elif is_open:
            n_bins = _merge_into_parent(bins, n_bins, nodes, b, p)
            above = nodes[p]["open"]
            if bins[above]["size"] > max_nodes:
                bins[above]["group"] = TOO_LARGE
                nodes[p]["open"] = _NONE
            elif _has_enough_devices(bins, above) and _is_large_enough(
                bins, above, min_nodes, min_metres
            ):
                n_closed = _close(closed, n_closed, nodes, above, p)
        if p == v:
            n_before, end = n_closed, i
    return _to_arrays(bins, nodes, closed[:n_closed])
