"""Who may join a group that is formed now, and what each needs of it.

Who asks for more than there is stays out alone. Whoever stays out for lack of company, as there is
for its density or for its demand, changes nothing for the others: they are the largest set in which
everybody finds as many as it needs, and that set is the same with and without those left out.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from anonymizer.algorithms.positions.adka import DensityRule
from anonymizer.algorithms.positions.atoms import AREA_LEVEL, Levels, lowest_level_with
from anonymizer.algorithms.positions.demands import Demanded, SharedDemands
from anonymizer.algorithms.positions.density import DensityMap
from anonymizer.algorithms.positions.spanning_forest import road_metres
from anonymizer.domain.arrays import BoolArray, Int32Array, IntArray


class Joining(NamedTuple):
    """Devices that may be grouped, shape (n,).

    `part`: those of different parts never share a group. `k`: of the group, as it is published;
    `need`: how many devices it must have; `least_level`: of the place of the device.
    """

    slot: Int32Array
    part: Int32Array
    k: Int32Array
    need: Int32Array
    least_level: IntArray

    def only(self, chosen: BoolArray) -> "Joining":
        """Return the chosen devices."""
        return Joining._make(column[chosen] for column in self)


@dataclass(frozen=True, slots=True)
class Joiners:
    """Those who want to join now: present devices in `slot`, rising, and the `part` of each.

    `published`: members of groups that live on, which are company as well. `parked`: which slots
    are company for each other alone; None: all are for all.
    """

    density: DensityMap
    levels: Levels
    slot: Int32Array
    part: Int32Array
    published: Int32Array
    parked: BoolArray | None
    now: float

    def joining(self, rule: DensityRule, k_extra: int, demands: SharedDemands | None) -> Joining:
        """Return who may be grouped.

        Notes
        -----
        O(nodes + arcs + devices) for each time that somebody is left out.
        """
        n = len(self.slot)
        own = Demanded(np.zeros(n, np.int32), np.zeros(n))
        if demands is not None:
            own = demands.own(self.slot)
        level = self._level(own)
        states = (own.k > 0) | (own.road_m > 0)
        inside, k, n_in = self._with_enough(rule, k_extra, own.k, level < len(self.levels.at))
        if demands is not None:
            author = np.flatnonzero(inside & states)
            n_present = int(self._counts(inside).sum())
            served = demands.serve(self.slot[author], n_present=n_present, now=self.now)
            if not served.all():
                inside[author[~served]] = False
                inside, k, n_in = self._with_enough(rule, k_extra, own.k, inside)
        need = k + np.int32(k_extra) + self._crowd(inside, k_extra)
        if demands is not None:
            shared = demands.shared(self.slot)
            level_shared = self._level(shared)
            more = np.maximum(k, shared.k) + np.int32(k_extra)
            holds = (more <= n_in) & (level_shared < len(self.levels.at))
            need = np.where(holds, np.maximum(need, more), need)
            k = np.where(holds, np.maximum(k, shared.k), k)
            level = np.where(holds, np.maximum(level, level_shared), level)
        return Joining(self.slot, self.part, k, need, level).only(inside)

    def _level(self, demanded: Demanded) -> IntArray:
        """Return the level that has so much road, the number of levels where none has."""
        if not demanded.road_m.any():
            return np.zeros(len(demanded.road_m), np.int64)
        metres = road_metres(self.density.network)
        return lowest_level_with(self.levels, metres, demanded.road_m)

    def _counts(self, inside: BoolArray) -> BoolArray:
        """Return which slots are company: nobody who waits for another epoch or is silent."""
        counts = np.zeros(len(self.density.node_of), bool)
        counts[self.slot[inside]] = counts[self.published] = True
        return counts

    def _with_enough(
        self, rule: DensityRule, k_extra: int, own: Int32Array, inside: BoolArray
    ) -> tuple[BoolArray, Int32Array, IntArray]:
        """Return who finds as many as it needs, its k, and how many are in its part, shape (n,)."""
        part = self.part
        n_parts = int(part.max(initial=0)) + 1
        inside = inside.copy()
        while True:
            k = np.maximum(rule.beyond(self._near(inside), k_extra), own)
            n_in = np.bincount(part[inside], minlength=n_parts)[part]
            lacking = inside & (k + k_extra > n_in)
            if not lacking.any():
                return inside, k, n_in
            inside &= ~lacking

    def _near(self, inside: BoolArray) -> Int32Array:
        """Return the density at each device, of those that may be its company."""
        counts, node = self._counts(inside), self.density.node_of[self.slot]
        if self.parked is None:
            return self.density.near_only(counts)[node]
        return np.where(
            self.parked[self.slot],
            self.density.near_only(self.parked & counts)[node],
            self.density.near_only(~self.parked & counts)[node],
        )

    def _crowd(self, inside: BoolArray, k_extra: int) -> Int32Array:
        """Return how many devices crowd around each, who may have come to take others' room."""
        if not k_extra:
            return np.zeros(len(inside), np.int32)
        counts, node = self._counts(inside), self.density.node_of[self.slot]
        area_of = self.levels.at[min(AREA_LEVEL, len(self.levels.at) - 1)]
        place = self.density.counted_at[counts]
        n_in = np.bincount(area_of[place[place >= 0]], minlength=len(area_of))[area_of[node]]
        n_around = np.maximum(n_in, self.density.near_only(counts)[node]) - 1
        crowd: Int32Array = np.minimum(n_around, 2 * k_extra).astype(np.int32)
        return crowd
