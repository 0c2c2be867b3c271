"""Routes of trips: the roads between the nodes at which a device reported."""

import numpy as np

from anonymizer.algorithms.kernels import kernel
from anonymizer.domain.arrays import Int32Array, IntArray
from anonymizer.domain.network import RoadNetwork

_MOST_SEEN = 256
"""Nodes at which the search for a way between two reports gives up."""


def route_arcs(network: RoadNetwork, node: Int32Array) -> IntArray:
    """Return the arcs that a device took, each once, rising.

    `node`: those of its reports in their order, negative where it had none.

    Notes
    -----
    Between two reports it took the way of fewest roads; of several, that of the first neighbours.
    The way is not known across a report without a node, and where it would pass more roads than a
    search of 256 nodes finds. Whether a road may be driven in that direction is not asked: people
    walk.
    """
    found = np.zeros(_MOST_SEEN * max(len(node), 1), np.int64)
    n = _arcs_between(network.first_arc_of, network.neighbour_of, node, found)
    return np.unique(found[:n])


@kernel
def _arcs_between(
    first_arc_of: Int32Array, neighbour_of: Int32Array, node: Int32Array, found: IntArray
) -> int:
    """Write the arcs between each two nodes into `found`; return how many there are."""
    seen, by, came = (
        np.empty(_MOST_SEEN, np.int64),
        np.empty(_MOST_SEEN, np.int64),
        np.empty(_MOST_SEEN, np.int64),
    )
    n = 0
    for i in range(1, len(node)):
        if node[i - 1] < 0 or node[i] < 0 or node[i - 1] == node[i]:
            continue
        seen[0], came[0], n_seen, at = node[i - 1], -1, 1, 0
        last = -1
        while at < n_seen and last < 0:
            for arc in range(first_arc_of[seen[at]], first_arc_of[seen[at] + 1]):
                head, known = neighbour_of[arc], False
                for j in range(n_seen):
                    known = known or seen[j] == head
                if known or n_seen == _MOST_SEEN:
                    continue
                seen[n_seen], by[n_seen], came[n_seen] = head, arc, at
                if head == node[i]:
                    last = n_seen
                    break
                n_seen += 1
            at += 1
        while last > 0:
            found[n] = by[last]
            n, last = n + 1, came[last]
    return n
