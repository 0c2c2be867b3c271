"""The density map: how many distinct devices are at and around every node.

It is derived from *versioned positions* (device -> version, node), never from +1/-1 messages.
Whatever messages are repeated, reordered or late, the counts equal a fresh count over the newest
position of each device.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from anonymizer.algorithms.kernels import kernel
from anonymizer.domain.arrays import (
    BoolArray,
    FloatArray,
    Int32Array,
    UInt8Array,
    check_indices,
)
from anonymizer.domain.hops import Hops, hops_of
from anonymizer.domain.network import RoadNetwork
from anonymizer.domain.outcomes import Outcome

ABSENT = -1
_FIRST_SLOTS = 1024

_STATE = (
    "node_of",
    "version_of",
    "since_of",
    "is_counted",
    "rest_node_of",
    "rest_since",
)

_HELD = int(Outcome.HELD)
_LATE = int(Outcome.LATE)
_DUPLICATE = int(Outcome.DUPLICATE)
_SUPERSEDED = int(Outcome.SUPPRESSED__SUPERSEDED)


@dataclass(slots=True, eq=False, repr=False)
class DensityMap:
    """Newest position of each device, and the counts that follow from them.

    A *slot* is the small integer that stands for a device; the caller knows which device it is.
    """

    network: RoadNetwork
    """The network whose nodes are counted."""
    hops: Hops
    """Its junctions, as the source has them."""
    node_of: Int32Array
    """Node of each slot, `ABSENT` if it is not on the graph, shape (slots,)."""
    version_of: FloatArray
    """Unix seconds of the newest position of each slot, -inf for none, shape (slots,)."""
    since_of: FloatArray
    """Unix seconds since when the id of each slot is heard if ids like it change, -inf if it lasts,
    shape (slots,); see `changing_ids`."""
    is_counted: BoolArray
    """Slots that count where they are, shape (slots,). One whose id changes may belong to a vehicle
    that counts by another id; then it does not."""
    counted_at: Int32Array
    """Node at which each slot counts, `ABSENT` if it does not, shape (slots,)."""
    rest_node_of: Int32Array
    rest_since: FloatArray
    """`rest_node_of`, `rest_since`: node near which each slot has stayed, and unix seconds since
    when, shape (slots,). A slot stays near a node while it is there or at a neighbour: receivers
    are not exact."""
    n_at: Int32Array
    """Distinct devices at each node, shape (nodes,)."""
    n_near: Int32Array
    """Distinct devices at each junction and its neighbours, ADKA's density; a device in the middle
    of a long road is at the nearer end. Shape (nodes,), 0 at nodes that are no junctions: ask
    `near`."""
    n_in: Int32Array
    """Distinct devices in each connected component, shape (components,)."""

    @classmethod
    def empty(cls, network: RoadNetwork) -> "DensityMap":
        """Return the map of a network without any devices."""
        return cls(
            network=network,
            hops=hops_of(network),
            node_of=np.full(_FIRST_SLOTS, ABSENT, np.int32),
            version_of=np.full(_FIRST_SLOTS, -np.inf),
            since_of=np.full(_FIRST_SLOTS, -np.inf),
            is_counted=np.ones(_FIRST_SLOTS, bool),
            counted_at=np.full(_FIRST_SLOTS, ABSENT, np.int32),
            rest_node_of=np.full(_FIRST_SLOTS, ABSENT, np.int32),
            rest_since=np.full(_FIRST_SLOTS, np.inf),
            n_at=np.zeros(network.n_nodes, np.int32),
            n_near=np.zeros(network.n_nodes, np.int32),
            n_in=np.zeros(network.n_components, np.int32),
        )

    def state(self) -> dict[str, Any]:
        """Return the slots, from which all counts follow."""
        return {name: getattr(self, name) for name in _STATE}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state.

        Raises
        ------
        ValueError
            If it is of another network, with more nodes.
        """
        for name in _STATE:
            setattr(self, name, state[name].copy())
        check_indices(self.node_of, self.network.n_nodes)
        check_indices(self.rest_node_of, self.network.n_nodes)
        for counts in (self.n_at, self.n_near, self.n_in):
            counts[:] = 0
        self.counted_at = np.full(len(self.node_of), ABSENT, np.int32)
        self._move(np.arange(len(self.node_of), dtype=np.int32), self.node_of)

    @property
    def n_devices(self) -> int:
        """Number of distinct devices that count."""
        return int(self.n_in.sum())

    @property
    def is_known(self) -> BoolArray:
        """Which slots belong to devices that have reported and have not expired."""
        return self.version_of > -np.inf

    def near(self, node: Int32Array) -> Int32Array:
        """Return the density at the junction that each node belongs to, same shape."""
        return self.n_near[self.hops.junction_of[node]]

    def is_parked(self, *, since: float) -> BoolArray:
        """Return which slots have stayed near one node since a time, shape (slots,)."""
        return (self.rest_since <= since) & (self.node_of >= 0)

    def near_only(self, chosen: BoolArray) -> Int32Array:
        """Return the density at each node, counting only the chosen slots, shape (nodes,).

        O(slots + nodes + arcs).
        """
        hops, n_nodes = self.hops, self.network.n_nodes
        node = hops.junction_of[self.counted_at[chosen & (self.counted_at >= 0)]]
        n_at = np.bincount(node, minlength=n_nodes)
        tail = np.repeat(np.arange(n_nodes), np.diff(hops.first_arc_of))
        around = np.bincount(tail, weights=n_at[hops.neighbour_of], minlength=n_nodes)
        return (n_at + around).astype(np.int32)[hops.junction_of]

    def count_only(self, chosen: BoolArray) -> None:
        """Count these slots, where they are, and no others, shape (slots,).

        O(slots + degrees of the nodes at which something changes).
        """
        changed = np.flatnonzero(chosen != self.is_counted).astype(np.int32)
        self.is_counted[changed] = chosen[changed]
        self._move(changed, self.node_of[changed])

    def advance(
        self,
        slot: Int32Array,
        ts: FloatArray,
        node: Int32Array,
        *,
        since: FloatArray | None = None,
    ) -> UInt8Array:
        """Process a batch of positions; return the outcome of each.

        The newest position of each device moves the device if it is newer than the known one.
        The order within the batch makes no difference.

        `slot` (>= 0), `ts` (unix seconds, finite) and `node` have the shape (n,). A device off the
        graph (`ABSENT`) leaves the map. `since`: unix seconds since when the id is heard, -inf for
        one that lasts; None: all last. The outcome is `HELD` for the position that moved its
        device, else `LATE`, `DUPLICATE` or `SUPPRESSED__SUPERSEDED`. `SUPPRESSED__SUPERSEDED`,
        shape (n,).

        Notes
        -----
        O(slots + n + degrees of the nodes left and entered). Among equal times the larger node
        index wins, so that the outcome does not depend on the order.
        """
        if len(slot):
            self._make_room(int(slot.max()) + 1)
        outcome = advance_versions(self.version_of, slot, ts, node)
        winner = np.flatnonzero(outcome == Outcome.HELD)
        if since is not None:
            self.since_of[slot[winner]] = since[winner]
        _rest(
            self.network.first_arc_of,
            self.network.neighbour_of,
            self.rest_node_of,
            self.rest_since,
            slot[winner],
            ts[winner],
            node[winner],
        )
        self._move(slot[winner], node[winner])
        return outcome

    def expire(self, before: float, *, kept: BoolArray | None = None) -> Int32Array:
        """Forget every device whose newest position is older than a time; return the freed slots.

        `before`: unix seconds; `kept`: slots that must not be forgotten even so, shape (slots,).
        O(slots + degrees of the nodes left).
        """
        stale = (self.version_of < before) & (self.version_of > -np.inf)
        if kept is not None:
            stale &= ~kept
        slot = np.flatnonzero(stale).astype(np.int32)
        self.version_of[slot] = self.since_of[slot] = -np.inf
        self.remove(slot)
        self.is_counted[slot] = True
        return slot

    def remove(self, slot: Int32Array) -> None:
        """Count distinct slots nowhere; their versions are still known."""
        self.rest_node_of[slot], self.rest_since[slot] = ABSENT, np.inf
        self._move(slot, np.full(len(slot), ABSENT, np.int32))

    def _move(self, slot: Int32Array, node: Int32Array) -> None:
        self.node_of[slot] = node
        _move(
            *self.hops,
            self.network.component_of,
            self.counted_at,
            self.n_at,
            self.n_near,
            self.n_in,
            slot,
            np.where(self.is_counted[slot], node, np.int32(ABSENT)),
        )

    def _make_room(self, n_slots: int) -> None:
        have = len(self.node_of)
        if n_slots > have:
            more = max(n_slots, 2 * have) - have
            self.node_of = np.concatenate([self.node_of, np.full(more, ABSENT, np.int32)])
            self.version_of = np.concatenate([self.version_of, np.full(more, -np.inf)])
            self.since_of = np.concatenate([self.since_of, np.full(more, -np.inf)])
            self.is_counted = np.concatenate([self.is_counted, np.ones(more, bool)])
            absent = np.full(more, ABSENT, np.int32)
            self.counted_at = np.concatenate([self.counted_at, absent])
            self.rest_node_of = np.concatenate([self.rest_node_of, absent])
            self.rest_since = np.concatenate([self.rest_since, np.full(more, np.inf)])


