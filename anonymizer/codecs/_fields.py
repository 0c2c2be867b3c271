"""What all codecs share: reading JSON without ever raising, and judging what was read."""

from collections.abc import Callable, Sequence
from typing import Annotated, TypeAlias, TypeVar

import msgspec
from msgspec import Meta, Raw
from msgspec.json import Decoder

from anonymizer.codecs._time import unix_s
from anonymizer.domain.fixes import Fix, checked_fix
from anonymizer.domain.outcomes import Outcome

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
