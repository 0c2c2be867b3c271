"""Success of attacks beside their controls, drawn as inline SVG: no script, nothing to load.

Places along a line are percentages of its width, so that a drawing fits every screen, with letters
of one size. Marks differ in shape, not in colour alone. Colours are those of the page, by class.
"""

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import NamedTuple

from anonymizer.audit.evidence.evidence import Result
from anonymizer.audit.evidence.evidence_words import name_of, percent

_ENDS = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
"""Shares at which a drawing may end."""
_MARGIN = 2.0
"""Of the width, in per cent, on each side: marks at the ends are whole."""
_LETTERS = 44
"""Of a name; a narrow screen holds no more. The table has the whole name."""
_LANE, _TICKS = 44, 20
"""Heights of a lane with its name, and of the numbers on the scale, in pixels."""

MARKS = {
    '<circle cx="12" cy="8" r="5" class="success"/>': "how often the attack succeeds",
    '<rect x="1" y="4" width="22" height="8" rx="4" class="interval"/>': "where the true share is, "
    "95% sure",
    '<line x1="12" x2="12" y1="0" y2="16" class="control"/>': "what chance alone would reach, or "
    "somebody without this release (the control)",
}
"""What each mark means; a mark is 24 by 16."""


class Lane(NamedTuple):
    """What is drawn on one line; `success`, `low`, `high` and `control` are shares."""

    name: str
    success: float
    low: float | None
    high: float | None
    control: float | None
    against: str

    def __str__(self) -> str:
        between = "" if self.low is None else f", between {percent(self.low)} and "
        between += percent(self.high)
        control = f", {self.against} {percent(self.control)}" if self.control is not None else ""
        return f"{self.name}: {percent(self.success)}{between}{control}"


def lanes(results: Iterable[Result]) -> Iterator[Lane]:
    """Yield the attacks that have a success, and their success with the most exposed tenth."""
    for each in results:
        name = name_of(each)
        if each.success is not None:
            yield Lane(name, each.success, each.low, each.high, each.control, each.against)
        if each.exposed is not None and each.exposed_control is not None:
            tenth = f"{name}, most exposed tenth"
            yield Lane(tenth, each.exposed, None, None, each.exposed_control, each.against)


def drawing(drawn: Sequence[Lane], *, title: str) -> str:
    """Draw lanes below each other, on one scale that begins at 0 and ends above all marks."""
    end = _end(drawn)
    height = _TICKS + _LANE * len(drawn)
    shapes = _scale(end, 12)
    for i, lane in enumerate(drawn):
        y = _TICKS + i * _LANE + 32
        long = len(lane.name) > _LETTERS
        name = f"{lane.name[: _LETTERS - 1]}…" if long else lane.name
        shapes.append(f'<text x="{_MARGIN}%" y="{y - 15}">{escape(name)}</text>')
        shapes += _marks(lane, end, y)
    return _svg(shapes, height, f"{title}: {'; '.join(map(str, drawn))}")


def gauge(lane: Lane) -> str:
    """Draw one lane from 0 to 100 %."""
    return _svg([*_marks(lane, 1.0, 12), *_scale(1.0, 38)], 42, str(lane))


def _svg(shapes: list[str], height: int, words: str) -> str:
    return (
        f'<svg class="drawing" role="img" aria-label="{escape(words)}" height="{height}">'
        f"{''.join(shapes)}</svg>"
    )


def _scale(end: float, y: int) -> list[str]:
    ticks = ((0.0, "start"), (end / 2, "middle"), (end, "end"))
    return [
        f'<text x="{_x(at, end)}" y="{y}" text-anchor="{anchor}" class="tick">{100 * at:g}%</text>'
        for at, anchor in ticks
    ]


def _marks(lane: Lane, end: float, y: int) -> list[str]:
    shapes = [f'<line x1="{_x(0, end)}" x2="{_x(end, end)}" y1="{y}" y2="{y}" class="axis"/>']
    if lane.low is not None and lane.high is not None:
        width = (lane.high - lane.low) / end * (100 - 2 * _MARGIN)
        shapes.append(
            f'<rect x="{_x(lane.low, end)}" y="{y - 4}" width="{width:.2f}%" height="8" rx="4" '
            'class="interval"/>'
        )
    if lane.control is not None:
        x = _x(lane.control, end)
        shapes.append(f'<line x1="{x}" x2="{x}" y1="{y - 8}" y2="{y + 8}" class="control"/>')
    shapes.append(f'<circle cx="{_x(lane.success, end)}" cy="{y}" r="5" class="success"/>')
    return shapes


def _end(drawn: Sequence[Lane]) -> float:
    shares = [
        share
        for lane in drawn
        for share in (lane.success, lane.high, lane.control)
        if share is not None
    ]
    return next(end for end in _ENDS if end >= min(max(shares, default=0.0), 1.0))


def _x(share: float, end: float) -> str:
    return f"{_MARGIN + min(share / end, 1) * (100 - 2 * _MARGIN):.2f}%"
