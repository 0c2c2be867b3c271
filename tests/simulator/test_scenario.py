"""One scenario for every method: the same vehicles in all of it, and what they say is true."""

import json
from collections import Counter, defaultdict

import numpy as np
import pytest

from anonymizer.algorithms.geodesy import haversine_m
from anonymizer.domain.network import RoadNetwork
from anonymizer.domain.outcomes import Outcome
from anonymizer.networks import load_network
from anonymizer.pipeline.ports import Outgoing
from anonymizer.pipeline.records.declaration import declare
from anonymizer.settings import Settings
from anonymizer.settings.all_methods import all_methods
from simulator.scenario import PART_EVERY_S, Scenario

N = 60
LENGTH_S = 120.0
BEGIN_S = 1.7e9


@pytest.fixture(scope="module")
def city() -> RoadNetwork:
    return load_network("city:400")


def sent(
    city: RoadNetwork, *, limit: int = 10**6, noise_m: float = 0.0, n_sensors: int = 3
) -> list[Outgoing]:
    """Return all messages, taken in batches of at most so many positions."""
    scenario = Scenario(
        city, N, rate_hz=1.0, n_sensors=n_sensors, duration_s=LENGTH_S, seed=4, noise_m=noise_m
    )
    messages = []
    while scenario.next_due_s < LENGTH_S:
        happened = scenario.take(LENGTH_S, limit=limit)
        assert np.all(np.diff(happened.due_s) >= 0)
        messages += scenario.encode(happened, BEGIN_S + happened.due_s)
    return messages


@pytest.fixture(scope="module")
def messages(city: RoadNetwork) -> list[Outgoing]:
    return sent(city)


def test_equal_seeds_give_equal_messages_however_they_are_batched(
    city: RoadNetwork, messages: list[Outgoing]
) -> None:
    def by_topic(every: list[Outgoing]) -> dict[str, list[bytes]]:
        found = defaultdict(list)
        for each in every:
            found[each.topic].append(each.payload)
        return found

    assert by_topic(messages) == by_topic(sent(city, limit=17))


def test_some_of_the_messages_are_some_of_the_messages(city: RoadNetwork) -> None:
    scenario = Scenario(city, N, rate_hz=1.0, n_sensors=0, seed=4)
    scenario.take(30.0, limit=10**6)
    happened = scenario.take(31.0, limit=10**6)
    ts = BEGIN_S + happened.due_s
    every = scenario.encode(happened, ts)
    odd = np.arange(1, len(happened), 2)
    assert scenario.encode(happened.only(odd), ts[odd]) == every[1::2]


def test_every_vehicle_says_where_it_is_what_it_is_and_how_it_drives(
    messages: list[Outgoing],
) -> None:
    kinds = Counter(each.topic.rpartition("/")[0] for each in messages)
    assert kinds["positions"] == N * LENGTH_S
    n_parts = N * LENGTH_S / PART_EVERY_S
    assert kinds["records/registration"] + kinds["records/telemetry"] == n_parts
    assert kinds["records/registration"] == pytest.approx(n_parts / 2, abs=N)
    assert kinds["records/profile"] == kinds["records/registration"]
    assert kinds["toll/exit"] > N / 10  # whose trips ended
    assert kinds["sensors"] > 0
    assert sum(kinds.values()) == len(messages)
    vehicles = {each.topic.rpartition("/")[2] for each in messages} - {
        each.topic.rpartition("/")[2] for each in messages if each.topic.startswith("sensors")
    }
    assert len(vehicles) == N


def test_a_record_states_the_speed_that_the_positions_show(messages: list[Outgoing]) -> None:
    at: dict[str, list[tuple[float, float, float]]] = defaultdict(list)
    n_fast = 0
    for each in messages:
        kind, _, vehicle = each.topic.rpartition("/")
        body = json.loads(each.payload)
        if kind == "positions":
            at[vehicle].append((body["ts"], body["lat"], body["lon"]))
        elif kind == "records/telemetry" and len(at[vehicle]) > 1:
            (t0, lat0, lon0), (t1, lat1, lon1) = at[vehicle][-2:]
            assert body["ts"] == pytest.approx(t1, abs=0.001)
            metres = haversine_m(*(np.array([x]) for x in (lat0, lon0, lat1, lon1)))[0]
            assert body["speed_kmh"] == pytest.approx(3.6 * metres / (t1 - t0), abs=1.0)
            n_fast += body["speed_kmh"] > 10
    assert n_fast > N


def test_the_settings_of_all_methods_take_all_of_it(messages: list[Outgoing]) -> None:
    settings = Settings.model_validate(all_methods(window_s=60.0))
    readers = {
        source.filter_topic.partition("/{")[0]: reader
        for each in settings.streams
        for source, reader in zip(each.sources, declare(each).readers, strict=True)
    }
    read = Counter[str]()
    for each in messages:
        kind = each.topic.rpartition("/")[0]
        if kind in readers:
            part = readers[kind].read(each.payload)
            if kind == "toll/exit" and b'"truck"' not in each.payload:
                assert part is Outcome.INVALID__NOT_SELECTED
                continue
            assert not isinstance(part, Outcome)
            assert part[0] == pytest.approx(BEGIN_S, abs=LENGTH_S)
            read[kind] += 1
    assert read.keys() == readers.keys()


def test_exits_are_at_the_hour_of_the_scenario_and_the_time_of_the_clock(
    city: RoadNetwork,
) -> None:
    scenario = Scenario(city, N, rate_hz=1.0, n_sensors=0, seed=4, begins_s=6.5 * 3600)
    left = []
    for second in range(1, 31):
        happened = scenario.take(float(second), limit=10**6)
        left += [
            json.loads(each.payload)
            for each in scenario.encode(happened, BEGIN_S + happened.due_s)
            if each.topic.startswith("toll/exit")
        ]
    assert left
    for exit_ in left:
        assert exit_["left_at"].partition("T")[2].startswith("06:30:")
        assert exit_["exit_time"] == pytest.approx(BEGIN_S, abs=31)


def test_the_repr_of_what_happened_shows_neither_vehicle_nor_place(city: RoadNetwork) -> None:
    happened = Scenario(city, 3, rate_hz=1.0, n_sensors=1).take(1.0, limit=9)
    assert "veh" not in repr(happened)
    assert str(happened.reports.lat[0]) not in repr(happened)
