"""`[cluster]` and `[kafka]`, the keys of messages in Kafka, and their partitions."""

from typing import Any, get_args
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from anonymizer.cluster.limits import check_cluster, reads_mqtt
from anonymizer.cluster.topics import Kind, key_of, stage_of, topic_by_kind, topics_of
from anonymizer.errors import SettingsError
from anonymizer.settings import Settings
from anonymizer.settings.kafka import KafkaSettings


@given(st.sampled_from(get_args(Kind)), st.integers(0, 300), st.integers(1, 300))
def test_a_key_names_its_stage_and_lands_in_its_partition(kind: Kind, number: int, n: int) -> None:
    key = key_of(kind, number, n)
    assert crc32(key) % n == number % n
    assert stage_of(key) == (kind, number)


@pytest.mark.parametrize(
    "key", [b"", b"source", b"lane-x-1", b"other-1-1", b"lane-1-1-1", b"lane--1"]
)
def test_a_key_of_others_names_no_stage(key: bytes) -> None:
    with pytest.raises(ValueError, match="names no stage"):
        stage_of(key)


def test_there_are_as_many_partitions_as_stages() -> None:
    settings = Settings.model_validate(
        {"kafka": {"group": "city"}, "cluster": {"n_parts": 3}, "region": {"districts": 8}}
    )
    assert topics_of(settings)[:3] == (("city.sources", 3), ("city.lanes", 8), ("city.out", 3))
    assert set(topic_by_kind(settings)) == {"source", "lane", "out", "dropped"}


STREAM = {
    "name": "trucks",
    "sources": [{"name": "gps", "tells": ["speed"]}],
    "attributes": [{"name": "speed", "lo": 0.0, "hi": 100.0, "step": 1.0}],
}

TAXIS = {"device_from": "payload"}

NAMED_IN_PAYLOAD = {"name": "gps", "topic": "gps", "vehicle": "id", "tells": ["speed"]}


IN_KAFKA = {"name": "gps", "topic": "kafka:parts", "tells": ["speed"]}


def test_a_cluster_needs_bridges_if_anything_is_of_mqtt() -> None:
    of_kafka = {"inputs": [{"topic": "kafka:raw"}], "output": {"topic": "kafka:cloaked"}}
    classes = {"streams": [STREAM | {"sources": [IN_KAFKA], "topic": "kafka:classes"}]}
    assert not reads_mqtt(Settings.model_validate(of_kafka | classes))
    assert reads_mqtt(Settings.model_validate(of_kafka | {"streams": [STREAM]}))
    assert reads_mqtt(Settings.model_validate(classes))


def test_records_alone_need_no_topics_of_positions() -> None:
    settings = Settings.model_validate(
        {
            "kafka": {"group": "city"},
            "cluster": {"n_parts": 3},
            "inputs": [],
            "streams": [STREAM],
        }
    )
    check_cluster(settings)
    assert topic_by_kind(settings) == {
        "out": ("city.out", 3),
        "stream": ("city.parts", 3),
        "release": ("city.releases", 3),
        "dropped": ("city.dropped", 1),
    }


@pytest.mark.parametrize(
    "kafka", ["", "host", "host:0", "host:1,", "http://host:1", ":1", "a:70000"]
)
def test_an_address_has_a_host_and_a_port(kafka: str) -> None:
    with pytest.raises(ValidationError):
        KafkaSettings(servers=kafka)


def test_options_of_promises_are_refused_and_secrets_are_not_shown() -> None:
    KafkaSettings(servers="a:1,[::1]:2")
    with pytest.raises(ValidationError, match="set by bridges"):
        KafkaSettings.model_validate({"options": {"acks": "0"}})
    shown = KafkaSettings.model_validate({"options": {"sasl.password": "geheim"}})
    assert "geheim" not in repr(shown)


@pytest.mark.parametrize(
    ("key", "tables"),
    [
        ('output.forms = "home_assistant"', {"output": {"forms": ["home_assistant"]}}),
        ("trips.learn_days", {"trips": {"learn_days": 2}}),
        (
            "a message can match both cars/\\+/{device} and cars/#",
            {"inputs": [{"topic": "cars/+/{device}"}, TAXIS | {"topic": "cars/#"}]},
        ),
        (
            "is the topic of a source of records, too",
            {"inputs": [{"topic": "records/gps/{device}"}], "streams": [STREAM]},
        ),
    ],
)
def test_what_a_cluster_cannot_do_is_refused(key: str, tables: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match=key):
        check_cluster(Settings.model_validate(tables))


@pytest.mark.parametrize(
    "tables",
    [
        {"counts": {"privacy": "dp"}},
        {"counts": {"privacy": "w-event"}},
        {"counts": {"streets_s": 3600}},
        {"current": {"every_s": 1}},
        {"output": {"forms": ["cloudevents", "ngsi_ld"]}},
        {"inputs": [{"kind": "fixed"}]},
        {"inputs": [{"topic": "a/{device}"}, {"topic": "b/+/{device}/#"}]},
        {"inputs": [{"topic": "a/+", "device_from": "payload"}, {}]},
        {"inputs": [{"topic": "kafka:raw"}], "output": {"topic": "kafka:cloaked"}},
        {"streams": [STREAM | {"sources": [IN_KAFKA], "topic": "kafka:classes"}]},
        {
            "inputs": [
                {"codec": "json", "payload": {"lat": "a", "lon": "b", "time": "t", "join_s": 1}}
            ]
        },
    ],
)
def test_what_one_process_can_do_is_accepted(tables: dict[str, Any]) -> None:
    check_cluster(Settings.model_validate(tables))


@pytest.mark.parametrize("mobile", [[], [{}]])
def test_public_devices_and_readings_are_accepted(mobile: list[dict[str, Any]]) -> None:
    public = {"topic": "sensors/{device}", "kind": "public"}
    readings = [{"name": "no2", "lo": 0.0, "hi": 100.0}]
    check_cluster(Settings.model_validate({"inputs": [*mobile, public], "readings": readings}))
