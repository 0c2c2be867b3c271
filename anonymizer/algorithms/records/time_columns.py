"""Columns of dates, times and durations: the exact number of each cell, and calendar nodes.

A column is one of these only if all its cells are of one kind. `2023-1-3`, `2023/01/03` and
`03.01.2023` are dates; `31/1/2023` and `1/31/2023` are, if some cell says which comes first. Weeks
and quarters are those of ISO 8601, `2023-W05` and `2023-Q1`. See `date_forms` for other writings.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from typing import Literal, TypeAlias, get_args

from anonymizer.algorithms.records.attributes import ROOT, Branch

Level: TypeAlias = Literal["year", "month", "day", "hour"]
LEVELS: tuple[Level, ...] = get_args(Level)
"""The levels of a calendar, from the coarsest."""
Kind: TypeAlias = Literal[
    "dates",
    "weeks",
    "months",
    "quarters",
    "times",
    "times with a zone",
    "times of day",
    "durations",
]
_LEVELS_OF: Mapping[Kind, tuple[Level, ...]] = {
    "dates": LEVELS[:2],
    "weeks": LEVELS[:1],
    "months": LEVELS[:1],
    "quarters": LEVELS[:1],
    "times": LEVELS,
    "times with a zone": LEVELS,
    "times of day": LEVELS[3:],
    "durations": (),
}
"""The levels above the cells of each kind."""
_AMONG: Mapping[Kind, tuple[Kind, ...]] = {"durations": ("times of day",)}
"""Kinds that may stand among another: 23:30 beside 24:30 is a duration."""
_MOSTLY = 0.5
"""Share of times from which categories are said to look like them."""
_FEW = 1_000
"""Cells that are looked at first: a column is read no further if most of these are no times."""
_DAY_S, _HOUR_S, _MINUTE_S = 86_400, 3_600, 60
_HOURS, _HALF_DAY, _MONTHS, _QUARTERS, _WEEK_DAYS = 24, 12, 12, 4, 7

_CLOCK = r"(?P<h>\d{1,2}):(?P<m>[0-5]\d)(?::(?P<s>[0-5]\d(?:[.,]\d+)?))?(?: ?(?P<half>[AaPp])[Mm])?"
_ZONE = r" ?(?P<zone>[Zz]|[+-]\d\d:?[0-5]\d)"
_MOMENT = re.compile(
    r"(?:(?P<year>\d{4})(?P<sep>[-/.])(?P<month>\d\d?)(?P=sep)(?P<day>\d\d?)"
    r"|(?P<one>\d\d?)(?P<by>[-/.])(?P<two>\d\d?)(?P=by)(?P<last>\d{4}))"
    rf"(?:[Tt ] *{_CLOCK}(?:{_ZONE})?)?",
    re.ASCII,
)
_YEAR_LAST = re.compile(r"\d\d?([-/])\d\d?\1\d{4}", re.ASCII)
_PART_OF_YEAR = re.compile(r"(1[5-9]\d\d|2[01]\d\d)-([WQ]?)(\d\d?)", re.ASCII)
_TIME_OF_DAY = re.compile(_CLOCK, re.ASCII)
_N = r"\d+(?:[.,]\d+)?"
_ISO = re.compile(
    rf"([+-])?P(?=[\dT])(?:({_N})W)?(?:({_N})D)?(?:T(?=\d)(?:({_N})H)?(?:({_N})M)?(?:({_N})S)?)?",
    re.ASCII,
)
_ISO_S = (7 * _DAY_S, _DAY_S, _HOUR_S, _MINUTE_S, 1)
_LONG_CLOCK = re.compile(
    r"(?:([+-]?\d+) days?,? )?([+-])?(\d+):([0-5]\d)(?::([0-5]\d(?:[.,]\d+)?))?", re.ASCII
)
_UNITS = re.compile(rf"([+-])?((?:{_N} ?[a-z]+ ?)+)", re.ASCII)
_UNIT = re.compile(rf"({_N}) ?([a-z]+)", re.ASCII)
_UNIT_S = {
    **dict.fromkeys(("week", "weeks"), Fraction(7 * _DAY_S)),
    **dict.fromkeys(("d", "day", "days"), Fraction(_DAY_S)),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), Fraction(_HOUR_S)),
    **dict.fromkeys(("min", "mins", "minute", "minutes"), Fraction(_MINUTE_S)),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), Fraction(1)),
    "ms": Fraction(1, 1_000),
}


@dataclass(frozen=True, slots=True)
class TimeReading:
    """What the times of a column are, and whether the day or the month of a date comes first."""

    kind: Kind
    day_first: bool

    def number(self, cell: str) -> Fraction | None:
        """Return the number of a cell, None if it is no time of this kind."""
        found = _read(cell, day_first=self.day_first)
        if found is None or found[0] not in {self.kind, *_AMONG.get(self.kind, ())}:
            return None
        return found[1]


@dataclass(frozen=True, slots=True, repr=False)
class TimeCells:
    """The times of a column."""

    reading: TimeReading
    read_as: str
    """`reading`, `read_as`: what they are, and in words for the report."""
    number_of: Mapping[str, Fraction]
    """The number of each different cell: days for dates, weeks, months and quarters for these,
    otherwise seconds; times with a zone in UTC."""

    @property
    def kind(self) -> Kind:
        """What they are."""
        return self.reading.kind

    def branch(self, cell: str, levels: Sequence[Level]) -> Branch:
        """Return the branch of a cell in the calendar of these levels.

        Nodes are written as in ISO 8601: `2023`, `2023-01`, `2023-01-31`, `2023-01-31T09`, and
        `T09` for an hour of any day. Dates, weeks, months and quarters are their own finest level;
        the year of a week is that of its Thursday.

        Raises
        ------
        ValueError
            If there is no calendar, because these are durations.
        """
        if self.kind == "durations":
            raise ValueError("a duration is in no calendar")
        if self.kind in {"weeks", "quarters"}:
            return (cell, *([cell[:4]] if "year" in levels else []), ROOT)
        number = int(self.number_of[cell] // 1)
        hour = f"T{number % _DAY_S // _HOUR_S:02}"
        if self.kind == "months":
            day = f"{number // _MONTHS:04}"
        elif self.kind == "times of day":
            day = ""
        else:
            day = date.fromordinal(number if self.kind == "dates" else number // _DAY_S).isoformat()
        node: dict[Level, str] = {
            "year": day[:4],
            "month": day[:7],
            "day": day,
            "hour": day + hour,
        }
        named = [node[level] for level in _LEVELS_OF[self.kind] if level in levels]
        return (cell, *reversed(named), ROOT)


def calendar_levels(text: str) -> tuple[Level, ...] | None:
    """Return the levels of `year-month-day-hour`, or of some of these in this order."""
    named = text.split("-")
    levels = tuple(level for level in LEVELS if level in named)
    return levels if list(levels) == named else None


def read_times(cells: Iterable[str]) -> TimeCells | str:
    """Return the different cells of a column as times, or in words what they are instead.

    Raises
    ------
    ValueError
        If every date could begin with the day or with the month, and this makes a difference.
    """
    there = list(cells)
    readings: dict[str, TimeCells] = {}
    mostly = ""
    turned = any(map(_YEAR_LAST.match, there[:_FEW]))
    for day_first, words in ((True, ", day first"), (False, ", month first")):
        if not day_first and not turned:
            break
        first = [_read(cell, day_first=day_first) for cell in there[:_FEW]]
        known = [each for each in first if each is not None]
        if len(known) <= _MOSTLY * len(first):
            continue
        mostly = Counter(kind for kind, _ in known).most_common(1)[0][0]
        turned = turned or any(map(_YEAR_LAST.match, there[_FEW:]))
        found = [*first, *(_read(cell, day_first=day_first) for cell in there[_FEW:])]
        kinds = {each[0] if each is not None else None for each in found}
        kind = next(iter(kinds)) if len(kinds) == 1 else None
        if kinds == {"times of day", "durations"}:
            kind = "durations"
        if kind is not None:
            read = zip(there, found, strict=True)
            numbers = {cell: each[1] for cell, each in read if each is not None}
            read_as = f"{kind}{words if turned else ''}"
            readings[words] = TimeCells(TimeReading(kind, day_first), read_as, numbers)
    if not readings:
        return f"categories, although most cells are {mostly}" if mostly else "categories"
    one, *others = readings.values()
    if any(other.number_of != one.number_of for other in others):
        raise ValueError("dates could begin with the day or the month: write the year first")
    return one


def _read(cell: str, *, day_first: bool) -> tuple[Kind, Fraction] | None:
    """Return the kind and the number of a cell; None: it is no time."""
    if found := _MOMENT.fullmatch(cell):
        if found["year"]:
            return _moment(found, *(int(found[part]) for part in ("year", "month", "day")))
        one, two = int(found["one"]), int(found["two"])
        day, month = (one, two) if day_first or found["by"] == "." else (two, one)
        return _moment(found, int(found["last"]), month, day)
    if found := _PART_OF_YEAR.fullmatch(cell):
        return _part_of_year(found)
    found = _TIME_OF_DAY.fullmatch(cell)
    if found and (second := _second_of_day(found)) is not None:
        return "times of day", second
    duration = _duration(cell)
    return None if duration is None else ("durations", duration)


def _part_of_year(found: re.Match[str]) -> tuple[Kind, Fraction] | None:
    """Return a month, a week or a quarter."""
    year, sign, number = int(found[1]), found[2], int(found[3])
    if sign == "W":
        try:
            return "weeks", Fraction(
                date.fromisocalendar(year, number, 1).toordinal() // _WEEK_DAYS
            )
        except ValueError:  # not every year has 53
            return None
    n_parts = _QUARTERS if sign else _MONTHS
    if not 1 <= number <= n_parts or len(found[3]) != (1 if sign else 2):
        return None
    return "quarters" if sign else "months", Fraction(year * n_parts + number - 1)


def _moment(found: re.Match[str], year: int, month: int, day: int) -> tuple[Kind, Fraction] | None:
    try:
        number = date(year, month, day).toordinal()
    except ValueError:
        return None
    if found["h"] is None:
        return "dates", Fraction(number)
    second = _second_of_day(found)
    if second is None:
        return None
    at = number * _DAY_S + second
    zone = found["zone"]
    if zone is None:
        return "times", at
    if zone not in "Zz":
        hours, minutes = int(zone[1:3]), int(zone[-2:])
        at -= (hours * _HOUR_S + minutes * _MINUTE_S) * (-1 if zone[0] == "-" else 1)
    # UTC may lie on the day before the first or after the last of the calendar.
    days = at // _DAY_S
    known = date.min.toordinal() <= days <= date.max.toordinal()
    return ("times with a zone", at) if known else None


def _second_of_day(found: re.Match[str]) -> Fraction | None:
    hour = int(found["h"])
    if found["half"]:
        if not 1 <= hour <= _HALF_DAY:
            return None
        hour = hour % _HALF_DAY + (_HALF_DAY if found["half"] in "Pp" else 0)
    if hour >= _HOURS:
        return None
    return hour * _HOUR_S + int(found["m"]) * _MINUTE_S + _exact(found["s"])


def _duration(cell: str) -> Fraction | None:
    if found := _ISO.fullmatch(cell):
        sign, *parts = found.groups()
        total = sum((_exact(n) * s for n, s in zip(parts, _ISO_S, strict=True)), Fraction())
    elif found := _LONG_CLOCK.fullmatch(cell):
        days, sign, hours, minutes, seconds = found.groups()
        total = int(hours) * _HOUR_S + int(minutes) * _MINUTE_S + _exact(seconds)
        if days is not None:  # "-1 day, 23:00:00" is an hour before
            return int(days) * _DAY_S + (-total if sign == "-" else total)
    elif found := _UNITS.fullmatch(cell):
        sign, total = found[1], Fraction()
        for number, unit in _UNIT.findall(found[2]):
            if unit not in _UNIT_S:
                return None
            total += _exact(number) * _UNIT_S[unit]
    else:
        return None
    return -total if sign == "-" else total


def _exact(number: str | None) -> Fraction:
    return Fraction((number or "0").replace(",", "."))
