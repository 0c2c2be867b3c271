"""Attacks on single regions: the centre and prefix attacks, and the density leak.

The centre and prefix attacks find the node that a region was grown from, using only the region
and the network; `adka` regions fall to both. The density leak measures how well the size of a
region reveals the density around its device.
"""

import numpy as np

from anonymizer.algorithms.kernels import kernel
from anonymizer.algorithms.releases.observed import Observed
from anonymizer.audit.mathematics.presence import OUTSIDE, slot_in_region
from anonymizer.domain.arrays import BoolArray, FloatArray, Int32Array, IntArray
from anonymizer.domain.network import RoadNetwork


def guess_success(
    observed: Observed, suspect: BoolArray, *, region: IntArray, node: Int32Array
) -> FloatArray:
    """Return the probability that a guess among the suspects of a region is the true node.

    Parameters
    ----------
    suspect
        Whether each entry of `observed.node` is suspected. In a region without suspects all
        nodes are guessed with equal probability.
    region, node
        The region, and the true node, shape (n,). The probability is 0 if the node is outside.
    """
    n_suspects = suspected_nodes(observed, suspect)[region]
    slot = slot_in_region(observed, node, region=region)
    right = (slot != OUTSIDE) & (suspect[slot] | (n_suspects == 0))
    chance: FloatArray = right / np.where(n_suspects > 0, n_suspects, observed.region_size[region])
    return chance


def suspected_nodes(observed: Observed, suspect: BoolArray) -> IntArray:
    """Return how many nodes of each region are suspected, shape (regions,)."""
    n: IntArray = np.add.reduceat(suspect, observed.first_node_of[:-1], dtype=np.int64)
    return n


def success_by_traffic(
    observed: Observed,
    suspect: BoolArray,
    place: Int32Array,
    *,
    region: IntArray,
    device: IntArray,
) -> FloatArray:
    """Return how likely a guess among the suspects is right about where others are, shape (n,).

    The nodes in the middle of a region are often the busy ones of the network. A guess finds those
    more often than a blind guess, although the region reveals nothing about the device.

    Parameters
    ----------
    suspect
        As in `guess_success`.
    place
        Node of each device at each tick, negative if absent, shape (ticks, devices).
    region, device
        The region, and the device that is left out, shape (n,). If no other device was ever in the
        region, all its nodes are equally likely.

    Notes
    -----
    O(devices * (ticks + nodes) + nodes of the n regions).
    """
    n_visits = _visits(place, n_nodes=max(int(place.max()), int(observed.node.max())) + 1)
    chance, n_suspects = np.empty(len(region)), suspected_nodes(observed, suspect)
    first, order = observed.first_node_of, np.argsort(device, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(device[order])) + 1):
        n_others = n_visits - _visits(place[:, device[rows[:1]]], n_nodes=len(n_visits))
        for i in rows.tolist():
            slots = slice(first[region[i]], first[region[i] + 1])
            n_inside, n = n_others[observed.node[slots]], n_suspects[region[i]]
            n_all = n_inside.sum()
            known = n > 0 and n_all > 0
            chance[i] = n_inside[suspect[slots]].sum() / n_all / n if known else 1 / len(n_inside)
    return chance


def _visits(place: Int32Array, *, n_nodes: int) -> IntArray:
    return np.bincount(place[place >= 0], minlength=n_nodes)


def centres(observed: Observed, network: RoadNetwork, *, regions: IntArray) -> BoolArray:
    """Suspect the nodes with the smallest eccentricity in the induced subgraph of a region.

    Parameters
    ----------
    regions
        The regions to attack; the others have no suspects.

    Returns
    -------
    suspect
        Whether each entry of `observed.node` is suspected.

    Notes
    -----
    Unreachable nodes count as one step farther than all others. A search from one node gives
    lower bounds on the eccentricity of all others [1]_; nodes whose bound is above the smallest
    eccentricity found need no search. O(nodes of a region) a search; in regions of 600 street
    nodes about one node in seven needs one.

    References
    ----------
    .. [1] F. W. Takes, W. A. Kosters, "Computing the eccentricity distribution of large
       graphs", Algorithms 6(1), 2013.
    """
    return _centres(
        observed.first_node_of,
        observed.node,
        regions,
        network.first_arc_of,
        network.neighbour_of,
        int(observed.region_size.max()),
    )


def prefix_roots(observed: Observed, network: RoadNetwork, *, regions: IntArray) -> BoolArray:
    """Suspect the nodes whose breadth-first order begins with exactly the nodes of the region.

    The order is first in, first out, with neighbours in adjacency order, as in ADKA. Parameters,
    result and cost are those of `centres`; a search ends at its first step outside the region.
    """
    return _prefix_roots(
        observed.first_node_of,
        observed.node,
        regions,
        network.first_arc_of,
        network.neighbour_of,
        int(observed.region_size.max()),
    )


