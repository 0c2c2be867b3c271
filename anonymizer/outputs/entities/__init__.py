"""Entities of NGSI-LD: each message about a group, or about a member of it, as one.

References
----------
.. [1] ETSI GS CIM 009, "NGSI-LD API", section 4.5 (entities).
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from anonymizer.codecs.coarse import iso8601
from anonymizer.codecs.ngsi_ld import CONTEXT
from anonymizer.domain.network import RoadNetwork
from anonymizer.outputs.copies import Copy
from anonymizer.outputs.groups_contract import GROUP
from anonymizer.outputs.message_kind import GEOMETRY, Channel, MessageKind
from anonymizer.pipeline.ports import Outgoing

if TYPE_CHECKING:
    from anonymizer.settings import Settings

_TYPE = "CloakedGroup"
_OF_THE_ENTITY = frozenset({"v", "time", "group", "geometry", "bbox"})


class Entities(Copy):
    """Writes the entities of messages about mobile devices."""

    name = "entities"

    def __init__(self, settings: "Settings", network: RoadNetwork) -> None:  # noqa: ARG002  see `Copy`
        self._topic, self._groups_topic = settings.topics.entities, settings.output.topic

    @staticmethod
    def channels(settings: "Settings") -> Iterator[Channel]:
        """Yield the topic of all entities."""
        yield Channel(settings.topics.entities, ENTITY, incoming=False)

    def of(self, messages: Sequence[Outgoing]) -> list[Outgoing]:
        """Return an entity for each message about mobile devices."""
        return [
            Outgoing(self._topic, entity(each.payload))
            for each in messages
            if each.topic == self._groups_topic
        ]


COPY = Entities


def entity(payload: bytes) -> bytes:
    """Return a message about a group as an NGSI-LD entity in normalized form [1]_.

    `payload`: a message about a group, or about one member of it.
    """
    message: dict[str, Any] = msgspec.json.decode(payload)
    at = iso8601(message["time"])
    found: dict[str, Any] = {
        "@context": CONTEXT,
        "id": f"urn:ngsi-ld:{_TYPE}:{message.get('pseudonym') or message['group']}",
        "type": _TYPE,
    }
    if (place := _place(message)) is not None:
        found["location"] = {"type": "GeoProperty", "value": place, "observedAt": at}
    for name, value in message.items():
        if name == "until":
            value = {"@type": "DateTime", "@value": iso8601(value)}  # noqa: PLW2901  its form here
        if name not in _OF_THE_ENTITY:
            found[name] = {"type": "Property", "value": value, "observedAt": at}
    return msgspec.json.encode(found)


def _place(message: Mapping[str, Any]) -> Mapping[str, Any] | None:
    if (box := message.get("bbox")) is not None:
        west, south, east, north = box
        ring = [[west, south], [east, south], [east, north], [west, north], [west, south]]
        return {"type": "Polygon", "coordinates": [ring]}
    return message.get("geometry")


ENTITY = MessageKind(
    "Entity",
    "A group, or one member of it, as an NGSI-LD entity in normalized form.",
    {
        "type": "object",
        "properties": {
            "@context": {"type": "string"},
            "id": {"type": "string", "pattern": "^urn:ngsi-ld:"},
            "type": {"const": _TYPE},
            "location": {
                "type": "object",
                "properties": {
                    "type": {"const": "GeoProperty"},
                    "value": GEOMETRY,
                    "observedAt": {"type": "string", "format": "date-time"},
                },
                "required": ["type", "value", "observedAt"],
            },
        },
        "additionalProperties": {
            "type": "object",
            "description": "A field of the message that the entity is made of.",
            "properties": {
                "type": {"const": "Property"},
                "value": True,
                "observedAt": {"type": "string", "format": "date-time"},
            },
            "required": ["type", "value", "observedAt"],
        },
        "required": ["@context", "id", "type", "k", "region", "until"],
    },
    msgspec.json.decode(entity(msgspec.json.encode(GROUP.example))),
    "application/ld+json",
)
