"""Zones that devices own: each hides its own device there, and no other."""

import json
from collections.abc import Collection
from typing import Any

import numpy as np
import pytest

from anonymizer.algorithms.positions.demands import Demand
from anonymizer.cluster.packed_state import pack, unpack
from anonymizer.networks import load_network
from anonymizer.outputs import counts
from anonymizer.pipeline.ports import Delivery
from anonymizer.pipeline.positions.tick.device_zones import DeviceZones
from anonymizer.settings import DeviceZoneSettings
from tests.eager_session import EagerSession
from tests.lanes import each_of_both
from tests.outputs.private import NoNoise
from tests.pipeline.positions.support import NETWORK, NOW, Rig, a_position, delivery

ENABLED = {"topic": "zones/{device}"}
AROUND_12 = {"circle": {"lat": NETWORK.lat[12], "lon": NETWORK.lon[12], "radius_m": 30}}
FAR = {"circle": {"lat": -10.0, "lon": 0.0, "radius_m": 30}}
SQUARE = {
    "polygon": [
        [NETWORK.lat[12] + north, NETWORK.lon[12] + east]
        for north, east in [(-3e-4, -3e-4), (3e-4, -3e-4), (3e-4, 3e-4), (-3e-4, 3e-4)]
    ]
}


class ZonesRig(Rig):
    """A flow that takes in zones of devices."""

    def __init__(self, **tables: Any) -> None:  # noqa: ANN401  settings of any kind
        most = {"max_devices": 100 * tables.pop("most_devices", 2)}
        presence = {"presence": {**tables.get("presence", {"ttl_s": 120.0}), **most}}
        super().__init__(**{"device_zones": ENABLED, **tables, **presence})
        self.seconds = 0

    def state(
        self,
        device: str,
        *zones: object,
        payload: bytes | None = None,
        by: str = "",
        beside: Collection[str] = (),
    ) -> None:
        """Take in a statement, of zones or of any payload."""
        said = json.dumps(zones).encode() if payload is None else payload
        statement = Delivery(f"zones/{device}", said, 0, retained=True)
        self.zones.put([statement], by=by, beside=beside)

    @property
    def zones(self) -> DeviceZones:
        assert self.flow.device_zones is not None
        return self.flow.device_zones

    def room_again(self) -> bool:
        return self.zones.room_again

    def hidden(self, *devices: str, node: int = 12) -> int:
        """Report devices at a node; return how many are suppressed as in a zone."""
        before = self.outcomes().get("SUPPRESSED__PRIVACY_ZONE", 0)
        self.seconds += 1
        now = NOW + self.seconds
        self.publish(*(delivery(device, node, now) for device in devices), now=now)
        return self.outcomes().get("SUPPRESSED__PRIVACY_ZONE", 0) - before


@pytest.mark.parametrize("zone", [AROUND_12, SQUARE], ids=["circle", "polygon"])
def test_a_zone_hides_its_owner_and_no_other_device(zone: object) -> None:
    rig = ZonesRig()
    rig.state("a", zone)
    assert rig.hidden("a", "b", "c") == 1
    assert rig.hidden("b", "c") == 0
    assert rig.hidden("a", "b", "c", node=7) == 0
    assert rig.outcomes()["PUBLISHED"] == 7


def test_a_device_that_takes_no_part_is_published_nowhere_until_it_says_otherwise() -> None:
    rig = ZonesRig()
    rig.state("a", {"everywhere": True})
    assert rig.hidden("a", "b", "c") == 1
    assert rig.hidden("a", "b", "c", node=3) == 1
    assert rig.outcomes()["PUBLISHED"] == 4
    rig.state("a")
    assert rig.hidden("a", "b", "c") == 0


WAITING: dict[str, Any] = {
    "region": {"mode": "session", "min_nodes": 2, "place_devices": 1},
    "session": {"beat_s": 4, "epoch_s": 12},
    "presence": {"ttl_s": 30, "max_behind_s": 30},
}
SESSION = WAITING | {"session": EagerSession(**WAITING["session"])}
NODE_OF = {"a": 0, "b": 6, "c": 18, "d": 24}


def drive(rig: ZonesRig, node_of: dict[str, int], seconds: int) -> list[tuple[int, ...]]:
    """Report devices every second; return the regions that are published."""
    regions = []
    for _ in range(seconds):
        rig.seconds += 1
        now = NOW + rig.seconds
        said = rig.publish(*(delivery(d, v, now) for d, v in node_of.items()), now=now)
        regions += [tuple(message["region"]) for message in said if "region" in message]
    return regions


REST = {device: node for device, node in NODE_OF.items() if device != "a"}


