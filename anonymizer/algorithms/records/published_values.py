"""Reader of published generalized values: which codes of an attribute a text or JSON allows.

Shares no code with `generalized_values`, which makes both: the verification of a release and
`audit table` rest on what is published, on the declared domain and on this module.
"""

import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any, TypeAlias

import numpy as np

from anonymizer.domain.arrays import Int32Array, IntArray
from anonymizer.domain.records import NO_CODE, Attribute

Run: TypeAlias = tuple[int, int]
"""First and last of consecutive codes."""
PublishedValue: TypeAlias = str | Mapping[str, Any]
"""A generalized value as text or as JSON."""

_MISSING = "?"
_RANGE = re.compile(r"\[(-?[0-9]+(?:\.[0-9]+)?)-(-?[0-9]+(?:\.[0-9]+)?)\]")
_SPAN = re.compile(r"\[(.+)\.\.(.+)\]", re.DOTALL)
_PART = re.compile(r"(?:[^\\|}]|\\.)+", re.DOTALL)
_HOURS = re.compile(r".+\((\d\d)-(\d\d)\)", re.DOTALL)
_AREAS = ("区域", " area")
_EVERYWHERE = ("全部区域", "all areas")
_UNKNOWN = (("未知区域", "unknown area"), ("未知时段", "unknown time"))
"""Words for no category, and for no time."""
_MINUTES = 1440.0


