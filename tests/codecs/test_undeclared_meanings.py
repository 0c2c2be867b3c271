"""What a number or a text means is known, declared, or refused with its reason: never guessed."""

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from anonymizer.codecs.degrees import of_minutes
from anonymizer.codecs.times import NumberUnit, in_seconds, stated_time
from anonymizer.domain.fixes import Fix
from anonymizer.domain.outcomes import Outcome
from anonymizer.pipeline.misfit import CAUSES
from anonymizer.settings import InputSettings

NO_FIX, NOT_DEGREES = Outcome.INVALID__NO_FIX, Outcome.INVALID__NOT_DEGREES
TIME_FORM, MALFORMED = Outcome.INVALID__TIME_FORM, Outcome.INVALID__MALFORMED
NOW = 1_800_000_000.0


def found(body: object, codec: str = "json", unpack: object = None, **payload: object) -> list[Any]:
    table: dict[str, Any] = {"topic": "x/{device}", "codec": codec, "unpack": unpack}
    if codec == "json":
        table["payload"] = {"lat": "lat", "lon": "lon"} | payload
    stated = body if isinstance(body, bytes) else json.dumps(body).encode()
    read = InputSettings.model_validate(table).make_codec()(stated)
    return [(each.lat, each.lon, each.ts) if isinstance(each, Fix) else each for each in read]


UNSET = [
    "1980-01-06T00:00:00Z", "1980-01-06T00:03:12", "1980-01-01 00:00:00", "9999-12-31T23:59:59Z",
    "9999-12-31 00:00:00", "0001-01-01T00:00:00Z", "1899-12-30T00:00:00Z", "1900-01-01T00:00:00Z",
    "1970-01-01T00:00:00Z", "0000-00-00 00:00:00", "Sun, 06 Jan 1980 00:00:00 GMT",
]  # fmt: skip


@pytest.mark.parametrize("text", UNSET)
def test_a_clock_that_was_never_set_states_no_time(text: str) -> None:
    assert stated_time(text) is None
    assert found({"lat": 1.5, "lon": 2, "ts": text}, "native") == [(1.5, 2, None)]
    assert found({"lat": 1.5, "lon": 2, "t": text}, time="t", time_unit="iso8601") == [
        (1.5, 2, None)
    ]


@pytest.mark.parametrize(
    ("number", "unit"),
    [
        (315_964_800, "s"), (315_964_812.5, "s"), (315_964_800_000, "ms"), (253_402_300_799, "s"),
        (253_402_300_799_000, "ms"), (2**31 - 1, "s"), (2**32 - 1, "s"), (0, "s"), (-1, "ms"),
    ],
)  # fmt: skip
def test_numbers_of_clocks_that_were_never_set_are_no_time(number: float, unit: NumberUnit) -> None:
    assert in_seconds(number, unit) is None


@given(st.floats(1e9, 2_147_483_646), st.sampled_from([("s", 1.0), ("ms", 1e3), ("us", 1e6)]))
def test_every_time_of_this_century_stays_one(at: float, unit: tuple[NumberUnit, float]) -> None:
    assert in_seconds(at * unit[1], unit[0]) == pytest.approx(at)


@pytest.mark.parametrize(
    "text",
    [
        "Fri, 15 Jan 2027 08:00:00 GMT", "15 Jan 2027 10:00:00 +0200", "Fri Jan 15 08:00:00 2027",
        "Fri Jan 15 2027 09:00:00 GMT+0100 (Central European Time)", "/Date(1800000000000)/",
        "/Date(1800000000000+0200)/", "20270115T080000Z", "15-Jan-2027 08:00:00",
    ],
)  # fmt: skip
def test_a_time_that_can_mean_one_thing_alone_is_read(text: str) -> None:
    body = {"lat": 1.5, "lon": 2, "t": text}
    assert found(body, time="t", time_unit="iso8601") == [(1.5, 2, NOW)]


@pytest.mark.parametrize("text", ["01/15/2027 08:00:00", "15-JAN-27 08.00.00 AM", "noon", "2027"])
def test_a_time_in_another_form_is_refused_by_the_name_of_the_time(text: str) -> None:
    body = {"lat": 1.5, "lon": 2, "t": text}
    assert found(body, time="t", time_unit="iso8601") == [TIME_FORM]
    assert "payload.time_unit" in CAUSES[TIME_FORM]


@pytest.mark.parametrize(
    ("date", "clock", "unit"),
    [
        ("2027-01-15", "08:00:00", "iso8601"), ("20270115", "080000.00", "iso8601"),
        (20270115, 80000, "iso8601"), ("150127", "080000.000", "ddmmyy"), (150127, 80000, "ddmmyy"),
    ],
)  # fmt: skip
def test_a_date_and_a_time_of_day_in_two_fields_are_one_time(
    date: object, clock: object, unit: str
) -> None:
    body = {"lat": 1.5, "lon": 2, "g": {"d": date, "t": clock}}
    assert found(body, time="g.d + g.t", time_unit=unit) == [(1.5, 2, NOW)]
    del body["g"]
    assert found(body, time="g.d + g.t", time_unit=unit) == [(1.5, 2, None)]


HEMISPHERE = [
    ("ns", "S"), ("NS", "s"), ("lat_dir", "South"), ("ew", "W"), ("EW", "west"), ("lon_dir", "W"),
    ("latHemisphere", "S"), ("lonHemisphere", "W"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "letter"), HEMISPHERE)
