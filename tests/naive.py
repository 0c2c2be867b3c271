"""Naive twins of the fast code: plain dicts, sets, loops and networkx, slow on purpose."""

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple, TypeAlias

import networkx as nx

from anonymizer.algorithms.geodesy import EARTH_RADIUS_M
from anonymizer.domain.network import RoadNetwork
from anonymizer.domain.outcomes import Outcome

# Only a directed graph keeps the order of neighbours for both ends of a road.
Graph: TypeAlias = "nx.DiGraph[int]"

Place: TypeAlias = tuple[float, float]
"""Latitude and longitude."""


class Position(NamedTuple):
    """A reported position; node -1: off the graph."""

    device: int
    ts: float
    node: int


class Group(NamedTuple):
    """One group of a release."""

    k: int
    region: Sequence[int]
    members: Sequence[int]


def graph_of(network: RoadNetwork) -> Graph:
    """Return the network as a graph of networkx, neighbours in the network's own order."""
    graph: Graph = nx.DiGraph()
    graph.add_nodes_from(range(network.n_nodes))
    for v in range(network.n_nodes):
        first, last = network.first_arc_of[v : v + 2].tolist()
        graph.add_edges_from((v, u) for u in network.neighbour_of[first:last].tolist())
    return graph


def haversine_m(lat_a: float, lon_a: float, lat_b: float, lon_b: float) -> float:
    """Return the great-circle distance in metres, one pair at a time."""
    a, b = math.radians(lat_a), math.radians(lat_b)
    half_dlon = math.radians(lon_b - lon_a) / 2
    h = math.sin((b - a) / 2) ** 2 + math.cos(a) * math.cos(b) * math.sin(half_dlon) ** 2
    return 2 * EARTH_RADIUS_M * math.asin(min(1.0, math.sqrt(h)))


def located(network: RoadNetwork, lat: float, lon: float) -> tuple[int, float]:
    """Return the node at the nearer end of the nearest road, and the metres to that road."""
    metres, node = min(_distances(network, lat, lon))
    return node, metres


def may_be_located_at(network: RoadNetwork, lat: float, lon: float) -> set[int]:
    """Return all nodes that are right if a micrometre may be neglected."""
    whole = sorted(_distances(network, lat, lon, tolerance_m=1e-6))
    return {node for metres, node in whole if metres <= whole[0][0] + 1e-6}


def may_be_located_with_heading(
    network: RoadNetwork, lat: float, lon: float, heading: float, *, limit_m: float
) -> set[int]:
    """Return all nodes that are right if 10 cm may be neglected, on roads within the limit.

    The cost of a road is the square of its distance in standard deviations (4.07 m), and of the
    heading twice the logarithm of its von Mises density (10 degrees), at most that of 1 in 100.
    """
    found = []
    lines = network.lines()
    first_of, places = lines.first_point_of.tolist(), list(zip(lines.lat, lines.lon, strict=True))
    for road, (tail, head) in enumerate(zip(lines.tail.tolist(), lines.head.tolist(), strict=True)):
        ways = [
            turn
            for turn, (u, v) in ((0.0, (tail, head)), (math.pi, (head, tail)))
            if network.drivable[_arc(network, u, v)]
        ] or [0.0, math.pi]
        corners = places[first_of[road] : first_of[road + 1]]
        lengths = [haversine_m(*a, *b) for a, b in pairwise(corners)]
        before_m = 0.0
        for (a, b), length_m in zip(pairwise(corners), lengths, strict=True):
            along_m, metres = _along(a, b, length_m, (lat, lon))
            off = min(1 - math.cos(math.radians(heading) - _bearing(a, b) - way) for way in ways)
            misfit = min(2 * off / math.radians(10) ** 2, 2 * math.log(100))
            if metres <= limit_m:
                half_m = sum(lengths) / 2
                cost_m = math.sqrt(metres**2 + 4.07**2 * misfit)
                found += [(cost_m, tail)] * (before_m + along_m <= half_m + 1e-6)
                found += [(cost_m, head)] * (before_m + along_m > half_m - 1e-6)
            before_m += length_m
    return {node for cost_m, node in found if cost_m <= min(found)[0] + 0.1}


