"""What an adversary believes after some looks at where somebody is, and expects of the next one.

It reads a release of some minutes, and weighs the names in use as in `known_positions`. A look sees
where the target is at a moment; a watch sees whether it is in a part of the town.
"""

from collections.abc import Callable
from copy import copy
from typing import NamedTuple, TypeAlias

import numpy as np
from scipy.special import entr

from anonymizer.algorithms.kernels import kernel
from anonymizer.algorithms.positions.spanning_forest import compact_parts
from anonymizer.audit import Case
from anonymizer.audit.mathematics.evidence import SLIP
from anonymizer.audit.publications import last_records, true_traffic
from anonymizer.domain.arrays import BoolArray, FloatArray, IntArray, starts_of
from anonymizer.domain.network import RoadNetwork
from anonymizer.settings import Settings
from experiments.tracking_experiment import drive, released

SECONDS = 420
BEGINS_S, ENDS_S = 90, 390
"""The window in which the adversary may look, in seconds of the trace."""
TICK_S = 5.0
N_PARTS = 32
"""Parts of the town that can be watched."""


class Groups(NamedTuple):
    """The regions of a moment, in rising order."""

    alive: IntArray
    """Names in use."""
    regions: IntArray
    """Regions that hold then."""
    group_of: IntArray
    """Which of the regions is that of each name in use."""
    size: IntArray
    """Nodes of each region."""
    share: FloatArray
    entropy: FloatArray
    """`share`, `entropy`: share of each region in each part, and the entropy of what a watch of the
    part says of somebody in the region (nats), shapes (regions, parts)."""


class Window(NamedTuple):
    """What is published at the moments of a window."""

    region: IntArray
    """Region of each name at each moment, negative for none, shape (moments, names)."""
    first_node_of: IntArray
    node: IntArray
    """`first_node_of`, `node`: nodes of the regions, as in `Observed`."""
    place: IntArray
    """Node of each device at each moment, negative if it is absent, shape (moments, devices)."""
    device_of: IntArray
    """Device of each name."""
    n_nodes: int
    part_of: IntArray
    """Part of the town of each node, shape (nodes,)."""
    groups: list[Groups]
    """What is published at each moment."""

    def covers(self, region: int, node: int) -> bool:
        """Return whether a region has a node."""
        first, end = self.first_node_of[region : region + 2]
        return bool((self.node[first:end] == node).any())


def window_of(case: Case, until: FloatArray) -> Window:
    """Return what a release says at the moments of the window."""
    begun = float(case.reports.ts.min())
    times = begun + np.arange(BEGINS_S, ENDS_S, TICK_S)
    records = np.stack(last_records(case.observed, times, until))
    region = np.where(records >= 0, case.observed.region_of[records], -1)
    place = true_traffic(case.reports, case.network, times, present_s=2 * TICK_S).place
    part_of = compact_parts(case.network, N_PARTS).astype(np.int64)
    observed = case.observed
    region_of = np.repeat(np.arange(observed.n_regions), observed.region_size)
    at = region_of * N_PARTS + part_of[observed.node]
    n_in = np.bincount(at, minlength=observed.n_regions * N_PARTS).reshape(-1, N_PARTS)
    share = n_in / observed.region_size[:, None]
    return Window(
        region,
        observed.first_node_of,
        observed.node.astype(np.int64),
        place.astype(np.int64),
        case.device_of,
        case.network.n_nodes,
        part_of,
        [_groups_of(row, observed.region_size, share) for row in region],
    )


def _groups_of(region_of: IntArray, size: IntArray, share: FloatArray) -> Groups:
    """Return what is published at a moment; the region of each name is negative for none."""
    alive = np.flatnonzero(region_of >= 0)
    regions, group_of = np.unique(region_of[alive], return_inverse=True)
    in_parts = share[regions]
    return Groups(alive, regions, group_of, size[regions], in_parts, _entropy(in_parts))


