"""Centre and prefix attack: find the node that a region was grown from.

Region by region, with nothing but the region and the network. `bfs` regions fall to both.

Density leak: the size of a region may tell how dense it is where its device is.
"""

import numpy as np

from anonymizer.algorithms.attacks.observed import Observed
from anonymizer.algorithms.attacks.presence import OUTSIDE, slot_in_region
from anonymizer.algorithms.kernels import kernel
from anonymizer.domain.arrays import BoolArray, FloatArray, Int32Array, IntArray
from anonymizer.domain.network import RoadNetwork


def guess_success(
    observed: Observed, suspect: BoolArray, *, region: IntArray, node: Int32Array
) -> FloatArray:
    """Return the chance that a guess among the suspects of a region is the true node.

    Parameters
    ----------
    suspect
        Whether each slot of `observed.node` is suspected; a region without suspects is guessed
        uniformly.
    region, node
        What is guessed, and the truth, shape (n,). No guess is right when it lies outside.
    """
    n_suspects = np.add.reduceat(suspect, observed.first_node_of[:-1], dtype=np.int64)[region]
    slot = slot_in_region(observed, node, region=region)
    right = (slot != OUTSIDE) & (suspect[slot] | (n_suspects == 0))
    chance: FloatArray = right / np.where(n_suspects > 0, n_suspects, observed.region_size[region])
    return chance


def centres(observed: Observed, network: RoadNetwork, *, regions: IntArray) -> BoolArray:
    """Suspect the nodes of least eccentricity inside the region's induced subgraph.

    Parameters
    ----------
    regions
        Which regions to look at; the others have no suspects.

    Returns
    -------
    suspect
        For each slot of `observed.node`.

    Notes
    -----
    What cannot be reached is one step beyond everything. A search from a node bounds the
    eccentricity of all others from below [1]_; those whose bound is above the least found need
    none of their own. O(nodes of a region) a search; in regions of 600 street nodes about one
    node in seven needs one.

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
    """Suspect the nodes whose breadth-first order begins with exactly the region's nodes.

    First in, first out, neighbours in the order of the adjacency, as ADKA grows its regions.
    Parameters, result and cost as of `centres`; a search ends at its first step outside.
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
    """Count the steps from a node to those inside (-1: not reached); return how many are."""
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
    """Return how often the band of density most frequent for its size is a record's own.

    Parameters
    ----------
    size
        Nodes of each record's region, shape (records,). All equal: the result is the base rate.
    band
        Its band of density, >= 0, shape (records,).
    half
        0 or 1 for each record: what is guessed for one half is learned from the other. Records
        of one pseudonym belong in one half, they are too alike.

    Returns
    -------
    accuracy
        None without records. A size not learned is guessed as the most frequent band of all.
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
