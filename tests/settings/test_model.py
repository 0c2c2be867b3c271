from typing import Any

import pytest
from pydantic import ValidationError

from anonymizer.settings import BrokerSettings, Settings

SECRET = "s3cret"  # noqa: S105  a word to look for


@pytest.mark.parametrize(
    ("table", "values", "said"),
    [
        ("adka", {"k_values": [10, 5]}, "one value more than density_steps"),
        ("adka", {"density_steps": [10, 4]}, "density_steps must rise"),
        ("adka", {"density_steps": [4, 4]}, "density_steps must rise"),
        ("adka", {"k_values": [2, 5, 10]}, "k_values must not rise"),
        ("adka", {"k_floor": 1}, "greater than or equal to 2"),
        ("presence", {"ttl_s": 59, "max_behind_s": 60}, "max_behind_s must not exceed ttl_s"),
        ("broker", {"url": "http://broker"}, "must be mqtt://"),
        ("broker", {"url": "mqtt://"}, "must be mqtt://"),
        ("broker", {"url": "broker:1883"}, "must be mqtt://"),
        ("broker", {"url": f"mqtt://me:{SECRET}@broker"}, "must not contain credentials"),
        ("broker", {"url": f"mqtt://broker:{SECRET}"}, "a port between 0 and 65535"),
        ("broker", {"url": "mqtt://broker:99999"}, "a port between 0 and 65535"),
        ("broker", {"url": f"mqtt://me:{SECRET}@bro\u2100ker"}, "must be an address"),
        ("broker", {"url": "mqtt://[::1"}, "must be an address"),
        ("broker", {"url": "mqtt://broker"}, "must be mqtts:// off this machine"),
        ("broker", {"url": "mqtt://10.0.0.1"}, "must be mqtts:// off this machine"),
        ("broker", {"url": "mqtt://localhost.example"}, "must be mqtts:// off this machine"),
        ("broker", {"url": "mqtt://127.0.0.1.example"}, "must be mqtts:// off this machine"),
        ("broker", {"url": "mqtt://[2001:db8::1]:1883"}, "must be mqtts:// off this machine"),
        ("broker", {"password": SECRET, "password_file": "p"}, "not both"),
        ("broker", {"key_file": "key.pem"}, "key_file needs cert_file"),
        ("output", {"topic": "cloaked/#"}, "should match pattern"),
        ("broker", {"status_topic": ""}, "at least 1 character"),
        ("limits", {"max_payload_bytes": 0}, "greater than or equal to 16"),
    ],
)
def test_settings_that_do_not_fit_are_refused_without_their_value(
    table: str, values: dict[str, Any], said: str
) -> None:
    with pytest.raises(ValidationError) as caught:
        Settings.model_validate({table: values})
    [error] = caught.value.errors(include_url=False, include_input=False, include_context=False)
    assert error["loc"][0] == table
    assert said in error["msg"]
    assert SECRET not in error["msg"]


@pytest.mark.parametrize(
    ("topic", "level"),
    [
        ("a/{device}x", 2),
        ("a+/{device}", 1),
        ("#/{device}", 1),
        ("{device}/a#", 2),
        ("{Device}/x", 1),
        ("{device}/\x00", 2),
        ("{user/{device}", 1),
        ("{}/{device}", 1),
    ],
)
def test_an_input_s_topic_is_a_filter(topic: str, level: int) -> None:
    with pytest.raises(ValidationError, match=f"level {level} is neither plain"):
        Settings.model_validate({"inputs": [{"topic": topic}]})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"topic": ""}, "must not be empty"),
        ({"topic": "a/+"}, "is needed"),
        ({"topic": "a/{device}", "device_from": "payload"}, "is needed, unless"),
    ],
)
def test_an_input_says_who_is_speaking_in_one_place(given: dict[str, str], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        Settings.model_validate({"inputs": [given]})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"registry": "sensors.csv"}, "registry: only devices of kind"),
        ({"kind": "parked"}, "Input should be 'mobile', 'fixed' or 'public'"),
    ],
)
def test_only_devices_that_are_said_to_stand_still_can_be_public_or_registered(
    given: dict[str, str], said: str
) -> None:
    with pytest.raises(ValidationError, match=said):
        Settings.model_validate({"inputs": [given]})


@pytest.mark.parametrize("mode", ["session", "snapshot"])
def test_a_message_for_each_device_is_published_with_acknowledgements(mode: str) -> None:
    tables = {"region": {"mode": mode}, "output": {"forms": ["device"]}}
    with pytest.raises(ValidationError, match=r'forms = \["device"\] needs qos = 1'):
        Settings.model_validate(tables)
    Settings.model_validate(tables | {"output": {"forms": ["device"], "qos": 1}})
    Settings.model_validate(tables | {"region": {"mode": "adka"}})


@pytest.mark.parametrize(
    ("inputs", "zones"),
    [
        (["own/{user}/{device}"], "zones/{device}"),
        (["own/{user}/{device}"], "zones/{device}/{user}"),
        (["positions/{device}"], "zones/{user}/{device}"),
        (["positions/{device}", "own/{user}/{device}"], "zones/{device}"),
    ],
)
def test_zones_that_could_be_those_of_no_device_are_refused(inputs: list[str], zones: str) -> None:
    tables: dict[str, Any] = {"inputs": [{"topic": topic} for topic in inputs]}
    Settings.model_validate(tables)
    tables["device_zones"] = {"topic": zones}
    with pytest.raises(ValidationError, match="device_zones: topic must name the levels"):
        Settings.model_validate(tables)