@pytest.mark.parametrize("goes_on", [True, False])
def test_after_a_withdrawal_a_group_goes_on_as_if_the_device_were_silent(
    goes_on: bool,  # noqa: FBT001
) -> None:
    rig, silent, without = (ZonesRig(**SESSION) for _ in range(3))
    assert drive(rig, NODE_OF, 8) == drive(silent, NODE_OF, 8)
    drive(without, REST, 8)
    rig.state("a", {"everywhere": True})
    said = NODE_OF | {"a": 4} if goes_on else REST
    until_the_epoch_ends = drive(rig, said, 3)
    assert until_the_epoch_ends == drive(silent, REST, 3)
    drive(without, REST, 3)
    assert any(0 in region for region in until_the_epoch_ends)
    assert drive(rig, said, 24) == drive(without, REST, 24), "as if it had never been there"


def test_what_a_device_reported_after_the_last_release_of_its_group_is_never_shown() -> None:
    for out in ("", "withdraws", "has no room"):
        rig = ZonesRig(**SESSION, most_devices=1)
        rig.state("z", FAR)
        drive(rig, NODE_OF, 3)
        while not any(0 in region for region in drive(rig, NODE_OF, 1)):
            pass
        assert rig.seconds < 8
        drive(rig, NODE_OF | {"a": 4}, 1)
        if out == "withdraws":
            rig.state("z")
        if out:
            rig.state("a", {"everywhere": True} if out == "withdraws" else FAR)
        shown = drive(rig, REST, 11 - rig.seconds)
        assert any(0 in region for region in shown) is bool(out)
        assert any(4 in region for region in shown) is not bool(out)


def test_a_group_that_has_shown_nothing_ends_with_a_withdrawal() -> None:
    rig, without = ZonesRig(**SESSION), ZonesRig(**SESSION)
    for each in (rig, without):
        shown = drive(each, NODE_OF, 1)
        assert len(shown) == 1
        assert 0 not in shown[0], "it is the turn of the other group"
    rig.state("a", {"everywhere": True})
    assert not any(0 in region for region in drive(rig, REST, 11))
    assert any(6 in region for region in drive(rig, REST, 12)), "the others are grouped anew"
    assert any(0 in region for region in drive(without, REST, 11))
    assert "SUPPRESSED__UNVERIFIED" not in rig.outcomes()


def test_who_stays_is_published_in_the_same_epoch_when_a_group_that_has_shown_nothing_breaks() -> (
    None
):
    """The reproduction: an opt-out between the forming and the first release ended the group."""
    rig, others = ZonesRig(**SESSION), {"e": 2, "f": 22}
    shown = drive(rig, NODE_OF | others, 1)
    left = next(d for d, v in NODE_OF.items() if not any(v in region for region in shown))
    rig.state(left, {"everywhere": True})
    said = {d: v for d, v in (NODE_OF | others).items() if d != left}
    regions = drive(rig, said, 10)
    covered = {d for d, v in said.items() if any(v in region for region in shown + regions)}
    assert covered == said.keys()
    assert "SUPPRESSED__UNVERIFIED" not in rig.outcomes()


def test_who_opts_out_again_and_again_waits_longer_each_time_to_take_part() -> None:
    rig, waits = ZonesRig(), []
    for _ in range(6):
        rig.state("a", {"everywhere": True})
        assert rig.hidden("a", "b", "c") == 1
        rig.state("a")
        since = rig.seconds
        while rig.hidden("a", "b", "c"):
            assert rig.zones.n_refused == 1
            rig.seconds += 19
        waits.append(rig.seconds - since)
        assert rig.zones.n_refused == 0
    assert waits[0] == 1
    assert all(60 * (2**n - 1) <= wait <= 60 * 2**n for n, wait in enumerate(waits)), waits
    rig.seconds += 86_400
    rig.state("a", {"everywhere": True})
    rig.hidden("a")
    rig.state("a", AROUND_12)
    assert rig.hidden("a", "b", "c", node=3) == 0, "it is forgotten after a day"


def test_who_waits_to_take_part_goes_on_waiting_from_a_state() -> None:
    rig, other = ZonesRig(), ZonesRig()
    for _ in range(3):
        rig.state("a", {"everywhere": True})
        rig.hidden()
        rig.state("a")
        rig.hidden()
    other.zones.restore(unpack(pack(rig.zones.state())))
    for each in (rig, other):
        assert each.hidden("a", "b", "c") == 1
        each.seconds += 240
        assert each.hidden("a", "b", "c") == 0


def test_the_view_counts_those_who_are_shut_out_for_what_they_state() -> None:
    rig = ZonesRig(**SESSION | {"presence": {"ttl_s": 30, "max_behind_s": 30}})
    rig.state("a", {"k": 8})
    rig.state("nobody", {"k": 8})
    drive(rig, NODE_OF, 3)
    assert rig.flow.view.n_shut_out == 1, "of four devices it demands eight"
    rig.state("a", {"k": 10**9})
    rig.state("b", {"everywhere": True})
    drive(rig, NODE_OF, 1)
    assert rig.flow.view.n_shut_out == 1, "who takes no part wants it so"


