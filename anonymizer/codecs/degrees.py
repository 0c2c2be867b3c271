"""Coordinates as devices state them: degrees, radians, degrees with minutes; numbers or texts.

A latitude of 33 may be north or south where a letter says which, in the text (`33.17S`) or in a
member beside it. What nobody declared, and is no signed number of degrees, is refused: a place on
the other side of the earth would pass every later test.
"""

import re
from math import inf, isfinite, pi
from typing import Any, Literal, TypeAlias

from anonymizer.codecs.mending import NO_VALUE
from anonymizer.codecs.times import PADDING
from anonymizer.domain.outcomes import Outcome

Scale: TypeAlias = float | Literal["radians", "ddmm"]
"""What numbers are multiplied by to be degrees; or their form: `ddmm` is 6010.2 for 60° 10.2'."""

LAT_LETTERS, LON_LETTERS = "NS", "EW"
_MOST_DIGITS = 20
_is_numeral = re.compile(
    r"[+-]?+[0-9]{1,20}+(?:\.[0-9]{1,20}+)?+(?:[eE][+-]?+[0-9]{1,3}+)?+"
).fullmatch
_with_letter = re.compile(
    r"(?P<front>[NSEW])?\s?(?P<number>[0-9]{1,5}+(?:\.[0-9]{1,20}+)?+)\s?°?\s?(?P<end>[NSEW])?",
    re.IGNORECASE,
).fullmatch
_has_minutes = re.compile(r"[+-]?+0[0-9]{3}").match
"""Four digits before the point, or more, of which the first is 0: `0010.2`, `00056.4`."""
_DIGIT = re.compile(r"[0-9]")
_WORDS = {"NORTH": "N", "SOUTH": "S", "EAST": "E", "WEST": "W"}
_NEGATIVE = frozenset("SW")


def numeral(text: str) -> float | None:
    """Return the finite number that a text spells; None for spaces, commas, or names like `inf`."""
    if text.isdecimal() and text.isascii() and len(text) <= _MOST_DIGITS:
        return float(text)
    value = float(text) if _is_numeral(text) else inf
    return value if isfinite(value) else None


def per_degree_of(scale: Scale) -> float:
    """Return the steps in a degree: whole where the scale says so, 1e7 for 1e-7."""
    if scale == "ddmm":
        return 1.0
    if scale == "radians":
        return pi / 180
    per_degree = 1.0 / scale
    whole = float(round(per_degree))
    return whole if abs(per_degree - whole) < 1e-6 * whole else per_degree


def of_minutes(value: float) -> float | Outcome:
    """Return the degrees of degrees times 100 plus minutes, as of NMEA 0183."""
    degrees, minutes = divmod(abs(value), 100.0)
    if not minutes < 60.0:
        return Outcome.INVALID__NOT_DEGREES
    return (degrees + minutes / 60.0) * (-1.0 if value < 0 else 1.0)


def coordinate_in(text: str, letters: str, *, plain: bool = True) -> float | Outcome | None:
    """Return the number that a text spells; None if it says that there is none, or the reason.

    `letters`: the two that it may have, of which the second stands for numbers below 0. `plain`:
    whether it is in degrees, so that minutes are told from them.
    """
    text = text.strip(PADDING)
    value = numeral(text)
    if value is not None:
        if plain and text[0] in "0+-" and _has_minutes(text):
            return Outcome.INVALID__NOT_DEGREES
        return value
    if text.lower() in NO_VALUE:
        return None
    found = _with_letter(text)
    if found is None:
        has_digits = _DIGIT.search(text) is not None
        return Outcome.INVALID__NOT_DEGREES if has_digits else Outcome.INVALID__SCHEMA
    stated = ((found["front"] or "") + (found["end"] or "")).upper()
    number = found["number"]
    if len(stated) > 1 or stated not in letters or (plain and _has_minutes(number)):
        return Outcome.INVALID__NOT_DEGREES
    return -float(number) if stated in _NEGATIVE and stated else float(number)


def signed(number: float, letter: Any, letters: str) -> float | Outcome:  # noqa: ANN401  any JSON
    """Return a number with the sign of a letter beside it, `S` or `south`, in any case."""
    stated = letter.strip(PADDING).upper() if isinstance(letter, str) else ""
    stated = _WORDS.get(stated, stated)
    if len(stated) != 1 or stated not in letters:
        return Outcome.INVALID__NOT_DEGREES
    if stated in _NEGATIVE:
        return -abs(number)
    return number if number >= 0 else Outcome.INVALID__NOT_DEGREES
