"""`python -m benchmarks.growth_of_tables OUT.svg`: CPU, memory and loss as one table grows.

One made table of eleven quasi-identifiers and a sensitive attribute, in more and more rows; each
model in a process of its own, with its defaults and k = 10. CPU of the release (coding, classes,
verification, labels) and of its report (measures and attacks, and the text of the release),
without compiling.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

import anonymizer
from anonymizer.app.plots import BLUE, ORANGE, RED, TEAL, plot
from benchmarks.made_people import made
from benchmarks.tables import Cell, Table, as_markdown, as_rich

MODELS: Mapping[str, Mapping[str, Any]] = {
    "kd": {"d": 2},
    "kld": {"d": 2, "l": 2},
    "kaca": {},
    "cells": {"target": "illness"},
}
_WARM = 12_000
"""Rows of the release that compiles: from 10,000 on a search waits for its kernels."""
_MB = 1024


def one(model: str, n: int) -> dict[str, float]:
    """Return the figures of one release, made in this process."""
    rows = made(n)
    columns = [name for name in rows.columns if name != "illness"]
    options: dict[str, Any] = {"qi": columns, "sa": "illness", "k": 10, "model": model}

    options |= MODELS[model]
    compiles = anonymizer.anonymize(made(_WARM), **options, time_budget_s=0.5)
    assert compiles.report.k  # noqa: S101  the report is made when it is asked for
    began = time.process_time()
    found = anonymizer.anonymize(rows, **options)
    released = time.process_time()
    report = found.report
    assert len(found.frame) == report.n_published  # noqa: S101  its text is made when asked for
    return {
        "release": released - began,
        "report": time.process_time() - released,
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / _MB,
        "gcp": report.gcp.range,
        "least": report.least_gcp or 0.0,
        "suppressed": (report.n - report.n_published) / report.n,
    }


def draw(found: Mapping[str, Mapping[int, Mapping[str, float]]], path: Path) -> None:
    """Draw CPU, memory, loss and growth of each model by the number of rows."""
    with plot(path, width_in=11, height_in=3.2) as figure:
        axes = figure.subplots(1, 4)
        for (model, by_n), colour in zip(found.items(), (BLUE, TEAL, ORANGE, RED), strict=False):
            style = {"color": colour, "marker": "o", "markersize": 4, "label": model}
            sizes = sorted(by_n)
            cpu = _cpu(by_n)
            axes[0].loglog(sizes, [cpu[n] for n in sizes], **style)
            axes[1].loglog(sizes, [by_n[n]["memory"] for n in sizes], **style)
            axes[2].semilogx(sizes, [by_n[n]["gcp"] for n in sizes], **style)
            axes[3].semilogx(sizes[1:], list(_tenfold(by_n).values()), **style)
        titles = ("CPU, s", "memory, MB", "information loss (GCP)", "CPU for ten times the rows")
        for axis, title in zip(axes, titles, strict=True):
            axis.set(title=title, xlabel="rows")
            axis.title.set_fontsize(9)
            axis.set_ylim(bottom=None if axis.get_yscale() == "log" else 0)
        axes[0].legend()


def _cpu(by_n: Mapping[int, Mapping[str, float]]) -> dict[int, float]:
    return {n: each["release"] + each["report"] for n, each in by_n.items()}


def _tenfold(by_n: Mapping[int, Mapping[str, float]]) -> dict[int, float]:
    """Return by which factor CPU grows from the size before, were that a tenth of the rows."""
    cpu = _cpu(by_n)
    steps = pairwise(sorted(by_n))
    return {n: float((cpu[n] / cpu[before]) ** (1 / np.log10(n / before))) for before, n in steps}


def _rows(model: str, by_n: Mapping[int, Mapping[str, float]]) -> list[tuple[Cell, ...]]:
    sizes, cpu, growth = sorted(by_n), _cpu(by_n), _tenfold(by_n)
    return [
        (model, n, *(by_n[n][name] for name in _FIGURES), cpu[n], growth.get(n, "")) for n in sizes
    ]


_FIGURES = ("release", "report", "memory", "gcp", "least", "suppressed")
_COLUMNS = ("model", "rows", "release, s", "report, s", "MB", "GCP", "least possible", "suppressed",
            "CPU, s", "for ten times the rows")  # fmt: skip


def main(arguments: Sequence[str]) -> None:
    """Run all sizes of all models, draw them, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.growth_of_tables")
    parser.add_argument("out", type=Path, nargs="?", help="the picture")
    parser.add_argument("-n", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=list(MODELS))
    parser.add_argument("--one", nargs=2, metavar=("MODEL", "ROWS"), help=argparse.SUPPRESS)
    parser.add_argument("--markdown", type=Path, metavar="FILE")
    parser.add_argument(
        "--found", type=Path, metavar="FILE", help="keep what is found there, and measure the rest"
    )
    asked = parser.parse_args(arguments)
    if asked.one:
        print(json.dumps(one(asked.one[0], int(asked.one[1]))))
        return
    console = Console(width=140)
    found: dict[str, dict[int, dict[str, float]]] = {model: {} for model in asked.models}
    if asked.found and asked.found.exists():
        kept = json.loads(asked.found.read_text(encoding="utf-8"))
        found |= {model: {int(n): kept[model][n] for n in kept[model]} for model in kept}
    for n in sorted(asked.n):
        for model in asked.models:
            if n in found[model]:
                continue
            command = [sys.executable, "-m", "benchmarks.growth_of_tables", "--one", model, str(n)]
            done = subprocess.run(  # noqa: S603  this file
                command, check=True, stdout=subprocess.PIPE, text=True
            )
            found[model][n] = json.loads(done.stdout.splitlines()[-1])
            console.print(model, n, found[model][n])
            if asked.found:
                asked.found.write_text(json.dumps(found), encoding="utf-8")
    rows = [row for model, by_n in found.items() for row in _rows(model, by_n)]
    table = Table("One table as it grows", _COLUMNS, rows, tuple((__doc__ or "").splitlines()[2:]))
    console.print(as_rich(table))
    if asked.out:
        draw(found, asked.out)
    if asked.markdown:
        asked.markdown.write_text(as_markdown(table), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
