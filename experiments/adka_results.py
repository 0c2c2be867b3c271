"""Results of an ADKA experiment, as plain data and as files."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

from anonymizer.domain.arrays import BoolArray, IntArray
from experiments.adka_attacks import AttackPoint, draw_attacks
from experiments.adka_charts import (
    adaptive_against_fixed,
    density_against_k,
    k_against_region_size,
)
from experiments.adka_experiment import Experiment, Runs
from experiments.adka_map import region_on_network
from experiments.result_files import Row, manifest, write_csv, write_files, write_json

_CHARTS: dict[str, Callable[[Experiment, Path], None]] = {
    "density_k": density_against_k,
    "k_region_size": k_against_region_size,
    "adaptive_fixed": adaptive_against_fixed,
    "region": region_on_network,
}


_FOUND = {"over_runs", "over_users", "over_nodes", "expected", "fixed_k"}
"""What is found, in the summary; the rest is what it depends on."""


def run_rows(experiment: Experiment) -> list[Row]:
    """Return one row for each run, numbered from 1, with the names of nodes."""
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
    """Return one row for each selected k, sorted; means are over its runs with a region."""
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


def expected_by_k(experiment: Experiment) -> list[Row]:
    """Return the share of targets that each k is selected for, over all draws, sorted by k."""
    of = experiment.rule.k_for(np.arange(len(experiment.expected), dtype=np.int32))
    return [
        {"k": int(k), "share": float(experiment.expected[of == k].sum())} for k in np.unique(of)
    ]


def summary(experiment: Experiment, *, source: str, seed: int) -> Row:
    """Return the parameters of the experiment and its main figures."""
    network, rule = experiment.network, experiment.rule
    series = {"over_runs": experiment.runs, f"over_{experiment.targets}": experiment.reference}
    return {
        "network": source,
        "nodes": network.n_nodes,
        "roads": network.n_roads,
        "users": experiment.users.n_devices,
        "targets": experiment.targets.value,
        "seed": seed,
        "density_steps": list(rule.steps),
        "k_values": list(rule.values),
        "k_floor": rule.floor,
        "max_nodes": experiment.max_nodes,
        **{
            name: {"n": len(runs), "suppressed": runs.suppressed, "by_k": rows_by_k(runs)}
            for name, runs in series.items()
        },
        "expected": expected_by_k(experiment),
        "fixed_k": [
            {"suppressed": runs.suppressed, **rows_by_k(runs)[0]}
            for runs in experiment.fixed.values()
        ],
    }


def write_results(
    experiment: Experiment,
    report: Row,
    out: Path,
    *,
    attacks: Sequence[AttackPoint] = (),
    inputs: Sequence[Path] = (),
    formats: Sequence[str] = ("png",),
) -> list[Path]:
    """Write the tables and plots of an experiment; equal experiments give equal files.

    Parameters
    ----------
    experiment
        Experiment with at least one run; the first one is drawn on the network.
    report
        Content of `summary.json`; without its results, the options in `manifest.json`.
    out
        Folder for `runs.csv`, `summary.json`, `manifest.json` and the plots `density_k`,
        `k_region_size`, `adaptive_fixed` and `region`; made if it does not exist.
    attacks
        Attacks on regions in each mode, for `attacks.csv` and the plot `attacks`; empty: neither.
    inputs
        Files that were read, for the manifest.
    formats
        Kinds of plots, of `plots.FORMATS`.

    Returns
    -------
    paths
        The files, in the order above.

    Raises
    ------
    InputError
        If a file cannot be written.
    """
    options = {name: value for name, value in report.items() if name not in _FOUND}
    options["runs"] = len(experiment.runs)
    write_of: dict[str, Callable[[Path], object]] = {
        "runs.csv": lambda path: write_csv(run_rows(experiment), path),
        "summary.json": lambda path: write_json(report, path),
        "manifest.json": lambda path: write_json(manifest(options, inputs), path),
    }
    for kind in formats:
        for name, draw in _CHARTS.items():
            write_of[f"{name}.{kind}"] = lambda path, draw=draw: draw(experiment, path)  # type: ignore[misc]
    if attacks:
        write_of["attacks.csv"] = lambda path: write_csv(list(map(asdict, attacks)), path)
        for kind in formats:
            write_of[f"attacks.{kind}"] = lambda path: draw_attacks(list(attacks), path)
    return write_files(out, write_of)


def _mean(values: IntArray, among: BoolArray) -> float | None:
    return float(values[among].mean()) if among.any() else None
