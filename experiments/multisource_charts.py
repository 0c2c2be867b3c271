"""Charts of a multi-source experiment: utility over k, d and l, leaks, and times.

The figures of the paper [1]_ for comparison are at the top. Its tables were not available when this
was written, only these figures; all others are unknown and stay empty in the results.

References
----------
.. [1] "Efficient Multi-Source Anonymity for Aggregated Internet of Vehicles Datasets", Applied
   Sciences 14(8), 3230, 2024.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TypeAlias

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from anonymizer.algorithms.records.problem import Cost
from anonymizer.app.plots import BLUE, INK, LIGHT, RED, png
from experiments.multisource_experiment import (
    ADULT_ROWS,
    CENSUS_ROWS,
    D,
    K,
    Method,
    Multisource,
    Reading,
    Run,
    Trial,
    varied,
)

ON_ADULT = {
    Trial(Reading.PAPER, Method.HILBERT, K, d): figures
    for d, figures in {
        1: {"gcp_range": 0.12},
        2: {"classes": 389, "gcp_range": 0.289, "gcp_set": 0.242, "gcp_taxonomy": 0.541},
        3: {"gcp_range": 0.41},
        4: {"gcp_range": 0.50},
        5: {"gcp_range": 0.58},
    }.items()
}
"""Figures of the paper's algorithm on Adult, by their names in the results."""
SECONDS = {ADULT_ROWS: 0.3, CENSUS_ROWS: 61.9}
"""Times stated for Adult and the Census of 1990, by number of records; on another machine."""
NAMES = ("classes", "gcp_range", "gcp_set", "gcp_taxonomy")
NOTE = (
    "paper: figures of the paper's algorithm on Adult, and its times on Adult and the Census of "
    "1990, where known; otherwise empty."
)


_Series: TypeAlias = tuple[str, list[Run], dict[str, str]]
"""Label, runs and style of a line."""

_PANELS: Sequence[tuple[str, str, Callable[[Run], float]]] = (
    ("equivalence classes", "classes", lambda run: run.measures.n_classes),
    ("GCP (range)", "gcp_range", lambda run: run.measures.gcp[Cost.RANGE]),
    ("DM", "dm", lambda run: run.measures.dm),
)
"""Title, name in the results, and value of a panel."""
_COLOUR = {Method.HILBERT: BLUE, Method.MONDRIAN: RED}


def draw_over_k(experiment: Multisource, path: Path) -> None:
    """Draw the cost of k, with k alone and with d values."""
    _draw(path, "k", "What k costs", _by_k(experiment))


def draw_over_d(experiment: Multisource, path: Path) -> None:
    """Draw the cost of d, for both readings of the missing marker, and the paper's figures."""
    series: list[_Series] = [
        (
            f"{method.value}, {reading.value}",
            varied(experiment.runs, reading=reading, method=method, k=K, l=1),
            {"color": _COLOUR[method], "linestyle": "-" if reading is Reading.PAPER else ":"},
        )
        for reading in Reading
        for method in Method
    ]
    known = ON_ADULT if experiment.study.adult else {}
    _draw(path, "d", f"What d costs, k = {K}", series, paper=known)


def draw_over_l(experiment: Multisource, path: Path) -> None:
    """Draw the cost of l."""
    runs = varied(experiment.runs, reading=Reading.PAPER, method=Method.HILBERT, k=K, d=D)
    series: list[_Series] = [("hilbert", runs, {"color": BLUE})]
    _draw(path, "l", f"What l costs, k = {K}, d = {D}", series)


def draw_leaks(experiment: Multisource, path: Path) -> None:
    """Draw the number of people about whom each source reveals a value of the other one."""
    with png(path, width_in=9, height_in=4) as figure:
        panels = figure.subplots(1, 2, sharey=True)
        for known, axes in enumerate(panels):
            for label, runs, look in _by_k(experiment):
                people = [
                    sum(leak.n_people for leak in run.leaks if leak.known == known) for run in runs
                ]
                axes.plot([run.trial.k for run in runs], people, marker="o", label=label, **look)
            axes.set_title(f"Source {known + 1} reveals values of source {2 - known}")
            axes.set_xlabel("k")
            _from_zero(axes)
        panels[0].set_ylabel("people about whom a value is learned")
        _legend(figure, panels[0])


def draw_times(experiment: Multisource, path: Path) -> None:
    """Draw the time to form classes, over k and over the records of a large table."""
    with png(path, width_in=9, height_in=4) as figure:
        over_k, over_n = figure.subplots(1, 2)
        for label, runs, look in _by_k(experiment):
            times = [1e3 * run.seconds for run in runs]
            over_k.plot([run.trial.k for run in runs], times, marker="o", label=label, **look)
        over_k.set_title(f"{experiment.study.n:,} records")
        over_k.set_xlabel("k")
        over_k.set_ylabel("ms")
        over_k.set_yscale("log")
        for l, style in ((1, "-"), (2, ":")):  # noqa: E741  the field's name for it
            timings = [t for t in experiment.timings if t.l == l]
            times = [1e3 * t.seconds for t in timings]
            label = f"hilbert, d = {D}, l = {l}"
            over_n.plot([t.n for t in timings], times, "o", ls=style, color=INK, label=label)
        over_n.set_title(f"A generated table, k = {K}")
        over_n.set_xlabel("records")
        over_n.set_ylabel("ms")
        _from_zero(over_n)
        _legend(figure, over_k, over_n)


def _by_k(experiment: Multisource) -> list[_Series]:
    """Return the runs over k of each method, with k alone and with d values."""
    return [
        (
            f"{method.value}, {'k alone' if d == 1 else f'd = {d}'}",
            varied(experiment.runs, reading=Reading.PAPER, method=method, d=d, l=1),
            {"color": _COLOUR[method], "linestyle": "--" if d == 1 else "-"},
        )
        for method in Method
        for d in (1, D)
    ]


def _draw(
    path: Path,
    over: str,
    title: str,
    series: Sequence[_Series],
    *,
    paper: Mapping[Trial, Mapping[str, float]] = MappingProxyType({}),
) -> None:
    """Draw three panels with a line for each series that has runs, and the paper's figures."""
    with png(path, width_in=11, height_in=4) as figure:
        panels = figure.subplots(1, len(_PANELS))
        for axes, (name, key, value) in zip(panels, _PANELS, strict=True):
            for label, runs, look in series:
                if runs:
                    x = [getattr(run.trial, over) for run in runs]
                    axes.plot(x, [value(run) for run in runs], marker="o", label=label, **look)
            known = [(getattr(t, over), of[key]) for t, of in paper.items() if key in of]
            if known:
                at = np.array(known)
                axes.plot(
                    at[:, 0], at[:, 1], "x", color=INK, markersize=10, label="the paper's", zorder=4
                )
            axes.set_title(name)
            axes.set_xlabel(over)
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
            _from_zero(axes)
        figure.suptitle(title, color=INK)
        _legend(figure, panels[0])


def _from_zero(axes: Axes) -> None:
    axes.set_ylim(0, max(axes.get_ylim()[1], 1e-9))
    axes.grid(color=LIGHT, linewidth=0.5)


def _legend(figure: Figure, *axes: Axes) -> None:
    handles, labels = [], []
    for each in axes:
        these, names = each.get_legend_handles_labels()
        handles += these
        labels += names
    figure.legend(handles, labels, loc="outside lower center", ncols=4)
