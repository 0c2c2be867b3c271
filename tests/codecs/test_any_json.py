"""Positions in JSON of any shape, by the paths in the settings."""

import json
from collections.abc import Mapping
from math import isnan
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from anonymizer.codecs import Codec
from anonymizer.codecs.paths import JsonPath, PathReader
from anonymizer.domain.fixes import Fix
from anonymizer.domain.outcomes import Outcome
from anonymizer.settings import InputSettings
from tests.codecs.hostile import HOSTILE, assert_sound, paths, with_part
from tests.codecs.sample import (
    EMPTY,
    MALFORMED,
    NO_FIX,
    NOT_DEGREES,
    NULL_ISLAND,
    OUT_OF_RANGE,
    SCHEMA,
    TIME_FORM,
    plain,
)
from tests.codecs.test_hostile import ANY_JSON, NESTED
from tests.examples import many

NOT_SELECTED = Outcome.INVALID__NOT_SELECTED


def codec_of(payload: Mapping[str, Any], **more: Any) -> Codec:  # noqa: ANN401  settings
    device = {"topic": "x", "device_from": "payload"} if "device" in payload else {}
    table = {"codec": "json", "payload": dict(payload)} | device | more
    return InputSettings.model_validate(table).make_codec()


FLAT = {"lat": "lat", "lon": "lng", "time": "t", "device": "id"}
NESTED_GPS = {
    "lat": "gps.latitude",
    "lon": "gps.longitude",
    "time": "at",
    "time_unit": "ms",
    "readings": {"speed_mps": "gps.speed", "battery_percent": "status.battery.percent"},
    "where": {"_type": "location", "gps": {"fix": [2, 3]}},
}
TEXTS = {"lat": "lat", "lon": "lon", "time": "time", "readings": {"a": "a"}}
ISO = {"lat": "lat", "lon": "lon", "time": "when", "time_unit": "iso8601"}
GEOJSON = {
    "positions": "features",
    "lat": "geometry.coordinates.1",
    "lon": "geometry.coordinates.0",
    "time": "properties.t",
    "where": {"geometry.type": "Point"},
}
BATCH = {
    "positions": "data.points",
    "lat": "0",
    "lon": "1",
    "time": "2",
    "device": "$.imei",
    "where": {"$.kind": "track"},
}
DOTTED = {"lat": ["geo.lat"], "lon": ["geo.lon"]}
SHAPES: dict[str, Mapping[str, Any]] = {
    "flat": FLAT,
    "nested": NESTED_GPS,
    "texts": TEXTS,
    "iso": ISO,
    "geojson": GEOJSON,
    "batch": BATCH,
    "dotted": DOTTED,
}

