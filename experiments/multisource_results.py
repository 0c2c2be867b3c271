"""Results of a multi-source experiment, as plain data and as files."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from anonymizer.algorithms.records.problem import Cost
from anonymizer.domain.records import Schema
from experiments import multisource_charts as charts
from experiments.compared_methods import Method
from experiments.latex import latex_table
from experiments.leak_tables import LeakRow
from experiments.multisource_experiment import Multisource, Run, Trial
from experiments.multisource_tables import Reading, Study
from experiments.printed_figures import ADULT, CENSUS, K_OF, SECONDS, D
from experiments.result_files import Row, manifest, write_csv, write_files, write_json
from experiments.worked_example import draw_example, example_rows, worked_example

NOTE = (
    "Rows and columns called the paper's hold the figures that it prints, and nothing else. All "
    "others are what our programs find; of the paper's algorithms, a reproduction."
)
_CHARTS: dict[str, Callable[..., None]] = {
    "over_k": charts.draw_over_k,
    "over_d": charts.draw_over_d,
    "over_l": charts.draw_over_l,
    "over_qis": charts.draw_over_qis,
    "over_records": charts.draw_over_records,
}
"""Figures 8 to 12, of each table."""
_ADULT_CHARTS: dict[str, Callable[..., None]] = {
    "readings": charts.draw_readings,
    "leaks": charts.draw_leaks,
}


def run_rows(experiment: Multisource) -> list[Row]:
    """Return one row for each trial and repeat, without its time."""
    return [_run_row(experiment, run) for run in experiment.runs]


def time_rows(experiment: Multisource) -> list[Row]:
    """Return the times of each trial in seconds, beside those of the paper's table 8."""
    of: dict[Any, list[float]] = {}
    for run in experiment.runs:
        of.setdefault(run.trial, []).append(run.seconds)
    rows = []
    for trial, seconds in of.items():
        study = experiment.studies[trial.shape]
        rows.append(
            {
                "table": study.name,
                "records": round(study.n * trial.share),
                "reading": trial.reading.value,
                "method": trial.method.value,
                "qis": trial.n_qis,
                "k": trial.k,
                "d": trial.d,
                "l": trial.l,
                "repeats": len(seconds),
                "mean_s": float(np.mean(seconds)),
                "least_s": min(seconds),
                "greatest_s": max(seconds),
                "paper_s": _paper_seconds(study, trial),
            }
        )
    return rows


def leak_table_rows(experiment: Multisource) -> list[Row]:
    """Return the rows of tables 4 to 7, those of the paper and ours."""
    return [_leak_row(row) for row in experiment.leak_rows]


def inference_rows(experiment: Multisource) -> Iterator[Row]:
    """Yield every value of tables 4 and 5 that Algorithm 1 learns: of whom, from which source.

    Records are numbered from 1 in the order of the table.
    """
    records, schema = experiment.studies[ADULT].of[Reading.PAPER]
    value_of = [
        attribute.label or [attribute.number(code) for code in range(attribute.size)]
        for attribute in schema.qis
    ]
    for row in experiment.leak_rows:
        for inferred in row.inferred:
            for record, qi in zip(inferred.record, inferred.qi, strict=True):
                yield {
                    "table": row.table,
                    "algorithm": row.algorithm,
                    "from_source": inferred.known + 1,
                    "record": record + 1,
                    "attribute": schema.qis[qi].name,
                    "value": value_of[qi][records.qi[record, qi]],
                }


def summary(experiment: Multisource) -> Row:
    """Return the experiment without its times, as plain data."""
    tables = []
    for study in experiment.studies.values():
        _, schema = study.of[Reading.PAPER]
        tables.append(
            {
                "table": study.name,
                "records": study.n,
                "sources": [[schema.qis[j].name for j in source] for source in schema.sources],
                "sensitive": [a.name for a in schema.sensitive],
            }
        )
    return {
        "tables": tables,
        "done": experiment.done,
        "repeats": experiment.plan.repeats,
        "best_s": experiment.plan.best_s,
        "seed": experiment.plan.seed,
        "note": NOTE,
        "leaks": leak_table_rows(experiment),
        "runs": run_rows(experiment),
    }


def options_of(experiment: Multisource) -> Row:
    """Return the options of an experiment and the sizes of its tables, for the manifest."""
    plan = experiment.plan
    return {
        "repeats": plan.repeats,
        "best_s": plan.best_s,
        "seed": plan.seed,
        "ks": {shape: list(ks) for shape, ks in plan.ranges.ks.items()},
        "ds": list(plan.ranges.ds),
        "ls": list(plan.ranges.ls),
        "shares": list(plan.ranges.shares),
        "tables": {study.name: study.n for study in experiment.studies.values()},
    }


