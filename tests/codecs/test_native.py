"""The native format against a naive twin that uses the standard library's json."""

import json
import sys
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anonymizer.codecs import CODECS
from anonymizer.codecs.native import _Record
from anonymizer.domain.fixes import Fix
from anonymizer.domain.outcomes import Outcome
from tests.codecs.sample import EMPTY, MALFORMED, NO_FIX, NULL_ISLAND, OUT_OF_RANGE, SCHEMA, plain
from tests.examples import many

decode = CODECS["native"]

NUMBERS = st.sampled_from([0, -0.0, 1, -90, 90.0, 90.5, 180, -181, 10**30, 1e308]) | st.floats(
    allow_nan=False, allow_infinity=False, min_value=-200, max_value=200
)
OTHERS: st.SearchStrategy[Any] = st.sampled_from([None, True, "1", "", [], {}, [1], 10**400])
DEVICES = st.sampled_from([None, "", "a", "ä\u0000", 0, 7, -1, 2**63 - 1, 2**63, 1.0, False])
READINGS = OTHERS | st.dictionaries(st.sampled_from(["a", "b", "ä"]), NUMBERS | OTHERS)
RECORDS: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {},
    optional={
        "lat": NUMBERS | NUMBERS | NUMBERS | OTHERS,
        "lon": NUMBERS | NUMBERS | NUMBERS | OTHERS,
        "ts": NUMBERS | OTHERS,
        "device": DEVICES,
        "readings": READINGS,
        "extra": OTHERS | st.text(),
    },
)
MESSAGES: st.SearchStrategy[Any] = RECORDS | st.lists(RECORDS | OTHERS, max_size=4) | OTHERS


def is_number(value: Any) -> bool:  # noqa: ANN401  any JSON
    return type(value) in {int, float} and abs(value) <= sys.float_info.max


def is_id(value: Any) -> bool:  # noqa: ANN401  any JSON
    return (isinstance(value, str) and value != "") or (type(value) is int and 0 <= value < 2**63)


NUMBER_OF: dict[str, Any] = {"1": 1.0, "": None}
"""What the texts of the strategies mean in place of a number."""


def naive_fix(record: Any) -> Fix | Outcome:  # noqa: ANN401, PLR0911  any JSON, a reason each
    if not isinstance(record, dict):
        return SCHEMA
    lat, lon = record.get("lat"), record.get("lon")
    ts, device = record.get("ts"), record.get("device")
    lat, lon, ts = (NUMBER_OF[x] if isinstance(x, str) else x for x in (lat, lon, ts))
    sound = all(value is None or is_number(value) for value in (lat, lon, ts))
    if not sound or not {"lat", "lon"} <= record.keys():
        return SCHEMA
    if lat is None or lon is None:
        return NO_FIX
    if ts is not None and ts > 1e11:
        return Outcome.INVALID__FUTURE_TIME  # those of the strategy are far ahead
    if abs(lat) > 90 or abs(lon) > 180:
        return OUT_OF_RANGE
    if lat == 0 and lon == 0:
        return NULL_ISLAND
    return Fix(
        float(lat),
        float(lon),
        None if ts is None or ts <= 0 else float(ts),
        str(device) if is_id(device) else None,
        naive_readings(record.get("readings")),
    )


def naive_readings(readings: Any) -> dict[str, float] | None:  # noqa: ANN401  any JSON
    if not isinstance(readings, dict):
        return None
    return {name: float(x) for name, x in readings.items() if is_number(x)} or None


def naive_decode(payload: bytes) -> list[Fix | Outcome]:
    message = json.loads(payload)
    if isinstance(message, list):
        return [naive_fix(record) for record in message] or [EMPTY]
    return [naive_fix(message)]


@many(3)
@given(message=MESSAGES, ascii_only=st.booleans(), indent=st.sampled_from([None, 2]))
def test_native_equals_its_naive_twin(
    message: object, ascii_only: bool, indent: int | None  # noqa: FBT001  drawn by hypothesis
) -> None:  # fmt: skip
    payload = json.dumps(message, ensure_ascii=ascii_only, indent=indent).encode()
    assert plain(decode(payload)) == naive_decode(payload)


@settings(deadline=None)
@given(message=RECORDS, cut=st.integers(0, 200))
def test_a_truncated_message_is_never_a_fix(message: dict[str, Any], cut: int) -> None:
    payload = json.dumps(message).encode()
    payload = payload[: min(cut, len(payload) - 1)]
    assert decode(payload) in ([[EMPTY]] if not payload else [[MALFORMED], [SCHEMA]])


@pytest.mark.parametrize("word", [b"NaN", b"nan", b"-nan", b"Infinity", b"-inf", b"undefined"])
def test_a_word_that_is_no_number_is_no_fix_and_no_time(word: bytes) -> None:
    assert decode(b'{"lon":1,"lat":' + word + b"}") == [NO_FIX]
    assert decode(b'{"lon":1,"lat":1,"ts":' + word + b"}") == [Fix(1.0, 1.0)]


@pytest.mark.parametrize("number", [b"1e999", b"-1e999"])
def test_numbers_that_overflow_are_refused(number: bytes) -> None:
    for key in (b"lat", b"ts"):
        assert decode(b'{"lon":1,"lat":1,"' + key + b'":' + number + b"}") == [SCHEMA]


@pytest.mark.parametrize("number", [b"+1.5", b"01.5", b"1.50", b"0001.5e0"])
def test_a_number_written_as_json_does_not_have_it_is_that_number(number: bytes) -> None:
    assert decode(b'{"lat":' + number + b',"lon":2}') == [Fix(1.5, 2.0)]


@pytest.mark.parametrize("number", [b"1e999", b"-1e999", b"1" + b"0" * 400])
def test_a_number_that_overflows_costs_only_its_own_reading(number: bytes) -> None:
    payload = b'{"lat":1,"lon":2,"readings":{"a":' + number + b',"b":3}}'
    assert decode(payload) == [Fix(1.0, 2.0, readings={"b": 3.0}, unusable=("a",))]


def test_text_that_is_not_utf8_costs_nothing_where_it_is_ignored_and_is_no_id() -> None:
    assert decode(b'{"lat":1,"lon":2,"note":"\xff"}') == [Fix(1.0, 2.0)]
    assert decode(b'[{"lat":1,"lon":2},{"lat":1,"lon":2,"device":"\xff"}]') == [Fix(1.0, 2.0)] * 2
    assert decode(b"\xff") == [MALFORMED]
    assert decode('{"lat":1,"lon":2,"note":"ä"}'.encode()) == [Fix(1.0, 2.0)]


def test_no_repr_shows_a_place_a_device_or_a_reading() -> None:
    payload = b'{"lat":12.5,"lon":34.5,"device":"secret","readings":{"a":56.5}}'
    stated = msgspec.json.decode(payload, type=_Record)
    for shown in (repr(stated), repr(decode(payload))):
        assert not any(trace in shown for trace in ("12.5", "34.5", "secret", "56.5"))
