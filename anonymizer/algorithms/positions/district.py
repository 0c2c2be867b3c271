"""One district: a state machine that forms the groups of a territory, tick by tick.

Its state changes by `District.tick`: by the rows that the router sends, by the messages of the
other districts about the tick before, and by the time. The order of rows makes no difference. All
workers that are given the same therefore come to the same groups, members and pseudonyms. (A
process that runs all districts also calls `District.retire`, if it finds a device in two groups.)

Who may group a device is never in doubt:

- A device belongs to the district in whose territory it was last, and only that may group it. For
  all others it is a *guest*: in a halo it counts towards the density, and a member that left is
  covered where it is until its group ends.
- Each district states at every tick which members of its groups are elsewhere, and until when:
  its *claims*. A device that comes from elsewhere is grouped only after all districts stated
  their claims of a tick at which it had arrived. If one of them was not heard, or itself did not
  hear all of its sources, such devices wait.
- A district that no longer follows a device hands it over, with its last position, to the district
  in which it is.
"""

from typing import NamedTuple

import numpy as np

from anonymizer.algorithms.positions.cloaks.protocol import State
from anonymizer.algorithms.positions.district_routing import NOWHERE, KeyArray, Rows, join_rows
from anonymizer.algorithms.positions.districts import Districts
from anonymizer.algorithms.positions.operator import CloakingOperator
from anonymizer.domain.arrays import BoolArray, FloatArray, Int32Array, IntArray, UInt8Array
from anonymizer.domain.outcomes import Outcome
from anonymizer.domain.release import Release

_FREE = -1
_STATE = ("_key_of", "_handle_of", "_roams", "_was_inside", "_is_mine")


class Claims(NamedTuple):
    """Devices that are members of groups elsewhere, and until when (unix seconds), shape (n,)."""

    key: KeyArray
    until: FloatArray

    def __repr__(self) -> str:
        """Reveal no device."""
        return f"Claims({len(self.key)})"


class Message(NamedTuple):
    """A message from one district to another at the end of a tick.

    Attributes
    ----------
    claims
        Its members that are in the other's territory.
    handover
        Devices that it no longer follows, with their last positions, which are in the other's
        territory.
    """

    claims: Claims
    handover: Rows


class Received(NamedTuple):
    """The messages that a district received about the tick before.

    Attributes
    ----------
    messages
        Those addressed to it, in the order of their senders; a district may send none.
    complete
        Whether every other district was heard, and had itself heard all of its sources.
    """

    messages: list[Message]
    complete: bool


class DistrictTick(NamedTuple):
    """The result of one tick of one district.

    Attributes
    ----------
    release
        Verified groups; members by their slots in this district.
    handle, key
        Of each member, shape (members,).
    outcome
        Outcome of each row; `HELD` for guests.
    messages
        To other districts, by their numbers.
    n_in
        Devices in each district that this one leads, shape (districts,).
    began, ended
        Handles of the devices that the district knows since this tick, and of those that it has
        forgotten. It has forgotten nothing else.
    """

    release: Release
    handle: IntArray
    key: KeyArray
    outcome: UInt8Array
    messages: dict[int, Message]
    n_in: IntArray
    began: IntArray
    ended: IntArray

    def __repr__(self) -> str:
        """Reveal no device."""
        return f"DistrictTick({len(self.outcome)})"


