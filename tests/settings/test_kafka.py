"""Settings of a gateway in Kafka."""

from typing import Any

import pytest
from pydantic import ValidationError

from anonymizer.pipeline.positions.decode.topics import TopicRouter
from anonymizer.settings import Settings

RAW, OUT = {"topic": "kafka:raw"}, {"topic": "kafka:cloaked"}


def made(inputs: list[dict[str, Any]], **more: object) -> Settings:
    return Settings.model_validate({"inputs": inputs, **more})


@pytest.mark.parametrize(
    ("more", "device"),
    [
        ({}, "car%2F1"),
        ({"device_from": "header:id"}, "car%2F1"),
        ({"device_from": "payload", "codec": "j2735"}, None),
    ],
)
def test_messages_of_kafka_find_their_input(more: dict[str, str], device: str | None) -> None:
    router = TopicRouter(made([RAW | more], output=OUT).inputs)
    topic = "kafka:raw" if device is None else f"kafka:raw/{device}"
    assert router.match(topic) == (0, device)
    assert router.match("kafka:other/car") is None


@pytest.mark.parametrize(
    ("inputs", "more", "why"),
    [
        ([RAW], {}, "go together"),
        ([{}], {"output": OUT}, "go together"),
        ([RAW, {}], {"output": OUT}, "go together"),
        ([RAW], {"output": RAW}, "different topics"),
        ([{"topic": "kafka:raw/{car}"}], {"output": OUT}, "must be a topic of Kafka"),
        ([RAW | {"device_from": "topic"}], {"output": OUT}, "names no device"),
        ([{"device_from": "key"}], {}, "are for Kafka"),
        ([RAW | {"device_from": "header"}], {"output": OUT}, "must match|header:NAME|pattern"),
        ([RAW | {"kind": "fixed"}], {"output": OUT}, "needs MQTT"),
        ([RAW], {"output": OUT, "counts": {"privacy": "k"}}, "needs MQTT"),
        ([RAW], {"output": {"topic": "kafka:a/b"}}, "must be a topic of Kafka"),
    ],
)
def test_what_would_publish_nothing_or_elsewhere_is_refused(
    inputs: list[dict[str, Any]], more: dict[str, Any], why: str
) -> None:
    with pytest.raises(ValidationError, match=why):
        made(inputs, **more)


def test_groups_are_delivered_whole_to_kafka_at_any_qos() -> None:
    assert made([RAW], output={**OUT, "forms": ["device"]}).splits_groups


def stream(*sources: dict[str, Any], **more: Any) -> dict[str, Any]:  # noqa: ANN401  settings of any kind
    """Return the settings of a stream with an attribute for each of its sources."""
    named = [{"name": f"s{i}", "tells": [f"a{i}"], **each} for i, each in enumerate(sources)]
    attributes = [{"name": f"a{i}", "lo": 0, "hi": 9} for i in range(len(sources))]
    own = {"name": "fleet", "topic": "kafka:out"}
    return own | {"sources": named, "attributes": attributes} | more


@pytest.mark.parametrize(
    ("more", "topic"),
    [
        ({}, "kafka:parts/{vehicle}"),
        ({"vehicle": "header:id"}, "kafka:parts/{vehicle}"),
        ({"vehicle": "truck.plate"}, "kafka:parts"),
    ],
)
def test_records_of_kafka_find_their_source(more: dict[str, str], topic: str) -> None:
    settings = made([], streams=[stream({"topic": "kafka:parts", **more})])
    [source] = settings.streams[0].sources
    assert source.filter_topic == topic
    assert settings.in_kafka
    again = Settings.model_validate(settings.model_dump())
    assert again == settings


@pytest.mark.parametrize(
    ("streams", "why"),
    [
        ([stream({"topic": "kafka:a"}, topic="b")], "go together"),
        ([stream({})], "go together"),
        ([stream({"topic": "kafka:a"}, {})], "go together"),
        ([stream({"topic": "kafka:a"}, topic="kafka:a")], "another topic"),
        ([stream({"topic": "kafka:a/b"})], "must be a topic of Kafka"),
        ([stream({"topic": "kafka:a"}, topic="kafka:{stream}")], "must be a topic of Kafka"),
        ([stream({"vehicle": "header:h"}, topic="b")], "header"),
        (
            [
                stream({"topic": "kafka:a"}),
                stream({"topic": "kafka:out"}, name="other", topic="kafka:o"),
            ],
            "another topic",
        ),
        ([stream({"topic": "kafka:a"}), stream({}, name="other", topic="b")], "all streams"),
        (
            [
                stream({"topic": "kafka:a"}, cumulative="report"),
                stream(
                    {"topic": "kafka:a", "vehicle": "header:h"}, name="other", cumulative="report"
                ),
            ],
            "alike",
        ),
    ],
)
def test_records_that_would_be_read_or_published_twofold_are_refused(
    streams: list[dict[str, Any]], why: str
) -> None:
    with pytest.raises(ValidationError, match=why):
        made([], streams=streams)


@pytest.mark.parametrize(
    ("echo", "more", "why"),
    [
        ("raw", OUT, "different topics"),
        ("cloaked", OUT, "different topics"),
        ("a/{pseudonym}", OUT, "a topic of Kafka"),
    ],
)
def test_an_echo_in_kafka_has_a_topic_of_its_own(echo: str, more: dict[str, str], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        made([RAW | {"echo": echo}], output=more)


def test_an_echo_in_kafka_needs_no_qos_and_no_level_for_the_pseudonym() -> None:
    settings = made([RAW | {"codec": "owntracks", "echo": "echoed"}], output=OUT)
    assert settings.kafka_outputs == {"kafka:cloaked": "cloaked", "echoed": "echoed"}
