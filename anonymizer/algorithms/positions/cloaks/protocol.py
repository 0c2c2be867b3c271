"""What the operator asks of a way to form regions."""

from typing import Protocol

import numpy as np

from anonymizer.algorithms.positions.adka import DensityRule
from anonymizer.algorithms.positions.density import DensityMap
from anonymizer.domain.arrays import BoolArray, Int32Array
from anonymizer.domain.release import Cloaked


class Cloak(Protocol):
    """Groups devices and gives each group one region.

    What it promises beyond k devices in every region is said by each implementation. Equal
    positions, times and history give equal groups.
    """

    def cloak(self, density: DensityMap, slot: Int32Array, *, now: float) -> Cloaked:
        """Group the devices that report in this tick, and whom else it takes.

        Parameters
        ----------
        density
            Where everybody is, this tick's reports included.
        slot
            Reporting devices: distinct, on the graph, rising.
        now
            Unix seconds the tick closes at.
        """

    @property
    def reciprocal(self) -> bool:
        """Whether all members of a group publish its region, so that they hide each other."""

    def places(self, density: DensityMap) -> Int32Array:
        """Return the node at which each slot counts as being, negative for nowhere."""

    def kept(self, n_slots: int) -> BoolArray:
        """Return which slots must not be given to other devices yet, shape (n_slots,)."""

    def n_waiting(self, density: DensityMap) -> int:
        """Return how many devices on the graph wait for a later tick to be grouped."""

    def set_rule(self, rule: DensityRule, *, k_extra: int) -> None:
        """Let groups that are formed from now on hold so many devices; no other changes."""

    def retire(self, slot: Int32Array) -> None:
        """Let go of the groups of these devices: verification refused them."""


class MemorylessCloak:
    """What a cloak without a past answers."""

    def places(self, density: DensityMap) -> Int32Array:
        """Everybody is where they last said they were."""
        return density.node_of

    def kept(self, n_slots: int) -> BoolArray:
        """Nobody is kept."""
        return np.zeros(n_slots, bool)

    def n_waiting(self, density: DensityMap) -> int:  # noqa: ARG002  the protocol's
        """Nobody waits."""
        return 0

    def retire(self, slot: Int32Array) -> None:
        """There is nothing to let go of."""

    def set_rule(self, rule: DensityRule, *, k_extra: int) -> None:
        """Demand what it always does."""
