"""What each encoder writes is what our own codec reads, and nothing about a device is in it."""

import json
from math import ceil
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.codecs import CODECS, CoarsePoint, any_json, encoders
from anonymizer.codecs.coarse import short_id
from anonymizer.domain.fixes import Fix
from anonymizer.settings.payloads import PayloadSettings

ENCODERS = encoders()
TIME = 1_800_000_000.25
POINT = CoarsePoint(60.16991, 24.93841, 412, TIME, "3nG0cQ9kPqAz", "cloaked/map/3nG0cQ9kPqAz")
NAMES = {
    "owntracks": POINT.topic,
    "home_assistant": None,
    "j2735": f"{short_id(POINT.pseudonym):08X}",
    "etsi_cam": str(short_id(POINT.pseudonym)),
    "meshtastic": str(short_id(POINT.pseudonym)),
    "ngsi_ld": "urn:ngsi-ld:Vehicle:3nG0cQ9kPqAz",
    "senml": "device:3nG0cQ9kPqAz",
}
ERROR_DEG = {"gtfs_rt": 2e-6 * 8}
"""Coordinates of 32 bits."""
RADIUS_AT: dict[str, list[str | int]] = {
    "native": ["accuracy_m"],
    "owntracks": ["acc"],
    "traccar": ["position", "accuracy"],
    "home_assistant": ["gps_accuracy"],
    "ngsi_ld": ["accuracy", "value"],
    "senml": [2, "v"],
}
pseudonyms = st.text("abcdefgh-_XYZ0189", min_size=12, max_size=12)
points = st.builds(
    CoarsePoint,
    lat=st.integers(-8_999_999, 8_999_999).map(lambda x: x / 1e5),
    lon=st.integers(-17_999_999, 17_999_999).map(lambda x: x / 1e5),
    radius_m=st.integers(1, 10**6),
    time=st.integers(10**12, 2 * 10**12).map(lambda x: x / 1e3),
    pseudonym=pseudonyms,
    topic=pseudonyms.map(lambda name: f"cloaked/{name}"),
).filter(lambda point: point.lat != 0.0 or point.lon != 0.0)


def only_fix(codec: str, payload: bytes) -> Fix:
    [fix] = CODECS[codec](payload)
    assert isinstance(fix, Fix)
    return fix


@pytest.mark.parametrize("codec", ENCODERS)
@given(point=points)
def test_the_own_codec_reads_the_centre_and_the_time_of_what_is_written(
    codec: str, point: CoarsePoint
) -> None:
    fix = only_fix(codec, ENCODERS[codec](point))
    error = ERROR_DEG.get(codec, 1e-7)
    assert fix.lat == pytest.approx(point.lat, abs=error)
    assert fix.lon == pytest.approx(point.lon, abs=error)
    if codec == "home_assistant":
        assert fix.ts is None
    else:
        assert fix.ts is not None
        assert 0.0 <= point.time - fix.ts + 1e-4 < 1.001
    assert set(fix.readings or {}) <= {"accuracy_m"}


@pytest.mark.parametrize("codec", ENCODERS)
def test_the_pseudonym_stands_in_place_of_the_device(codec: str) -> None:
    assert only_fix(codec, ENCODERS[codec](POINT)).device == NAMES.get(codec, POINT.pseudonym)


@pytest.mark.parametrize("codec", RADIUS_AT)
def test_the_radius_stands_in_the_field_of_accuracy(codec: str) -> None:
    found: Any = json.loads(ENCODERS[codec](POINT))
    for key in RADIUS_AT[codec]:
        found = found[key]
    assert found == POINT.radius_m


@given(st.integers(1, 10**6))
def test_the_bits_of_meshtastic_hold_no_smaller_circle_than_the_radius(radius_m: int) -> None:
    message = json.loads(ENCODERS["meshtastic"](POINT._replace(radius_m=radius_m)))
    bits = message["payload"]["precision_bits"]
    radius_of_bits_m = 2 ** (32 - bits) * 1e-7 * 111_319 / 2
    assert radius_m <= radius_of_bits_m * 1.001
    assert bits == 32 or radius_of_bits_m <= 2.001 * radius_m


def test_a_message_frame_says_that_its_accuracy_is_beyond_what_the_standard_can_say() -> None:
    def ellipse(radius_m: int) -> dict[str, int]:
        frame = json.loads(ENCODERS["j2735"](POINT._replace(radius_m=radius_m)))
        value = frame["payload"]["data"]["value"]["BasicSafetyMessage"]["coreData"]["accuracy"]
        assert isinstance(value, dict)
        return value

    assert ellipse(2) == {"semiMajor": 40, "semiMinor": 40, "orientation": 65535}
    assert ellipse(13) == ellipse(412) == {"semiMajor": 254, "semiMinor": 254, "orientation": 65535}


@pytest.mark.parametrize("codec", ENCODERS)
@given(point=points, names=st.lists(pseudonyms, min_size=2, max_size=4))
def test_the_messages_of_a_group_are_equally_long(
    codec: str, point: CoarsePoint, names: list[str]
) -> None:
    sizes = {
        len(ENCODERS[codec](point._replace(pseudonym=name, topic=f"cloaked/{name}")))
        for name in names
    }
    assert len(sizes) == 1


