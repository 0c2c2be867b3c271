"""Charts of a multi-source experiment: utility over each parameter, leaks, and times.

A line is the mean over the repeats, and the band around it goes from the least to the greatest.
Ranges that the paper's text gives for Adult are drawn as such; its curves are not printed as
numbers. Each picture says whether its table is the paper's or made up.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from anonymizer.algorithms.records.problem import Cost
from anonymizer.app.plots import BLUE, INK, LIGHT, ORANGE, RED, TEAL, plot
from experiments.compared_methods import Method
from experiments.multisource_experiment import Multisource, Run, varied
from experiments.multisource_tables import Reading
from experiments.printed_figures import ADULT, K_OF, RANGES, D, L

_FAR_APART = 30
"""Values that differ by less are drawn from 0: a logarithmic axis would make much of little."""
_MOST_PLAIN = 1e4
"""Larger numbers are powers of ten on a logarithmic axis."""

Value: TypeAlias = Callable[[Run], float]
Look: TypeAlias = Mapping[str, Any]

_LOOK: dict[Method, dict[str, Any]] = {
    Method.HILBERT: {"color": BLUE, "marker": "o", "markersize": 9},
    Method.PRINTED: {"color": TEAL, "marker": "^", "markersize": 6},
    Method.BEST: {"color": ORANGE, "marker": "s", "markersize": 4},
    Method.MONDRIAN: {"color": RED, "marker": "D", "markersize": 6.5},
}
"""Markers are hollow and of different sizes, so that equal points do not hide each other."""
_GCP: tuple[str, Value] = ("GCP (range)", lambda run: run.measures.gcp[Cost.RANGE])
_DM: tuple[str, Value] = ("DM", lambda run: run.measures.dm)
_CM: tuple[str, Value] = ("CM (misclassified)", lambda run: run.misclassified or 0.0)
_CLASSES: tuple[str, Value] = ("classes", lambda run: run.measures.n_classes)
_MS: tuple[str, Value] = ("CPU time, ms", lambda run: 1e3 * run.seconds)
_MODELS = ((1, "(k,d)-anonymity"), (L, f"(k,l,d)-diversity, l = {L}"))


def draw_over_k(experiment: Multisource, path: Path, *, shape: str = ADULT) -> None:
    """Draw GCP, DM, CM and classes over k, for both models."""
    _draw(experiment, path, "k", (_GCP, _DM, _CM, _CLASSES), shape=shape)


def draw_over_d(experiment: Multisource, path: Path, *, shape: str = ADULT) -> None:
    """Draw the same over d, with what the paper's text gives."""
    _draw(experiment, path, "d", (_GCP, _DM, _CM, _CLASSES), shape=shape)


def draw_over_l(experiment: Multisource, path: Path, *, shape: str = ADULT) -> None:
    """Draw the same over l, for (k,l,d)-diversity."""
    every = (_GCP, _DM, _CM, _CLASSES)
    with plot(path, width_in=3.4 * len(every), height_in=4) as figure:
        panels = figure.subplots(1, len(every))
        for axes, panel in zip(panels, every, strict=True):
            for method in (Method.HILBERT, Method.PRINTED, Method.BEST):
                runs = [r for r in _of(experiment, shape, method) if r.trial.l > 1]
                at = varied(runs, "l", k=K_OF[shape])
                _line(axes, method, _LOOK[method], at, panel[1])
            _finish(axes, panel[0], "l", log=panel is _DM)
        title = f"(k,l,d)-diversity over l, k = {K_OF[shape]}, d = 2"
        _close(figure, _title(experiment, shape, title), panels[0])


def draw_over_qis(experiment: Multisource, path: Path, *, shape: str = ADULT) -> None:
    """Draw GCP, DM, CM and time over the number of quasi-identifiers, for both models."""
    _draw(experiment, path, "n_qis", (_GCP, _DM, _CM, _MS), shape=shape)


def draw_over_records(experiment: Multisource, path: Path, *, shape: str = ADULT) -> None:
    """Draw the same over the number of records."""
    _draw(experiment, path, "share", (_GCP, _DM, _CM, _MS), shape=shape)


def draw_readings(experiment: Multisource, path: Path) -> None:
    """Draw what it costs not to count missing values as values."""
    with plot(path, width_in=7.5, height_in=3.8) as figure:
        panels = figure.subplots(1, 2)
        for axes, panel in zip(panels, (_GCP, _CLASSES), strict=True):
            for method, reading in product((Method.HILBERT, Method.BEST), Reading):
                look = _LOOK[method] | {"linestyle": "-" if reading is Reading.PAPER else ":"}
                at = varied(_of(experiment, ADULT, method), "d", reading=reading, k=K_OF[ADULT])
                _line(axes, f"{method}, {reading}", look, at, panel[1])
            _finish(axes, panel[0], "d")
        title = _title(experiment, ADULT, "missing values, as published and not counted")
        _close(figure, title, panels[0], columns=2)


