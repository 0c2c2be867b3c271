"""Reciprocal groups: the devices of a network, parted so that nobody can tell for whom.

One walk over a fixed spanning forest, from the leaves to the roots: devices are gathered until
they are as many as any of them demands, then the group closes. Who is grouped with whom
follows from where everybody is, never from who asks, so a region tells nothing of which of its
devices it was made for.
"""

from typing import NamedTuple

import numpy as np

from anonymizer.algorithms.kernels import kernel
from anonymizer.algorithms.positions.spanning_forest import SpanningForest
from anonymizer.domain.arrays import FloatArray, Int32Array, IntArray, RecordArray

UNGROUPED = -1
TOO_FEW = -2
TOO_LARGE = -3
TOO_SMALL = -4

_NONE = -1


class Groups(NamedTuple):
    """Groups in compressed sparse rows.

    Attributes
    ----------
    k
        The largest demand among the devices of each group, which it satisfies.
    first_node_of, node
        Region of group g: `node[first_node_of[g]:first_node_of[g + 1]]`, connected, nodes
        rising: the order of the walk would tell more than the region does.
    group_at
        Group of the devices at each node, or why there is none, shape (nodes,): `UNGROUPED`
        (there are no devices), `TOO_FEW` (their component holds fewer than they demand),
        `TOO_SMALL` (their component is smaller than a region must be), `TOO_LARGE` (their
        region would be larger than it may be).
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
    """Part the devices of a forest into groups.

    Parameters
    ----------
    forest
        Of the network.
    n_at
        Devices at each node, shape (nodes,).
    need_at
        Largest demand of a device at each node; read only where there is one.
    min_nodes, max_nodes
        Bounds of a region; devices whose group would need more are left out.
    metres_at, min_metres
        Road metres that each node stands for, shape (nodes,), and how many a region must cover.

    Notes
    -----
    O(nodes). Where branches meet, a group closes as soon as it is satisfied and the next one
    starts there anew, with the node as a mere connector: two groups may pass through one node,
    which keeps both small. Branches without devices are pruned. What is left over at a root
    takes in the groups that closed last, until its devices are enough, and then the nodes next
    to the root, until these are.
    """
    metres = np.zeros(len(n_at)) if metres_at is None else metres_at
    return Groups(
        *_gather(
            forest.parent_of, forest.order, n_at, need_at, metres, min_nodes, max_nodes, min_metres
        )
    )


# Records instead of parallel arrays: one argument, and one cache line, for what is used together.
_BIN = np.dtype(
    [
        ("devices", np.int64),  # gathered so far
        ("need", np.int64),  # the largest demand among them
        ("metres", np.float64),
        ("size", np.int32),  # nodes, in a linked list from head to tail
        ("head", np.int32),
        ("tail", np.int32),
        ("into", np.int32),  # the bin that took this one in; itself while it is on its own
        ("node", np.int32),  # the list's entries: the b-th belongs to the b-th bin at first
        ("next", np.int32),
        ("fate", np.int64),  # its group, or why there is none
    ]
)
_NODE = np.dtype(
    [
        ("n_at", np.int32),
        ("need", np.int32),
        ("metres", np.float64),
        ("parent", np.int32),
        ("open", np.int32),  # the bin that passes through here and is not closed
        ("home", np.int32),  # the bin that the node's own devices went into
        ("seen_by", np.int32),
    ]
)
_CLOSED = np.dtype([("bin", np.int32), ("top", np.int32)])


@kernel
def _open(bins: RecordArray, b: int, nodes: RecordArray, v: int) -> None:
    """Start bin b at a node, with the node's own devices unless another bin has them."""
    at, node = bins[b], nodes[v]
    at["devices"] = 0
    at["need"] = 0
    at["metres"] = node["metres"]
    at["size"] = 1
    at["head"] = b
    at["tail"] = b
    at["into"] = b
    at["node"] = v
    at["next"] = _NONE
    at["fate"] = UNGROUPED
    node["open"] = b
    if node["n_at"] > 0 and node["home"] == _NONE:
        at["devices"] = node["n_at"]
        at["need"] = node["need"]
        node["home"] = b


@kernel
def _take_in(bins: RecordArray, b: int, other: int) -> None:
    """Let bin b take in another whose nodes are not its own."""
    at, its = bins[b], bins[other]
    at["devices"] += its["devices"]
    at["need"] = max(at["need"], its["need"])
    at["metres"] += its["metres"]
    at["size"] += its["size"]
    bins[at["tail"]]["next"] = its["head"]
    at["tail"] = its["tail"]
    its["into"] = b


@kernel
def _enough(bins: RecordArray, b: int) -> bool:
    return bool(bins[b]["devices"] >= bins[b]["need"])


@kernel
def _large_enough(bins: RecordArray, b: int, min_nodes: int, min_metres: float) -> bool:
    return bool(bins[b]["size"] >= min_nodes and bins[b]["metres"] >= min_metres)


@kernel
def _mark(bins: RecordArray, nodes: RecordArray, b: int) -> None:
    """Let every node of a bin know that it has been seen by it."""
    e = bins[b]["head"]
    while e != _NONE:
        nodes[bins[e]["node"]]["seen_by"] = b
        e = bins[e]["next"]


@kernel
def _add_node(bins: RecordArray, n_bins: int, nodes: RecordArray, b: int, v: int) -> int:
    """Let bin b take in a node whose devices, if any, are in a bin already.

    Returns how many bins there are then: the node was one for a moment.
    """
    nodes[v]["seen_by"] = b
    _open(bins, n_bins, nodes, v)
    _take_in(bins, b, n_bins)
    return n_bins + 1


