"""Peers: the same algorithms in plain Python over networkx, one position at a time."""

from collections import Counter
from collections.abc import Mapping, Sequence

from anonymizer.algorithms.positions.adka import DensityRule
from anonymizer.domain.network import RoadNetwork
from anonymizer.domain.outcomes import Outcome
from tests import naive

RULE = DensityRule()
MAX_NODES = 1000


class PlainDensity:
    """The density map in dicts: the newest position of each device, and the counts."""

    def __init__(self, graph: naive.Graph) -> None:
        self._graph = graph
        self._newest: dict[int, tuple[float, int]] = {}
        self.n_at: Counter[int] = Counter()
        self.n_near: Counter[int] = Counter()

    @property
    def n_devices(self) -> int:
        """Distinct devices."""
        return len(self._newest)

    def move(self, device: int, ts: float, node: int) -> None:
        """Add one position unless it is older than the newest one. O(degree)."""
        known = self._newest.get(device)
        if known is not None:
            if ts <= known[0]:
                return
            self._count(known[1], -1)
        self._newest[device] = (ts, node)
        self._count(node, 1)

    def _count(self, node: int, change: int) -> None:
        self.n_at[node] += change
        self.n_near[node] += change
        for v in self._graph[node]:
            self.n_near[v] += change


class PlainCloak:
    """ADKA on a connected network, one position at a time, as published."""

    def __init__(self, network: RoadNetwork) -> None:
        self.graph = naive.graph_of(network)
        self.density = PlainDensity(self.graph)

    def region(self, root: int, population: Mapping[int, int]) -> list[int] | Outcome:
        """Return the region of a device at `root`, in the order of growth, or why it has none."""
        near = self.density.n_near[root]
        k = naive.k_for(near, steps=RULE.steps, values=RULE.values, floor=RULE.floor)
        return naive.bfs_region(
            self.graph, self.density.n_at, population, root, k, max_nodes=MAX_NODES
        )

    def population(self) -> dict[int, int]:
        """Return the number of devices in the component of each node: all devices."""
        return dict.fromkeys(self.graph, self.density.n_devices)


def groups_hold(groups: Sequence[naive.Group], node_of: Sequence[int], k_floor: int) -> list[bool]:
    """Return which groups keep their promise, in one pass over devices and groups.

    `naive.promise_holds` reads every device again for every group, so it is no fair peer.
    """
    n_at = Counter(node_of)
    seen: set[int] = set()
    holds = []
    for group in groups:
        region, members = set(group.region), set(group.members)
        holds.append(
            group.k >= k_floor
            and len(region) == len(group.region)
            and 0 < len(members) == len(group.members)
            and seen.isdisjoint(members)
            and all(node_of[member] in region for member in members)
            and sum(n_at[node] for node in region) >= group.k
        )
        seen |= members
    return holds
