"""Crowds: devices on random walks over a network, as input for kernels."""

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import numpy as np

from anonymizer.algorithms.positions.density import DensityMap
from anonymizer.domain.arrays import FloatArray, Int32Array, IntArray
from anonymizer.domain.network import RoadNetwork
from anonymizer.networks import load_network

_SPREAD_DEG = 1e-4  # about ten metres: near the node, not on it


class Moves(NamedTuple):
    """A batch of moves, the arguments of `DensityMap.advance`."""

    slot: Int32Array
    ts: FloatArray
    node: Int32Array


@cache
def network_named(source: str) -> RoadNetwork:
    """Return a network, loaded once in a run."""
    return load_network(source)


class Crowd:
    """Devices on a network; equal arguments give equal walks.

    Parameters
    ----------
    network
        The road network.
    n_devices
        Number of devices, with slots `0..n_devices - 1`.
    """

    def __init__(self, network: RoadNetwork, n_devices: int) -> None:
        self.network = network
        self.n_devices = n_devices
        self._rng = np.random.default_rng(n_devices)
        self._node: IntArray = self._rng.integers(network.n_nodes, size=n_devices)
        self._now = 0.0

    def density(self) -> DensityMap:
        """Return a density map with all devices."""
        density = DensityMap.empty(self.network)
        density.advance(*self.moves(self.n_devices))
        return density

    def steps(self, n_steps: int) -> Iterator[Moves]:
        """Yield the moves of all devices, step by step."""
        return (self.moves(self.n_devices) for _ in range(n_steps))

    def moves(self, n_moving: int) -> Moves:
        """Move some randomly drawn devices to neighbouring nodes, one second later."""
        slot = np.sort(self._rng.permutation(self.n_devices)[:n_moving])
        first = self.network.first_arc_of[self._node[slot]]
        degree = self.network.first_arc_of[self._node[slot] + 1] - first
        arc = first + (self._rng.random(n_moving) * degree).astype(np.int64)
        self._node[slot] = self.network.neighbour_of[arc]
        self._now += 1.0
        node = self._node[slot].astype(np.int32)
        return Moves(slot.astype(np.int32), np.full(n_moving, self._now), node)

    def positions(self, node: Int32Array) -> tuple[FloatArray, FloatArray]:
        """Return latitudes and longitudes some metres from these nodes."""
        aside = self._rng.normal(scale=_SPREAD_DEG, size=(2, len(node)))
        return self.network.lat[node] + aside[0], self.network.lon[node] + aside[1]
