"""Results of the experiment on tracking: a table, a summary and a chart."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from matplotlib.axes import Axes

from anonymizer.app.plots import BLUE, INK, LIGHT, RED, plot
from experiments.result_files import Row, write_csv, write_files, write_json
from experiments.tracking_experiment import Point

MOST_TIMES = 2.0
"""The bar of the audit, in multiples of the belief without a release."""
_COLOUR = {"session": BLUE, "snapshot": RED}


def rows_of(points: Sequence[Point]) -> list[Row]:
    """Return one row for each choice and size of the fleet."""
    return [
        {
            "devices": point.n_devices,
            **asdict(point.choice),
            "nodes": point.nodes,
            "belief_strongest": point.strongest,
            **{f"belief_{name}": value for name, value in point.belief.items()},
        }
        for point in points
    ]


def write_results(points: Sequence[Point], report: Row, out: Path) -> list[Path]:
    """Write points.csv, summary.json, tracking.png and tracking.svg; return their paths.

    Raises
    ------
    InputError
        If a file cannot be written.
    """
    return write_files(
        out,
        {
            "points.csv": lambda path: write_csv(rows_of(points), path),
            "summary.json": lambda path: write_json(report, path),
            "tracking.png": lambda path: draw(points, path),
            "tracking.svg": lambda path: draw(points, path),
        },
    )


def draw(points: Sequence[Point], path: Path) -> None:
    """Draw belief against nodes a region, a panel for each size of the fleet."""
    sizes = sorted({point.n_devices for point in points})
    with plot(path, width_in=4.6 * len(sizes), height_in=4.2) as figure:
        panels = figure.subplots(1, len(sizes), squeeze=False)[0]
        for axes, n_devices in zip(panels, sizes, strict=True):
            _panel(axes, [point for point in points if point.n_devices == n_devices])
            axes.set_title(f"{n_devices:,} devices")
        panels[0].set_ylabel("belief within 300 m after 5 minutes")
        panels[0].legend(loc="upper right", fontsize=8)


def _panel(axes: Axes, points: Sequence[Point]) -> None:
    none = sum(point.belief["none"] for point in points) / len(points)
    axes.axhspan(none, MOST_TIMES * none, color=LIGHT, alpha=0.5, linewidth=0)
    axes.axhline(none, color=INK, linewidth=1, label="no release; grey: up to twice that")
    raw = sorted((point.nodes, point.belief["raw"]) for point in points)
    axes.plot(*zip(*raw, strict=True), color=INK, linestyle=":", label="raw, cells of such a size")
    for mode, colour in _COLOUR.items():
        chosen = sorted((point for point in points if point.choice.mode == mode), key=_nodes)
        if not chosen:
            continue
        strongest = [point.strongest for point in chosen]
        axes.plot([point.nodes for point in chosen], strongest, "o-", color=colour, label=mode)
        for point, belief in zip(chosen, strongest, strict=True):
            choice = point.choice
            name = f"{choice.place_devices:g}, {choice.min_nodes}"
            at = point.nodes, belief
            axes.annotate(name, at, (3, 5), textcoords="offset points", fontsize=7, rotation=30)
    axes.set_xscale("log")
    axes.margins(0.15)  # room for the labels
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter("{x:g}")
    axes.set_xlabel("nodes a region")
    axes.set_ylim(bottom=0)


def _nodes(point: Point) -> float:
    return point.nodes
