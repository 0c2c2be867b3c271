"""Plot style, and figures as files that are identical on every run."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from matplotlib import style
from matplotlib.figure import Figure

# Paul Tol's "vibrant" colours: distinct under every common kind of colour blindness.
RED = "#CC3311"
BLUE = "#0077BB"
TEAL = "#009988"
ORANGE = "#EE7733"
LIGHT = "#CCCCCC"
INK = "#333333"

_STYLE: dict[str, Any] = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": INK,
    "axes.titlelocation": "left",
    "axes.titlesize": 12,
    "axes.titlepad": 10,
    "legend.frameon": False,
    "svg.hashsalt": "anonymizer",
}
_NO_DATES: dict[str, dict[str, Any]] = {
    "png": {"Software": None},
    "svg": {"Date": None},
    "pdf": {"CreationDate": None},
}
FORMATS = tuple(_NO_DATES)
"""Suffixes of files that `plot` can write."""


@contextmanager
def plot(path: Path, *, width_in: float, height_in: float) -> Iterator[Figure]:
    """Yield a figure to draw on, and write it to a file of one of `FORMATS`; otherwise as `png`."""
    kind = path.suffix[1:]
    with style.context(["default", _STYLE]):
        figure = Figure(figsize=(width_in, height_in), layout="constrained")
        yield figure
        figure.savefig(path, dpi=150, format=kind, metadata=_NO_DATES[kind])


@contextmanager
def png(path: Path | BinaryIO, *, width_in: float, height_in: float) -> Iterator[Figure]:
    """Yield a figure to draw on, and write it to a file when that is done.

    Raises
    ------
    OSError
        If the file cannot be written.

    Notes
    -----
    The file depends neither on the user's matplotlibrc nor on the time or the version of
    matplotlib, and the state of pyplot is left alone.
    """
    with style.context(["default", _STYLE]):
        figure = Figure(figsize=(width_in, height_in), layout="constrained")
        yield figure
        figure.savefig(path, dpi=150, metadata={"Software": None})
