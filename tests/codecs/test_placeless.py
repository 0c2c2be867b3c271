"""Payloads without a position: what a registered device may send, and what stays refused."""

import json
from datetime import UTC, datetime
from math import isfinite, isnan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.codecs import CODECS
from anonymizer.codecs.placeless import or_placeless
from anonymizer.domain.fixes import Fix
from anonymizer.domain.outcomes import Outcome
from tests.codecs.hostile import HOSTILE, paths, with_part
from tests.codecs.test_hostile import ANY_JSON
from tests.examples import many

native = or_placeless("native", CODECS["native"])
ttn = or_placeless("ttn", CODECS["ttn"])


def fix_of(body: object, codec: str = "native") -> Fix:
    [fix] = or_placeless(codec, CODECS[codec])(json.dumps(body).encode())
    assert isinstance(fix, Fix)
    return fix


def test_readings_alone_are_a_fix_without_a_place() -> None:
    fix = fix_of({"no2": 12})
    assert isnan(fix.lat)
    assert isnan(fix.lon)
    assert (fix.ts, fix.device, fix.readings) == (None, None, {"no2": 12.0})


def test_time_device_and_nested_readings_are_those_of_the_native_format() -> None:
    fix = fix_of({"ts": 7, "device": 5, "lat": None, "no2": 1, "readings": {"pm10": 2, "x": "y"}})
    assert (fix.ts, fix.device, fix.readings) == (7.0, "5", {"no2": 1.0, "pm10": 2.0})


def test_a_payload_with_a_position_is_decoded_by_its_codec() -> None:
    body = {"lat": 60.0, "lon": 25.0, "ts": 7, "readings": {"no2": 12}}
    assert fix_of(body) == CODECS["native"](json.dumps(body).encode())[0]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({}, Outcome.INVALID__SCHEMA),
        ({"name": "a"}, Outcome.INVALID__SCHEMA),
        ({"lat": 60.0, "no2": 1}, Outcome.INVALID__SCHEMA),
        ({"ts": "now", "no2": 1}, Outcome.INVALID__SCHEMA),
        ({"ts": 1.8e12, "no2": 1}, Outcome.INVALID__SCHEMA),
        ({"lat": 91, "lon": 1, "readings": {"no2": 1}}, Outcome.INVALID__OUT_OF_RANGE),
        ([], Outcome.INVALID__EMPTY),
        ([{"no2": 1}], Outcome.INVALID__SCHEMA),
        (12, Outcome.INVALID__SCHEMA),
    ],
)
def test_what_states_no_reading_or_half_a_position_is_refused(
    body: object, reason: Outcome
) -> None:
    assert native(json.dumps(body).encode()) == [reason]


def uplink(decoded: object, **more: object) -> dict[str, object]:
    return {
        "end_device_ids": {"device_id": "air-7"},
        "uplink_message": {"decoded_payload": decoded, "received_at": "2026-11-22T06:00:00Z"},
        **more,
    }


UPLINK = uplink({"no2": 12, "ok": True})


def test_an_uplink_of_a_sensor_without_a_receiver_is_read() -> None:
    fix = fix_of(uplink({"temperatureC": 8.5, "no2": 12, "ok": True}), "ttn")
    assert (fix.device, fix.readings) == ("air-7", {"temperature_c": 8.5, "no2": 12.0})
    assert fix.ts == datetime(2026, 11, 22, 6, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (uplink({"latitude": 1.0, "no2": 12}), Outcome.INVALID__SCHEMA),
        (uplink({"no2": 12}, simulated=True), Outcome.INVALID__NOT_A_POSITION),
        (uplink({}), Outcome.INVALID__NOT_A_POSITION),
        ({"end_device_ids": {}, "join_accept": {}}, Outcome.INVALID__NOT_A_POSITION),
    ],
)
def test_an_uplink_without_readings_or_with_half_a_position_is_refused(
    body: object, reason: Outcome
) -> None:
    assert ttn(json.dumps(body).encode()) == [reason]


def assert_sound(codec: str, payload: bytes) -> None:
    for one in or_placeless(codec, CODECS[codec])(payload):
        assert isinstance(one, Fix | Outcome)
        if isinstance(one, Fix) and isnan(one.lat):
            assert isnan(one.lon)
            assert one.readings
            assert all(isfinite(value) for value in one.readings.values())
            assert one.ts is None or isfinite(one.ts)
            assert one.device is None or one.device


@many(2)
@given(payload=st.binary(max_size=60) | ANY_JSON.map(json.dumps).map(str.encode))
def test_no_payload_makes_it_raise_or_return_what_is_not_finite(payload: bytes) -> None:
    for codec in CODECS:
        assert_sound(codec, payload)


@many(3)
@given(
    data=st.data(),
    body=st.sampled_from(
        [("native", {"ts": 7, "device": "a", "no2": 1, "readings": {"pm10": 2}}), ("ttn", UPLINK)]
    ),
    part=st.sampled_from(HOSTILE) | ANY_JSON,
)
def test_no_hostile_part_in_a_good_message_makes_it_raise(
    data: st.DataObject, body: tuple[str, dict[str, object]], part: object
) -> None:
    codec, message = body
    path = data.draw(st.sampled_from(list(paths(message))))
    assert_sound(codec, json.dumps(with_part(message, path, part)).encode())