MESSAGE_AT: dict[str, list[list[str]]] = {
    "meshtastic": [["id"]],
    "traccar": [["position", "id"]],
    "j2735": [["metadata", "serialId", "streamId"], ["metadata", "serialId", "serialNumber"]],
}
"""Where a format tells one message from another; readers drop what they have seen."""


def said_at(codec: str, point: CoarsePoint, key: list[str]) -> Any:  # noqa: ANN401  any JSON
    found: Any = json.loads(ENCODERS[codec](point))
    for name in key:
        found = found[name]
    return found


@pytest.mark.parametrize("codec", MESSAGE_AT)
def test_no_two_messages_are_one_for_readers_that_drop_repetitions(codec: str) -> None:
    said = [
        POINT._replace(pseudonym=name, topic=f"cloaked/{name}", time=TIME + second)
        for second in (0.0, 0.3, 1.0, 20.0, 86_400.0)
        for name in (f"{i:012d}" for i in range(60))
    ]
    ids = {tuple(said_at(codec, each, key) for key in MESSAGE_AT[codec]) for each in said}
    assert len(ids) == len(said)


@given(points, st.integers(1, 10**6))
def test_the_ids_of_positions_rise_with_time_and_are_numbers_of_javascript(
    point: CoarsePoint, later_s: int
) -> None:
    first, then = (
        said_at("traccar", each, ["position", "id"])
        for each in (point, point._replace(time=point.time + later_s))
    )
    assert 0 < first < then < 2**53


@given(points, st.integers(1, 126))
def test_the_count_of_a_basic_safety_message_moves_as_that_of_a_vehicle(
    point: CoarsePoint, later_s: int
) -> None:
    key = ["payload", "data", "value", "BasicSafetyMessage", "coreData", "msgCnt"]
    counts = [said_at("j2735", point._replace(time=point.time + s), key) for s in (0, later_s)]
    assert counts[0] != counts[1]
    assert set(counts) <= set(range(128))


SHAPES: list[tuple[str, dict[str, Any], Any]] = [
    (
        "a feature of GeoJSON",
        {
            "lat": "geometry.coordinates.1",
            "lon": "geometry.coordinates.0",
            "time": "properties.at",
            "time_unit": "iso8601",
            "device": "id",
            "accuracy": "properties.accuracy",
            "where": {"type": "Feature", "geometry.type": ["Point", "MultiPoint"]},
        },
        {
            "type": "Feature",
            "id": POINT.pseudonym,
            "geometry": {"type": "Point", "coordinates": [POINT.lon, POINT.lat]},
            "properties": {"at": "2027-01-15T08:00:00.250Z", "accuracy": 412},
        },
    ),
    (
        "positions inside a message",
        {
            "positions": "data.points",
            "lat": "0",
            "lon": "1",
            "time": "3",
            "time_unit": "ms",
            "device": "$.imei",
        },
        {
            "imei": POINT.pseudonym,
            "data": {"points": [[POINT.lat, POINT.lon, None, 1_800_000_000_250]]},
        },
    ),
    (
        "a value under a key in an array, in steps",
        {
            "lat": "data[key=Location].value.lat",
            "lon": "data[key=Location].value.lon",
            "scale": 1e-5,
            "where": {"data[key=Gear].value": "D"},
        },
        {
            "data": [
                {"key": "Gear", "value": "D"},
                {"key": "Location", "value": {"lat": 6_016_991, "lon": 2_493_841}},
            ]
        },
    ),
    ("a key with dots", {"lat": ["gps.lat"], "lon": ["gps.lon"]}, {
        "gps.lat": POINT.lat, "gps.lon": POINT.lon,
    }),
]  # fmt: skip


@pytest.mark.parametrize(("declared", "message"), [each[1:] for each in SHAPES])
def test_json_of_any_shape_is_written_where_it_is_read(
    declared: dict[str, Any], message: Any,  # noqa: ANN401  any JSON
) -> None:  # fmt: skip
    paths = PayloadSettings.model_validate(declared).paths
    payload = any_json.encoder_of(paths)(POINT)
    assert json.loads(payload) == message
    [fix] = any_json.codec_of(paths)(payload)
    assert isinstance(fix, Fix)
    assert (fix.lat, fix.lon) == (POINT.lat, POINT.lon)
    assert fix.ts == (TIME if "time" in declared else None)


@pytest.mark.parametrize(
    "declared",
    [
        {"time": "t"},
        {"lat": "a", "lon": "a.b"},
        {"lat": "a.b", "lon": "a"},
        {"lat": "a.0", "lon": "a.x"},
        {"lat": "1000", "lon": "0"},
    ],
)
def test_json_that_cannot_be_written_is_refused(declared: dict[str, Any]) -> None:
    paths = PayloadSettings.model_validate(declared).paths
    with pytest.raises(ValueError, match=r"path|array|value"):
        any_json.encoder_of(paths)


@given(st.lists(pseudonyms, unique=True, max_size=50))
def test_a_short_id_has_ten_digits_below_two_to_the_32(names: list[str]) -> None:
    assert all(10**9 <= short_id(name) < 2**32 for name in names)
    assert ceil(len({short_id(name) for name in names})) == len(names)