def advance_versions(
    version_of: FloatArray, slot: Int32Array, ts: FloatArray, node: Int32Array
) -> UInt8Array:
    """Set the version of each slot to the time of its newest position; see `DensityMap.advance`."""
    ts = np.ascontiguousarray(ts, np.float64)  # or each layout would be compiled
    outcome = _classify(version_of, _newest(version_of, slot, ts, node), slot, ts)
    winner = np.flatnonzero(outcome == Outcome.HELD)
    version_of[slot[winner]] = ts[winner]
    return outcome


@kernel
def _newest(
    version_of: FloatArray, slot: Int32Array, ts: FloatArray, node: Int32Array
) -> Int32Array:
    """Return the index of the position that each slot moves to, -1 for none."""
    newest_of = np.full(len(version_of), -1, np.int32)
    for i in range(len(slot)):
        s = slot[i]
        j = newest_of[s]
        if ts[i] > version_of[s] and (
            j < 0 or ts[i] > ts[j] or (ts[i] == ts[j] and node[i] > node[j])
        ):
            newest_of[s] = i
    return newest_of


@kernel
def _classify(
    version_of: FloatArray, newest_of: Int32Array, slot: Int32Array, ts: FloatArray
) -> UInt8Array:
    """Return the outcome of each position, compared with the old and new newest of its slot."""
    outcome = np.empty(len(slot), np.uint8)
    for i in range(len(slot)):
        known = version_of[slot[i]]
        j = newest_of[slot[i]]
        if i == j:
            outcome[i] = _HELD
        elif ts[i] < known:
            outcome[i] = _LATE
        elif ts[i] == known or ts[i] == ts[j]:
            outcome[i] = _DUPLICATE
        else:
            outcome[i] = _SUPERSEDED
    return outcome


