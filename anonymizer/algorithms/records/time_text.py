"""Dates, times and durations of a table, read for its audit.

Shares no code with what makes labels of them: it counts days by itself, and asks the cells of the
original alone whether a date begins with the day or with the month.
"""

import re
from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache

_DAYS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_SECONDS = {
    unit: Fraction(seconds)
    for seconds, units in (
        (604_800, "W week weeks"),
        (86_400, "D d day days"),
        (3_600, "H h hr hrs hour hours"),
        (60, "M min mins minute minutes"),
        (1, "S s sec secs second seconds"),
        ("1/1000", "ms"),
    )
    for unit in units.split()
}
_PART = r"(\d+(?:[.,]\d+)?) ?([A-Za-z]+)"
_MONTHS, _YEAR_DIGITS = 12, 4
_A_MONDAY = 6
"""Remainder by seven of the count of days of Mondays."""


class TimeText:
    """Reads the times of one column.

    Parameters
    ----------
    cells
        Its different cells, without missing ones.
    """

    def __init__(self, cells: Iterable[str]) -> None:
        there = list(cells)
        self._day_first = True
        self._day_first = all(self.number(cell) is not None for cell in there)

    def node(self, text: str) -> str | None:
        """Return the calendar hour of a time, `2023-01-31T09`; of a date or month what it has."""
        number = self.number(text)
        if number is None or _duration(text) is not None:
            return None
        if re.fullmatch(r"\d{4}-(\d\d|W\d\d|Q\d)", text):
            return text
        if not re.match(r"\d+[-/.]\d", text):
            return f"T{int(number) // 3_600:02}"
        days = int(number if ":" not in text else number // 86_400)
        day = _civil(days)
        return day if ":" not in text else f"{day}T{int(number) % 86_400 // 3_600:02}"

    def number(self, text: str) -> Fraction | None:
        """Return the number of a time, in the unit of its kind or seconds; None: it is none."""
        if part := re.fullmatch(r"(\d{4})-([WQ]?)(\d\d?)", text):
            year, number = int(part[1]), int(part[3])
            first = (_days_since(year, 1, 4) - _A_MONDAY) // 7  # the week of 4 January
            before = {"": year * 12, "Q": year * 4, "W": first}[part[2]]
            return Fraction(before + number)
        day = re.match(r"\d+[-/.]\d+[-/.]\d+", text)
        if day is None:
            clock = _clock(text)
            return _duration(text) if clock is None else clock
        days = self._days(day[0])
        rest = text[day.end() :].lstrip("Tt ")
        if days is None or not rest:
            return None if days is None else Fraction(days)
        zone = re.search(r" ?(?:[Zz]|([+-])(\d\d):?(\d\d))$", rest)
        second = _clock(rest[: zone.start()] if zone else rest)
        if second is None:
            return None
        if zone and zone[1]:
            ahead = (int(zone[2]) * 60 + int(zone[3])) * 60
            second -= ahead if zone[1] == "+" else -ahead
        return days * 86_400 + second

    def _days(self, text: str) -> int | None:
        """Return the days of a date since 1 March of the year 0."""
        texts = re.split(r"[-/.]", text)
        parts = [int(part) for part in texts]
        if len(texts[0]) == _YEAR_DIGITS:
            year, month, day = parts
        elif self._day_first or "." in text:
            day, month, year = parts
        else:
            month, day, year = parts
        leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
        if not (year > 0 and 1 <= month <= _MONTHS and 1 <= day <= _DAYS[month - 1]):
            return None
        if (month, day) == (2, 29) and not leap:
            return None
        return _days_since(year, month, day)


def _days_since(year: int, month: int, day: int) -> int:
    """Count days of years that begin in March, so that a leap day is the last of a year."""
    if month < 3:
        year, month = year - 1, month + 12
    return 365 * year + year // 4 - year // 100 + year // 400 + (153 * (month - 3) + 2) // 5 + day


@lru_cache(maxsize=65_536)
def _civil(days: int) -> str:
    """Return the date of days since 1 March of the year 0."""
    year = days * 400 // 146_097 + 1
    while _days_since(year, 1, 1) > days:
        year -= 1
    month = next(m for m in range(12, 0, -1) if _days_since(year, m, 1) <= days)
    return f"{year:04}-{month:02}-{days - _days_since(year, month, 1) + 1:02}"


def _clock(text: str) -> Fraction | None:
    """Return the seconds of `13:05:07.25` or `1:05 pm`; hours may be beyond a day."""
    half = re.search(r" ?([AaPp])[Mm]$", text)
    parts = (text[: half.start()] if half else text).replace(",", ".").split(":")
    shapes = (r"\d+", r"\d\d", r"\d\d(?:\.\d+)?")
    if not 2 <= len(parts) <= len(shapes):
        return None
    if not all(re.fullmatch(s, p) for s, p in zip(shapes, parts, strict=False)):
        return None
    hour, *rest = (Fraction(part) for part in parts)
    if half:
        hour = hour % 12 + (12 if half[1] in "Pp" else 0)
    return hour * 3_600 + sum((n / 60**i for i, n in enumerate(rest)), Fraction()) * 60


def _duration(text: str) -> Fraction | None:
    """Return the seconds of `PT1H30M`, `1 days 02:00:00`, `-26:30` or `1 h 30 min`."""
    days = re.match(r"([+-]?\d+) days?,? (?=[+-]?\d+:)", text)
    if days:
        rest = _duration(text[days.end() :])
        rest = _clock(text[days.end() :]) if rest is None else rest
        return None if rest is None else Fraction(int(days[1]) * 86_400) + rest
    if text[:1] in "+-" and text[1:]:
        rest = _clock(text[1:])
        rest = _duration(text[1:]) if rest is None else rest
        return None if rest is None else (-rest if text[0] == "-" else rest)
    if text.startswith("P"):
        text = text[1:].replace("T", "")
    if re.fullmatch(rf"{_PART}(?:[ ,]*{_PART})*", text) is None:
        return None
    parts = re.findall(_PART, text)
    if any(unit not in _SECONDS for _, unit in parts):
        return None
    return sum((Fraction(n.replace(",", ".")) * _SECONDS[unit] for n, unit in parts), Fraction())
