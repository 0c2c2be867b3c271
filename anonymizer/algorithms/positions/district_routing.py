"""Routing: which districts get a position. A pure function of its device's own positions.

A district gets the positions in its territory and its halo, and those of devices that were in its
territory so lately that they may still be members of its groups, wherever they are now.
"""

from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from anonymizer.algorithms.positions.districts import Districts
from anonymizer.domain.arrays import BoolArray, FloatArray, Int32Array, IntArray

NOWHERE = -1
KeyArray: TypeAlias = NDArray[np.uint64]
_STATE = ("_leader_of", "_node_of", "_there_at", "_led_by", "_slot", "_leader", "_until")


class Rows(NamedTuple):
    """Newest positions of distinct devices on their way to one district, shape (n,).

    Attributes
    ----------
    key
        A number for each device: equal for equal devices, whoever handles them. Nothing else about
        the device is known to a district.
    handle
        Carried along unchanged, for the caller.
    ts
        Unix seconds.
    node
        Node, negative if off the graph.
    left_from
        Node at which the device is covered if it left the graph, negative for unknown.
    roams
        Whether another district may have the device in a group, or knew it lately.
    since
        Unix seconds since when the id is heard, `LASTS` if it does not change.
    """

    key: KeyArray
    handle: IntArray
    ts: FloatArray
    node: Int32Array
    left_from: Int32Array
    roams: BoolArray
    since: FloatArray

    def take(self, rows: IntArray | BoolArray) -> "Rows":
        """Return some of the rows."""
        return Rows._make(column[rows] for column in self)

    def __repr__(self) -> str:
        """Reveal no place."""
        return f"Rows({len(self.key)})"


def no_rows() -> Rows:
    """Return no rows."""
    none = np.zeros(0, np.int32)
    return Rows(
        np.zeros(0, np.uint64),
        np.zeros(0, np.int64),
        np.zeros(0),
        none,
        none,
        np.zeros(0, bool),
        np.zeros(0),
    )


def join_rows(parts: list[Rows]) -> Rows:
    """Return the rows of all parts."""
    if not parts:
        return no_rows()
    return Rows._make(np.concatenate(columns) for columns in zip(*parts, strict=True))


class Sent(NamedTuple):
    """The rows of a tick for each district that gets any.

    Attributes
    ----------
    district, rows
        Number of each district, rising, and its rows.
    source
        Which of the routed positions each row is.
    leader
        District whose territory each routed position is in, `NOWHERE` off the graph, shape (n,).
    """

    district: list[int]
    rows: list[Rows]
    source: list[IntArray]
    leader: IntArray

    def __repr__(self) -> str:
        """Reveal no place."""
        return f"Sent({len(self.leader)})"


