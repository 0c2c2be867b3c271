"""Readers that nobody here wrote read what the gateway writes: `make test-readers`, where npm is.

`make` installs them in a folder from `package-lock.json`.
"""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from anonymizer.app.contract import asyncapi, channels
from anonymizer.codecs import ENCODERS, CoarsePoint
from anonymizer.codecs.coarse import short_id
from anonymizer.settings import Settings
from tests.app.contracts import ECHOES, EVERYTHING, KAFKA

FOLDER = os.environ["ANONYMIZER_READERS"]
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
