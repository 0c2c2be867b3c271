"""Messages of other systems, and the settings that the manual gives for them, as printed."""

import json
import tomllib
from typing import Any

import numpy as np
import pytest

from anonymizer.codecs import CODECS, CoarsePoint, device_zones
from anonymizer.domain.fixes import Fix
from anonymizer.domain.outcomes import Outcome
from anonymizer.pipeline.records.declaration import declare
from anonymizer.settings import InputSettings, StreamSettings
from tests.console import ROOT, blocks

AT = "2027-01-15T08:00:00Z"
TS = 1_800_000_000.0
POINT = CoarsePoint(60.16991, 24.93841, 412, TS, "3nG0cQ9kPqAz", "t")


def tables(page: str, kind: str) -> list[dict[str, Any]]:
    """Return the tables of a kind in the settings on a page."""
    parts = [tomllib.loads(b.text) for b in blocks(ROOT / "docs" / page) if b.language == "toml"]
    return [table for part in parts for table in part.get(kind, ())]


def input_of(topic: str) -> InputSettings:
    [table] = [each for each in tables("formats.md", "inputs") if each["topic"] == topic]
    return InputSettings.model_validate(table)


def dp(path: str, value: str) -> dict[str, Any]:
    return {"path": f"Vehicle.{path}", "dp": {"value": value, "ts": AT}}


GNSS = {"latitude": 60.5, "longitude": 24.5, "heading": 30, "speed": 71.5, "positionDateTime": AT}
MESSAGES: list[tuple[str, Any, Fix]] = [
    ("tesla", {"vin": "V", "createdAt": AT, "isResend": False, "data": [
        {"key": "Gear", "value": {"shiftStateValue": "ShiftStateD"}},
        {"key": "Location", "value": {"locationValue": {"latitude": 60.5, "longitude": 24.5}}},
    ]}, Fix(60.5, 24.5, TS, "V")),
    ("rfms", {"vehiclePositionResponse": {"vehiclePositions": [
        {"vin": "V", "createdDateTime": AT, "receivedDateTime": AT, "gnssPosition": GNSS},
    ]}, "moreDataAvailable": False}, Fix(60.5, 24.5, TS, "V", {
        "speed_kmh": 71.5, "heading_deg": 30.0,
    })),
    ("vss/{vehicle}", {"action": "subscription", "data": [
        dp("Speed", "12.5"),
        dp("CurrentLocation.Latitude", "60.5"),
        dp("CurrentLocation.Longitude", "24.5"),
    ]}, Fix(60.5, 24.5, TS)),
    ("batches", {"imei": "V", "data": {"points": [[60.5, 24.5, TS]]}}, Fix(60.5, 24.5, TS, "V")),
    ("features/{device}", {
        "type": "Feature", "geometry": {"type": "Point", "coordinates": [24.5, 60.5]},
        "properties": {"time": TS},
    }, Fix(60.5, 24.5, TS)),
]  # fmt: skip


@pytest.mark.parametrize(("topic", "message", "fix"), MESSAGES, ids=[m[0] for m in MESSAGES])
def test_a_recipe_reads_the_messages_that_it_is_for(topic: str, message: Any, fix: Fix) -> None:  # noqa: ANN401  JSON
    assert input_of(topic).make_codec()(json.dumps(message).encode()) == [fix]


ECHOED = Fix(POINT.lat, POINT.lon, TS, readings={"accuracy_m": POINT.radius_m})


def test_the_echo_of_vss_has_the_centre_and_the_accuracy_under_their_signals() -> None:
    vss = input_of("vss/{vehicle}")
    written = vss.make_encoder()(POINT)
    assert vss.make_codec()(written) == [ECHOED]
    said = {each["path"]: each["dp"]["value"] for each in json.loads(written)["data"]}
    assert said["Vehicle.CurrentLocation.HorizontalAccuracy"] == POINT.radius_m


def test_the_recipe_for_warnings_reads_denm_and_no_cam() -> None:
    [table] = [each for each in tables("records.md", "streams") if each["name"] == "warnings"]
    [reader] = declare(StreamSettings.model_validate(table)).readers
    place = {"latitude": 435_657_439, "longitude": 14_681_494, "altitude": 4600}
    action = {"originating_station_id": 10_000, "sequence_number": 1}
    message = {
        "management_container": {"action_id": action, "event_position": place},
        "situation_container": {"event_type": {"cause": 26, "subcause": 5}},
    }
    denm = {"type": "denm", "timestamp": int(TS * 1000), "message": message}
    part = reader.read(json.dumps(denm).encode())
    assert not isinstance(part, Outcome)
    assert part[0] == TS
    assert reader.read(json.dumps(denm | {"type": "cam"}).encode()) is Outcome.INVALID__NOT_SELECTED


def printed(beginning: str) -> bytes:
    """Return the message on the page of formats that begins so."""
    [text] = [
        block.text
        for block in blocks(ROOT / "docs" / "formats.md")
        if block.language == "json" and block.text.startswith(beginning)
    ]
    return text.encode()


def test_the_settings_for_any_json_read_the_message_above_them() -> None:
    fix = Fix(60.1699, 24.9384, 1_800_000_000.2, readings={"speed_kmh": 30.0})
    assert input_of("trackers/{device}").make_codec()(printed('{"type": "fix"')) == [fix]


def test_the_native_message_and_the_echo_are_read_by_their_codecs() -> None:
    [native] = input_of("positions/{device}").make_codec()(printed('{"lat"'))
    [echo] = CODECS["owntracks"](printed('{"_type"'))
    assert isinstance(native, Fix)
    assert isinstance(echo, Fix)
    assert (native.lat, native.readings) == (echo.lat, {"speed_mps": 8.3})


def test_the_settings_for_single_signals_read_a_half_of_each() -> None:
    read = input_of("signals/{vehicle}/#").make_codec()
    for name, value in (("Latitude", "60.5"), ("Longitude", "24.5")):
        message = {"action": "subscription", "ts": AT, "data": dp(f"CurrentLocation.{name}", value)}
        [half] = read(json.dumps(message).encode())
        assert isinstance(half, Fix)
        assert [half.lat, half.lon].count(float(value)) == 1
        assert np.isnan([half.lat, half.lon]).sum() == 1


def test_the_echo_of_geojson_is_read_as_it_was_written_and_says_its_accuracy() -> None:
    features = input_of("features/{device}")
    written = features.make_encoder()(POINT)
    assert features.make_codec()(written) == [ECHOED]
    assert json.loads(written)["properties"]["accuracy"] == POINT.radius_m


def test_the_statements_of_devices_on_the_page_can_be_used() -> None:
    shapes = device_zones.decode(printed('[{"circle"'))
    assert isinstance(shapes, device_zones.StatedZones)
    assert (len(shapes.circles), len(shapes.polygons)) == (1, 1)
    page = (ROOT / "docs" / "formats.md").read_text()
    for said in ('[{"everywhere": true}]', '[{"k": 20}]', '[{"road_m": 5000}]'):
        assert f"`{said}`" in page
        assert isinstance(device_zones.decode(said.encode()), device_zones.StatedZones)