def _arc(network: RoadNetwork, tail: int, head: int) -> int:
    first, last = network.first_arc_of[tail : tail + 2].tolist()
    heads: list[int] = network.neighbour_of[first:last].tolist()
    return int(first) + heads.index(head)


def _distances(
    network: RoadNetwork, lat: float, lon: float, *, tolerance_m: float = 0.0
) -> Iterator[tuple[float, int]]:
    """Yield the distance to each piece of each road and the node to which it belongs."""
    lines = network.lines()
    bounds = lines.first_point_of.tolist()
    points = list(zip(lines.lat.tolist(), lines.lon.tolist(), strict=True))
    for road, (tail, head) in enumerate(zip(lines.tail.tolist(), lines.head.tolist(), strict=True)):
        corners = points[bounds[road] : bounds[road + 1]]
        lengths = [haversine_m(*a, *b) for a, b in pairwise(corners)]
        before_m, half_m = 0.0, sum(lengths) / 2
        for (a, b), length_m in zip(pairwise(corners), lengths, strict=True):
            along_m, metres = _along(a, b, length_m, (lat, lon))
            if before_m + along_m <= half_m + tolerance_m:
                yield metres, tail
            if before_m + along_m > half_m - tolerance_m:
                yield metres, head
            before_m += length_m
    for node in range(network.n_nodes):
        if network.first_arc_of[node] == network.first_arc_of[node + 1]:
            yield haversine_m(lat, lon, float(network.lat[node]), float(network.lon[node])), node


def _along(a: Place, b: Place, length_m: float, p: Place) -> tuple[float, float]:
    """Return where on the arc from a to b the point nearest to p is, and how far p is from it."""
    to_a = haversine_m(*a, *p) / EARTH_RADIUS_M
    turn = _bearing(a, p) - _bearing(a, b)
    along_m = EARTH_RADIUS_M * math.atan2(math.sin(to_a) * math.cos(turn), math.cos(to_a))
    if along_m <= 0 or length_m == 0:
        return 0.0, to_a * EARTH_RADIUS_M
    if along_m >= length_m:
        return length_m, haversine_m(*b, *p)
    return along_m, EARTH_RADIUS_M * math.asin(abs(math.sin(to_a) * math.sin(turn)))


def _bearing(a: Place, b: Place) -> float:
    """Return the direction in which the great circle from a to b begins, radians from north."""
    phi_a, phi_b = math.radians(a[0]), math.radians(b[0])
    # Half angles keep what the difference of two products would lose.
    dlon = math.radians(b[1] - a[1])
    north = math.sin(phi_b - phi_a) + 2 * math.sin(phi_a) * math.cos(phi_b) * (
        math.sin(dlon / 2) ** 2
    )
    return math.atan2(math.sin(dlon) * math.cos(phi_b), north)


class Presence:
    """The newest position of each device, in a dict."""

    def __init__(self) -> None:
        self.newest: dict[int, Position] = {}

    def advance(self, batch: Collection[Position]) -> list[Outcome]:
        """Process a batch; return the outcome of each position."""
        outcomes = []
        winners: dict[int, Position] = {}
        for reported in batch:
            device, ts = reported.device, reported.ts
            known = self.newest[device].ts if device in self.newest else -math.inf
            best = max((p for p in batch if p.device == device), key=lambda p: (p.ts, p.node))
            if ts < known:
                outcomes.append(Outcome.LATE)
            elif ts == known:
                outcomes.append(Outcome.DUPLICATE)
            elif reported == best and device not in winners:
                winners[device] = reported
                outcomes.append(Outcome.HELD)
            elif ts == best.ts:
                outcomes.append(Outcome.DUPLICATE)
            else:
                outcomes.append(Outcome.SUPPRESSED__SUPERSEDED)
        self.newest |= winners
        return outcomes

    def expire(self, before: float) -> set[int]:
        """Forget the devices whose newest position is older than a time; return them."""
        gone = {device for device, position in self.newest.items() if position.ts < before}
        for device in gone:
            del self.newest[device]
        return gone

    def devices_at(self) -> dict[int, set[int]]:
        """Return the devices at each node that has any."""
        at: dict[int, set[int]] = {}
        for position in self.newest.values():
            if position.node >= 0:
                at.setdefault(position.node, set()).add(position.device)
        return at