def test_a_position_that_waits_for_a_group_goes_with_the_withdrawal() -> None:
    rig = ZonesRig(**WAITING)
    drive(rig, NODE_OF, 2)
    assert rig.flow.n_held == 4
    rig.state("a", {"everywhere": True})
    regions = drive(rig, REST, 40)
    assert rig.outcomes()["SUPPRESSED__PRIVACY_ZONE"] == 1
    assert regions
    assert not any(0 in region for region in regions)


@pytest.mark.parametrize("withdraws", [False, True])
def test_the_reading_of_a_device_goes_with_the_withdrawal_though_its_group_goes_on(
    withdraws: bool,  # noqa: FBT001
) -> None:
    speed = {"name": "speed_mps", "lo": 0, "hi": 40, "statistics": ["count"]}
    rig = ZonesRig(**SESSION, readings=[speed])

    def told(**node_of: int) -> list[int | None]:
        """Return how many readings are told of the group of `a` and `b`, once a second."""
        rig.seconds += 1
        now = NOW + rig.seconds
        said = [
            json.dumps(a_position(node, now, readings={"speed_mps": 9})).encode()
            for node in node_of.values()
        ]
        topics = [f"positions/{device}" for device in node_of]
        messages = rig.publish(
            *(Delivery(*each, 0) for each in zip(topics, said, strict=True)), now=now
        )
        groups = [each for each in messages if 0 in each["region"]]
        return [each.get("readings", {}).get("speed_mps", {}).get("count") for each in groups]

    before = [n for _ in range(8) for n in told(**NODE_OF)]
    assert before[-1] == 2
    if withdraws:
        rig.state("a", {"everywhere": True})
    after = [n for _ in range(3) for n in told(**REST)]
    assert after
    assert set(after) == {None if withdraws else 2}


def test_what_trips_hold_back_goes_with_the_withdrawal_and_the_slot_is_free() -> None:
    trips = {"enabled": True, "ends_m": 0, "ends_s": 0, "delay_s": 60}
    rig = ZonesRig(trips=trips, presence=SESSION["presence"])
    drive(rig, NODE_OF, 5)
    assert rig.flow.mobile.intake.n_held == 20
    rig.state("a", {"everywhere": True})
    drive(rig, {}, 1)
    assert rig.flow.mobile.intake.n_held == 15
    assert rig.outcomes()["SUPPRESSED__PRIVACY_ZONE"] == 5
    rig.seconds += 400
    drive(rig, {}, 1)
    rig.seconds += 400
    drive(rig, {}, 1)
    assert len(rig.flow.mobile.devices) == 0, "its slot is free again"


def test_who_has_withdrawn_counts_nowhere_not_even_where_it_passes_through_a_zone() -> None:
    for withdraws in (False, True):
        rig = ZonesRig(zones=[AROUND_12])
        assert rig.hidden("a", node=7) == 0
        if withdraws:
            rig.state("a", {"everywhere": True})
        assert rig.hidden("a", node=12) == 1
        assert rig.flow.devices_at().sum() == (not withdraws)


def test_where_a_device_stopped_is_forgotten_with_its_withdrawal() -> None:
    rig = ZonesRig(trips={"learn_days": 1})
    for node in (0, 1, 2, 3, 4):
        assert rig.hidden("a", node=node) == 0
        rig.seconds += 20
    rig.seconds += 1000
    assert rig.hidden("a", node=4) == 1, "the trip before has ended here"
    rig.state("a", {"everywhere": True})
    rig.hidden("a", node=4)
    rig.state("a")
    assert rig.hidden("a", node=4) == 0


@pytest.mark.parametrize("out", ["withdraws", "has no room"])
def test_a_device_of_which_nothing_is_published_is_not_counted_in_the_interval_either(
    out: str,
) -> None:
    counts = {"privacy": "k", "every_s": 60, "k": 2, "cells": 16}
    counted = {}
    for case, devices in {"stays": NODE_OF, out: NODE_OF, "was never there": REST}.items():
        rig = ZonesRig(counts=counts, most_devices=1)
        rig.state("b", FAR)
        rig.seconds = 50
        drive(rig, dict.fromkeys(devices, 12), 20)
        if case == "withdraws":
            rig.state("b")
            rig.state("a", {"everywhere": True})
        elif case == "has no room":
            rig.state("a", FAR)
        output = rig.tick(now=NOW + 125)
        rig.settle(output, [True] * len(output.messages))
        assert rig.zones.n_left_out == (case == "has no room")
        [counted[case]] = [m.payload for m in output.messages if m.topic == "cloaked/counts"]
    assert counted["stays"] != counted[out] == counted["was never there"]


