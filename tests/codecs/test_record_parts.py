"""Parts of records: how values become codes, and which payloads are refused."""

import json
import struct
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.codecs.record_parts import PartReader
from anonymizer.domain.outcomes import Outcome
from tests.pipeline.records.made import TYPES, stream

FLEET = stream()
REGISTRATION, PROFILE, TELEMETRY = FLEET.readers
TOLD = [attribute.name for attribute in FLEET.settings.attributes]


def read(reader: PartReader, **fields: object) -> tuple[float, tuple[int, ...]] | Outcome:
    part = reader.read(json.dumps(fields).encode())
    if isinstance(part, Outcome):
        return part
    return part[0], struct.unpack(f"<{len(part[1]) // 4}i", part[1])


def test_values_become_codes_in_the_order_of_their_domain() -> None:
    for code, name in enumerate(TYPES):
        assert read(REGISTRATION, ts=1, type=name, region="east") == (1.0, (code, 2))
    assert read(PROFILE, ts=1.5, age=18) == (1.5, (0,))
    assert read(PROFILE, ts=1.5, age=90.0) == (1.5, (72,))
    assert read(TELEMETRY, ts=0, speed=0.7, fault="none") == (0.0, (1, 0))


@pytest.mark.parametrize("absent", [{}, {"age": None}, {"age": "?"}])
def test_null_absent_and_marked_values_are_missing(absent: dict[str, object]) -> None:
    assert read(PROFILE, ts=1, **absent) == (1.0, (73,))
    assert read(REGISTRATION, ts=1, type="?") == (1.0, (4, 4))


def test_time_is_unix_seconds_or_iso_8601() -> None:
    assert read(PROFILE, ts="1970-01-01T00:01:00Z") == (60.0, (73,))
    assert read(PROFILE, ts="1970-01-01T08:01:00+08:00") == (60.0, (73,))
    assert read(PROFILE, ts="1970-01-01 00:01:00") == (60.0, (73,))


@pytest.mark.parametrize("per_second", [1, 1_000, 1_000_000, 1_000_000_000])
@pytest.mark.parametrize("form", [int, float, str])
@pytest.mark.parametrize("seconds", [100_000_000, 1_800_000_060, 99_999_999_960])
def test_a_number_is_in_the_unit_that_its_size_tells(
    seconds: int, form: Callable[[int], object], per_second: int
) -> None:
    part = read(PROFILE, ts=form(seconds * per_second))
    assert not isinstance(part, Outcome)
    assert part[0] == pytest.approx(seconds, abs=1e-3)


def test_attributes_that_are_not_declared_are_dropped() -> None:
    assert read(PROFILE, ts=1, age=20, owner="Ada", nested={"a": [1]}) == (1.0, (2,))


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (b"", Outcome.INVALID__EMPTY),
        (b"{", Outcome.INVALID__MALFORMED),
        (b"\xff", Outcome.INVALID__MALFORMED),
        (b'{"x":' + b"[" * 9000, Outcome.INVALID__MALFORMED),
        (b"[]", Outcome.INVALID__SCHEMA),
        (b'{"age": 20}', Outcome.INVALID__SCHEMA),
        (b'{"ts": null, "age": 20}', Outcome.INVALID__SCHEMA),
        (b'{"ts": "noon", "age": 20}', Outcome.INVALID__SCHEMA),
        (b'{"ts": 1e999, "age": 20}', Outcome.INVALID__SCHEMA),
        (b'{"ts": true, "age": 20}', Outcome.INVALID__SCHEMA),
        (b'{"ts": 1, "age": "2O"}', Outcome.INVALID__SCHEMA),
        (b'{"ts": 1, "age": true}', Outcome.INVALID__SCHEMA),
        (b'{"ts": 1, "age": [20]}', Outcome.INVALID__SCHEMA),
        (b'{"ts": 1, "age": 17.9}', Outcome.INVALID__OUT_OF_DOMAIN),
        (b'{"ts": 1, "age": 91}', Outcome.INVALID__OUT_OF_DOMAIN),
    ],
)
def test_a_payload_that_is_not_a_part_is_refused_with_its_reason(
    payload: bytes, reason: Outcome
) -> None:
    assert PROFILE.read(payload) is reason


def test_a_category_that_is_not_declared_is_out_of_the_domain() -> None:
    assert read(REGISTRATION, ts=1, type="tank") is Outcome.INVALID__OUT_OF_DOMAIN
    assert read(REGISTRATION, ts=1, type=3) is Outcome.INVALID__OUT_OF_DOMAIN


@pytest.mark.parametrize(
    ("truck", "vehicle"),
    [
        ({"plate": "a-1"}, "a-1"),
        ({"plate": 7}, "7"),
        ({"plate": ""}, ""),
        ({"plate": None}, Outcome.INVALID__NO_DEVICE),
        ({}, Outcome.INVALID__NO_DEVICE),
        (None, Outcome.INVALID__NO_DEVICE),
        ({"plate": 1.5}, Outcome.INVALID__SCHEMA),
        ({"plate": True}, Outcome.INVALID__SCHEMA),
    ],
)
def test_a_payload_may_name_its_vehicle(truck: object, vehicle: str | Outcome) -> None:
    source = {"name": "all", "topic": "all", "vehicle": "truck.plate", "tells": TOLD}
    [reader] = stream(sources=[source]).readers
    payload = json.dumps({"ts": 1, "age": 20, "truck": truck}).encode()
    named = reader.read_named(payload)
    assert (named if isinstance(named, Outcome) else named[0]) == vehicle
    if not isinstance(named, Outcome):
        assert named[1] == reader.read(payload)


@given(st.binary(max_size=60))
def test_no_payload_makes_a_reader_raise(payload: bytes) -> None:
    for reader in FLEET.readers:
        part = reader.read(payload)
        assert isinstance(part, Outcome) or len(part) == 2
