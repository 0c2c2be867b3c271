"""Labels: what a class is, in words that cover every member.

What is published of a quasi-identifier of a class, as something that can be made coarser.

`join` covers what both cover, so that of two of these the published coarser one can be had from
the published finer ones alone.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Any, Self, TypeAlias

import numpy as np

from anonymizer.algorithms.records.classes import SUPPRESSED
from anonymizer.algorithms.records.generalization import MISSING, Generalized, text
from anonymizer.algorithms.records.generalization import Range as Between
from anonymizer.algorithms.records.generalization import Values as Among
from anonymizer.domain.arrays import FloatArray, Int32Array, IntArray
from anonymizer.domain.records import Attribute


class Language(Enum):
    """What labels are written in."""

    ZH = "zh"
    EN = "en"


class Form(Enum):
    """How the values of a quasi-identifier are told."""

    PLAIN = "plain"
    """`[lo-hi]` or `{a|b}`, see `generalizing.text`. For any attribute."""
    PREFIX = "prefix"
    """What all labels begin with, as a region. For categories."""
    HOURS = "hours"
    """The hours of the day in which all lie, by the name of the period. For numbers."""


@dataclass(frozen=True, slots=True)
class Period:
    """A named part of the day, from an hour (0 to 23) up to another (1 to 24).

    It goes through midnight where it ends before it begins.
    """

    from_h: int
    to_h: int
    zh: str
    en: str

    def __post_init__(self) -> None:
        if not (0 <= self.from_h < 24 and 0 < self.to_h <= 24 and self.from_h != self.to_h):
            raise ValueError("a period goes from one hour of 0 to 23 to another of 1 to 24")

    @property
    def hours(self) -> set[int]:
        """The hours that belong to it."""
        return _hours(self.from_h, self.to_h)


DAY = (
    Period(0, 6, "凌晨时段", "early morning"),
    Period(6, 12, "上午时段", "morning"),
    Period(12, 18, "下午时段", "afternoon"),
    Period(18, 24, "晚上时段", "evening"),
)
"""The periods of the source."""

_WORDS = {
    Language.ZH: ("区域", "全部区域", "未知区域", "时段", "全天时段", "未知时段"),
    Language.EN: (" area", "all areas", "unknown area", "period", "all day", "unknown time"),
}


@dataclass(frozen=True, slots=True)
class Label:
    """How one quasi-identifier is told.

    Attributes
    ----------
    longest
        Characters of a `PREFIX` at the most; None: all that is common.
    per_day, midnight
        Of `HOURS`: how far positions get in a day (1440 where they are minutes), and a position
        at which a day begins.
    periods
        Names of parts of the day; the first that holds all hours is taken.
    """

    form: Form = Form.PLAIN
    longest: int | None = None
    per_day: float = 1440.0
    midnight: float = 0.0
    periods: tuple[Period, ...] = DAY


def texts(
    generalized: Generalized, j: int, label: Label, language: Language = Language.ZH
) -> list[str]:
    """Return what is published of quasi-identifier j in each class.

    Raises
    ------
    ValueError
        If the form does not suit the attribute.

    Notes
    -----
    Where some members have no value, `{label|?}`.
    """
    qi = generalized.qis[j]
    if label.form is Form.PLAIN:
        return generalized.texts(j)
    if qi.numeric is (label.form is Form.PREFIX):
        raise ValueError(f"{qi.name}: prefixes are for categories, hours for numbers")
    hour = hours_of_day(qi.position, label) if qi.numeric else np.zeros(0, np.int64)
    out = []
    for c in range(len(generalized)):
        codes = generalized.present(c, j).tolist()
        real = [code for code in codes if code != qi.missing]
        if label.form is Form.PREFIX:
            text = region([qi.label[code] for code in real], language, longest=label.longest)
        else:
            text = time_period(hour[real].tolist(), language, label.periods)
        out.append(f"{{{text}|{MISSING}}}" if real and len(codes) > len(real) else text)
    return out


def hours_of_day(position: FloatArray, label: Label) -> IntArray:
    """Return the hour of the day, 0 to 23, of positions."""
    since = (position - label.midnight) % label.per_day
    return np.minimum(since * 24 // label.per_day, 23).astype(np.int64)


def region(
    names: Iterable[str], language: Language = Language.ZH, *, longest: int | None = None
) -> str:
    """Return the region of sections: what all names begin with, all regions where that is nothing.

    Examples
    --------
    >>> region(["G5615530120", "G5611530010"], Language.EN)
    'G561 area'
    >>> region(["G5615530120", "S0010530010"])
    '全部区域'
    """
    area, everywhere, unknown, *_ = _WORDS[language]
    told = sorted(set(names))
    if not told:
        return unknown
    # Whatever the least and the greatest begin with, all between them begin with.
    prefix = _common(told[0], told[-1])[:longest]
    return f"{prefix}{area}" if prefix else everywhere


def time_period(
    hours: Iterable[int], language: Language = Language.ZH, periods: Sequence[Period] = DAY
) -> str:
    """Return the part of the day in which all hours lie, through midnight where that is shorter.

    Examples
    --------
    >>> time_period([12, 17])
    '下午时段(12-18)'
    >>> time_period([23, 0], Language.EN)
    'period (23-01)'
    """
    *_, some, whole, unknown = _WORDS[language]
    there = set(hours)
    if not there:
        return unknown
    from_h, to_h = covering_hours(there)
    name = whole if (from_h, to_h) == (0, 24) else some
    for period in periods:
        if _hours(from_h, to_h) <= period.hours:
            name = period.zh if language is Language.ZH else period.en
            break
    space = "" if language is Language.ZH else " "
    return f"{name}{space}({from_h:02}-{to_h:02})"


def covering_hours(hours: Iterable[int]) -> tuple[int, int]:
    """Return the fewest hours in a row that hold all, from the first (0-23) up to an end (1-24).

    They go through midnight where the end is not above the first. Of several equally few those
    that begin first.
    """
    there = sorted(set(hours))
    # The widest gap is left out: what follows it is where the arc begins.
    begins = [
        (before - hour) % -24 for before, hour in zip([there[-1], *there], there, strict=False)
    ]
    first = there[int(np.argmin(begins))] if len(there) > 1 else there[0]
    last = max(there, key=lambda hour: (hour - first) % 24)
    if (last - first) % 24 == 23:
        return 0, 24
    return first, last + 1


def join_same(class_of: Int32Array, published: Sequence[Sequence[str]]) -> Int32Array:
    """Return classes of which no two are published alike: those that would be are one.

    Parameters
    ----------
    class_of
        Classes from 0 up without a gap, `SUPPRESSED` where left out, shape (n,).
    published
        For each column what is published of each class.

    Notes
    -----
    Post-processing: a class only grows, so k, d and l hold as before, and so do bounds on shares
    where a person has one record.
    """
    rows = list(zip(*published, strict=True))
    number = {row: i for i, row in enumerate(sorted(set(rows)))}
    to = np.array([*(number[row] for row in rows), SUPPRESSED], np.int32)
    return to[class_of]  # a suppressed record reads the last


def _hours(from_h: int, to_h: int) -> set[int]:
    length = (to_h - from_h) % 24 or 24
    return {(from_h + i) % 24 for i in range(length)}


def _common(first: str, second: str) -> str:
    same = 0
    for a, b in zip(first, second, strict=False):
        if a != b:
            break
        same += 1
    return first[:same]


_HOURS = 24


@dataclass(frozen=True, slots=True)
class Prefix:
    """What all categories begin with; None: no member has one. `missing`: some have none."""

    value: str | None
    missing: bool = False

    def join(self, other: Self) -> Self:
        """Return what covers both."""
        missing = self.missing or other.missing
        return type(self)(
            _common_prefix([v for v in (self.value, other.value) if v is not None]), missing
        )

    @property
    def spread(self) -> float:
        """What it leaves open: the fewer characters, the more."""
        return -float(len(self.value or ""))

    def words(self, _label: Label, language: Language) -> str:
        """Return the region."""
        told = region([] if self.value is None else [self.value], language)
        return _with_missing(told, self.value, missing=self.missing)


@dataclass(frozen=True, slots=True)
class Hours:
    """The hours of the day from the first up to an end, through midnight if that is not above it.

    None: no member has a time. `missing`: some have none.
    """

    value: tuple[int, int] | None
    missing: bool = False

    def join(self, other: Self) -> Self:
        """Return what covers both, by the fewest hours."""
        return type(self)(_cover(self.value, other.value), self.missing or other.missing)

    @property
    def hours(self) -> set[int]:
        """All of them."""
        return _hours_in(self.value)

    @property
    def spread(self) -> float:
        """How many they are."""
        return float((self.value[1] - self.value[0]) % _HOURS or _HOURS) if self.value else 0.0

    def words(self, label: Label, language: Language) -> str:
        """Return the part of the day."""
        told = time_period(self.hours, language, label.periods)
        return _with_missing(told, self.value, missing=self.missing)


@dataclass(frozen=True, slots=True)
class Range:
    """The least and the greatest number; None: no member has one. `missing`: some have none."""

    value: tuple[float, float] | None
    missing: bool = False

    def join(self, other: Self) -> Self:
        """Return what covers both."""
        ends = [end for v in (self.value, other.value) if v is not None for end in v]
        missing = self.missing or other.missing
        return type(self)((min(ends), max(ends)) if ends else None, missing)

    @property
    def spread(self) -> float:
        """The distance of its ends."""
        return self.value[1] - self.value[0] if self.value else 0.0

    def words(self, _label: Label, _language: Language) -> str:
        """Return `[lo-hi]`, see `generalizing.text`."""
        if self.value is None:
            return text(Among((MISSING,)))
        return text(Between(*self.value, self.missing))


@dataclass(frozen=True, slots=True)
class Values:
    """The categories that are there, sorted; None: there is none. `missing`: some have none."""

    value: tuple[str, ...] | None
    missing: bool = False

    def join(self, other: Self) -> Self:
        """Return what covers both."""
        both = tuple(sorted({*(self.value or ()), *(other.value or ())}))
        return type(self)(both or None, self.missing or other.missing)

    @property
    def spread(self) -> float:
        """How many they are."""
        return float(len(self.value or ()))

    def words(self, _label: Label, _language: Language) -> str:
        """Return `{a|b}`, see `generalizing.text`."""
        return text(Among((*(self.value or ()), *((MISSING,) if self.missing else ()))))


Told: TypeAlias = Prefix | Hours | Range | Values
"""A generalized value. Two that are compared or joined are of one kind."""
_KIND_OF: dict[str, Callable[[Any, bool], Told]] = {
    "prefix": Prefix,
    "hours": Hours,
    "range": Range,
    "values": Values,
}
_NAME_OF = {kind: name for name, kind in _KIND_OF.items()}


def tell(generalized: Generalized, j: int, label: Label) -> list[Told]:
    """Return what is published of quasi-identifier j in each class.

    Raises
    ------
    ValueError
        If the form does not suit the attribute.
    """
    qi = generalized.qis[j]
    if label.form is not Form.PLAIN and qi.numeric is (label.form is Form.PREFIX):
        raise ValueError(f"{qi.name}: prefixes are for categories, hours for numbers")
    return [_told(qi, generalized.present(c, j).tolist(), label) for c in range(len(generalized))]


def to_json(told: Told) -> dict[str, Any]:
    """Return it as it stands in a message: `{"prefix": "G561"}`, with `"missing": true` if some."""
    return {_NAME_OF[type(told)]: told.value} | ({"missing": True} if told.missing else {})


def from_json(said: dict[str, Any]) -> Told:
    """Return what `to_json` has made JSON of."""
    for name, kind in _KIND_OF.items():
        if name in said:
            value = said[name]
            whole = tuple(value) if isinstance(value, list) else value
            return kind(whole, bool(said.get("missing")))
    raise ValueError("says nothing of a quasi-identifier")


def _told(qi: Attribute, codes: list[int], label: Label) -> Told:
    real = [code for code in codes if code != qi.missing]
    missing = len(real) < len(codes)
    if label.form is Form.HOURS:
        hours = hours_of_day(qi.position[real], label).tolist()
        return Hours(covering_hours(hours) if hours else None, missing)
    if qi.numeric:
        ends = qi.position[real].tolist()
        return Range((ends[0], ends[-1]) if ends else None, missing)
    names = sorted(qi.label[code] for code in real)
    if label.form is Form.PREFIX:
        prefix = _common_prefix(names)
        return Prefix(prefix if prefix is None else prefix[: label.longest], missing)
    return Values(tuple(names) or None, missing)


@lru_cache(maxsize=65_536)
def _cover(one: tuple[int, int] | None, other: tuple[int, int] | None) -> tuple[int, int] | None:
    there = _hours_in(one) | _hours_in(other)
    return covering_hours(there) if there else None


def _hours_in(arc: tuple[int, int] | None) -> set[int]:
    if arc is None:
        return set()
    first, end = arc
    return {(first + i) % _HOURS for i in range((end - first) % _HOURS or _HOURS)}


def _with_missing(told: str, value: object, *, missing: bool) -> str:
    return f"{{{told}|{MISSING}}}" if missing and value is not None else told


def _common_prefix(names: Iterable[str]) -> str | None:
    """Return what all names begin with; None of none."""
    told = sorted(names)
    if not told:
        return None
    same = 0
    # Whatever the least and the greatest begin with, all between them begin with.
    for a, b in zip(told[0], told[-1], strict=False):
        if a != b:
            break
        same += 1
    return told[0][:same]