GPS = {
    "_type": "location",
    "gps": {"latitude": 1.5, "longitude": -2, "fix": 3, "speed": 4},
    "at": 9500,
    "status": {"battery": {"percent": 80}},
}
POINT = {
    "geometry": {"type": "Point", "coordinates": [-2, 1.5, 100]},
    "properties": {"t": 9.5},
}
TRACK = {"imei": "a", "kind": "track", "data": {"points": [[1.5, -2, 9], [2.5, -2, None]]}}
READINGS = {"speed_mps": 4.0, "battery_percent": 80.0}
SAMPLES: list[tuple[str, Any, list[Fix | Outcome]]] = [
    ("flat", {"lat": 1.5, "lng": -2, "t": 9.5, "id": "a"}, [Fix(1.5, -2.0, 9.5, "a")]),
    ("flat", {"lat": 1.5, "lng": -2, "id": 7}, [Fix(1.5, -2.0, None, "7")]),
    ("flat", {"lat": 1.5, "lng": -2, "id": None, "t": None}, [Fix(1.5, -2.0)]),
    ("flat", {"lat": 1.5, "lng": -2, "id": ""}, [Fix(1.5, -2.0)]),
    ("flat", {"lat": None, "lng": -2}, [NO_FIX]),
    ("flat", {"lng": -2}, [SCHEMA]),
    ("flat", {"lat": "1.5 E", "lng": -2}, [NOT_DEGREES]),
    ("flat", {"lat": True, "lng": -2}, [SCHEMA]),
    ("flat", {"lat": 91, "lng": -2}, [OUT_OF_RANGE]),
    ("flat", {"lat": 0, "lng": 0}, [NULL_ISLAND]),
    ("flat", [{"lat": 1.5, "lng": -2}, {"lng": 1}, 7], [Fix(1.5, -2.0), SCHEMA, SCHEMA]),
    ("flat", [], [EMPTY]),
    ("nested", GPS, [Fix(1.5, -2.0, 9.5, readings=READINGS)]),
    ("nested", GPS | {"_type": "lwt"}, [NOT_SELECTED]),
    ("nested", GPS | {"_type": ["location"]}, [NOT_SELECTED]),
    ("nested", GPS | {"gps": GPS["gps"] | {"fix": 1}}, [NOT_SELECTED]),  # type: ignore[operator]
    ("nested", GPS | {"gps": GPS["gps"] | {"fix": "3"}}, [NOT_SELECTED]),  # type: ignore[operator]
    ("nested", {"_type": "location", "gps": "none"}, [NOT_SELECTED]),
    ("nested", {"_type": "lwt", "gps": "none"}, [NOT_SELECTED]),
    ("nested", {}, [NOT_SELECTED]),
    ("nested", GPS | {"status": None}, [Fix(1.5, -2.0, 9.5, readings={"speed_mps": 4.0})]),
    ("nested", GPS | {"status": {"battery": {"percent": "full"}}}, [
        Fix(1.5, -2.0, 9.5, readings={"speed_mps": 4.0}),
    ]),
    ("nested", GPS | {"status": {"battery": 80}}, [SCHEMA]),
    ("texts", {"lat": "1.5", "lon": "-2", "time": "9.5"}, [Fix(1.5, -2.0, 9.5)]),
    ("texts", {"lat": 1.5, "lon": "-2e0", "a": "3"}, [Fix(1.5, -2.0, readings={"a": 3.0})]),
    ("texts", {"lat": "1.5", "lon": "-2", "a": "1e999"}, [Fix(1.5, -2.0)]),
    ("texts", {"lat": "1,5", "lon": "-2"}, [NOT_DEGREES]),
    ("texts", {"lat": " 1.5", "lon": "-2"}, [Fix(1.5, -2.0)]),
    ("texts", {"lat": "nan", "lon": "-2"}, [NO_FIX]),
    ("texts", {"lat": "1_0", "lon": "-2"}, [NOT_DEGREES]),
    ("texts", {"lat": "1.5", "lon": "-2", "time": "now"}, [TIME_FORM]),
    ("texts", {"lat": "1.5", "lon": "-2", "time": "1e999"}, [TIME_FORM]),
    ("iso", {"lat": 1.5, "lon": -2, "when": "1970-01-01T00:00:09.5Z"}, [Fix(1.5, -2.0, 9.5)]),
    ("iso", {"lat": 1.5, "lon": -2, "when": "1970-01-01T00:00:09"}, [Fix(1.5, -2.0, 9.0)]),
    ("iso", {"lat": 1.5, "lon": -2, "when": "1970-01-01T02:00:09+02:00"}, [Fix(1.5, -2.0, 9.0)]),
    ("iso", {"lat": 1.5, "lon": -2, "when": "yesterday"}, [TIME_FORM]),
    ("iso", {"lat": 1.5, "lon": -2, "when": 9}, [TIME_FORM]),
    ("geojson", {"features": [POINT, POINT | {"geometry": {"type": "Polygon"}}]}, [
        Fix(1.5, -2.0, 9.5), NOT_SELECTED,
    ]),
    ("geojson", {"features": [{"geometry": {"type": "Point", "coordinates": [1]}}]}, [SCHEMA]),
    ("geojson", {"features": [{"geometry": {"type": "Point", "coordinates": ["x", 2]}}]}, [SCHEMA]),
    ("geojson", {"features": [{"geometry": {"type": "Point", "coordinates": None}}]}, [NO_FIX]),
    ("geojson", {"features": []}, [EMPTY]),
    ("geojson", {"features": None}, [NO_FIX]),
    ("geojson", {}, [SCHEMA]),
    ("geojson", [POINT], [SCHEMA]),
    ("batch", TRACK, [Fix(1.5, -2.0, 9.0, "a"), Fix(2.5, -2.0, None, "a")]),
    ("batch", TRACK | {"kind": "status"}, [NOT_SELECTED]),
    ("batch", TRACK | {"imei": ""}, [Fix(1.5, -2.0, 9.0), Fix(2.5, -2.0)]),
    ("batch", TRACK | {"data": {"points": [[None, 1], {"lat": 1}, [1]]}}, [NO_FIX, SCHEMA, SCHEMA]),
    ("dotted", {"geo.lat": 1.5, "geo.lon": -2}, [Fix(1.5, -2.0)]),
    ("dotted", {"geo": {"lat": 1.5, "lon": -2}}, [SCHEMA]),
]  # fmt: skip


