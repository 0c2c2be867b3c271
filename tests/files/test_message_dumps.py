"""What `mosquitto_sub` prints is read as the positions that were sent."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from anonymizer.errors import InputError
from anonymizer.files.message_dumps import _PRINTED, _message_of, is_dump, read_dump
from anonymizer.networks import load_network
from anonymizer.settings import Settings
from tests.cli.support import anonymizer
from tests.files.test_trace_forms import FORMS, table

GRID = load_network("grid:5x5")
BEGIN = 1_769_860_800.0
ROWS = [
    (f"car{i}", BEGIN + 2.0 * step, float(GRID.lat[i]), float(GRID.lon[i]))
    for step in range(4)
    for i in range(12)
]


def settings_of(codec: str, topic: str, **more: Any) -> Settings:  # noqa: ANN401  settings
    stated = {"topic": topic, "codec": codec, **more}
    return Settings.model_validate({"network": {"source": "grid:5x5"}, "inputs": [stated]})


def owntracks(lat: float, lon: float, at: float) -> str:
    return json.dumps({"_type": "location", "lat": lat, "lon": lon, "tst": int(at), "vel": 36})


def tracker(lat: float, lon: float, _: float) -> str:
    return json.dumps({"latitude": lat, "longitude": lon})


def as_object(topic: str, payload: str, at: float) -> str:
    """Write an object as Mosquitto 2.0 does, with a zone too many."""
    tst = datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ%z")
    return json.dumps({"tst": tst, "topic": topic, "qos": 0, "retain": 0, "payload": payload})


PRINTED: dict[str, Callable[[str, str, float], str]] = {
    "-v": lambda topic, payload, _: f"{topic} {payload}",
    "%U %t %p": lambda topic, payload, at: f"{at:.6f} {topic} {payload}",
    "%I %t %p": lambda topic, payload, at: (
        f"{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%S%z} {topic} {payload}"
    ),
    "%j": as_object,
    "%J": lambda topic, payload, at: json.dumps(
        {"tst": datetime.fromtimestamp(at, UTC).isoformat(), "topic": topic, "payload": 0}
    ).replace('"payload": 0', f'"payload": {payload}'),
}
OWNTRACKS = settings_of("owntracks", "owntracks/{user}/{device}")
TRACKERS = settings_of("home_assistant", "location/{device}")


@pytest.mark.parametrize("printed", PRINTED)
def test_each_printed_form_is_read_as_the_fleet_that_it_is(printed: str, tmp_path: Path) -> None:
    path = tmp_path / "dump"
    path.write_text("".join(
        PRINTED[printed](f"owntracks/{name}/phone", owntracks(lat, lon, at), at) + "\r\n"
        for name, at, lat, lon in ROWS
    ))  # fmt: skip
    assert is_dump(path, OWNTRACKS)
    trace = read_dump(path, OWNTRACKS)
    assert trace.device_id == tuple(f"car{i}/phone" for i in range(12))
    assert trace.ts.tolist() == [at for _, at, *_ in ROWS]
    assert trace.lat.tolist() == [lat for *_, lat, _ in ROWS]
    assert trace.lon.tolist() == [lon for *_, lon in ROWS]
    assert trace.readings["speed_mps"].tolist() == [10.0] * len(ROWS)
    assert trace.n_unusable == 0
    assert trace.read_as == ("48 messages of MQTT with 48 positions",)


@pytest.mark.parametrize("printed", PRINTED)
def test_a_position_without_a_time_is_of_its_arrival_or_of_no_use(
    printed: str, tmp_path: Path
) -> None:
    path = tmp_path / "dump.log"
    path.write_text("".join(
        PRINTED[printed](f"location/{name}", tracker(lat, lon, at), at) + "\n"
        for name, at, lat, lon in ROWS
    ))  # fmt: skip
    if printed == "-v":
        with pytest.raises(InputError, match=r"state no time: .* mosquitto_sub -F '%U %t %p'"):
            read_dump(path, TRACKERS)
    else:
        assert read_dump(path, TRACKERS).ts.tolist() == [at for _, at, *_ in ROWS]


def test_halves_are_joined_by_their_arrival(tmp_path: Path) -> None:
    path = tmp_path / "dump.log"
    lines = [
        f"{at} cars/{name}/{what} {value}"
        for name, at, lat, lon in ROWS
        for what, value in (("latitude", lat), ("longitude", lon), ("speed", 3))
    ]
    path.write_text("\n".join(lines))
    payload = {"lat": "latitude", "lon": "longitude", "join_s": 1, "bare": True}
    trace = read_dump(path, settings_of("json", "cars/{device}/+", payload=payload))
    assert (trace.n_rows, trace.lat.tolist()) == (48, [lat for *_, lat, _ in ROWS])
    assert trace.read_as[0].endswith("not used: 48 superseded, 48 not selected")


def test_what_is_of_no_use_is_counted_and_not_quoted(tmp_path: Path) -> None:
    path = tmp_path / "dump.log"
    at = ROWS[0][1]
    path.write_text("\n".join([
        f"owntracks/anna/phone {owntracks(60.5, 24.5, at)}",
        'owntracks/anna/phone {"_type": "lwt", "tst": 1}',
        f"owntracks/anna {owntracks(60.5, 24.5, at)}",
        "anna",
        '{"topic": "owntracks/anna/phone", "payload": "here"}',
    ]))  # fmt: skip
    trace = read_dump(path, OWNTRACKS)
    assert (trace.n_rows, trace.n_unusable) == (1, 4)
    assert "anna" not in trace.read_as[0]
    for why in ("1 not a position", "1 unknown topic", "1 no message", "1 malformed"):
        assert why in trace.read_as[0]


def test_topics_of_no_input_are_refused_with_what_to_state(tmp_path: Path) -> None:
    path = tmp_path / "dump.log"
    path.write_text(f"other/anna {owntracks(60.5, 24.5, BEGIN)}\n")
    assert is_dump(path, OWNTRACKS)
    with pytest.raises(InputError, match=r"state --config with \[\[inputs\]\]") as refused:
        read_dump(path, OWNTRACKS)
    assert "anna" not in str(refused.value)


@pytest.mark.parametrize("form", FORMS)
def test_a_table_is_no_dump(form: str, tmp_path: Path) -> None:
    header, line, _ = FORMS[form]
    path = tmp_path / "trace.txt"
    path.write_text(table(header, line))
    assert not is_dump(path, OWNTRACKS)
    assert not is_dump(tmp_path / "nowhere", OWNTRACKS)
    assert not is_dump(tmp_path, OWNTRACKS)


def test_a_dump_is_cloaked_by_one_command(tmp_path: Path) -> None:
    (tmp_path / "dump.log").write_text("".join(
        f"owntracks/{name}/phone {owntracks(lat, lon, at)}\n" for name, at, lat, lon in ROWS
    ))  # fmt: skip
    config = tmp_path / "gateway.toml"
    config.write_text(
        '[network]\nsource = "grid:5x5"\n[[inputs]]\n'
        'topic = "owntracks/{user}/{device}"\ncodec = "owntracks"\n'
    )
    told = anonymizer(
        "cloak", tmp_path / "dump.log", "--network", "grid:5x5", "--config", config,
        "--region", "snapshot", "--out", tmp_path / "out.jsonl",
    )  # fmt: skip
    assert told.returncode == 0, told.stderr
    assert "48 messages of MQTT with 48 positions" in told.stderr
    assert (tmp_path / "out.jsonl").stat().st_size


def test_no_message_shows_its_device_or_place() -> None:
    line = b'positions/veh-17 {"lat": 60.17, "lon": 24.94}'
    assert repr(_message_of(line)) == "_Message(...)"
    said = b'{"topic": "positions/veh-17", "payload": {"lat": 60.17}}'
    assert repr(_PRINTED.decode(said)) == "_Printed(...)"
