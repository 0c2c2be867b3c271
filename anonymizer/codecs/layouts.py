"""Layouts of flat messages: which member states what, for a reader that is compiled.

A layout describes the usual messages of a format, not all of them. What it does not describe is
left to the codec of the format, which alone decides what is valid.
"""

from collections.abc import Mapping
from enum import IntEnum
from typing import NamedTuple

from anonymizer.codecs.fix_signs import BESIDE
from anonymizer.codecs.times import LEAST_CERTAIN_S, MOST_CERTAIN_S

LEAST_TIME_S, MOST_TIME_S = LEAST_CERTAIN_S, MOST_CERTAIN_S
"""Between these is what a layout means by a time; others may be none, or in another unit."""


class Role(IntEnum):
    """What a member of a message states."""

    IGNORED = 0
    LAT = 1
    LON = 2
    TIME = 3
    """Unix seconds, or null."""
    DEVICE = 4
    """Text, or null."""
    DEVICE_OR_NUMBER = 5
    """Text, an integer, or null."""
    KIND = 6
    """Text; the message is a position if it is that of the layout."""
    READINGS = 7
    """An object of numbers under their own names, of which `Member.reading` is the accuracy."""
    READING = 8
    """A number that is never below 0, see `codecs._fields.measured`."""
    ACCURACY = 9
    """The same for metres; below 0 there is no fix."""
    SIGN = 10
    """Whether there is a fix, which the codec judges."""


class Member(NamedTuple):
    """A member of a message."""

    role: Role
    """What it states."""
    reading: str = ""
    factor: float = 1.0
    """`reading`, `factor`: name of the reading, and what its number is multiplied by."""


class Layout(NamedTuple):
    """The usual message of a format: an object of these members and others that are ignored."""

    members: Mapping[str, Member]
    """By name."""
    kind: str = ""
    """Text of the member with the role `KIND`."""
    many: bool = False
    """Whether a message may also be an array of such objects."""
    msgpack: bool = False
    """Whether messages are MessagePack, not JSON."""


SIGNS = dict.fromkeys(BESIDE, Member(Role.SIGN))
"""Members that are signs of no fix beside a place."""
