"""What all codecs share: reading JSON without ever raising, and judging what was read.

What a device sensed beside its position: numbers under names, each judged by itself.

Readings are kept undecoded until the position is read, so that a bad one costs itself alone. One
name stands for one thing in one unit across all formats that define it: `speed_mps`,
`heading_deg` (clockwise from north), `battery_percent`. Where a format leaves names to the device
they are its own, in snake case.

Times written as text.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from functools import lru_cache
from math import inf
from typing import Annotated, TypeAlias, TypeVar

import msgspec
from msgspec import Meta, Raw
from msgspec.json import Decoder

from anonymizer.domain.fixes import Fix, checked_fix
from anonymizer.domain.outcomes import Outcome


def unix_s(text: str, zone: tzinfo = UTC) -> float | None:
    """Return the unix seconds of an ISO 8601 time, or None where it is none.

    A time without an offset is of `zone`. Digits below the microsecond are cut off. About 0.4 µs.
    """
    try:
        stated = datetime.fromisoformat(text)
    except ValueError:
        return None
    if stated.tzinfo is None:
        stated = stated.replace(tzinfo=zone)
    # Of an aware time this is a plain difference of two instants: no platform calls, and no
    # overflow, whatever the year and the offset.
    return stated.timestamp()


Codec: TypeAlias = Callable[[bytes], Sequence[Fix | Outcome]]

# Bounded, because a longer integer than any real id can be too long to be written as text.
DeviceId: TypeAlias = str | Annotated[int, Meta(ge=0, le=2**63 - 1)]
Int32: TypeAlias = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
Digits: TypeAlias = Annotated[str, Meta(pattern=r"^-?[0-9]{1,20}\Z")]
"""An integer written as text, as some formats do."""

T = TypeVar("T")
R = TypeVar("R", bound="Stated")


class Stated(msgspec.Struct, gc=False):
    """Base of every part of a payload: what a device stated, not yet judged."""

    def __repr__(self) -> str:
        """Say nothing of where or who."""
        return f"{type(self).__name__}(...)"


def read(decoder: Decoder[T], payload: bytes) -> T | Outcome:
    """Return the decoded payload, or why it cannot be: empty, malformed or schema.

    A wrong type that stands before a syntax error is found first, and is the reason given.
    """
    if not payload:
        return Outcome.INVALID__EMPTY
    if not payload.isascii():
        # msgspec looks at the text it keeps, not at the text it skips; JSON is UTF-8 throughout.
        try:
            payload.decode()
        except UnicodeDecodeError:
            return Outcome.INVALID__MALFORMED
    return read_part(decoder, payload)


def read_part(decoder: Decoder[T], part: bytes | Raw) -> T | Outcome:
    """Decode a part of a payload that `read` has returned; otherwise the same.

    These exceptions are all that can come: msgspec wraps its own findings in DecodeError
    (ValidationError, below it, when the JSON is sound but not of the wanted shape; numbers
    beyond their type are that too, so nothing overflows), nesting beyond the interpreter's
    stack is a RecursionError, and `read` has already refused what is not UTF-8.
    """
    try:
        return decoder.decode(part)
    except msgspec.ValidationError:
        return Outcome.INVALID__SCHEMA
    except (msgspec.DecodeError, RecursionError):
        return Outcome.INVALID__MALFORMED


def stated_fix(
    lat: float,
    lon: float,
    *,
    time: float | str | None = None,
    device: str | int | None = None,
    readings: dict[str, float] | None = None,
) -> Fix | Outcome:
    """Return the fix, or why what was stated cannot be one.

    Parameters
    ----------
    lat, lon
        WGS84 degrees.
    time
        Unix seconds, or ISO 8601 text, or None when not stated.
    device
        The id as stated, or None when not stated. Stated but empty is refused: the device
        claims to say who it is, and does not.
    readings
        Finite numbers by name, or None.
    """
    if isinstance(time, str):
        time = unix_s(time)
        if time is None:
            return Outcome.INVALID__SCHEMA
    if device is not None:
        device = str(device)
        if not device:
            return Outcome.INVALID__NO_DEVICE
    return checked_fix(lat, lon, time, device, readings)


def one_or_many(record: type[R], fix_of: Callable[[R], Fix | Outcome]) -> Codec:
    """Make the codec of a format that sends one record, or an array of them.

    The records of an array are decoded one by one: a bad one spoils no other.
    """
    record_decoder = Decoder(record)
    message_decoder: Decoder[R | list[Raw]] = Decoder(record | list[Raw])

    def fix_of_part(part: Raw) -> Fix | Outcome:
        stated = read_part(record_decoder, part)
        return stated if isinstance(stated, Outcome) else fix_of(stated)

    def decode(payload: bytes) -> Sequence[Fix | Outcome]:
        message = read(message_decoder, payload)
        if isinstance(message, Outcome):
            return [message]
        if isinstance(message, list):
            return [fix_of_part(part) for part in message] or [Outcome.INVALID__EMPTY]
        return [fix_of(message)]

    return decode


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
