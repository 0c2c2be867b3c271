"""Messages of stages as Flink carries them: to whom, when, and the bytes."""

import struct
import sys
from typing import NamedTuple, Self

KINDS = ("source", "lane", "stream", "out", "release", "files", "dropped")
"""Those of `anonymizer.cluster.topics`; a message has the number of its kind."""
FIRST, SECOND = frozenset(["source", "stream"]), frozenset(["lane"])
"""Stages of the first function of the job, and of the second."""
_HEAD = struct.Struct("<BHd")

# PyFlink puts a function of its own in the place of `print`, and numba looks for it where it is
# from. Here, because this module is imported before all that needs numba.
vars(sys.modules[print.__module__])["print"] = print


class Packed(NamedTuple):
    """A message to a stage or an output; `at_s`: when the input was written, unix seconds."""

    kind: str
    number: int
    at_s: float
    value: bytes

    @classmethod
    def of(cls, packed: bytes) -> Self:
        """Return what `bytes` has made.

        Raises
        ------
        ValueError
            If this is too short, or of no kind.
        """
        if len(packed) < _HEAD.size or packed[0] >= len(KINDS):
            raise ValueError("no packed message")
        kind, number, at_s = _HEAD.unpack_from(packed)
        return cls(KINDS[kind], number, at_s, packed[_HEAD.size :])

    def __bytes__(self) -> bytes:
        """Return it as Kafka and Flink carry it."""
        return _HEAD.pack(KINDS.index(self.kind), self.number, self.at_s) + self.value

    def __repr__(self) -> str:
        """Reveal no content."""
        return f"Packed({self.kind!r}, {self.number}, {len(self.value)} bytes)"


def key_of(packed: bytes) -> int:
    """Return by what Flink divides messages: kind and number."""
    return int.from_bytes(packed[:3], "little")