@pytest.mark.parametrize(("shape", "message", "expected"), SAMPLES)
def test_a_position_is_where_the_settings_say(
    shape: str, message: object, expected: list[Fix | Outcome]
) -> None:
    assert plain(codec_of(SHAPES[shape])(json.dumps(message).encode())) == expected


CODECS = {name: codec_of(shape) for name, shape in SHAPES.items()}


@given(payload=st.binary(max_size=60))
def test_no_bytes_make_it_raise(payload: bytes) -> None:
    for codec in CODECS.values():
        assert_sound(codec, payload)


@many(3)
@given(data=st.data(), sample=st.sampled_from(SAMPLES), part=st.sampled_from(HOSTILE) | ANY_JSON)
def test_no_hostile_part_makes_it_raise(data: st.DataObject, sample: Any, part: object) -> None:  # noqa: ANN401  drawn
    shape, message, _ = sample
    path = data.draw(st.sampled_from(list(paths(message))))
    payload = json.dumps(with_part(message, path, part)).encode()
    for codec in CODECS.values():
        assert_sound(codec, payload)
    assert_sound(CODECS[shape], payload[: data.draw(st.integers(0, len(payload)))])


@pytest.mark.parametrize("monster", NESTED.values(), ids=NESTED)
def test_a_monster_anywhere_in_a_message_makes_it_not_raise(monster: bytes) -> None:
    for shape, message, _ in SAMPLES:
        for path in paths(message):
            marked = json.dumps(with_part(message, path, "MONSTER")).encode()
            assert_sound(CODECS[shape], marked.replace(b'"MONSTER"', monster))


def test_text_that_is_not_utf8_costs_nothing_where_it_is_ignored() -> None:
    for payload in (b'{"lat":1,"lng":2,"x":"\xff"}', b'[{"lat":1,"lng":2,"id":"\xff"}]'):
        assert CODECS["flat"](payload) == [Fix(1.0, 2.0)]
    assert CODECS["flat"](b"\xff") == [MALFORMED]


def test_readings_alone_are_a_message_where_a_registry_says_where_devices_stand() -> None:
    more = {"kind": "fixed", "registry": "air.csv"}
    codec = codec_of({"readings": {"no2": "values.no2"}, "time": "t"}, **more)
    [fix] = codec(b'{"values":{"no2":12},"t":5}')
    assert isinstance(fix, Fix)
    assert (fix.ts, fix.readings, fix.lat == fix.lat) == (5.0, {"no2": 12.0}, False)
    assert codec(b'{"values":{}}') == [NO_FIX]
    assert codec(b"") == [EMPTY]


