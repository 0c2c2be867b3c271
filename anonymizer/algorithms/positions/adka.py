"""ADKA, adaptive-density k-anonymity: k by local density, regions by breadth-first search.

Promise: every region holds at least k distinct devices. It promises nothing more: an adversary
who knows the algorithm finds the device that a region was grown from (see the threat model).
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from anonymizer.algorithms.kernels import copy_items, kernel
from anonymizer.algorithms.positions.density import DensityMap
from anonymizer.domain.arrays import Int32Array, IntArray, UInt8Array
from anonymizer.domain.outcomes import Outcome

_HELD = int(Outcome.HELD)
_TOO_FEW_DEVICES = int(Outcome.SUPPRESSED__TOO_FEW_DEVICES)
_REGION_TOO_LARGE = int(Outcome.SUPPRESSED__REGION_TOO_LARGE)


@dataclass(frozen=True, slots=True)
class DensityRule:
    """The k of a region, by the density at its root.

    `steps`: rising densities, in devices at a node and its neighbours. `values`: one more than
    `steps`, not rising; `values[i]` is k for densities below `steps[i]` and not below the previous
    step, the last one k beyond all steps. k is never below `floor`.
    """

    steps: tuple[int, ...] = (4, 10)
    values: tuple[int, ...] = (10, 5, 2)
    floor: int = 2

    def k_for(self, density: Int32Array) -> Int32Array:
        """Return k for each density, same shape. O(n log steps)."""
        values = np.maximum(np.asarray(self.values, np.int32), np.int32(self.floor))
        return values[np.searchsorted(np.asarray(self.steps), density, side="right")]

    def beyond(self, density: Int32Array, k_extra: int) -> Int32Array:
        """Return k for each density without `k_extra` devices, which must not lower it."""
        return self.k_for(np.maximum(density - np.int32(k_extra), 0))


class Shortage(NamedTuple):
    """No group can be formed: `n_present` devices are connected, and a group needs `n_needed`."""

    n_present: int
    n_needed: int


def shortage(density: DensityMap, rule: DensityRule, *, k_extra: int = 0) -> Shortage | None:
    """Return how many devices the fullest part of the network has, if no group can be formed.

    None if some component holds enough devices for a group: the largest k of its members, and
    `k_extra` beyond it (`DensityRule.beyond`). `n_needed` is the smallest k of those present in the
    component that holds most.

    Notes
    -----
    The cheapest group of a component is that of its devices with the smallest k: with these in
    rising order, the first i suffice for each other where the i-th asks for at most i.
    O(devices log devices).
    """
    node = density.counted_at[density.counted_at >= 0]
    if not len(node):
        return None
    k = rule.beyond(density.near(node), k_extra).astype(np.int64) + k_extra
    component = density.network.component_of[node]
    order = np.lexsort((k, component))
    k, component = k[order], component[order]
    begins = np.flatnonzero(np.diff(component, prepend=-1))
    sizes = np.diff(np.append(begins, len(k)))
    rank = np.arange(len(k)) - np.repeat(begins, sizes) + 1
    if (rank >= k).any():
        return None
    most = int(sizes.argmax())
    return Shortage(int(sizes[most]), int(k[begins[most]]))


@dataclass(frozen=True, slots=True, eq=False)
class Regions:
    """Regions in compressed sparse rows; one whose outcome is not `HELD` is empty.

    Region r is `node[first_node_of[r]:first_node_of[r + 1]]`, in the order of growth; `outcome` is
    `HELD`, or the reason why there is no region, shape (regions,).
    """

    first_node_of: IntArray
    node: Int32Array
    outcome: UInt8Array


def grow_regions(
    density: DensityMap, root: Int32Array, k: Int32Array, *, max_nodes: int
) -> Regions:
    """Grow a region from each root by breadth-first search until it holds k devices.

    Neighbours are taken in the graph's own adjacency order. Devices are summed as each node is
    *added*, and growth stops as soon as the sum reaches k, even in the middle of a list of
    neighbours.

    `root` and `k` (>= 1) have the shape (r,). A region is refused with
    `SUPPRESSED__TOO_FEW_DEVICES` if the component of its root holds fewer than k devices, and with
    `SUPPRESSED__REGION_TOO_LARGE` if it would need more than `max_nodes`.

    Raises
    ------
    ValueError
        If the network has nodes that its source does not have: ADKA knows junctions alone.

    Notes
    -----
    O(nodes) a call for the marks of visited nodes, and O(region + its border) a root. Marks are
    never cleared: they carry the number of the root that set them.
    """
    # No region needs more nodes than the network has; a larger cap would only cost memory.
    network = density.network
    if network.inner is not None:
        raise ValueError("ADKA grows regions on the network as loaded; see `as_loaded`")
    return Regions(
        *_grow(
            network.first_arc_of,
            network.neighbour_of,
            network.component_of,
            density.n_at,
            density.n_in,
            root,
            k,
            min(max_nodes, network.n_nodes),
        )
    )


@kernel
def _grow(
    first_arc_of: Int32Array,
    neighbour_of: Int32Array,
    component_of: Int32Array,
    n_at: Int32Array,
    n_in: Int32Array,
    root: Int32Array,
    k: Int32Array,
    max_nodes: int,
) -> tuple[IntArray, Int32Array, UInt8Array]:
    first_node_of = np.zeros(len(root) + 1, np.int64)
    outcome = np.full(len(root), _HELD, np.uint8)
    node = np.empty(max(16 * len(root), max_nodes), np.int32)
    seen_by = np.full(len(n_at), -1, np.int32)
    n = 0
    for r in range(len(root)):
        start = n
        if n_in[component_of[root[r]]] < k[r]:
            outcome[r] = _TOO_FEW_DEVICES
            first_node_of[r + 1] = start
            continue
        if start + max_nodes > len(node):
            larger = np.empty(2 * len(node) + max_nodes, np.int32)
            copy_items(node, larger, 0, n)
            node = larger
        # The region is its own queue: its nodes are in the order in which they were added.
        node[n] = root[r]
        n += 1
        seen_by[root[r]] = r
        total = n_at[root[r]]
        head = start
        capped = False
        while total < k[r] and head < n and not capped:
            for arc in range(first_arc_of[node[head]], first_arc_of[node[head] + 1]):
                v = neighbour_of[arc]
                if seen_by[v] == r:
                    continue
                if n - start == max_nodes:
                    capped = True
                    break
                seen_by[v] = r
                node[n] = v
                n += 1
                total += n_at[v]
                if total >= k[r]:
                    break
            head += 1
        if total < k[r]:
            outcome[r] = _REGION_TOO_LARGE
            n = start
        first_node_of[r + 1] = n
    return first_node_of, node[:n].copy(), outcome
