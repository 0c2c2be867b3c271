"""Messages of the contract: what each is, its JSON Schema, and an example.

The schemas of what this gateway encodes are made from the classes that encode it.
"""

from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple, TypeAlias

import msgspec

from anonymizer.app.gateway.home_assistant import GatewayState, discovery
from anonymizer.codecs import CoarsePoint
from anonymizer.codecs.device_zones import MOST_K, MOST_RADIUS_M, MOST_ROAD_M
from anonymizer.networks.publication import NetworkAbout
from anonymizer.pipeline.positions.counts.counting import CountsMessage
from anonymizer.pipeline.positions.counts.private_counts import PrivateCountsMessage
from anonymizer.pipeline.positions.out.encoding import DeviceMessage, GroupMessage
from anonymizer.pipeline.positions.out.other_forms import ENTITY_TYPE, entity
from anonymizer.pipeline.positions.out.public_devices import PublicMessage
from anonymizer.pipeline.positions.out.trips import TripsMessage
from anonymizer.pipeline.records.encoding import ClassMessage
from anonymizer.settings import PSEUDONYM, InputSettings, Settings
from anonymizer.settings.json_schema import comments_of
from anonymizer.transport.link import LOST, OFFLINE, ONLINE

CONTRACT_VERSION = 1
"""Of the messages; they carry it as `v` where they are made for machines. It changes when a field
is changed or removed. Fields may be added at any time, so readers ignore those they do not know."""

Schema: TypeAlias = dict[str, Any]
_JSON = "application/json"
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


class MessageKind(NamedTuple):
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
NATIVE = MessageKind(
    "Position",
    "A position as a device states it, or an array of these.",
    {"anyOf": [_POSITION_IN, {"type": "array", "minItems": 1, "items": _POSITION_IN}]},
    {"lat": 60.1699, "lon": 24.9384, "ts": 1800000000.2, "readings": {"speed_mps": 8.3}},
)
READINGS_IN = MessageKind(
    "Readings",
    "Readings of a registered device, or its position in the format of the codec.",
    {"type": ["object", "array"]},
    {"no2": 12},
)
ZONES_IN = MessageKind(
    "Zones",
    "Privacy zones and demands of a device, retained by it; beyond a maximum it is not published.",
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
                                "radius_m": {
                                    "type": "number",
                                    "exclusiveMinimum": 0,
                                    "maximum": MOST_RADIUS_M,
                                },
                            },
                            *("lat", "lon", "radius_m"),
                        )
                    },
                    "circle",
                ),
                _object(
                    {"polygon": {"type": "array", "minItems": 3, "items": _POSITION}}, "polygon"
                ),
                _object({"everywhere": {"const": True}}, "everywhere"),
                _object({"k": {"type": "integer", "minimum": 2, "maximum": MOST_K}}, "k"),
                _object(
                    {"road_m": {"type": "number", "exclusiveMinimum": 0, "maximum": MOST_ROAD_M}},
                    "road_m",
                ),
                _object({"trips": {"const": False}}, "trips"),
            ]
        },
    },
    [{"circle": {"lat": 60.17, "lon": 24.94, "radius_m": 300}}],
)


