"""The native format in MessagePack: the same message in JSON is the twin."""

import json
import math
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.codecs import CODECS
from anonymizer.codecs.msgpack import _RECORD
from anonymizer.domain.fixes import Fix
from anonymizer.domain.outcomes import Outcome
from tests.codecs.hostile import assert_sound
from tests.codecs.sample import EMPTY, MALFORMED, NO_FIX, SCHEMA, plain
from tests.codecs.samples import SAMPLES
from tests.codecs.test_native import MESSAGES
from tests.examples import many

decode = CODECS["msgpack"]
pack = msgspec.msgpack.encode


def fits(message: object) -> bool:
    """Return whether MessagePack can carry a message: it has no integers beyond 64 bits."""
    try:
        pack(message)
    except OverflowError:
        return False
    return True


@many(2)
@given(MESSAGES.filter(fits))
def test_a_message_means_what_it_means_in_json(message: object) -> None:
    assert decode(pack(message)) == CODECS["native"](json.dumps(message).encode())


NATIVE = [s for s in SAMPLES if s.codec == "native" and fits(s.message)]


@pytest.mark.parametrize("sample", NATIVE, ids=lambda sample: sample.about)
def test_the_samples_of_the_native_format_are_read_alike(sample: Any) -> None:  # noqa: ANN401
    assert plain(decode(pack(sample.message))) == sample.expected


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (b"", EMPTY),
        (pack({"lat": 1.0, "lon": 2.0}) + b"\x00", MALFORMED),
        (pack({"lat": 1.0, "lon": 2.0})[:-1], MALFORMED),
        (b"\x83\xa3lat\x01\xa3lon\x02\xa1x\xc1", MALFORMED),
        (b"\x83\xa3lat\x01\xa3lon\x02\xa6device\xa1\xff", MALFORMED),
        (b"\x81\xc4\x03lat\x01", SCHEMA),
        (b"\xdd\xff\xff\xff\xff", MALFORMED),
        (b"\x91" * 100_000, MALFORMED),
        (pack({"lat": math.nan, "lon": 2.0}), NO_FIX),
        (pack({"lat": 1.0, "lon": 2.0, "ts": 1.8e12}), Outcome.INVALID__TIME_IN_MS),
        (pack({"lat": b"1", "lon": 2.0}), SCHEMA),
    ],
    ids=range(11),
)
def test_what_json_has_not_is_refused_once(payload: bytes, reason: object) -> None:
    assert decode(payload) == [reason]


def test_readings_that_are_not_finite_are_left_out() -> None:
    readings = {"a": math.nan, "b": math.inf, "c": 1.5, "d": b"x"}
    assert decode(pack({"lat": 1, "lon": 2, "readings": readings})) == [
        Fix(1.0, 2.0, readings={"c": 1.5}, unusable=("a", "b", "d"))
    ]


@many(2)
@given(MESSAGES.filter(fits), st.integers(0, 80), st.integers(0, 80), st.binary(max_size=4))
def test_no_damage_makes_the_codec_raise(
    message: object, start: int, length: int, junk: bytes
) -> None:
    payload = pack(message)
    assert_sound("msgpack", payload[:start] + junk + payload[start + length :])


def test_no_repr_shows_a_place_or_a_device() -> None:
    stated = _RECORD.decode(pack({"lat": 12.5, "lon": 34.5, "device": "secret"}))
    assert not any(trace in repr(stated) for trace in ("12.5", "34.5", "secret"))
