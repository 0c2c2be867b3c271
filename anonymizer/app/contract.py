"""The contract: an AsyncAPI document of all topics, in and out, with a JSON Schema of each message.

It is made from the settings and from the classes that encode the messages, so it says what this
gateway reads and publishes, under the topics that it uses.

References
----------
.. [1] "AsyncAPI Specification 3.0.0", 2023.
.. [2] "JSON Schema: A Media Type for Describing JSON Documents", draft 2020-12.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import msgspec

from anonymizer import __version__
from anonymizer.networks.publication import NetworkAbout
from anonymizer.pipeline.positions.counting import CountsMessage
from anonymizer.pipeline.positions.encoding import DeviceMessage, GroupMessage
from anonymizer.pipeline.positions.fixed import PublicMessage
from anonymizer.pipeline.positions.private_counts import PrivateCountsMessage
from anonymizer.pipeline.records.encoding import ClassMessage
from anonymizer.settings import Settings
from anonymizer.settings.json_schema import comments_of
from anonymizer.transport.link import LOST, OFFLINE, ONLINE

CONTRACT_VERSION = 1
"""Of the messages; they carry it as `v` where they are made for machines. It changes when a field
is changed or removed. Fields may be added at any time, so readers ignore those they do not know."""

Schema: TypeAlias = dict[str, Any]
_FORMAT = "application/schema+json;version=draft-2020-12"
_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_JSON = "application/json"
_NAMED_LEVEL = re.compile(r"\{(\w+)\}")
_NUMBER: Schema = {"type": "number"}
_POSITION: Schema = {"type": "array", "items": _NUMBER, "minItems": 2, "maxItems": 2}
_LINES: Schema = {
    "type": "object",
    "description": "GeoJSON: the roads between two nodes of the region.",
    "required": ["type", "coordinates"],
    "properties": {
        "type": {"const": "MultiLineString"},
        "coordinates": {"type": "array", "items": {"type": "array", "items": _POSITION}},
    },
}
_STAMPED = ("v", "network", "group", "until")
"""Fields that every message of a service has, and a line of a file lacks."""


class Message(NamedTuple):
    """A kind of message.

    Attributes
    ----------
    name
        Of the message and of its schema.
    schema
        JSON Schema of the payload; None: it is not JSON.
    example
        A payload as the schema wants it; None: none is given.
    content_type
        Media type of the payload.
    summary
        What it is.
    """

    name: str
    summary: str
    schema: Schema | None
    example: Any = None
    content_type: str = _JSON


class Channel(NamedTuple):
    """A topic, perhaps with names in braces for some of its levels.

    Attributes
    ----------
    address
        The topic.
    message
        What is on it.
    incoming
        Whether the gateway reads it; else it publishes it.
    retained
        Whether the broker keeps the last message.
    """

    address: str
    message: Message
    incoming: bool
    retained: bool = False


def channels(settings: Settings) -> list[Channel]:
    """Return all topics of a gateway with these settings."""
    found = [*_incoming(settings), *_outgoing(settings)]
    return list({channel.address: channel for channel in found}.values())


def asyncapi(settings: Settings) -> dict[str, Any]:
    """Return the AsyncAPI 3 document of a gateway with these settings."""
    known = channels(settings)
    messages = {channel.message.name: channel.message for channel in known}
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "anonymizer",
            "version": str(CONTRACT_VERSION),
            "description": (
                "Topics of a privacy gateway for moving devices: what it reads, and what it "
                f"publishes about groups of devices. Made by anonymizer {__version__}."
            ),
        },
        "defaultContentType": _JSON,
        "channels": {_key(channel.address): _channel(channel) for channel in known},
        "operations": {
            f"{'receive' if channel.incoming else 'send'}_{_key(channel.address)}": {
                "action": "receive" if channel.incoming else "send",
                "channel": {"$ref": f"#/channels/{_key(channel.address)}"},
            }
            for channel in known
        },
        "components": {"messages": {name: _message(each) for name, each in messages.items()}},
    }


def _channel(channel: Channel) -> dict[str, Any]:
    parameters = {
        name: {"description": f"Level of the topic: {name}."}
        for name in _NAMED_LEVEL.findall(channel.address)
    }
    name = channel.message.name
    kept = {"bindings": {"mqtt": {"retain": True}}} if channel.retained else {}
    return {
        "address": channel.address,
        "messages": {name: {"$ref": f"#/components/messages/{name}"}},
        **({"parameters": parameters} if parameters else {}),
        **kept,
    }


def _message(message: Message) -> dict[str, Any]:
    body: dict[str, Any] = {
        "name": message.name,
        "summary": message.summary,
        "contentType": message.content_type,
    }
    if message.schema is not None:
        # With an id of its own, its references do not mean the whole document.
        identity = f"urn:anonymizer:{CONTRACT_VERSION}:{message.name}"
        schema = {"$schema": _DIALECT, "$id": identity, **message.schema}
        body["payload"] = {"schemaFormat": _FORMAT, "schema": schema}
    if message.example is not None:
        body["examples"] = [{"payload": message.example}]
    return body


def _key(address: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "_", address).strip("_")


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


def _object(properties: Mapping[str, Schema], *required: str) -> Schema:
    return {"type": "object", "properties": dict(properties), "required": list(required)}


_LATITUDE: Schema = {"type": "number", "minimum": -90, "maximum": 90}
_LONGITUDE: Schema = {"type": "number", "minimum": -180, "maximum": 180}
_POSITION_IN = _object(
    {
        "lat": {**_LATITUDE, "description": "WGS84 degrees."},
        "lon": {**_LONGITUDE, "description": "WGS84 degrees."},
        "ts": {"type": ["number", "null"], "description": "Unix seconds; else the arrival counts."},
        "device": {"type": ["string", "integer", "null"]},
        "readings": {
            "type": ["object", "null"],
            "description": "Numbers by name; those that are not declared are dropped.",
        },
    },
    "lat",
    "lon",
)
_NATIVE = Message(
    "Position",
    "A position as a device states it, or an array of these.",
    {"anyOf": [_POSITION_IN, {"type": "array", "minItems": 1, "items": _POSITION_IN}]},
    {"lat": 60.1699, "lon": 24.9384, "ts": 1800000000.2, "readings": {"speed_mps": 8.3}},
)
_READINGS_IN = Message(
    "Readings",
    "Readings of a registered device, or its position in the format of the codec.",
    {"type": ["object", "array"]},
    {"no2": 12},
)
_ZONES_IN = Message(
    "Zones",
    "Privacy zones of a device, retained by it.",
    {
        "type": "array",
        "items": {
            "oneOf": [
                _object(
                    {
                        "circle": _object(
                            {
                                "lat": _LATITUDE,
                                "lon": _LONGITUDE,
                                "radius_m": {"type": "number", "exclusiveMinimum": 0},
                            },
                            *("lat", "lon", "radius_m"),
                        )
                    },
                    "circle",
                ),
                _object(
                    {"polygon": {"type": "array", "minItems": 3, "items": _POSITION}}, "polygon"
                ),
            ]
        },
    },
    [{"circle": {"lat": 60.17, "lon": 24.94, "radius_m": 300}}],
)


def _incoming(settings: Settings) -> Iterator[Channel]:
    for each in settings.inputs:
        message = _NATIVE
        if each.registry is not None:
            message = _READINGS_IN
        elif each.codec != "native":
            name = f"Position_{each.codec}"
            message = Message(name, f"A message in the format {each.codec}; see its codec.", None)
        yield Channel(each.topic, message, incoming=True)
    if settings.device_zones.enabled:
        yield Channel(settings.device_zones.topic, _ZONES_IN, incoming=True, retained=True)
    for stream in settings.streams:
        for source in stream.sources:
            name = f"Part_{stream.name}_{source.name}"
            told = ", ".join(source.tells)
            besides = "its time" if source.vehicle is None else "its time and its vehicle"
            summary = f"Part of a record of {stream.name}: {told}; and {besides}."
            yield Channel(source.topic, Message(name, summary, {"type": "object"}), incoming=True)


_EXAMPLE_OF_A_REGION: Mapping[str, Any] = {
    "v": CONTRACT_VERSION,
    "time": 1800000000.3,
    "until": 1800000030.3,
    "network": "bec64b210518afc4",
    "group": "0Jt1uZ9xQmT4",
    "k": 2,
    "region": [2, 6, 7, 12],
}
_GROUP = Message(
    "Group",
    "A group: all devices that publish one region at one time.",
    schema_of(GroupMessage, also_required=_STAMPED),
    {**_EXAMPLE_OF_A_REGION, "pseudonyms": ["3nG0cQ9kPqAz", "fU2x1bpQ7zdw"]},
)
_DEVICE = Message(
    "Device",
    "One member of a group.",
    schema_of(DeviceMessage, also_required=_STAMPED),
    {**_EXAMPLE_OF_A_REGION, "pseudonym": "3nG0cQ9kPqAz"},
)
_PUBLIC = Message(
    "PublicDevice",
    "A public device that stands still.",
    schema_of(PublicMessage),
    {"time": 1800000000.3, "device": "air-1", "lat": 60.1699, "lon": 24.9384},
)
_REJECTED = Message(
    "Rejected",
    "How many positions were not published since the previous report, in steps of k.",
    _object(
        {
            "time": _NUMBER,
            "rejected": {
                "type": "object",
                "description": "Number by outcome and reason.",
                "additionalProperties": {"type": "integer", "minimum": 1},
            },
        },
        *("time", "rejected"),
    ),
    {"time": 1800000000.3, "rejected": {"suppressed/other": 10}},
)
_STATUS = Message(
    "Status",
    "Whether the gateway is connected; `lost` is its last will.",
    {"enum": [state.decode() for state in (ONLINE, OFFLINE, LOST)]},
    ONLINE.decode(),
    "text/plain",
)
_GEOMETRY = _object({"type": {"type": "string"}, "coordinates": {"type": "array"}}, "type")
_NAME: Schema = {"type": ["string", "integer"]}


def _features(*properties: Schema) -> Schema:
    """Return the schema of the features of GeoJSON that have one of these forms."""
    feature = {"type": {"const": "Feature"}, "id": _NAME, "geometry": _GEOMETRY}
    forms = [
        _object({**feature, "properties": each}, "type", "geometry", "properties")
        for each in properties
    ]
    return {"type": "array", "items": {"anyOf": forms}}


_NODE = _object({"kind": {"const": "node"}, "node": _NAME}, "kind", "node")
_ROAD = _object(
    {
        "kind": {"const": "road"},
        "u": _NAME,
        "v": _NAME,
        "length_m": _NUMBER,
        "speed_mps": _NUMBER,
        "forward": {"type": "boolean"},
        "backward": {"type": "boolean"},
    },
    *("kind", "u", "v", "length_m", "speed_mps", "forward", "backward"),
)
_CELL = _object({"cell": {"type": "integer"}, "nodes": {"type": "integer"}}, "cell", "nodes")
_NETWORK = Message(
    "Network",
    "Description of the road network.",
    schema_of(NetworkAbout),
    msgspec.json.decode(
        NetworkAbout(1, "bec64b210518afc4", 400, 760, (24.9, 60.1, 25.0, 60.2), 2).encoded()
    ),
)
_NETWORK_PART = Message(
    "NetworkPart",
    "A part of the road network: nodes and roads as GeoJSON.",
    _object(
        {
            "type": {"const": "FeatureCollection"},
            "network": {"type": "string"},
            "part": {"type": "integer", "minimum": 0},
            "features": _features(_NODE, _ROAD),
        },
        *("type", "network", "part", "features"),
    ),
)
_COUNTS = Message(
    "Counts",
    "Safe counts of devices by cells.",
    schema_of(CountsMessage),
    {
        "v": CONTRACT_VERSION,
        "time": 1800000060.0,
        "interval_s": 60.0,
        "network": "bec64b210518afc4",
        "k": 10,
        "n_cells": 128,
        "counts": [
            {
                "first": 0,
                "last": 3,
                "devices": 20,
                "speed_mps": 8.0,
                "dwell_s": 60.0,
                "origins": [{"first": 0, "last": 3, "devices": 10}],
            }
        ],
    },
)
_PRIVATE_COUNTS = Message(
    "PrivateCounts",
    "Counts of devices by cells, with differential privacy.",
    schema_of(PrivateCountsMessage),
    {
        "v": CONTRACT_VERSION,
        "time": 1800000900.0,
        "interval_s": 900.0,
        "network": "bec64b210518afc4",
        "n_cells": 16,
        "privacy": {
            "period_s": 86400.0,
            "period_ends": 1800057600.0,
            "epsilon": 1.0,
            "delta": 1e-6,
            "epsilon_spent": 0.2301,
            "device_intervals": 8,
            "noise_sd": 20.3411,
        },
        "devices": [31, -4, 12, 55, 8, -17, 0, 23, 41, 6, 19, -9, 2, 37, 14, 28],
    },
)
_CELLS = Message(
    "Cells",
    "The cells of the counts, as GeoJSON boxes.",
    _object(
        {
            "type": {"const": "FeatureCollection"},
            "network": {"type": "string"},
            "features": _features(_CELL),
        },
        *("type", "network", "features"),
    ),
)
_CLASS = Message("Class", "An equivalence class of records.", schema_of(ClassMessage))


def _current(region: Message) -> Message:
    return Message(
        "Current",
        "The groups that live now, as they were last published.",
        _object(
            {
                "v": {"const": CONTRACT_VERSION},
                "time": _NUMBER,
                "network": {"type": "string"},
                "part": {"type": "integer", "minimum": 0},
                "of": {"type": "integer", "minimum": 1},
                "groups": {"type": "array", "items": {"$ref": f"#/$defs/{_root_of(region)}"}},
            },
            *("v", "time", "network", "part", "of", "groups"),
        )
        | {"$defs": (region.schema or {})["$defs"]},
    )


def _root_of(message: Message) -> str:
    return str((message.schema or {})["$ref"]).rpartition("/")[2]


def _outgoing(settings: Settings) -> Iterator[Channel]:
    yield Channel(settings.broker.status_topic, _STATUS, incoming=False, retained=True)
    if settings.inputs:
        yield from _of_positions(settings)
    for stream in settings.streams:
        yield Channel(stream.output_topic, _CLASS, incoming=False)


def _of_positions(settings: Settings) -> Iterator[Channel]:
    region = _GROUP if settings.output.form == "group" else _DEVICE
    yield Channel(settings.output.topic, region, incoming=False)
    fixed = {each.publish for each in settings.inputs if each.kind == "fixed"}
    if "cloaked" in fixed:
        yield Channel(settings.fixed.topic, region, incoming=False)
    if "public" in fixed:
        yield Channel(settings.fixed.public_topic, _PUBLIC, incoming=False)
    yield Channel(settings.output.rejected_topic, _REJECTED, incoming=False)
    if settings.public_network.enabled:
        topic = settings.public_network.topic
        yield Channel(topic, _NETWORK, incoming=False, retained=True)
        yield Channel(f"{topic}/parts/{{part}}", _NETWORK_PART, incoming=False, retained=True)
    if settings.current.every_s:
        topic = f"{settings.current.topic}/{{part}}"
        yield Channel(topic, _current(region), incoming=False, retained=True)
    if settings.counts.enabled:
        topic = settings.counts.topic
        is_private = settings.counts.privacy == "dp"
        yield Channel(topic, _PRIVATE_COUNTS if is_private else _COUNTS, incoming=False)
        yield Channel(f"{topic}/cells", _CELLS, incoming=False, retained=True)