def test_a_device_that_withdraws_after_a_long_silence_is_not_counted_either() -> None:
    counted = {}
    for case in ("stays", "withdraws", "was never there"):
        rig = ZonesRig(
            counts={"privacy": "k", "every_s": 600, "k": 2, "cells": 16},
            presence={"ttl_s": 20, "max_behind_s": 10},
            session={"epoch_s": 10, "beat_s": 0},
        )
        rig.hidden("b")
        rig.seconds = 600 - int(NOW) % 600
        rig.hidden(*REST, *(() if case == "was never there" else ("a",)))
        for _ in range(5):
            rig.seconds += 10
            rig.hidden(*REST)
        devices = rig.flow.mobile.devices
        assert devices.find(devices.key("a")) < 0
        if case == "withdraws":
            rig.state("a", {"everywhere": True})
        rig.seconds += 400
        rig.hidden(*REST)
        output = rig.tick(now=NOW + rig.seconds + 200)
        rig.settle(output, [True] * len(output.messages))
        [counted[case]] = [m.payload for m in output.messages if m.topic == "cloaked/counts"]
    assert counted["stays"] != counted["withdraws"] == counted["was never there"]


@pytest.mark.parametrize("before", [None, b"?"])
def test_a_withdrawal_counts_once_whoever_repeats_it(before: bytes | None) -> None:
    rig = ZonesRig(**WAITING)
    drive(rig, NODE_OF, 2)
    if before is not None:  # what cannot be read hides the device, and withdraws nothing
        rig.state("a", payload=before, by="one")
        drive(rig, REST, 1)
        assert rig.outcomes().get("SUPPRESSED__PRIVACY_ZONE", 0) == 0
    for bridge in ("one", "two"):
        rig.state("a", {"everywhere": True}, by=bridge, beside=("one", "two"))
    drive(rig, REST, 1)
    assert rig.outcomes()["SUPPRESSED__PRIVACY_ZONE"] == 1
    rig.state("a", by="one", beside=("one", "two"))
    assert rig.zones.withdrawn(now=NOW)[1].tolist() == [], "the other is only behind it"


@pytest.mark.parametrize("demand", [{"k": 3}, {"road_m": 100.0}])
def test_who_demands_what_cannot_be_had_takes_no_part(demand: dict[str, float]) -> None:
    districts = {"region": {**SESSION["region"], "districts": 2}}
    snapshot = {"region": {**SESSION["region"], "mode": "snapshot"}}
    adka = {"region": {**SESSION["region"], "mode": "adka"}}
    for tables in ({}, snapshot, adka, SESSION | districts):
        rig = ZonesRig(**tables)
        rig.state("a", demand)
        assert rig.hidden("a", "b", "c") == 1
    rig = ZonesRig(**SESSION)
    rig.state("a", {"k": 9})
    assert rig.hidden("a", "b", "c") == 1, "more than four times the largest usual k"
    rig.state("a", demand)
    assert rig.hidden("a", "b", "c") == 0


def test_a_group_has_as_many_devices_as_one_of_them_demands() -> None:
    rig = ZonesRig(**SESSION | {"output": {"qos": 1}})
    rig.state("a", {"k": 4})
    many = NODE_OF | {"e": 12, "f": 12, "g": 2, "h": 22}
    published = []
    for _ in range(20):
        rig.seconds += 1
        now = NOW + rig.seconds
        published += rig.publish(*(delivery(d, v, now) for d, v in many.items()), now=now)
    assert {message["k"] for message in published} <= {2, 4}
    assert 4 in {message["k"] for message in published}
    assert all(len(message["pseudonyms"]) >= message["k"] for message in published)


def no_trips(rig: ZonesRig, *devices: str) -> list[str]:
    """Return the devices of whom no trips are told."""
    table = rig.flow.mobile.devices
    slot = np.array([table.find(table.key(each)) for each in devices], np.int32)
    told = rig.zones.no_trips(slot).tolist()
    return [each for each, asked in zip(devices, told, strict=True) if asked]


def test_a_device_may_be_published_without_its_trips() -> None:
    rig = ZonesRig()
    rig.state("a", {"trips": False})
    rig.state("b", {"trips": False}, AROUND_12)
    assert rig.hidden("a", "b", "c") == 1
    assert no_trips(rig, "a", "b", "c") == ["a", "b"]
    rig.state("a")
    rig.state("b", AROUND_12)
    assert rig.hidden("a", "b", "c") == 1
    assert no_trips(rig, "a", "b", "c") == []
    rig.state("c", payload=b"unusable")
    assert rig.hidden("a", "b", "c") == 2, "who is hidden makes no trips that could be told"


