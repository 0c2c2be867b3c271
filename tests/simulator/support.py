"""Support for tests of the simulator: small networks, and a virtual clock."""

import math
from collections.abc import Sequence

import numpy as np

from anonymizer.domain.network import RoadNetwork
from anonymizer.networks import from_arrays

Road = tuple[int, int, bool, bool]
"""Ends, and whether it may be driven forward and backward."""


def network(
    roads: Sequence[Road], *, n_nodes: int, speeds_mps: Sequence[float] = (), lon: float = 10.0
) -> RoadNetwork:
    """Return a network with its nodes on a spiral, so that no two roads are equally long."""
    angle = 2.4 * np.arange(n_nodes)
    radius = 0.001 * np.sqrt(np.arange(n_nodes))
    ends = np.array([road[:2] for road in roads], np.int64).reshape(-1, 2)
    ways = np.array([road[2:] for road in roads], np.bool_).reshape(-1, 2)
    return from_arrays(
        node_id=np.arange(n_nodes),
        lat=50.0 + radius * np.sin(angle),
        lon=(lon + radius * np.cos(angle) + 180.0) % 360.0 - 180.0,
        u=ends[:, 0],
        v=ends[:, 1],
        length_m=np.full(len(ends), math.nan),
        speed_mps=np.array(speeds_mps or [10.0] * len(ends)),
        forward=ways[:, 0],
        backward=ways[:, 1],
    )


class VirtualClock:
    """A clock that advances only by sleeping, without a real delay."""

    def __init__(self, start_s: float = 1_700_000_000.0) -> None:
        self.slept_s = 0.0
        self.n_sleeps = 0
        self._start_s = start_s

    def now(self) -> float:
        return self._start_s + self.slept_s

    def monotonic(self) -> float:
        return self.slept_s

    async def sleep(self, delay_s: float) -> None:
        assert delay_s > 0
        self.slept_s += delay_s
        self.n_sleeps += 1
