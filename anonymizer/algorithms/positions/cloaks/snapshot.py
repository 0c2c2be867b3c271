"""The `snapshot` cloak, with reciprocal regions: at least k devices publish an identical region.

Groups depend on where all devices are, never on which of them report. When one member reports,
the whole group publishes: a message for that member only would distinguish it from the others.

The walk that forms a group ends at its outermost devices, so the nodes that it visited would tell
where these are. The region therefore consists of atoms that several devices share, as in `session`.

Not promised: that the same devices share a region at the next tick. The linked regions of one
pseudonym can be intersected.

References
----------
.. [1] P. Kalnis et al., "Preventing Location-Based Identity Inference in Anonymous Spatial
   Queries", IEEE TKDE 19(12), 2007 (reciprocity).
"""

import numpy as np

from anonymizer.algorithms.positions.adka import DensityRule
from anonymizer.algorithms.positions.atoms import Company, Levels, lowest_shared_level
from anonymizer.algorithms.positions.cloaks.protocol import MemorylessCloak, rotation_after
from anonymizer.algorithms.positions.density import DensityMap
from anonymizer.algorithms.positions.grouping import TOO_FEW, Groups, form_groups
from anonymizer.algorithms.positions.regions import cover
from anonymizer.algorithms.positions.spanning_forest import SpanningForest
from anonymizer.domain.arrays import Int32Array, starts_of
from anonymizer.domain.network import RoadNetwork
from anonymizer.domain.outcomes import Outcome
from anonymizer.domain.release import Cloaked, Release


class SnapshotCloak(MemorylessCloak):
    """Partitions all present devices into new groups at every tick.

    Parameters
    ----------
    k_extra
        Members beyond k, to allow for devices that the adversary controls.
    """

    reciprocal = True

    def __init__(
        self,
        network: RoadNetwork,
        forest: SpanningForest,
        levels: Levels,
        rule: DensityRule,
        *,
        max_nodes: int,
        rotate_s: float,
        k_extra: int,
        company: Company,
    ) -> None:
        self._network = network
        self._forest = forest
        self._levels = levels
        self._n_largest = np.array([len(np.unique(levels.at[levels.largest]))])
        self._rule = rule
        self._max_nodes = max_nodes
        self._company = company
        self._rotate_s = rotate_s
        self._k_extra = k_extra

    def set_rule(self, rule: DensityRule, *, k_extra: int) -> None:
        """Use this rule for groups formed from now on."""
        self._rule = rule
        self._k_extra = k_extra

    def cloak(self, density: DensityMap, slot: Int32Array, *, now: float) -> Cloaked:
        """Return the groups in which at least one member reports. O(nodes + devices)."""
        groups = self._groups(density)
        release = self._release(groups, density, now)
        is_large = self._levels.is_large
        good = np.diff(release.first_node_of) > 0
        node = density.node_of[slot]
        group_of = groups.group_at[node]
        grouped = group_of >= 0
        outcome = np.full(len(slot), Outcome.SUPPRESSED__REGION_TOO_LARGE, np.uint8)
        outcome[grouped] = np.where(
            good[group_of[grouped]], Outcome.PUBLISHED, Outcome.SUPPRESSED__REGION_TOO_LARGE
        )
        outcome[grouped & ~is_large[node]] = Outcome.SUPPRESSED__REGION_TOO_SMALL
        outcome[group_of == TOO_FEW] = Outcome.SUPPRESSED__TOO_FEW_DEVICES
        # A group is within one component.
        good &= is_large[density.node_of[release.member[release.first_member_of[:-1]]]]
        reported = np.zeros(len(good), bool)
        reported[group_of[grouped]] = True
        return Cloaked(release.only(reported & good), outcome)

    def _groups(self, density: DensityMap) -> Groups:
        """Return the groups of all devices; regions are made later."""
        near = density.n_near[density.hops.junction_of]
        need = self._rule.beyond(near, self._k_extra) + np.int32(self._k_extra)
        return form_groups(self._forest, density.n_at, need, min_nodes=1, max_nodes=self._max_nodes)

    def _release(self, groups: Groups, density: DensityMap, now: float) -> Release:
        """Return all groups with their members; a region above the cap is empty."""
        present = np.flatnonzero(density.counted_at >= 0).astype(np.int32)
        group_of = groups.group_at[density.node_of[present]]
        grouped, group_of = present[group_of >= 0], group_of[group_of >= 0]
        first_member_of = starts_of(np.bincount(group_of, minlength=len(groups.k)))
        member = grouped[np.argsort(group_of, kind="stable")]
        place = density.node_of[member]
        n_at = np.bincount(place, minlength=self._network.n_nodes)
        company = self._company.beyond(self._k_extra)
        n = np.array([len(member)])
        few = self._levels.are_few(n, self._n_largest, k_extra=self._k_extra)
        level = lowest_shared_level(self._levels, n_at, place, company, few=few)
        first_node_of, node = cover(
            self._network, self._levels, first_member_of, place, level, max_nodes=self._max_nodes
        )
        return Release(
            k=(groups.k - self._k_extra).astype(np.int32),
            first_node_of=first_node_of,
            node=node,
            first_member_of=first_member_of,
            member=member,
            version=np.full(len(member), int(now // self._rotate_s)),
            until=np.full(len(groups.k), rotation_after(now, self._rotate_s)),
        )
