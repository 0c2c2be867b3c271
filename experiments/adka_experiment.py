"""The seed's experiment: users on a graph, random targets, and the regions ADKA grows for them.

An ADKA experiment as plain data, and as the files it leaves behind.
"""

import csv
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from anonymizer.algorithms.positions.adka import DensityRule, Regions, grow_regions
from anonymizer.algorithms.positions.density import DensityMap
from anonymizer.domain.arrays import BoolArray, Int32Array, IntArray
from anonymizer.domain.network import RoadNetwork
from anonymizer.domain.outcomes import Outcome
from anonymizer.errors import InputError
from anonymizer.settings import Settings
from experiments.adka_charts import density_against_k, k_against_region_size
from experiments.adka_map import region_on_network

MAX_REFERENCE = 10_000
"""Targets of the reference series: every node, or a sample of this many."""


@dataclass(frozen=True, slots=True, eq=False)
class Runs:
    """What ADKA made of some targets, one run each.

    Attributes
    ----------
    target
        Node indices, shape (runs,).
    density, k
        Users at each target and its neighbours, and the k this asks for, shape (runs,).
    regions
        The region of each run, or why there is none.
    region_size, users_in_region
        Nodes of each region and users on them, shape (runs,); 0 where there is none.
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
        """How many runs have no region, by reason."""
        code, count = np.unique(self.regions.outcome[~self.cloaked], return_counts=True)
        return {Outcome(c).label[1]: int(n) for c, n in zip(code, count, strict=True)}

    def region(self, run: int) -> Int32Array:
        """Return the nodes of a run's region, rising."""
        first = self.regions.first_node_of
        return np.sort(self.regions.node[first[run] : first[run + 1]])

    def outcome(self, run: int) -> str:
        """Return `cloaked`, or the reason why the run has no region."""
        _, reason = Outcome(self.regions.outcome[run]).label
        return reason or "cloaked"


@dataclass(frozen=True, slots=True, eq=False)
class Experiment:
    """Everything the tables and plots are made of.

    Attributes
    ----------
    users
        Where the users are; the same in all runs.
    rule, max_nodes
        How k follows from density, and the cap on regions.
    runs
        Targets drawn at random, with repetition.
    reference
        Every node as a target once, or a sample: what the runs would tell if there were enough.
    """

    users: DensityMap
    rule: DensityRule
    max_nodes: int
    runs: Runs
    reference: Runs

    @property
    def network(self) -> RoadNetwork:
        """The graph the users are on."""
        return self.users.network


def run_experiment(
    network: RoadNetwork, settings: Settings, *, n_users: int, n_runs: int, seed: int
) -> Experiment:
    """Put users on random nodes and cloak random targets.

    Parameters
    ----------
    network
        Any; coordinates are not needed.
    settings
        Those of the service: how k follows from density, and the cap on regions.
    n_users, n_runs
        Both are drawn uniformly over the nodes, each on its own, so that a target may have no
        user and more runs leave the first ones as they were.
    seed
        Equal arguments give equal results.
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
    """Return what ADKA makes of each target, shape (runs,). See `grow_regions` for the cost."""
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


Row: TypeAlias = dict[str, Any]


def run_rows(experiment: Experiment) -> list[Row]:
    """Return one row a run; nodes by the network's own names, runs counted from 1."""
    name_of, runs = experiment.network.node_id, experiment.runs
    return [
        {
            "run": run + 1,
            "target": name_of[runs.target[run]].item(),
            "density": int(runs.density[run]),
            "k": int(runs.k[run]),
            "region_size": int(runs.region_size[run]),
            "users_in_region": int(runs.users_in_region[run]),
            "outcome": runs.outcome(run),
            "region": name_of[runs.region(run)].tolist(),
        }
        for run in range(len(runs))
    ]


def rows_by_k(runs: Runs) -> list[Row]:
    """Return one row for each k that was selected, rising; means are over its cloaked runs."""
    rows = []
    for k in np.unique(runs.k):
        of_k = runs.k == k
        cloaked = of_k & runs.cloaked
        rows.append(
            {
                "k": int(k),
                "n": int(of_k.sum()),
                "n_cloaked": int(cloaked.sum()),
                "mean_region_size": _mean(runs.region_size, cloaked),
                "mean_users_in_region": _mean(runs.users_in_region, cloaked),
            }
        )
    return rows


def summary(experiment: Experiment, *, source: str, seed: int) -> Row:
    """Return the experiment in a few numbers, and what it was asked for."""
    network, rule = experiment.network, experiment.rule
    series = {"over_runs": experiment.runs, "over_nodes": experiment.reference}
    return {
        "network": source,
        "nodes": network.n_nodes,
        "roads": network.n_roads,
        "users": experiment.users.n_devices,
        "seed": seed,
        "density_steps": list(rule.steps),
        "k_values": list(rule.values),
        "k_floor": rule.floor,
        "max_nodes": experiment.max_nodes,
        **{
            name: {"n": len(runs), "suppressed": runs.suppressed, "by_k": rows_by_k(runs)}
            for name, runs in series.items()
        },
    }


def write_results(experiment: Experiment, report: Row, out: Path) -> list[Path]:
    """Write the tables and plots of an experiment; equal experiments give equal files.

    Parameters
    ----------
    experiment
        With at least one run: the first is drawn on the network.
    report
        What goes into `summary.json`.
    out
        The folder for `runs.csv`, `summary.json`, `density_k.png`, `k_region_size.png` and
        `region.png`; made where there is none.

    Returns
    -------
    paths
        The files, in the order above.

    Raises
    ------
    InputError
        If one cannot be written.
    """
    rows = run_rows(experiment)
    write_of: dict[str, Callable[[Path], object]] = {
        "runs.csv": lambda path: _write_csv(rows, path),
        "summary.json": lambda path: path.write_text(json.dumps(report, indent=2) + "\n", "utf-8"),
        "density_k.png": lambda path: density_against_k(experiment, path),
        "k_region_size.png": lambda path: k_against_region_size(experiment, path),
        "region.png": lambda path: region_on_network(experiment, path),
    }
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name, write in write_of.items():
            write(out / name)
    except OSError as error:
        where = error.filename or out
        raise InputError(f"{where}: cannot be written: {error.strerror}") from None
    return [out / name for name in write_of]


def _mean(values: IntArray, among: BoolArray) -> float | None:
    return float(values[among].mean()) if among.any() else None


def _write_csv(rows: list[Row], path: Path) -> None:
    """Write what is one value a run; the nodes of the regions are not."""
    columns = [name for name in rows[0] if name != "region"]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
