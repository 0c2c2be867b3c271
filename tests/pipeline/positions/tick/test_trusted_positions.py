"""What is not believed costs its own device alone: jumps, ghosts, vague fixes, through the flow."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import networkx as nx
import numpy as np
import pytest

from anonymizer.domain.network import RoadNetwork
from anonymizer.networks import from_networkx
from anonymizer.pipeline.ports import Delivery
from tests.lanes import each_of_both
from tests.pipeline.positions.support import NOW, Rig

Payload: TypeAlias = Mapping[str, object]
EVERY_S = 30.0
KM = 1 / 111.2
"""Degrees of latitude."""
FAR_DEG = 33 * KM


def two_towns(*, side: int = 16) -> RoadNetwork:
    """Return two towns of blocks of 90 m, 33 km apart, with a road between them."""
    graph: nx.Graph[int] = nx.Graph()
    block = 0.09 * KM
    for town in range(2):
        first = town * side * side
        for i in range(side * side):
            row, column = divmod(i, side)
            lat, lon = 60.0 + town * FAR_DEG + row * block, 25.0 + column * block * 2
            graph.add_node(first + i, y=lat, x=lon)
            if column:
                graph.add_edge(first + i - 1, first + i)
            if row:
                graph.add_edge(first + i - side, first + i)
    graph.add_edge(side * side - 1, 2 * side * side - 1)  # nobody drives there
    return from_networkx(graph, max_spacing_m=0)


TOWNS = two_towns()
SESSION: dict[str, Any] = {
    "region": {"mode": "session"},
    "session": {"beat_s": 6.0, "epoch_s": 90.0},
    "adka": {"density_steps": [], "k_values": [3]},
}


def message(device: int, payload: Payload) -> Delivery:
    return Delivery(f"positions/car-{device}", json.dumps(payload).encode(), 0, retained=False)


def of_town(device: int, seconds: float, *, far: bool = False, **more: object) -> Delivery:
    """Return a position of a device on its street, at one end and the other in turn."""
    row = device % 7 + 0.3 * (int(seconds / EVERY_S) % 3)
    lat = 60.0 + far * FAR_DEG + row * 0.09 * KM
    lon = 25.0 + device % 8 * 0.18 * KM
    return message(device, {"lat": lat, "lon": lon, "ts": NOW + seconds, **more})


def driven(
    rig: Rig, says: Callable[[float], Iterable[Delivery]], *, until_s: int
) -> list[dict[str, Any]]:
    """Run ticks of a second; return all published messages."""
    found: list[dict[str, Any]] = []
    for seconds in map(float, range(until_s)):
        found += rig.publish(*says(seconds), now=NOW + seconds + 0.5)
    return [each for each in found if "region" in each]


def share_over_both(messages: Sequence[Mapping[str, Any]]) -> float:
    """Return which share of the regions lie in both towns, once groups know who stands still.

    In the first minute all may stand; few devices then share a place as large as both towns.
    """
    late = [each for each in messages if each["time"] > NOW + 60 + SESSION["session"]["epoch_s"]]
    lats = [TOWNS.lat[np.isin(TOWNS.node_id, each["region"])] for each in late]
    assert late
    return sum(np.ptp(each) > FAR_DEG / 2 for each in lats) / len(late)


def jumping(share: float, *, seed: int = 1) -> Callable[[float], Iterable[Delivery]]:
    """Return 24 devices of one town, a share of whose fixes lie in the other one."""
    rng = np.random.default_rng(seed)

    def says(seconds: float) -> Iterable[Delivery]:
        return [
            of_town(device, seconds, far=bool(rng.random() < share))
            for device in range(24)
            if seconds % EVERY_S == device
        ]

    return says


@pytest.mark.parametrize(
    ("share", "most"), [pytest.param(0.01, 0.01, marks=pytest.mark.soak), (0.05, 0.02)]
)
def test_wrong_fixes_of_some_widen_hardly_anybodys_region(share: float, most: float) -> None:
    rig = Rig(roads=TOWNS, **SESSION)
    widened = share_over_both(driven(rig, jumping(share), until_s=900))
    anything: dict[str, Any] = {"inputs": [{"max_speed_mps": 1e6}]}
    control = share_over_both(
        driven(Rig(roads=TOWNS, **SESSION, **anything), jumping(share), until_s=900)
    )
    assert widened <= most < control
    assert rig.outcomes()["SUPPRESSED__IMPLAUSIBLE_JUMP"] > 0


def test_who_alternates_between_towns_widens_nobodys_region() -> None:
    def says(seconds: float) -> Iterable[Delivery]:
        honest = [of_town(d, seconds) for d in range(23) if seconds % EVERY_S == d]
        turn = int(seconds / EVERY_S) % 2 == 1
        return [*honest, of_town(23, seconds, far=turn)] if seconds % EVERY_S == 23 else honest

    assert share_over_both(driven(Rig(roads=TOWNS, **SESSION), says, until_s=900)) == 0


def test_who_has_really_moved_is_published_in_the_other_town_after_its_group_has_ended() -> None:
    def says(seconds: float) -> Iterable[Delivery]:
        far = seconds > 200
        return [of_town(d, seconds, far=far) for d in range(12) if seconds % EVERY_S == d]

    messages = driven(Rig(roads=TOWNS, **SESSION), says, until_s=900)
    assert share_over_both(messages) == 0
    last = [each for each in messages if each["time"] > NOW + 600]
    assert last
    assert all(TOWNS.lat[np.isin(TOWNS.node_id, each["region"])].min() > 60.2 for each in last)


def feed(seconds: float, *, stated: bool) -> list[Delivery]:
    """Return a feed of three vehicles that move and report, and eleven that nobody has heard of."""
    entities = []
    for vehicle in range(14):
        moves = vehicle < 3
        place = {
            "latitude": 60.0 + (0.09 * vehicle + moves * 0.001 * seconds) * KM,
            "longitude": 25.0 + 0.18 * KM * (vehicle % 8),
        }
        of_vehicle: dict[str, object] = {"vehicle": {"id": f"bus-{vehicle}"}, "position": place}
        if moves or stated:
            of_vehicle["timestamp"] = NOW + seconds - 3.0 - vehicle / 8
        entities.append({"id": str(vehicle), "vehicle": of_vehicle})
    payload = {"header": {"timestamp": NOW + seconds}, "entity": entities}
    return [Delivery("feed", json.dumps(payload).encode(), 0, retained=False)]


FEED: dict[str, Any] = {
    "inputs": [{"topic": "feed", "codec": "gtfs_rt_json", "device_from": "payload"}]
}


def test_vehicles_that_nobody_has_heard_of_are_in_no_k_until_they_state_times() -> None:
    rig = Rig(roads=TOWNS, **(SESSION | {"adka": {"density_steps": [], "k_values": [5]}}), **FEED)

    def says(seconds: float) -> Iterable[Delivery]:
        return feed(seconds, stated=seconds >= 300) if seconds % EVERY_S == 0 else []

    messages = driven(rig, says, until_s=480)
    sizes = {len(each["pseudonyms"]) for each in messages if each["time"] < NOW + 300}
    assert not sizes
    assert rig.outcomes()["SUPPRESSED__AGE_UNKNOWN"] == 110
    first = min(each["time"] for each in messages)
    assert first <= NOW + 300 + 60 + SESSION["session"]["epoch_s"]


def test_a_poll_that_states_when_it_was_made_is_no_report() -> None:
    rig = Rig(roads=TOWNS, **SESSION, inputs=[{"topic": "bikes", "device_from": "payload"}])

    def says(seconds: float) -> Iterable[Delivery]:
        bikes = [
            {"device": f"b{i}", "lat": 60.0 + i * 0.01 * KM, "lon": 25.0, "ts": NOW + seconds}
            for i in range(12)
        ]
        poll = Delivery("bikes", json.dumps(bikes).encode(), 0, retained=False)
        return [poll] if seconds % EVERY_S == 0 else []

    driven(rig, says, until_s=300)
    assert rig.outcomes() == {"SUPPRESSED__AGE_UNKNOWN": 10 * 12}


def test_a_place_by_radio_masts_is_company_for_nobody() -> None:
    rig = Rig(roads=TOWNS, **SESSION)

    def says(seconds: float) -> Iterable[Delivery]:
        vague: dict[int, dict[str, Any]] = {d: {"accuracy_m": 19_138} for d in range(4, 14)}
        return [
            of_town(d, seconds, **vague.get(d, {})) for d in range(14) if seconds % EVERY_S == d
        ]

    messages = driven(rig, says, until_s=300)
    assert messages
    assert max(len(each["pseudonyms"]) for each in messages) <= 4
    assert rig.outcomes()["SUPPRESSED__INACCURATE"] == 100


def test_a_refused_position_changes_no_byte_that_others_get() -> None:
    def alone(seconds: float) -> list[Delivery]:
        return [of_town(d, seconds) for d in range(14) if seconds % EVERY_S == d]

    def with_refused(seconds: float) -> Iterable[Delivery]:
        refused = []
        if seconds % EVERY_S == 20 and seconds > EVERY_S:
            refused = [of_town(3, seconds, far=True)]  # a member of a group
            refused += [of_town(40, seconds, accuracy_m=5000.0)]
            unheard = {"device": "bus", "lat": 60.0, "lon": 25.0}
            refused += [Delivery("poll", json.dumps(unheard).encode(), 0, retained=False)]
        return [*alone(seconds), *refused]

    inputs = [{}, {"topic": "poll", "device_from": "payload"}]
    rigs = [Rig(roads=TOWNS, **SESSION, inputs=inputs) for _ in range(2)]
    found = [
        driven(rig, says, until_s=600)
        for rig, says in zip(rigs, (alone, with_refused), strict=True)
    ]
    assert found[0] == found[1] != []
    reasons = ("IMPLAUSIBLE_JUMP", "INACCURATE", "AGE_UNKNOWN")
    assert [rigs[1].outcomes()[f"SUPPRESSED__{reason}"] for reason in reasons] == [19] * 3


REFUSED: dict[str, Callable[[float], Delivery]] = {
    "IMPLAUSIBLE_JUMP": lambda seconds: of_town(3, seconds, far=True),
    "INACCURATE": lambda seconds: of_town(3, seconds, accuracy_m=5000.0),
}


@pytest.mark.parametrize(("mode", "reason"), each_of_both(["session", "snapshot", "adka"], REFUSED))
def test_who_is_refused_looks_as_if_it_had_fallen_silent(mode: str, reason: str) -> None:
    """Also in when what is published: ticks are compared, until a jump is believed."""

    def published(*, refused: bool) -> list[list[dict[str, Any]]]:
        rig = Rig(roads=TOWNS, **(SESSION | {"region": {"mode": mode}}))
        found = []
        for seconds in map(float, range(240)):
            known = [of_town(d, seconds) for d in range(14) if seconds % EVERY_S == d]
            if seconds >= 150:
                known = [each for each in known if each.topic != "positions/car-3"]
                known += [REFUSED[reason](seconds)] * refused
            found.append(rig.publish(*known, now=NOW + seconds + 0.5))
        assert rig.outcomes().get(f"SUPPRESSED__{reason}", 0) == 90 * refused
        return found

    silent = published(refused=False)
    assert published(refused=True) == silent
    assert sum(map(len, silent[150:])) > 0
