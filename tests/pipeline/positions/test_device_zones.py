"""Zones that devices own: each hides its own device there, and no other."""

import json
from collections.abc import Collection
from zlib import crc32

import pytest

from anonymizer.pipeline.packed import PackedDeliveries
from anonymizer.pipeline.packed_state import pack, unpack
from anonymizer.pipeline.ports import Delivery
from anonymizer.pipeline.positions.device_zones import DeviceZones
from anonymizer.pipeline.positions.zone_statements import ZoneRouting
from anonymizer.settings import DeviceZoneSettings, InputSettings
from tests.pipeline.positions.support import NETWORK, NOW, Rig, delivery

ENABLED = {"enabled": True, "max_devices": 2, "max_zones": 2, "max_payload_bytes": 400}
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

    def __init__(self, **tables: object) -> None:
        super().__init__(**{"device_zones": ENABLED, **tables})  # type: ignore[arg-type]
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
        json.dumps([AROUND_12] * 3).encode(),
        b"[" + b" " * 400 + b"]",
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


def test_beyond_the_bound_nothing_is_published_of_devices_without_zones() -> None:
    rig = ZonesRig()
    for device in ("a", "b", "c"):
        rig.state(device, FAR)
    assert rig.hidden("a", "b") == 0
    assert rig.hidden("a", "b", "c", "d") == 2


def test_zones_of_many_devices_stay_those_of_each_when_some_restate_theirs() -> None:
    rig = ZonesRig(device_zones={"enabled": True})
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
    assert other.hidden("d", "e") == 2, "there were more devices with zones than are kept"
    assert repr(other.zones) == "DeviceZones(2 devices)"


def test_a_state_of_more_devices_than_may_have_zones_by_now_hides_all_others() -> None:
    rig, smaller = ZonesRig(), ZonesRig(device_zones=ENABLED | {"max_devices": 1})
    rig.state("a", FAR)
    rig.state("b", AROUND_12)
    rig.hidden()
    smaller.zones.restore(unpack(pack(rig.zones.state())))
    assert smaller.hidden("a", "b", "c") == 2


@pytest.mark.parametrize(
    ("input_", "topic"),
    [
        ({}, "positions/a"),
        ({"topic": "x/{name}/y"}, "x/a/y"),
        ({"topic": "all", "device_from": "payload"}, "all"),
    ],
)
def test_a_statement_goes_to_the_source_of_the_positions(
    input_: dict[str, str], topic: str
) -> None:
    routing = ZoneRouting(DeviceZoneSettings(topic="z/{device}/w"), InputSettings(**input_))  # type: ignore[arg-type]
    messages = PackedDeliveries.of([Delivery("z/a/w", b"", 0), Delivery("z/a/w", b"[]", 0)])
    assert routing.parts_of(messages, 1000).tolist() == [crc32(topic.encode()) % 1000] * 2


def test_a_statement_goes_to_the_source_of_an_id_of_several_levels() -> None:
    routing = ZoneRouting(
        DeviceZoneSettings(topic="z/{user}/w/{device}"), InputSettings(topic="{user}/{device}/p")
    )
    messages = PackedDeliveries.of([Delivery("z/ann/w/phone", b"", 0)])
    assert routing.parts_of(messages, 1000).tolist() == [crc32(b"ann/phone/p") % 1000]


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
    trips = {"enabled": True, "start_m": 0, "start_s": 0, "end_m": 0, "end_s": 0, "delay_s": 1}
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