def write_results(
    experiment: Multisource,
    report: Row,
    out: Path,
    *,
    inputs: Sequence[Path] = (),
    formats: Sequence[str] = ("png",),
) -> list[Path]:
    """Write tables and plots, also of an experiment that is not at its end.

    Parameters
    ----------
    experiment
        Experiment on any tables.
    report
        Content of `summary.json`.
    out
        Folder of the files; made if it does not exist.
    inputs
        Files that the tables were read from, for the manifest.
    formats
        Kinds of plots, of `plots.FORMATS`.

    Raises
    ------
    InputError
        If a file cannot be written.
    """
    leaks, steps = leak_table_rows(experiment), worked_example()
    write_of: dict[str, Callable[[Path], object]] = {
        "runs.csv": lambda path: write_csv(report["runs"], path),
        "times.csv": lambda path: write_csv(time_rows(experiment), path),
        "leaks.csv": lambda path: write_csv(leaks, path),
        "leaks.tex": lambda path: path.write_text(latex(leaks), "utf-8"),
        "inferences.csv": lambda path: write_csv(list(inference_rows(experiment)), path),
        "example.csv": lambda path: write_csv(example_rows(steps), path),
        "summary.json": lambda path: write_json(report, path),
        "manifest.json": lambda path: write_json(manifest(options_of(experiment), inputs), path),
    }
    drawn = _CHARTS | _ADULT_CHARTS
    if CENSUS in experiment.studies:
        drawn |= {f"{name}_census": partial(draw, shape=CENSUS) for name, draw in _CHARTS.items()}
    for kind in formats:
        for name, draw in drawn.items():
            write_of[f"{name}.{kind}"] = lambda path, draw=draw: draw(experiment, path)  # type: ignore[misc]
        write_of[f"example.{kind}"] = lambda path: draw_example(steps, path)
    return write_files(out, write_of)


def latex(rows: Sequence[Row]) -> str:
    """Return rows of tables 4 to 7 as a LaTeX table."""
    return latex_table(rows, n_text=5, rule="table")


def _run_row(experiment: Multisource, run: Run) -> Row:
    trial, measured = run.trial, run.measures
    study = experiment.studies[trial.shape]
    _, schema = study.of[trial.reading]
    row: Row = {
        "table": study.name,
        "reading": trial.reading.value,
        "method": trial.method.value,
        "records": round(study.n * trial.share),
        "qis": trial.n_qis,
        "k": trial.k,
        "d": trial.d,
        "l": trial.l,
        "repeat": run.repeat,
        "classes": measured.n_classes,
        "suppressed": measured.n_suppressed,
        "gcp_range": measured.gcp[Cost.RANGE],
        "gcp_set": measured.gcp[Cost.SET],
        "gcp_taxonomy": measured.gcp[Cost.TAXONOMY] if _has_taxonomy(schema) else None,
        "dm": measured.dm,
        "misclassified": run.misclassified,
    }
    of = {leak.known: leak for leak in run.leaks}
    for known in range(2):
        way = f"{known + 1}_to_{2 - known}"
        leak = of.get(known)
        row[f"cells_{way}"] = None if leak is None else leak.n_cells
        row[f"people_{way}"] = None if leak is None else leak.n_people
    return row


def _leak_row(row: LeakRow) -> Row:
    uniform = {f"a{a + 1}": n for a, n in enumerate(row.uniform)}
    leaks = {f"leaks_{s + 1}": n for s, n in enumerate(row.leaks)}
    return {
        "table": row.table,
        "by": f"the paper, Table {row.table}" if row.by_the_paper else "ours",
        "promise": row.promise,
        "data": row.data,
        "algorithm": row.algorithm,
        **uniform,
        "classes": row.n_classes,
        **leaks,
        "leaks": sum(row.leaks),
        "suppressed": row.n_suppressed,
        "inferred_cells": row.n_inferred,
    }


def _paper_seconds(study: Study, trial: Trial) -> float | None:
    """Return the time that the paper prints for a trial: of its algorithms and its defaults."""
    printed = study.is_adult or study.is_census
    usual = (K_OF[trial.shape], D, 1.0, len(study.of[Reading.PAPER][1].qis), Reading.PAPER)
    as_is = (trial.k, trial.d, trial.share, trial.n_qis, trial.reading)
    if not printed or as_is != usual or trial.method not in {Method.HILBERT, Method.PRINTED}:
        return None
    return SECONDS.get((trial.shape, trial.l))


def _has_taxonomy(schema: Schema) -> bool:
    return any(a.hierarchy is not None for a in schema.qis)