@kernel
def _join(bins: RecordArray, n_bins: int, nodes: RecordArray, b: int, other: int, top: int) -> int:
    """Let bin b take in a closed one below it, by the way up from that one's top.

    Returns how many bins there are then.
    """
    _mark(bins, nodes, b)
    v = nodes[top]["parent"]
    while nodes[v]["seen_by"] != b:
        n_bins = _add_node(bins, n_bins, nodes, b, v)
        v = nodes[v]["parent"]
    if nodes[top]["seen_by"] == b:
        # Both pass through the top, which the other one, closed there, had entered first. They
        # share no node below: what came up later came by other branches.
        its = bins[other]
        its["head"] = bins[its["head"]]["next"]
        its["size"] -= 1
        its["metres"] -= nodes[top]["metres"]
    _take_in(bins, b, other)
    return n_bins


@kernel
def _written_out(
    bins: RecordArray, nodes: RecordArray, closed: RecordArray
) -> tuple[IntArray, IntArray, Int32Array, IntArray]:
    """Turn closed bins into arrays: k, regions, and the group at each node."""
    n_groups = len(closed)
    k = np.empty(n_groups, np.int64)
    first_node_of = np.zeros(n_groups + 1, np.int64)
    for g in range(n_groups):
        at = bins[closed[g]["bin"]]
        k[g] = at["need"]
        at["fate"] = g
        first_node_of[g + 1] = first_node_of[g] + at["size"]
    node = np.empty(first_node_of[-1], np.int32)
    for g in range(n_groups):
        i = first_node_of[g]
        e = bins[closed[g]["bin"]]["head"]
        while e != _NONE:
            node[i] = bins[e]["node"]
            i += 1
            e = bins[e]["next"]
        node[first_node_of[g] : i].sort()
    group_at = np.full(len(nodes), UNGROUPED, np.int64)
    for v in range(len(nodes)):
        b = nodes[v]["home"]
        if b != _NONE:
            while bins[b]["into"] != b:
                b = bins[b]["into"]
            group_at[v] = bins[b]["fate"]
    return k, first_node_of, node, group_at


@kernel
def _hand_up(bins: RecordArray, n_bins: int, nodes: RecordArray, b: int, p: int) -> int:
    """Let the bin that passes through a parent take one in; return how many bins there are."""
    if nodes[p]["open"] == _NONE:
        _open(bins, n_bins, nodes, p)
        n_bins += 1
    _take_in(bins, nodes[p]["open"], b)
    return n_bins


@kernel
def _close(closed: RecordArray, n_closed: int, nodes: RecordArray, b: int, top: int) -> int:
    """Close a bin whose topmost node is `top`; return how many are closed then."""
    closed[n_closed]["bin"] = b
    closed[n_closed]["top"] = top
    nodes[top]["open"] = _NONE
    return n_closed + 1


@kernel
def _end_at_root(
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
    """Let what is left over at a root take in what is near it below, until satisfied.

    `tree` is the nodes of the tree, parents first, `n_before` how many bins had closed before
    it. Returns how many bins and how many closed ones there are then.
    """
    root = tree[0]
    b = nodes[root]["open"]
    while not _enough(bins, b) and n_closed > n_before:
        n_closed -= 1
        last = closed[n_closed]
        n_bins = _join(bins, n_bins, nodes, b, last["bin"], last["top"])
    _mark(bins, nodes, b)
    i = 1
    while _enough(bins, b) and not _large_enough(bins, b, min_nodes, min_metres) and i < len(tree):
        if nodes[tree[i]]["seen_by"] != b:
            n_bins = _add_node(bins, n_bins, nodes, b, tree[i])
        i += 1
    if not _enough(bins, b):
        n_devices = 0
        for v in tree:
            n_devices += nodes[v]["n_at"]
        # Had there been enough, others were let go on the way up.
        bins[b]["fate"] = TOO_FEW if n_devices < bins[b]["need"] else TOO_LARGE
    elif not _large_enough(bins, b, min_nodes, min_metres):
        bins[b]["fate"] = TOO_SMALL
    elif bins[b]["size"] > max_nodes:
        bins[b]["fate"] = TOO_LARGE
    else:
        n_closed = _close(closed, n_closed, nodes, b, root)
    return n_bins, n_closed


@kernel
def _gather(
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
    # Each node opens at most one bin for itself, one above itself, one for what ends at a root.
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
    end = n_nodes  # of the tree that the walk is in
    for i in range(n_nodes - 1, -1, -1):
        v = order[i]
        p = parent_of[v]
        if nodes[v]["open"] == _NONE and n_at[v] > 0 and nodes[v]["home"] == _NONE:
            _open(bins, n_bins, nodes, v)
            n_bins += 1
            if _enough(bins, n_bins - 1) and _large_enough(bins, n_bins - 1, min_nodes, min_metres):
                n_closed = _close(closed, n_closed, nodes, n_bins - 1, v)
        b = nodes[v]["open"]
        gathered = b != _NONE
        if gathered and p == v:
            n_bins, n_closed = _end_at_root(
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
        elif gathered:
            n_bins = _hand_up(bins, n_bins, nodes, b, p)
            above = nodes[p]["open"]
            if bins[above]["size"] > max_nodes:
                bins[above]["fate"] = TOO_LARGE
                nodes[p]["open"] = _NONE
            elif _enough(bins, above) and _large_enough(bins, above, min_nodes, min_metres):
                n_closed = _close(closed, n_closed, nodes, above, p)
        if p == v:
            n_before, end = n_closed, i
    return _written_out(bins, nodes, closed[:n_closed])
