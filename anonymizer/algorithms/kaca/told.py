"""What is published of a quasi-identifier of a class, as something that can be made coarser.

`join` covers what both cover, so that of two of these the published coarser one can be had from
the published finer ones alone.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Self, TypeAlias

from anonymizer.algorithms.kaca.labels import (
    Form,
    Label,
    Language,
    covering_hours,
    hours_of_day,
    region,
    time_period,
)
from anonymizer.algorithms.records.generalization import MISSING, Generalized, text
from anonymizer.algorithms.records.generalization import Range as Between
from anonymizer.algorithms.records.generalization import Values as Among
from anonymizer.domain.records import Attribute

_HOURS = 24


@dataclass(frozen=True, slots=True)
class Prefix:
    """What all categories begin with; None: no member has one. `missing`: some have none."""

    value: str | None
    missing: bool = False

    def join(self, other: Self) -> Self:
        """Return what covers both."""
        missing = self.missing or other.missing
        return type(self)(_common([v for v in (self.value, other.value) if v is not None]), missing)

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
        return _hours(self.value)

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
        prefix = _common(names)
        return Prefix(prefix if prefix is None else prefix[: label.longest], missing)
    return Values(tuple(names) or None, missing)


@lru_cache(maxsize=65_536)
def _cover(one: tuple[int, int] | None, other: tuple[int, int] | None) -> tuple[int, int] | None:
    there = _hours(one) | _hours(other)
    return covering_hours(there) if there else None


def _hours(arc: tuple[int, int] | None) -> set[int]:
    if arc is None:
        return set()
    first, end = arc
    return {(first + i) % _HOURS for i in range((end - first) % _HOURS or _HOURS)}


def _with_missing(told: str, value: object, *, missing: bool) -> str:
    return f"{{{told}|{MISSING}}}" if missing and value is not None else told


def _common(names: Iterable[str]) -> str | None:
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
