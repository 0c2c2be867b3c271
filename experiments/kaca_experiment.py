"""KACA experiment: K-Means as published beside the fast method, over k and records.

The source shows no figures. A generated day of toll exits stands for its records.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np

from anonymizer.algorithms.kaca.clustering import Method, kaca
from anonymizer.algorithms.kaca.features import features, sum_of_squares
from anonymizer.algorithms.records.measures import measure
from anonymizer.algorithms.records.problem import Cost
from anonymizer.app.plots import BLUE, LIGHT, ORANGE, RED, plot
from anonymizer.domain.promises import Promise
from experiments.kept_steps import KeptSteps, Progress
from experiments.result_files import Row, manifest, write_csv, write_files, write_json
from experiments.toll_table import HOW, toll_exits

KS = (2, 5, 10, 20, 50)
RECORDS = (500, 1_000, 2_000, 4_000, 8_000)
K, N = 5, 2_000
"""Fixed values where the other one varies."""

_WAYS: dict[str, tuple[Method, int]] = {
    "K-Means, 10 starts": (Method.KMEANS, 10),
    "K-Means, 1 start": (Method.KMEANS, 1),
    "fast": (Method.FAST, 1),
}
"""Method and random starts by name; ten starts are as published."""
_COLOUR = dict(zip(_WAYS, (RED, ORANGE, BLUE), strict=True))


@dataclass(frozen=True, slots=True)
class KacaRun:
    """Classes of one table by one method."""

    method: str
    k: int
    records: int
    repeat: int
    """Number of the repeat, each on a day of its own."""
    classes: int
    gcp: float
    squares: float
    """`classes`, `gcp`, `squares`: number of classes, mean width of their ranges, and sum of
    squares of the features."""
    seconds: float
    """CPU time to form the classes."""


def run_kaca(
    *,
    ks: Sequence[int] = KS,
    records: Sequence[int] = RECORDS,
    repeats: int = 10,
    seed: int = 1,
    kept: KeptSteps | None = None,
    progress: Progress = lambda _done, _what: None,
    partial_results: Callable[[list[KacaRun]], None] = lambda _so_far: None,
) -> list[KacaRun]:
    """Form classes of generated days of toll exits by each method, over k and over records.

    A step is a table and a method: `kept` has what is known from before, and `partial_results` is
    called after each one with the runs so far.
    """
    kept = kept or KeptSteps(None, {})
    cases = dict.fromkeys([*((k, N) for k in ks), *((K, n) for n in records)])
    steps = [(repeat, *case, name) for repeat in range(repeats) for case in cases for name in _WAYS]
    for name in _WAYS:
        _run(name, K, 50, repeat=0, seed=seed)  # compiles, and imports scikit-learn
    runs = []
    for step, (repeat, k, n, name) in enumerate(steps):
        what = f"{name}, k = {k}, {n:,} records, repeat {repeat + 1}"
        progress(step / len(steps), what)
        find = partial(_run, name, k, n, repeat=repeat, seed=seed)
        runs.append(kept.result(KacaRun, what, find))
        partial_results(runs)
    progress(1.0, "done")
    return runs


def write_kaca(
    runs: Sequence[KacaRun],
    report: Row,
    out: Path,
    *,
    options: Row,
    formats: Sequence[str] = ("png",),
) -> list[Path]:
    """Write tables and plots to a folder, and return their paths.

    Parameters
    ----------
    report
        Content of `summary.json`.
    options
        What the runs depend on, for `manifest.json`.
    formats
        Kinds of plots, of `plots.FORMATS`.

    Raises
    ------
    InputError
        If a file cannot be written.
    """
    write_of: dict[str, Callable[[Path], object]] = {
        "runs.csv": lambda path: write_csv([asdict(run) for run in runs], path),
        "summary.json": lambda path: write_json(report, path),
        "manifest.json": lambda path: write_json(manifest(options), path),
    }
    over_k, over_records = [r for r in runs if r.records == N], [r for r in runs if r.k == K]
    for kind in formats:
        write_of[f"over_k.{kind}"] = lambda path: _draw(path, over_k, "k")
        write_of[f"over_records.{kind}"] = lambda path: _draw(path, over_records, "records")
    return write_files(out, write_of)


def mean_rows(runs: Sequence[KacaRun]) -> list[Row]:
    """Return the means over the repeats of each case, by k and records."""
    of: dict[tuple[int, int, str], list[KacaRun]] = {}
    for run in runs:
        of.setdefault((run.k, run.records, run.method), []).append(run)
    return [
        {
            "k": k,
            "records": n,
            "method": method,
            **{
                name: float(np.mean([getattr(run, name) for run in some]))
                for name in ("classes", "gcp", "squares", "seconds")
            },
        }
        for (k, n, method), some in of.items()
    ]


def _run(name: str, k: int, n: int, *, repeat: int, seed: int) -> KacaRun:
    table, schema, _ = toll_exits(n, seed=seed + repeat)
    how = HOW[: len(schema.qis)]
    method, n_init = _WAYS[name]
    began = time.process_time()
    class_of = kaca(
        table, schema, Promise(k=k), method=method, how=how, seed=seed + repeat, n_init=n_init
    )
    seconds = time.process_time() - began
    measured = measure(table, schema, class_of)
    return KacaRun(
        method=name,
        k=k,
        records=n,
        repeat=repeat,
        classes=measured.n_classes,
        gcp=measured.gcp[Cost.RANGE],
        squares=sum_of_squares(features(table, schema, how), class_of),
        seconds=seconds,
    )


def _draw(path: Path, runs: Sequence[KacaRun], over: str) -> None:
    """Draw loss, sum of squares and time: the mean over the repeats, and a band over all."""
    panels = (("GCP (range)", "gcp"), ("sum of squares", "squares"), ("CPU time, s", "seconds"))
    fixed = f"{N:,} records" if over == "k" else f"k = {K}"
    with plot(path, width_in=11, height_in=3.8) as figure:
        every = figure.subplots(1, len(panels))
        for axes, (title, name) in zip(every, panels, strict=True):
            for method, colour in _COLOUR.items():
                x = sorted({getattr(run, over) for run in runs if run.method == method})
                found = [
                    np.array([getattr(r, name) for r in runs if _is(r, method, over, at)])
                    for at in x
                ]
                mean = [values.mean() for values in found]
                axes.plot(x, mean, color=colour, marker="o", markersize=4, label=method)
                low, high = [v.min() for v in found], [v.max() for v in found]
                axes.fill_between(x, low, high, color=colour, alpha=0.2, linewidth=0)
            axes.set_title(title)
            axes.set_xlabel(over)
            if name == "seconds" and axes.dataLim.y1 > 0:
                axes.set_yscale("log")
            else:
                axes.set_ylim(0, axes.get_ylim()[1])
            axes.grid(color=LIGHT, linewidth=0.5)
        figure.suptitle(f"Made up: generated toll exits, {fixed}. The source shows no figures.")
        handles, labels = every[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3)


def _is(run: KacaRun, method: str, over: str, at: int) -> bool:
    return run.method == method and getattr(run, over) == at
