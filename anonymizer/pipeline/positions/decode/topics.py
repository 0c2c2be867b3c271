"""Routing of topics: which device sent a message, and which codec decodes it."""

import re
from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from anonymizer.codecs import Codec
from anonymizer.codecs.times import zone_of
from anonymizer.domain.device_ids import id_of, plain_id
from anonymizer.domain.discreet import discreet
from anonymizer.domain.fixes import Fix, Places
from anonymizer.domain.outcomes import Outcome
from anonymizer.pipeline.topic_patterns import pattern_of
from anonymizer.settings.base import is_field

if TYPE_CHECKING:
    from anonymizer.settings import InputSettings

NO_INPUT = -1
"""In place of the index of an input: none has this topic."""


class Treatment(IntEnum):
    """What becomes of the devices of an input."""

    MOBILE = 0
    """Cloaked among mobile devices."""
    CLOAKED = 1
    """Fixed, and cloaked among fixed devices."""
    PUBLIC = 2
    """Fixed, and published as they are."""

    @classmethod
    def of(cls, settings: "InputSettings") -> "Treatment":
        """Return the treatment that an input asks for."""
        return {"mobile": cls.MOBILE, "fixed": cls.CLOAKED, "public": cls.PUBLIC}[settings.kind]


@discreet
class Route(NamedTuple):
    """Codec, device and treatment of the messages of one topic.

    `device`, in plain form, is None if the input takes it from the payload, and empty if the topic
    names none.
    `places` are those of the input's registry, None if it has none. `join_s` is how far apart the
    halves of a position may be, 0 if positions come whole. `bare` are the codecs of numbers alone,
    by the last level of their topic, None if payloads are no such numbers.
    """

    codec: Codec
    device: str | None
    treatment: Treatment = Treatment.MOBILE
    places: Places | None = None
    join_s: float = 0.0
    bare: Mapping[str, Codec] | None = None

    def decode(self, topic: str, payload: bytes) -> Sequence[Fix | Outcome]:
        """Return what a message states."""
        if self.bare is None:
            return self.codec(payload)
        codec = self.bare.get(topic.rpartition("/")[2])
        return (Outcome.INVALID__NOT_SELECTED,) if codec is None else codec(payload)


def subscription(topic: str) -> str:
    """Return the MQTT topic filter of an input's topic: `{device}` matches any one level."""
    return "/".join("+" if is_field(level) else level for level in topic.split("/"))


def shared_topics(inputs: "Sequence[InputSettings]") -> Callable[[str], bool] | None:
    """Return whether messages of a topic may come from several devices; None: those of none do."""
    if all(i.device_from != "payload" for i in inputs):
        return None
    router = TopicRouter(inputs)

    def is_shared(topic: str) -> bool:
        route = router.find(topic)
        return route is not None and route.device is None

    return is_shared


class TopicRouter:
    """Finds the route of a topic.

    If several inputs match, the first in the settings is used.

    `registries` and `secrets` are the places and the secrets in the files of the inputs, by path.
    """

    def __init__(
        self,
        inputs: "Sequence[InputSettings]",
        registries: Mapping[Path, Places] = MappingProxyType({}),
        secrets: Mapping[Path, Sequence[bytes]] = MappingProxyType({}),
    ) -> None:
        self._patterns = [(pattern_of(i.topic), i.device_from) for i in inputs]
        self.routes = [_route(i, registries, secrets) for i in inputs]
        """The route of each input, without a device."""
        self.layouts = [
            None if i.registry or i.within or i.unpack else i.format.layout for i in inputs
        ]
        """The usual message of each input, if there is a compiled reader for it."""
        self.ids_change = [bool(i.ids_live_s) for i in inputs]
        """Whether the ids of each input are declared to change."""
        zones = [i.payload.time_zone if i.payload else None for i in inputs]
        self.zones = [None if zone is None else zone_of(zone) for zone in zones]
        """The zone of each input's texts without an offset, None: none is stated."""

    def find(self, topic: str) -> Route | None:
        """Return the route of a topic, or None if no input matches."""
        found = self.match(topic)
        return None if found is None else self.routes[found[0]]._replace(device=found[1])

    def device(self, topic: str) -> str:
        """Return the device of a topic, empty if it names none."""
        found = self.match(topic)
        return "" if found is None else found[1] or ""

    def match(self, topic: str) -> tuple[int, str | None] | None:
        """Return the index of a topic's input and the device as in `Route`; None if none matches.

        About 1 µs.
        """
        [index], [device] = self.match_all([topic])
        return None if index == NO_INPUT else (index, device)

    def match_all(self, topics: Sequence[str]) -> tuple[list[int], list[str | None]]:
        """Return the index of each topic's input and the device as in `Route`, each of shape (n,).

        `NO_INPUT` and no device where none matches. About 0.5 µs each.
        """
        index, device = [NO_INPUT] * len(topics), list[str | None]([""]) * len(topics)
        left: Sequence[int] = range(len(topics))
        for i, (pattern, device_from) in enumerate(self._patterns):
            fullmatch, others = pattern.fullmatch, []
            is_one_level = device_from == "topic" and pattern.groups == 1
            for at in left:
                found = fullmatch(topics[at])
                if found is None:
                    others.append(at)
                    continue
                index[at] = i
                device[at] = plain_id(found[1]) if is_one_level else _device(found, device_from)
            left = others
        return index, device


def _device(found: re.Match[str], device_from: str) -> str | None:
    if device_from == "payload":
        return None
    return id_of(found.groups())


def _route(
    settings: "InputSettings",
    registries: Mapping[Path, Places],
    secrets: Mapping[Path, Sequence[bytes]],
) -> Route:
    """Return the route of an input's topics, but for the device."""
    codec = settings.make_codec(secrets.get(settings.key_file, ()) if settings.key_file else ())
    places = None if settings.registry is None else registries.get(settings.registry, {})
    join_s = settings.payload.join_s or 0.0 if settings.payload else 0.0
    bare = settings.make_bare_codecs()
    return Route(codec, None, Treatment.of(settings), places, join_s, bare)