class Looks:
    """What an adversary believes after some looks, and expects of the next one."""

    def __init__(self, window: Window) -> None:
        self._window = window
        self.log_weight = np.zeros(window.region.shape[1])
        self.in_use = window.region >= 0

    def copy(self) -> "Looks":
        """Return the same, to which more looks may be added."""
        other = copy(self)
        other.log_weight = self.log_weight.copy()
        return other

    def inside(self, t: int) -> BoolArray:
        """Return which nodes are in the region of each name in use, shape (names, nodes)."""
        window = self._window
        _, regions, group_of, size, *_ = window.groups[t]
        found = np.zeros((len(regions), window.n_nodes), bool)
        first = window.first_node_of[regions]
        at = np.arange(size.sum()) + np.repeat(first - starts_of(size)[:-1], size)
        found[np.repeat(np.arange(len(regions)), size), window.node[at]] = True
        return found[group_of]

    def share_of(self, t: int) -> FloatArray:
        """Return the share of the region of each name in use in each part, shape (names, parts)."""
        groups = self._window.groups[t]
        return groups.share[groups.group_of]

    def belief(self, t: int) -> tuple[IntArray, FloatArray]:
        """Return the names in use at a moment, and the probability of each."""
        alive = self._window.groups[t].alive
        weight = np.exp(self.log_weight[alive] - self.log_weight[alive].max(initial=-np.inf))
        return alive, weight / weight.sum()

    def see(self, t: int, node: int) -> None:
        """Take in that the target is at a node."""
        window = self._window
        alive, regions, group_of, size, *_ = window.groups[t]
        covers = np.array([window.covers(r, node) for r in regions.tolist()])
        told = np.where(covers, -np.log(size), np.log(SLIP / window.n_nodes))
        self.log_weight[alive] += told[group_of]

    def watch(self, t: int, part: int, *, there: bool) -> None:
        """Take in whether the target is in a part of the town."""
        groups = self._window.groups[t]
        share = np.clip(groups.share[:, part], SLIP, 1.0 - SLIP)
        told = np.log(share if there else 1.0 - share)
        self.log_weight[groups.alive] += told[groups.group_of]

    def expected_by_part(self, t: int) -> tuple[FloatArray, FloatArray]:
        """Return, of a watch of each part, what `expected` does of a look, shape (parts,)."""
        _, regions, group_of, _, share, entropy = self._window.groups[t]
        best, whole = np.zeros(len(regions)), np.zeros(len(regions))
        weight = self.belief(t)[1]
        np.maximum.at(best, group_of, weight)
        np.add.at(whole, group_of, weight)
        yes, no = (best[:, None] * each for each in (share, 1.0 - share))
        surest = yes.max(axis=0, initial=0.0) + no.max(axis=0, initial=0.0)
        return surest, _entropy(whole @ share) - whole @ entropy

    def expected(self, t: int) -> tuple[float, float]:
        """Return how sure the best guess after a look is expected to be, and what is learned."""
        window = self._window
        alive, regions, group_of, *_ = window.groups[t]
        if not len(alive):
            return 0.0, 0.0
        return _expected(
            self.belief(t)[1],
            group_of,
            regions,
            window.first_node_of,
            window.node,
            window.n_nodes,
        )


def _entropy(share: FloatArray) -> FloatArray:
    """Return the entropy of answers of yes in so many cases (nats)."""
    return entr(share) + entr(np.maximum(1.0 - share, 0.0))


@kernel
def _expected(  # noqa: PLR0917  kernels take no keywords
    weight: FloatArray,
    group_of: IntArray,
    regions: IntArray,
    first_node_of: IntArray,
    node: IntArray,
    n_nodes: int,
) -> tuple[float, float]:
    """Return the expected belief in the best guess, and the information of the place (nats)."""
    best, whole = np.zeros(len(regions)), np.zeros(len(regions))
    for i in range(len(weight)):
        best[group_of[i]] = max(best[group_of[i]], weight[i])
        whole[group_of[i]] += weight[i]
    surest, density = np.zeros(n_nodes), np.zeros(n_nodes)
    learned = 0.0
    for g in range(len(regions)):
        nodes = node[first_node_of[regions[g]] : first_node_of[regions[g] + 1]]
        size = len(nodes)
        learned -= whole[g] * np.log(size)
        for v in nodes:
            surest[v] = max(surest[v], best[g] / size)
            density[v] += whole[g] / size
    for v in range(n_nodes):
        if density[v] > 0:
            learned -= density[v] * np.log(density[v])
    return surest.sum(), learned


Choice: TypeAlias = Callable[[Looks, list[int], np.random.Generator], int]
"""Returns the next moment to look at, given those that were."""


def guessed(looks: Looks, seen: list[int], own: BoolArray) -> float:
    """Return how often the surest name of all moments is right; among equals, one is guessed."""
    surest, right = -1.0, 0.0
    for t in seen:
        alive, weight = looks.belief(t)
        best = float(weight.max())
        if best > surest + 1e-9:
            equal = weight >= best - 1e-9
            surest, right = best, float(own[alive][equal].mean())
    return right


def published(network: RoadNetwork, n_devices: int, mode: str, seed: int) -> Window:
    """Return what a mode says of a simulated fleet."""
    trace = drive(network, n_devices, seconds=SECONDS, seed=seed)
    settings = Settings.model_validate({"region": {"mode": mode}})
    case, release = released(trace, network, settings, tick_s=TICK_S, seed=seed)
    return window_of(case, release.until)
