"""One district: a state machine that forms the groups of its devices, tick by tick.

Its state changes by the rows that the router sends and by the time. The order of rows makes no
difference. All workers that are given the same therefore come to the same groups, members and
pseudonyms.

It knows nothing of other districts. To its network, a device that is in another has left the map:
it no longer counts, and a group that it is in covers it where it was last until the group ends. The
other may meanwhile have grouped it, as it groups anybody new. So a device can be in several groups
at once, in one of each district at most.
"""

from typing import NamedTuple

import numpy as np

from anonymizer.algorithms.positions.cloaks.protocol import State
from anonymizer.algorithms.positions.device_keys import KeyArray
from anonymizer.algorithms.positions.district_routing import NOWHERE, Rows
from anonymizer.algorithms.positions.districts import Districts
from anonymizer.algorithms.positions.operator import CloakingOperator
from anonymizer.domain.arrays import Int32Array, IntArray, UInt8Array
from anonymizer.domain.discreet import discreet
from anonymizer.domain.release import Release

_FREE = -1
_STATE = ("_key_of", "_handle_of")


@discreet
class DistrictTick(NamedTuple):
    """The result of one tick of one district.

    Members of `release` are slots in this district, its nodes those of the whole network. `handle`,
    `key`: of each member, shape (members,). `outcome`: of each row; one of a device that is
    elsewhere means nothing. `ended`: handles of the devices that the district has forgotten.
    """

    release: Release
    handle: IntArray
    key: KeyArray
    outcome: UInt8Array
    ended: IntArray


class District:
    """The groups of one district."""

    def __init__(self, number: int, districts: Districts, operator: CloakingOperator) -> None:
        self.number = number
        self.operator = operator
        self._number_of = np.append(districts.number_of, np.int32(NOWHERE))
        self._nodes = districts.nodes(number)
        n_slots = len(operator.density.node_of)
        self._key_of: KeyArray = np.zeros(n_slots, np.uint64)
        self._handle_of: IntArray = np.full(n_slots, _FREE, np.int64)
        # The known keys, rising, and the slot of each.
        self._keys: KeyArray = np.zeros(0, np.uint64)
        self._slot_of: Int32Array = np.zeros(0, np.int32)
        self._free: list[int] = []
        operator.name_devices(lambda slot: self._key_of[slot])

    def tick(self, rows: Rows, *, now: float) -> DistrictTick:
        """Process the rows of a tick; return its release.

        `rows` are of devices that are in the district or have just left it, none older than those
        before; `now`: unix seconds.
        """
        slot = self._slots(rows)
        known = np.flatnonzero(slot != _FREE)
        result = self.operator.tick(
            slot[known],
            rows.ts[known],
            self._number_of[np.maximum(rows.node[known], NOWHERE)],
            now=now,
            stand_in=self._number_of[rows.left_from[known]],
            since=rows.since[known],
        )
        self._make_room(len(self.operator.density.node_of))
        release = result.release.at_nodes(self._nodes)
        handle, key = self._handle_of[release.member], self._key_of[release.member]
        outcome = np.zeros(len(slot), np.uint8)
        outcome[known] = result.outcome
        return DistrictTick(release, handle, key, outcome, self._forget(result.freed))

    def withdraw(self, handle: IntArray) -> None:
        """Forget where these devices are, see `CloakingOperator.withdraw`."""
        known = np.isin(self._handle_of, handle) & (self._handle_of != _FREE)
        self.operator.withdraw(np.flatnonzero(known).astype(np.int32))

    def state(self) -> State:
        """Return what changes from tick to tick; a district restored from it goes on alike."""
        arrays = {name: getattr(self, name) for name in _STATE}
        return {
            **arrays,
            "free": np.array(self._free, np.int64),
            "operator": self.operator.state(),
        }

    def restore(self, state: State) -> None:
        """Go on from a state of the same district."""
        for name in _STATE:
            setattr(self, name, state[name].copy())
        self._free = state["free"].tolist()
        known = np.flatnonzero(self._handle_of != _FREE).astype(np.int32)
        self._slot_of = known[np.argsort(self._key_of[known])]
        self._keys = self._key_of[self._slot_of]
        self.operator.restore(state["operator"])

    def handles(self) -> IntArray:
        """Return the handles of all devices that the district knows."""
        known: IntArray = self._handle_of[self._handle_of != _FREE]
        return known

    def places(self) -> tuple[IntArray, Int32Array]:
        """Return the handles of the devices that have a place here, and the node of each."""
        place_of = self.operator.place_of
        slot = np.flatnonzero((place_of >= 0) & (self._handle_of != _FREE))
        return self._handle_of[slot], self._nodes[place_of[slot]]

    def _slots(self, rows: Rows) -> Int32Array:
        """Return the slot of each row's device, `_FREE` if it is not here and is not known.

        New devices get slots in the order of their keys, which no order of arrival changes.
        """
        slot = self._find(rows.key)
        new = np.flatnonzero((slot == _FREE) & (rows.node >= 0))
        if not len(new):
            return slot
        keys, n_known = np.unique(rows.key[new]), len(self._keys)
        reused = [self._free.pop() for _ in range(min(len(keys), len(self._free)))]
        # No slot is free then: those in use are the first ones.
        fresh = np.arange(n_known + len(reused), n_known + len(keys))
        slots = np.concatenate([reused, fresh]).astype(np.int32)
        at = np.searchsorted(self._keys, keys)
        self._keys = np.insert(self._keys, at, keys)
        self._slot_of = np.insert(self._slot_of, at, slots)
        slot[new] = self._find(rows.key[new])
        self._make_room(int(slots.max()) + 1)
        self._key_of[slot[new]] = rows.key[new]
        self._handle_of[slot[new]] = rows.handle[new]
        return slot

    def _find(self, key: KeyArray) -> Int32Array:
        """Return the slot of the device of each key, `_FREE` if it is not known."""
        if not len(self._keys):
            return np.full(len(key), _FREE, np.int32)
        at = np.minimum(np.searchsorted(self._keys, key), len(self._keys) - 1)
        return np.where(self._keys[at] == key, self._slot_of[at], np.int32(_FREE))

    def _forget(self, slot: Int32Array) -> IntArray:
        """Forget devices; return their handles."""
        ended = self._handle_of[slot]
        self._free += slot.tolist()
        self._handle_of[slot] = _FREE
        kept = self._handle_of[self._slot_of] != _FREE
        self._keys, self._slot_of = self._keys[kept], self._slot_of[kept]
        return ended

    def _make_room(self, n_slots: int) -> None:
        more = n_slots - len(self._key_of)
        if more > 0:
            self._key_of = np.concatenate([self._key_of, np.zeros(more, np.uint64)])
            self._handle_of = np.concatenate([self._handle_of, np.full(more, _FREE)])
