"""Stand-ins: where a device counts and is covered while it is inside a privacy zone."""

import numpy as np

from anonymizer.domain.arrays import Int32Array, IntArray
from anonymizer.domain.release import starts_of

NO_ZONE = -1
_NOWHERE = -1


class StandIns:
    """Keeps one random node of its zone for each device inside a zone.

    A device that vanished at the border of a zone would show where the border is. So it counts and
    is covered inside the zone while it passes through, but at a node that says nothing about where
    inside it is: drawn when it enters, and the same until it leaves.

    Parameters
    ----------
    zone_of
        Zone of each node, `NO_ZONE` for none, shape (nodes,).
    rng
        Not known to the adversary.
    """

    def __init__(self, zone_of: Int32Array, rng: np.random.Generator) -> None:
        inside = np.flatnonzero(zone_of != NO_ZONE)
        self._node = inside[np.argsort(zone_of[inside], kind="stable")].astype(np.int32)
        self._first_node_of = starts_of(np.bincount(zone_of[inside]))
        self._rng = rng
        self._zone_of_slot = np.full(0, NO_ZONE, np.int32)
        self._node_of_slot = np.full(0, _NOWHERE, np.int32)

    def at(self, slot: Int32Array, zone: Int32Array) -> Int32Array:
        """Return the stand-in of each position, negative for positions outside all zones.

        Parameters
        ----------
        slot, zone
            Device and zone of each position of a tick, shape (n,).
        """
        if not len(self._node) or not len(slot):
            return np.full(len(slot), _NOWHERE, np.int32)
        self._make_room(int(slot.max()) + 1)
        enters = (zone != NO_ZONE) & (zone != self._zone_of_slot[slot])
        self._node_of_slot[slot[enters]] = self._draw(zone[enters])
        self._zone_of_slot[slot] = zone
        return np.where(zone != NO_ZONE, self._node_of_slot[slot], np.int32(_NOWHERE))

    def forget(self, slot: Int32Array) -> None:
        """Clear freed slots, so that the next device in a slot gets a stand-in of its own."""
        self._zone_of_slot[slot[slot < len(self._zone_of_slot)]] = NO_ZONE

    def _draw(self, zone: Int32Array) -> Int32Array:
        first, end = self._first_node_of[zone], self._first_node_of[zone + 1]
        drawn: IntArray = self._rng.integers(first, end)
        return self._node[drawn]

    def _make_room(self, n_slots: int) -> None:
        more = n_slots - len(self._zone_of_slot)
        if more > 0:
            self._zone_of_slot = np.append(self._zone_of_slot, np.full(more, NO_ZONE, np.int32))
            self._node_of_slot = np.append(self._node_of_slot, np.full(more, _NOWHERE, np.int32))