class ValueReader:
    r"""Reads the published values of one attribute.

    `areas_first`: a text that is both a category and an area is read as the area. `per_day`,
    `midnight`: the length of a day in positions, and a position at which a day begins; None:
    positions are minutes since midnight where all of them lie in one day.

    Notes
    -----
    As text: `[lo-hi]`, a number, both also with the attribute's unit, a category or a node of the
    hierarchy; or several of these, or `?`, as `{a|b}`, in which a `\` stands before each `\`, `|`
    and `}` of a name. Or a label of KACA in either language: an area, or a part of the day with its
    hours. Dates, times and durations are `[first..last]`, as text alone.
    As JSON: one of `range`, `values`, `label`, `prefix` and `hours`, with `"missing": true` where
    some members have no value.

    A node allows its leaves; the missing marker is allowed only by name. An hour is allowed up to
    its end.
    """

    def __init__(
        self,
        attribute: Attribute,
        *,
        areas_first: bool = False,
        per_day: float | None = None,
        midnight: float = 0.0,
    ) -> None:
        self._numeric, self._missing = attribute.numeric, attribute.missing
        self._areas_first = areas_first
        self._code_of = {label: code for code, label in enumerate(attribute.label)}
        n_real = attribute.size if self._missing == NO_CODE else self._missing
        self._place = attribute.position[:n_real]
        self._exact = attribute.exact
        self._unit = attribute.unit
        self._code_of_text = {text: code for code, text in enumerate(attribute.written)}
        self._by_name = sorted((label, c) for c, label in enumerate(attribute.label[:n_real]))
        self._names = [label for label, _ in self._by_name]
        self._runs_of_node = _runs_of_nodes(attribute, n_real)
        has_missing = self._missing != NO_CODE
        unknown = _UNKNOWN[self._numeric] if has_missing else ()
        # Of equal names the last counts.
        self._runs_of_name = (
            {words: _single(self._missing) for words in unknown}
            | self._runs_of_node
            | ({_MISSING: _single(self._missing)} if has_missing else {})
            | {label: _single(code) for label, code in self._code_of.items()}
        )
        is_time = per_day is not None or ((self._place >= 0) & (self._place < _MINUTES)).all()
        length = _MINUTES if per_day is None else per_day
        # Six digits: 60 minutes are one hour, whatever a division makes of them.
        self._hour = np.round((self._place - midnight) / length * 24, 6) % 24 if is_time else None

    @property
    def size(self) -> int:
        """The number of codes, the missing marker's included."""
        return len(self._place) + (self._missing != NO_CODE)

    def runs(self, published: PublishedValue) -> list[Run]:
        """Return the codes that a published value allows, as rising runs that do not touch.

        The missing marker, the last code, is a run of its own.

        Raises
        ------
        ValueError
            If it is no value of this attribute, or allows nothing.
        """
        if isinstance(published, str):
            found = self._merged(run for part in _parts(published) for run in self._of_part(part))
        else:
            found = self._merged(self._of_json(published))
        if not found:
            raise ValueError("is no label")
        return found

    def code(self, cell: str) -> int:
        """Return the code of a value that is published as it is.

        Raises
        ------
        ValueError
            If it is no value of this attribute.
        """
        found = self._merged(self._of_part(cell))
        if len(found) > 1 or found[0][0] != found[0][1]:
            raise ValueError("is no value")
        return found[0][0]

    def _merged(self, runs: Iterable[Run]) -> list[Run]:
        merged: list[Run] = []
        for lo, hi in sorted(set(runs)):
            if merged and lo <= merged[-1][1] + 1 and lo != self._missing:
                merged[-1] = (merged[-1][0], max(merged[-1][1], hi))
            else:
                merged.append((lo, hi))
        return merged

    def _of_part(self, part: str) -> list[Run]:
        if self._areas_first and (area := self._of_area(part)):
            return area
        if part in self._runs_of_name:
            return self._runs_of_name[part]
        if not self._numeric:
            found = self._of_area(part)
        elif self._code_of_text:
            span = _SPAN.fullmatch(part)
            found = self._of_span(span[1], span[2]) if span else []
        elif hours := _HOURS.fullmatch(part):
            found = self._of_hours(int(hours[1]), int(hours[2]))
        else:
            return self._of_numbers(part)
        if not found:
            raise ValueError("is no label")
        return found

    def _of_numbers(self, part: str) -> list[Run]:
        part = part.removeprefix(self._unit.before).removesuffix(self._unit.after)
        ends = _RANGE.fullmatch(part)
        read = Decimal if self._exact else float
        try:
            lo, hi = (read(ends[1]), read(ends[2])) if ends else (read(part), read(part))
        except (ValueError, InvalidOperation):
            raise ValueError("is no label") from None
        if not len(self._place) or not (math.isfinite(lo) and math.isfinite(hi)):
            raise ValueError("is no label")
        found = self._of_range(lo, hi)
        if not found:
            raise ValueError("lies outside its domain")
        return found

    def _of_range(self, lo: float | Decimal, hi: float | Decimal) -> list[Run]:
        places = self._exact or self._place
        first, last = bisect_left(places, lo), bisect_right(places, hi) - 1
        return [(first, last)] if first <= last else []

    def _of_span(self, first: str, last: str) -> list[Run]:
        """Return the codes from one text to another: dates, times and durations as written."""
        lo, hi = self._code_of_text.get(first), self._code_of_text.get(last)
        return [(lo, hi)] if lo is not None and hi is not None and lo <= hi else []

    def _of_area(self, part: str) -> list[Run]:
        if part in _EVERYWHERE:
            return self._of_prefix("")
        area = next((area for area in _AREAS if part.endswith(area)), "")
        prefix = part.removesuffix(area)
        return self._of_prefix(prefix) if area and prefix else []

    def _of_prefix(self, prefix: str) -> list[Run]:
        first = bisect_left(self._names, prefix)
        last = bisect_right(self._names, prefix, lo=first, key=lambda name: name[: len(prefix)])
        return [(code, code) for _, code in self._by_name[first:last]]

    def _of_hours(self, first: int, end: int) -> list[Run]:
        if self._hour is None or not (first < 24 and 0 < end <= 24):
            return []
        if first < end:
            within = (self._hour >= first) & (self._hour < end)
        else:
            within = (self._hour >= first) | (self._hour < end)
        edges = np.flatnonzero(np.diff(np.concatenate([[False], within, [False]])))
        return [(a, b - 1) for a, b in edges.reshape(-1, 2).tolist()]

    def _of_json(self, value: Mapping[str, Any]) -> Iterable[Run]:
        if value.get("missing") and self._missing != NO_CODE:
            yield from _single(self._missing)
        match value:
            case {"range": [lo, hi]} if self._numeric:
                yield from self._of_range(lo, hi)
            case {"values": [*labels]}:
                for label in labels:
                    if label in self._code_of:
                        yield from _single(self._code_of[label])
                    elif self._numeric and label == _MISSING and self._missing != NO_CODE:
                        yield from _single(self._missing)
            case {"label": label}:
                yield from self._runs_of_node.get(label, [])
            case {"prefix": str(prefix)}:
                yield from self._of_prefix(prefix)
            case {"hours": [first, end]}:
                yield from self._of_hours(first, end)


