"""Where devices are dense and where they are sparse, for the operator: counts by part and band.

A band is a range of densities for which ADKA asks for one k; a part is one of a fixed number of
compact pieces of the network, so there are equally many figures in every city. No coordinate is
among them: part p holds the cells of safe counts from p / 16 to (p + 1) / 16 of all, of which the
gateway publishes the boxes.
"""

from typing import NamedTuple

import numpy as np

from anonymizer.algorithms.positions.adka import DensityRule
from anonymizer.algorithms.positions.density import ABSENT, DensityMap
from anonymizer.algorithms.positions.spanning_forest import compact_parts
from anonymizer.domain.arrays import IntArray
from anonymizer.domain.network import RoadNetwork

N_PARTS = 16
_EVERY_S = 5.0


class DensityBands(NamedTuple):
    """Junctions and devices by part of the network and band of density.

    Attributes
    ----------
    bands
        Densities of each band, as `0-3`; the last has no end, as `10+`.
    n_nodes, n_devices
        Junctions, and devices that count there, shape (parts, bands).
    """

    bands: tuple[str, ...]
    n_nodes: IntArray
    n_devices: IntArray


class DensityWatch:
    """Counts the bands of a density map, at most once in five seconds. O(nodes) each time."""

    def __init__(self, network: RoadNetwork) -> None:
        self._part = compact_parts(network, N_PARTS).astype(np.int64)
        self._looked_s = -np.inf
        self.bands: DensityBands | None = None
        """As of the last look; None before the first."""

    def look(self, density: DensityMap, rule: DensityRule, *, now: float) -> None:
        """Count, if the last look is not of the same five seconds."""
        if 0 <= now - self._looked_s < _EVERY_S:
            return
        self._looked_s = now
        steps = rule.steps
        starts = (0, *steps)
        names = [f"{a}-{b - 1}" for a, b in zip(starts, steps, strict=False)] + [f"{starts[-1]}+"]
        key = self._part * len(starts) + np.searchsorted(steps, density.n_near, side="right")
        at = density.counted_at[density.counted_at != ABSENT]
        n_nodes, n_devices = (
            np.bincount(each, minlength=N_PARTS * len(starts)).reshape(N_PARTS, -1)
            for each in (key, key[at])
        )
        self.bands = DensityBands(tuple(names), n_nodes, n_devices)
