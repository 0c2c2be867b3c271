"""The published ADKA experiment: random users and targets on a network, and their regions.

References
----------
.. [1] github.com/Pushkal-Gupta/graph-based-location-privacy-iot,
   `density_aware_k_anonymity_simulation.py`: 30 users on random nodes of a 5x5 grid, and 20 targets
   that are random nodes.
"""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from scipy.stats import binom

from anonymizer.algorithms.positions.adka import DensityRule, Regions, grow_regions
from anonymizer.algorithms.positions.density import DensityMap
from anonymizer.domain.arrays import BoolArray, FloatArray, Int32Array, IntArray
from anonymizer.domain.network import RoadNetwork
from anonymizer.domain.outcomes import Outcome
from anonymizer.errors import SettingsError
from anonymizer.pipeline.positions.tick.factory import density_rule, most_nodes
from anonymizer.settings import Settings

MAX_REFERENCE = 10_000
"""Largest number of targets of the reference series; of more users or nodes, a sample."""


class Targets(StrEnum):
    """What targets are drawn from."""

    USERS = "users"
    """A target is the node of a user."""
    NODES = "nodes"
    """A target is any node, with a user or without, as published."""


@dataclass(frozen=True, slots=True, eq=False)
class Runs:
    """Results of ADKA for some targets, one run for each."""

    target: Int32Array
    """Node indices, shape (runs,)."""
    density: Int32Array
    k: Int32Array
    """`density`, `k`: users at each target and its neighbours, and the k that this density
    requires, shape (runs,)."""
    regions: Regions
    """The region of each run, or the reason why there is none."""
    region_size: IntArray
    users_in_region: IntArray
    """`region_size`, `users_in_region`: nodes of each region and users on them, shape (runs,); 0
    without a region."""

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
    """Results of an experiment, from which tables and plots are made."""

    users: DensityMap
    """Positions of the users; the same in all runs."""
    rule: DensityRule
    max_nodes: int
    """`rule`, `max_nodes`: rule for k by density, and the cap on regions."""
    targets: Targets
    """What targets are drawn from."""
    runs: Runs
    """Runs for random targets, with repetition."""
    reference: Runs
    """Runs for every user (or node) as a target, or for a sample: the expected distribution."""
    expected: FloatArray
    """Probability of each density from 0 on, over all draws of users and targets: what one draw is
    a sample of."""
    fixed: dict[int, Runs]
    """The same targets as in `reference` with one k for all, by that k: what an adaptive k is
    compared with."""

    @property
    def network(self) -> RoadNetwork:
        """The network of the users."""
        return self.users.network


def run_experiment(
    network: RoadNetwork,
    settings: Settings,
    *,
    n_users: int,
    n_runs: int,
    seed: int,
    targets: Targets = Targets.NODES,
) -> Experiment:
    """Put users on random nodes and cloak random targets.

    Parameters
    ----------
    network
        Any network; coordinates are not required.
    settings
        Settings of the service: the rule for k by density, and the cap on regions.
    n_users, n_runs
        Users are drawn uniformly over the nodes, and targets over the users or nodes. With more
        runs the first ones stay the same.
    seed
        Seed; equal arguments give equal results.
    targets
        What targets are drawn from.

    Raises
    ------
    SettingsError
        If targets are users and there are none.
    """
    if targets is Targets.USERS and not n_users:
        raise SettingsError("--targets users: there are no users")
    rule, max_nodes = density_rule(settings), most_nodes(settings, network)
    for_users, for_targets, for_reference = np.random.default_rng(seed).spawn(3)
    n_nodes = network.n_nodes
    at = for_users.integers(n_nodes, size=n_users, dtype=np.int32)
    users = users_at(network, at)
    every = at if targets is Targets.USERS else np.arange(n_nodes, dtype=np.int32)
    target = every[for_targets.integers(len(every), size=n_runs)]
    if len(every) > MAX_REFERENCE:
        every = for_reference.choice(every, MAX_REFERENCE, replace=False)
    return experiment_at(
        users, target, np.sort(every), rule=rule, max_nodes=max_nodes, targets=targets
    )


def experiment_at(
    users: DensityMap,
    target: Int32Array,
    every: Int32Array,
    *,
    rule: DensityRule,
    max_nodes: int,
    targets: Targets,
) -> Experiment:
    """Return the experiment with given targets of the runs and of the reference series."""

    def cloaked(node: Int32Array, by: DensityRule) -> Runs:
        return cloak_targets(users, node, rule=by, max_nodes=max_nodes)

    ks = sorted({max(value, rule.floor) for value in rule.values})
    return Experiment(
        users=users,
        rule=rule,
        max_nodes=max_nodes,
        targets=targets,
        runs=cloaked(target, rule),
        reference=cloaked(every, rule),
        expected=expected_density(users.network, users.n_devices, targets),
        fixed={k: cloaked(every, DensityRule(steps=(), values=(k,), floor=k)) for k in ks},
    )


def expected_density(network: RoadNetwork, n_users: int, targets: Targets) -> FloatArray:
    """Return the probability of each density from 0 on, over all draws of users and targets.

    Exact: users are on nodes independently and uniformly, so that the number of them at a node and
    its neighbours is binomial; a target that is a user counts itself. Densities with a probability
    below 1e-9 may be cut off at the end. O(nodes + distinct degrees x densities).
    """
    certain = int(targets is Targets.USERS)
    others = n_users - certain
    degree, n_of = np.unique(np.diff(network.first_arc_of), return_counts=True)
    share = (degree + 1) / network.n_nodes
    most = int(binom.isf(1e-9, others, share.max()))
    of_degree = binom.pmf(np.arange(most + 1), others, share[:, None])
    expected = np.zeros(most + 1 + certain)
    expected[certain:] = n_of @ of_degree / network.n_nodes
    return expected


def users_at(network: RoadNetwork, node: Int32Array) -> DensityMap:
    """Return the density map with one user at each of the nodes, shape (users,)."""
    users = DensityMap.empty(network)
    users.advance(np.arange(len(node), dtype=np.int32), np.zeros(len(node)), node)
    return users


def cloak_targets(
    users: DensityMap, target: Int32Array, *, rule: DensityRule, max_nodes: int
) -> Runs:
    """Return ADKA's region for each target, shape (runs,). See `grow_regions` for the cost."""
    density = users.near(target)
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
