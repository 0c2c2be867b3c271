"""Times as devices state them: numbers in a unit, and texts like ISO 8601.

- A time before 1970 is none: clocks that were never set state 0, the year 1, or -1. So are the
  other days on which such clocks begin or end, see `is_unset`.
- A number whose size is that of another unit is refused, and the reason names the unit: from 1973
  to 5138 seconds have 9 to 11 digits, milliseconds 12 to 14, and so on.
- Text may leave out the separators (AIS: `YYYYMMDDhhmmss`), also the seconds, or have milliseconds
  more, and say 24:00 or the leap second :60, which is the second after :59. English names of
  months are read (RFC 1123, `date`, JavaScript), and `/Date(1800000000000)/` of .NET. Other forms
  (day first, 12 hours, two digits of a year) are refused: what they mean differs from country to
  country. So is a day alone.
- A text without an offset is in the zone that the settings state, else in UTC. As nobody said so,
  such a time is `zoneless`: if it is not plausible, the missing zone is the reason that is given.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from math import inf, isfinite
from typing import Literal, NamedTuple, TypeAlias
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from anonymizer.domain.outcomes import Outcome

NumberUnit: TypeAlias = Literal["s", "ms", "us", "ns"]
TimeUnit: TypeAlias = Literal["s", "ms", "us", "ns", "iso8601", "ddmmyy", "s_ago"]

PER_SECOND: Mapping[NumberUnit, float] = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}
_LEAST_S, MOST_S = 1e8, 1e11
"""Seconds since 1970 of March 1973 and November 5138."""
_SINCE_2001_S = 1e9
_DAY_S = 86_400
_LARGEST = (2.0**31 - 1, 2.0**32 - 1)
LEAST_CERTAIN_S, MOST_CERTAIN_S = _SINCE_2001_S, 2.0**31 - 1
"""Unix seconds between these are a time whatever else they could mean."""
_UNSET_S = ((315_532_800.0, 316_051_200.0), (253_370_764_800.0, 253_402_300_800.0))
"""From the epoch of FAT to the day of that of GPS, 1 to 6 January 1980; the year 9999."""
_REASON: Mapping[NumberUnit, Outcome] = {
    "s": Outcome.INVALID__TIME_IN_S,
    "ms": Outcome.INVALID__TIME_IN_MS,
    "us": Outcome.INVALID__TIME_IN_US,
    "ns": Outcome.INVALID__TIME_IN_NS,
}
PADDING = " \t\r\n\0"
"""What fills up texts of fixed width."""
HYPHENS = slice(4, 8, 3)
"""Where a date has its hyphens; neither a number nor a word for none has two of them there."""
_NO_DAY = "0000-00-00"
"""Begin of a date that was never set, as databases write it."""
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001  of times without a zone, which are in UTC
_DIGITS = re.compile(r"(?:19|20)\d{10}|\d{14}(?:\d{3})?", re.ASCII)
"""YYYYMMDDhhmm, YYYYMMDDhhmmss, or milliseconds as well."""
_LEAST_DIGITS, _MOST_DIGITS = 1e11, 1e17
_DAY_CHARS = len("YYYY-MM-DD")
_ODD = re.compile(
    r"(\d{4})[-/.]?(\d\d)[-/.]?(\d\d)[T _]?(\d\d):?(\d\d)(?::?(\d\d)(?:[.,](\d+))?)?"
    r" ?(Z|UTC|GMT|[+-]\d\d(?::?\d\d)?)?(?: (?:UTC|GMT)|\[[A-Z0-9/_+-]+\])?",
    re.ASCII | re.IGNORECASE,
)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_NAMED = re.compile(
    rf"(?:[a-z]{{3}},? )?(?:(?P<d>\d\d?)[ -](?P<m>{'|'.join(_MONTHS)})[ -](?P<y>\d{{4}})"
    rf"|(?P<m2>{'|'.join(_MONTHS)}) +(?P<d2>\d\d?)(?: (?P<y2>\d{{4}}))?)"
    r" (?P<clock>\d\d:\d\d:\d\d)(?(y)|(?(y2)| (?P<y3>\d{4})))"
    r" ?(?P<zone>Z|UTC|GMT)?(?P<offset>[+-]\d{4})?(?: \([^()]{1,64}\))?",
    re.ASCII | re.IGNORECASE,
)
"""Dates with the name of a month and four digits of the year, whose order cannot be mistaken."""
_OF_NET = re.compile(r"\\?/Date\((\d{1,16})(?:[+-]\d{4})?\)\\?/", re.ASCII)
"""Milliseconds; an offset says only how to show them."""
_DAY_FIRST = re.compile(r"(\d\d)(\d\d)(\d\d)T?(\d{6}(?:\.\d{1,9})?)", re.ASCII)
_ODD_ENDS = frozenset("CTct])/")
"""Ends of odd texts that Python never reads, which to try would cost a microsecond."""
_OFFSET = re.compile(r"([+-])(\d\d):?([0-5]\d)?", re.ASCII)


class StatedInstant(NamedTuple):
    """A time: unix seconds, and whether its text had no zone and none was given."""

    unix_s: float
    zoneless: bool = False


def ago(age_s: float) -> StatedInstant | None:
    """Return the time of what was measured so many seconds before it arrives; None if just then.

    It is below 0, see `Fix.ts`.
    """
    return StatedInstant(-age_s) if 0 < age_s < inf else None


def instant(text: str, zone: tzinfo | None = None) -> StatedInstant | None:
    """Return the time that a text states, None if it is not one. About 0.5 µs.

    `zone` is that of texts without an offset. Digits below the microsecond are cut off. In the hour
    that clocks repeat in autumn, a local time is its first occurrence, see `second_reading`.
    """
    more_s = 0.0
    if text.isdigit():
        if not _DIGITS.fullmatch(text):
            return None
        text = f"{text[:8]}T{text[8:14]}" + (f".{text[14:]}" if text[14:] else "")
    elif text[-1:] in _ODD_ENDS:
        text, more_s = _iso_of(text)
    try:
        stated = datetime.fromisoformat(text)
    except ValueError:
        text, more_s = _iso_of(text)
        try:
            stated = datetime.fromisoformat(text)
        except ValueError:
            return None
    if stated.tzinfo is None and zone is None:
        return StatedInstant((stated - _EPOCH).total_seconds() + more_s, zoneless=True)
    if stated.tzinfo is None:
        stated = stated.replace(tzinfo=zone)
    # For an aware time this is a plain difference of two instants: no platform calls, and no
    # overflow, whatever the year and the offset.
    return StatedInstant(stated.timestamp() + more_s)


def unix_s(text: str, zone: tzinfo = UTC) -> float | None:
    """Return the unix seconds of a text, see `instant`."""
    found = instant(text, zone)
    return None if found is None else found.unix_s


def second_reading(unix_s: float, zone: tzinfo) -> float:
    """Return when clocks read again what they read at a time; if they do not, that time itself."""
    return datetime.fromtimestamp(unix_s, zone).replace(fold=1).timestamp()


def _iso_of(text: str) -> tuple[str, float]:
    """Return a text for `datetime`, empty if it is none, and the seconds by which it is later."""
    text = text.strip()
    found = _ODD.fullmatch(_of_named_month(text))
    if found is None:
        net = _OF_NET.fullmatch(text)
        return ("", 0) if net is None else ("1970-01-01T00:00:00Z", int(net[1]) / 1e3)
    year, month, day, hour, minute, second, fraction, zone = found.groups()
    second, fraction, more_s = second or "00", fraction or "0", 0
    if hour == "24" and not int(minute + second + fraction):
        hour, more_s = "00", _DAY_S
    elif second == "60":
        second, more_s = "59", 1
    zone = "Z" if (zone or "").upper() in {"Z", "UTC", "GMT"} else zone or ""
    return f"{year}-{month}-{day}T{hour}:{minute}:{second}.{fraction}{zone}", more_s


def _of_named_month(text: str) -> str:
    """Return a date with the name of a month with its number, other texts as they are."""
    found = _NAMED.fullmatch(text)
    if found is None:
        return text
    of = found.groupdict()
    month = _MONTHS.index((of["m"] or of["m2"]).lower()) + 1
    year, day = of["y"] or of["y2"] or of["y3"], int(of["d"] or of["d2"])
    return f"{year}-{month:02}-{day:02}T{of['clock']}{of['offset'] or of['zone'] or ''}"


def zone_of(text: str) -> tzinfo:
    """Return the zone that settings state: `UTC`, an offset `+05:30`, or a name of the IANA.

    Raises `ValueError` if there is none.
    """
    found = _OFFSET.fullmatch(text)
    if text.upper() in {"UTC", "Z"}:
        return UTC
    if found is not None:
        offset = timedelta(hours=int(found[2]), minutes=int(found[3] or 0))
        return timezone(-offset if found[1] == "-" else offset)
    try:
        return ZoneInfo(text)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError("must be UTC, an offset as +05:30, or a name as Europe/Helsinki") from None


def in_seconds(number: float, unit: NumberUnit = "s") -> float | Outcome | None:
    """Return the unix seconds of a number; None if it means that there is no time, or the reason.

    Only numbers of a size that no time has in `unit` are refused, and the digits of a date and a
    time, which would be of 1976 or 2612.
    """
    if unit == "s" and LEAST_CERTAIN_S <= number < MOST_CERTAIN_S:
        return float(number)
    if not (isfinite(number) and number > 0) or number in _LARGEST:
        return None
    if is_unset(seconds := number / PER_SECOND[unit]):
        return None
    if calendar_number(number) is not None:
        return Outcome.INVALID__TIME_FORM
    for other, per_second in PER_SECOND.items():
        if _LEAST_S * per_second <= number < MOST_S * per_second:
            return number / per_second if other == unit else _REASON[other]
    return seconds if seconds < MOST_S else Outcome.INVALID__FUTURE_TIME


def is_unset(unix_s: float) -> bool:
    """Return whether a time is where a clock begins that was never set, or where none ends.

    That is before 1970, the first days of 1980 and the year 9999.
    """
    if LEAST_CERTAIN_S <= unix_s < MOST_CERTAIN_S:
        return False
    return unix_s <= 0 or any(first <= unix_s < last for first, last in _UNSET_S)


def stated_time(text: str, zone: tzinfo | None = None) -> StatedInstant | Outcome | None:
    """Return the time that a text states; None if it means that there is none, or the reason."""
    text = text.strip(PADDING)
    found = instant(text, zone) if len(text) > _DAY_CHARS else None
    if found is None:
        return None if text.startswith(_NO_DAY) else Outcome.INVALID__TIME_FORM
    return None if is_unset(found.unix_s) else found


def dated(date: object, clock: object) -> object:
    """Return a date and a time of day, each a text or a number of digits, as one text.

    None where either says that there is none; what is missing is as missing in the text.
    """
    if date is None or clock is None:
        return None
    return f"{_digits(date)}T{_digits(clock)}"


def _digits(stated: object) -> str:
    """Return a number such as 80000.5 with the zeros in front that a text has; a text as it is."""
    if not isinstance(stated, float):
        return stated.strip(PADDING) if isinstance(stated, str) else ""
    whole, fraction = divmod(stated, 1.0) if isfinite(stated) else (0.0, 0.0)
    return f"{int(whole):06}" + f"{fraction:.3f}"[1:] * (fraction > 0)


def day_first(stated: float | str, zone: tzinfo | None = None) -> StatedInstant | Outcome | None:
    """Return the time of `ddmmyy` and `hhmmss`, as of NMEA 0183, which are in UTC unless said."""
    text = stated.strip(PADDING) if isinstance(stated, str) else f"{stated:012.0f}"
    found = _DAY_FIRST.fullmatch(text)
    if found is None:
        return None if text in {"", "T"} else Outcome.INVALID__TIME_FORM
    day, month, year, clock = found.groups()
    if day == "00":
        return None
    return stated_time(f"20{year}-{month}-{day}T{clock}", zone or UTC)


def calendar_number(number: float, zone: tzinfo | None = None) -> StatedInstant | None:
    """Return the time of digits of a date and a time, None if they are none; see `instant`."""
    if not (_LEAST_DIGITS <= number < _MOST_DIGITS and number == int(number)):
        return None
    return instant(str(int(number)), zone)


def is_time_of_any_unit(number: float) -> bool:
    """Return whether a number can be a time since 2001 in some unit."""
    return any(_SINCE_2001_S <= number / each < MOST_S for each in PER_SECOND.values())
