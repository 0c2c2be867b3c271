"""The `snapshot` cloak, with reciprocal regions: at least k devices publish an identical region.

Groups depend on where all devices are, never on which of them report. When one member reports,
the whole group publishes: a message for that member only would distinguish it from the others.

Not promised: that the same devices share a region at the next tick. The linked regions of one
pseudonym can be intersected.

References
----------
.. [1] P. Kalnis et al., "Preventing Location-Based Identity Inference in Anonymous Spatial
   Queries", IEEE TKDE 19(12), 2007 (reciprocity).
"""

import numpy as np

from anonymizer.algorithms.positions.adka import DensityRule
from anonymizer.algorithms.positions.cloaks.protocol import MemorylessCloak
from anonymizer.algorithms.positions.density import DensityMap
from anonymizer.algorithms.positions.grouping import (
    TOO_FEW,
    TOO_LARGE,
    TOO_SMALL,
    Groups,
    form_groups,
)
from anonymizer.algorithms.positions.spanning_forest import SpanningForest
from anonymizer.domain.arrays import FloatArray, Int32Array
from anonymizer.domain.outcomes import Outcome
from anonymizer.domain.release import Cloaked, Release, starts_of


class SnapshotCloak(MemorylessCloak):
    """Partitions all present devices into new groups at every tick.

    Parameters
    ----------
    forest
        Spanning forest of the network.
    rule
        k by density; a group satisfies the largest k that its members demand.
    min_nodes, max_nodes
        Bounds on the nodes of a region.
    metres_at, min_metres
        Road metres that each node stands for, and the fewest that a region covers.
    rotate_s
        Lifetime of a pseudonym.
    k_extra
        Members beyond k, to allow for devices that the adversary controls.
    """

    reciprocal = True

    def __init__(
        self,
        forest: SpanningForest,
        rule: DensityRule,
        *,
        min_nodes: int,
        max_nodes: int,
        metres_at: FloatArray,
        min_metres: float,
        rotate_s: float,
        k_extra: int,
    ) -> None:
        self._forest = forest
        self._rule = rule
        self._min_nodes = min_nodes
        self._max_nodes = max_nodes
        self._metres_at = metres_at
        self._min_metres = min_metres
        self._rotate_s = rotate_s
        self._k_extra = k_extra

    def set_rule(self, rule: DensityRule, *, k_extra: int) -> None:
        """Use this rule for groups formed from now on."""
        self._rule = rule
        self._k_extra = k_extra

    def cloak(self, density: DensityMap, slot: Int32Array, *, now: float) -> Cloaked:
        """Return the groups in which at least one member reports. O(nodes + devices)."""
        groups = form_groups(
            self._forest,
            density.n_at,
            self._rule.k_for(density.n_near) + np.int32(self._k_extra),
            min_nodes=self._min_nodes,
            max_nodes=self._max_nodes,
            metres_at=self._metres_at,
            min_metres=self._min_metres,
        )
        group_of = groups.group_at[density.node_of[slot]]
        outcome = np.full(len(slot), Outcome.PUBLISHED, np.uint8)
        outcome[group_of == TOO_FEW] = Outcome.SUPPRESSED__TOO_FEW_DEVICES
        outcome[group_of == TOO_SMALL] = Outcome.SUPPRESSED__REGION_TOO_SMALL
        outcome[group_of == TOO_LARGE] = Outcome.SUPPRESSED__REGION_TOO_LARGE
        reported = np.zeros(len(groups.k), bool)
        reported[group_of[group_of >= 0]] = True
        return Cloaked(self._release(groups, density, now).only(reported), outcome)

    def _release(self, groups: Groups, density: DensityMap, now: float) -> Release:
        """Return all groups with their members."""
        present = np.flatnonzero(density.node_of >= 0).astype(np.int32)
        group_of = groups.group_at[density.node_of[present]]
        present, group_of = present[group_of >= 0], group_of[group_of >= 0]
        sizes = np.bincount(group_of, minlength=len(groups.k))
        return Release(
            k=(groups.k - self._k_extra).astype(np.int32),
            first_node_of=groups.first_node_of,
            node=groups.node,
            first_member_of=starts_of(sizes),
            member=present[np.argsort(group_of, kind="stable")],
            version=np.full(len(present), int(now // self._rotate_s)),
        )
