"""Districts: fixed parts of the network, in each of which groups are formed independently.

Districts belong to the algorithm, like the atoms: anybody can compute them from the network and the
settings. One process may keep all of them, or several workers some each; the groups are the same.

No atom crosses the border of a district. An adversary who knows the districts therefore learns
nothing about where inside its atom a member is.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from anonymizer.algorithms.positions.spanning_forest import planar_coordinates
from anonymizer.algorithms.records.ordering import hilbert_order
from anonymizer.domain.arrays import BoolArray, Int32Array, IntArray
from anonymizer.domain.network import RoadNetwork
from anonymizer.domain.release import starts_of

_SIDE = 2**16
"""Steps of the Hilbert curve along each side of the network."""


@dataclass(frozen=True, slots=True, eq=False)
class Districts:
    """The cut of a network.

    Attributes
    ----------
    n
        Number of districts, a power of two.
    of_node
        District of each node, shape (nodes,), int32.
    first_near_of, near
        Districts that count the devices at each node, in compressed sparse rows: its own, and those
        to whose *halo* it belongs.
    """

    n: int
    of_node: Int32Array
    first_near_of: IntArray
    near: Int32Array

    def nodes(self, leader: int, leader_of: IntArray) -> IntArray:
        """Return the territory of a district: the nodes of all districts that it leads."""
        return np.flatnonzero(leader_of[self.of_node] == leader)

    def counted(self, leader: int, leader_of: IntArray) -> BoolArray:
        """Return which nodes are in the territory of a district or in its halo, shape (nodes,)."""
        node = np.repeat(np.arange(len(self.of_node)), np.diff(self.first_near_of))
        counted = np.zeros(len(self.of_node), bool)
        counted[node[leader_of[self.near] == leader]] = True
        return counted


def cut_into_districts(
    network: RoadNetwork, n: int, *, least_nodes: int, halo_hops: int = 1
) -> Districts:
    """Cut a network into districts of about equal size, along the Hilbert curve of its nodes.

    Parameters
    ----------
    n
        Number of districts, a power of two.
    least_nodes
        A connected piece of a district that is smaller moves to the district of a larger piece
        beside it, if there is one.
    halo_hops
        How many roads the halo reaches beyond the border.

    Raises
    ------
    ValueError
        If there are fewer than `least_nodes` nodes for each district.
    """
    if network.n_nodes < n * least_nodes:
        raise ValueError(f"the network has room for {network.n_nodes // least_nodes} districts")
    of_node = np.empty(network.n_nodes, np.int32)
    of_node[_along_the_curve(network)] = np.arange(network.n_nodes) * n // network.n_nodes
    while _move_splinters(network, of_node, least_nodes):
        pass
    return Districts(n, of_node, *_near(network, of_node, n, halo_hops))


def _along_the_curve(network: RoadNetwork) -> IntArray:
    codes = np.empty((network.n_nodes, 2), np.int32)
    x, y = planar_coordinates(network)
    side = max(float(np.ptp(x)), float(np.ptp(y))) or 1.0
    for column, values in enumerate((x, y)):
        codes[:, column] = (values - values.min()) / side * (_SIDE - 1)
    return hilbert_order(codes, (_SIDE, _SIDE))


def _move_splinters(network: RoadNetwork, of_node: Int32Array, least_nodes: int) -> bool:
    """Move small pieces to the district of the largest piece beside them; return if any moved."""
    inside = without_borders(network, of_node)
    piece_of, size = inside.component_of, np.bincount(inside.component_of)
    crossing = piece_of[_tails(network)] != piece_of[network.neighbour_of]
    a, b = piece_of[_tails(network)[crossing]], piece_of[network.neighbour_of[crossing]]
    # Pieces are numbered by size, so the smallest number beside a piece is its largest neighbour.
    target = np.arange(len(size))
    np.minimum.at(target, a, b)
    moves = (size < least_nodes) & (target < np.arange(len(size)))
    moves &= ~moves[target]
    district = np.empty(len(size), np.int32)
    district[piece_of] = of_node
    of_node[:] = np.where(moves, district[target], district)[piece_of]
    return bool(moves.any())


def _near(
    network: RoadNetwork, of_node: Int32Array, n: int, hops: int
) -> tuple[IntArray, Int32Array]:
    """Return the districts within so many hops of each node, in compressed sparse rows."""
    tail, head = _tails(network), network.neighbour_of
    pairs = np.arange(network.n_nodes) * n + of_node
    for _ in range(hops):
        rows = starts_of(np.bincount(pairs // n, minlength=network.n_nodes))
        # What is near the head of an arc is near its tail.
        n_each = np.diff(rows)[head]
        begin = np.repeat(rows[head] - starts_of(n_each)[:-1], n_each)
        near = pairs[begin + np.arange(n_each.sum())] % n
        pairs = np.unique(np.concatenate([pairs, np.repeat(tail, n_each) * n + near]))
    return starts_of(np.bincount(pairs // n, minlength=network.n_nodes)), (pairs % n).astype(
        np.int32
    )


def without_borders(network: RoadNetwork, of_node: Int32Array) -> RoadNetwork:
    """Return the network without the roads that join two districts; roads are straight."""
    kept = of_node[_tails(network)] == of_node[network.neighbour_of]
    n_arcs = np.bincount(_tails(network)[kept], minlength=network.n_nodes)
    return _labelled(
        replace(
            network,
            first_arc_of=starts_of(n_arcs).astype(np.int32),
            neighbour_of=network.neighbour_of[kept],
            length_m=network.length_m[kept],
            speed_mps=network.speed_mps[kept],
            drivable=network.drivable[kept],
            shapes=None,
        )
    )


def _labelled(network: RoadNetwork) -> RoadNetwork:
    """Return a network with its components numbered by size, as `RoadNetwork` demands."""
    n = network.n_nodes
    arcs = (np.ones(len(network.neighbour_of), np.int8), network.neighbour_of, network.first_arc_of)
    _, label = connected_components(csr_array(arcs, shape=(n, n)), directed=False)
    _, first_node, size = np.unique(label, return_index=True, return_counts=True)
    number = np.empty(len(size), np.int32)
    number[np.lexsort((first_node, -size))] = np.arange(len(size), dtype=np.int32)
    return replace(network, component_of=number[label])


def _tails(network: RoadNetwork) -> IntArray:
    return np.repeat(np.arange(network.n_nodes), np.diff(network.first_arc_of))


def fold(n_in: IntArray, least: int) -> IntArray:
    """Return the part that each part follows, because it has too few devices of its own.

    Parameters
    ----------
    n_in
        Devices in each part; as many parts as a power of two. Parts 2i and 2i + 1 are halves of one
        area, and so on.
    least
        A half with fewer devices follows the other half; an area in which there are not twice as
        many is one part.
    """
    follows = np.arange(len(n_in))
    areas = [(0, len(n_in))]
    while areas:
        start, end = areas.pop()
        if end - start == 1:
            continue
        middle = (start + end) // 2
        left, right = int(n_in[start:middle].sum()), int(n_in[middle:end].sum())
        if min(left, right) >= least:
            areas += [(start, middle), (middle, end)]
        elif left + right < 2 * least:
            # Always the same one: a part that changes whom it follows makes devices wait.
            follows[start:end] = start
        elif left < right:
            areas.append((middle, end))
            follows[start:middle] = middle
        else:
            areas.append((start, middle))
            follows[middle:end] = start
    while (follows != follows[follows]).any():
        follows = follows[follows]
    return follows


class Folds:
    """Which district leads each: a district with too few devices is led by a neighbour.

    Parameters
    ----------
    n, least
        Number of districts, and the devices that one needs to be led by itself.
    epoch_s
        Leaders change only where an epoch begins, by the counts at the end of the last epoch but
        one. So they depend neither on what happens at the moment nor on who reports, and all
        workers know the counts in time.
    """

    def __init__(self, n: int, *, least: int, epoch_s: float) -> None:
        self._least, self._epoch_s = least, epoch_s
        self._epoch = -1
        self._leader_of: IntArray = np.arange(n)
        self._counts: dict[int, dict[int, IntArray]] = {}

    def epoch(self, now: float) -> int:
        """Return the number of the epoch of a time, unix seconds."""
        return int(now // self._epoch_s)

    def count(self, number: int, n_in: IntArray, *, now: float) -> None:
        """Note what a district counts in each; its last counts of an epoch stand for it."""
        self._counts.setdefault(self.epoch(now), {})[number] = n_in

    def leaders(self, now: float) -> IntArray:
        """Return the leader of each district, shape (districts,): each its own until counted."""
        epoch = self.epoch(now)
        if epoch > self._epoch:
            self._epoch = epoch
            past = max((counted for counted in self._counts if counted <= epoch - 2), default=None)
            if past is not None:
                n_in = np.sum(list(self._counts[past].values()), axis=0)
                self._leader_of = fold(n_in, self._least)
                self._counts = {at: counts for at, counts in self._counts.items() if at >= past}
        return self._leader_of

    def state(self) -> dict[str, Any]:
        """Return what changes from tick to tick."""
        counts = [
            (epoch, number, n_in)
            for epoch, of_each in self._counts.items()
            for number, n_in in of_each.items()
        ]
        return {"epoch": self._epoch, "leader_of": self._leader_of, "counts": counts}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self._epoch, self._leader_of, self._counts = state["epoch"], state["leader_of"], {}
        for epoch, number, n_in in state["counts"]:
            self._counts.setdefault(epoch, {})[number] = n_in