def uncovered(
    code: Int32Array,
    class_of: Int32Array,
    published: Sequence[PublishedValue],
    reader: ValueReader,
) -> IntArray:
    """Return the classes whose published value does not cover every member, rising.

    `code`, `class_of`: of each record, the class below 0 where it has none, shape (n,).

    Notes
    -----
    A value that cannot be read covers nobody. Each text is read once; O(n + texts times codes), or
    O(n log n) where these are many.
    """
    some = class_of >= 0
    of, code = class_of[some], code[some]
    # Classes with the same text share a number.
    number: dict[str | int, int] = {}
    keys = [each if isinstance(each, str) else c for c, each in enumerate(published)]
    alike = np.array([number.setdefault(key, len(number)) for key in keys], np.int64)
    width = reader.size
    runs = [(0, -1, -1)]
    for c in np.unique(alike, return_index=True)[1].tolist():
        try:
            runs += [(int(alike[c]), lo, hi) for lo, hi in reader.runs(published[c])]
        except ValueError:
            continue
    cell = alike[of] * width + code
    if len(number) * width <= _TABLE_FACTOR * len(cell) + _SMALL_TABLE:
        covers = np.zeros(len(number) * width, bool)
        for label, lo, hi in runs[1:]:
            covers[label * width + lo : label * width + hi + 1] = True
        covered = covers[cell]
    else:
        label, lo, hi = np.array(runs, np.int64).T
        at = np.searchsorted(label * width + lo, cell, side="right") - 1
        covered = cell <= (label * width + hi)[at]
    return np.unique(of[~covered]).astype(np.int64)


_TABLE_FACTOR, _SMALL_TABLE = 8, 1024
"""Up to so many places a record, and a few more, a table is faster than a search."""


def _parts(label: str) -> list[str]:
    """Return the parts of `{a|b}`, or the whole label where it is no such set."""
    if not (label.startswith("{") and label.endswith("}")):
        return [label]
    found: list[str] = _PART.findall(label[1:-1])
    if not found or "|".join(found) != label[1:-1]:
        raise ValueError("is no label")
    return [re.sub(r"\\(.)", r"\1", part, flags=re.DOTALL) for part in found]


def _runs_of_nodes(attribute: Attribute, n_real: int) -> dict[str, list[Run]]:
    """Return the codes below each node of a hierarchy, by its label."""
    tree = attribute.hierarchy
    if tree is None:
        return {}
    first = np.full(len(tree.label), n_real, np.int64)
    last = np.full(len(tree.label), -1, np.int64)
    node = tree.ancestor[:n_real]
    code = np.repeat(np.arange(n_real), node.shape[1])
    np.minimum.at(first, node.ravel(), code)
    np.maximum.at(last, node.ravel(), code)
    found: dict[str, list[Run]] = {}
    for label, lo, hi in zip(tree.label, first.tolist(), last.tolist(), strict=True):
        if lo <= hi:  # codes below a node follow each other
            found.setdefault(label, [(lo, hi)])
    return found


def _single(code: int) -> list[Run]:
    return [(code, code)]
