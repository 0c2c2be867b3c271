"""Simulated sensors: equal for equal seeds, within range, and accepted by their settings."""

import json
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from anonymizer.codecs import CODECS
from anonymizer.codecs.placeless import or_placeless
from anonymizer.domain.fixes import Fix
from anonymizer.errors import InputError
from anonymizer.files.device_registry import read_registry
from anonymizer.networks import load_network
from anonymizer.pipeline.ports import Outgoing
from anonymizer.settings import Settings
from simulator.sensors import READINGS, SensorNetwork, settings_text
from tests.simulator.support import network

NETWORK = load_network("grid:5x5")
N = 20
MORNING = 1_800_000_000.0 - 1_800_000_000.0 % 86400 + 8 * 3600


def sensors(*, seed: int = 1, **options: Any) -> SensorNetwork:  # noqa: ANN401  of several types
    return SensorNetwork(NETWORK, N, rate_hz=1.0, duration_s=10.0, seed=seed, **options)


def messages(source: SensorNetwork, *, cuts: int = 1, since: float = MORNING) -> list[Outgoing]:
    """Return all messages of a source, taken in several batches."""
    sent = []
    for _ in range(cuts):
        turns = source.take(1e9, limit=10 * N // cuts + 1)
        sent += source.encode(turns, since + turns.due_s)
    assert source.next_due_s == float("inf")
    return sent


def readings(sent: list[Outgoing], name: str) -> list[float]:
    return [json.loads(message.payload)["readings"][name] for message in sent]


def test_equal_seeds_give_equal_messages_however_they_are_batched() -> None:
    assert messages(sensors()) == messages(sensors(), cuts=7)
    assert messages(sensors()) != messages(sensors(seed=2))


def test_a_sensor_stays_where_it_is_and_reports_within_the_ranges_of_its_settings() -> None:
    at: dict[str, set[tuple[float, float]]] = {}
    for message in messages(sensors()):
        [fix] = CODECS["native"](message.payload)
        assert isinstance(fix, Fix)
        at.setdefault(message.topic, set()).add((fix.lat, fix.lon))
        for name, value in (fix.readings or {}).items():
            lo, hi = READINGS[name]
            assert lo <= value <= hi
    assert set(at) == {f"sensors/sensor-{i:04d}" for i in range(N)}
    assert all(len(places) == 1 for places in at.values())
    assert len(set.union(*at.values())) == N


def test_air_is_worse_in_the_rush_hour_and_the_afternoon_is_warmer_than_the_night() -> None:
    night, rush, afternoon = (
        messages(sensors(), since=MORNING + hours * 3600) for hours in (-6, 0, 7)
    )
    assert np.mean(readings(rush, "no2_ugm3")) > 2 * np.mean(readings(night, "no2_ugm3"))
    warmth = [np.mean(readings(sent, "temperature_c")) for sent in (night, afternoon)]
    assert warmth[1] > warmth[0] + 8


def test_with_a_registry_messages_contain_readings_alone(tmp_path: Path) -> None:
    source, stated = sensors(states_position=False), sensors()
    source.write_registry(tmp_path / "sensors.csv")
    places = read_registry(tmp_path / "sensors.csv")
    decode = or_placeless("native", CODECS["native"])
    for alone, whole in zip(messages(source), messages(stated), strict=True):
        assert "lat" not in json.loads(alone.payload)
        [fix], [placed] = decode(alone.payload), decode(whole.payload)
        assert isinstance(fix, Fix)
        assert isinstance(placed, Fix)
        assert (fix.ts, fix.readings) == (placed.ts, placed.readings)
        assert places[alone.topic.removeprefix("sensors/")] == (placed.lat, placed.lon)


@pytest.mark.parametrize("registry", [None, Path("sensors.csv")])
def test_the_printed_settings_declare_the_sensors_and_what_they_sense(
    registry: Path | None,
) -> None:
    text = settings_text("city:1000", "air/{device}", registry)
    settings = Settings.model_validate(tomllib.loads(text))
    mobile, fixed = settings.inputs
    assert (mobile.kind, fixed.kind) == ("mobile", "fixed")
    assert (fixed.topic, fixed.registry) == ("air/{device}", registry)
    assert {reading.name for reading in settings.readings} == set(READINGS)


def test_more_sensors_than_nodes_share_them_and_none_stands_on_no_network() -> None:
    crowded = SensorNetwork(NETWORK, 60, rate_hz=1.0)
    assert len(crowded.device_id) == 60
    with pytest.raises(InputError, match="nothing can stand on it"):
        SensorNetwork(network([], n_nodes=0), 1, rate_hz=1.0)


def test_a_registry_that_cannot_be_written_is_the_users_mistake(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be written"):
        sensors().write_registry(tmp_path / "none" / "sensors.csv")
