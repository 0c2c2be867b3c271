"""Schemas of messages in Kafka: what is registered, and what others read with it."""

import json
from collections.abc import Iterator
from typing import Any, Literal

import jsonschema  # type: ignore[import-untyped]
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.app.avro_schema import avro_schema
from anonymizer.app.registered_output import registered_schemas, schema_of_output
from anonymizer.outputs.groups_contract import DEVICE, GROUP
from anonymizer.pipeline.positions.out.encoding import DeviceMessage, GroupMessage
from anonymizer.settings import Settings
from anonymizer.transport.kafka_problems import KafkaLostError
from anonymizer.transport.schema_registry import RegisteredSchema
from tests.transport.registry import Registry, read


@pytest.fixture
def registry() -> Iterator[Registry]:
    running = Registry()
    yield running
    running.close()


def named(said: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in said.items() if value is not None}


numbers = st.floats(allow_nan=False, allow_infinity=False)
texts = st.text(max_size=4)
members = st.lists(texts, max_size=3)
stamps = {
    "v": st.just(1),
    "network": texts,
    "group": texts,
    "until": numbers,
    "geometry": st.just(msgspec.UNSET)
    | st.lists(st.lists(st.lists(numbers, min_size=2, max_size=2), max_size=2), max_size=2).map(
        lambda lines: msgspec.Raw(
            msgspec.json.encode({"type": "MultiLineString", "coordinates": lines})
        )
    ),
    "cells": st.just(msgspec.UNSET) | members,
    "bbox": st.just(msgspec.UNSET) | st.tuples(numbers, numbers, numbers, numbers),
    "time": numbers,
    "k": st.integers(2, 1 << 40),
    "region": st.lists(st.integers(-(1 << 62), 1 << 62) | texts, max_size=3),
    "readings": st.just(msgspec.UNSET)
    | st.dictionaries(texts, st.dictionaries(texts, numbers, max_size=2), max_size=2),
}
per_member = st.dictionaries(texts, st.lists(numbers | st.none(), max_size=3), max_size=2)
groups = st.builds(
    GroupMessage, **stamps, pseudonyms=members, values=st.just(msgspec.UNSET) | per_member
)
own = st.dictionaries(texts, numbers | st.none(), max_size=2)
devices = st.builds(DeviceMessage, **stamps, pseudonym=texts, values=st.just(msgspec.UNSET) | own)


@given(groups | devices)
def test_another_reader_of_avro_finds_what_the_json_says(
    message: GroupMessage | DeviceMessage,
) -> None:
    form: Literal["group", "device"] = "group" if isinstance(message, GroupMessage) else "device"
    schema = schema_of_output(form, "avro")
    said = msgspec.json.encode(message)
    registered = RegisteredSchema("http://x", topic="t", form="avro", schema=schema)
    assert named(read(schema, registered.framed(said))) == json.loads(said)


def test_a_message_begins_with_the_number_of_its_schema(registry: Registry) -> None:
    settings = Settings.model_validate(
        {
            "inputs": [{"topic": "kafka:raw"}],
            "output": {"topic": "kafka:cloaked.v1"},
            "kafka": {"schema_registry": {"json": registry.url.replace("//", "//me:geh%40im@")}},
        }
    )
    assert "geh" not in repr(settings)
    [(topic, schema)] = registered_schemas(settings).items()
    schema.register()
    schema.register()
    [(path, body, login)] = registry.registered  # once
    assert (topic, path) == ("cloaked.v1", "/subjects/cloaked.v1-value/versions")
    assert login == "Basic bWU6Z2VoQGlt"
    assert body["schemaType"] == "JSON"
    said = json.dumps(GROUP.example).encode()
    assert schema.framed(said) == b"\0" + (70_001).to_bytes(4) + said
    jsonschema.validate(GROUP.example, json.loads(body["schema"]))
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(DEVICE.example, json.loads(body["schema"]))


def test_avro_is_registered_as_it_is_written(registry: Registry) -> None:
    schema = schema_of_output("device", "avro")
    registered = RegisteredSchema(registry.url, topic="a/b", form="avro", schema=schema)
    registered.register()
    [(path, body, login)] = registry.registered
    assert (path, login, body["schemaType"]) == ("/subjects/a%2Fb-value/versions", None, "AVRO")
    framed = registered.framed(json.dumps(DEVICE.example).encode())
    assert framed[:5] == b"\0" + (70_001).to_bytes(4)
    assert named(read(json.loads(body["schema"]), framed[5:])) == DEVICE.example


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ((409, b"{}"), r"refuses the schema of t \(HTTP 409\)"),
        ((200, b"{}"), "gives no number"),
        ((200, b'{"id": -1}'), "gives no number"),
        ((200, b"[]"), "gives no number"),
        ((200, b"hello"), "gives no number"),
    ],
)
def test_without_a_schema_nothing_can_be_published(
    registry: Registry, answer: tuple[int, bytes], why: str
) -> None:
    registry.answer = answer
    url = registry.url.replace("//", "//me:geheim@")
    schema = RegisteredSchema(url, topic="t", form="json", schema={})
    with pytest.raises(KafkaLostError, match=why) as caught:
        schema.register()
    assert "geheim" not in repr(caught.value)
    registry.answer = None
    schema.register()  # the next attempt


def test_a_registry_that_is_away_is_said_to_be() -> None:
    schema = RegisteredSchema("http://127.0.0.1:1", topic="t", form="json", schema={})
    with pytest.raises(KafkaLostError, match="schema_registry: does not answer"):
        schema.register()


@pytest.mark.parametrize(
    "part",
    [
        {"type": "array", "prefixItems": [{"type": "number"}, {"type": "string"}]},
        {"type": "object"},
        {"enum": [1, 2]},
    ],
)
def test_what_avro_cannot_say_is_refused(part: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="Avro schema"):
        avro_schema({"type": "object", "properties": {"a": part}}, "A")
    with pytest.raises(ValueError, match="named fields"):
        avro_schema({"type": "string"}, "A")


@pytest.mark.parametrize(
    ("stated", "why"),
    [
        ({"json": "registry:8081"}, "must be an address"),
        ({"json": "http://a", "avro": "http://a"}, "not both"),
        ({"json": "http://a"}, "is for an output.topic of Kafka"),
    ],
)
def test_settings_of_a_registry_that_cannot_be_are_refused(
    stated: dict[str, str], why: str
) -> None:
    with pytest.raises(ValueError, match=why):
        Settings.model_validate({"kafka": {"schema_registry": stated}})
