"""The contract: an AsyncAPI document of all topics, in and out, with a JSON Schema of each message.

It is made from the settings and from the classes that encode the messages, so it says what this
gateway reads and publishes, under the topics that it uses.

References
----------
.. [1] "AsyncAPI Specification 3.0.0", 2023.
.. [2] "JSON Schema: A Media Type for Describing JSON Documents", draft 2020-12.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from anonymizer import __version__
from anonymizer.app.contract_messages import (
    CLASS,
    DISCOVERY,
    GATEWAYS,
    NATIVE,
    NETWORK,
    NETWORK_PART,
    READINGS_IN,
    REJECTED,
    STATE,
    STATUS,
    WHY_SILENT,
    ZONES_IN,
)
from anonymizer.app.gateway.home_assistant import discovery_topic
from anonymizer.app.gateway.own_reports import why_topic
from anonymizer.outputs.cloud_events import event_headers
from anonymizer.outputs.current.current_contract import current_channels
from anonymizer.outputs.groups_contract import group_channels
from anonymizer.outputs.message_kind import CONTRACT_VERSION, Channel, MessageKind
from anonymizer.outputs.registry import asked_for, copies_asked_for
from anonymizer.settings import Settings

_FORMAT = "application/schema+json;version=draft-2020-12"
_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_NAMED_LEVEL = re.compile(r"\{(\w+)\}")


def channels(settings: Settings) -> list[Channel]:
    """Return all topics of a gateway with these settings."""
    found = [each.of_kafka for each in (*_incoming(settings), *_outgoing(settings))]
    return list({channel.address: channel for channel in found}.values())


def asyncapi(settings: Settings) -> dict[str, Any]:
    """Return the AsyncAPI 3 document of a gateway with these settings."""
    known = channels(settings)
    messages = {channel.message.name: channel.message for channel in known}
    keys = {each.message.name: each.key for each in known if each.kafka is not None}
    headers = event_headers(settings)
    events = frozenset[str]() if headers is None else frozenset(headers.kind_of.values())
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
        "defaultContentType": "application/json",
        "channels": {_key(channel.address): _channel(channel) for channel in known},
        "operations": {
            f"{'receive' if channel.incoming else 'send'}_{_key(channel.address)}": {
                "action": "receive" if channel.incoming else "send",
                "channel": {"$ref": f"#/channels/{_key(channel.address)}"},
            }
            for channel in known
        },
        "components": {
            "messages": {
                name: _message(each)
                | ({"headers": headers.schema(name)} if headers and name in events else {})
                | (_keyed(keys[name]) if keys.get(name) else {})
                for name, each in messages.items()
            },
            "schemas": {
                name: {
                    "schemaFormat": _FORMAT,
                    "schema": {"$schema": _DIALECT} | _without_references(each.schema, {}),
                }
                for name, each in messages.items()
                if each.schema is not None
            },
        },
    }


def _channel(channel: Channel) -> dict[str, Any]:
    parameters = {
        name: {"description": f"Level of the topic: {name}."}
        for name in _NAMED_LEVEL.findall(channel.address)
    }
    name = channel.message.name
    bindings: dict[str, Any] = {"mqtt": {"retain": True}} if channel.retained else {}
    if channel.kafka is not None:
        bindings = {"kafka": {"topic": channel.kafka}}
    return {
        "address": channel.address,
        "messages": {name: {"$ref": f"#/components/messages/{name}"}},
        **({"parameters": parameters} if parameters else {}),
        **({"bindings": bindings} if bindings else {}),
    }


def _message(message: MessageKind) -> dict[str, Any]:
    body: dict[str, Any] = {
        "name": message.name,
        "summary": message.summary,
        "contentType": message.content_type,
    }
    if message.schema is not None:
        body["payload"] = {"$ref": f"#/components/schemas/{message.name}"}
    if message.example is not None:
        body["examples"] = [{"payload": message.example}]
    return body


def _without_references(part: Any, known: Mapping[str, Any]) -> Any:  # noqa: ANN401  any JSON
    """Return a schema in which definitions stand where they are used.

    Parsers of AsyncAPI take every reference for one into the whole document.
    """
    if isinstance(part, list):
        return [_without_references(each, known) for each in part]
    if not isinstance(part, dict):
        return part
    known = part.get("$defs", known)
    own = {key: value for key, value in part.items() if key not in {"$ref", "$defs"}}
    if "$ref" in part:
        own = known[part["$ref"].removeprefix("#/$defs/")] | own
        return _without_references(own, known)
    return {key: _without_references(value, known) for key, value in own.items()}


def _keyed(key: str) -> dict[str, Any]:
    """Return what a message that has a key in Kafka is there."""
    return {"bindings": {"kafka": {"key": {"type": "string", "description": key}}}}


def _key(address: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "_", address).strip("_")


def _incoming(settings: Settings) -> Iterator[Channel]:
    for each in settings.inputs:
        message = NATIVE
        if each.registry is not None:
            message = READINGS_IN
        elif each.codec != "native":
            name = f"Position_{each.codec}"
            message = MessageKind(
                name, f"A message in the format {each.codec}; see its codec.", None
            )
        key = "The id of the device." if each.device_from == "key" else ""
        yield Channel(each.topic, message, incoming=True, kafka=each.kafka, key=key)
    if settings.device_zones.enabled:
        yield Channel(settings.device_zones.filter_topic, ZONES_IN, incoming=True, retained=True)
    for stream in settings.streams:
        for source in stream.sources:
            name = f"Part_{stream.name}_{source.name}"
            told = ", ".join(source.tells)
            besides = "its time" if source.vehicle_path is None else "its time and its vehicle"
            summary = f"Part of a record of {stream.name}: {told}; and {besides}."
            by_key = source.kafka and source.vehicle is None
            yield Channel(
                source.topic,
                MessageKind(name, summary, {"type": "object"}),
                incoming=True,
                kafka=source.kafka,
                key="The id of the vehicle." if by_key else "",
            )


def _outgoing(settings: Settings) -> Iterator[Channel]:
    # A gateway in Kafka publishes nothing else there.
    yield from (each for each in _of_gateway(settings) if each.kafka or not settings.in_kafka)
    for stream in settings.streams:
        yield Channel(stream.output_topic, CLASS, incoming=False, kafka=stream.kafka)


def outgoing_topics(settings: Settings) -> list[str]:
    """Return a topic of MQTT of each kind of message for others that is not retained.

    Parts that vary, such as a pseudonym, are `probe`.
    """
    every = (each for each in _outgoing(settings) if each.message is not GATEWAYS)
    found = (each for each in every if not each.kafka and not each.retained)
    return [re.sub(r"\{[^{}]*\}", "probe", each.address) for each in found]


def _of_gateway(settings: Settings) -> Iterator[Channel]:
    yield Channel(settings.broker.status_topic, STATUS, incoming=False, retained=True)
    yield Channel(settings.topics.probe, GATEWAYS, incoming=False)
    if settings.inputs:
        yield Channel(why_topic(settings), WHY_SILENT, incoming=False, retained=True)
        yield from _of_positions(settings)


def _of_positions(settings: Settings) -> Iterator[Channel]:
    yield from group_channels(settings)
    yield Channel(settings.topics.rejected, REJECTED, incoming=False)
    if settings.public_network.enabled:
        topic = settings.topics.network
        yield Channel(topic, NETWORK, incoming=False, retained=True)
        yield Channel(f"{topic}/parts/{{part}}", NETWORK_PART, incoming=False, retained=True)
    yield from current_channels(settings)
    if "home_assistant" in settings.output.forms:
        yield Channel(discovery_topic(settings), DISCOVERY, incoming=False, retained=True)
        yield Channel(settings.topics.state, STATE, incoming=False, retained=True)
    for output in asked_for(settings):
        yield from output.channels(settings)
    for copies in copies_asked_for(settings):
        yield from copies.channels(settings)