def test_of_what_several_publishers_demand_for_a_device_the_most_holds() -> None:
    rig, both = ZonesRig(**SESSION), ("one", "two")
    rig.state("a", {"k": 4}, {"road_m": 10.0}, {"trips": False}, by="one", beside=both)
    rig.state("a", {"k": 3}, {"road_m": 20.0}, by="two", beside=both)
    rig.hidden("a")
    assert list(rig.zones.demands.values()) == [Demand(4, 20.0)]
    assert no_trips(rig, "a") == ["a"]
    for publisher in both:
        rig.state("a", by=publisher, beside=both)
    rig.hidden("a")
    assert rig.zones.demands == {}


def test_a_device_in_its_zone_hides_nobody() -> None:
    rig = ZonesRig()
    rig.state("a", AROUND_12)
    rig.hidden("a", "b")
    assert "PUBLISHED" not in rig.outcomes()


def test_a_new_statement_replaces_the_old_one_and_an_empty_message_withdraws_it() -> None:
    rig = ZonesRig()
    rig.state("a", AROUND_12)
    assert rig.hidden("a", "b", "c") == 1
    rig.state("a", FAR)
    assert rig.hidden("a", "b", "c") == 0
    rig.state("a", FAR, AROUND_12)
    assert rig.hidden("a", "b", "c") == 1
    rig.state("a", payload=b"")
    assert rig.hidden("a", "b", "c") == 0
    rig.state("a", AROUND_12)
    rig.state("a")
    assert rig.hidden("a", "b", "c") == 0


def test_a_statement_may_come_before_or_after_the_first_position() -> None:
    rig = ZonesRig()
    assert rig.hidden("a", "b", "c") == 0
    rig.state("b", AROUND_12)
    assert rig.hidden("a", "b", "c") == 1


@pytest.mark.parametrize(
    "payload",
    [
        b"?",
        b"{}",
        json.dumps([FAR] * 21).encode(),
        b"[" + b" " * 8192 + b"]",
        b'[{"polygon": [[0, 0], [0, 0], [0, 1]]}]',
    ],
    ids=["malformed", "schema", "too many", "too large", "no area"],
)
def test_nothing_is_published_of_a_device_whose_statement_cannot_be_used(payload: bytes) -> None:
    rig = ZonesRig()
    rig.state("a", payload=payload)
    assert rig.hidden("a", "b", "c") == 1
    assert rig.hidden("a", "b", "c", node=3) == 1
    rig.state("a", FAR)
    assert rig.hidden("a", "b", "c") == 0


def test_beyond_the_bound_only_those_left_out_are_hidden_by_name() -> None:
    rig = ZonesRig()
    for device in ("a", "b", "c"):
        rig.state(device, FAR)
    assert rig.hidden("a", "b", "d", "e") == 0
    assert rig.hidden("a", "b", "c", "d") == 1
    assert rig.zones.n_left_out == 1
    assert not rig.room_again()


TWO_LEVELS = {
    "inputs": [{"topic": "positions/{user}/{device}"}],
    "device_zones": {"topic": "zones/{user}/{device}"},
    "most_devices": 100,
}


@pytest.mark.parametrize("order", ["hostile first", "hostile last", "hostile between"])
def test_one_publisher_of_more_zones_than_there_is_room_for_hides_its_own_devices_alone(
    order: str,
) -> None:
    """The reproduction: 10,001 retained statements of one user hid every device of everybody."""
    hostile = [(f"eve/{i}", FAR) for i in range(101)]
    honest = [(f"u{i}/car", AROUND_12) for i in range(10)]
    n = {"hostile first": 101, "hostile last": 0, "hostile between": 50}[order]
    rig = ZonesRig(**TWO_LEVELS)
    for device, zone in hostile[:n] + honest + hostile[n:]:
        rig.state(device, zone)
    others = [f"v{i}/car" for i in range(10)]
    assert rig.hidden(*others) == 0, "of those who state nothing, nobody is hidden"
    assert rig.hidden(*others, *(device for device, _ in honest)) == 10, "in their zones"
    assert rig.hidden(*others, *(device for device, _ in honest), node=3) == 0, "outside of them"
    n_left_out = 101 + 10 - 100
    assert rig.zones.n_left_out == n_left_out
    assert rig.hidden(*(device for device, _ in hostile), node=3) == n_left_out
    assert rig.hidden("eve/phone", node=3) == 0, "it states no zones"


