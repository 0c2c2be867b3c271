"""Times as devices state them: numbers in a unit, and texts like ISO 8601.

- A time of 1970 or before is none: clocks that were never set state 0, the year 1, or -1.
- A number whose size is that of another unit is refused, and the reason names the unit: from 1973
  to 5138 seconds have 9 to 11 digits, milliseconds 12 to 14, and so on.
- Text may leave out the separators (AIS: `YYYYMMDDhhmmss`), also the seconds, or have milliseconds
  more, and say 24:00 or the leap second :60, which is the second after :59. Other forms (day first,
  12 hours, names of months, two digits of a year) are refused: what they mean differs from country
  to country. So is a day alone.
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
TimeUnit: TypeAlias = Literal["s", "ms", "us", "ns", "iso8601", "s_ago"]

PER_SECOND: Mapping[NumberUnit, float] = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}
_LEAST_S, MOST_S = 1e8, 1e11
"""Seconds since 1970 of March 1973 and November 5138."""
_SINCE_2001_S = 1e9
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
_DAY_S = 86_400
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
_ODD_ENDS = frozenset("CTct]")
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
    that clocks repeat in autumn, a local time is its first occurrence.
    """
    more_s = 0
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


def _iso_of(text: str) -> tuple[str, int]:
    """Return a text for `datetime`, empty if it is none, and the seconds by which it is later."""
    found = _ODD.fullmatch(text.strip())
    if found is None:
        return "", 0
    year, month, day, hour, minute, second, fraction, zone = found.groups()
    second, fraction, more_s = second or "00", fraction or "0", 0
    if hour == "24" and not int(minute + second + fraction):
        hour, more_s = "00", _DAY_S
    elif second == "60":
        second, more_s = "59", 1
    zone = "Z" if (zone or "").upper() in {"Z", "UTC", "GMT"} else zone or ""
    return f"{year}-{month}-{day}T{hour}:{minute}:{second}.{fraction}{zone}", more_s


def zone_of(text: str) -> tzinfo:
    """Return the zone that settings state: `UTC`, an offset `+05:30`, or a name of the IANA.

    Raises
    ------
    ValueError
        If there is none.
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
    if unit == "s" and _LEAST_S <= number < MOST_S:
        return float(number)
    if not (isfinite(number) and number > 0):
        return None
    if calendar_number(number) is not None:
        return Outcome.INVALID__SCHEMA
    for other, per_second in PER_SECOND.items():
        if _LEAST_S * per_second <= number < MOST_S * per_second:
            return number / per_second if other == unit else _REASON[other]
    seconds = number / PER_SECOND[unit]
    return seconds if seconds < MOST_S else Outcome.INVALID__FUTURE_TIME


def stated_time(text: str, zone: tzinfo | None = None) -> StatedInstant | Outcome | None:
    """Return the time that a text states; None if it means that there is none, or the reason."""
    text = text.strip(PADDING)
    found = instant(text, zone) if len(text) > _DAY_CHARS else None
    if found is None:
        return None if text.startswith(_NO_DAY) else Outcome.INVALID__SCHEMA
    return found if found.unix_s > 0 else None


def calendar_number(number: float, zone: tzinfo | None = None) -> StatedInstant | None:
    """Return the time of digits of a date and a time, None if they are none; see `instant`."""
    if not (_LEAST_DIGITS <= number < _MOST_DIGITS and number == int(number)):
        return None
    return instant(str(int(number)), zone)


def is_time_of_any_unit(number: float) -> bool:
    """Return whether a number can be a time since 2001 in some unit."""
    return any(_SINCE_2001_S <= number / each < MOST_S for each in PER_SECOND.values())
