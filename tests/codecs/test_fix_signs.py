"""What says that a receiver has no fix is believed in every format that leaves names to devices."""

import json
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import pytest

from anonymizer.codecs import CODECS, Codec
from anonymizer.codecs.any_json import codec_of
from anonymizer.codecs.fix_signs import USUAL
from anonymizer.codecs.paths import JsonPath
from anonymizer.codecs.position_paths import PositionPaths
from anonymizer.domain.fixes import Fix
from anonymizer.pipeline.ports import Delivery
from tests.codecs.sample import FOUND, LOST, NO_FIX
from tests.pipeline.positions.support import Rig

Said = Mapping[str, Any]


def ttn(said: Said) -> tuple[Codec, Any]:
    payload = {"lat": 60.5, "lon": 24.5, **said}
    return CODECS["ttn"], {"uplink_message": {"decoded_payload": payload}}


def traccar(said: Said) -> tuple[Codec, Any]:
    return CODECS["traccar"], {"latitude": 60.5, "longitude": 24.5, "attributes": said}


def senml(said: Said) -> tuple[Codec, Any]:
    def value_of(stated: object) -> dict[str, object]:
        kind = "vb" if isinstance(stated, bool) else "vs" if isinstance(stated, str) else "v"
        return {kind: stated}

    records = [{"bn": "a:", "n": "lat", "v": 60.5}, {"n": "lon", "v": 24.5}]
    return CODECS["senml"], records + [{"n": n, **value_of(v)} for n, v in said.items()]


def declared(said: Said) -> tuple[Codec, Any]:
    """Any JSON, of which the settings declare what is beside the place as readings."""
    readings = {f"r{i}": JsonPath(("gps", name)) for i, name in enumerate(said)}
    lat, lon = JsonPath.of("gps.lat"), JsonPath.of("gps.lon")
    codec = codec_of(PositionPaths(lat=lat, lon=lon, readings=readings))
    return codec, {"gps": {"lat": 60.5, "lon": 24.5, **said}}


FORMATS = [ttn, traccar, senml, declared]


@pytest.mark.parametrize("sign", LOST, ids=str)
@pytest.mark.parametrize("message_of", FORMATS)
def test_a_position_beside_a_sign_of_no_fix_is_refused_as_one_without(
    message_of: Callable[[Said], tuple[Codec, Any]], sign: Said
) -> None:
    codec, message = message_of(sign)
    assert codec(json.dumps(message).encode()) == [NO_FIX]


@pytest.mark.parametrize("said", [said for said, _ in FOUND], ids=lambda said: str(said)[:20])
@pytest.mark.parametrize("message_of", FORMATS)
def test_a_position_beside_what_is_no_sign_is_read(
    message_of: Callable[[Said], tuple[Codec, Any]], said: Said
) -> None:
    codec, message = message_of(said)
    [found] = codec(json.dumps(message).encode())
    assert isinstance(found, Fix)
    assert (found.lat, found.lon) == (60.5, 24.5)


SAYS_LOST: dict[str, list[Any]] = {
    "fix": [False, 0, "no fix", "0"],
    "gps_fix": [False, 0],
    "gpsFix": ["none", 0],
    "valid": [False, 0, "V"],
    "sats": [0, "0"],
    "satellites": [0, 0.0],
    "hdop": [99.99, -1, "99.9"],
    "HDOP": [100],
    "stale": [True, 1, "true"],
    "no_fix": [True, "yes"],
}
SAYS_NOTHING: list[Any] = [None, [], {}, [[0]], "?", 10**400, "\ud800"]
NATIVE = {"lat": 60.5, "lon": 24.5}
FLAT: list[tuple[str, dict[str, Any]]] = [
    ("native", NATIVE),
    ("msgpack", NATIVE),
    ("home_assistant", {"latitude": 60.5, "longitude": 24.5}),
]


def written(codec: str, message: object) -> bytes:
    return msgspec.msgpack.encode(message) if codec == "msgpack" else json.dumps(message).encode()


@pytest.mark.parametrize(("codec", "place"), FLAT, ids=lambda each: str(each)[:9])
@pytest.mark.parametrize("name", USUAL)
def test_flat_formats_know_the_usual_signs_wherever_they_stand(
    codec: str, place: dict[str, Any], name: str
) -> None:
    for said in SAYS_LOST[name]:
        for message in ({**place, name: said}, {name: said, **place}):
            assert CODECS[codec](written(codec, message)) == [NO_FIX]
    usual = {"hdop": 0.9, "sats": 7, "satellites": 7, "stale": False, "no_fix": 0}
    for says in (usual.get(name.lower(), True), *SAYS_NOTHING):
        if codec == "msgpack" and says in (10**400, "\ud800"):
            continue  # which it cannot write
        [found] = CODECS[codec](written(codec, {**place, name: says}))
        assert isinstance(found, Fix)


def test_a_sign_in_an_array_is_that_of_its_position_alone() -> None:
    message = [NATIVE, NATIVE | {"fix": False}, NATIVE]
    for codec in ("native", "msgpack"):
        first, lost, last = CODECS[codec](written(codec, message))
        assert lost is NO_FIX
        assert isinstance(first, Fix)
        assert isinstance(last, Fix)


@pytest.mark.parametrize(("codec", "place"), FLAT, ids=lambda each: str(each)[:9])
def test_no_reader_overlooks_a_sign(codec: str, place: dict[str, Any]) -> None:
    rig = Rig(inputs=[{"codec": codec}])
    said = [{name: value} for name, values in SAYS_LOST.items() for value in values]
    rig.put(
        *(
            Delivery(f"positions/{i}", written(codec, place | sign), 0)
            for i, sign in enumerate(said)
        ),
        Delivery("positions/a", written(codec, place), 0),
        Delivery("positions/b", written(codec, place | {"fix": True, "sats": 7}), 0),
    )
    rig.settle(rig.tick(), [])
    assert rig.outcomes()["INVALID__NO_FIX"] == len(said)
    assert rig.outcomes()["SUPPRESSED__OFF_GRAPH"] == 2


def test_a_sign_of_another_record_of_time_or_device_says_nothing() -> None:
    at = [{"bn": "a:", "bt": 1.8e9, "n": "lat", "v": 60.5}, {"n": "lon", "v": 24.5}]
    for other in ({"n": "sats", "t": 1, "v": 0}, {"bn": "b:", "n": "sats", "v": 0}):
        assert isinstance(CODECS["senml"](json.dumps([*at, other]).encode())[0], Fix)