def test_the_state_clears_when_the_count_falls() -> None:
    rig = ZonesRig(**TWO_LEVELS)
    for i in range(103):
        rig.state(f"eve/{i}", AROUND_12)
    assert rig.hidden("eve/100", "eve/101", "eve/102", "a/a", node=3) == 3
    rig.state("eve/0", payload=b"")
    rig.state("eve/102", payload=b"")
    rig.hidden()
    assert rig.zones.n_left_out == 2
    assert rig.room_again()
    assert rig.hidden("eve/100", "eve/101", "eve/102", "a/a", node=3) == 2
    # The broker says everything once more; what is known already is not taken for new.
    said = json.dumps([AROUND_12]).encode()
    for device in ("eve/1", "eve/0", "eve/100"):
        again = Delivery(f"zones/{device}", b"" if device == "eve/1" else said, 0, retained=True)
        rig.zones.put([again], again=True)
    assert rig.hidden("eve/1", "eve/0", "eve/100", "a/a") == 2, "the first and the last"
    assert rig.zones.n_left_out == 1
    assert not rig.room_again()
    for i in range(103):
        rig.state(f"eve/{i}", payload=b"")
    assert rig.hidden(*(f"eve/{i}" for i in range(103)), "a/a") == 0
    assert rig.zones.n_left_out == 0


def test_a_device_that_is_left_out_does_not_stay_in_the_zones_that_it_had() -> None:
    rig = ZonesRig(**TWO_LEVELS)
    for i in range(100):
        rig.state(f"eve/{i}", FAR)
    assert rig.hidden("eve/99", "a/a", node=3) == 0
    rig.state("bob/car", FAR)
    assert rig.hidden("eve/99", "a/a", node=3) == 1, "it has yielded its place"
    assert rig.hidden("eve/98", "bob/car", node=3) == 0
    rig.state("eve/99", FAR)
    assert rig.hidden("eve/99", "a/a", node=3) == 1


def test_who_states_more_names_than_are_kept_hides_all_their_devices_and_no_other() -> None:
    rig = ZonesRig(**TWO_LEVELS)
    rig.state("bob/car", AROUND_12)
    for i in range(21 * 100 + 1):
        rig.state(f"eve/{i}", FAR)
    assert rig.hidden("eve/0", "eve/2000", "eve/phone", "eve/9999", "a/a", node=3) == 4
    assert rig.hidden("bob/car", "a/a") == 1
    assert rig.hidden("bob/car", "a/a", node=3) == 0
    assert rig.zones.n_left_out == 1
    other = ZonesRig(**TWO_LEVELS)
    other.zones.restore(unpack(pack(rig.zones.state())))
    assert other.hidden("eve/5", "bob/car", "a/a", node=3) == 1


@pytest.mark.parametrize("n_names", [2, 3, 43], ids=["room", "left out", "shut out"])
def test_the_sample_for_attacks_is_forgotten_with_who_has_no_room(n_names: int) -> None:
    rig = ZonesRig(
        **TWO_LEVELS | {"most_devices": 2}, watch={"evidence_s": 60, "reports": "evidence"}
    )
    drive(rig, {"a/1": 6, **{f"{user}/car": 12 for user in "bcdef"}}, 5)
    for i in range(n_names):
        rig.state(f"a/{i}", FAR)
    drive(rig, {"b/car": 12}, 1)
    assert rig.flow.sample is not None
    traffic = rig.flow.sample.traffic()
    n_reports = len(traffic.reports) if traffic else 0
    assert n_reports == (6 if n_names == 2 else 0), "a release needs the reports before it"


def test_publishers_that_anybody_can_make_up_end_in_silence_not_in_memory() -> None:
    rig = ZonesRig(**TWO_LEVELS | {"most_devices": 1})
    for i in range(200):
        rig.state(f"u{i}/car", FAR)
    assert rig.hidden("v/car", "w/car", node=3) == 2
    assert rig.zones.n_left_out < 30


def test_zones_of_many_devices_stay_those_of_each_when_some_restate_theirs() -> None:
    rig = ZonesRig(most_devices=10_000)
    devices = [f"d{i}" for i in range(300)]
    for i, device in enumerate(devices):
        rig.state(device, AROUND_12 if i % 2 else FAR)
    assert rig.hidden(*devices, "x", "y") == 150
    for i, device in enumerate(devices[:10]):
        rig.state(device, FAR if i % 2 else AROUND_12, FAR)
        assert rig.hidden(*devices, "x", "y") == 150 + (i + 1) % 2
    rig.state("d0", payload=b"")
    rig.state("d1", AROUND_12)
    rig.state("z", AROUND_12)
    assert rig.hidden(*devices, "x", "y", "z") == 151
    assert [rig.hidden(device) for device in ("d0", "d1", "d2", "d3", "z")] == [0, 1, 1, 0, 1]


def test_while_a_bridge_is_behind_what_either_has_said_holds() -> None:
    rig, both = ZonesRig(), ("x", "y")
    rig.state("a", AROUND_12, by="x", beside=both)
    rig.state("a", FAR, by="y", beside=both)
    assert rig.hidden("a", "b", "c") == 1
    rig.state("a", FAR, by="x", beside=both)
    assert rig.hidden("a", "b", "c") == 0
    rig.state("a", AROUND_12, by="x", beside=both)
    rig.state("a", payload=b"", by="y", beside=both)
    assert rig.hidden("a", "b", "c") == 1
    rig.state("a", payload=b"", by="x", beside=both)
    assert rig.hidden("a", "b", "c") == 0