_EXAMPLE_OF_A_REGION: Mapping[str, Any] = {
    "v": CONTRACT_VERSION,
    "time": 1800000000.3,
    "until": 1800000030.3,
    "network": "bec64b210518afc4",
    "group": "0Jt1uZ9xQmT4",
    "k": 2,
    "region": [2, 6, 7, 12],
}
GROUP = MessageKind(
    "Group",
    "A group: all devices that publish one region at one time.",
    schema_of(GroupMessage, also_required=_STAMPED),
    {**_EXAMPLE_OF_A_REGION, "pseudonyms": ["3nG0cQ9kPqAz", "fU2x1bpQ7zdw"]},
)
DEVICE = MessageKind(
    "Device",
    "One member of a group.",
    schema_of(DeviceMessage, also_required=_STAMPED),
    {**_EXAMPLE_OF_A_REGION, "pseudonym": "3nG0cQ9kPqAz"},
)
PUBLIC = MessageKind(
    "PublicDevice",
    "A public device that stands still.",
    schema_of(PublicMessage),
    {"time": 1800000000.3, "device": "air-1", "lat": 60.1699, "lon": 24.9384},
)
REJECTED = MessageKind(
    "Rejected",
    "Of how many devices something was not used since the previous report, in steps of k.",
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
    {"time": 1800000000.3, "rejected": {"invalid/malformed": 10}},
)
STATUS = MessageKind(
    "Status",
    "Whether the gateway is connected; `lost` is its last will.",
    {"enum": [state.decode() for state in (ONLINE, OFFLINE, LOST)]},
    ONLINE.decode(),
    "text/plain",
)
WHY_SILENT = MessageKind(
    "WhySilent",
    "Why positions arrive and none is published, in one sentence; nothing is retained otherwise.",
    {"type": "string"},
    "fewer devices are present than a group needs (2 to 10, by density): nothing is published until"
    " more come, or, for less protection, write k_values = [5, 2, 2] and k_floor = 2 in [adka] and"
    " restart",
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
        "way": {"type": "integer", "minimum": 1},
    },
    *("kind", "u", "v", "length_m", "speed_mps", "forward", "backward"),
)
_CELL = _object({"cell": {"type": "integer"}, "nodes": {"type": "integer"}}, "cell", "nodes")
NETWORK = MessageKind(
    "Network",
    "Description of the road network.",
    schema_of(NetworkAbout),
    msgspec.json.decode(
        NetworkAbout(1, "bec64b210518afc4", 400, 760, (24.9, 60.1, 25.0, 60.2), 2).encoded()
    ),
)
NETWORK_PART = MessageKind(
    "NetworkPart",
    "A part of the road network: nodes and roads as GeoJSON.",
    _object(
        {
            "type": {"const": "FeatureCollection"},
            "network": {"type": "string"},
            "part": {"type": "integer", "minimum": 0},
            "of": {"type": "integer", "minimum": 1, "description": "As `parts` of the network."},
            "features": _features(_NODE, _ROAD),
        },
        *("type", "network", "part", "of", "features"),
    ),
)
COUNTS = MessageKind(
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
PRIVATE_COUNTS = MessageKind(
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
            "epsilon_spent": 0.2287,
            "device_intervals": 8,
            "noise_sd": 18.1236,
        },
        "devices": [31, -4, 12, 55, 8, -17, 0, 23, 41, 6, 19, -9, 2, 37, 14, 28],
    },
)
TRIPS = MessageKind(
    "Trips",
    "Trips that ended in a window, in classes of at least k devices.",
    schema_of(TripsMessage),
    {
        "v": CONTRACT_VERSION,
        "time": 1800003600.0,
        "window_s": 3600.0,
        "network": "bec64b210518afc4",
        "k": 10,
        "n_cells": 256,
        "trips": [
            {
                "origin": {"first": 64, "last": 95},
                "destination": {"first": 200, "last": 207},
                "start": [1800000000.0, 1800003600.0],
                "devices": 20,
                "roads": [[1093, 1094], [1094, 1123]],
            }
        ],
    },
)
CELLS = MessageKind(
    "Cells",
    "The cells of counts or trips, as GeoJSON boxes. What does not fit into one message is on the "
    "topics behind this one, /1 and so on.",
    _object(
        {
            "type": {"const": "FeatureCollection"},
            "network": {"type": "string"},
            "part": {"type": "integer", "minimum": 0},
            "of": {"type": "integer", "minimum": 2},
            "features": _features(_CELL),
        },
        *("type", "network", "features"),
    ),
)
ENTITY = MessageKind(
    "Entity",
    "A group, or one member of it, as an NGSI-LD entity in normalized form.",
    {
        "type": "object",
        "properties": {
            "@context": {"type": "string"},
            "id": {"type": "string", "pattern": "^urn:ngsi-ld:"},
            "type": {"const": ENTITY_TYPE},
            "location": {
                "type": "object",
                "properties": {
                    "type": {"const": "GeoProperty"},
                    "value": _GEOMETRY,
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
STATE = MessageKind(
    "State",
    "Public figures of the gateway, and whether it is ready, for Home Assistant.",
    schema_of(GatewayState),
    {"v": 1, "ready": True, "devices": 120, "published": 5030, "suppressed": 20},
)
DISCOVERY = MessageKind(
    "Discovery",
    "The gateway as a device of Home Assistant.",
    {
        "type": "object",
        "properties": {
            "device": {"type": "object", "required": ["identifiers", "name"]},
            "origin": {"type": "object", "required": ["name"]},
            "state_topic": {"type": "string"},
            "availability_topic": {"type": "string"},
            "availability_template": {"type": "string"},
            "components": {
                "type": "object",
                "additionalProperties": {
                    "type": "object",
                    "required": ["platform", "unique_id", "name", "value_template"],
                },
            },
        },
        "required": ["device", "origin", "state_topic", "components"],
    },
    msgspec.json.decode(discovery(Settings()).payload),
)
CLASS = MessageKind("Class", "An equivalence class of records.", schema_of(ClassMessage))


def current(region: MessageKind) -> MessageKind:
    """Return the message with the groups that live now, in the form of those about regions."""
    return MessageKind(
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


def echo(input_: InputSettings) -> MessageKind:
    """Return the message of an echo, described by an example in the format of the input."""
    topic = (input_.echo or "").replace(PSEUDONYM, _ECHOED.pseudonym)
    written = input_.make_encoder()(_ECHOED._replace(topic=topic))
    kind = input_.codec
    if input_.payload is not None:  # each input declares another format
        kind += f"_{blake2b(input_.model_dump_json().encode(), digest_size=4).hexdigest()}"
    name, summary = f"Echo_{kind}", f"A pseudonym in its region, in the format {input_.codec}."
    media = _MEDIA.get(input_.codec)
    if media is not None:
        return MessageKind(name, summary, None, content_type=media)
    example = msgspec.json.decode(written)
    return MessageKind(name, summary, _schema_like(example), example)


_ECHOED = CoarsePoint(60.1699, 24.9384, 412, 1800000000.3, "3nG0cQ9kPqAz", "")
_MEDIA = {"gtfs_rt": "application/x-protobuf", "msgpack": "application/msgpack"}
"""Media types of what is not JSON."""


def _schema_like(value: Any) -> Schema:  # noqa: ANN401  any JSON
    """Return the schema of values that have the fields of one, and their types."""
    if isinstance(value, dict):
        return _object({name: _schema_like(each) for name, each in value.items()}, *value)
    if isinstance(value, list):
        places = [_schema_like(each) for each in value]
        return {"type": "array", "prefixItems": places, "items": False, "minItems": len(value)}
    return {"type": _TYPE_OF[type(value)]}


_TYPE_OF: Mapping[type, str] = {
    str: "string",
    bool: "boolean",
    int: "number",
    float: "number",
    type(None): "null",
}


def _root_of(message: MessageKind) -> str:
    return str((message.schema or {})["$ref"]).rpartition("/")[2]
