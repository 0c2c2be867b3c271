"""Which stream and source is a message of, and of which vehicle? All told by its topic."""

import hashlib
import re
from collections.abc import Sequence
from typing import NamedTuple

from anonymizer.settings import SourceSettings, StreamSettings

_CACHE_LIMIT = 200_000
KEY_BYTES = 16
_VEHICLE = "{vehicle}"
_PARTS = {_VEHICLE: "([^/]*)", "+": "[^/]*"}


class Route(NamedTuple):
    """Where the messages of a topic belong.

    `vehicle` is the key that stands for the vehicle's id; empty where the topic names none.
    """

    stream: int
    source: int
    vehicle: bytes

    def __repr__(self) -> str:
        """Say nothing of who."""
        return "Route(...)"


def topic_filter(source: SourceSettings) -> str:
    """Return the MQTT topic filter of a source."""
    return "/".join("+" if level == _VEHICLE else level for level in source.filter_topic.split("/"))


class RecordRouter:
    """Finds the route of a topic; remembers it, as the same vehicles speak again and again.

    Parameters
    ----------
    streams
        The first whose source matches gets the message.
    secret
        Key of the digests that stand for vehicle ids: none is stored, none leaves.
    max_id_chars
        Longer ids are none.
    """

    def __init__(
        self, streams: Sequence[StreamSettings], *, secret: bytes, max_id_chars: int
    ) -> None:
        self._patterns = [
            (_pattern(source), i, j, stream.name)
            for i, stream in enumerate(streams)
            for j, source in enumerate(stream.sources)
        ]
        self._secret = secret
        self._max_id_chars = max_id_chars
        self._known: dict[str, Route | None] = {}

    def route(self, topic: str) -> Route | None:
        """Return the route of a topic, or None when no source matches."""
        try:
            return self._known[topic]
        except KeyError:
            if len(self._known) >= _CACHE_LIMIT:
                self._known.clear()
            route = self._known[topic] = self._find(topic)
            return route

    def _find(self, topic: str) -> Route | None:
        for pattern, stream, source, name in self._patterns:
            match = pattern.fullmatch(topic)
            if match is not None:
                # One nameless level of several would let two vehicles pass as one.
                vehicle = "/".join(match.groups()) if all(match.groups()) else ""
                usable = vehicle and len(vehicle) <= self._max_id_chars
                return Route(stream, source, self._key(name, vehicle) if usable else b"")
        return None

    def _key(self, stream: str, vehicle: str) -> bytes:
        # The stream's name is in it, so that no two streams can be joined by it.
        said = f"{stream}\0{vehicle}".encode()
        return hashlib.blake2b(said, key=self._secret, digest_size=KEY_BYTES).digest()


def _pattern(source: SourceSettings) -> re.Pattern[str]:
    levels = source.filter_topic.split("/")
    several = levels[-1] == "#"
    parts = [_PARTS.get(level, re.escape(level)) for level in levels[: len(levels) - several]]
    return re.compile("/".join(parts) + ("(?:/.*)?" if several else ""), re.DOTALL)
