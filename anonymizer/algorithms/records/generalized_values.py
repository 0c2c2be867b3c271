"""Generalized values: what is published for a quasi-identifier of an equivalence class.

Six types, one maker of their text and one of their JSON. The text of a table and the labels of
KACA (toll records: common prefix of the sections, part of the day) come from here, and nowhere
else. `published_values` reads them back and shares no code with this module.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from functools import lru_cache
from typing import Any, Self, TypeAlias

import numpy as np

from anonymizer.domain.arrays import FloatArray, IntArray
from anonymizer.domain.records import NO_UNIT, Unit

MISSING = "?"
"""Text of the missing marker; among categories the marker has a label of its own."""
_HOURS = 24
Number: TypeAlias = float | Decimal
"""A `Decimal` where no float is exactly this number."""


@dataclass(frozen=True, slots=True, repr=False)
class Range:
    """The least and the greatest number of a class; None where no member has one."""

    ends: tuple[Number, Number] | None
    missing: bool = False
    unit: Unit = NO_UNIT

    def join(self, other: Self) -> Self:
        """Return the range that covers both."""
        ends = [end for each in (self.ends, other.ends) if each is not None for end in each]
        missing = self.missing or other.missing
        return type(self)((min(ends), max(ends)) if ends else None, missing, self.unit)

    @property
    def spread(self) -> float:
        """The distance between its ends."""
        return float(self.ends[1]) - float(self.ends[0]) if self.ends else 0.0

    @property
    def order_key(self) -> tuple[Any, ...]:
        """A key to sort ranges by."""
        return (self.ends or (), self.missing)


@dataclass(frozen=True, slots=True, repr=False)
class Span:
    """The first and the last date, time or duration of a class, as they are written.

    It has no `join`: the order of such texts is known to the attribute alone.
    """

    first: str
    last: str
    missing: bool = False


@dataclass(frozen=True, slots=True, repr=False)
class Values:
    """The categories of a class.

    The label of the missing marker is either one of them, or left out and `missing` is set.
    """

    labels: tuple[str, ...]
    missing: bool = False

    def join(self, other: Self) -> Self:
        """Return the categories of both, sorted."""
        labels = tuple(sorted({*self.labels, *other.labels}))
        return type(self)(labels, self.missing or other.missing)

    @property
    def spread(self) -> float:
        """The number of categories."""
        return float(len(self.labels))

    @property
    def order_key(self) -> tuple[Any, ...]:
        """A key to sort sets of categories by."""
        return (self.labels, self.missing)


@dataclass(frozen=True, slots=True, repr=False)
class Node:
    """The lowest node of a hierarchy above all values of a class.

    It has no `join`: the nodes above it are known to the hierarchy alone.
    """

    label: str
    missing: bool = False


@dataclass(frozen=True, slots=True, repr=False)
class Prefix:
    """The common prefix of the categories of a class; None where no member has one."""

    prefix: str | None
    missing: bool = False

    def join(self, other: Self) -> Self:
        """Return the common prefix of both."""
        prefix = common_prefix([p for p in (self.prefix, other.prefix) if p is not None])
        return type(self)(prefix, self.missing or other.missing)

    @property
    def spread(self) -> float:
        """Minus its length: a shorter prefix leaves more open."""
        return -float(len(self.prefix or ""))

    @property
    def order_key(self) -> tuple[Any, ...]:
        """A key to sort prefixes by."""
        return (self.prefix is not None, self.prefix or "", self.missing)


@dataclass(frozen=True, slots=True, repr=False)
class Hours:
    """The hours of the day from a first one (0-23) to an end (1-24); None where there are none.

    They pass through midnight where the end is not above the first.
    """

    arc: tuple[int, int] | None
    missing: bool = False

    def join(self, other: Self) -> Self:
        """Return the fewest consecutive hours that cover both."""
        return type(self)(_covering_arc(self.arc, other.arc), self.missing or other.missing)

    @property
    def hours(self) -> set[int]:
        """All hours of the arc."""
        return set() if self.arc is None else _hours_between(*self.arc)

    @property
    def spread(self) -> float:
        """The number of hours."""
        return float(len(self.hours))

    @property
    def order_key(self) -> tuple[Any, ...]:
        """A key to sort arcs by."""
        return (self.arc or (), self.missing)


Value: TypeAlias = Range | Span | Values | Node | Prefix | Hours
"""A generalized value: it stands for one quasi-identifier of all members of a class. `missing`:
some of the members have no value."""
JoinableValue: TypeAlias = Range | Values | Prefix | Hours
"""A value that can be made coarser from what is published alone. Two that are joined or compared
are of one type."""


# Hours of the day


def covering_hours(hours: Iterable[int]) -> tuple[int, int]:
    """Return the fewest consecutive hours that hold all, from a first one (0-23) to an end (1-24).

    They pass through midnight where the end is not above the first. Of several stretches of equal
    length, the one that begins first.
    """
    present = sorted(set(hours))
    # The widest gap is left out: the arc begins with what follows it.
    gaps = [
        (before - hour) % -_HOURS
        for before, hour in zip([present[-1], *present], present, strict=False)
    ]
    first = present[int(np.argmin(gaps))] if len(present) > 1 else present[0]
    last = max(present, key=lambda hour: (hour - first) % _HOURS)
    if (last - first) % _HOURS == _HOURS - 1:
        return 0, _HOURS
    return first, last + 1


def hours_of_day(position: FloatArray, *, per_day: float, midnight: float) -> IntArray:
    """Return the hour of the day, 0 to 23, of positions; see `LabelStyle`."""
    since = (position - midnight) % per_day
    return np.minimum(since * _HOURS // per_day, _HOURS - 1).astype(np.int64)


@lru_cache(maxsize=65_536)
def _covering_arc(
    one: tuple[int, int] | None, other: tuple[int, int] | None
) -> tuple[int, int] | None:
    hours = {hour for arc in (one, other) if arc is not None for hour in _hours_between(*arc)}
    return covering_hours(hours) if hours else None


def _hours_between(first: int, end: int) -> set[int]:
    return {(first + i) % _HOURS for i in range((end - first) % _HOURS or _HOURS)}


def common_prefix(names: Iterable[str]) -> str | None:
    """Return the common prefix of names; None if there are none."""
    ordered = sorted(names)
    if not ordered:
        return None
    # Every name between the least and the greatest begins with what these two have in common.
    same = 0
    for a, b in zip(ordered[0], ordered[-1], strict=False):
        if a != b:
            break
        same += 1
    return ordered[0][:same]


# Styles of labels


class Language(Enum):
    """The language of labels."""

    ZH = "zh"
    EN = "en"


class Form(Enum):
    """The form in which a quasi-identifier is generalized."""

    PLAIN = "plain"
    """A range, a set of categories or a node of the hierarchy. For any attribute."""
    PREFIX = "prefix"
    """The common prefix of the categories. For categories."""
    HOURS = "hours"
    """The hours of the day that hold all members. For numbers."""


@dataclass(frozen=True, slots=True)
class Period:
    """A named part of the day, from an hour to an end."""

    from_h: int
    to_h: int
    zh: str
    en: str

    @property
    def hours(self) -> set[int]:
        """The hours of the period."""
        return _hours_between(self.from_h, self.to_h)


DAY = (
    Period(0, 6, "凌晨时段", "early morning"),
    Period(6, 12, "上午时段", "morning"),
    Period(12, 18, "下午时段", "afternoon"),
    Period(18, 24, "晚上时段", "evening"),
)
"""The periods of the source of KACA."""


@dataclass(frozen=True, slots=True)
class LabelStyle:
    """How one quasi-identifier is generalized and labelled.

    `per_day` and `midnight` are for `HOURS`: the length of a day in positions (1440 where they are
    minutes), and a position at which a day begins.
    """

    form: Form = Form.PLAIN
    per_day: float = 1440.0
    midnight: float = 0.0


# Text


def text(value: Value, language: Language = Language.ZH) -> str:
    r"""Return a generalized value as text.

    Notes
    -----
    Numbers `[lo-hi]`, also for a single one: `[30-30]`; with a unit `[17-25]%`. Dates, times and
    durations `[first..last]`, as they are written in the table. Categories `{a|b}`, also for a
    single one: `{a}`. A node of a hierarchy is its label alone. A prefix is an area: `G561区域` or
    `G561 area`. Hours are a part of the day: `下午时段(12-18)` or `afternoon (12-18)`. If some
    members have no value `{[17-30]|?}`, `{a|b|?}`, `{group|?}`, `{G561 area|?}`; if none has one
    `{?}`, or the words for an unknown area or time. Within braces a `\` stands before each `\`,
    `|` and `}` of a label.
    """
    match value:
        case Values(labels, missing):
            return _set_of([*labels, MISSING] if missing else labels)
        case Range(None):
            return _set_of([MISSING])
        case Range((lo, hi), missing, unit):
            plain = f"{unit.before}[{number(lo)}-{number(hi)}]{unit.after}"
        case Span(first, last, missing):
            plain = f"[{first}..{last}]"
        case Node(label, missing):
            plain = label
        case Prefix(prefix, missing):
            missing &= prefix is not None
            plain = _area(prefix, language)
        case Hours(arc, missing):
            missing &= arc is not None
            plain = _part_of_day(arc, language)
    return _set_of([plain, MISSING]) if missing else plain


def number(value: Number) -> str:
    """Return the shortest decimal that reads as `value`, without an exponent."""
    if isinstance(value, Decimal):
        plain = format(value, "f") if value else "0"
        return plain.rstrip("0").rstrip(".") if "." in plain else plain
    return np.format_float_positional(value + 0.0, trim="-")


def _area(prefix: str | None, language: Language) -> str:
    chinese = language is Language.ZH
    if prefix is None:
        return "未知区域" if chinese else "unknown area"
    if not prefix:
        return "全部区域" if chinese else "all areas"
    return prefix + ("区域" if chinese else " area")


def _part_of_day(arc: tuple[int, int] | None, language: Language) -> str:
    chinese = language is Language.ZH
    if arc is None:
        return "未知时段" if chinese else "unknown time"
    from_h, to_h = arc
    name = "时段" if chinese else "period"
    if arc == (0, _HOURS):
        name = "全天时段" if chinese else "all day"
    for period in DAY:
        if _hours_between(from_h, to_h) <= period.hours:
            name = period.zh if chinese else period.en
            break
    return f"{name}{'' if chinese else ' '}({from_h:02}-{to_h:02})"


_ESCAPES = str.maketrans({special: "\\" + special for special in "\\|}"})


def _set_of(labels: Iterable[str]) -> str:
    return "{" + "|".join(_escaped(label) for label in labels) + "}"


def _escaped(label: str) -> str:
    return label.translate(_ESCAPES)


# JSON


def to_json(value: Value) -> dict[str, Any]:
    """Return a generalized value as JSON: `{"prefix": "G561"}`, `"missing": true` if some are."""
    match value:
        case Range(ends):
            content: dict[str, Any] = {"range": None if ends is None else list(ends)}
        case Span(first, last):
            content = {"span": [first, last]}
        case Values(labels):
            content = {"values": list(labels) or None}
        case Node(label):
            content = {"label": label}
        case Prefix(prefix):
            content = {"prefix": prefix}
        case Hours(arc):
            content = {"hours": None if arc is None else list(arc)}
    return content | {"missing": True} if value.missing else content


def from_json(content: Mapping[str, Any]) -> Value:
    """Return the generalized value of which `to_json` made JSON.

    Raises
    ------
    ValueError
        If it is no generalized value.
    """
    missing = bool(content.get("missing"))
    match content:
        case {"range": ends}:
            return Range(None if ends is None else (ends[0], ends[1]), missing)
        case {"span": [first, last]}:
            return Span(first, last, missing)
        case {"values": labels}:
            return Values(tuple(labels or ()), missing)
        case {"label": label}:
            return Node(label, missing)
        case {"prefix": prefix}:
            return Prefix(prefix, missing)
        case {"hours": arc}:
            return Hours(None if arc is None else (arc[0], arc[1]), missing)
    raise ValueError("is no generalized value")


def whole(value: float) -> float | int:
    """Return a number as an integer where it is one: `30`, not `30.0`."""
    return int(value) if value.is_integer() else value
