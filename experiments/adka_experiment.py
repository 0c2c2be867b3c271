"""The published ADKA experiment: random users and targets on a network, and their regions."""

from dataclasses import dataclass

import numpy as np

from anonymizer.algorithms.positions.adka import DensityRule, Regions, grow_regions
from anonymizer.algorithms.positions.density import DensityMap
from anonymizer.domain.arrays import BoolArray, Int32Array, IntArray
from anonymizer.domain.network import RoadNetwork
from anonymizer.domain.outcomes import Outcome
from anonymizer.settings import Settings

MAX_REFERENCE = 10_000
"""Largest number of targets of the reference series; of a larger network, a sample."""


@dataclass(frozen=True, slots=True, eq=False)
class Runs:
    """Results of ADKA for some targets, one run for each.

    Attributes
    ----------
    target
        Node indices, shape (runs,).
    density, k
        Users at each target and its neighbours, and the k that this density requires, shape
        (runs,).
    regions
        The region of each run, or the reason why there is none.
    region_size, users_in_region
        Nodes of each region and users on them, shape (runs,); 0 without a region.
    """

    target: Int32Array
    density: Int32Array
    k: Int32Array
    regions: Regions
    region_size: IntArray
    users_in_region: IntArray

    def __len__(self) -> int:
        return len(self.target)

    @property
    def cloaked(self) -> BoolArray:
        """Whether each run has a region, shape (runs,)."""
        cloaked: BoolArray = self.regions.outcome == Outcome.HELD
        return cloaked

    @property
    def suppressed(self) -> dict[str, int]:
        """Number of runs without a region, by reason."""
        code, count = np.unique(self.regions.outcome[~self.cloaked], return_counts=True)
        return {Outcome(c).label[1]: int(n) for c, n in zip(code, count, strict=True)}

    def region(self, run: int) -> Int32Array:
        """Return the nodes of a run's region, sorted."""
        first = self.regions.first_node_of
        return np.sort(self.regions.node[first[run] : first[run + 1]])

    def outcome(self, run: int) -> str:
        """Return `cloaked`, or the reason why the run has no region."""
        _, reason = Outcome(self.regions.outcome[run]).label
        return reason or "cloaked"


@dataclass(frozen=True, slots=True, eq=False)
class Experiment:
    """Results of an experiment, from which tables and plots are made.

    Attributes
    ----------
    users
        Positions of the users; the same in all runs.
    rule, max_nodes
        Rule for k by density, and the cap on regions.
    runs
        Runs for random targets, with repetition.
    reference
        Runs for every node as a target, or for a sample of nodes: the expected distribution.
    """

    users: DensityMap
    rule: DensityRule
    max_nodes: int
    runs: Runs
    reference: Runs

    @property
    def network(self) -> RoadNetwork:
        """The network of the users."""
        return self.users.network


def run_experiment(
    network: RoadNetwork, settings: Settings, *, n_users: int, n_runs: int, seed: int
) -> Experiment:
    """Put users on random nodes and cloak random targets.

    Parameters
    ----------
    network
        Any network; coordinates are not required.
    settings
        Settings of the service: the rule for k by density, and the cap on regions.
    n_users, n_runs
        Users and targets are drawn uniformly over the nodes, independently of each other: a target
        may have no user, and with more runs the first ones stay the same.
    seed
        Seed; equal arguments give equal results.
    """
    adka, max_nodes = settings.adka, settings.region.max_nodes
    rule = DensityRule(adka.density_steps, adka.k_values, adka.k_floor)
    for_users, for_targets, for_reference = np.random.default_rng(seed).spawn(3)
    n_nodes = network.n_nodes
    users = users_at(network, for_users.integers(n_nodes, size=n_users, dtype=np.int32))
    target = for_targets.integers(n_nodes, size=n_runs, dtype=np.int32)
    every = np.arange(n_nodes, dtype=np.int32)
    if n_nodes > MAX_REFERENCE:
        every = np.sort(for_reference.choice(every, MAX_REFERENCE, replace=False))
    return Experiment(
        users=users,
        rule=rule,
        max_nodes=max_nodes,
        runs=cloak_targets(users, target, rule=rule, max_nodes=max_nodes),
        reference=cloak_targets(users, every, rule=rule, max_nodes=max_nodes),
    )


def users_at(network: RoadNetwork, node: Int32Array) -> DensityMap:
    """Return the density map with one user at each of the nodes, shape (users,)."""
    users = DensityMap.empty(network)
    users.advance(np.arange(len(node), dtype=np.int32), np.zeros(len(node)), node)
    return users


def cloak_targets(
    users: DensityMap, target: Int32Array, *, rule: DensityRule, max_nodes: int
) -> Runs:
    """Return ADKA's region for each target, shape (runs,). See `grow_regions` for the cost."""
    density = users.n_near[target]
    k = rule.k_for(density)
    regions = grow_regions(users, target, k, max_nodes=max_nodes)
    users_before = np.concatenate([[0], np.cumsum(users.n_at[regions.node], dtype=np.int64)])
    return Runs(
        target=target,
        density=density,
        k=k,
        regions=regions,
        region_size=np.diff(regions.first_node_of),
        users_in_region=np.diff(users_before[regions.first_node_of]),
    )
