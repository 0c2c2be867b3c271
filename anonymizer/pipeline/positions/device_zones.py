"""Device-owned privacy zones in the flow: what devices state, held in memory alone."""

from collections import deque
from collections.abc import Collection, Iterable
from typing import Any

import numpy as np

from anonymizer.algorithms.positions.protection import IN_ZONE, Circle, OwnedZones, Polygon, Zones
from anonymizer.codecs.device_zones import StatedZones, decode
from anonymizer.domain.arrays import Int32Array
from anonymizer.domain.outcomes import Outcome
from anonymizer.pipeline.devices import NO_SLOT, DeviceTable
from anonymizer.pipeline.ports import Delivery
from anonymizer.pipeline.positions.trip_guard import Positions
from anonymizer.settings import DeviceZoneSettings
from anonymizer.settings.base import id_levels

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
        self._levels = id_levels(settings.topic)
        self._devices = devices
        self._arrived: deque[tuple[str, bytes, str, Collection[str]]] = deque()
        self._said_of: dict[int, dict[str, bytes]] = {}
        """The last payload of each who passes statements on, by the keys of devices."""
        self._zones_of: dict[int, Zones] = {}
        """What follows from these."""
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

    def put(
        self, deliveries: Iterable[Delivery], *, by: str = "", beside: Collection[str] = ()
    ) -> None:
        """Take in messages on the topic of the settings; the next tick applies them.

        Parameters
        ----------
        by
            Who passes them on.
        beside
            Who else does. What these have last passed on about the same device is also true: one of
            them may be behind the others. What anybody else has passed on about it is forgotten.
        """
        for delivery in deliveries:
            levels = delivery.topic.split("/")
            device = "/".join(levels[i] for i in self._levels)
            too_large = len(delivery.payload) > self._settings.max_payload_bytes
            payload = b"?" if too_large else delivery.payload
            self._arrived.append((device, payload, by, beside))

    def keep_out(self, positions: Positions, node: Int32Array) -> Int32Array:
        """Return the node of each position, `IN_ZONE` inside a zone of its device's own."""
        self._apply()
        if not self._zones_of and not self._overflowed:
            return node
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
        return np.where(hidden, np.int32(IN_ZONE), node)

    def forget(self, slots: Int32Array) -> None:
        """Forget which devices these slots belonged to: they may pass to others."""
        self._owner_of_slot[slots[slots < len(self._owner_of_slot)]] = _UNKNOWN

    def _apply(self) -> None:
        """Apply the statements that have arrived, in their order."""
        if not self._arrived:
            return
        while self._arrived:
            name, payload, by, beside = self._arrived.popleft()
            device = self._devices.key(name)
            before = self._said_of.get(device, {})
            said = {each: before[each] for each in before if each == by or each in beside}
            said[by] = payload
            if said != before:
                self._take(device, said)
                self._recent.add(device)
        if len(self._recent) > _MOST_RECENT:
            self._compile_all()
        else:
            self._compile_recent()

    def _take(self, device: int, said: dict[str, bytes]) -> None:
        """Take what is said about a device in place of what was said before."""
        stated = [self._stated(payload) for payload in dict.fromkeys(said.values())]
        zones = [each for each in stated if each is not None]
        if not zones:
            self._zones_of.pop(device, None)
            self._said_of.pop(device, None)
        elif device in self._zones_of or len(self._zones_of) < self._settings.max_devices:
            self._zones_of[device] = Zones.joined(zones)
            self._said_of[device] = said
        else:
            self._overflowed = True

    def state(self) -> dict[str, Any]:
        """Return what was said. It says where devices want privacy: store it like raw positions."""
        said = [[device, list(said.items())] for device, said in self._said_of.items()]
        return {"said": said, "overflowed": self._overflowed}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state; between two ticks."""
        self._said_of, self._zones_of = {}, {}
        self._overflowed = state["overflowed"]
        for device, said in state["said"]:  # of which the settings may by now allow fewer
            self._take(device, dict(said))
        self._compile_all()

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