def draw_leaks(experiment: Multisource, path: Path) -> None:
    """Draw the number of people about whom each source reveals a value of the other one."""
    with plot(path, width_in=9, height_in=4) as figure:
        panels = figure.subplots(1, 2, sharey=True)
        for known, axes in enumerate(panels):
            for d, style in ((1, "--"), (D, "-")):
                for method in (Method.HILBERT, Method.BEST, Method.MONDRIAN):
                    runs = [r for r in _of(experiment, ADULT, method) if not r.repeat]
                    label = f"{method}, {'k alone' if d == 1 else f'd = {d}'}"
                    look = _LOOK[method] | {"linestyle": style}
                    _line(axes, label, look, varied(runs, "k", d=d), _people(known))
            axes.set_title(f"Source {known + 1} reveals source {2 - known}")
        for axes in panels:  # they share an axis, so all lines must be there
            _finish(axes, None, "k")
        panels[0].set_ylabel("people about whom a value is learned")
        _close(figure, _title(experiment, ADULT, "leaks over k"), panels[0])


def _people(known: int) -> Value:
    return lambda run: sum(leak.n_people for leak in run.leaks if leak.known == known)


def _of(experiment: Multisource, shape: str, method: Method) -> list[Run]:
    return [
        run for run in experiment.runs if run.trial.shape == shape and run.trial.method is method
    ]


def _draw(
    experiment: Multisource,
    path: Path,
    over: str,
    values: Sequence[tuple[str, Value]],
    *,
    shape: str = ADULT,
) -> None:
    """Draw a row of panels for each model, and a line for each method in each."""
    study = experiment.studies[shape]
    kept = {name: value for name, value in (("k", K_OF[shape]), ("d", D)) if name != over}
    name = {"n_qis": "quasi-identifiers", "share": "records"}.get(over, over)
    title = ", ".join(f"{name} = {value}" for name, value in kept.items())
    with plot(path, width_in=3.4 * len(values), height_in=6.8) as figure:
        rows = figure.subplots(2, len(values), squeeze=False, sharex=True)
        for (l, model), row in zip(_MODELS, rows, strict=True):  # noqa: E741
            for axes, (label, value) in zip(row, values, strict=True):
                for method in Method:
                    if value is _MS[1] and method is Method.BEST:
                        continue  # its time is its budget
                    at = varied(_of(experiment, shape, method), over, **kept, l=l)
                    if over == "share":
                        at = [(round(share * study.n), runs) for share, runs in at]
                    _line(axes, method, _LOOK[method], at, value)
                if study.is_adult and over == "d" and value is _GCP[1]:
                    _stated(axes, l)
                _finish(axes, label, name, log=value in {_DM[1], _MS[1]})
            row[0].set_ylabel(model)
        _close(figure, _title(experiment, shape, title), *rows[:, 0])


def _title(experiment: Multisource, shape: str, what: str) -> str:
    """Return a title that says whose table it is, and of how many steps."""
    study = experiment.studies[shape]
    origin = f"{study.n:,} records, not a table of the paper"
    if study.is_made:
        origin = f"made up: {study.n:,} generated records, no table of the paper"
    elif study.is_adult or study.is_census:
        origin = "reproduced: our programs on the table of the paper"
    so_far = "" if experiment.done >= 1 else f" (so far: {experiment.done:.0%} of the steps)"
    return f"{study.name}: {what}{so_far}\n{origin}"


def _stated(axes: Axes, l: int) -> None:  # noqa: E741  the field's name for it
    """Draw the ranges that the paper's text gives."""
    for stated in RANGES:
        if stated.l == l:
            middle, half = (stated.low + stated.high) / 2, (stated.high - stated.low) / 2
            axes.errorbar(
                stated.d, middle, half, fmt="_", color=INK, capsize=6, markersize=14,
                label="stated in the paper's text",
            )  # fmt: skip


def _line(
    axes: Axes,
    label: str,
    look: Look,
    at: Sequence[tuple[float, list[Run]]],
    value: Value,
) -> None:
    """Draw the mean of the repeats at each place, and a band over all of them."""
    if not at:
        return
    x = [where for where, _ in at]
    found = [np.array([value(run) for run in runs], np.float64) for _, runs in at]
    mean = [f.mean() for f in found]
    axes.plot(x, mean, label=label, markerfacecolor="none", clip_on=False, **look)
    low, high = [f.min() for f in found], [f.max() for f in found]
    axes.fill_between(x, low, high, color=look["color"], alpha=0.2, linewidth=0)


def _finish(axes: Axes, title: str | None, over: str, *, log: bool = False) -> None:
    if title is not None:
        axes.set_title(title)
    axes.set_xlabel(over)
    long = over == "records"
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=3 if long else 5))
    if long:
        axes.xaxis.set_major_formatter("{x:,.0f}")
    low, high = axes.dataLim.intervaly
    if log and 0 < _FAR_APART * low < high:
        axes.set_yscale("log")
        if high < _MOST_PLAIN:
            axes.yaxis.set_major_formatter("{x:g}")
            axes.yaxis.set_minor_formatter("")
    else:
        axes.set_ylim(0, max(axes.get_ylim()[1], 1e-9))
    axes.grid(color=LIGHT, linewidth=0.5)


def _close(figure: Figure, title: str | None, *labelled: Axes, columns: int = 4) -> None:
    """Add the title, and one legend for all panels."""
    if title is not None:
        figure.suptitle(title, color=INK)
    of: dict[str, Artist] = {}
    for axes in labelled:
        handles, labels = axes.get_legend_handles_labels()
        of |= dict(zip(labels, handles, strict=True))
    figure.legend(list(of.values()), list(of), loc="outside lower center", ncols=columns)