def test_what_a_bridge_that_is_gone_has_said_holds_until_another_says_something() -> None:
    rig = ZonesRig()
    rig.state("a", AROUND_12, by="x", beside=("x", "y"))
    rig.state("b", FAR, by="y", beside=("y",))
    assert rig.hidden("a", "b", "c") == 1
    rig.state("a", FAR, by="y", beside=("y",))
    assert rig.hidden("a", "b", "c") == 0


def test_a_state_goes_on_alike_and_does_not_show_itself() -> None:
    rig, other = ZonesRig(), ZonesRig()
    for by in "xy":
        rig.state("a", AROUND_12, by=by, beside="xy")
    rig.state("b", FAR)
    rig.state("c", FAR)
    rig.hidden()
    state = pack(rig.zones.state())
    other.zones.restore(unpack(state))
    assert pack(other.zones.state()) == state
    assert other.hidden("a", "b") == 1
    assert other.hidden("c", "d", "e") == 1, "there were more devices with zones than are kept"


def test_a_state_of_more_devices_than_may_have_zones_by_now_hides_the_rest_of_them() -> None:
    rig, smaller = ZonesRig(), ZonesRig(most_devices=1)
    rig.state("a", FAR)
    rig.state("b", AROUND_12)
    rig.hidden()
    smaller.zones.restore(unpack(pack(rig.zones.state())))
    assert smaller.hidden("a", "b", "c", node=3) == 1


def test_a_slot_that_passes_to_another_device_does_not_keep_its_zones() -> None:
    rig = ZonesRig(presence={"ttl_s": 5.0, "max_behind_s": 5.0})
    rig.state("a", AROUND_12)
    assert rig.hidden("a", "b", "c") == 1
    rig.seconds += 20
    rig.hidden()
    rig.seconds += 20
    assert rig.hidden("x", "y", "z") == 0
    assert rig.hidden("x", "y", "z", "a") == 1


def test_trip_ends_and_zones_of_devices_work_together() -> None:
    trips = {"enabled": True, "ends_m": 0, "ends_s": 0, "delay_s": 1}
    rig = ZonesRig(trips=trips)
    rig.state("a", AROUND_12)
    rig.hidden("a", "b", "c")
    rig.seconds += 5
    assert rig.hidden() == 1


@pytest.mark.parametrize(
    ("topic", "of_zones", "stated"),
    [
        ("positions/{device}", "site/{device}/zones", "site/a/zones"),
        ("own/{user}/{device}", "zones/{user}/{device}", "zones/ann/a"),
    ],
)
def test_the_device_is_what_the_levels_of_the_topic_say(
    topic: str, of_zones: str, stated: str
) -> None:
    rig = ZonesRig(inputs=[{"topic": topic}], device_zones=ENABLED | {"topic": of_zones})
    rig.zones.put([Delivery(stated, json.dumps([AROUND_12]).encode(), 0, retained=True)])
    users = ("ann", "bob") if "{user}" in topic else ("",)
    for user in users:
        for device in "abc":
            said = delivery(device, 12, NOW)
            to = topic.replace("{user}", user).replace("{device}", device)
            rig.put(Delivery(to, said.payload, 0))
    rig.publish(now=NOW)
    assert rig.outcomes() == {"SUPPRESSED__PRIVACY_ZONE": 1, "PUBLISHED": 3 * len(users) - 1}


@pytest.mark.parametrize("topic", ["zones", "zones/+", "zones/x{device}", "zones/{device"])
def test_a_topic_of_zones_names_the_device(topic: str) -> None:
    with pytest.raises(ValueError, match="topic"):
        DeviceZoneSettings(topic=topic)


def test_the_sample_for_attacks_forgets_what_it_held_when_a_device_withdraws() -> None:
    rig = ZonesRig(**SESSION | {"watch": {"evidence_s": 60, "reports": "evidence"}})
    drive(rig, NODE_OF, 5)
    sample = rig.flow.sample
    assert sample is not None
    traffic = sample.traffic()
    assert traffic is not None
    key = rig.flow.mobile.devices.key("a")
    assert any(key in each.device for each in traffic.reports)
    rig.state("a", {"everywhere": True})
    drive(rig, NODE_OF, 1)
    [held] = sample._ticks
    assert (held.node[held.device == key] < 0).all()


