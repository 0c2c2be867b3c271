"""The last look before publishing: whether the promise of each group is true.

Written to share nothing with the code that formed the groups: it starts from the newest
position of each device, not from the density map's counts, and walks what is about to leave.
"""

import numpy as np

from anonymizer.algorithms.kernels import kernel
from anonymizer.domain.arrays import BoolArray, Int32Array, IntArray
from anonymizer.domain.release import Release


def groups_that_hold(
    release: Release, node_of: Int32Array, *, n_nodes: int, k_floor: int
) -> BoolArray:
    """Return which groups keep the promise: at least k distinct devices in every region.

    Parameters
    ----------
    release
        What is about to be published.
    node_of
        Newest node of each device slot, negative where the device is not on the graph.
    n_nodes
        Size of the network.
    k_floor
        No group may ask for less than this.

    Returns
    -------
    holds
        Shape (groups,). A group holds when its k is not below the floor, its region is made of
        distinct nodes of the network that hold at least k devices, and its members are
        distinct, in no other group, and inside the region.

    Notes
    -----
    O(devices + nodes + region nodes + members).
    """
    devices_at = np.bincount(node_of[node_of >= 0], minlength=n_nodes)
    return _holds(
        release.k,
        release.first_node_of,
        release.node,
        release.first_member_of,
        release.member,
        node_of,
        devices_at,
        k_floor,
    )


@kernel
def _holds(
    k: Int32Array,
    first_node_of: IntArray,
    node: Int32Array,
    first_member_of: IntArray,
    member: Int32Array,
    node_of: Int32Array,
    devices_at: IntArray,
    k_floor: int,
) -> BoolArray:
    n_groups = len(k)
    holds = np.zeros(n_groups, np.bool_)
    region_at = np.full(len(devices_at), -1, np.int64)
    group_of = np.full(len(node_of), -1, np.int64)
    for g in range(n_groups):
        good = k[g] >= k_floor and first_member_of[g] < first_member_of[g + 1]
        n_devices = 0
        for v in node[first_node_of[g] : first_node_of[g + 1]]:
            if v < 0 or v >= len(devices_at) or region_at[v] == g:
                good = False
            else:
                region_at[v] = g
                n_devices += devices_at[v]
        for s in member[first_member_of[g] : first_member_of[g + 1]]:
            if s < 0 or s >= len(node_of):
                good = False
            elif group_of[s] >= 0:
                holds[group_of[s]] = False
                good = False
            else:
                group_of[s] = g
                good = good and node_of[s] >= 0 and region_at[node_of[s]] == g
        holds[g] = good and n_devices >= k[g]
    return holds
