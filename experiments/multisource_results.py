"""Results of a multi-source experiment, as plain data and as files."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

from anonymizer.algorithms.records.problem import Cost
from anonymizer.domain.records import Schema
from anonymizer.errors import InputError
from experiments import multisource_charts as paper
from experiments.multisource_charts import (
    draw_leaks,
    draw_over_d,
    draw_over_k,
    draw_over_l,
    draw_times,
)
from experiments.multisource_experiment import D, K, Method, Multisource, Reading, Run, Trial

Row: TypeAlias = dict[str, Any]


def run_rows(experiment: Multisource) -> list[Row]:
    """Return one row for each trial, without its time."""
    return [_row(experiment, run) for run in experiment.runs]


def time_rows(experiment: Multisource) -> list[Row]:
    """Return one row for each measured time, in seconds."""
    study = experiment.study
    rows = [
        {
            "table": study.name,
            "records": study.n,
            "method": run.trial.method.value,
            "k": run.trial.k,
            "d": run.trial.d,
            "l": run.trial.l,
            "classes": run.measures.n_classes,
            "seconds": run.seconds,
            "paper_seconds": paper.SECONDS.get(study.n) if _usual(run.trial) else None,
        }
        for run in experiment.runs
        if run.trial.reading is Reading.PAPER
    ]
    return rows + [
        {
            "table": "a made table in the shape of the Census of 1990",
            "records": timing.n,
            "method": Method.HILBERT.value,
            "k": K,
            "d": D,
            "l": timing.l,
            "classes": timing.n_classes,
            "seconds": timing.seconds,
            "paper_seconds": paper.SECONDS.get(timing.n) if timing.l == 1 else None,
        }
        for timing in experiment.timings
    ]


def summary(experiment: Multisource, *, seed: int) -> Row:
    """Return the experiment without its times, as plain data."""
    _, schema = experiment.study.of[Reading.PAPER]
    return {
        "table": experiment.study.name,
        "records": experiment.study.n,
        "seed": seed,
        "sources": [[schema.qis[j].name for j in source] for source in schema.sources],
        "sensitive": [a.name for a in schema.sensitive],
        "note": paper.NOTE,
        "runs": run_rows(experiment),
    }


def write_results(experiment: Multisource, report: Row, out: Path) -> list[Path]:
    """Write tables and plots; equal experiments give equal files, except `times.*`.

    Parameters
    ----------
    experiment
        Experiment on any table.
    report
        Content of `summary.json`.
    out
        Folder of the files; made if it does not exist.

    Raises
    ------
    InputError
        If a file cannot be written.
    """
    write_of: dict[str, Callable[[Path], object]] = {
        "runs.csv": lambda path: _write_csv(report["runs"], path),
        "times.csv": lambda path: _write_csv(time_rows(experiment), path),
        "summary.json": lambda path: path.write_text(json.dumps(report, indent=2) + "\n", "utf-8"),
        "over_k.png": lambda path: draw_over_k(experiment, path),
        "over_d.png": lambda path: draw_over_d(experiment, path),
        "over_l.png": lambda path: draw_over_l(experiment, path),
        "leaks.png": lambda path: draw_leaks(experiment, path),
        "times.png": lambda path: draw_times(experiment, path),
    }
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name, write in write_of.items():
            write(out / name)
    except OSError as error:
        where = error.filename or out
        raise InputError(f"{where}: cannot be written: {error.strerror}") from None
    return [out / name for name in write_of]


def _row(experiment: Multisource, run: Run) -> Row:
    trial, measured = run.trial, run.measures
    _, schema = experiment.study.of[trial.reading]
    row: Row = {
        "reading": trial.reading.value,
        "method": trial.method.value,
        "k": trial.k,
        "d": trial.d,
        "l": trial.l,
        "classes": measured.n_classes,
        "suppressed": measured.n_suppressed,
        "gcp_range": measured.gcp[Cost.RANGE],
        "gcp_set": measured.gcp[Cost.SET],
        "gcp_taxonomy": measured.gcp[Cost.TAXONOMY] if _has_taxonomy(schema) else None,
        "dm": measured.dm,
    }
    for leak in run.leaks:
        way = f"{leak.known + 1}_to_{(leak.learned or 0) + 1}"
        row |= {f"cells_{way}": leak.n_cells, f"people_{way}": leak.n_people}
    known = paper.ON_ADULT.get(trial, {}) if experiment.study.adult else {}
    return row | {f"paper_{name}": known.get(name) for name in paper.NAMES}


def _usual(trial: Trial) -> bool:
    return trial == Trial(Reading.PAPER, Method.HILBERT, K, D)


def _has_taxonomy(schema: Schema) -> bool:
    return any(a.hierarchy is not None for a in schema.qis)


def _write_csv(rows: list[Row], path: Path) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
