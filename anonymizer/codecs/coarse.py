"""Coarse points, and what the encoders of the formats share.

An encoder writes one coarse point as one message of its format: the pseudonym in place of the id,
the centre of a region in place of the position, its radius where the format has a field of
accuracy, and the time of the release. It writes no other field about a device, only constants that
readers of the format need. All messages about a group are equally long, so that a broker that
limits packets refuses all of them, or none.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from hashlib import blake2b
from typing import NamedTuple, TypeAlias


class CoarsePoint(NamedTuple):
    """What an echo says of a pseudonym."""

    lat: float
    lon: float
    """`lat`, `lon`: centre of the published region, WGS84 degrees."""
    radius_m: int
    """Radius of a circle around it that holds the region, whole metres, at least 1."""
    time: float
    """Unix seconds of the release, with three decimals."""
    pseudonym: str
    """As the release has it."""
    topic: str
    """Topic of the message."""


Encoder: TypeAlias = Callable[[CoarsePoint], bytes]


def short_id(pseudonym: str) -> int:
    """Return a number of ten digits below 2^32, for formats whose ids are such numbers.

    Anybody can compute it from the pseudonym. Two of n pseudonyms have the same number with a
    probability of about n² / 6.6e9.
    """
    digest = blake2b(pseudonym.encode(), digest_size=8).digest()
    return 10**9 + int.from_bytes(digest, "big") % (2**32 - 10**9)


def message_id(point: CoarsePoint) -> int:
    """Return a number of ten digits below 2^32 for what a pseudonym says at a time.

    Readers take two messages with one id for one: see `short_id` for how rarely that happens.
    """
    return short_id(f"{point.pseudonym} {point.time}")


def count_of(point: CoarsePoint) -> int:
    """Return a number that rises from message to message of a pseudonym: tenths of seconds."""
    return round(point.time * 10)


def iso8601(unix_s: float) -> str:
    """Return a time as text, in UTC with milliseconds and `Z`."""
    return datetime.fromtimestamp(unix_s, UTC).isoformat(timespec="milliseconds")[:-6] + "Z"
