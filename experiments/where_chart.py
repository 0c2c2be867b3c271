"""Frontier of freshness as a picture: age, nodes and belief by fleet size, a line each setting.

It reads the figures that `where_experiment --csv` kept, of any number of runs:

```text
python -m experiments.where_experiment --csv four.csv
python -m experiments.where_experiment --set region.place_devices=3 --csv three.csv
python -m experiments.where_chart four.csv three.csv --out docs/images/fresh.svg
```

Fleets that are spread evenly over the network of 10,000 nodes are joined by a line; every other one
is a mark of its own, with its name. Belief is that of the stronger adversary, with or without
hindsight, in multiples of that without a release: the mean, and that of the most exposed tenth.
"""

import argparse
import csv
from collections.abc import Iterator, Sequence
from itertools import cycle
from pathlib import Path
from typing import NamedTuple

from matplotlib.axes import Axes

from anonymizer.app.plots import BLUE, INK, ORANGE, RED, TEAL, plot
from anonymizer.audit.attacks.tracking import MOST_TIMES_NONE

DEFAULT = "default"
_COLOURS = (BLUE, ORANGE, TEAL, RED)


class Mark(NamedTuple):
    """What one setting costs and reveals for one fleet.

    Attributes
    ----------
    n_devices, name
        Size of the fleet, and its name if it is not spread evenly over `city:10000`.
    belief, tenth
        Of the stronger adversary, in multiples of those without a release.
    """

    settings: str
    n_devices: int
    name: str
    age_s: float
    nodes: float
    belief: float
    tenth: float


PANELS = {
    "age_s": "age of what is known, s",
    "nodes": "nodes in a region",
    "belief": "belief, times no release: mean",
    "tenth": "the same: most exposed tenth",
}


def read_marks(files: Sequence[Path]) -> list[Mark]:
    """Return the marks of files that `where_experiment --csv` wrote, in their order."""
    return [mark for file in files for mark in _marks(file)]


def _marks(file: Path) -> Iterator[Mark]:
    with file.open(newline="", encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            kind, *numbers = row["fleet"].split(":")
            if kind == "taxis":  # of so many that nobody has counted them
                continue
            evenly = kind == "even" and len(numbers) == 1
            yield Mark(
                row["settings"] or DEFAULT,
                int(numbers[0]),
                "" if evenly else row["fleet"],
                float(row["age_s"]),
                float(row["nodes"]),
                *(
                    max(float(row[name] or 0.0) for name in (f"followed{part}", f"hindsight{part}"))
                    for part in ("", "_tenth")
                ),
            )


def draw(marks: Sequence[Mark], path: Path) -> None:
    """Draw a panel for each of `PANELS`, by the size of the fleet."""
    with plot(path, width_in=11.0, height_in=7.5) as figure:
        panels = figure.subplots(2, 2, sharex=True)
        for axes, (what, label) in zip(panels.flat, PANELS.items(), strict=True):
            _panel(axes, marks, what)
            axes.set_title(label, fontsize=10)
        for axes in panels[1]:
            axes.axhline(MOST_TIMES_NONE, color=INK, ls="--", lw=1)
            axes.set_ylim(bottom=0)
            axes.set_xlabel("devices on 10,000 nodes")
        handles, labels = panels[0][0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=4, fontsize=9)


def _panel(axes: Axes, marks: Sequence[Mark], what: str) -> None:
    axes.set_xscale("log")
    if what in {"age_s", "nodes"}:
        axes.set_yscale("log")
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.yaxis.set_major_formatter("{x:g}")
    for settings, colour in zip(dict.fromkeys(m.settings for m in marks), cycle(_COLOURS)):
        of = [mark for mark in marks if mark.settings == settings]
        line = sorted((mark.n_devices, getattr(mark, what)) for mark in of if not mark.name)
        axes.plot(*zip(*line, strict=True), "o-", lw=1.2, ms=5, color=colour, label=settings)
        for mark in of:
            if mark.name:
                at = (mark.n_devices, getattr(mark, what))
                axes.plot(*at, "D", ms=5, mfc="none", color=colour)
                axes.annotate(mark.name, at, (5, 3), textcoords="offset points", fontsize=7)


def main(arguments: Sequence[str] | None = None) -> None:
    """Draw the picture."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("csv", nargs="+", type=Path, help="figures of where_experiment --csv")
    parser.add_argument("--out", type=Path, required=True, help=".svg, .png or .pdf")
    options = parser.parse_args(arguments)
    draw(read_marks(options.csv), options.out)


if __name__ == "__main__":
    main()
