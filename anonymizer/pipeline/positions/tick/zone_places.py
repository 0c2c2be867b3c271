"""Privacy zones in the flow: where devices inside one count and are covered."""

from collections.abc import Callable
from typing import Any

import numpy as np

from anonymizer.algorithms.positions.device_keys import Keys
from anonymizer.algorithms.positions.map_matching import LayeredLocator
from anonymizer.algorithms.positions.protection import IN_ZONE, NO_ZONE, StandIns, ZonedNetwork
from anonymizer.domain.arrays import BoolArray, Int32Array, UInt8Array
from anonymizer.domain.outcomes import Outcome
from anonymizer.pipeline.ledger import NOT_THE_NEWEST
from anonymizer.pipeline.positions.tick.trip_guard import Positions

_TIMES = ("_seen_at", "_outside_at")


class ZonePlaces:
    """The nodes at which devices inside privacy zones count and are covered.

    A device that enters a zone counts at a node of it (see `StandIns`) for as long as a silent one
    counts as present. So the traffic through a zone is published like that on any road: if those
    who pass through were missing, the zone would be where the traffic is thin. A device that stays
    for longer, or that was not seen outside before, leaves the map.
    """

    def __init__(
        self, zoned: ZonedNetwork, nodes: LayeredLocator, *, keys: Keys, secret: bytes
    ) -> None:
        self._zone_of = zoned.beside
        self._nodes = nodes
        self._keys = keys
        self._stand_ins = StandIns(zoned.zone_of, secret)
        self._seen_at = np.full(0, -np.inf)
        self._outside_at = np.full(0, -np.inf)

    def cover(
        self, positions: Positions, node: Int32Array, *, now: float, passing_s: float
    ) -> Int32Array:
        """Return the node at which each position counts, shape (n,).

        It is a node of the zone for devices inside one that were outside within the last
        `passing_s` seconds before `now`, `IN_ZONE` for others inside, and the position's own node
        outside. The order within a batch makes no difference.
        """
        slot, ts = positions.slot, positions.ts
        self._make_room(int(slot.max(initial=-1)) + 1)
        inside = node == IN_ZONE
        enters = np.zeros(len(self._seen_at), bool)
        enters[slot[inside]] = True
        row = np.flatnonzero(enters[slot] | self._stand_ins.are_inside(slot))
        row = row[ts[row] > self._seen_at[slot[row]]]  # late ones move no device
        np.maximum.at(self._seen_at, slot, ts)
        np.maximum.at(self._outside_at, slot[node >= 0], ts[node >= 0])
        zone = np.full(len(row), NO_ZONE, np.int32)
        hidden = np.flatnonzero(inside[row])
        at, layer = row[hidden], positions.layer
        nearest = self._nodes.locate(
            positions.lat[at], positions.lon[at], None, None if layer is None else layer[at]
        )
        zone[hidden] = np.where(nearest < 0, np.int32(NO_ZONE), self._zone_of[nearest])
        order = np.lexsort((zone, ts[row], slot[row]))
        row, zone = row[order], zone[order]
        who = slot[row]
        stand_in = self._stand_ins.at(who, zone, key=self._keys(who), ts=ts[row])
        passing = (stand_in >= 0) & (now - self._outside_at[who] <= passing_s)
        covered = node.copy()
        covered[row[passing]] = stand_in[passing]
        return covered

    def forget(self, slot: Int32Array) -> None:
        """Clear freed slots."""
        self._stand_ins.forget(slot)
        known = slot[slot < len(self._seen_at)]
        self._seen_at[known] = self._outside_at[known] = -np.inf

    def state(self) -> dict[str, Any]:
        """Return what changes from tick to tick."""
        times = {name: getattr(self, name) for name in _TIMES}
        return times | {"stand_ins": self._stand_ins.state()}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        for name in _TIMES:
            setattr(self, name, state[name].copy())
        self._stand_ins.restore(state["stand_ins"])

    def _make_room(self, n_slots: int) -> None:
        have = len(self._seen_at)
        if n_slots > have:
            more = np.full(max(n_slots, 2 * have) - have, -np.inf)
            self._seen_at = np.append(self._seen_at, more)
            self._outside_at = np.append(self._outside_at, more)


def zone_places(zoned: ZonedNetwork, *, secret: bytes) -> Callable[[Keys], ZonePlaces] | None:
    """Return a function that makes the places of some devices; None if there are no zones."""
    if not len(zoned.zones):
        return None
    nodes = LayeredLocator(zoned.network, limit_m=np.inf)
    return lambda keys: ZonePlaces(zoned, nodes, keys=keys, secret=secret)


def suppress_hidden(outcome: UInt8Array, hidden: BoolArray) -> None:
    """Suppress the positions inside zones, in place.

    Passers-by count and are covered like any device; what they say is suppressed.
    """
    outcome[hidden & ~NOT_THE_NEWEST[outcome]] = Outcome.SUPPRESSED__PRIVACY_ZONE
