"""Charts of an ADKA experiment: k and region size by density, beside one k for all."""

from itertools import cycle
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator, PercentFormatter
from numpy.typing import ArrayLike

from anonymizer.app.plots import BLUE, INK, LIGHT, ORANGE, RED, TEAL, plot
from anonymizer.domain.arrays import FloatArray, Int32Array, IntArray
from experiments.adka_experiment import MAX_REFERENCE, Experiment, Runs

REPRODUCED = "Reproduced: the published rule and growth, with generated users"
OURS = "Not in the source: the published method beside others, with generated users"
_MOST_BARS = 50
_FIXED_COLOURS = (ORANGE, TEAL, RED)


def density_against_k(experiment: Experiment, path: Path) -> None:
    """Draw the rule for k, the runs, and the distribution of densities over all targets."""
    rule, runs, reference = experiment.rule, experiment.runs, experiment.reference
    highest = int(max(runs.density.max(), reference.density.max(), *rule.steps))
    with plot(path, width_in=8, height_in=5.5) as figure:
        above, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
        densities = np.arange(highest + 1, dtype=np.int32)
        ks = np.unique(rule.k_for(densities))
        above.stairs(
            rule.k_for(densities),
            np.arange(highest + 2) - 0.5,
            baseline=None,
            color=INK,
            linewidth=1.2,
            label="rule",
        )
        for k, colour in zip(experiment.fixed, cycle(_FIXED_COLOURS), strict=False):
            above.axhline(k, color=colour, linestyle="--", linewidth=1, label=f"fixed k = {k}")
        _dots(above, runs.density, runs.k, label=f"{len(runs)} runs (number at each point)")
        above.set_title("Density at the target against the k selected for it")
        above.set_ylabel("k")
        above.set_yticks(ks)
        above.set_ylim(0, 1.15 * ks[-1])
        width = _bin_width(reference.density)
        shares, middles = _shares(reference.density, width)
        below.bar(middles, shares, width=0.9 * width, color=LIGHT)
        expected = np.bincount(
            np.arange(len(experiment.expected)) // width, weights=experiment.expected
        )
        at = width * np.arange(len(expected)) + (width - 1) / 2
        drawn = at <= highest
        below.plot(
            at[drawn], expected[drawn], color=INK, linewidth=1, marker=".", label="over all draws"
        )
        below.set_ylabel(f"share of\n{_targets(experiment)}")
        below.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
        below.set_xlabel("density: users at the target and its neighbours")
        below.set_xlim(-0.75, highest + 0.75)
        below.xaxis.set_major_locator(MaxNLocator(integer=True))
        figure.suptitle(REPRODUCED, fontsize=9)
        figure.legend(loc="outside lower center", ncols=3)


def k_against_region_size(experiment: Experiment, path: Path) -> None:
    """Draw the region sizes for each k: runs as dots, all targets as half violins."""
    runs, reference = experiment.runs, experiment.reference
    ks = np.unique(np.concatenate([runs.k, reference.k]))
    with plot(path, width_in=10, height_in=5.5) as figure:
        axes = figure.subplots()
        width = _bin_width(reference.region_size)
        for place, k in enumerate(ks):
            sizes = reference.region_size[(reference.k == k) & reference.cloaked]
            _half_violin(axes, place, sizes, width=width)
            _mean(axes, place, runs.region_size[(runs.k == k) & runs.cloaked])
        for place, fixed in enumerate(experiment.fixed.values(), len(ks)):
            _half_violin(axes, place, fixed.region_size[fixed.cloaked], width=width)
            _mean(axes, place, fixed.region_size[fixed.cloaked])
        labels = [_label(int(k), runs, reference, experiment.targets) for k in ks]
        labels += [_fixed_label(k, fixed) for k, fixed in experiment.fixed.items()]
        axes.axvline(len(ks) - 0.5, color=LIGHT, linewidth=1)
        shown = runs.cloaked
        places = np.searchsorted(ks, runs.k[shown])
        at = places + 0.2
        _dots(axes, at, runs.region_size[shown], label="runs (number at each point)", beside=True)
        axes.plot(
            [], [], color=LIGHT, linewidth=8, label=f"distribution over {_targets(experiment)}"
        )
        axes.plot([], [], color=INK, linewidth=1.5, label="mean (of the runs; of all, fixed k)")
        axes.set_title("k against the size of the region" + _suppressed(runs))
        axes.set_ylabel("nodes in the region")
        axes.yaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_ylim(0, max(axes.get_ylim()[1], 1))
        axes.set_xlim(-0.6, len(labels) - 0.4)
        axes.set_xticks(range(len(labels)), labels)
        figure.suptitle(REPRODUCED, fontsize=9)
        figure.legend(loc="outside lower center", ncols=3)


