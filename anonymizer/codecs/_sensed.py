"""What a device sensed beside its position: numbers under names, each judged by itself.

Readings are kept undecoded until the position is read, so that a bad one costs itself alone. One
name stands for one thing in one unit across all formats that define it: `speed_mps`,
`heading_deg` (clockwise from north), `battery_percent`. Where a format leaves names to the device
they are its own, in snake case.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from math import inf
from typing import TypeAlias

from msgspec import Raw
from msgspec.json import Decoder

from anonymizer.codecs._fields import read_part
from anonymizer.domain.outcomes import Outcome

Readings: TypeAlias = dict[str, float] | None
"""Finite numbers by name; None where there is none."""

UNSTATED = Raw(b"null")
"""Default of every field that holds a reading; known by identity."""
MPS_PER_KMH = 1 / 3.6
MPS_PER_KNOT = 1852 / 3600

_MAX_NAME_CHARS = 64
_NUMBER = Decoder(float)
_NUMBERS = Decoder(dict[str, float])
_PARTS = Decoder(dict[str, Raw])


def number(part: Raw) -> float | None:
    """Return a finite number, or None for anything else, also for a flag or a text."""
    value = read_part(_NUMBER, part)
    return None if isinstance(value, Outcome) else value


def measured(*fields: tuple[str, Raw, float]) -> Readings:
    """Return fields as name, stated part and unit factor; what is no number is left out.

    So is what is negative: several formats say *unknown* by -1, and none of these quantities is
    ever below 0. About 0.3 µs a stated field.
    """
    found = {}
    for name, part, factor in fields:
        if part is not UNSTATED:
            value = number(part)
            if value is not None and 0.0 <= value * factor < inf:
                found[name] = value * factor
    return found or None


def numbers_in(part: Raw) -> Readings:
    """Return the numbers of an object under their own names. About 0.4 µs for three."""
    numbers = read_part(_NUMBERS, part)
    if isinstance(numbers, Outcome):
        parts = read_part(_PARTS, part)
        if isinstance(parts, Outcome):
            return None
        stated = ((name, number(value)) for name, value in parts.items())
        numbers = {name: value for name, value in stated if value is not None}
    return numbers or None


def named_numbers(parts: Mapping[str, Raw]) -> dict[str, float]:
    """Return the numbers under their names in snake case, the first of each name."""
    found: dict[str, float] = {}
    for stated, part in parts.items():
        if len(stated) <= _MAX_NAME_CHARS:
            value = number(part)
            if value is not None:
                found.setdefault(_snake(stated), value)
    return found


def parts_in(part: Raw) -> dict[str, Raw]:
    """Return the members of an object, none of what is no object."""
    parts = read_part(_PARTS, part)
    return {} if isinstance(parts, Outcome) else parts


@lru_cache(maxsize=1024)
def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|[^0-9A-Za-z]+", "_", name).lower()
