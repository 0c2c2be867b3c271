"""Kinds of messages, and the topics on which they are: what the contract is made of."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import msgspec

from anonymizer.settings.json_schema import comments_of

CONTRACT_VERSION = 1
"""Of the messages; they carry it as `v` where they are made for machines. It changes when a field
is changed or removed. Fields may be added at any time, so readers ignore those they do not know."""

Schema: TypeAlias = dict[str, Any]
_JSON = "application/json"
NUMBER: Schema = {"type": "number"}
POSITION: Schema = {"type": "array", "items": NUMBER, "minItems": 2, "maxItems": 2}
_LINES: Schema = {
    "type": "object",
    "description": "GeoJSON: the roads between two nodes of the region.",
    "required": ["type", "coordinates"],
    "properties": {
        "type": {"const": "MultiLineString"},
        "coordinates": {"type": "array", "items": {"type": "array", "items": POSITION}},
    },
}


class MessageKind(NamedTuple):
    """A kind of message."""

    name: str
    """Of the message and of its schema."""
    summary: str
    """What it is."""
    schema: Schema | None
    """JSON Schema of the payload; None: it is not JSON."""
    example: Any = None
    """A payload as the schema wants it; None: none is given."""
    content_type: str = _JSON
    """Media type of the payload."""


def schema_of(kind: type[msgspec.Struct], *, also_required: Sequence[str] = ()) -> Schema:
    """Return the JSON Schema of what a class encodes, with the texts below its fields."""
    [schema], definitions = msgspec.json.schema_components([kind], ref_template="#/$defs/{name}")
    kinds = {each.__name__: each for each in _structs(kind)}
    for name, definition in definitions.items():
        texts = _texts_of(kinds[name]) if name in kinds else {}
        for field, part in definition.get("properties", {}).items():
            if field in texts:
                part["description"] = texts[field]
        if "geometry" in definition.get("properties", {}):
            definition["properties"]["geometry"] = _LINES
        if name == kind.__name__:
            definition["required"] = [*definition.get("required", ()), *also_required]
    return {**schema, "$defs": definitions}


def _texts_of(kind: type) -> dict[str, str]:
    """Return the texts below the fields of a class and of those that it extends."""
    texts: dict[str, str] = {}
    for each in reversed(kind.__mro__):
        if each.__module__.startswith("anonymizer."):
            texts |= comments_of(each)
    return texts


def _structs(kind: type[msgspec.Struct]) -> Iterator[type[msgspec.Struct]]:
    """Yield a class and the classes of its fields."""
    yield kind
    for field in msgspec.structs.fields(kind):
        for part in (field.type, *getattr(field.type, "__args__", ())):
            if isinstance(part, type) and issubclass(part, msgspec.Struct):
                yield from _structs(part)


def object_of(properties: Mapping[str, Schema], *required: str) -> Schema:
    """Return the schema of an object with these properties."""
    return {"type": "object", "properties": dict(properties), "required": list(required)}


GEOMETRY = object_of({"type": {"type": "string"}, "coordinates": {"type": "array"}}, "type")
NAME: Schema = {"type": ["string", "integer"]}


def features_of(*properties: Schema) -> Schema:
    """Return the schema of the features of GeoJSON that have one of these forms."""
    feature = {"type": {"const": "Feature"}, "id": NAME, "geometry": GEOMETRY}
    forms = [
        object_of({**feature, "properties": each}, "type", "geometry", "properties")
        for each in properties
    ]
    return {"type": "array", "items": {"anyOf": forms}}


class Channel(NamedTuple):
    """A topic, perhaps with names in braces for some of its levels."""

    address: str
    """The topic."""
    message: MessageKind
    """What is on it."""
    incoming: bool
    """Whether the gateway reads it; else it publishes it."""
    retained: bool = False
    """Whether the broker keeps the last message."""
    kafka: str | None = None
    """A topic of Kafka in place of the address."""
    key: str = ""
    """What is the key of messages in Kafka; empty: they have none, or it does not matter."""

    @property
    def of_kafka(self) -> "Channel":
        """The channel in Kafka, if it is there."""
        return self if self.kafka is None else self._replace(address=self.kafka)
