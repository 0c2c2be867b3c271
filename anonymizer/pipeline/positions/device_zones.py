"""Device-owned privacy zones in the flow: what devices state, held in memory alone."""

from collections import deque
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from anonymizer.algorithms.positions.protection import IN_ZONE, Circle, OwnedZones, Polygon, Zones
from anonymizer.codecs.device_zones import StatedZones, decode
from anonymizer.domain.arrays import Int32Array
from anonymizer.domain.outcomes import Outcome
from anonymizer.pipeline.devices import NO_SLOT, DeviceTable
from anonymizer.pipeline.ports import Delivery
from anonymizer.pipeline.positions.core import LocatedPositions
from anonymizer.settings import DeviceZoneSettings

_UNKNOWN = -2
"""Owner of a slot whose device has not been looked up."""
_NO_ZONES = -1
_EVERYWHERE = Zones(circles=[Circle(0.0, 0.0, 1e9)])
_MOST_RECENT = 256
"""Devices that may restate their zones before all zones are compiled anew."""


class DeviceZones:
    """The zones that devices have stated, and the positions inside them.

    `put` may be called in another thread than the other methods.

    Parameters
    ----------
    settings
        Topic and bounds.
    devices
        Finds the device of a slot.

    Notes
    -----
    A tick costs O(positions), and more only for the positions of devices with zones. The zones of
    devices that stated them lately are compiled apart from the others, so that a device cannot slow
    ticks down by restating its own: 10,000 devices with zones, of 100,000 that report, take 2 ms.
    """

    def __init__(self, settings: DeviceZoneSettings, devices: DeviceTable) -> None:
        self._settings = settings
        self._level = settings.topic.split("/").index("{device}")
        self._devices = devices
        self._arrived: deque[tuple[str, bytes]] = deque()
        self._zones_of: dict[int, Zones] = {}  # by the keys of devices
        self._overflowed = False
        self._owner_of: dict[int, int] = {}
        self._owned = self._recently_owned = OwnedZones()
        self._n_owned = 0
        self._recent: set[int] = set()
        self._owner_of_slot: Int32Array = np.zeros(0, np.int32)
        # Compiles the kernel, which the first statement would else do in the middle of a tick.
        self._owned.contains(np.zeros(0, np.int64), np.zeros(0), np.zeros(0))

    def __repr__(self) -> str:
        """Return the number of devices alone."""
        return f"DeviceZones({len(self._zones_of)} devices)"

    def put(self, deliveries: Iterable[Delivery]) -> None:
        """Take in messages on the topic of the settings; the next tick applies them."""
        for delivery in deliveries:
            device = delivery.topic.split("/")[self._level]
            too_large = len(delivery.payload) > self._settings.max_payload_bytes
            self._arrived.append((device, b"?" if too_large else delivery.payload))

    def keep_out(self, located: LocatedPositions) -> LocatedPositions:
        """Return the positions, those inside a zone of their device's own at no node."""
        self._apply()
        if not self._zones_of and not self._overflowed:
            return located
        positions = located.positions
        owner = self._owners(positions.slot)
        hidden = np.full(len(owner), self._overflowed)
        for zones, first, end in (
            (self._owned, 0, self._n_owned),
            (self._recently_owned, self._n_owned, np.iinfo(np.int32).max),
        ):
            own = np.flatnonzero((owner >= first) & (owner < end))
            hidden[own] = zones.contains(
                owner[own].astype(np.int64) - first, positions.lat[own], positions.lon[own]
            )
        return replace(located, node=np.where(hidden, np.int32(IN_ZONE), located.node))

    def forget(self, slots: Int32Array) -> None:
        """Forget which devices these slots belonged to: they may pass to others."""
        self._owner_of_slot[slots[slots < len(self._owner_of_slot)]] = _UNKNOWN

    def _apply(self) -> None:
        """Apply the statements that have arrived, in their order."""
        if not self._arrived:
            return
        while self._arrived:
            name, payload = self._arrived.popleft()
            device = self._devices.key(name)
            zones = self._stated(payload)
            if zones is None:
                self._zones_of.pop(device, None)
            elif device in self._zones_of or len(self._zones_of) < self._settings.max_devices:
                self._zones_of[device] = zones
            else:
                self._overflowed = True
            self._recent.add(device)
        if len(self._recent) > _MOST_RECENT:
            self._compile_all()
        else:
            self._compile_recent()

    def _compile_all(self) -> None:
        self._owner_of = {device: owner for owner, device in enumerate(self._zones_of)}
        self._owned = OwnedZones(list(self._zones_of.values()))
        self._n_owned = len(self._zones_of)
        self._recently_owned = OwnedZones()
        self._recent.clear()
        self._owner_of_slot[:] = _UNKNOWN

    def _compile_recent(self) -> None:
        """Compile the zones of devices that have restated them; theirs in the others lie idle."""
        for device in self._recent:
            self._owner_of.pop(device, None)
        owners = sorted(self._recent & self._zones_of.keys())
        self._recently_owned = OwnedZones([self._zones_of[device] for device in owners])
        self._owner_of.update(zip(owners, range(self._n_owned, 2**31), strict=False))
        slots = np.array([self._devices.find(device) for device in self._recent], np.int32)
        self.forget(slots[slots != NO_SLOT])

    def _stated(self, payload: bytes) -> Zones | None:
        """Return the zones of a message, None if it withdraws them; all the world if unusable."""
        if not payload:
            return None
        stated = decode(payload)
        if isinstance(stated, Outcome):
            return _EVERYWHERE
        if len(stated.circles) + len(stated.polygons) > self._settings.max_zones:
            return _EVERYWHERE
        try:
            zones = _zones_of(stated)
        except ValueError:
            return _EVERYWHERE
        return zones if len(zones) else None

    def _owners(self, slot: Int32Array) -> Int32Array:
        """Return the owner of each slot, negative if its device has no zones, same shape."""
        more = int(slot.max(initial=-1)) + 1 - len(self._owner_of_slot)
        if more > 0:
            room = np.full(max(more, len(self._owner_of_slot)), _UNKNOWN, np.int32)
            self._owner_of_slot = np.concatenate([self._owner_of_slot, room])
        unknown = np.unique(slot[self._owner_of_slot[slot] == _UNKNOWN])
        keys = self._devices.keys(unknown).tolist()
        found = [self._owner_of.get(key, _NO_ZONES) for key in keys]
        self._owner_of_slot[unknown] = np.array(found, np.int32)
        owner: Int32Array = self._owner_of_slot[slot]
        return owner


def _zones_of(stated: StatedZones) -> Zones:
    return Zones(
        circles=[Circle(each.lat, each.lon, each.radius_m) for each in stated.circles],
        polygons=[Polygon(corners) for corners in stated.polygons],
    )
