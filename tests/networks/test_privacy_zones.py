"""Networks with privacy zones: whole, and silent about the devices inside."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.algorithms.positions.protection import Circle, StandIns, Zones, keep_out
from anonymizer.domain.arrays import Int32Array
from anonymizer.domain.release import Release
from anonymizer.errors import SettingsError
from anonymizer.networks import load_network
from anonymizer.networks.privacy_zones import with_zones
from anonymizer.pipeline.ledger import Ledger
from anonymizer.pipeline.positions.tick.engine import PositionEngine
from anonymizer.pipeline.positions.tick.factory import (
    cloaking_operator,
    engine_parameters,
    intake_parameters,
)
from anonymizer.pipeline.positions.tick.intake import Intake, matching_with
from anonymizer.pipeline.positions.tick.trip_guard import Positions
from anonymizer.settings import Settings
from tests.lanes import each_of_both

GRID = load_network("grid:6x6")
AT = 14
STEP_M = float(GRID.length_m.mean())
"""The zone is a node and its four neighbours."""
ZONED = with_zones(GRID, Zones([Circle(float(GRID.lat[AT]), float(GRID.lon[AT]), 1.2 * STEP_M)]))
INSIDE = np.flatnonzero(ZONED.closed)
SECRET = b"of this test"
MODES = ["adka", "snapshot", "session"]


def settings(mode: str, min_nodes: int) -> Settings:
    tables = {
        "inputs": [{"ids_change_s": 0}],
        "region": {"mode": mode, "min_nodes": min_nodes},
        "adka": {"k_values": [2], "density_steps": []},
        "session": {"epoch_s": 4, "beat_s": 0},
    }
    return Settings.model_validate(tables)


def releases(mode: str, min_nodes: int, nodes: list[Int32Array]) -> list[Release]:
    """Return what is released about devices at these nodes, tick by tick."""
    chosen, ledger = settings(mode, min_nodes), Ledger()
    engine = PositionEngine(engine_parameters(chosen, GRID), GRID, ledger)
    matching = matching_with(ZONED, snap_limit_m=chosen.network.snap_limit_m, secret=SECRET)
    intake = Intake(intake_parameters(chosen), matching, ledger, engine.operator)
    slot = np.arange(len(nodes[0]), dtype=np.int32)
    released = []
    for now, node in enumerate(nodes):
        lat = np.where(node >= 0, GRID.lat[node], 50.0)
        ts = np.full(len(slot), float(now))
        positions = Positions(slot, ts, lat, GRID.lon[node], ts)
        released.append(engine.tick(intake.locate(positions, now=now)).release)
    return released


def test_a_zone_leaves_the_network_whole() -> None:
    assert sorted(INSIDE.tolist()) == [8, 13, 14, 15, 20]
    assert ZONED.network is GRID
    assert not with_zones(GRID, Zones()).closed.any()


def test_a_node_next_to_a_zone_belongs_to_its_rim() -> None:
    beside = ZONED.beside
    assert (beside[INSIDE] == ZONED.zone_of[INSIDE]).all()
    rim = set(np.flatnonzero(beside >= 0).tolist()) - set(INSIDE.tolist())
    assert rim == {2, 7, 9, 12, 16, 19, 21, 26}


def test_zones_need_coordinates() -> None:
    nowhere = replace(GRID, lat=GRID.lat * np.nan)
    with pytest.raises(SettingsError, match="zones: the network has no coordinates"):
        with_zones(nowhere, ZONED.zones)


@pytest.mark.parametrize(("mode", "min_nodes"), each_of_both(MODES, [1, 4]))
@given(st.integers(0, 1000))
def test_no_release_of_any_cloak_depends_on_where_in_a_zone_a_device_is(
    mode: str, min_nodes: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    nodes = [rng.integers(-1, 36, 14).astype(np.int32) for _ in range(8)]
    moved = [
        np.where(np.isin(node, INSIDE), rng.choice(INSIDE, 14), node).astype(np.int32)
        for node in nodes
    ]
    for one, other in zip(
        releases(mode, min_nodes, nodes), releases(mode, min_nodes, moved), strict=True
    ):
        for name in ("k", "first_node_of", "node", "first_member_of", "member", "version"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


@pytest.mark.parametrize("mode", MODES)
def test_devices_that_are_only_ever_in_a_zone_are_published_in_no_mode(mode: str) -> None:
    for release in releases(mode, 1, [np.full(3, AT, np.int32)] * 8):
        assert not len(release.node)


@pytest.mark.parametrize("mode", ["adka", "snapshot"])
def test_a_region_may_pass_through_a_zone_like_through_any_other_place(mode: str) -> None:
    wall = with_zones(GRID, Zones([Circle(float(GRID.lat[i]), float(GRID.lon[i]), 9)
                                   for i in range(12, 18)]))  # fmt: skip
    assert np.flatnonzero(wall.closed).tolist() == list(range(12, 18))
    operator = cloaking_operator(settings(mode, 1), wall.network)
    node = wall.keep_out(np.array([6, 18], np.int32))
    release = operator.tick(np.arange(2, dtype=np.int32), np.zeros(2), node, now=0).release
    assert sorted(set(release.member.tolist())) == [0, 1]
    assert wall.closed[release.node].any()


def test_a_device_that_enters_a_zone_leaves_the_density_map_as_if_off_the_graph() -> None:
    operator = cloaking_operator(settings("adka", 1), ZONED.network)
    slot = np.arange(3, dtype=np.int32)
    operator.tick(slot, np.zeros(3), np.full(3, 0, np.int32), now=0)
    node = keep_out(np.array([AT, 0, 0], np.int32), closed=ZONED.closed)
    result = operator.tick(slot, np.ones(3), node, now=1)
    assert operator.density.n_devices == 2
    assert result.release.member.tolist() == [1, 2]


def test_a_member_inside_a_zone_is_covered_in_the_zone_but_not_where_it_is() -> None:
    # Node 8 is inside; both devices share a group from the first tick on.
    inside = [[7, 9], *[[8, 9]] * 3]
    *_, last = releases("session", 1, [np.array(node, np.int32) for node in inside])
    assert sorted(last.member.tolist()) == [0, 1]
    assert set(INSIDE.tolist()) & set(last.node.tolist())


def test_a_stand_in_is_any_node_of_the_zone_and_stays_until_the_device_leaves() -> None:
    stand_ins = StandIns(ZONED.zone_of, SECRET)
    slot, inside = np.arange(200, dtype=np.int32), np.zeros(200, np.int32)
    key = slot.astype(np.uint64)

    def at(zone: Int32Array, ts: float) -> Int32Array:
        return stand_ins.at(slot, zone, key=key, ts=np.full(200, ts))

    first = at(inside, 1.0)
    assert set(first.tolist()) == set(INSIDE.tolist())
    assert (at(inside, 2.0) == first).all()
    assert (at(inside - 1, 3.0) < 0).all()
    again = at(inside, 4.0)
    assert (again != first).any()
    stand_ins.forget(np.arange(1000, dtype=np.int32))
    key += np.uint64(1000)
    assert (at(inside, 4.0) != again).any(), "another device, another stand-in"


def test_zones_that_do_not_touch_have_stand_ins_of_their_own() -> None:
    apart = with_zones(GRID, Zones([Circle(float(GRID.lat[v]), float(GRID.lon[v]), 9.0)
                                    for v in (0, 1, 35)]))  # fmt: skip
    assert apart.zone_of[[0, 1, 35, 7]].tolist() == [0, 0, 1, -1]
    stand_ins = StandIns(apart.zone_of, SECRET)
    slot, zone = np.array([[0], [1]], np.int32)
    assert stand_ins.at(slot, zone, key=slot.astype(np.uint64), ts=np.zeros(1)).tolist() == [35]
