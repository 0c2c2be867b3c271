"""Several networks in one service: each device is company for those on its own alone."""

import json
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from anonymizer.cluster.packed_state import pack, unpack
from anonymizer.networks import load_network
from anonymizer.pipeline.ports import Delivery
from anonymizer.pipeline.positions.tick.device_layers import DeviceLayers
from anonymizer.settings import Settings
from tests.lanes import one_in
from tests.pipeline.positions.support import NOW, Rig, flow_settings

ROADS, PATHS = "grid:5x5", "grid:5x7"
SOURCE = f"{ROADS} + {PATHS}"
BOTH = load_network(SOURCE)
CARS = {"topic": "cars/{device}", "network": ROADS}
WALKERS = {"topic": "walkers/{device}", "network": PATHS}


def rig_of(**tables: Any) -> Rig:  # noqa: ANN401  tables of any kind
    network = {"source": SOURCE, "snap_limit_m": 30}
    return Rig(roads=BOTH, network=network, inputs=[CARS, WALKERS], **tables)


def said(kind: str, device: str, node: int, ts: float = NOW) -> Delivery:
    """Return what a device says that stands at a node which both grids have."""
    body = {"lat": BOTH.lat[node], "lon": BOTH.lon[node], "ts": ts}
    return Delivery(f"{kind}/{device}", json.dumps(body).encode(), 0)


def test_both_grids_have_junctions_in_the_same_places() -> None:
    first = BOTH.layers[1].nodes.start + 1  # one column more on each side
    assert BOTH.lat[[0, 2]].tolist() == pytest.approx(BOTH.lat[[first, first + 2]].tolist())
    assert BOTH.lon[[0, 2]].tolist() == pytest.approx(BOTH.lon[[first, first + 2]].tolist())


@pytest.mark.parametrize("mode", ["adka", "snapshot", "session"])
def test_k_counts_the_devices_of_one_network_alone(mode: str) -> None:
    rig = rig_of(region={"mode": mode, "min_nodes": 2}, adka={"density_steps": [], "k_values": [3]})
    few = [("cars", "a"), ("cars", "b"), ("walkers", "c")]
    assert rig.publish(*(said(*each, 0) for each in few)) == []
    published = []
    for second in range(1, 100):  # more than an epoch: two of three come after the first groups
        now = NOW + second
        again = [said(*each, 0, now) for each in (*few, ("walkers", "d"), ("walkers", "e"))]
        published += rig.publish(*again, now=now)
    assert published
    for each in published:
        assert len(each["pseudonyms"]) == 3
        assert {name.split("/")[0] for name in each["region"]} == {"2"}


def test_a_device_on_two_networks_is_on_the_first_and_no_company_on_the_other() -> None:
    rig = rig_of()
    [message] = rig.publish(
        said("cars", "a", 0), said("cars", "b", 0), said("walkers", "a", 0), said("walkers", "c", 0)
    )
    assert {name.split("/")[0] for name in message["region"]} == {"1"}
    assert rig.outcomes() == {
        "PUBLISHED": 2,
        "SUPPRESSED__OFF_GRAPH": 1,
        "SUPPRESSED__TOO_FEW_DEVICES": 1,
    }
    assert rig.flow.inputs.n_of[1].sum() == 2, "and the input is told"


