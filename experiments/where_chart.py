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
Fleets that were tried with several numbers of devices a place have a line each in the last panel:
what smaller regions reveal. Taxis are left out: they come and go, so their fleets have no size.
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
from anonymizer.settings import Settings
from experiments.where_table import NOTED, name_of

PLACE_DEVICES = Settings().region.place_devices
DEFAULT = f"default: session, {PLACE_DEVICES} devices a place"
_COLOURS = (BLUE, TEAL, RED, ORANGE)
_MARKERS = ("D", "s", "^", "v", "P", "X")
_TABLE = "## Tracking, fleet by fleet"
_FLEET = re.compile(
    r"(?P<n>\d+(?:,\d{3})*)(?: evenly|,? (?P<name>in a town of [\d,]+ nodes|.* in lots))"
    r"(?:, (?P<settings>.*))?"
)
_PLACES = re.compile(r"(\d+) devices a place")


class Mark(NamedTuple):
    """What one setting costs and reveals for one fleet."""

    settings: str
    n_devices: int
    name: str
    """`n_devices`, `name`: size of the fleet, and its name if it is not spread evenly over 10,000
    nodes."""
    age_s: float
    nodes: float
    belief: float
    tenth: float
    """`belief`, `tenth`: of the stronger adversary, in multiples of those without a release."""
    high: float
    """Upper end of the intervals of 95 % of both; no lower than they are."""

    @property
    def worst(self) -> float:
        """What the bar is compared with."""
        return max(self.belief, self.tenth)

    @property
    def place_devices(self) -> int | None:
        """How many devices share a place; None: something else was tried."""
        places = _PLACES.fullmatch(self.settings)
        return int(places[1]) if places else PLACE_DEVICES if self.settings == DEFAULT else None


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
        fleet = _fleet(cells[0])
        if section != _TABLE or len(cells) != len(NOTED) or not fleet:
            continue
        row = dict(zip(NOTED, cells, strict=True))
        belief, tenth = (
            max(column) for column in zip(_pair(row["5 min"]), _pair(row["hindsight"]), strict=True)
        )
        high = max(_pair(row["at most"] or row["hindsight"]))
        age_s, nodes = float(row["age"].removesuffix(" s")), _number(row["nodes"])
        yield Mark(*fleet, age_s, nodes, belief, tenth, max(high, belief, tenth))


def _fleet(words: str) -> tuple[str, int, str] | None:
    """Return settings, size and name of a fleet, of its name in words; None: it has no size."""
    fleet = _FLEET.fullmatch(words.replace("`", ""))
    return fleet and (fleet["settings"] or DEFAULT, _number(fleet["n"]), fleet["name"] or "")


def _number(text: str) -> int:
    return int(text.replace(",", ""))


def _pair(text: str) -> tuple[float, float]:
    mean, tenth = text.split("/")
    return float(mean), float(tenth)


def _of_figures(rows: Iterable[dict[str, str]]) -> Iterator[Mark]:
    """Yield the marks of rows with the columns of `where_experiment`."""
    for row in rows:
        fleet = _fleet(name_of(row["fleet"], row["settings"]))
        if not fleet:
            continue
        belief, tenth = (
            max(float(row[f"{who}{part}"] or 0.0) for who in ("followed", "hindsight"))
            for part in ("", "_tenth")
        )
        kept = ("age_s", "nodes", "high", "tenth_high")
        age_s, nodes, *highs = (float(row[each]) for each in kept)
        yield Mark(*fleet, age_s, nodes, belief, tenth, max(*highs, belief, tenth))


def frontiers(marks: Sequence[Mark]) -> dict[str, list[Mark]]:
    """Return the fleets that were tried with several numbers of devices a place, the fewest first.

    By size and name of the fleet.
    """
    found: dict[str, list[Mark]] = {}
    for mark in sorted(marks, key=lambda mark: mark.place_devices or 0):
        if mark.place_devices:
            name = f", {mark.name}" if mark.name else " evenly"
            found.setdefault(f"{mark.n_devices:,}{name}", []).append(mark)
    return {name: each for name, each in found.items() if len(each) > 1}


def draw(marks: Sequence[Mark], path: Path) -> None:
    """Draw a panel for each of `PANELS`, by the size of the fleet, and that of the frontiers."""
    found = frontiers(marks)
    n_rows = 3 if found else 2
    by_size = [mark for mark in marks if not _PLACES.fullmatch(mark.settings)]
    with plot(path, width_in=11.0, height_in=3.75 * n_rows) as figure:
        grid = figure.add_gridspec(n_rows, 2)
        panels = {what: figure.add_subplot(grid[divmod(i, 2)]) for i, what in enumerate(PANELS)}
        for what, label in PANELS.items():
            _panel(panels[what], by_size, what)
            panels[what].set_title(label, fontsize=10)
        panels["nodes"].set_yscale("log")
        panels["nodes"].yaxis.set_major_formatter("{x:,.0f}")
        for what in ("belief", "tenth"):
            panels[what].axhline(MOST_TIMES_NONE, color=INK, ls="--", lw=1)
            panels[what].set_xlabel("devices, on 10,000 nodes unless stated")
        for what in ("age_s", "belief", "tenth"):
            panels[what].set_ylim(bottom=0)
        if found:
            _frontiers(figure.add_subplot(grid[2, :]), found)
        handles, labels = panels["age_s"].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=4, fontsize=9)


def _frontiers(axes: Axes, found: dict[str, list[Mark]]) -> None:
    """Draw a line for each fleet: nodes against what the bar is compared with."""
    for (name, of), colour in zip(found.items(), cycle(_COLOURS), strict=False):
        x, y = [mark.nodes for mark in of], [mark.worst for mark in of]
        up = [mark.high - mark.worst for mark in of]
        error = ([0.0] * len(up), up)
        axes.errorbar(x, y, error, fmt="o-", lw=1.2, ms=5, capsize=3, color=colour, label=name)
        for mark in of:
            at, devices = (mark.nodes, mark.worst), str(mark.place_devices)
            axes.annotate(devices, at, (4, 5), textcoords="offset points", color=colour)
    axes.axhline(MOST_TIMES_NONE, color=INK, ls="--", lw=1)
    axes.set_title(
        "what smaller regions reveal, by devices a place: the higher of both, up to 95 %",
        fontsize=10,
    )
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.xaxis.set_minor_formatter("{x:,.0f}")
    axes.set_xlabel("nodes in a region")
    axes.legend(fontsize=9)


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
