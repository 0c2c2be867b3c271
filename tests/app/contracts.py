"""The contract of a gateway, and messages judged by it."""

import json
import re
from typing import Any

from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from anonymizer.app.contract import asyncapi, channels
from anonymizer.codecs import encoders
from anonymizer.domain.readings import SAFE_STATISTICS
from anonymizer.outputs.message_kind import Channel
from anonymizer.settings import Settings
from tests.end_to_end import Seen

FORMS = ["cloudevents", "density", "home_assistant", "ngsi_ld"]
EVERYTHING: dict[str, Any] = {
    "counts": {"privacy": "k", "every_s": 0.4, "k": 3, "cells": 16},
    "current": {"every_s": 0.1},
    "trips_out": {"every_s": 0.4},
    "trips": {"gap_s": 0.2, "dwell_s": 0.2},
    "presence": {"max_behind_s": 0.5, "ttl_s": 120.0},
    "device_zones": {"topic": "zones/{device}"},
    "adka": {"density_steps": [], "k_values": [3]},
    "output": {"qos": 1, "forms": FORMS},
    "readings": [
        {"name": "no2", "lo": 0.0, "hi": 400.0},
        {"name": "speed_mps", "lo": 0.0, "hi": 40.0, "statistics": [*SAFE_STATISTICS, "each"]},
    ],
    "inputs": [
        {"topic": "positions/{device}", "echo": "cloaked/echo/{pseudonym}"},
        {"topic": "air/{device}", "kind": "fixed"},
        {"topic": "weather/{device}", "kind": "public"},
    ],
}


def schemas(settings: Settings) -> dict[str, Any]:
    found = asyncapi(settings)["components"]["schemas"]
    return {name: schema["schema"] for name, schema in found.items()}


def closed(schema: Any) -> Any:  # noqa: ANN401  any part of a schema
    """Return the schema without room for fields that it does not name."""
    if isinstance(schema, list):
        return [closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    parts = {key: closed(part) for key, part in schema.items()}
    if "properties" in schema:
        parts["unevaluatedProperties"] = False
    return parts


def channels_of(topic: str, known: list[Channel]) -> list[Channel]:
    """Return the channels that a topic fits, those without a level by any name first."""
    patterns = [(re.sub(r"\{\w+\}", "[^/]+", each.address), each) for each in known]
    found = [each for pattern, each in patterns if re.fullmatch(pattern, topic)]
    return sorted(found, key=lambda each: each.address.count("{"))


class Contract:
    """What the contract says of each message, made once for all that are checked."""

    def __init__(self, settings: Settings) -> None:
        self.channels = channels(settings)
        said = asyncapi(settings)["components"]["messages"]
        self._headers = {name: each.get("headers") for name, each in said.items()}
        self._body = {
            name: Draft202012Validator(closed(schema)) for name, schema in schemas(settings).items()
        }

    def check(self, message: Seen) -> None:
        """Check a message against the schema of its topic, and that it has no other fields."""
        [channel, *_] = channels_of(message.topic, self.channels)
        headers = self._headers[channel.message.name]
        if headers is not None:
            Draft202012Validator(headers).validate(message.properties)
            assert message.content_type == "application/json"
        text = message.payload.decode()
        body = text if channel.message.content_type == "text/plain" else json.loads(text)
        self._body[channel.message.name].validate(body)


ECHOES = [
    {"codec": codec, "topic": f"in/{codec}/{{device}}", "echo": f"cloaked/{codec}/{{pseudonym}}"}
    for codec in encoders()
] + [
    {
        "codec": "json",
        "topic": "in/json/{device}",
        "payload": {"lat": "at.0", "lon": "at.1", "time": "at.4"},
        "echo": "cloaked/json/{pseudonym}",
    }
]
KAFKA: dict[str, Any] = {
    "inputs": [{"topic": "kafka:raw", "codec": "j2735", "echo": "coarse"}],
    "output": {"topic": "kafka:cloaked"},
    "streams": [
        {
            "name": "fleet",
            "sources": [{"name": "all", "topic": "kafka:parts", "tells": ["speed"]}],
            "attributes": [{"name": "speed", "lo": 0, "hi": 9}],
            "topic": "kafka:classes",
        }
    ],
}