@pytest.mark.parametrize(
    ("payload", "said"),
    [
        ({}, "lat and lon are needed"),
        ({"lat": "a"}, "lat and lon must be given together"),
        ({"lat": "a", "lon": "a"}, "lat and lon have the same path"),
        ({"lat": "a[k=1].v", "lon": "a[k=1].v"}, "lat and lon have the same path"),
        ({"lat": "a", "lon": "a", "join_s": 1.0, "bare": True}, "lat and lon have the same path"),
        ({"lat": "", "lon": "b"}, "lat"),
        ({"lat": "a..b", "lon": "b"}, "keys separated by dots"),
        ({"lat": [], "lon": "b"}, "keys separated by dots"),
        ({"lat": [-1], "lon": "b"}, "keys separated by dots"),
        ({"lat": "$", "lon": "b"}, "keys separated by dots"),
        ({"lat": "a", "lon": "a.b"}, "a.b leads through a value"),
        ({"lat": "a.b", "lon": "a"}, "a is on the way to other values"),
        ({"lat": "a", "lon": "b", "readings": {"c": "a"}}, "different types"),
        ({"lat": "a.0", "lon": "a.b"}, "cannot be an object and an array"),
        ({"lat": "a.1000", "lon": "a.1"}, "a place in an array must be below 1,000"),
        ({"lat": "a", "lon": "b", "time_unit": "min"}, "time_unit"),
        ({"lat": "a", "lon": "b", "where": {"c": []}}, "where"),
        ({"lat": "a", "lon": "b", "where": {"c..d": 1}}, "keys separated by dots"),
        ({"lat": ".".join("a" * 99), "lon": "b"}, "at most 32 parts"),
    ],
)
def test_paths_that_fit_nothing_are_refused_in_the_settings(
    payload: dict[str, Any], said: str
) -> None:
    with pytest.raises(ValidationError, match=said):
        codec_of(payload)


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"codec": "json"}, "needs at least payload.lat and lon"),
        ({"payload": {"lat": "a", "lon": "b"}}, 'payload: is for codec = "json"'),
        ({"codec": "json", "payload": {**FLAT}}, 'is for device_from = "payload"'),
        ({"codec": "json", "device_from": "payload", "topic": "x",
          "payload": {"lat": "a", "lon": "b"}}, "which needs one"),
    ],
)  # fmt: skip
def test_the_format_is_declared_where_it_is_used(table: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        InputSettings.model_validate(table)


def test_one_value_can_be_read_twice() -> None:
    path = JsonPath.of("a.b")
    reader = PathReader([(path, float), (path, float), (None, str)])
    values = reader.read(b'{"a":{"b":1}}')
    assert not isinstance(values, Outcome)
    assert values[:2] == [1.0, 1.0]


def test_a_path_is_shown_as_it_is_stated() -> None:
    for text in ("a.b.0", "$.a"):
        assert str(JsonPath.of(text)) == text


TESLA = {
    "lat": "data[key=Location].value.locationValue.latitude",
    "lon": "data[key=Location].value.locationValue.longitude",
    "readings": {"speed": "data[key=VehicleSpeed].value.doubleValue"},
}


def datum(key: Any, **value: Any) -> dict[str, Any]:  # noqa: ANN401  JSON
    return {"key": key, "value": value}


HERE = datum("Location", locationValue={"latitude": 1.5, "longitude": -2})
SEARCHED: list[tuple[str, list[Any], Fix | Outcome]] = [
    ("found", [datum("Soc", doubleValue=1), HERE], Fix(1.5, -2.0)),
    ("the first", [HERE, datum("Location", locationValue={})], Fix(1.5, -2.0)),
    ("a reading", [HERE, datum("VehicleSpeed", doubleValue=9)], Fix(1.5, -2.0, None, None, {
        "speed": 9.0,
    })),
    ("others of any kind", [1, None, "x", [], {}, {"key": {}}, HERE], Fix(1.5, -2.0)),
    ("not there", [datum("Soc", doubleValue=1)], SCHEMA),
    ("empty", [], SCHEMA),
    ("null", [datum("Location", locationValue=None)], NO_FIX),
    ("another type", [{"key": "Location", "value": 7}], SCHEMA),
]  # fmt: skip


@pytest.mark.parametrize(("about", "data", "expected"), SEARCHED, ids=lambda each: str(each)[:20])
def test_an_array_is_searched_by_a_key(
    about: str, data: list[Any], expected: Fix | Outcome
) -> None:
    assert codec_of(TESLA)(json.dumps({"data": data}).encode()) == [expected], about


def test_a_number_is_found_by_its_digits_and_dots_in_brackets_are_no_steps() -> None:
    codec = codec_of({"lat": "s[id=7].v", "lon": "s[id=a.b].v"})
    parts = [{"id": 17, "v": 3}, {"id": 7, "v": 1.5}, {"id": "a.b", "v": 2}]
    assert codec(json.dumps({"s": parts}).encode()) == [Fix(1.5, 2.0)]


def test_coordinates_in_steps_are_scaled_to_degrees_without_an_error() -> None:
    codec = codec_of({"lat": "lat", "lon": "lon", "scale": 1e-7})
    body = {"lat": 601699123, "lon": "-249384001"}
    assert codec(json.dumps(body).encode()) == [Fix(60.1699123, -24.9384001)]
    assert codec(b'{"lat": 900000001, "lon": 1}') == [OUT_OF_RANGE]


def test_an_object_in_place_of_a_searched_array_is_an_array_of_one() -> None:
    codec = codec_of({"lat": "s[id=7].v.0", "lon": "s[id=7].v.1"})
    assert codec(b'{"s": {"id": 7, "v": [1.5, 2.0]}}') == [Fix(1.5, 2.0)]
    assert codec(b'{"s": {"id": 8, "v": [1.5, 2.0]}}') == [SCHEMA]
    assert codec(b'{"s": null}') == [NO_FIX]
    assert codec(b'{"s": 3}') == [SCHEMA]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"lat": 1.5}, (1.5, None)),
        ({"lon": 2.5}, (None, 2.5)),
        ({"lat": 1.5, "lon": 2.5}, (1.5, 2.5)),
        ({}, SCHEMA),
        ({"lat": None}, NO_FIX),
        ({"lat": 1.5, "lon": None}, NO_FIX),
        ({"lat": 91.0}, OUT_OF_RANGE),
        ({"lon": 181.0}, OUT_OF_RANGE),
    ],
)
def test_a_half_of_a_position_lacks_the_other_coordinate_and_nothing_else(
    body: dict[str, float | None], expected: object
) -> None:
    codec = codec_of({"lat": "lat", "lon": "lon", "time": "t", "join_s": 1.0})
    [found] = codec(json.dumps(body | {"t": 5}).encode())
    if isinstance(found, Fix):
        shown = tuple(None if isnan(each) else each for each in (found.lat, found.lon))
        assert (shown, found.ts) == (expected, 5.0)
    else:
        assert found == expected


