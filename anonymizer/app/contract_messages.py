"""Messages of the contract: what each is, its JSON Schema, and an example.

The schemas of what this gateway encodes are made from the classes that encode it.
"""

import msgspec

from anonymizer.app.gateway.home_assistant import GatewayState, discovery
from anonymizer.codecs.device_zones import MOST_K, MOST_RADIUS_M, MOST_ROAD_M
from anonymizer.networks.publication import NetworkAbout
from anonymizer.outputs.message_kind import (
    NAME,
    NUMBER,
    POSITION,
    MessageKind,
    Schema,
    features_of,
    object_of,
    schema_of,
)
from anonymizer.pipeline.records.encoding import ClassMessage
from anonymizer.settings import Settings
from anonymizer.transport.link import LOST, OFFLINE, ONLINE

_LATITUDE: Schema = {"type": "number", "minimum": -90, "maximum": 90}
_LONGITUDE: Schema = {"type": "number", "minimum": -180, "maximum": 180}
_POSITION_IN = object_of(
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
                object_of(
                    {
                        "circle": object_of(
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
                object_of(
                    {"polygon": {"type": "array", "minItems": 3, "items": POSITION}}, "polygon"
                ),
                object_of({"everywhere": {"const": True}}, "everywhere"),
                object_of({"k": {"type": "integer", "minimum": 2, "maximum": MOST_K}}, "k"),
                object_of(
                    {"road_m": {"type": "number", "exclusiveMinimum": 0, "maximum": MOST_ROAD_M}},
                    "road_m",
                ),
                object_of({"trips": {"const": False}}, "trips"),
            ]
        },
    },
    [{"circle": {"lat": 60.17, "lon": 24.94, "radius_m": 300}}],
)


REJECTED = MessageKind(
    "Rejected",
    "Of how many devices something was not used since the previous report, in steps of k.",
    object_of(
        {
            "time": NUMBER,
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
    " more come; the log says whether a smaller k would do, and what to write for it",
    "text/plain",
)
GATEWAYS = MessageKind(
    "Gateways",
    "What gateways say to themselves and to each other: that one is there, and probes that measure"
    " how long input has waited in the broker. Nobody else should read or write it.",
    {"type": "string", "pattern": r"^anonymizer gateway (\d{20} [0-9a-f]{32}|[0-9a-f]{32} \d+)$"},
    "anonymizer gateway 01800000000000000000 00112233445566778899aabbccddeeff",
    "text/plain",
)
_NODE = object_of({"kind": {"const": "node"}, "node": NAME}, "kind", "node")
_ROAD = object_of(
    {
        "kind": {"const": "road"},
        "u": NAME,
        "v": NAME,
        "length_m": NUMBER,
        "speed_mps": NUMBER,
        "forward": {"type": "boolean"},
        "backward": {"type": "boolean"},
        "way": {"type": "integer", "minimum": 1},
    },
    *("kind", "u", "v", "length_m", "speed_mps", "forward", "backward"),
)

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
    object_of(
        {
            "type": {"const": "FeatureCollection"},
            "network": {"type": "string"},
            "part": {"type": "integer", "minimum": 0},
            "of": {"type": "integer", "minimum": 1, "description": "As `parts` of the network."},
            "features": features_of(_NODE, _ROAD),
        },
        *("type", "network", "part", "of", "features"),
    ),
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