class District:
    """The groups of one territory.

    Parameters
    ----------
    number
        Its number in `districts`.
    districts
        The cut of the network.
    operator
        Of its own; forms and verifies the groups.
    """

    def __init__(self, number: int, districts: Districts, operator: CloakingOperator) -> None:
        self.number = number
        self.operator = operator
        self._districts = districts
        self._leader_of: IntArray = np.zeros(0, np.int64)
        n_slots = len(operator.density.node_of)
        self._key_of: KeyArray = np.zeros(n_slots, np.uint64)
        self._handle_of: IntArray = np.full(n_slots, _FREE, np.int64)
        self._slot_of: dict[int, int] = {}
        self._free: list[int] = []
        self._roams: BoolArray = np.zeros(n_slots, bool)
        self._was_inside: BoolArray = np.zeros(n_slots, bool)
        self._is_mine: BoolArray = np.zeros(n_slots, bool)
        self._lead(np.arange(districts.n))

    def _lead(self, leader_of: IntArray) -> None:
        """Take over the districts that this one leads from now on."""
        if not np.array_equal(leader_of, self._leader_of):
            self._leader_of = leader_of.copy()
            nodes = self._districts.nodes(self.number, leader_of)
            # One entry more: nodes are also looked up by -1.
            self._inside = np.zeros(len(self._districts.of_node) + 1, bool)
            self._inside[nodes] = True
            counted = self._districts.counted(self.number, leader_of)
            self._counted = np.append(counted, False)
            self.operator.confine(nodes)

    def tick(
        self, rows: Rows, received: Received, leader_of: IntArray, *, now: float
    ) -> DistrictTick:
        """Process the rows of a tick; return its release and what other districts must know.

        Parameters
        ----------
        rows
            Of each device, none older than those before.
        received
            Of the tick before.
        leader_of
            Leader of each district at this tick.
        now
            Unix seconds at which the tick closes.
        """
        self._lead(leader_of)
        density = self.operator.density
        handover = join_rows([message.handover for message in received.messages])
        handover = handover.take(handover.ts >= now - self.operator.pace.ttl_s)
        both = join_rows([handover._replace(roams=np.ones(len(handover.key), bool)), rows])
        slot, began = self._slots(both)
        known = np.flatnonzero(slot != _FREE)
        known = known[np.lexsort((both.node[known], both.ts[known], slot[known]))]
        self._roams[slot[known]] = both.roams[known]
        arrived = self.operator.advance(
            slot[known],
            both.ts[known],
            both.node[known],
            now=now,
            stand_in=both.left_from[known],
            since=both.since[known],
        )
        self._make_room(len(density.node_of))
        ended = self._forget(arrived.freed)
        self._mark_guests(received, now)
        result = self.operator.publish(arrived, now=now)
        outcome = np.full(len(both.key), Outcome.HELD, np.uint8)
        outcome[known] = result.outcome
        messages = self._hand_over(now)
        return DistrictTick(
            result.release,
            self._handle_of[result.release.member],
            self._key_of[result.release.member],
            outcome[len(handover.key) :],
            messages,
            self._n_in(),
            began,
            ended,
        )

    def state(self) -> State:
        """Return what changes from tick to tick; a district restored from it goes on alike."""
        arrays = {name: getattr(self, name) for name in _STATE}
        return {
            **arrays,
            "leader_of": self._leader_of,
            "free": np.array(self._free, np.int64),
            "operator": self.operator.state(),
        }

    def restore(self, state: State) -> None:
        """Go on from a state of the same district."""
        for name in _STATE:
            setattr(self, name, state[name].copy())
        self._free = state["free"].tolist()
        known = np.flatnonzero(self._handle_of != _FREE)
        self._slot_of = dict(zip(self._key_of[known].tolist(), known.tolist(), strict=True))
        self._lead(state["leader_of"])
        self.operator.restore(state["operator"])

    def handles(self) -> IntArray:
        """Return the handles of all devices that the district knows."""
        known: IntArray = self._handle_of[self._handle_of != _FREE]
        return known

    def members(self) -> tuple[IntArray, Int32Array]:
        """Return the handles of the members of groups, and the node at which each is covered."""
        slot = np.flatnonzero(self.operator.bound_until() > -np.inf)
        return self._handle_of[slot], self.operator.place_of[slot]

    def retire(self, handle: IntArray | Int32Array) -> None:
        """End the groups of these devices."""
        slot = np.flatnonzero(np.isin(self._handle_of, handle) & (self._handle_of != _FREE))
        self.operator.retire(slot.astype(np.int32))

    def _slots(self, rows: Rows) -> tuple[Int32Array, IntArray]:
        """Return the slot of each row's device, and the handles of new ones.

        The slot is `_FREE` for devices that are none of its concern.

        New devices get slots in the order of their keys, which no order of arrival changes.
        """
        get = self._slot_of.get
        slot = np.array([get(key, _FREE) for key in rows.key.tolist()], np.int32)
        new = np.flatnonzero((slot == _FREE) & self._counted[np.maximum(rows.node, -1)])
        keys = sorted(set(rows.key[new].tolist()))
        for key in keys:
            self._slot_of[key] = self._free.pop() if self._free else len(self._slot_of)
        slot[new] = [self._slot_of[key] for key in rows.key[new].tolist()]
        self._make_room(int(slot.max(initial=-1)) + 1)
        self._key_of[slot[new]] = rows.key[new]
        self._handle_of[slot[new]] = rows.handle[new]
        return slot, self._handle_of[[self._slot_of[key] for key in keys]]

    def _forget(self, slot: Int32Array) -> IntArray:
        """Forget devices; return their handles."""
        ended = self._handle_of[slot]
        for s, key in zip(slot.tolist(), self._key_of[slot].tolist(), strict=True):
            del self._slot_of[key]
            self._free.append(s)
        self._handle_of[slot] = _FREE
        self._roams[slot] = self._was_inside[slot] = self._is_mine[slot] = False
        return ended

    def _mark_guests(self, received: Received, now: float) -> None:
        """Mark the slots that are guests at this tick."""
        density = self.operator.density
        inside = self._inside[np.maximum(density.node_of, NOWHERE)]
        guest = ~inside
        if self.operator.groups_last:
            guest |= self._roams & ~(self._was_inside & received.complete)
            for message in received.messages:
                bound = message.claims.key[message.claims.until > now]
                slots = [self._slot_of.get(key, _FREE) for key in bound.tolist()]
                guest[[s for s in slots if s != _FREE]] = True
        density.is_guest[:] = guest
        self._was_inside = inside

    def _hand_over(self, now: float) -> dict[int, Message]:
        """Claim the members that are elsewhere, and hand over the other devices that are."""
        density, operator = self.operator.density, self.operator
        until = operator.bound_until()
        bound = until > now
        away = (density.node_of >= 0) & ~self._was_inside
        left = away & self._is_mine & ~bound
        self._is_mine = self._was_inside | bound
        left &= density.version_of >= now - operator.pace.ttl_s
        concerned = np.flatnonzero(left | (away & bound))
        leader = self._leader_of[self._districts.of_node[density.node_of[concerned]]]
        messages: dict[int, Message] = {}
        for to in np.flatnonzero(np.bincount(leader)).tolist():
            there = concerned[leader == to]
            there = there[np.argsort(self._key_of[there])]
            claimed = there[bound[there]]
            messages[to] = Message(
                Claims(self._key_of[claimed], until[claimed]), self._rows(there[left[there]])
            )
        counted = self._counted[np.maximum(density.node_of, NOWHERE)]
        density.remove(np.flatnonzero(away & ~bound & ~counted).astype(np.int32))
        return messages

    def _rows(self, slot: IntArray) -> Rows:
        density = self.operator.density
        return Rows(
            self._key_of[slot],
            self._handle_of[slot],
            density.version_of[slot],
            density.node_of[slot],
            np.full(len(slot), NOWHERE, np.int32),
            np.ones(len(slot), bool),
            density.since_of[slot],
        )

    def _n_in(self) -> IntArray:
        inside = self.operator.density.node_of[self._was_inside]
        n_in: IntArray = np.bincount(self._districts.of_node[inside], minlength=self._districts.n)
        return n_in

    def _make_room(self, n_slots: int) -> None:
        more = n_slots - len(self._key_of)
        if more > 0:
            self._key_of = np.concatenate([self._key_of, np.zeros(more, np.uint64)])
            self._handle_of = np.concatenate([self._handle_of, np.full(more, _FREE)])
            none = np.zeros(more, bool)
            self._roams = np.concatenate([self._roams, none])
            self._was_inside = np.concatenate([self._was_inside, none])
            self._is_mine = np.concatenate([self._is_mine, none])
