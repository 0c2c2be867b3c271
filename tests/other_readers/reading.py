"""Readers that nobody here wrote read what the gateway writes: `make test-readers`, where npm is.

`make` installs them in a folder, from `package-lock.json` and `echoes.txt`.
"""

import json
import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from anonymizer.app.contract import asyncapi, channels
from anonymizer.codecs import CoarsePoint, Encoder, encoders
from anonymizer.codecs.any_json import encoder_of
from anonymizer.codecs.coarse import short_id
from anonymizer.outputs.cloud_events import cloudevent
from anonymizer.pipeline.ports import Outgoing
from anonymizer.settings import Settings
from anonymizer.settings.payloads import PayloadSettings
from tests.app.contracts import ECHOES, EVERYTHING, KAFKA
from tests.other_readers.read_echoes import OF_HOME_ASSISTANT, READERS

FOLDER = Path(os.environ["ANONYMIZER_READERS"])
ENCODERS = encoders()
POINT = CoarsePoint(60.16991, 24.93841, 412, 1_800_000_000.25, "3nG0cQ9kPqAz", "t")
STREAM = {
    "name": "fleet",
    "sources": [{"name": "all", "tells": ["speed"]}],
    "attributes": [{"name": "speed", "lo": 0, "hi": 9}],
}


def read(reader: str, payload: bytes, folder: Path) -> Any:  # noqa: ANN401  what it finds
    path = folder / "message"
    path.write_bytes(payload)
    script = Path(__file__).with_name("read.mjs")
    done = subprocess.run(
        ["node", script, reader, path], cwd=FOLDER, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    "tables",
    [
        {},
        EVERYTHING | {"streams": [STREAM]},
        EVERYTHING | {"shapes": {"regions": "bbox"}, "output": {"qos": 1, "forms": ["device"]}},
        {"output": {"qos": 1}, "inputs": ECHOES},
        KAFKA,
    ],
    ids=["default", "everything", "devices", "echoes", "kafka"],
)
def test_the_parser_of_asyncapi_accepts_the_contract(
    tables: dict[str, Any], tmp_path: Path
) -> None:
    settings = Settings.model_validate(tables)
    found = read("asyncapi", json.dumps(asyncapi(settings)).encode(), tmp_path)
    assert found["problems"] == []
    assert set(found["addresses"]) == {channel.address for channel in channels(settings)}


def test_the_bindings_of_gtfs_realtime_read_an_echo(tmp_path: Path) -> None:
    feed = read("gtfs_rt", ENCODERS["gtfs_rt"](POINT), tmp_path)
    assert feed["header"] == {
        "gtfsRealtimeVersion": "2.0",
        "incrementality": 1,
        "timestamp": 1_800_000_000,
    }
    [entity] = feed["entity"]
    assert entity["id"] == entity["vehicle"]["vehicle"]["id"] == POINT.pseudonym
    place = entity["vehicle"]["position"]
    assert (place["latitude"], place["longitude"]) == pytest.approx((POINT.lat, POINT.lon), 1e-6)


def test_the_protocol_buffers_of_meshtastic_read_an_echo(tmp_path: Path) -> None:
    assert short_id(POINT.pseudonym) < 2**32
    position = read("meshtastic", ENCODERS["meshtastic"](POINT), tmp_path)
    assert position["latitudeI"] / 1e7 == POINT.lat
    assert position["longitudeI"] / 1e7 == POINT.lon
    assert position["time"] == int(POINT.time)
    assert position["precisionBits"] == 15


RELEASES = [
    POINT._replace(
        lat=60.1 + turn * 1e-3,
        lon=24.9 - turn * 2e-3,
        time=POINT.time + 10 * turn,
        pseudonym=pseudonym,
        topic=f"cloaked/echo/{pseudonym}",
    )
    for turn, pseudonym in enumerate(["3nG0cQ9kPqAz"] * 3 + ["9kPqAzfU2x1b"] * 2)
]
"""Three releases of one pseudonym, then two of another."""
FEATURES = PayloadSettings.model_validate(
    {
        "lat": "geometry.coordinates.1",
        "lon": "geometry.coordinates.0",
        "time": "properties.time",
        "device": "id",
        "accuracy": "properties.accuracy",
        "where": {"type": "Feature", "geometry.type": "Point"},
    }
)
NAME_OF: dict[str, Callable[[str], str]] = {
    "etsi_cam": lambda pseudonym: str(short_id(pseudonym)),
    "home_assistant": lambda _: "",
}
"""Of formats whose payloads do not have the pseudonym itself."""


def event(point: CoarsePoint) -> bytes:
    """Write a message with its headers as one JSON, as bridges from MQTT do."""
    message = Outgoing(point.topic, ENCODERS["native"](point))
    headers = cloudevent(message, kind="Group", source="/gateway")
    return json.dumps(dict(headers.user) | {"data": json.loads(message.payload)}).encode()


ENCODER_OF: Mapping[str, Encoder] = {
    **ENCODERS,
    "geojson": encoder_of(FEATURES.paths),
    "cloudevents": event,
}
PYTHON_OF = dict.fromkeys(READERS, str(FOLDER / "python")) | dict.fromkeys(
    (each.__name__ for each in OF_HOME_ASSISTANT), os.environ.get("ANONYMIZER_HOME_ASSISTANT", "")
)


@pytest.mark.parametrize("codec", READERS)
def test_what_moves_here_moves_there_under_its_pseudonym(codec: str, tmp_path: Path) -> None:
    """And nothing is dropped as a repetition."""
    if not PYTHON_OF[codec]:
        pytest.skip("HOME_ASSISTANT=FOLDER is not given")
    files = [tmp_path / str(turn) for turn in range(len(RELEASES))]
    for file, release in zip(files, RELEASES, strict=True):
        file.write_bytes(ENCODER_OF[codec](release))
    script = Path(__file__).with_name("read_echoes.py")
    done = subprocess.run(
        [Path(PYTHON_OF[codec]) / "bin" / "python", script, codec, *files],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    name_of = NAME_OF.get(codec, str)
    assert [name for name, *_ in found] == [name_of(each.pseudonym) for each in RELEASES]
    for (_, lat, lon, time, _), release in zip(found, RELEASES, strict=True):
        assert (lat, lon) == pytest.approx((release.lat, release.lon), abs=1e-5)
        assert codec == "home_assistant" or -1e-3 < release.time - time < 1
    assert len({json.dumps(once) for *_, once in found}) == len(RELEASES)


def test_what_moves_here_moves_on_a_mesh_and_no_packet_is_a_repetition(tmp_path: Path) -> None:
    packets = [ENCODERS["meshtastic"](release) for release in RELEASES]
    said = [json.loads(packet) for packet in packets]
    assert len({each["id"] for each in said}) == len(RELEASES)
    assert [each["from"] for each in said] == [short_id(each.pseudonym) for each in RELEASES]
    for packet, release in zip(packets, RELEASES, strict=True):
        position = read("meshtastic", packet, tmp_path)
        place = (position["latitudeI"] / 1e7, position["longitudeI"] / 1e7)
        assert place == pytest.approx((release.lat, release.lon), abs=1e-6)
        assert position["time"] == int(release.time)
