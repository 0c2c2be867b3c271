"""Text of labels, read against the cells of the original that they stand for.

An auditor's reading of one attribute of a release. It works on the text of the original and of
the release alone, with exact decimals; codes, positions and the code that made the label play no
part in it.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation

import numpy as np

from anonymizer.algorithms.records.time_text import TimeText
from anonymizer.domain.arrays import BoolArray, IntArray

_MISSING = "?"
_UNKNOWN = ("未知区域", "unknown area", "未知时段", "unknown time")
_EVERYWHERE = ("全部区域", "all areas")
_AREAS = ("区域", " area")
_HOURS = re.compile(r"\((\d\d)-(\d\d)\)")
_MINUTES = 60


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class LabelText:
    r"""Reads the labels of one attribute.

    `branches` are from leaf to root; `by_hour`: labels are hours of the day, and cells minutes;
    `times`, `levels`: the reader of cells that are dates, times or durations, and the levels of its
    calendar; `unit`: what labels have before and behind numbers, and cells have not.

    Notes
    -----
    A label is `[lo-hi]`, `[first..last]` of times, a category or a node of the hierarchy, or
    several of these or `?` in `{a|b}`, or the area of a common prefix; a `\` stands before each
    `\`, `|` and `}` of a name. A node covers what the hierarchy has below it, whatever its name
    says.
    """

    numeric: bool
    branches: Sequence[Sequence[str]] = ()
    by_hour: bool = False
    times: TimeText | None = None
    levels: Sequence[str] = ()
    unit: tuple[str, str] = ("", "")
    _above: dict[str | Decimal, frozenset[str]] = field(default_factory=dict, init=False)
    _nodes: set[str] = field(default_factory=set, init=False)

    def __post_init__(self) -> None:
        for branch in self.branches:
            self._nodes.update(branch[1:])
            leaf = _decimal(branch[0]) if self.numeric else branch[0]
            if leaf is not None:
                self._above[leaf] = frozenset(branch)

    def covers(self, label: str, cell: str | None) -> bool:
        """Return whether a label covers a cell; None: the value is missing."""
        parts = _parts(label)
        if cell is None:
            return any(part in (_MISSING, *_UNKNOWN) for part in parts)
        if self.times is not None:
            return any(self._covers_time(self.times, part, cell) for part in parts)
        number = _decimal(cell) if self.numeric else None
        if self.numeric and number is None:
            return False
        return any(self._part_covers(part, cell, number) for part in parts)

    def uncovered(
        self, labels: Sequence[str | None], cells: Sequence[str | None], pairs: IntArray
    ) -> BoolArray:
        """Return which pairs of a label and a cell, by their indices, shape (n, 2), do not fit.

        Each different pair is read once.
        """
        different, of = np.unique(pairs, axis=0, return_inverse=True)
        fits = [self.covers(labels[i] or "", cells[j]) for i, j in different.tolist()]
        return ~np.array(fits, bool)[of.ravel()]

    def cover(self, labels: Sequence[str | None], cells: Sequence[str | None]) -> BoolArray:
        """Return whether each label covers each cell, shape (labels, cells).

        O(labels x cells). Plain ranges of numbers: O((labels + cells) log cells), and the result.
        """
        found = np.zeros((len(labels), len(cells)), np.bool_)
        numbers = [_decimal(cell) if cell is not None else None for cell in cells]
        known = sorted((x, i) for i, x in enumerate(numbers) if x is not None)
        place = np.array([i for _, i in known], np.int64)
        plain = self.numeric and self.times is None and not self.by_hour and not self.branches
        for row, label in zip(found, labels, strict=True):
            ends = _ends(label or "") if plain else None
            if ends is None:
                row[:] = [self.covers(label or "", cell) for cell in cells]
            else:
                first = bisect_left(known, ends[0], key=_number)
                row[place[first : bisect_right(known, ends[1], key=_number)]] = True
        return found

    def _covers_time(self, times: TimeText, part: str, cell: str) -> bool:
        number = times.number(cell)
        if number is None:
            return False
        if part.startswith("[") and part.endswith("]"):
            first, _, last = part[1:-1].partition("..")
            lo, hi = times.number(first), times.number(last)
            return lo is not None and hi is not None and lo <= number <= hi
        if not self.levels:
            return False
        if part == "*" or times.number(part) == number:
            return True
        node = times.node(cell)
        return node is not None and part in [_cut(node, level) for level in self.levels]

    def _part_covers(self, part: str, cell: str, number: Decimal | None) -> bool:
        if self.by_hour and number is not None:
            return _hour_within(part, number)
        if part in self._nodes:  # whatever its name says
            return part in self._above.get(cell if number is None else number, ())
        if number is None:
            return part == cell or _in_area(part, cell)
        ends = _ends(part.removeprefix(self.unit[0]).removesuffix(self.unit[1]))
        return ends is not None and ends[0] <= number <= ends[1]


def _number(known: tuple[Decimal, int]) -> Decimal:
    return known[0]


def equal_cells(one: str | None, other: str | None) -> bool:
    """Return whether two cells say the same: equal texts, or equal numbers."""
    if one == other:
        return True
    if one is None or other is None:
        return False
    a, b = _decimal(one), _decimal(other)
    return a is not None and a == b


def _parts(label: str) -> list[str]:
    """Return the members of `{a|b}`, or the label itself; nothing where the braces do not close."""
    if not label.startswith("{"):
        return [label]
    parts, part, at = [], "", 1
    while at < len(label):
        letter = label[at]
        if letter == "\\" and at + 1 < len(label):
            at += 1
            part += label[at]
        elif letter in "|}":
            parts.append(part)
            part = ""
            if letter == "}":
                return parts if at == len(label) - 1 else []
        else:
            part += letter
        at += 1
    return []


def _ends(part: str) -> tuple[Decimal, Decimal] | None:
    """Return the ends of `[lo-hi]`, or a lone number twice."""
    if part.startswith("[") and part.endswith("]"):
        dash = part.find("-", 2)  # the first may be a sign
        lo, hi = _decimal(part[1:dash]), _decimal(part[dash + 1 : -1])
        return None if dash < 0 or lo is None or hi is None else (lo, hi)
    number = _decimal(part)
    return None if number is None else (number, number)


def _cut(node: str, level: str) -> str | None:
    """Return an hour such as `2023-01-31T09`, or `T09`, up to a level of the calendar."""
    if node.startswith("T"):
        return node if level == "hour" else None
    length = {"year": 4, "month": 7, "day": 10, "hour": 13}[level]
    return node[:length] if len(node) >= length else None


def _in_area(part: str, cell: str) -> bool:
    """Return whether a label is the area of a prefix of the cell."""
    areas = [area for area in _AREAS if part.endswith(area)]
    return part in _EVERYWHERE or any(cell.startswith(part.removesuffix(a)) for a in areas)


def _hour_within(part: str, minute: Decimal) -> bool:
    found = _HOURS.search(part)
    if found is None:
        return False
    first, end, hour = int(found[1]), int(found[2]), int(minute) // _MINUTES
    return first <= hour < end if first < end else hour >= first or hour < end


def _decimal(text: str) -> Decimal | None:
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    return number if number.is_finite() else None