def density(graph: Graph, devices_at: Mapping[int, set[int]]) -> dict[int, int]:
    """Return how many distinct devices are at each node and its neighbours."""
    return {v: len(set().union(*(devices_at.get(u, set()) for u in (v, *graph[v])))) for v in graph}


def component_population(graph: Graph, n_at: Mapping[int, int]) -> dict[int, int]:
    """Return for each node how many devices its connected component holds."""
    population = {}
    for component in nx.weakly_connected_components(graph):
        total = sum(n_at.get(v, 0) for v in component)
        population.update(dict.fromkeys(component, total))
    return population


def k_for(density: int, *, steps: Sequence[int], values: Sequence[int], floor: int) -> int:
    """Return k by the paper's rule: the first step above the density decides."""
    for step, value in zip(steps, values, strict=False):
        if density < step:
            return max(value, floor)
    return max(values[-1], floor)


def bfs_region(
    graph: Graph,
    n_at: Mapping[int, int],
    population: Mapping[int, int],
    root: int,
    k: int,
    *,
    max_nodes: int,
) -> list[int] | Outcome:
    """Return the region that ADKA grows from a root, in the order of growth, or the reason."""
    if population[root] < k:
        return Outcome.SUPPRESSED__TOO_FEW_DEVICES
    region, queue, seen = [root], [root], {root}
    total = n_at.get(root, 0)
    while total < k:
        for v in graph[queue.pop(0)]:
            if v not in seen:
                seen.add(v)
                region.append(v)
                queue.append(v)
                total += n_at.get(v, 0)
                if total >= k:
                    break
    return region if len(region) <= max_nodes else Outcome.SUPPRESSED__REGION_TOO_LARGE


class Bin:
    """A group under construction: its devices, and the nodes of its region."""

    def __init__(self, *nodes: int) -> None:
        self.n_devices = 0
        self.need = 0
        self.nodes = set(nodes)
        self.homes: set[int] = set()
        self.top = -1

    def merge(self, other: "Bin") -> None:
        """Absorb another bin."""
        self.n_devices += other.n_devices
        self.need = max(self.need, other.need)
        self.nodes |= other.nodes
        self.homes |= other.homes

    @property
    def is_enough(self) -> bool:
        """Whether the devices are as many as any of them demands."""
        return self.n_devices >= self.need


