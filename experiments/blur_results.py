"""Results of the experiment with blurs: a table, a picture of each scheme, and one page."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

import msgspec
import numpy as np

from anonymizer.app.plots import BLUE, ORANGE, RED, plot
from experiments.blur_experiment import Blurred
from experiments.result_files import Row, manifest, write_csv, write_files, write_json

PICTURES = "svg"
_HEAD = """\
# Is my blur broken?

Eleven ways in which positions are published that are taken for blurred, counts with differential
privacy, and our own regions, attacked with `anonymizer attack` as any release is. Each is a sample
of our own of what it is called, with the values that stand below; other values fare otherwise. Each
attack stands beside what chance finds, with an interval of 99 % over people. *Broken*: some attack
finds more than chance.

Ours is judged by the same attacks. It hides no place, but who of a group is there. *Published*:
rows for each position that was made. Of few people in a large town ours tells little: it publishes
where they have company. `anonymizer experiment blur --out blur` makes this page, and `frontier`
shows what each is of use for.

| scheme | what it does | published | people | broken by | verdict |
|---|---|--:|--:|---|---|"""


def write_results(
    found: Sequence[Blurred], options: Row, out: Path, *, formats: Sequence[str] = (PICTURES,)
) -> list[Path]:
    """Write blur.csv, blur.json, blur.md, manifest.json and a picture of each; return their paths.

    Raises
    ------
    InputError
        If a file cannot be written.
    """
    write_of: dict[str, Callable[[Path], object]] = {
        "blur.csv": lambda path: write_csv(list(rows_of(found)), path),
        "blur.json": lambda path: path.write_bytes(kept(found)),
        "blur.md": lambda path: path.write_text(page(found, folder=""), encoding="utf-8"),
        "manifest.json": lambda path: write_json(manifest(options), path),
    }
    for each in found:
        for kind in formats:
            write_of[f"blur-{_slug(each.scheme)}.{kind}"] = partial(draw, each)
    return write_files(out, write_of)


def kept(found: Sequence[Blurred]) -> bytes:
    """Return results as JSON, a list of `Blurred`."""
    return msgspec.json.format(msgspec.json.encode([asdict(each) for each in found])) + b"\n"


def rows_of(found: Sequence[Blurred]) -> Iterator[Row]:
    """Yield a row for each attack on each scheme."""
    for each in found:
        for verdict in each.verdicts:
            figures = {
                name: value
                for name, value in asdict(verdict).items()
                if name not in {"sentence", "asks", "note"}
            }
            yield {"scheme": each.scheme, "broken": verdict.broken, **figures}


def page(found: Sequence[Blurred], *, folder: str) -> str:
    """Return the page, whose pictures lie in a folder that ends in a slash, as Markdown."""
    lines = [_HEAD]
    for each in found:
        by = ", ".join(verdict.attack for verdict in each.verdicts if verdict.broken)
        n = max((verdict.n for verdict in each.verdicts), default=0)
        said = "broken" if each.broken else "not broken"
        share = "-" if each.share is None else f"{each.share:.0%}"
        lines.append(f"| {each.scheme} | {each.words} | {share} | {n:,} | {by} | {said} |")
    for each in found:
        picture = f"{folder}blur-{_slug(each.scheme)}.{PICTURES}"
        lines += ["", f"## {each.scheme[0].upper()}{each.scheme[1:]}", "", each.headline, ""]
        lines.append(f"![Attacks on {each.scheme} beside chance]({picture})")
        for name, why in each.not_mounted.items():
            lines += ["", f"Not tried: {name}, because {why}."]
    return "\n".join(lines) + "\n"


def draw(found: Blurred, path: Path) -> None:
    """Draw the success of each attack with its interval, and what chance finds."""
    verdicts = found.verdicts[::-1]
    at = np.arange(len(verdicts))
    with plot(path, width_in=7.0, height_in=1.2 + 0.32 * len(verdicts)) as figure:
        axes = figure.subplots()
        for y, each in zip(at.tolist(), verdicts, strict=True):
            colour = RED if each.broken else BLUE
            axes.plot([each.low, each.high], [y, y], color=colour, linewidth=5, alpha=0.35)
            axes.plot(each.success, y, "o", color=colour)
            axes.plot(each.control, y, "|", color=ORANGE, markersize=16, markeredgewidth=3)
        axes.set_yticks(at, [each.attack for each in verdicts])
        axes.set_xlim(-0.02, 1.02)
        axes.set_ylim(-0.6, len(verdicts) - 0.4)
        axes.set_xlabel("share found, with its interval of 99 %; orange: by chance")
        axes.set_title(found.scheme)


def _slug(name: str) -> str:
    return re.sub(r"\W+", "-", name).strip("-").lower()
