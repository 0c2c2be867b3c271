"""What a stage of streams tells itself: a window is due, and is to be anonymized.

A statement of a bridge decides that a window is over. What follows takes seconds, so it is an input
of its own: the worker ends its transaction before that, and no other window waits in the same one.
"""

from typing import NamedTuple

from anonymizer.cluster.packed_state import pack, unpack

_DUE = b"C"
_FIELDS = 2


class DueWindow(NamedTuple):
    """A window to be anonymized: the place of its stream among those of the stage, its number."""

    stream: int
    window: int


def takes_long(value: bytes) -> bool:
    """Return whether a stage may work for seconds on an input: it joins and anonymizes a window."""
    return value[:1] == _DUE


def encode_due(due: DueWindow) -> bytes:
    """Return what is due as bytes."""
    return _DUE + pack(list(due))


def decode_due(value: bytes) -> DueWindow:
    """Return what was encoded.

    Raises `ValueError` if the bytes are none.
    """
    fields = unpack(memoryview(value)[1:]) if takes_long(value) else None
    if (
        not isinstance(fields, list)
        or len(fields) != _FIELDS
        or any(type(each) is not int for each in fields)
        or fields[0] < 0
    ):
        raise ValueError("this is no window of a stream")
    return DueWindow(*fields)