def told_trips(
    *asked: tuple[float, str], wish: object, room: int = 9, n_windows: int = 1
) -> list[dict[str, Any]]:
    """Return the classes of trips of six devices, some of which state a wish at some second.

    Four are of one publisher, `a`.
    """
    roads = load_network("grid:12x12")
    rig = ZonesRig(
        roads=roads,
        inputs=TWO_LEVELS["inputs"],
        device_zones=TWO_LEVELS["device_zones"],
        trips_out={"every_s": 600},
        counts={"k": 3},
        trips={"gap_s": 120, "dwell_s": 120},
        presence={"ttl_s": 120, "max_behind_s": 10, "max_devices": 100 * room},
    )
    told = []
    for second in range(20, 1500, 20):
        for at_s, device in asked:
            if second == at_s:
                rig.state(device, wish)
        now = NOW - NOW % 600 + second
        node = min((second - 620) // 20, 11)  # along the first row, and away
        said = [
            Delivery(
                f"positions/{device}",
                json.dumps({"lat": roads.lat[node], "lon": roads.lon[node], "ts": now}).encode(),
                0,
            )
            for device in ("a/a", "a/b", "a/c", "a/d", "e/e", "f/f")
            if 620 <= second < 860
        ]
        rig.put(*said)
        output = rig.tick(now=now)
        rig.settle(output, [True] * len(output.messages))
        told += [json.loads(m.payload) for m in output.messages if m.topic == "cloaked/trips"]
    assert len(told) == n_windows
    return [each for body in told for each in body["trips"]]


NO_TRIPS, NO_PART = {"trips": False}, {"everywhere": True}


@pytest.mark.parametrize(("at_s", "wish"), each_of_both([20, 740, 900, 1200], [NO_TRIPS, NO_PART]))
def test_nothing_is_told_of_the_trips_of_who_asked_for_none(
    at_s: float, wish: dict[str, bool]
) -> None:
    """Not of those that were over by then, either, when the device was long forgotten."""
    assert sum(each["devices"] for each in told_trips(wish=wish)) == 6
    three = told_trips(*((at_s, f"a/{device}") for device in "abc"), wish=wish)
    assert sum(each["devices"] for each in three) == 3
    four = told_trips(*((at_s, f"a/{device}") for device in "abcd"), wish=wish)
    assert four == [], "two are no company"


@pytest.mark.parametrize("at_s", [20, 740, 1200])
def test_nothing_is_told_of_the_trips_of_a_device_for_whose_wish_there_is_no_room(
    at_s: float,
) -> None:
    wishes = [(at_s, f"a/{device}") for device in "abcd"]
    assert told_trips(*wishes, wish=NO_TRIPS, room=2) == []


@pytest.mark.parametrize("at_s", [740, 900, 1200])
def test_nothing_is_told_of_windows_in_which_a_publisher_is_shut_out(at_s: float) -> None:
    """Its devices may be gone by then, and nobody knows which ones were its own."""
    names = [(at_s, f"a/{i}") for i in range(21 * 2 + 1)]
    assert told_trips(*names, wish=NO_TRIPS, room=2, n_windows=0) == []
    assert told_trips(*names[:-1], wish=NO_TRIPS, room=2) != []


@pytest.mark.parametrize("beside", [{}, {"trips_out": {"every_s": 3600}}], ids=["alone", "trips"])
def test_no_duration_is_told_of_an_interval_in_which_a_publisher_is_shut_out(
    monkeypatch: pytest.MonkeyPatch, beside: dict[str, Any]
) -> None:
    """Whichever other output sees it, too: the wish of its device is forgotten by then."""
    monkeypatch.setattr(counts, "noise_of", lambda _: NoNoise())
    every_s, roads = 21_600, load_network("grid:12x12")
    begins = NOW - NOW % every_s

    def told(n_names: int) -> list[int]:
        noisy = {"privacy": "w-event", "every_s": every_s, "period_s": every_s, "cells": 4}
        rig = ZonesRig(
            roads=roads,
            counts=noisy | {"trip_durations": True},
            **TWO_LEVELS | {"most_devices": 2},
            **beside,
        )
        found = []
        for second in (-every_s - 20, -20, 0, *range(600, 1100, 20), 3600, 7200, every_s + 20):
            node = np.clip((second - 600) // 40, 0, 11)
            said = {"lat": roads.lat[node], "lon": roads.lon[node], "ts": begins + second}
            if 600 <= second < 1080:
                rig.put(Delivery("positions/a/v", json.dumps(said).encode(), 0))
            if n_names and second == 3600:
                rig.state("a/v", payload=json.dumps(NO_TRIPS).encode())
            for i in range(n_names if second == 7200 else 0):
                rig.state(f"a/{i}", payload=json.dumps(NO_TRIPS).encode())
            output = rig.tick(now=begins + second)
            rig.settle(output, [True] * len(output.messages))
            found += [json.loads(m.payload) for m in output.messages if m.topic == "cloaked/counts"]
        return [sum(each["durations"]["devices"]) for each in found if "durations" in each]

    assert told(0)[-1:] == [1]
    assert told(1)[-1:] == [0], "it asks for none"
    assert told(21 * 2 + 1)[-1:] == [0], "nobody knows any more what it asks for"
