"""Charts of a report, as PNG in base64."""

from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator, PercentFormatter

from anonymizer.app.anonymize.release_report import AnonymizeReport
from anonymizer.app.plots import BLUE, INK, LIGHT, RED, png
from anonymizer.domain.arrays import Int32Array

_MOST_BARS = 60
_ROW_IN = 0.45
"""Height of a quasi-identifier in a chart."""


def class_sizes(class_of: Int32Array, *, k: int) -> str:
    """Draw a histogram of the class sizes."""
    sizes = np.bincount(class_of[class_of >= 0])
    width = -(-int(sizes.max() - sizes.min() + 1) // _MOST_BARS)
    edges = np.arange(sizes.min(), sizes.max() + width + 1, width) - 0.5
    drawn = BytesIO()
    with _axes(drawn, height_in=3.2) as axes:
        axes.hist(sizes, bins=edges.tolist(), color=BLUE)
        axes.axvline(k, color=RED, linewidth=1.2, label=f"k = {k}")
        axes.set_title("Sizes of the classes")
        axes.set_xlabel("records of a class")
        axes.set_ylabel("classes")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.legend()
    return _text(drawn)


def losses(report: AnonymizeReport) -> str:
    """Draw the information loss of each quasi-identifier in the three forms."""
    names, drawn = [qi.name for qi in report.qis], BytesIO()
    place = np.arange(len(names))
    with _axes(drawn, height_in=1.4 + _ROW_IN * len(names)) as axes:
        for i, (form, colour) in enumerate((("range", BLUE), ("set", RED), ("taxonomy", LIGHT))):
            loss = [getattr(qi.ncp, form) for qi in report.qis]
            axes.barh(place + 0.26 * (i - 1), loss, height=0.24, color=colour, label=form)
        _rows(axes, names)
        axes.set_title("Information loss of each quasi-identifier (NCP)")
        axes.legend(ncols=3, loc="upper center", bbox_to_anchor=(0.5, -0.15))
    return _text(drawn)


def shares(report: AnonymizeReport) -> str:
    """Draw the largest share of one value, or of one tuple of a source, in a class."""
    found = {qi.name: qi.max_share for qi in report.qis}
    found |= {", ".join(s.qis): s.max_share for s in report.sources if len(s.qis) > 1}
    n_values, drawn = len(report.qis), BytesIO()
    colours = [BLUE] * n_values + [INK] * (len(found) - n_values)
    with _axes(drawn, height_in=1.4 + _ROW_IN * len(found)) as axes:
        axes.barh(np.arange(len(found)), list(found.values()), height=0.6, color=colours)
        _rows(axes, list(found))
        axes.set_title("Largest share of one value, or one source's tuple, in a class")
        for bound in {report.asked.max_share, report.asked.max_source_share}:
            axes.axvline(bound, color=RED, linewidth=1.2)
        axes.xaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    return _text(drawn)


@contextmanager
def _axes(drawn: BytesIO, *, height_in: float) -> Iterator[Axes]:
    with png(drawn, width_in=8, height_in=height_in) as figure:
        yield figure.subplots()


def _rows(axes: Axes, names: list[str]) -> None:
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set_xlim(0, 1.02)


def _text(drawn: BytesIO) -> str:
    return b64encode(drawn.getvalue()).decode()
