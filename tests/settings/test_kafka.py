"""Settings of a gateway in Kafka."""

from typing import Any

import pytest
from pydantic import ValidationError

from anonymizer.pipeline.positions.decode.topics import TopicRouter
from anonymizer.settings import Settings

RAW, OUT = {"kafka": "raw"}, {"kafka": "cloaked"}


def made(inputs: list[dict[str, Any]], **more: object) -> Settings:
    return Settings.model_validate({"inputs": inputs, **more})


@pytest.mark.parametrize(
    ("more", "device"),
    [
        ({}, "car%2F1"),
        ({"device_from": "header", "header": "id"}, "car%2F1"),
        ({"device_from": "payload", "codec": "j2735"}, None),
    ],
)
def test_messages_of_kafka_find_their_input(more: dict[str, str], device: str | None) -> None:
    router = TopicRouter(made([RAW | more], output=OUT).inputs)
    topic = "kafka/raw" if device is None else f"kafka/raw/{device}"
    assert router.match(topic) == (0, device)
    assert router.match("kafka/other/car") is None


@pytest.mark.parametrize(
    ("inputs", "more", "why"),
    [
        ([RAW], {}, "go together"),
        ([{}], {"output": OUT}, "go together"),
        ([RAW, {}], {"output": OUT}, "go together"),
        ([RAW], {"output": RAW}, "another topic"),
        ([RAW | {"topic": "a/{device}"}], {"output": OUT}, "either topic or kafka"),
        ([RAW | {"device_from": "topic"}], {"output": OUT}, "names no device"),
        ([{"device_from": "key"}], {}, "are for kafka"),
        ([RAW | {"device_from": "header"}], {"output": OUT}, "needs it"),
        ([RAW | {"header": "id"}], {"output": OUT}, "needs it"),
        ([RAW | {"kind": "fixed"}], {"output": OUT}, "needs MQTT"),
        ([RAW], {"output": OUT, "counts": {"enabled": True}}, "needs MQTT"),
        ([{"kafka": "a/b"}], {"output": OUT}, "kafka"),
    ],
)
def test_what_would_publish_nothing_or_elsewhere_is_refused(
    inputs: list[dict[str, Any]], more: dict[str, Any], why: str
) -> None:
    with pytest.raises(ValidationError, match=why):
        made(inputs, **more)


def test_groups_are_delivered_whole_to_kafka_at_any_qos() -> None:
    assert made([RAW], output={**OUT, "form": "device"}).splits_groups
