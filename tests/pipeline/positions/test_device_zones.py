"""Zones that devices own: each hides its own device there, and no other."""

import json

import pytest

from anonymizer.pipeline.devices import DeviceTable
from anonymizer.pipeline.ports import Delivery
from anonymizer.pipeline.positions.device_zones import DeviceZones
from anonymizer.settings import DeviceZoneSettings
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

    def state(self, device: str, *zones: object, payload: bytes | None = None) -> None:
        """Take in a statement, of zones or of any payload."""
        assert self.flow.device_zones is not None
        said = json.dumps(zones).encode() if payload is None else payload
        self.flow.device_zones.put([Delivery(f"zones/{device}", said, 0, retained=True)])

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


def test_the_device_is_the_level_of_the_topic_that_the_settings_name() -> None:
    settings = DeviceZoneSettings(enabled=True, topic="site/{device}/zones")
    devices = DeviceTable(secret=b"of this test", max_devices=9)
    zones = DeviceZones(settings, devices)
    zones.put([Delivery("site/a/zones", b"?", 0)])
    assert repr(zones) == "DeviceZones(0 devices)"


@pytest.mark.parametrize("topic", ["zones", "zones/+", "zones/x{device}", "{device}/{device}"])
def test_a_topic_names_the_device_as_one_level(topic: str) -> None:
    with pytest.raises(ValueError, match="topic"):
        DeviceZoneSettings(topic=topic)
