"""Frontier of freshness as a picture: age, nodes and belief by fleet size, a line each setting.

It is drawn from the table *Tracking, fleet by fleet* of `notes/attacks.md`, and from figures that
`where_experiment --csv` kept, to see a setting of one's own beside it:

```text
python -m experiments.where_chart notes/attacks.md --out docs/images/fresh.svg
python -m experiments.where_experiment --set session.beat_s=20 --csv mine.csv
python -m experiments.where_chart notes/attacks.md mine.csv --out mine.svg
```

Fleets that are spread evenly over a network of 10,000 nodes are joined by a line; every other one
is a mark of its own. Belief is that of the stronger adversary, with or without
hindsight, in multiples of that without a release: the mean, and that of the most exposed tenth.
Taxis are left out: they come and go, so their fleets have no size.
"""

import argparse
import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import cycle
from pathlib import Path
from typing import NamedTuple

from matplotlib.axes import Axes

from anonymizer.app.plots import BLUE, INK, ORANGE, RED, TEAL, plot
from anonymizer.audit.attacks.tracking import MOST_TIMES_NONE
from experiments.where_table import NOTED

DEFAULT = "default: session, 4 devices a place"
_COLOURS = (BLUE, TEAL, RED, ORANGE)
_MARKERS = ("D", "s", "^", "v", "P", "X")
_TABLE = "## Tracking, fleet by fleet"
_FLEET = re.compile(r"(?P<n>[\d,]+)(?P<evenly> evenly)?(?:, | )?(?P<rest>.*)")


class Mark(NamedTuple):
    """What one setting costs and reveals for one fleet.

    Attributes
    ----------
    n_devices, name
        Size of the fleet, and its name if it is not spread evenly over 10,000 nodes.
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
    "age_s": "age of what is known of a device, s",
    "nodes": "nodes in a region",
    "belief": "belief, times that without a release: mean",
    "tenth": "the same: most exposed tenth",
}


def read_marks(files: Sequence[Path]) -> list[Mark]:
    """Return the marks of the notes, and of files that `where_experiment --csv` wrote."""
    return [mark for file in files for mark in _of_file(file)]


def _of_file(file: Path) -> Iterator[Mark]:
    with file.open(newline="", encoding="utf-8") as lines:
        if file.suffix == ".md":
            yield from _of_notes(lines)
        else:
            yield from _of_figures(csv.DictReader(lines))


def _of_notes(lines: Iterable[str]) -> Iterator[Mark]:
    """Yield the marks of the table of the notes."""
    section = ""
    for line in lines:
        section = line.strip() if line.startswith("## ") else section
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        fleet = _FLEET.fullmatch(cells[0].replace("`", ""))
        if section != _TABLE or len(cells) != len(NOTED) or not fleet:
            continue
        row = dict(zip(NOTED, cells, strict=True))
        belief, tenth = (
            max(column) for column in zip(_pair(row["5 min"]), _pair(row["hindsight"]), strict=True)
        )
        evenly = fleet["evenly"]
        yield Mark(
            (fleet["rest"] if evenly else "") or DEFAULT,
            _number(fleet["n"]),
            "" if evenly else fleet["rest"],
            float(row["age"].removesuffix(" s")),
            _number(row["nodes"]),
            belief,
            tenth,
        )


def _number(text: str) -> int:
    return int(text.replace(",", ""))


def _pair(text: str) -> tuple[float, float]:
    mean, tenth = text.split("/")
    return float(mean), float(tenth)


def _of_figures(rows: Iterable[dict[str, str]]) -> Iterator[Mark]:
    """Yield the marks of rows with the columns of `where_experiment`."""
    for row in rows:
        kind, *numbers = row["fleet"].split(":")
        if kind == "taxis":
            continue
        belief, tenth = (
            max(float(row[f"{who}{part}"] or 0.0) for who in ("followed", "hindsight"))
            for part in ("", "_tenth")
        )
        yield Mark(
            row["settings"] or DEFAULT,
            int(numbers[0]),
            "" if kind == "even" and not numbers[1:] else row["fleet"],
            float(row["age_s"]),
            float(row["nodes"]),
            belief,
            tenth,
        )


def draw(marks: Sequence[Mark], path: Path) -> None:
    """Draw a panel for each of `PANELS`, by the size of the fleet."""
    with plot(path, width_in=11.0, height_in=7.5) as figure:
        panels = figure.subplots(2, 2, sharex=True)
        for axes, (what, label) in zip(panels.flat, PANELS.items(), strict=True):
            _panel(axes, marks, what)
            axes.set_title(label, fontsize=10)
        panels[0][1].set_yscale("log")
        panels[0][1].yaxis.set_major_formatter("{x:,.0f}")
        for axes in panels[1]:
            axes.axhline(MOST_TIMES_NONE, color=INK, ls="--", lw=1)
            axes.set_xlabel("devices, on 10,000 nodes unless stated")
        for axes in (panels[0][0], *panels[1]):
            axes.set_ylim(bottom=0)
        handles, labels = panels[0][0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=4, fontsize=9)


def _panel(axes: Axes, marks: Sequence[Mark], what: str) -> None:
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:,.0f}")
    settings = dict.fromkeys(mark.settings for mark in marks if not mark.name)
    for setting, colour in zip(settings, cycle(_COLOURS), strict=False):
        of = [mark for mark in marks if mark.settings == setting and not mark.name]
        x, y = _columns(of, what)
        axes.plot(x, y, "o-", lw=1.2, ms=5, color=colour, label=setting)
    names = dict.fromkeys(mark.name for mark in marks if mark.name)
    for name, marker in zip(names, cycle(_MARKERS), strict=False):
        x, y = _columns([mark for mark in marks if mark.name == name], what)
        axes.plot(x, y, marker, ls="", ms=6, mfc="none", color=INK, label=name)


def _columns(marks: Sequence[Mark], what: str) -> tuple[list[int], list[float]]:
    """Return the sizes of the fleets, rising, and a figure of each."""
    of = sorted(marks, key=lambda mark: mark.n_devices)
    return [mark.n_devices for mark in of], [getattr(mark, what) for mark in of]


def main(arguments: Sequence[str] | None = None) -> None:
    """Draw the picture."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("files", nargs="+", type=Path, help="the notes, or figures that were kept")
    parser.add_argument("--out", type=Path, required=True, help=".svg, .png or .pdf")
    options = parser.parse_args(arguments)
    draw(read_marks(options.files), options.out)


if __name__ == "__main__":
    main()