@pytest.mark.parametrize("codec", ["native", "json"])
def test_a_letter_beside_a_number_never_leaves_the_place_on_the_other_side(
    codec: str, name: str, letter: str
) -> None:
    body = {"lat": 33.17, "lon": 70.94}
    assert found(body | {name: letter}, codec) == [NOT_DEGREES]
    assert found({name: letter} | body, codec) == [NOT_DEGREES]
    assert found(body | {name: "N" if "n" in name.lower() else "E"}, codec) != [NO_FIX]
    assert "lat + ns" in CAUSES[NOT_DEGREES]


@given(st.floats(0, 89.9), st.floats(0, 179.9), st.sampled_from("NS"), st.sampled_from("EW"))
def test_declared_letters_are_the_signs(lat: float, lon: float, ns: str, ew: str) -> None:
    lat, lon = round(lat, 4) + 1e-4, round(lon, 4)
    body = {"lat": lat, "ns": ns, "lon": lon, "ew": ew}
    signed = (lat if ns == "N" else -lat, lon if ew == "E" else -lon, None)
    assert found(body, lat="lat + ns", lon="lon + ew") == [signed]
    texts = {"lat": f"{lat:.4f} {ns}", "lon": f"{ew}{lon:.4f}"}
    assert found(texts) == [(pytest.approx(signed[0]), pytest.approx(signed[1]), None)]


def test_a_letter_that_is_declared_and_missing_or_wrong_is_refused() -> None:
    for more in ({}, {"ns": "N"}, {"ns": "E", "ew": "N"}, {"ns": "", "ew": "W"}):
        assert found({"lat": 1, "lon": 2} | more, lat="lat + ns", lon="lon + ew") == [NOT_DEGREES]
    body = {"lat": -1, "ns": "N", "lon": 2, "ew": "E"}
    assert found(body, lat="lat + ns", lon="lon + ew") == [NOT_DEGREES]


def test_minutes_that_could_be_degrees_are_told_by_their_zeros_or_declared() -> None:
    body = {"lat": "0010.2000", "lon": "00056.4000"}
    assert found(body) == [NOT_DEGREES]
    [(lat, lon, _)] = found(body, scale="ddmm")
    assert (lat, lon) == (pytest.approx(0.17), pytest.approx(0.94))
    [(lat, lon, _)] = found({"lat": -6010.2, "lon": 2456.4}, scale="ddmm")
    assert (lat, lon) == (pytest.approx(-60.17), pytest.approx(24.94))
    assert of_minutes(6075.0) is NOT_DEGREES
    for lon in ("0120.5", "-0120.5", "+0010.5", "00120.5"):
        assert found({"lat": "12.5", "lon": lon}) == [NOT_DEGREES]
    for lon in ("0.5", "-0.5", "020.5", "-120.5", "+12.5", "10.5"):
        assert found({"lat": "12.5", "lon": lon}) == [(12.5, float(lon), None)]


def test_radians_are_declared() -> None:
    [(lat, lon, _)] = found({"lat": 1.0501646, "lon": "0.4352851"}, scale="radians")
    assert (lat, lon) == (pytest.approx(60.17, abs=1e-5), pytest.approx(24.94, abs=1e-5))


FLAT = {"position.latitude": 60.17, "position.longitude": 24.94}
PATHS: dict[str, Any] = {"lat": ["position.latitude"], "lon": ["position.longitude"]}


def test_a_key_with_dots_can_be_asked_for_wherever_a_path_can_stand() -> None:
    where = {'["position.valid"]': True}
    assert found(FLAT | {"position.valid": True}, **PATHS, where=where) == [(60.17, 24.94, None)]
    assert found(FLAT, **PATHS, where=where) == [Outcome.INVALID__NOT_SELECTED]
    text = {"lat": '["position.latitude"]', "lon": '["position.longitude"]'}
    assert found(FLAT, **text) == [(60.17, 24.94, None)]
    with pytest.raises(ValidationError, match=r"a key with dots is a list"):
        found(FLAT, **PATHS, where={'"position.valid"': True})


def test_a_sign_of_no_fix_beside_the_place_is_believed_under_a_flat_name_too() -> None:
    assert found(FLAT | {"position.valid": False}, **PATHS) == [NO_FIX]
    assert found({"lat": 1, "lon": 2, "fix": False}) == [NO_FIX]
    batch = [{"lat": 1, "lon": 2, "fix": False}, {"lat": 1, "lon": 2}]
    assert found(batch) == [NO_FIX, (1, 2, None)]


def test_what_is_packed_in_text_lines_or_base64_is_declared() -> None:
    inner = {"lat": 60.17, "lon": 24.94}
    text = json.dumps(inner)
    packed = base64.b64encode(text.encode())
    at = [(60.17, 24.94, None)]
    assert found({"Message": text}, "native", "in Message") == at
    assert found({"data": {"body": packed.decode()}}, "json", ["in data.body", "base64"]) == at
    assert found(packed, "native", "base64") == at
    lines = f"{text}\n{{\n{text}\r\n\n".encode()
    assert found(lines, "native", "lines") == [*at, MALFORMED, *at]
    assert found({"Message": None}, "native", "in Message") == [Outcome.INVALID__SCHEMA]
    assert found(b"{", "native", "base64") == [MALFORMED]


def test_arrays_in_arrays_are_refused_with_what_to_do() -> None:
    with pytest.raises(ValidationError, match="let the sender write one position"):
        found({}, positions="data.gps", accuracy="$.data.0.id")
    with pytest.raises(ValidationError, match="counted from its begin"):
        found({}, lat="gps.-1.lat")
