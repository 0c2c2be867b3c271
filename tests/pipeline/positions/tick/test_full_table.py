"""A full table of devices: who makes up ids keeps nobody out who is on the road."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.cluster.packed_state import pack, unpack
from anonymizer.pipeline.ports import Delivery
from tests.lanes import some
from tests.pipeline.positions.support import NETWORK, NOW, Rig, a_position, delivery

MOST = 40
SESSION: dict[str, Any] = {
    "region": {"mode": "session", "min_nodes": 2, "place_devices": 1},
    "session": {"beat_s": 4, "epoch_s": 12},
    "presence": {"ttl_s": 30, "max_behind_s": 30, "max_devices": MOST},
}
PRESENCE = {"presence": SESSION["presence"]}
TRIPS = {"trips": {"enabled": True, "ends_m": 50, "ends_s": 1, "delay_s": 3, "gap_s": 5}}
MODES = [PRESENCE | {"region": {"mode": mode}} for mode in ("adka", "snapshot")] + [SESSION]


def away(device: str, ts: float) -> Delivery:
    """Return a position far from every road."""
    says = a_position(12, ts) | {"lat": NETWORK.lat[12] + 0.05}
    return Delivery(f"positions/{device}", json.dumps(says).encode(), 0)


class Flooded(Rig):
    """A flow into which somebody sends fresh ids, before all others in every tick."""

    def __init__(self, **tables: Any) -> None:  # noqa: ANN401  settings of any kind
        super().__init__(**tables)
        self.seconds = self.n_made_up = 0

    def second(self, flood: int, nodes: dict[str, int], *, near: bool = False) -> None:
        """Let a second pass in which ids are made up, and devices report from nodes."""
        self.seconds += 1
        now = NOW + self.seconds
        fresh = [f"x{self.n_made_up + i}" for i in range(flood)]
        self.n_made_up += flood
        made_up = [delivery(each, 0, now) if near else away(each, now) for each in fresh]
        self.publish(*made_up, *(delivery(d, v, now) for d, v in nodes.items()), now=now)

    def are_known(self, devices: Sequence[str]) -> list[bool]:
        """Return which devices count towards k."""
        table, density = self.flow.mobile.devices, self.flow.mobile.engine.operator.density
        slots = [table.find(table.key(each)) for each in devices]
        return [slot >= 0 and bool(density.node_of[slot] >= 0) for slot in slots]


def named(letter: str, n: int) -> dict[str, int]:
    return {f"{letter}{i}": (3 + 7 * i) % 24 for i in range(n)}


@pytest.mark.parametrize("tables", some(MODES, [SESSION]), ids=["adka", "snapshot", "session"])
@given(st.lists(st.integers(0, 3 * MOST), min_size=1, max_size=8), st.integers(1, MOST // 2))
def test_newcomers_on_the_road_enter_at_once_however_many_ids_are_made_up_off_it(
    tables: dict[str, Any], floods: list[int], n_newcomers: int
) -> None:
    rig = Flooded(**tables)
    before, newcomers = named("d", MOST // 2), named("n", n_newcomers)
    for flood in floods:
        rig.second(flood, before)
    for flood in floods:
        rig.second(flood, before | newcomers)
        assert all(rig.are_known([*before, *newcomers]))
    assert "SUPPRESSED__OVERLOAD" not in rig.outcomes()
    assert rig.outcomes().get("SUPPRESSED__OFF_GRAPH", 0) == 2 * sum(floods)


def test_the_whole_table_is_for_those_on_the_road_whoever_came_before() -> None:
    rig = Flooded(**SESSION)
    rig.second(3 * MOST, {})
    assert rig.flow.view.n_devices == MOST // 2
    devices: dict[str, int] = {}
    for i in range(MOST):
        devices[f"d{i}"] = i % 24
        rig.second(3 * MOST, devices)
    assert all(rig.are_known(list(devices)))
    assert rig.flow.view.n_devices == rig.flow.view.n_devices_on_graph == MOST


def test_whoever_was_on_the_road_lately_stays_as_long_as_a_silent_device() -> None:
    rig = Flooded(**SESSION)
    stays = named("d", MOST // 4)
    rig.second(0, stays)
    for i in range(29):
        rig.second(MOST, named(f"{i}-", MOST))
        assert all(rig.are_known(list(stays))), i


def test_nobody_stays_by_reporting_from_off_the_road() -> None:
    rig = Flooded(**PRESENCE)
    rig.second(0, named("d", MOST))
    assert rig.flow.view.n_devices == MOST
    for _ in range(32):
        rig.seconds += 1
        now = NOW + rig.seconds
        rig.publish(*(away(each, now) for each in named("d", MOST)), now=now)
    assert rig.flow.view.n_devices_on_graph == 0
    rig.second(MOST, newcomers := named("n", MOST // 2))
    assert all(rig.are_known(list(newcomers)))


def test_ids_made_up_on_the_road_throw_nobody_out() -> None:
    rig = Flooded(**SESSION)
    before = named("d", MOST // 2)
    rig.second(0, before)
    for _ in range(10):
        rig.second(3 * MOST, before, near=True)
        assert all(rig.are_known(list(before)))
    assert rig.outcomes()["SUPPRESSED__OVERLOAD"] > 0


def test_newcomers_in_protected_trips_are_taken_in_and_nothing_they_wait_for_is_lost() -> None:
    counts = []
    for flood in (0, 3 * MOST):
        rig = Flooded(**PRESENCE, **TRIPS)
        devices = named("d", MOST // 2)
        for second in range(25):
            rig.second(flood, {each: (node + second) % 24 for each, node in devices.items()})
        found = rig.outcomes()
        counts.append({name: found[name] for name in ("PUBLISHED", "SUPPRESSED__TRIP_END")})
        assert "SUPPRESSED__OVERLOAD" not in found
    assert counts[0] == counts[1]
    assert counts[0]["PUBLISHED"] > 0


def test_what_is_published_does_not_depend_on_ids_made_up_off_the_road() -> None:
    regions = []
    for flood in (0, MOST):
        rig = Flooded(**SESSION)
        devices = named("d", MOST // 2)
        said = []
        for second in range(40):
            rig.seconds += 1
            now = NOW + rig.seconds
            made_up = [away(f"x{second}-{i}", now) for i in range(flood)]
            reports = [delivery(d, v, now) for d, v in devices.items()]
            said += rig.publish(*made_up, *reports, now=now)
        regions.append(said)
    assert regions[0] == regions[1]
    assert regions[0]


def test_a_device_that_made_room_comes_back_as_one_that_goes_on() -> None:
    rig = Flooded(**PRESENCE)
    for _ in range(200):
        rig.second(0, {})
    waiting = [f"g{i}" for i in range(MOST // 2)]
    for i in range(60):
        rig.seconds += 1
        now = NOW + rig.seconds
        rig.publish(*(away(each, now) for each in waiting), now=now)
        rig.second(0, named(f"{i % 2}-", MOST // 2))
    assert not rig.flow.mobile.intake.succession._ended.size


def test_whoever_is_off_the_road_for_long_and_heard_does_not_continue_itself() -> None:
    rig = Flooded(**PRESENCE)
    for second in range(400):
        rig.seconds += 1
        now, devices = NOW + rig.seconds, named("d", MOST // 4)
        is_away = second % 80 >= 40
        rig.publish(
            *(away(d, now) if is_away else delivery(d, v, now) for d, v in devices.items()), now=now
        )
    assert not rig.flow.mobile.intake.succession._ended.size


@pytest.mark.parametrize("most", [MOST // 4, MOST, 4 * MOST])
def test_a_table_that_is_restored_under_another_bound_keeps_that(most: int) -> None:
    rig = Flooded(**PRESENCE)
    rig.second(3 * MOST, before := named("d", MOST // 4))
    other = Flooded(presence=PRESENCE["presence"] | {"max_devices": most})
    other.flow.mobile.restore(unpack(pack(rig.flow.mobile.state())))
    other.seconds, other.n_made_up = rig.seconds, rig.n_made_up
    for i in range(5):
        other.second(3 * MOST, before | named(f"{i}-", most // 8))
        assert all(other.are_known(list(before)))
        assert other.flow.view.n_devices <= max(most // 2, other.flow.view.n_devices_on_graph)
    assert other.flow.view.n_devices_on_graph == min(most, len(before) + 5 * (most // 8))


def test_a_flow_that_is_restored_makes_room_as_one_that_went_on() -> None:
    rig, other = Flooded(**PRESENCE), Flooded(**PRESENCE)
    rig.second(3 * MOST, named("d", 5))
    other.seconds, other.n_made_up = rig.seconds, rig.n_made_up
    other.flow.mobile.restore(unpack(pack(rig.flow.mobile.state())))
    keys = []
    for each in (rig, other):
        each.second(3 * MOST, named("d", 5) | named("n", 9))
        table = each.flow.mobile.devices.state()
        keys.append(sorted(table["key"][table["is_taken"]].tolist()))
    assert keys[0] == keys[1]
    assert len(keys[0]) == MOST // 2