class Router:
    """Routes the newest positions of devices, and remembers where each was lately.

    Parameters
    ----------
    districts
        The cut of the network.
    horizon_s
        For so long after its last position in a territory may a device be in a group formed there.
    """

    def __init__(self, districts: Districts, *, horizon_s: float) -> None:
        self._districts = districts
        self._horizon_s = horizon_s
        self._leader_of: IntArray = np.full(0, NOWHERE, np.int64)
        self._node_of: Int32Array = np.full(0, NOWHERE, np.int32)
        self._there_at: FloatArray = np.zeros(0)
        self._led_by: IntArray = np.arange(districts.n)
        # Earlier leaders of some slots: slot, leader, and when the device was there last.
        self._slot: IntArray = np.zeros(0, np.int64)
        self._leader: IntArray = np.zeros(0, np.int64)
        self._until: FloatArray = np.zeros(0)

    def route(
        self,
        slot: Int32Array,
        rows: Rows,
        leader_of: IntArray,
        *,
        now: float,
    ) -> Sent:
        """Return the rows for each district, those with the same key in each once.

        Parameters
        ----------
        slot
            Distinct devices by the caller's slots, shape (n,).
        rows
            Their newest positions; `roams` is ignored.
        leader_of
            Leader of each district at this tick.
        now
            Unix seconds at which the tick closes.
        """
        n = self._districts.n
        self._make_room(int(slot.max(initial=-1)) + 1)
        self._forget(now)
        self._change_leaders(leader_of)
        before, before_at = self._leader_of[slot], self._node_of[slot]
        on_graph = rows.node >= 0
        leader = np.full(len(slot), NOWHERE, np.int64)
        leader[on_graph] = leader_of[self._districts.of_node[rows.node[on_graph]]]
        self._remember(slot[on_graph & (before != leader)])
        self._leader_of[slot[on_graph]] = leader[on_graph]
        self._node_of[slot[on_graph]] = rows.node[on_graph]
        self._there_at[slot[on_graph]] = rows.ts[on_graph]

        row = np.arange(len(slot))
        # Those that counted it until now must see it leave.
        near_row, near = self._near(
            np.concatenate([row[on_graph], row[before_at >= 0]]),
            np.concatenate([rows.node[on_graph], before_at[before_at >= 0]]),
            leader_of,
        )
        leads = self._leads(slot)
        pairs = _distinct(np.concatenate([near_row * n + near, leads]))
        source, district = pairs // n, pairs % n
        others = np.bincount(leads // n, minlength=len(slot))[source] - _among(pairs, leads)
        order = np.lexsort((rows.key[source], district))
        source, district, roams = source[order], district[order], others[order] > 0
        sent = rows.take(source)._replace(roams=roams)
        bounds = np.flatnonzero(np.diff(district, prepend=-1, append=n))
        parts = [slice(a, b) for a, b in pairwise(bounds.tolist())]
        return Sent(
            [int(district[part.start]) for part in parts],
            [Rows._make(column[part] for column in sent) for part in parts],
            [source[part] for part in parts],
            leader,
        )

    def followers(self, slot: Int32Array) -> tuple[IntArray, IntArray]:
        """Return which districts may have these devices in a group: its leaders, now and lately.

        Parameters
        ----------
        slot
            Distinct devices, shape (n,).

        Returns
        -------
        row, district
            Index of a device in `slot`, rising, and number of a district, shape (pairs,).
        """
        self._make_room(int(slot.max(initial=-1)) + 1)
        return np.divmod(self._leads(slot), self._districts.n)

    def has_leaders(self, leader_of: IntArray) -> bool:
        """Return whether these were the leaders of all districts when it routed last."""
        return np.array_equal(leader_of, self._led_by)

    def remembers(self, n_slots: int) -> BoolArray:
        """Return which slots must not be given to other devices yet, shape (n_slots,)."""
        self._make_room(n_slots)
        remembered: BoolArray = self._leader_of[:n_slots] != NOWHERE
        return remembered

    def state(self) -> dict[str, Any]:
        """Return what changes from tick to tick."""
        return {name: getattr(self, name) for name in _STATE}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        for name in _STATE:
            setattr(self, name, state[name].copy())

    def _forget(self, now: float) -> None:
        """Forget where devices were before the horizon.

        What is remembered depends on the positions of a device and the time alone, and so it is
        the same whoever routes them.
        """
        gone = (self._there_at + self._horizon_s < now) & (self._leader_of != NOWHERE)
        self._leader_of[gone] = self._node_of[gone] = NOWHERE
        kept = self._until >= now
        if not kept.all():
            self._slot, self._leader = self._slot[kept], self._leader[kept]
            self._until = self._until[kept]

    def _near(
        self, row: IntArray, node: Int32Array, leader_of: IntArray
    ) -> tuple[IntArray, IntArray]:
        """Return the leaders of the districts that count the devices at each node."""
        first = self._districts.first_near_of
        n_each = first[node + 1] - first[node]
        starts = np.cumsum(n_each) - n_each
        at = np.repeat(first[node] - starts, n_each) + np.arange(n_each.sum())
        return np.repeat(row, n_each), leader_of[self._districts.near[at]]

    def _leads(self, slot: Int32Array) -> IntArray:
        """Return row * districts + district for each follower of each device, rising."""
        n, row = self._districts.n, np.arange(len(slot))
        leader = self._leader_of[slot]
        led = leader != NOWHERE
        earlier_row, earlier = self._earlier(slot)
        return _distinct(np.concatenate([row[led] * n + leader[led], earlier_row * n + earlier]))

    def _earlier(self, slot: Int32Array) -> tuple[IntArray, IntArray]:
        """Return the earlier leaders of the devices, and the row of each."""
        row_of = np.full(len(self._leader_of), NOWHERE, np.int64)
        row_of[slot] = np.arange(len(slot))
        row = row_of[self._slot]
        return row[row >= 0], self._leader[row >= 0]

    def _change_leaders(self, leader_of: IntArray) -> None:
        """Move devices with their districts to other leaders."""
        if np.array_equal(leader_of, self._led_by):
            return
        self._led_by = leader_of.copy()
        known = np.flatnonzero(self._leader_of != NOWHERE)
        leader = leader_of[self._districts.of_node[self._node_of[known]]]
        self._remember(known[leader != self._leader_of[known]])
        self._leader_of[known] = leader

    def _remember(self, slot: Int32Array | IntArray) -> None:
        """Remember who led these devices until now."""
        slot = slot[self._leader_of[slot] != NOWHERE]
        self._slot = np.concatenate([self._slot, slot.astype(np.int64)])
        self._leader = np.concatenate([self._leader, self._leader_of[slot]])
        self._until = np.concatenate([self._until, self._there_at[slot] + self._horizon_s])

    def _make_room(self, n_slots: int) -> None:
        more = n_slots - len(self._leader_of)
        if more > 0:
            more = max(more, len(self._leader_of))
            self._leader_of = np.concatenate([self._leader_of, np.full(more, NOWHERE, np.int64)])
            self._node_of = np.concatenate([self._node_of, np.full(more, NOWHERE, np.int32)])
            self._there_at = np.concatenate([self._there_at, np.zeros(more)])


def _distinct(codes: IntArray) -> IntArray:
    """Return the distinct codes, rising; by sorting, as hashes of regular codes collide."""
    codes = np.sort(codes)
    return codes[np.diff(codes, prepend=-1) > 0]


def _among(codes: IntArray, some: IntArray) -> BoolArray:
    """Return which codes are among some of them, both distinct and rising."""
    among = np.zeros(len(codes), bool)
    among[np.searchsorted(codes, some)] = True
    return among