def seconds_until_grouped_elsewhere(changes_at: int, epoch_s: int) -> int:
    """Return how long a phone waits that changes from one network to the other."""
    tables = {"session": {"epoch_s": epoch_s, "beat_s": 6}, "presence": {"ttl_s": 120}}
    rig = rig_of(region={"mode": "session", "min_nodes": 2}, **tables)
    devices = [(kind, f"{kind}{i}", i % 25) for kind in ("cars", "walkers") for i in range(40)]
    operator, table = rig.flow.mobile.engine.operator, rig.flow.mobile.devices
    for second in range(changes_at + 100):
        now = NOW + second
        phone = said("cars" if second < changes_at else "walkers", "phone", second // 9 % 25, now)
        others = [said(*each, now) for each in devices if (second + each[2]) % 5 == 0]
        rig.publish(phone, *others, now=now)
        slot = np.array([table.find(table.key("phone"))], np.int32)
        [node] = operator.place_of[slot].tolist()
        if node >= BOTH.layers[1].nodes.start and not operator.n_ungrouped(slot):
            return second - changes_at
    raise AssertionError("it is published no more")


@pytest.mark.compiled
@pytest.mark.parametrize("epoch_s", one_in(2, [60, 48]))
def test_a_phone_that_changes_its_network_is_grouped_there_when_its_group_has_ended(
    epoch_s: int,
) -> None:
    """Not when it has been silent for 290 s: its last group lives for an epoch at most.

    Then groups have to be formed there: each of four cells of so few devices does it once an epoch.
    """
    late = range(0, epoch_s, 12)
    waited = [seconds_until_grouped_elsewhere(150 + each, epoch_s) for each in late]
    assert np.mean(waited) <= 0.9 * epoch_s
    assert max(waited) <= epoch_s + epoch_s / 4


def test_a_device_that_was_forgotten_may_come_back_on_another_network() -> None:
    rig = rig_of(presence={"ttl_s": 60})
    rig.publish(said("cars", "a", 0), said("cars", "b", 0))
    later = NOW + 200
    assert rig.publish(now=later) == []
    assert rig.flow.view.n_devices == 0
    assert rig.publish(said("walkers", "a", 0, later), said("walkers", "b", 0, later), now=later)


def test_a_device_stays_on_its_network_until_it_has_been_silent_for_long_enough() -> None:
    """By its own reports: those on the other network do not count, nor does who has its slot."""
    layers = DeviceLayers(lambda slot: slot.astype(np.uint64) % 10, kept_s=5.0)

    def mark(*says: tuple[int, int], now: float) -> list[bool]:
        slot, layer = np.array(says).T
        found = layers.mark(slot.astype(np.int32), layer.astype(np.int8), now=now)
        return [bool(each) for each in found]

    assert mark((1, 0), (2, 1), (1, 1), (3, 1), now=0.0) == [False, False, True, False]
    assert layers.of(np.array([1, 2, 3, 4], np.int32)).tolist() == [0, 1, 1, -1]
    layers.forget(np.array([1], np.int32))
    assert mark((11, 1), (2, 1), now=5.0) == [True, False], "it is in another slot now"
    assert mark((11, 1), (2, 0), now=5.5) == [False, True]
    after = DeviceLayers(lambda slot: slot.astype(np.uint64) % 10, kept_s=5.0)
    after.restore(unpack(pack(layers.state())))
    for each in (layers, after):
        assert each.of(np.array([11, 2, 3], np.int32)).tolist() == [1, 1, -1]


def test_a_device_in_a_zone_counts_on_its_own_network() -> None:
    around = {"circle": {"lat": BOTH.lat[2], "lon": BOTH.lon[2], "radius_m": 30}}
    rig = rig_of(zones=[around])
    rig.publish(said("walkers", "a", 0), said("walkers", "b", 0))
    rig.publish(said("walkers", "a", 2, NOW + 1), now=NOW + 1)
    at = rig.flow.devices_at()
    assert at[: BOTH.layers[0].nodes.stop].sum() == 0
    assert at.sum() == 2


def test_positions_that_wait_for_their_trip_stay_on_their_network() -> None:
    trips = {"enabled": True, "ends_m": 0, "ends_s": 1, "delay_s": 10}
    rig = rig_of(trips=trips)
    published = []
    for second in range(30):
        now = NOW + second
        moving = [said("walkers", d, second // 10, now) for d in "ab"]
        published += rig.publish(*moving, now=now)
    assert published
    assert {name[0] for each in published for name in each["region"]} == {"2"}


def test_which_network_a_device_is_on_outlives_a_restart() -> None:
    before, after = rig_of(), rig_of()
    before.publish(said("cars", "a", 0), said("cars", "b", 0))
    after.flow.mobile.restore(unpack(pack(before.flow.mobile.state())))
    [message] = after.publish(
        *(said(kind, "a", 0, NOW + 1) for kind in ("walkers", "cars")),
        said("cars", "b", 0, NOW + 1),
        now=NOW + 1,
    )
    assert {name[0] for name in message["region"]} == {"1"}
    assert after.outcomes()["SUPPRESSED__OFF_GRAPH"] == 1


@pytest.mark.parametrize(
    ("tables", "problem"),
    [
        ({"inputs": [CARS, {"topic": "walkers/{device}"}]}, r"inputs \(no. 2\): network must be"),
        ({"inputs": [CARS | {"network": "city:100"}]}, "must be one of network.source"),
        ({"network": {"source": ROADS}, "inputs": [WALKERS]}, "must be one of network.source"),
        ({"inputs": [CARS], "counts": {"privacy": "k"}}, "of different kinds together"),
        ({"inputs": [CARS], "trips_out": {"every_s": 60}}, "of different kinds together"),
    ],
)
def test_settings_that_do_not_tell_networks_apart_are_refused(
    tables: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ValidationError, match=problem):
        flow_settings(**{"network": {"source": SOURCE}, **tables})


def test_one_network_may_be_named() -> None:
    assert Settings.model_validate({"network": {"source": ROADS}, "inputs": [CARS]})
