"""Table of tracking as `notes/attacks.md` has it, of figures that `where_experiment --csv` kept.

```text
python -m experiments.where_experiment --fleet even:200 --csv 200.csv
python -m experiments.where_table 200.csv 1000.csv
```

prints it, a row a fleet, in the order of the files: belief of who follows groups, of all victims,
of the most exposed tenth, and how many victims exceed one half; then, in multiples of those without
a release, that belief, with hindsight, and with a release of other devices (`placebo`); `at most`
is the upper end of the intervals of 95 % of both, over resampled victims.
"""

import argparse
import csv
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

NOTED = (
    "fleet",
    "fleets x moments",
    "victims",
    "release",
    "5 min",
    "hindsight",
    "at most",
    "placebo",
    "nodes",
    "valid",
    "age",
)
"""Columns of the table."""
_ALIGNED = "|---|--:|--:|---|---|---|---|---|--:|--:|--:|"


def name_of(fleet: str, settings: str) -> str:
    """Return a fleet and the settings that were tried, in words.

    `fleet` and `settings` as `where_experiment` keeps them. What has no words stays as it is.
    """
    kind, *numbers = fleet.split(":")
    n, more = int(numbers[0]), numbers[1:]
    if kind == "taxis":
        name = f"taxis of San Francisco, {n:02d}:00, that move"
    elif kind == "lots":
        shares = {0.5: "half", 0.75: "three quarters"}
        name = f"{n:,}, {shares.get(float(more[0]), more[0])} in lots"
    else:
        name = f"{n:,} in a town of {int(more[0]):,} nodes" if more else f"{n:,} evenly"
    return ", ".join([name, *(_in_words(each) for each in settings.split())])


def _in_words(setting: str) -> str:
    key, value = setting.split("=")
    if key == "region.place_devices":
        return f"{value} devices a place"
    return f"`{value}`" if key == "region.mode" else f"`{setting}`"


def _short(share: float, digits: int) -> str:
    return f"{share:.{digits}f}".removeprefix("0")


def row_of(kept: Mapping[str, str]) -> str:
    """Return the row of a fleet, whose figures have the names of `where_experiment.COLUMNS`."""

    def times(mean: str, tenth: str) -> str:
        return f"{float(kept[mean]):.2f} / {float(kept[tenth]):.2f}" if kept[mean] else ""

    belief = float(kept["followed"]) * float(kept["none"])
    tenth = float(kept["followed_tenth"]) * float(kept["none_tenth"])
    cells = (
        name_of(kept["fleet"], kept["settings"]),
        f"{kept['fleets']} x {kept['moments']}",
        kept["victims"],
        f"{_short(belief, 3)} / {_short(tenth, 2)} / {100 * float(kept['exposed']):.0f} %",
        times("followed", "followed_tenth"),
        times("hindsight", "hindsight_tenth"),
        times("high", "tenth_high"),
        times("placebo", "placebo_tenth"),
        f"{float(kept['nodes']):,.0f}",
        _short(float(kept["valid"]), 2),
        f"{float(kept['age_s']):.0f} s",
    )
    return f"| {' | '.join(cells)} |"


def table(files: Sequence[Path]) -> Iterator[str]:
    """Yield the lines of the table."""
    yield f"| {' | '.join(NOTED)} |"
    yield _ALIGNED
    for file in files:
        with file.open(newline="", encoding="utf-8") as lines:
            yield from map(row_of, csv.DictReader(lines))


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("files", nargs="+", type=Path, help="figures that were kept")
    say = partial(print, flush=True)
    for line in table(parser.parse_args(arguments).files):
        say(line)


if __name__ == "__main__":
    main()
