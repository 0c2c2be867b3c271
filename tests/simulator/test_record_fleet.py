"""Simulated records: equal for equal seeds, correlated, and accepted by their settings."""

import json
import tomllib
from collections import Counter
from typing import Any

import numpy as np

from anonymizer.domain.outcomes import Outcome
from anonymizer.pipeline.ports import Outgoing
from anonymizer.pipeline.records.declaration import declare
from anonymizer.settings import Settings
from anonymizer.settings.all_methods import all_methods
from simulator.record_fleet import SETTINGS, TURNS, RecordFleet
from simulator.toll_exits import settings_for

N = 40


def messages(*, seed: int = 1, cuts: int = 1, rounds: int = TURNS) -> list[Outgoing]:
    """Return the messages of a fleet in some rounds, taken in several batches."""
    fleet = RecordFleet(N, rate_hz=1.0, duration_s=rounds, seed=seed)
    sent = []
    for limit in np.full(cuts, N * rounds // cuts + 1).tolist():
        parts = fleet.take(1e9, limit=limit)
        sent += fleet.encode(parts, parts.due_s + 1e9)
    assert fleet.next_due_s == float("inf")
    return sent


def parts_of(source: str) -> dict[str, dict[str, Any]]:
    return {
        vehicle: json.loads(m.payload)
        for m in messages()
        for name, vehicle in [m.topic.split("/")[1:]]
        if name == source
    }


def test_equal_seeds_give_equal_parts_however_they_are_batched() -> None:
    assert messages() == messages(cuts=7)
    assert messages() != messages(seed=2)


def test_every_source_reports_every_vehicle_within_ten_turns() -> None:
    topics = Counter(m.topic for m in messages())
    for i in range(N):
        of = {s: topics[f"records/{s}/veh-{i:06d}"] for s in ("registration", "profile")}
        assert of == {"registration": 1, "profile": 1}
        assert topics[f"records/telemetry/veh-{i:06d}"] == TURNS - 2


def test_registration_and_profile_of_a_vehicle_do_not_change() -> None:
    early = {m.topic: json.loads(m.payload) for m in messages()}
    for m in messages(rounds=3 * TURNS):
        if "telemetry" not in m.topic:
            part = json.loads(m.payload)
            assert {**part, "ts": 0} == {**early[m.topic], "ts": 0}


def test_age_and_experience_of_drivers_are_correlated() -> None:
    driver = parts_of("profile").values()
    ages, years = ([d[name] for d in driver] for name in ("age", "licence_years"))
    assert all(y <= a - 18 for a, y in zip(ages, years, strict=True))
    assert np.corrcoef(ages, years)[0, 1] > 0.7


def test_the_matching_settings_accept_every_part() -> None:
    settings = Settings.model_validate(tomllib.loads(SETTINGS))
    [stream] = [declare(s) for s in settings.streams]
    readers = {
        source.name: reader
        for source, reader in zip(stream.settings.sources, stream.readers, strict=True)
    }
    for m in messages(rounds=3 * TURNS):
        assert not isinstance(readers[m.topic.split("/")[1]].read(m.payload), Outcome)


def test_the_repr_of_turns_shows_neither_vehicle_nor_values() -> None:
    assert "array" not in repr(RecordFleet(3, rate_hz=1.0).take(0.0, limit=9))


def test_the_settings_of_all_methods_declare_the_attributes_of_the_simulators_own() -> None:
    def attributes(tables: dict[str, Any]) -> dict[str, Any]:
        return {each["name"]: each for stream in tables["streams"] for each in stream["attributes"]}

    every, vehicles = attributes(all_methods()), attributes(tomllib.loads(SETTINGS))
    sections = every["section_region"]["values"]
    tolls = attributes(tomllib.loads(settings_for(sections)))
    both = every.keys() & vehicles.keys()
    assert both == vehicles.keys()
    assert {name: every[name] for name in both} == {name: vehicles[name] for name in both}
    # Exits at the ends of simulated trips state when they were made.
    said = {name: dict(every[name]) for name in tolls}
    assert said["time_period"].pop("path") == "left_at"
    assert said == tolls