@pytest.mark.parametrize("path", ["data[key=a]", "data[key=a].b.x[y=z]"])
def test_a_search_alone_is_no_value(path: str) -> None:
    with pytest.raises(ValueError, match="must name a key of what it searches for"):
        JsonPath.of(path)


def test_a_path_with_a_search_is_shown_as_it_is_stated() -> None:
    for path in ("data[key=Location].value.lat", "$.a[b=c].d", "a.0.b"):
        assert str(JsonPath.of(path)) == path
    assert JsonPath.of(["data[key=a]"]).parts == ("data[key=a]",)


@pytest.mark.parametrize(
    ("pair", "expected"),
    [
        ("1.5,-2", [Fix(1.5, -2.0)]),
        ("1.5, -2.0, 7", [Fix(1.5, -2.0, readings={"alt": 7.0})]),
        ("unknown", [NO_FIX]),
        ("1.5", [SCHEMA]),
        ("north, -2", [SCHEMA]),
        ("", [NO_FIX]),
    ],
)
def test_a_text_with_commas_is_read_as_the_array_of_its_parts(
    pair: str, expected: list[Fix | Outcome]
) -> None:
    paths = {"lat": "s.at.0", "lon": "s.at.1", "readings": {"alt": "s.at.2"}}
    assert codec_of(paths)(json.dumps({"s": {"at": pair}}).encode()) == expected


@pytest.mark.parametrize(
    ("key", "lat", "expected"),
    [
        (b"\x01", b"\xc4\x82\x21\x19\x17\x81", [Fix(60.17, 2.0)]),  # 4([-2, 6017])
        (b"\x01", b"\xc4\x82\x19\xff\xff\x01", [NO_FIX]),
        (b"\x01", b"\xc4\x81\x01", [NO_FIX]),
        (b"\x01", b"\xc4\x82\xf5\xf5", [OUT_OF_RANGE, Fix(10.0, 2.0)]),  # 4([true, true])
    ],
)
def test_decimals_and_numbers_as_keys_of_cbor_are_read(
    key: bytes, lat: bytes, expected: list[Fix | Outcome]
) -> None:
    decode = codec_of({"lat": ["1"], "lon": ["2"]}, unpack=["cbor"])
    assert decode(b"\xa2" + key + lat + b"\x02\x02")[0] in expected