@pytest.mark.parametrize("topic", ["public/fixed", "cloaked/fixed", "cloaked/counts"])
def test_fixed_and_mobile_devices_are_not_published_on_one_topic(topic: str) -> None:
    with pytest.raises(ValidationError, match="must differ from the other topics"):
        Settings.model_validate({"output": {"topic": topic}})


@pytest.mark.parametrize(
    "tables",
    [
        {"inputs": [{"kind": "public", "registry": "sensors.csv"}]},
        {"fixed": {"ttl_s": 10.0}},
        {"adka": {"density_steps": [], "k_values": [7]}},
        {"adka": {"k_values": [5, 5, 5]}},
        {"presence": {"ttl_s": 61, "max_behind_s": 61}},
        {"presence": {"ttl_s": 60, "max_behind_s": 60}, "region": {"mode": "adka"}},
        {"broker": {"url": "mqtts://[::1]:8883", "cert_file": "c.pem", "key_file": "k.pem"}},
        {"inputs": [{"topic": "/hfp/v2/+/{device}/{device}/#", "codec": "hfp"}]},
        {"inputs": [{"topic": "feed/#", "device_from": "payload"}]},
        {
            "inputs": [
                {"topic": "own/{user}/{device}", "codec": "owntracks"},
                {"topic": "sensors/{device}", "kind": "fixed"},
                {"topic": "feed", "device_from": "payload"},
            ],
            "device_zones": {"topic": "zones/{user}/{device}"},
        },
        {
            "inputs": [{"topic": "positions/{car}"}],
            "device_zones": {"topic": "zones/{device}"},
        },
    ],
)
def test_settings_that_fit_are_taken(tables: dict[str, Any]) -> None:
    settings = Settings.model_validate(tables)
    assert Settings.model_validate(settings.model_dump()) == settings


def test_settings_do_not_change() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        Settings().tick.interval_s = 5


def test_a_password_is_not_in_the_repr_of_the_settings() -> None:
    settings = Settings.model_validate({"broker": {"password": SECRET}})
    assert SECRET not in repr(settings)


@pytest.mark.parametrize(
    "broker",
    [
        {"url": "mqtt://localhost"},
        {"url": "mqtt://127.8.9.10:1884"},
        {"url": "mqtt://[::1]"},
        {"url": "mqtts://broker.example"},
        {"url": "mqtt://broker.example", "allow_plaintext": True},
    ],
)
def test_a_broker_elsewhere_is_spoken_to_in_the_clear_only_when_that_is_said(
    broker: dict[str, Any],
) -> None:
    assert BrokerSettings.model_validate(broker).url == broker["url"]


def test_a_lasting_session_without_a_store_needs_an_id_of_the_operator() -> None:
    broker = {"session_expiry_s": 60}
    with pytest.raises(ValidationError, match="32 random characters"):
        Settings.model_validate({"broker": broker})
    Settings.model_validate({"broker": broker | {"client_id": "x" * 32}})


@pytest.mark.parametrize(
    ("given", "live_s"),
    [
        ({}, 0),
        ({"ids_change_s": 60}, 60),
        ({"topic": "bsm/{device}", "codec": "j2735"}, 0),
        ({"topic": "bsm", "codec": "j2735", "device_from": "payload"}, 300),
        ({"topic": "bsm", "codec": "j2735", "device_from": "payload", "ids_change_s": 0}, 0),
        ({"topic": "bsm", "codec": "j2735", "device_from": "payload", "kind": "fixed"}, 0),
    ],
)
def test_temporary_ids_change_unless_the_topic_names_the_device(
    given: dict[str, Any], live_s: float
) -> None:
    [found] = Settings.model_validate({"inputs": [given]}).inputs
    assert found.ids_live_s == live_s


def test_the_ids_of_fixed_devices_do_not_change() -> None:
    with pytest.raises(ValidationError, match="ids_change_s: only ids"):
        Settings.model_validate({"inputs": [{"kind": "fixed", "ids_change_s": 60}]})


def test_no_bound_for_each_id_is_taken_for_one_of_a_vehicle() -> None:
    counts = {"privacy": "dp", "device_intervals": 9}
    inputs = [{"ids_change_s": 300}]
    with pytest.raises(ValidationError, match="device_intervals bounds what an id adds"):
        Settings.model_validate({"inputs": inputs, "counts": counts})
    Settings.model_validate({"counts": counts})
    Settings.model_validate({"inputs": inputs, "counts": counts | {"device_intervals": None}})
    Settings.model_validate({"inputs": inputs, "counts": counts | {"privacy": "k"}})


@pytest.mark.parametrize(
    ("stated", "splits"),
    [
        ({}, False),
        ({"output": {"forms": ["device"], "qos": 1}}, True),
        ({"output": {"qos": 1}, "inputs": [{"echo": "cloaked/echo"}]}, True),
    ],
)
def test_messages_of_a_group_belong_together_where_there_are_several(
    stated: dict[str, Any], *, splits: bool
) -> None:
    assert Settings.model_validate(stated).splits_groups is splits
