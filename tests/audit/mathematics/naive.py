"""Naive twins of the attacks on regions: sets, loops and networkx."""

from collections import Counter, deque
from itertools import permutations

import networkx as nx
import numpy as np

from anonymizer.audit.mathematics.truth import Truth
from anonymizer.domain.arrays import BoolArray, FloatArray, IntArray
from anonymizer.domain.network import RoadNetwork
from tests.audit.mathematics.made import Line

Report = tuple[int, float, int]
"""Device, unix seconds, node."""


def graph_of(network: RoadNetwork) -> "nx.Graph[int]":
    graph: nx.Graph[int] = nx.Graph()
    graph.add_nodes_from(range(network.n_nodes))
    tails = np.repeat(np.arange(network.n_nodes), np.diff(network.first_arc_of))
    seconds = network.length_m / network.speed_mps
    for u, v, s in zip(tails.tolist(), network.neighbour_of.tolist(), seconds, strict=True):
        graph.add_edge(u, v, seconds=float(s))
    return graph


def where(reports: list[Report], device: int, now: float, ttl_s: float) -> tuple[int, int]:
    """Return the node where a device is at a time, and its last known node."""
    mine = sorted((ts, node) for d, ts, node in reports if d == device and ts <= now)
    known = [node for _, node in mine if node >= 0]
    there = bool(mine) and mine[-1][1] >= 0 and mine[-1][0] >= now - ttl_s
    return mine[-1][1] if there else -1, known[-1] if known else -1


def centres(graph: "nx.Graph[int]", region: tuple[int, ...]) -> set[int]:
    inside = graph.subgraph(region)
    eccentricity = {}
    for v in region:
        steps = nx.single_source_shortest_path_length(inside, v)
        eccentricity[v] = max(steps.values()) if len(steps) == len(region) else len(region)
    return {v for v in region if eccentricity[v] == min(eccentricity.values())}


def prefix_roots(network: RoadNetwork, region: tuple[int, ...]) -> set[int]:
    return {v for v in region if set(breadth_first(network, v)[: len(region)]) == set(region)}


def breadth_first(network: RoadNetwork, root: int) -> list[int]:
    order, queue = [root], deque([root])
    while queue:
        u = queue.popleft()
        for v in network.neighbour_of[network.first_arc_of[u] : network.first_arc_of[u + 1]]:
            if int(v) not in order:
                order.append(int(v))
                queue.append(int(v))
    return order


def candidates(
    lines: list[Line], time: list[float], truth: Truth, pseudonym: int, *, on_air: bool
) -> list[tuple[int, set[int], int]]:
    """Return tick, remaining devices and largest k so far, for each record of a pseudonym."""
    left = set(range(truth.n_devices))
    largest_k, steps = 0, []
    for _, second, region, k in sorted(line for line in lines if line[0] == pseudonym):
        tick = time.index(second)
        left = {
            d
            for d in left
            if int(truth.place[tick, d]) in region or not (on_air or truth.on_air[tick, d])
        }
        largest_k = max(largest_k, k)
        steps.append((tick, left, largest_k))
    return steps


def shares(allowed: BoolArray, capacity: IntArray) -> FloatArray:
    """Return the shares by trying every assignment of devices to rows."""
    n_devices, n_rows = allowed.shape
    seats = np.repeat(np.arange(n_rows), capacity).tolist()
    count, total = np.zeros(allowed.shape), 0
    for rows in set(permutations(seats)):
        if all(allowed[d, r] for d, r in enumerate(rows)):
            total += 1
            count[np.arange(n_devices), list(rows)] += 1
    return count / total


def reach_s(graph: "nx.Graph[int]", sources: list[int]) -> dict[int, float]:
    """Return the fewest seconds until each node can be the nearest one.

    Each road is cut at its middle: a drive may start at any middle next to a source.
    """
    cut: nx.Graph[object] = nx.Graph()
    for u, v, road in graph.edges(data=True):
        middle = ("middle", min(u, v), max(u, v))
        cut.add_edge(u, middle, seconds=road["seconds"] / 2)
        cut.add_edge(v, middle, seconds=road["seconds"] / 2)
    for u in sources:
        for v in graph[u]:
            cut.add_edge("start", ("middle", min(u, v), max(u, v)), seconds=0.0)
    steps = nx.single_source_dijkstra_path_length(cut, "start", weight="seconds")
    reached = {
        v: min((steps[m] for m in cut[v] if m in steps), default=np.inf) for v in graph if v in cut
    }
    return reached | dict.fromkeys(sources, 0.0)


def always_covered(lines: list[Line], every_s: int) -> set[int]:
    """Return the nodes covered in each whole stretch but the first, none if there is one such."""
    begin, end = min(t for _, t, _, _ in lines), max(t for _, t, _, _ in lines)
    stretches = [
        {
            node
            for _, second, region, _ in lines
            if start <= second < start + every_s
            for node in region
        }
        for start in range(begin + every_s, end + 1, every_s)
        if start + every_s <= end
    ]
    return set.intersection(*stretches) if len(stretches) > 1 else set()


def without_unchanged(lines: list[Line], least_share: float) -> dict[tuple[int, int], set[int]]:
    """Return what is left of each region, by pseudonym and second."""
    left = {}
    for pseudonym, second, region, _ in lines:
        regions = [r for p, _, r, _ in lines if p == pseudonym]
        n_seen = Counter(node for r in regions for node in r)
        often = {node for node, n in n_seen.items() if n >= least_share * len(regions)}
        left[pseudonym, second] = set(region) - often or set(region)
    return left
