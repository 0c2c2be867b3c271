"""Plot style, and figures as PNG files that are identical on every run."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from matplotlib import style
from matplotlib.figure import Figure

# Paul Tol's "vibrant" red and blue: distinct under every common kind of colour blindness.
RED = "#CC3311"
BLUE = "#0077BB"
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
}


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