class Grouping:
    """The walk over a spanning forest that forms groups of devices, with sets."""

    def __init__(
        self,
        parent_of: Sequence[int],
        order: Sequence[int],
        devices: Sequence[tuple[int, int]],
        metres_at: Sequence[float],
        *,
        min_nodes: int,
        max_nodes: int,
        min_metres: float,
    ) -> None:
        """Form the groups; `devices` has their number at each node and their largest demand."""
        self.group_at: dict[int, int | str] = {}
        self.groups: list[tuple[int, list[int]]] = []
        self._parent_of, self._devices, self._metres_at = parent_of, devices, metres_at
        self._min_nodes, self._max_nodes, self._min_metres = min_nodes, max_nodes, min_metres
        root_of: dict[int, int] = {}
        for v in order:
            root_of[v] = root_of.get(parent_of[v], v)
        for root in [v for v in reversed(order) if parent_of[v] == v]:
            self._open_at: dict[int, Bin] = {}
            self._closed: list[Bin] = []
            self._walk([v for v in order if root_of[v] == root])
            for b in self._closed:
                self._settle(b, len(self.groups))
                self.groups.append((b.need, sorted(b.nodes)))

    def _walk(self, tree: Sequence[int]) -> None:
        homed: set[int] = set()

        def passing(v: int) -> Bin:
            if v not in self._open_at:
                b = self._open_at[v] = Bin(v)
                n, need = self._devices[v]
                if n and v not in homed:
                    homed.add(v)
                    b.n_devices, b.need, b.homes = n, need, {v}
            return self._open_at[v]

        root = tree[0]
        for v in reversed(tree):
            if self._devices[v][0] and v not in homed and v not in self._open_at:
                passing(v)
                self._try_to_close(v)
            if v in self._open_at and v != root:
                passing(self._parent_of[v]).merge(self._open_at[v])
                self._try_to_close(self._parent_of[v])
        if root in self._open_at:
            self._end(tree, self._open_at[root])

    def _try_to_close(self, v: int) -> None:
        b = self._open_at[v]
        if len(b.nodes) > self._max_nodes:
            self._settle(self._open_at.pop(v), "too large")
        elif b.is_enough and self._is_large(b):
            b.top = v
            self._closed.append(self._open_at.pop(v))

    def _end(self, tree: Sequence[int], left: Bin) -> None:
        while not left.is_enough and self._closed:
            last = self._closed.pop()
            v = last.top
            while v not in left.nodes:
                left.nodes.add(v)
                v = self._parent_of[v]
            left.merge(last)
        for v in tree:
            if left.is_enough and not self._is_large(left):
                left.nodes.add(v)
        if not left.is_enough:
            n_devices = sum(self._devices[v][0] for v in tree)
            self._settle(left, "too few" if n_devices < left.need else "too large")
        elif not self._is_large(left):
            self._settle(left, "too small")
        else:
            self._try_to_close(tree[0])

    def _is_large(self, b: Bin) -> bool:
        metres = sum(self._metres_at[v] for v in b.nodes)
        return len(b.nodes) >= self._min_nodes and metres >= self._min_metres

    def _settle(self, b: Bin, group: int | str) -> None:
        self.group_at.update(dict.fromkeys(b.homes, group))


def promise_holds(
    groups: Sequence[Group], node_of: Sequence[int], *, n_nodes: int, k_floor: int
) -> list[bool]:
    """Return for each group whether it keeps the promise."""

    def holds(group: Group) -> bool:
        region = set(group.region)
        elsewhere = [m for other in groups if other is not group for m in other.members]
        inside = {device for device, node in enumerate(node_of) if node in region}
        return (
            group.k >= k_floor
            and len(group.members) > 0
            and len(region) == len(group.region)
            and region <= set(range(n_nodes))
            and len(inside) >= group.k
            and len(set(group.members)) == len(group.members)
            and not set(group.members) & set(elsewhere)
            and set(group.members) <= inside
        )

    return [holds(group) for group in groups]


def mqtt_filter(topic: str) -> "re.Pattern[str]":
    """Return the topic of an input as a regular expression whose group is the device."""
    pattern = re.escape(topic).replace(re.escape("{device}"), "([^/]*)")
    pattern = pattern.replace(r"\+", "[^/]*")
    if pattern == r"\#":
        return re.compile(".*", re.DOTALL)
    return re.compile(
        pattern.removesuffix(r"/\#") + ("(?:/.*)?" if topic.endswith("#") else ""), re.DOTALL
    )


def imbalance(counts: Mapping[Outcome, int], *, received: int, held: int) -> int:
    """Return how many positions are unaccounted for; below zero, some were counted twice."""
    return received - sum(counts.values()) - held
