"""Retained sets on their way to a broker that takes less than the stages cut them for.

Stages do not know the broker. A bridge cuts each part again, always into the same number of smaller
ones, so that all are numbered right although it sees one after another.
"""

import math
import re
from collections.abc import Callable, Iterator, Sequence

import msgspec

from anonymizer.pipeline.ports import PART_BYTES, Outgoing
from anonymizer.settings import Settings

_NUMBERED = "/999999"
"""The longest end of a topic of a part."""
_COUNT_BYTES = len(b',"part":999999,"of":999999')
_LEAST_BYTES = 600
"""Where the broker takes less, a part would become more than 200."""


class RetainedParts:
    """Cuts the parts of what is retained: the groups that live now, and the cells of figures.

    `room` returns the largest payload for a topic that the broker takes, as far as that is known.
    """

    def __init__(self, settings: Settings, room: Callable[[str], int]) -> None:
        self._room = room
        cells = [f"{topic}/cells" for topic in (settings.topics.counts, settings.topics.trips)]
        bases = "|".join(map(re.escape, cells))
        self._topics = re.compile(
            rf"(?P<current>{re.escape(settings.topics.current)})/(?P<of_current>\d+)"
            rf"|(?P<cells>{bases})(/(?P<of_cells>\d+))?"  # the first has no number
        )

    def fitted(self, messages: Sequence[Outgoing]) -> list[Outgoing]:
        """Return messages whose parts the broker takes, unless one member alone is too large."""
        return [each for message in messages for each in self._fitted(message)]

    def _fitted(self, message: Outgoing) -> Iterator[Outgoing]:
        found = self._topics.fullmatch(message.topic) if message.retain else None
        if found is None:
            yield message
            return
        base = found["current"] or found["cells"]
        number = int(found["of_current"] or found["of_cells"] or 0)
        key = "groups" if found["current"] else "features"
        said: dict[str, msgspec.Raw] = {}
        try:
            if message.payload:  # else the broker is to forget it
                said = msgspec.json.decode(message.payload, type=dict[str, msgspec.Raw])
            members = msgspec.json.decode(said.pop(key, b"[]"), type=list[msgspec.Raw])
            of = msgspec.json.decode(said.pop("of", b"1"), type=int)
        except (ValueError, RecursionError):  # no worker has made it
            yield message
            return
        most = self._room(base + _NUMBERED)
        room = most - len(msgspec.json.encode({**said, key: []})) - _COUNT_BYTES
        if most >= PART_BYTES or room < _LEAST_BYTES:
            yield message
            return
        # Two neighbours together do not fit into one, so there are never more.
        n = math.ceil(2 * PART_BYTES / room) + 1
        for i, some in enumerate(_filled(members, room, n), start=number * n):
            payload = msgspec.json.encode({**said, "part": i, "of": of * n, key: some})
            yield message._replace(
                topic=base if found["cells"] and i == 0 else f"{base}/{i}",
                payload=payload if message.payload else b"",
            )


def _filled(members: Sequence[msgspec.Raw], room: int, n: int) -> list[list[msgspec.Raw]]:
    """Return members in `n` parts of at most `room` bytes, in order; the last may be empty."""
    parts: list[list[msgspec.Raw]] = [[]]
    used = 0
    for member in members:
        size = len(bytes(member)) + 1
        if parts[-1] and used + size > room:
            parts.append([])
            used = 0
        parts[-1].append(member)
        used += size
    return parts + [[] for _ in range(n - len(parts))]