@kernel
def _centres(
    first_node_of: IntArray,
    node: Int32Array,
    regions: IntArray,
    first_arc_of: Int32Array,
    neighbour_of: Int32Array,
    largest: int,
) -> BoolArray:
    n_nodes = len(first_arc_of) - 1
    suspect = np.zeros(len(node), np.bool_)
    inside = np.zeros(n_nodes, np.bool_)
    steps = np.full(n_nodes, -1, np.int64)
    queue = np.empty(largest, np.int32)
    for r in regions:
        start, n = first_node_of[r], first_node_of[r + 1] - first_node_of[r]
        region = node[start : start + n]
        inside[region] = True
        at_least = np.zeros(n, np.int64)  # bounds of the eccentricity; exact where visited
        visited = np.zeros(n, np.bool_)
        least = n
        while not visited.all():
            i = np.argmin(np.where(visited, n, at_least))
            if at_least[i] > least:
                break
            n_reached = _walk(region[i], inside, steps, queue, first_arc_of, neighbour_of)
            eccentricity = steps[queue[n_reached - 1]] if n_reached == n else n
            for j in range(n):
                away = steps[region[j]]
                if away >= 0 and not visited[j]:
                    at_least[j] = max(at_least[j], away, eccentricity - away)
            at_least[i] = eccentricity
            visited[i] = True
            least = min(least, eccentricity)
            steps[region] = -1
        inside[region] = False
        suspect[start : start + n] = visited & (at_least == least)
    return suspect


@kernel
def _walk(
    source: int,
    inside: BoolArray,
    steps: IntArray,
    queue: Int32Array,
    first_arc_of: Int32Array,
    neighbour_of: Int32Array,
) -> int:
    """Count the steps from a node to all nodes inside; return how many were reached.

    `steps` must be -1 at the start and stays -1 for nodes that are not reached.
    """
    queue[0] = source
    steps[source] = 0
    end, head = 1, 0
    while head < end:
        u = queue[head]
        head += 1
        for v in neighbour_of[first_arc_of[u] : first_arc_of[u + 1]]:
            if inside[v] and steps[v] < 0:
                steps[v] = steps[u] + 1
                queue[end] = v
                end += 1
    return end


@kernel
def _prefix_roots(
    first_node_of: IntArray,
    node: Int32Array,
    regions: IntArray,
    first_arc_of: Int32Array,
    neighbour_of: Int32Array,
    largest: int,
) -> BoolArray:
    n_nodes = len(first_arc_of) - 1
    suspect = np.zeros(len(node), np.bool_)
    inside = np.zeros(n_nodes, np.bool_)
    seen = np.zeros(n_nodes, np.bool_)
    queue = np.empty(largest, np.int32)
    for r in regions:
        start, n = first_node_of[r], first_node_of[r + 1] - first_node_of[r]
        region = node[start : start + n]
        inside[region] = True
        for i in range(n):
            queue[0] = region[i]
            seen[region[i]] = True
            end, head, left = 1, 0, False
            while head < end and end < n and not left:
                u = queue[head]
                head += 1
                for v in neighbour_of[first_arc_of[u] : first_arc_of[u + 1]]:
                    if seen[v] or end == n:
                        continue
                    if not inside[v]:
                        left = True
                        break
                    seen[v] = True
                    queue[end] = v
                    end += 1
            suspect[start + i] = end == n and not left
            seen[region] = False
        inside[region] = False
    return suspect


def band_accuracy(size: IntArray, band: IntArray, half: IntArray) -> float | None:
    """Return how often the most frequent density band of a region size is the true one.

    Parameters
    ----------
    size
        Number of nodes in each record's region, shape (records,). If all are equal, the result
        is the base rate.
    band
        True density band of each record, >= 0, shape (records,).
    half
        0 or 1 for each record: each half is guessed from what is learned from the other. All
        records of a pseudonym must be in the same half, because they are too similar.

    Returns
    -------
    accuracy
        None if there are no records. For a size that was not learned, the guess is the most
        frequent band overall.
    """
    if not len(band):
        return None
    sizes, size_of = np.unique(size, return_inverse=True)
    n_right = 0
    for tested in (0, 1):
        counts = np.zeros((len(sizes), int(band.max()) + 1), np.int64)
        np.add.at(counts, (size_of[half != tested], band[half != tested]), 1)
        likeliest = np.where(counts.any(axis=1), counts.argmax(axis=1), counts.sum(axis=0).argmax())
        n_right += int((likeliest[size_of] == band)[half == tested].sum())
    return n_right / len(band)
