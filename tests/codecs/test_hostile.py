"""No bytes whatsoever make a codec raise or return a position outside the earth."""

import json
from typing import Any

import pytest
from google.transit.gtfs_realtime_pb2 import FeedMessage
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.codecs import CODECS
from anonymizer.domain.outcomes import Outcome
from tests.codecs.hostile import HOSTILE, assert_sound, paths, with_part
from tests.codecs.samples import SAMPLES
from tests.examples import many

JSON_CODECS = sorted({s.codec for s in SAMPLES if not isinstance(s.message, bytes)})

KEYS = sorted(
    {key for s in SAMPLES for path in paths(s.message) for key in path if isinstance(key, str)}
)
ANY_JSON = st.recursive(
    st.sampled_from(HOSTILE) | st.floats() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=3), inner, max_size=4)
    ),
    max_leaves=12,
)


@many(1.5)
@given(payload=st.binary(max_size=60))
def test_no_bytes_make_a_codec_raise(payload: bytes) -> None:
    for codec in CODECS:
        assert_sound(codec, payload)


@many(1.5)
@given(message=ANY_JSON)
def test_no_json_makes_a_codec_raise(message: object) -> None:
    payload = json.dumps(message).encode()
    for codec in CODECS:
        assert_sound(codec, payload)


@many(4)
@given(data=st.data(), sample=st.sampled_from(SAMPLES), part=st.sampled_from(HOSTILE) | ANY_JSON)
def test_no_hostile_part_in_a_good_message_makes_its_codec_raise(
    data: st.DataObject, sample: Any, part: object  # noqa: ANN401  drawn by hypothesis
) -> None:  # fmt: skip
    path = data.draw(st.sampled_from(list(paths(sample.message))))
    assert_sound(sample.codec, json.dumps(with_part(sample.message, path, part)).encode())


@many(3)
@given(
    sample=st.sampled_from(SAMPLES),
    cut=st.tuples(st.integers(0, 400), st.integers(0, 400)),
    junk=st.binary(max_size=4) | st.sampled_from([b"1e999", b"NaN", b'"\\ud800"', b"\xff", b"[{"]),
)
def test_no_damage_to_a_good_message_makes_its_codec_raise(
    sample: Any, cut: tuple[int, int], junk: bytes  # noqa: ANN401  drawn by hypothesis
) -> None:  # fmt: skip
    start, end = sorted(cut)
    assert_sound(sample.codec, sample.payload[:start] + junk + sample.payload[end:])


@many(2)
@given(
    floats=st.tuples(st.floats(width=32), st.floats(width=32)),
    times=st.tuples(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1)),
    cut=st.tuples(st.integers(0, 60), st.integers(0, 60)),
    junk=st.binary(max_size=4),
)
def test_no_damage_to_a_protobuf_feed_makes_the_codec_raise(
    floats: tuple[float, float], times: tuple[int, int], cut: tuple[int, int], junk: bytes
) -> None:
    feed = FeedMessage()
    feed.header.gtfs_realtime_version = "2.0"
    feed.header.timestamp = times[0]
    vehicle = feed.entity.add(id="e").vehicle
    vehicle.vehicle.id = "v"
    vehicle.timestamp = times[1]
    vehicle.position.latitude, vehicle.position.longitude = floats
    payload = feed.SerializeToString()
    assert_sound("gtfs_rt", payload)
    start, end = sorted(cut)
    assert_sound("gtfs_rt", payload[:start] + junk + payload[end:])


NESTED = {
    "arrays": b"[" * 100_000,
    "closed arrays": b"[" * 100_000 + b"]" * 100_000,
    "objects": b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
    "digits": b"9" * 100_000,
    "lone surrogate": b'"\\ud800"',
    "not utf-8": b'"\xff"',
}


@pytest.mark.parametrize("part", NESTED.values(), ids=NESTED)
@pytest.mark.parametrize("codec", JSON_CODECS)
def test_a_monstrous_payload_is_refused_once(codec: str, part: bytes) -> None:
    for payload in (part, b'{"x":' + part + b"}"):
        found = CODECS[codec](payload)
        assert len(found) == 1
        assert found[0] in {Outcome.INVALID__MALFORMED, Outcome.INVALID__SCHEMA}


@pytest.mark.parametrize("monster", NESTED.values(), ids=NESTED)
def test_a_monster_anywhere_in_a_good_message_makes_no_codec_raise(monster: bytes) -> None:
    for sample in SAMPLES:
        for path in paths(sample.message):
            marked = json.dumps(with_part(sample.message, path, "MONSTER")).encode()
            assert_sound(sample.codec, marked.replace(b'"MONSTER"', monster))


def test_nested_gps_channels_of_an_uplink_are_not_followed() -> None:
    for depth in (2, 300, 900):
        decoded = b'{"gps_0":' * depth + b'{"lat":1,"lon":2}' + b"}" * depth
        payload = b'{"uplink_message":{"decoded_payload":' + decoded + b"}}"
        assert len(CODECS["ttn"](payload)) == 1
        assert isinstance(CODECS["ttn"](payload)[0], Outcome)


@pytest.mark.parametrize("codec", sorted(CODECS))
def test_an_empty_payload_is_reported_as_empty(codec: str) -> None:
    assert CODECS[codec](b"") == [Outcome.INVALID__EMPTY]