@kernel
def _rest(
    first_arc_of: Int32Array,
    neighbour_of: Int32Array,
    rest_node_of: Int32Array,
    rest_since: FloatArray,
    slot: Int32Array,
    ts: FloatArray,
    node: Int32Array,
) -> None:
    """Begin a new rest for each distinct slot that is no longer near its node of rest."""
    for i in range(len(slot)):
        s, v = slot[i], rest_node_of[slot[i]]
        near = v >= 0 and node[i] == v
        if v >= 0 and not near:
            for arc in range(first_arc_of[v], first_arc_of[v + 1]):
                near |= neighbour_of[arc] == node[i]
        if not near:
            rest_node_of[s], rest_since[s] = node[i], ts[i] if node[i] >= 0 else np.inf


@kernel
def _move(
    junction_of: Int32Array,
    first_arc_of: Int32Array,
    neighbour_of: Int32Array,
    component_of: Int32Array,
    counted_at: Int32Array,
    n_at: Int32Array,
    n_near: Int32Array,
    n_in: Int32Array,
    slot: Int32Array,
    node: Int32Array,
) -> None:
    """Count distinct devices at other nodes (negative: nowhere)."""
    for i in range(len(slot)):
        old, new = counted_at[slot[i]], node[i]
        if old == new:
            continue
        counted_at[slot[i]] = new
        for v, change in ((old, -1), (new, 1)):
            if v < 0:
                continue
            n_at[v] += change
            n_in[component_of[v]] += change
            junction = junction_of[v]
            n_near[junction] += change
            for arc in range(first_arc_of[junction], first_arc_of[junction + 1]):
                n_near[neighbour_of[arc]] += change
