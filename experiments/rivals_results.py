"""Results of the rivals: a table, a manifest and the picture."""

from collections.abc import Sequence
from dataclasses import fields
from functools import partial
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from scipy.stats import t as student

from anonymizer.app.plots import BLUE, INK, ORANGE, RED, TEAL, plot
from experiments.result_files import Row, write_drawn
from experiments.rivals_experiment import Compared
from experiments.stream_errors import StreamErrors

MEASURES = tuple(field.name for field in fields(StreamErrors))
_LOOKS = {
    "ours": (BLUE, "o", "the gateway"),
    "w-event counts": (TEAL, "s", "w-event counts, trusted server"),
    "local synthesis": (RED, "^", "made up from local reports"),
    "geo-indistinguishable": (ORANGE, "v", "geo-indistinguishable, with names"),
    "clusters": (INK, "D", "k-anonymous clusters, no names"),
}
_PANELS = (("density", "query"), ("transition", "trip"))
_LEAST = 2e-4
"""Smallest error that is drawn on a logarithmic axis."""


def interval(values: Sequence[float | None]) -> tuple[float, float] | None:
    """Return the mean of some runs, and half the width of its 95 % interval; None of none."""
    known = np.array([each for each in values if each is not None], np.float64)
    if not len(known):
        return None
    if len(known) == 1:
        return float(known[0]), float("nan")
    half = student.ppf(0.975, len(known) - 1) * known.std(ddof=1) / np.sqrt(len(known))
    return float(known.mean()), float(half)


def rows_of(found: Sequence[Compared]) -> list[Row]:
    """Return one row for each way to publish: means, and half widths of their intervals."""
    rows: list[Row] = []
    for each in found:
        row: Row = {
            "method": each.method.name,
            "family": each.method.family,
            "promise": each.method.promise,
            "runs": len(each.errors),
        }
        for name in MEASURES:
            read = interval([getattr(errors, name) for errors in each.errors])
            row[name], row[f"{name}_95"] = (None, None) if read is None else read
        rows.append(row)
    return rows


def draw(found: Sequence[Compared], path: Path) -> None:
    """Draw the errors of densities against those of queries, and of moves against those of trips.

    Ways to publish are numbered as in the legend; bars are intervals of 95 %.
    """
    with plot(path, width_in=12.0, height_in=8.0) as figure:
        panels = figure.subplots(1, 2)
        for axes, (across, up) in zip(panels, _PANELS, strict=True):
            _panel(axes, found, across, up)
        families, labels = panels[0].get_legend_handles_labels()
        figure.legend(families, labels, loc="outside upper center", ncols=5, fontsize=9)
        n_rows = -(-len(found) // 5)
        text = [f"{n}  {each.method.name}" for n, each in enumerate(found, 1)]
        handles = [panels[0].plot([], [], " ")[0] for _ in text]
        figure.legend(
            handles, text, loc="outside lower center", ncols=-(-len(text) // n_rows), fontsize=8,
            handlelength=0, handletextpad=0,
        )  # fmt: skip


def _panel(axes: Axes, found: Sequence[Compared], across: str, up: str) -> None:
    """Draw one error against another; a way to publish that has neither is left out."""
    labelled: set[str] = set()
    for number, each in enumerate(found, 1):
        x, y = (
            interval([getattr(errors, name) for errors in each.errors]) for name in (across, up)
        )
        if x is None or y is None:
            continue
        colour, marker, label = _LOOKS[each.method.family]
        at = max(x[0], _LEAST), max(y[0], _LEAST)
        half_x, half_y = np.nan_to_num([x[1], y[1]])
        axes.errorbar(
            *at, xerr=half_x, yerr=half_y, fmt=marker, ms=5, lw=0.7, color=colour,
            label=None if each.method.family in labelled else label,
        )  # fmt: skip
        labelled.add(each.method.family)
        axes.annotate(str(number), at, (4, 4), textcoords="offset points", fontsize=8, color=colour)
    axes.set_xscale("log")
    axes.set_yscale("log")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter("{x:g}")
    axes.set_xlabel(f"{across} error (good is left)")
    axes.set_ylabel(f"{up} error (good is below)")


write_results = partial(write_drawn, ("rivals", "rivals.csv"), rows_of=rows_of, draw=draw)
"""Writes rivals.csv, manifest.json and the picture, see `write_drawn`."""