def adaptive_against_fixed(experiment: Experiment, path: Path) -> None:
    """Draw mean nodes and users of regions by density, with adaptive k and with one k for all."""
    series = [("adaptive k", experiment.reference, BLUE, "-")]
    series += [
        (f"fixed k = {k}", runs, colour, "--")
        for (k, runs), colour in zip(experiment.fixed.items(), cycle(_FIXED_COLOURS), strict=False)
    ]
    with plot(path, width_in=9, height_in=4.2) as figure:
        nodes, users = figure.subplots(1, 2)
        for label, runs, colour, style in series:
            x, mean_nodes, mean_users = _means_by_density(runs)
            wide = 5 if style == "-" else 1.5  # the others lie on it in places
            look = {"color": colour, "linestyle": style, "marker": "o", "markersize": 4}
            told = f"{label}: mean {_mean_of(runs)} nodes"
            nodes.plot(x, mean_nodes, label=told, linewidth=wide, **look)
            users.plot(x, mean_users, linewidth=wide, **look)
        for axes, title in ((nodes, "nodes in the region"), (users, "users in the region")):
            axes.set_title(f"Mean {title}")
            axes.set_xlabel("density: users at the target and its neighbours")
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
            axes.set_ylim(0, max(axes.get_ylim()[1], 1))
            axes.grid(color=LIGHT, linewidth=0.5)
        figure.suptitle(OURS, fontsize=9)
        figure.legend(loc="outside lower center", ncols=2)


def _means_by_density(runs: Runs) -> tuple[IntArray, FloatArray, FloatArray]:
    """Return densities with regions, and mean nodes and users of the regions at each."""
    cloaked = runs.cloaked
    density, of = np.unique(runs.density[cloaked], return_inverse=True)
    n = np.bincount(of)
    mean_nodes, mean_users = (
        np.bincount(of, weights=values[cloaked]) / n
        for values in (runs.region_size, runs.users_in_region)
    )
    return density.astype(np.int64), mean_nodes, mean_users


def _mean_of(runs: Runs) -> str:
    sizes = runs.region_size[runs.cloaked]
    return f"{sizes.mean():.1f}" if len(sizes) else "no"


def _dots(axes: Axes, x: ArrayLike, y: ArrayLike, *, label: str, beside: bool = False) -> None:
    """Draw a dot for each distinct point; its area and number show how often it occurs.

    `beside`: small dots of one size, with the numbers beside them, where points lie close.
    """
    place, count = np.unique(np.stack([x, y], axis=1), axis=0, return_counts=True)
    if not len(place):
        return
    area = np.where(count == 1, 70, 150 + 300 * count / max(count.max(), 8))
    if beside:
        area = np.full(len(count), 30.0)
    axes.scatter(
        place[:, 0], place[:, 1], s=area, color=BLUE, edgecolor="white", zorder=3, label=label
    )
    for at, n in zip(place[count > 1], count[count > 1], strict=True):
        axes.annotate(
            f"{n}", at, (5 if beside else 0, 0), textcoords="offset points",
            ha="left" if beside else "center", va="center_baseline",
            color=INK if beside else "white", fontsize=7, zorder=4,
        )  # fmt: skip


def _half_violin(axes: Axes, place: int, sizes: IntArray, *, width: int) -> None:
    if len(sizes):
        shares, middles = _shares(sizes, width)
        lengths = 0.4 * shares / shares.max()
        axes.barh(middles, -lengths, left=place - 0.02, height=0.9 * width, color=LIGHT)


def _mean(axes: Axes, place: int, sizes: IntArray) -> None:
    if len(sizes):
        axes.hlines(sizes.mean(), place + 0.02, place + 0.38, color=INK, linewidth=1.5)


def _bin_width(values: IntArray | Int32Array) -> int:
    """Return the number of integers in a bar that keeps the number of bars small."""
    return -(-(int(values.max()) + 1) // _MOST_BARS)


def _shares(values: IntArray | Int32Array, width: int) -> tuple[FloatArray, FloatArray]:
    """Return the share of values in each bin of integers, and the centres of the bins."""
    count = np.bincount(values // width)
    middles = width * np.arange(len(count), dtype=np.float64) + (width - 1) / 2
    return count / len(values), middles


def _targets(experiment: Experiment) -> str:
    n = len(experiment.reference)
    return f"{'a sample of' if n == MAX_REFERENCE else 'all'} {n:,} {experiment.targets}"


def _fixed_label(k: int, fixed: Runs) -> str:
    left = f"\nsuppressed: {(~fixed.cloaked).mean():.0%}" if not fixed.cloaked.all() else ""
    return f"fixed k = {k}\nmean {_mean_of(fixed)}{left}"


def _label(k: int, runs: Runs, reference: Runs, targets: str) -> str:
    """Return the label below one k: how often it was selected, and the mean sizes."""
    lines = [f"k = {k}"]
    for name, series in (("runs", runs), (targets, reference)):
        of_k = series.k == k
        sizes = series.region_size[of_k & series.cloaked]
        mean = f", mean {sizes.mean():.1f}" if len(sizes) else ""
        lines.append(f"{name}: {of_k.sum():,}{mean}")
    return "\n".join(lines)


def _suppressed(runs: Runs) -> str:
    reasons = (
        f"{why.replace('_', ' ')} ({n} of {len(runs)} runs)" for why, n in runs.suppressed.items()
    )
    return "\nSuppressed: " + ", ".join(reasons) if runs.suppressed else ""
