"""Results of an ADKA experiment, as plain data and as files."""

import csv
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from anonymizer.domain.arrays import BoolArray, IntArray
from anonymizer.errors import InputError
from experiments.adka_attacks import AttackPoint, draw_attacks
from experiments.adka_charts import (
    adaptive_against_fixed,
    density_against_k,
    k_against_region_size,
)
from experiments.adka_experiment import Experiment, Runs
from experiments.adka_map import region_on_network

Row: TypeAlias = dict[str, Any]


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
        "fixed_k": [
            {"suppressed": runs.suppressed, **rows_by_k(runs)[0]}
            for runs in experiment.fixed.values()
        ],
    }


def write_results(
    experiment: Experiment, report: Row, out: Path, *, attacks: Sequence[AttackPoint] = ()
) -> list[Path]:
    """Write the tables and plots of an experiment; equal experiments give equal files.

    Parameters
    ----------
    experiment
        Experiment with at least one run; the first one is drawn on the network.
    report
        Content of `summary.json`.
    out
        Folder for `runs.csv`, `summary.json`, `density_k.png`, `k_region_size.png`,
        `adaptive_fixed.png` and `region.png`; made if it does not exist.
    attacks
        Attacks on regions in each mode, for `attacks.csv` and `attacks.png`; empty: neither.

    Returns
    -------
    paths
        The files, in the order above.

    Raises
    ------
    InputError
        If a file cannot be written.
    """
    rows = run_rows(experiment)
    write_of: dict[str, Callable[[Path], object]] = {
        "runs.csv": lambda path: _write_csv(rows, path),
        "summary.json": lambda path: path.write_text(json.dumps(report, indent=2) + "\n", "utf-8"),
        "density_k.png": lambda path: density_against_k(experiment, path),
        "k_region_size.png": lambda path: k_against_region_size(experiment, path),
        "adaptive_fixed.png": lambda path: adaptive_against_fixed(experiment, path),
        "region.png": lambda path: region_on_network(experiment, path),
    }
    if attacks:
        write_of["attacks.csv"] = lambda path: _write_csv(list(map(asdict, attacks)), path)
        write_of["attacks.png"] = lambda path: draw_attacks(list(attacks), path)
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
    """Write rows of equal columns; the nodes of a region are separated by blanks."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        for row in rows:
            cells = {n: " ".join(map(str, v)) if isinstance(v, list) else v for n, v in row.items()}
            writer.writerow(cells)
