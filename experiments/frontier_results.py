"""Results of the frontier: a table, a manifest and the picture."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from matplotlib.axes import Axes

from anonymizer.app.plots import BLUE, INK, LIGHT, ORANGE, RED, TEAL, plot
from experiments.frontier_experiment import OWN, PUBLIC, Point
from experiments.result_files import Row, write_drawn

_SIDE = 18
"""Rows of the grid that is drawn."""
_MAGENTA = "#EE3377"


class _Look(NamedTuple):
    """How a kind of points is drawn."""

    colour: str
    marker: str
    label: str
    line: str = "-"


_LOOKS = {
    "session": _Look(BLUE, "o", "session: place_devices"),
    "snapshot": _Look(RED, "s", "snapshot"),
    "adka": _Look(ORANGE, "^", "adka"),
    OWN: _Look("#117733", "P", OWN),
    "safe counts": _Look(TEAL, "D", "safe counts, k = 10"),
    "raw": _Look(INK, "X", "raw, with names"),
    "planar Laplace": _Look(_MAGENTA, "v", "planar Laplace with names: ε = ln 4 at"),
    PUBLIC: _Look("#AA4499", ".", "public scheme", "none"),
    "threshold": _Look("#885522", "+", "counts of cells with at least"),
    "central DP": _Look("#777777", "x", "counts with central DP: ε an hour"),
}
_SHIFTS = [
    (x, y) for far in (1, 2, 3) for x, y in (
        (5 * far, 4 * far), (5 * far, -9 * far), (-5 * far, 4 * far), (-5 * far, -9 * far),
        (0, 7 * far), (0, -13 * far),
    )
]  # fmt: skip
"""Where a label may be, in printer's points from its point."""
_TEXT, _HIGH, _WIDE = 7.5, 8.0, 5.0
"""Size of labels, and height and width of a letter with what must be free around it."""


def rows_of(points: Sequence[Point]) -> list[Row]:
    """Return one row for each way to publish."""
    return [
        {
            "kind": point.kind,
            "setting": point.setting,
            **{f"belief_{minute}min": belief for minute, belief in point.belief.items()},
            **{f"belief_none_{minute}min": belief for minute, belief in point.none.items()},
            "published": point.published,
            "linked": point.linked,
            **{f"density_{side}x{side}": error for side, error in point.density.items()},
            **{f"query_{side}x{side}": error for side, error in point.query.items()},
        }
        for point in points
    ]


def draw(points: Sequence[Point], path: Path) -> None:
    """Draw belief and linking against the errors of density and queries on the finer grid."""
    minute = max(points[0].belief, default=None)
    with plot(path, width_in=11.0, height_in=9.0) as figure:
        panels = figure.subplots(2, 2, sharex="col", sharey="row")
        shown = [
            (axes, _panel(axes, points, error=error, minute=minute if row == 0 else None))
            for column, error in enumerate(_ERRORS)
            for row, axes in enumerate(panels[:, column])
        ]
        for axes, label in zip(panels[1], _ERRORS.values(), strict=True):
            axes.set_xlabel(label)
        if minute is not None:
            panels[0][0].set_ylabel(f"tracking: belief within 300 m after {minute} minutes")
        panels[1][0].set_ylabel("linking: names found by four known positions")
        handles, labels = panels[0][0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=3, fontsize=9)
        figure.draw_without_rendering()  # now it is known where points are
        for axes, marks in shown:
            _label(axes, marks)


_ERRORS = {
    "density": f"density error on {_SIDE}x{_SIDE} cells (good is left)",
    "query": f"query error on {_SIDE}x{_SIDE} cells (good is left)",
}
_LEAST = 0.01
"""Smallest error that is drawn on a logarithmic axis; raw positions have none."""


class _Mark(NamedTuple):
    x: float
    y: float
    text: str
    colour: str


def _panel(axes: Axes, points: Sequence[Point], *, error: str, minute: int | None) -> list[_Mark]:
    """Draw the points; return them with what is to be written beside them."""
    marks = []
    if minute is not None:
        none = max(point.none[minute] for point in points)
        axes.axhspan(0.0, none, color=LIGHT, alpha=0.6, lw=0)
        axes.annotate(
            "grey: without any publication", (0.02, 0.0), (0, 4), ha="left",
            xycoords=("axes fraction", "data"), textcoords="offset points", fontsize=8, color=INK,
        )  # fmt: skip
    for kind, look in _LOOKS.items():
        found = [
            _Mark(max(getattr(point, error)[_SIDE], _LEAST), height, point.setting, look.colour)
            for point in points
            if point.kind == kind
            and (height := point.linked if minute is None else point.belief[minute]) is not None
        ]
        x, y = [mark.x for mark in found], [mark.y for mark in found]
        axes.plot(
            x, y, look.marker, ls=look.line, lw=0.8, ms=6, color=look.colour, label=look.label
        )
        marks += found
    axes.set_xscale("log")
    axes.set_xlim(left=_LEAST * 0.8)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_ylim(bottom=0)
    return marks


def _label(axes: Axes, marks: Sequence[_Mark]) -> None:
    """Write beside each point, at the first place where nothing else is."""
    to_points = 72.0 / axes.figure.dpi
    at = [
        (float(x) * to_points, float(y) * to_points)
        for x, y in (axes.transData.transform((mark.x, mark.y)) for mark in marks)
    ]
    taken = [(x - 4, y - 4, x + 4, y + 4) for x, y in at]
    bottom = axes.bbox.y0 * to_points
    for mark, (x, y) in zip(marks, at, strict=True):
        if not mark.text:
            continue
        wide = _WIDE * len(mark.text)
        boxes = []
        for dx, dy in _SHIFTS:
            left = x + dx - (wide if dx < 0 else wide / 2 if dx == 0 else 0)
            boxes.append((left, y + dy, left + wide, y + dy + _HIGH))
        inside = [box for box in boxes if box[1] > bottom]
        free = [box for box in inside if not any(_overlap(box, other) for other in taken)]
        box = (free or boxes)[0]
        taken.append((box[0] - 1, box[1], box[2] + 1, box[3]))
        axes.annotate(
            mark.text, (mark.x, mark.y), (box[0] - x, box[1] - y), textcoords="offset points",
            fontsize=_TEXT, color=mark.colour,
        )  # fmt: skip


def _overlap(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


write_results = partial(write_drawn, ("frontier", "points.csv"), rows_of=rows_of, draw=draw)
"""Writes points.csv, manifest.json and the picture, see `write_drawn`."""
