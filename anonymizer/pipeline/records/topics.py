"""Topics of the records flow: the stream, the source and the vehicle of a message."""

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import repeat
from operator import itemgetter
from typing import NamedTuple

from anonymizer.domain.device_ids import id_of
from anonymizer.domain.discreet import discreet
from anonymizer.domain.outcomes import Outcome
from anonymizer.domain.person_key import vehicle_key
from anonymizer.pipeline.packed_deliveries import PackedDeliveries
from anonymizer.pipeline.route_cache import RouteCache
from anonymizer.pipeline.topic_patterns import pattern_of
from anonymizer.settings import SourceSettings, StreamSettings
from anonymizer.settings.base import TopicFilters, is_field

KEY_BYTES = 16
_MOST_KEPT_S = 120.0
"""A topic, which contains the id of a vehicle, is forgotten this long after its last message, or
after the length of the shortest window if that is less."""


@discreet
class RecordRoute(NamedTuple):
    """The stream, source and vehicle of a topic's messages.

    `stream` and `source` are indices; `vehicle` is the key that stands for its id, empty if the
    topic has no usable one; `topic` is empty unless its payloads name the vehicles.
    """

    stream: int
    source: int
    vehicle: bytes
    topic: bytes = b""


def topic_filter(source: SourceSettings) -> str:
    """Return the MQTT topic filter of a source."""
    return "/".join("+" if is_field(level) else level for level in source.filter_topic.split("/"))


def subscriptions(streams: Sequence[StreamSettings]) -> list[tuple[str, int]]:
    """Return filter and QoS of all sources, each filter once: a second one would replace the first.

    A record that was sent at QoS 0 comes at QoS 0.
    """
    filters = [topic_filter(source) for stream in streams for source in stream.sources]
    return [(each, 1) for each in dict.fromkeys(filters)]


class RecordRouter:
    """Finds the routes of a topic, and caches them because the same vehicles report repeatedly.

    Every stream with a matching source receives a message, once. `secret` is the key of the digests
    that stand for vehicle ids, which are neither stored nor published; ids longer than
    `max_id_chars` are not usable. `names`: what the digest depends on, for each stream; by default
    their names, so that two streams cannot be joined by it. `folds`: whether all writings of an id
    are one vehicle (`vehicle_key`), or those alone that differ in plain form.
    """

    def __init__(
        self,
        streams: Sequence[StreamSettings],
        *,
        secret: bytes,
        max_id_chars: int,
        names: Sequence[str] | None = None,
        folds: bool = True,
    ) -> None:
        self._patterns = TopicFilters[tuple[int, int, re.Pattern[str], bool]]()
        for i, stream in enumerate(streams):
            for j, source in enumerate(stream.sources):
                pattern = (i, j, pattern_of(source.filter_topic), source.vehicle_path is not None)
                self._patterns.add(source.filter_topic, pattern)
        self._names = [stream.name for stream in streams] if names is None else names
        self._secret = secret
        self._folds = folds
        self._max_id_chars = max_id_chars
        self._kept_s = min([_MOST_KEPT_S, *(stream.window_s for stream in streams)])
        self._routes = RouteCache(self._find)

    def routes_of(self, topic: str) -> tuple[RecordRoute, ...]:
        """Return the route of a topic in each stream that reads it; none if no source matches."""
        return self._routes[topic]

    def routes(self, messages: PackedDeliveries) -> Iterator[tuple[tuple[RecordRoute, ...], bytes]]:
        """Yield the routes and the payload of each message."""
        stream, routes_of = messages.stream, self._routes
        for topic, end, payload, stop in messages.columns.bounds.tolist():
            name = stream[topic:end].decode("utf-8", "surrogatepass")
            yield routes_of[name], stream[payload:stop]

    def divided(
        self, messages: PackedDeliveries, *, repeated: Sequence[bool] | None = None
    ) -> tuple[dict[int, list[tuple[RecordRoute, bytes]]], Counter[tuple[int, Outcome]]]:
        """Return the parts for each stream, and what is settled already.

        By stream, routes and payloads; by stream, -1 for none, and outcome, how many. `repeated`:
        messages that repeat others.
        """
        parts: dict[int, list[tuple[RecordRoute, bytes]]] = {}
        settled: Counter[tuple[int, Outcome]] = Counter()
        again = repeated if repeated is not None else repeat(False)
        for (routes, payload), is_again in zip(self.routes(messages), again, strict=False):
            if not routes:
                unknown = Outcome.DUPLICATE if is_again else Outcome.INVALID__UNKNOWN_TOPIC
                settled[-1, unknown] += 1
            for route in routes:
                if is_again:
                    settled[route.stream, Outcome.DUPLICATE] += 1
                else:
                    parts.setdefault(route.stream, []).append((route, payload))
        return parts, settled

    def forget(self, *, at_s: float) -> None:
        """Forget vehicles that are silent, see `RouteCache.forget`."""
        self._routes.forget(at_s=at_s, kept_s=self._kept_s)

    def _find(self, topic: str) -> tuple[RecordRoute, ...]:
        found: dict[int, RecordRoute] = {}
        named = topic.encode("utf-8", "surrogatepass")
        near = sorted(self._patterns.overlapping(topic), key=itemgetter(0, 1))
        for stream, source, pattern, in_payload in near:
            match = pattern.fullmatch(topic)
            if match is None or stream in found:
                continue
            if in_payload:
                found[stream] = RecordRoute(stream, source, b"", named)
                continue
            vehicle = self.key(stream, id_of(match.groups()))
            found[stream] = RecordRoute(stream, source, vehicle)
        return tuple(found.values())

    def key(self, stream: int, vehicle: str) -> bytes:
        """Return the key of an id (in plain form) in a stream; empty if the id is not usable."""
        if not 0 < len(vehicle) <= self._max_id_chars:
            return b""
        if self._folds:  # what levels of a topic are stays apart
            vehicle = "/".join(map(vehicle_key, vehicle.split("/")))
        identity = f"{self._names[stream]}\0{vehicle}".encode("utf-8", "surrogatepass")
        return hashlib.blake2b(identity, key=self._secret, digest_size=KEY_BYTES).digest()
