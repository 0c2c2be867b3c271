"""Readers that nobody here wrote read what the gateway writes: `make test-readers`, where npm is.

`make` installs them in a folder, from `package-lock.json` and `echoes.txt`.
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
from tests.other_readers.read_echoes import READERS

FOLDER = Path(os.environ["ANONYMIZER_READERS"])
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
    )
    for turn, pseudonym in enumerate(["3nG0cQ9kPqAz"] * 3 + ["9kPqAzfU2x1b"] * 2)
]
"""Three releases of one pseudonym, then two of another."""


@pytest.mark.parametrize("codec", READERS)
def test_what_moves_here_moves_there_under_its_pseudonym(codec: str, tmp_path: Path) -> None:
    files = [tmp_path / str(turn) for turn in range(len(RELEASES))]
    for file, release in zip(files, RELEASES, strict=True):
        file.write_bytes(ENCODERS[codec](release))
    script = Path(__file__).with_name("read_echoes.py")
    done = subprocess.run(
        [FOLDER / "python" / "bin" / "python", script, codec, *files],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [name for name, *_ in found] == [each.pseudonym for each in RELEASES]
    for (_, lat, lon, time), release in zip(found, RELEASES, strict=True):
        assert (lat, lon) == pytest.approx((release.lat, release.lon), abs=1e-5)
        assert 0 <= release.time - time < 1


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
