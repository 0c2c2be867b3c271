"""Stand-ins: where a device counts and is covered while it is inside a privacy zone."""

from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anonymizer.domain.arrays import BoolArray, FloatArray, Int32Array, digest_of, starts_of

NO_ZONE = -1
_NOWHERE = -1
_STATE = ("_zone_of_slot", "_node_of_slot")


class StandIns:
    """Keeps one random node of its zone for each device inside a zone.

    A device that vanished at the border of a zone would show where the border is. So it counts and
    is covered inside the zone while it passes through, but at a node that says nothing about where
    inside it is: drawn when it enters, and the same until it leaves.

    Parameters
    ----------
    zone_of
        Zone of each node, `NO_ZONE` for none, shape (nodes,).
    secret
        Not known to the adversary, 64 bytes at most. A node is drawn by a keyed hash of the device
        and of when it entered, so that every process with the secret draws the same.
    """

    def __init__(self, zone_of: Int32Array, secret: bytes) -> None:
        inside = np.flatnonzero(zone_of != NO_ZONE)
        self._node = inside[np.argsort(zone_of[inside], kind="stable")].astype(np.int32)
        self._first_node_of = starts_of(np.bincount(zone_of[inside]))
        self._secret = secret
        self._meaning = digest_of(zone_of)
        """Of the zones: they are known by their order."""
        self._zone_of_slot = np.full(0, NO_ZONE, np.int32)
        self._node_of_slot = np.full(0, _NOWHERE, np.int32)

    def state(self) -> dict[str, Any]:
        """Return what changes from tick to tick."""
        return {"meaning": self._meaning} | {name: getattr(self, name) for name in _STATE}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state; with other zones than then, as if every device entered its own."""
        if state["meaning"] == self._meaning:
            for name in _STATE:
                setattr(self, name, state[name].copy())

    def are_inside(self, slot: Int32Array) -> BoolArray:
        """Return which devices were inside a zone at their last position, shape (n,)."""
        self._make_room(int(slot.max(initial=-1)) + 1)
        inside: BoolArray = self._zone_of_slot[slot] != NO_ZONE
        return inside

    def at(
        self, slot: Int32Array, zone: Int32Array, *, key: NDArray[np.uint64], ts: FloatArray
    ) -> Int32Array:
        """Return the stand-in of each position, negative for positions outside all zones.

        `slot`, `zone`: of each position of a tick, by device and time, shape (n,); `key`: a number
        for each device, equal in all processes; `ts`: unix seconds.
        """
        if not len(self._node) or not len(slot):
            return np.full(len(slot), _NOWHERE, np.int32)
        self._make_room(int(slot.max()) + 1)
        begins = np.diff(slot, prepend=-1) != 0
        before = np.where(begins, self._zone_of_slot[slot], np.roll(zone, 1))
        enters = (zone != NO_ZONE) & (zone != before)
        drawn = np.full(len(slot), _NOWHERE, np.int32)
        drawn[enters] = self._draw(zone[enters], key[enters], ts[enters])
        # Each position has the node of the device's last entry; that may have been in another tick.
        row = np.arange(len(slot))
        entry = np.maximum.accumulate(np.where(enters | begins, row, 0))
        node = np.where(enters[entry], drawn[entry], self._node_of_slot[slot])
        last = np.append(begins[1:], np.True_)
        self._zone_of_slot[slot[last]] = zone[last]
        self._node_of_slot[slot[last]] = node[last]
        return np.where(zone != NO_ZONE, node, np.int32(_NOWHERE))

    def forget(self, slot: Int32Array) -> None:
        """Clear freed slots, so that the next device in a slot gets a stand-in of its own."""
        self._zone_of_slot[slot[slot < len(self._zone_of_slot)]] = NO_ZONE

    def _draw(self, zone: Int32Array, key: NDArray[np.uint64], ts: FloatArray) -> Int32Array:
        hashed = np.array(
            [
                int.from_bytes(
                    blake2b(
                        device.tobytes() + entered.tobytes(),
                        digest_size=8,
                        key=self._secret,
                        person=b"stand-in",
                    ).digest()
                )
                for device, entered in zip(key, ts, strict=True)
            ],
            np.uint64,
        )
        first, end = self._first_node_of[zone], self._first_node_of[zone + 1]
        return self._node[first + (hashed % (end - first).astype(np.uint64)).astype(np.int64)]

    def _make_room(self, n_slots: int) -> None:
        have = len(self._zone_of_slot)
        if n_slots > have:
            more = max(n_slots, 2 * have) - have
            self._zone_of_slot = np.append(self._zone_of_slot, np.full(more, NO_ZONE, np.int32))
            self._node_of_slot = np.append(self._node_of_slot, np.full(more, _NOWHERE, np.int32))
