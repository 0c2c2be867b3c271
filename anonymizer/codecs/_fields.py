"""Building blocks of the codecs: strict JSON that never raises, times, fixes and readings.

Readings are left undecoded until the position has been read, so a bad reading costs only itself.
A name means one quantity in one unit across all formats that define it: `speed_mps`,
`heading_deg` (clockwise from north), `battery_percent`. Where a format leaves the names to the
device, they are the device's own, in snake case.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import tzinfo
from functools import lru_cache
from math import inf, isfinite, isnan, nan
from typing import Annotated, Any, TypeAlias, TypeVar

import msgspec
from msgspec import Meta, Raw
from msgspec.json import Decoder

from anonymizer.codecs.degrees import LAT_LETTERS, LON_LETTERS, coordinate_in, numeral
from anonymizer.codecs.mending import NO_VALUE, mended, unreadable
from anonymizer.codecs.times import (
    HYPHENS,
    PADDING,
    StatedInstant,
    calendar_number,
    in_seconds,
    stated_time,
)
from anonymizer.domain.discreet import discreet
from anonymizer.domain.fixes import ACCURACY, Fix, checked_fix
from anonymizer.domain.outcomes import Outcome

Codec: TypeAlias = Callable[[bytes], Sequence[Fix | Outcome]]

# Bounded, because an integer longer than any real id can be too long to be converted to text.
DeviceId: TypeAlias = str | Annotated[int, Meta(ge=0, le=2**63 - 1)]
StatedId: TypeAlias = Any
"""An id as stated: most inputs take ids from topics, and what nobody reads may be anything."""
Int32: TypeAlias = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
Digits: TypeAlias = Annotated[str, Meta(pattern=r"^-?[0-9]{1,20}\Z")]
"""An integer written as text, as some formats do."""
Number: TypeAlias = float | str
"""A coordinate or a time as stated: a number, or its text, see `stated_fix`."""

Readings: TypeAlias = dict[str, float] | None
"""Numbers by name, NaN for what is stated and cannot be used; None where there are none."""

UNSTATED = Raw(b"null")
"""Default of every field that holds a reading; recognized by identity."""
MPS_PER_KMH = 1 / 3.6
MPS_PER_KNOT = 1852 / 3600

_MAX_NAME_CHARS = 64
_FEW = 100
"""Shorter arrays are read in any case."""
_MOST_ID = 2**63
_NO_TEXT = "\ufffd"
"""In place of bytes that are not text; two ids could become one."""
_NUMBER = Decoder(float)
_TEXT = Decoder(str)
_NUMBERS = Decoder(dict[str, float])
_PARTS = Decoder(dict[str, Raw])

T = TypeVar("T")
R = TypeVar("R", bound="Stated")


class SignError(Exception):
    """A hook of a decoder has found a sign that the place is none, see `fix_signs`."""

    def __init__(self, why: Outcome) -> None:
        super().__init__(why.name)
        self.why = why


@discreet
class Stated(msgspec.Struct, gc=False):
    """Base of every part of a payload: what a device stated, not yet validated."""


def read(decoder: Decoder[T], payload: bytes) -> T | Outcome:
    """Return the decoded payload, or the reason why it cannot be.

    Reasons are empty, malformed, schema, compressed and, where a hook looks for signs of it, no
    fix. Text that is nearly JSON is mended. A wrong type that precedes a syntax error is found
    first and is the reason given.
    """
    if not payload:
        return Outcome.INVALID__EMPTY
    if payload.isascii() or _is_utf8(payload):
        found = read_part(decoder, payload)
        if found is not Outcome.INVALID__MALFORMED:
            return found
    text = mended(payload)
    if text is not None:
        found = read_part(decoder, text)
        if found is not Outcome.INVALID__MALFORMED:
            return found
    return unreadable(payload)


def _is_utf8(payload: bytes) -> bool:
    """Return whether all of it is: msgspec validates the text that it keeps, not what it skips."""
    try:
        payload.decode()
    except UnicodeDecodeError:
        return False
    return True


def read_part(decoder: Decoder[T], part: bytes | Raw) -> T | Outcome:
    """Decode a part of a payload that `read` has returned; otherwise the same as `read`.

    No other exceptions can occur: msgspec wraps its own findings in DecodeError
    (ValidationError, a subclass, when the JSON is sound but has the wrong shape; numbers beyond
    their type are reported that way too, so nothing overflows), nesting beyond the
    interpreter's stack is a RecursionError, and `read` has already refused what is not UTF-8.
    """
    try:
        return decoder.decode(part)
    except msgspec.ValidationError:
        return Outcome.INVALID__SCHEMA
    except SignError as sign:
        return sign.why
    except (msgspec.DecodeError, RecursionError):
        return Outcome.INVALID__MALFORMED


def too_many(n: int, n_bytes: int, *, least: int) -> bool:
    """Return whether most of n items are too small for records; each would cost an error."""
    return n * least > max(n_bytes, _FEW * least)


def one_or_many(
    record: type[R],
    fix_of: Callable[[R], Fix | Outcome],
    *,
    least: int,
    dec_hook: Callable[[type, Any], Any] | None = None,
) -> Codec:
    """Make the codec of a format that sends either one record or an array of records.

    The records of an array are decoded one by one, so a bad one does not spoil the others.
    `least`: bytes of a record, with a comma; `dec_hook`: of msgspec.
    """
    record_decoder = Decoder(record, dec_hook=dec_hook)
    message_decoder: Decoder[R | list[Raw]] = Decoder(record | list[Raw], dec_hook=dec_hook)

    def fix_of_part(part: Raw) -> Fix | Outcome:
        stated = read_part(record_decoder, part)
        return stated if isinstance(stated, Outcome) else fix_of(stated)

    def decode(payload: bytes) -> Sequence[Fix | Outcome]:
        message = read(message_decoder, payload)
        if isinstance(message, Outcome):
            return [message]
        if isinstance(message, list):
            if too_many(len(message), len(payload), least=least):
                return [Outcome.INVALID__SCHEMA]
            return [fix_of_part(part) for part in message] or [Outcome.INVALID__EMPTY]
        return [fix_of(message)]

    return decode


def device_id(id_: object) -> str | None:
    """Return the text of a stated id, None if it is none: not text or a whole number, or empty."""
    if isinstance(id_, str):
        return id_ if id_ and _NO_TEXT not in id_ else None
    is_number = type(id_) is int and 0 <= id_ < _MOST_ID
    return str(id_) if is_number else None


def stated_fix(
    lat: Number | None,
    lon: Number | None,
    *,
    time: Number | StatedInstant | None = None,
    device: StatedId = None,
    readings: dict[str, float] | None = None,
) -> Fix | Outcome:
    """Return the fix, or the reason why the stated values cannot be one.

    Parameters
    ----------
    lat, lon
        WGS84 degrees, also as text; None, or a word that says so: the device has no fix.
    time
        Unix seconds, also as text, text like ISO 8601, what was read of it, or None when not
        stated.
    device
        The id as stated, or None when not stated. What cannot be an id is none.
    readings
        Numbers by name, or None.
    """
    # Numbers come first, as nearly all are: what texts say would cost each of them a tenth.
    if type(lat) is not float or type(lon) is not float:
        place = _place_of(lat, lon)
        if isinstance(place, Outcome):
            return place
        lat, lon = place
    zoneless = False
    if time is not None:
        when = time if isinstance(time, tuple) else time_of(time)
        if isinstance(when, float):
            time = when
        elif isinstance(when, Outcome):
            return when
        else:
            time, zoneless = when or (None, False)
    return checked_fix(lat, lon, time, device_id(device), readings, zoneless=zoneless)


def _place_of(lat: Number | None, lon: Number | None) -> tuple[float, float] | Outcome:
    lat = coordinate_in(lat, LAT_LETTERS) if isinstance(lat, str) else lat
    lon = coordinate_in(lon, LON_LETTERS) if isinstance(lon, str) else lon
    if lat is None or lon is None:
        return Outcome.INVALID__NO_FIX
    if isinstance(lat, Outcome):
        return lat
    return lon if isinstance(lon, Outcome) else (lat, lon)


def time_of(stated: Number) -> StatedInstant | float | Outcome | None:
    """Return a time: unix seconds, also as text, or text; None if it is none, or the reason."""
    if not isinstance(stated, str):
        return in_seconds(stated)
    if stated[HYPHENS] == "--":
        return stated_time(stated)
    number = numeral(stated.strip(PADDING))
    if number is None:
        return time_of_text(stated)
    return calendar_number(number) or in_seconds(number)


def time_of_text(text: str, zone: tzinfo | None = None) -> StatedInstant | Outcome | None:
    """Return the time of a text that is no number, see `stated_time`; None for `is_no_value`."""
    return None if is_no_value(text) else stated_time(text, zone)


def is_no_value(text: str) -> bool:
    """Return whether a text in place of a number says that there is none, as null does."""
    return text.strip(PADDING).lower() in NO_VALUE


_BEGIN_NUMBER = frozenset(b"-0123456789")
_BEGIN_TEXT = frozenset(b"+-0123456789 \\")
_QUOTE = ord('"')


def number(part: Raw) -> float:
    """Return a finite number, or NaN for anything else, including booleans and text."""
    text = memoryview(part)
    if text[0] not in _BEGIN_NUMBER:
        return nan
    value = float(bytes(text))  # without an exception where it is too large, as decoders raise
    return value if isfinite(value) else nan


def number_or_text(part: Raw) -> float:
    """Return a finite number, which may be written as text, or NaN for anything else."""
    text = memoryview(part)
    begin = text[0]
    if begin in _BEGIN_NUMBER:  # as in `number`: a call of it would cost a third
        value = float(bytes(text))
        return value if isfinite(value) else nan
    if begin != _QUOTE or text[1] not in _BEGIN_TEXT:
        return nan
    stated: str | Outcome = read_part(_TEXT, part)
    spelled = None if isinstance(stated, Outcome) else numeral(stated.strip(PADDING))
    return nan if spelled is None else spelled


def is_stated(value: float, part: Raw) -> bool:
    """Return whether a part states a reading: a number or null. Text, flags and objects do not."""
    return not isnan(value) or bytes(part) == b"null"


def measured(*fields: tuple[str, Raw, float]) -> Readings:
    """Return the readings of fields given as name, stated part and unit factor.

    Numbers may be text. Whatever is not a number is NaN, and so are negative numbers: several
    formats write -1 for *unknown*, and none of these quantities is ever below 0. That of a negative
    accuracy is left to `checked_fix`. About 0.3 µs a stated field.
    """
    readings = {}
    for name, part, factor in fields:
        if part is not UNSTATED:
            value = number_or_text(part) * factor
            if not 0.0 <= value < inf and (name != ACCURACY or value >= 0.0):
                value = nan
            readings[name] = value
    return readings or None


def numbers_in(part: Raw) -> Readings:
    """Return the numbers of an object under their own names. About 0.4 µs for three."""
    numbers = read_part(_NUMBERS, part)
    if isinstance(numbers, Outcome):
        numbers = {name: number(value) for name, value in parts_in(part).items()}
    return numbers or None


def named_numbers(parts: Mapping[str, Raw]) -> dict[str, float]:
    """Return the numbers under their names in snake case; the first of equal names wins.

    Members that state no reading, see `is_stated`, are left out.
    """
    readings: dict[str, float] = {}
    for stated_name, part in parts.items():
        if len(stated_name) <= _MAX_NAME_CHARS:
            value = number(part)
            if is_stated(value, part):
                readings.setdefault(_snake(stated_name), value)
    return readings


def parts_in(part: Raw) -> dict[str, Raw]:
    """Return the members of an object; none if the part is not an object."""
    parts = read_part(_PARTS, part)
    return {} if isinstance(parts, Outcome) else parts


@lru_cache(maxsize=1024)
def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|[^0-9A-Za-z]+", "_", name).lower()
