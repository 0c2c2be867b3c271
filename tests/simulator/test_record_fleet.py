"""Made records: the same for equal seeds, and what the settings that go with them take."""

import json
import tomllib
from collections import Counter
from typing import Any

import numpy as np

from anonymizer.domain.outcomes import Outcome
from anonymizer.pipeline.ports import Outgoing
from anonymizer.pipeline.records.declaration import declare
from anonymizer.settings import Settings
from simulator.record_fleet import SETTINGS, TURNS, RecordFleet

N = 40


def messages(*, seed: int = 1, cuts: int = 1, rounds: int = TURNS) -> list[Outgoing]:
    """Return what a fleet tells in so many rounds, taken in so many batches."""
    fleet = RecordFleet(N, rate_hz=1.0, duration_s=rounds, seed=seed)
    told = []
    for limit in np.full(cuts, N * rounds // cuts + 1).tolist():
        parts = fleet.take(1e9, limit=limit)
        told += fleet.encode(parts, parts.due_s + 1e9)
    assert fleet.next_due_s == float("inf")
    return told


def told_by(source: str) -> dict[str, dict[str, Any]]:
    return {
        vehicle: json.loads(m.payload)
        for m in messages()
        for name, vehicle in [m.topic.split("/")[1:]]
        if name == source
    }


def test_equal_seeds_tell_the_same_however_it_is_cut_into_batches() -> None:
    assert messages() == messages(cuts=7)
    assert messages() != messages(seed=2)


def test_every_source_tells_of_every_vehicle_within_ten_turns() -> None:
    topics = Counter(m.topic for m in messages())
    for i in range(N):
        of = {s: topics[f"records/{s}/veh-{i:06d}"] for s in ("registration", "profile")}
        assert of == {"registration": 1, "profile": 1}
        assert topics[f"records/telemetry/veh-{i:06d}"] == TURNS - 2


def test_what_is_told_of_a_vehicle_and_its_driver_does_not_change() -> None:
    early = {m.topic: json.loads(m.payload) for m in messages()}
    for m in messages(rounds=3 * TURNS):
        if "telemetry" not in m.topic:
            said = json.loads(m.payload)
            assert {**said, "ts": 0} == {**early[m.topic], "ts": 0}


def test_the_attributes_hang_together() -> None:
    driver = told_by("profile").values()
    ages, years = ([d[name] for d in driver] for name in ("age", "licence_years"))
    assert all(y <= a - 18 for a, y in zip(ages, years, strict=True))
    assert np.corrcoef(ages, years)[0, 1] > 0.7


def test_the_settings_that_go_with_it_take_every_part() -> None:
    settings = Settings.model_validate(tomllib.loads(SETTINGS))
    [stream] = [declare(s) for s in settings.streams]
    readers = {
        source.name: reader
        for source, reader in zip(stream.settings.sources, stream.readers, strict=True)
    }
    for m in messages(rounds=3 * TURNS):
        assert not isinstance(readers[m.topic.split("/")[1]].read(m.payload), Outcome)


def test_a_part_says_nothing_of_who_when_it_is_printed() -> None:
    assert repr(RecordFleet(3, rate_hz=1.0).take(0.0, limit=9)) == "Parts(1)"
