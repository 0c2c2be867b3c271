"""Routing: which districts get a position. A pure function of its device's own positions.

A district gets the positions in it. When a device is in another for the first time, the one that it
has left is told so, once and not where it went. A device that is off the graph belongs to the
district in which it was last.
"""

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from anonymizer.algorithms.positions.device_keys import KeyArray
from anonymizer.algorithms.positions.districts import Districts
from anonymizer.domain.arrays import BoolArray, FloatArray, Int32Array, IntArray
from anonymizer.domain.discreet import discreet

NOWHERE = -1


@discreet
class Rows(NamedTuple):
    """Newest positions of distinct devices on their way to one district, shape (n,).

    `key`: equal for equal devices, whoever handles them; nothing else about the device is known to
    a district. `handle` is carried along unchanged. `ts`: unix seconds. `node`: negative if off the
    graph or in another district. `left_from`: node at which the device is covered if it left the
    graph, negative for unknown. `since`: unix seconds since when the id is heard, `LASTS` if it
    does not change.
    """

    key: KeyArray
    handle: IntArray
    ts: FloatArray
    node: Int32Array
    left_from: Int32Array
    since: FloatArray

    def take(self, rows: IntArray | BoolArray) -> "Rows":
        """Return some of the rows."""
        return Rows._make(column[rows] for column in self)


def no_rows() -> Rows:
    """Return no rows."""
    none = np.zeros(0, np.int32)
    return Rows(np.zeros(0, np.uint64), np.zeros(0, np.int64), np.zeros(0), none, none, np.zeros(0))


def join_rows(parts: list[Rows]) -> Rows:
    """Return the rows of all parts."""
    if not parts:
        return no_rows()
    return Rows._make(np.concatenate(columns) for columns in zip(*parts, strict=True))


@discreet
class Sent(NamedTuple):
    """The rows of a tick for each district that gets any.

    `source`: which of the routed positions each row is. `home`: district that each routed position
    belongs to, and `left`: that its device has left for another by it, `NOWHERE` for none, shape
    (n,).
    """

    district: list[int]
    rows: list[Rows]
    source: list[IntArray]
    home: IntArray
    left: IntArray


class Router:
    """Routes the newest positions of devices, and remembers in which district each is."""

    def __init__(self, districts: Districts) -> None:
        self._districts = districts
        self._home_of: IntArray = np.full(0, NOWHERE, np.int64)

    def homes(self, slot: Int32Array | IntArray) -> IntArray:
        """Return the district that the device in each slot belongs to, `NOWHERE` for none yet."""
        self._make_room(int(slot.max(initial=-1)) + 1)
        return self._home_of[slot]

    def route(self, slot: Int32Array, rows: Rows) -> Sent:
        """Return the rows for each district.

        `slot`: distinct devices by the caller's slots, shape (n,); `rows`: their newest positions.
        """
        before, n = self.homes(slot), self._districts.n
        of_node = np.append(self._districts.of_node, np.int32(NOWHERE))
        on_graph = rows.node >= 0
        home = np.where(on_graph, of_node[np.maximum(rows.node, NOWHERE)], before)
        self._home_of[slot] = home
        left = np.where(home != before, before, NOWHERE)
        leaves, comes = np.flatnonzero(left != NOWHERE), np.flatnonzero(home != NOWHERE)
        gone = np.full(len(leaves), NOWHERE, np.int32)
        both = join_rows([rows.take(leaves)._replace(node=gone, left_from=gone), rows.take(comes)])
        # Who drove through another district and then off the graph is covered where it was before.
        elsewhere = of_node[both.left_from] != np.concatenate([left[leaves], home[comes]])
        both = both._replace(left_from=np.where(elsewhere, np.int32(NOWHERE), both.left_from))
        source = np.concatenate([leaves, comes])
        district = np.concatenate([left[leaves], home[comes]])
        order = np.argsort(district.astype(np.int16), kind="stable")
        source, district, sent = source[order], district[order], both.take(order)
        bounds = np.flatnonzero(np.diff(district, prepend=-1, append=n))
        parts = [slice(a, b) for a, b in pairwise(bounds.tolist())]
        return Sent(
            [int(district[part.start]) for part in parts],
            [Rows._make(column[part] for column in sent) for part in parts],
            [source[part] for part in parts],
            home,
            left,
        )

    def forget(self, slots: Int32Array) -> None:
        """Forget where the devices of these slots were: others may have them now."""
        self._home_of[slots[slots < len(self._home_of)]] = NOWHERE

    def state(self) -> dict[str, Any]:
        """Return what changes from tick to tick."""
        return {"home_of": self._home_of}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self._home_of = state["home_of"].copy()

    def _make_room(self, n_slots: int) -> None:
        more = n_slots - len(self._home_of)
        if more > 0:
            more = max(more, len(self._home_of))
            self._home_of = np.concatenate([self._home_of, np.full(more, NOWHERE, np.int64)])
