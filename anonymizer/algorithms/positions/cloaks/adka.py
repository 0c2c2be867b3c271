"""The `adka` cloak, ADKA as published: the devices at a node publish the region grown from it.

Promise: every region holds at least k distinct devices. It promises nothing against an adversary
who knows the algorithm: the region reveals its root.
"""

import numpy as np

from anonymizer.algorithms.positions.adka import DensityRule, grow_regions
from anonymizer.algorithms.positions.cloaks.protocol import MemorylessCloak, rotation_after
from anonymizer.algorithms.positions.density import DensityMap
from anonymizer.domain.arrays import Int32Array, starts_of
from anonymizer.domain.outcomes import Outcome
from anonymizer.domain.release import Cloaked, Release


class AdkaCloak(MemorylessCloak):
    """Grows a region from each node at which a device reports.

    Notes
    -----
    Devices at the same node share density, k and region, so one region is grown for each node
    and tick.
    """

    reciprocal = False

    def __init__(self, rule: DensityRule, *, max_nodes: int, rotate_s: float) -> None:
        self._rule = rule
        self._max_nodes = max_nodes
        self._rotate_s = rotate_s

    def set_rule(self, rule: DensityRule, *, k_extra: int) -> None:  # noqa: ARG002  the protocol's
        """Use another rule from now on; `k_extra` does not apply."""
        self._rule = rule

    def cloak(self, density: DensityMap, slot: Int32Array, *, now: float) -> Cloaked:
        """Return one group for each node; its members are the devices that report from it."""
        root, root_of = np.unique(density.node_of[slot], return_inverse=True)
        k = self._rule.k_for(density.near(root))
        regions = grow_regions(density, root, k, max_nodes=self._max_nodes)
        grown = regions.outcome == Outcome.HELD
        # Refused regions have no nodes, so removing their rows leaves `node` unchanged.
        sizes = np.diff(regions.first_node_of)[grown]
        group_of_node = np.repeat(np.arange(len(sizes)), sizes)
        kept = grown[root_of]
        n_nodes = density.network.n_nodes
        release = Release(
            k=k[grown],
            first_node_of=starts_of(sizes),
            # Sorted, because the order of growth starts with the root.
            node=(np.sort(group_of_node * n_nodes + regions.node) % n_nodes).astype(np.int32),
            first_member_of=starts_of(np.bincount(root_of[kept], minlength=len(root))[grown]),
            member=slot[kept][np.argsort(root_of[kept], kind="stable")],
            version=np.full(int(kept.sum()), int(now // self._rotate_s)),
            until=np.full(len(sizes), rotation_after(now, self._rotate_s)),
        )
        outcome = regions.outcome[root_of]
        outcome[kept] = Outcome.PUBLISHED
        return Cloaked(release, outcome)
