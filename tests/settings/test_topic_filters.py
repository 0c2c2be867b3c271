"""Topics of inputs: who is one device, and which filters are refused."""

import tomllib
from pathlib import Path

import pytest
from pydantic import ValidationError

from anonymizer.errors import SettingsError
from anonymizer.pipeline.positions.decode.topics import TopicRouter, subscription
from anonymizer.pipeline.records.topics import RecordRouter, topic_filter
from anonymizer.settings import InputSettings, Settings, SourceSettings, StreamSettings
from anonymizer.settings.toml_file import load_settings
from tests.cli.support import anonymizer
from tests.console import ROOT, blocks


def documented_inputs() -> list[InputSettings]:
    """Return all inputs of the manual's page of formats."""
    found: list[InputSettings] = []
    for block in blocks(ROOT / "docs" / "formats.md"):
        if block.language == "toml":
            tables = tomllib.loads(block.text)
            found += Settings.model_validate(tables).inputs if "inputs" in tables else ()
    return found


def test_the_users_of_phones_are_as_many_devices_by_the_manuals_own_pattern() -> None:
    [input_] = [each for each in documented_inputs() if each.codec == "owntracks"]
    find = TopicRouter([input_]).find
    topics = [f"owntracks/user-{i}/{phone}" for i in range(12) for phone in ("phone", "tablet")]
    routes = [find(topic) for topic in topics]
    assert [route.device for route in routes if route] == [f"user-{i}" for i in range(12)]


def test_the_manuals_formats_read_the_manuals_payloads() -> None:
    codecs = [each.make_codec() for each in documented_inputs() if each.codec == "json"]
    [payload] = [
        block.text.encode()
        for block in blocks(ROOT / "docs" / "formats.md")
        if block.language == "json" and '"gps"' in block.text
    ]
    [fix] = codecs[0](payload)
    assert (fix.lat, fix.ts, fix.readings) == (60.1699, 1800000000.2, {"speed_kmh": 30.0})  # type: ignore[union-attr]
    points = b'{"imei": "a", "data": {"points": [[60.1699, 24.9384, 1800000000.2]]}}'
    [fix] = codecs[1](points)
    assert (fix.lat, fix.ts, fix.device) == (60.1699, 1800000000.2, "a")  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("pattern", "topic", "device"),
    [
        ("owntracks/{user}/{device}", "owntracks/alice/phone", "alice/phone"),
        ("{site}/+/{line_2}/#", "a/b/c/d", "a/c"),
        ("{user}/{device}", "alice/", ""),
        ("$aws/{device}", "$aws/a", "a"),
    ],
)
def test_every_level_in_braces_is_a_part_of_the_id(pattern: str, topic: str, device: str) -> None:
    route = TopicRouter([InputSettings(topic=pattern)]).find(topic)
    assert route is not None
    assert route.device == device
    assert "{" not in subscription(pattern)


def test_a_vehicle_of_records_is_likewise_all_levels_in_braces() -> None:
    source = SourceSettings(name="t", topic="fleet/{depot}/{source}/{vehicle}", tells=("speed",))
    stream = StreamSettings.model_validate(
        {
            "name": "fleet",
            "sources": [source.model_dump()],
            "attributes": [{"name": "speed", "lo": 0, "hi": 9}],
        }
    )
    assert topic_filter(source) == "fleet/+/t/+"
    router = RecordRouter([stream], secret=bytes(32), max_id_chars=99)
    routes = [router.routes_of(f"fleet/{depot}/t/{n}") for depot in "ab" for n in (1, 2)]
    assert len({route.vehicle for (route,) in routes}) == 4


@pytest.mark.parametrize("prefix", ["$share/gateways", "$queue"])
def test_check_refuses_a_shared_subscription_and_says_why(tmp_path: Path, prefix: str) -> None:
    config = tmp_path / "gateway.toml"
    config.write_text(
        f'[network]\nsource = "grid:2x2"\n[[inputs]]\ntopic = "{prefix}/positions/{{device}}"\n'
    )
    ran = anonymizer("check", "--config", config)
    assert ran.returncode == 2
    assert "inputs (no. 1): topic: a shared subscription would give a part" in ran.stderr
    assert "let one gateway read the topic" in ran.stderr
    stream = f"""
        [[streams]]
        name = "fleet"
        sources = [{{ name = "t", topic = "{prefix}/records/{{vehicle}}", tells = ["speed"] }}]
        attributes = [{{ name = "speed", lo = 0, hi = 9 }}]
        """
    config.write_text(stream)
    with pytest.raises(SettingsError, match="a shared subscription"):
        load_settings(config, {})


@pytest.mark.parametrize("prefix", ["$SYS", "$exclusive", "$delayed/10"])
def test_a_topic_that_no_message_of_a_device_has_is_refused(prefix: str) -> None:
    grid = {"source": "grid:2x2"}
    for topic in (f"{prefix}/positions/{{device}}", f"{prefix}/#"):
        with pytest.raises(ValidationError, match="state the topic on which devices publish"):
            Settings.model_validate({"network": grid, "inputs": [{"topic": topic}]})
    cloud = "$aws/things/{device}/shadow/update"  # others that begin with $ are topics of devices
    [found] = Settings.model_validate({"network": grid, "inputs": [{"topic": cloud}]}).inputs
    assert found.topic == cloud
