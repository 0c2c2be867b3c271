"""The interface of a cloak, which forms groups and their regions for the operator."""

from typing import Any, Protocol, TypeAlias

import numpy as np

from anonymizer.algorithms.positions.adka import DensityRule
from anonymizer.algorithms.positions.density import DensityMap
from anonymizer.domain.arrays import BoolArray, Int32Array
from anonymizer.domain.release import Cloaked

State: TypeAlias = dict[str, Any]
"""What an object must know to go on elsewhere: arrays, numbers, None, and states, by name."""


class Cloak(Protocol):
    """Groups devices and gives each group one region.

    Each implementation documents what it promises beyond k devices in every region. Equal
    positions, times and history give equal groups.
    """

    def cloak(self, density: DensityMap, slot: Int32Array, *, now: float) -> Cloaked:
        """Group the devices that report in this tick, together with others where necessary.

        Only devices that count (`counted_at` of `density`) may join a group. `slot`: reporting
        devices, distinct, on the graph, rising; `now`: unix seconds at which the tick closes.
        """

    def last_seen(self, slot: Int32Array, node: Int32Array) -> None:
        """Take note of devices that left the graph in this tick, before `cloak`.

        Parameters
        ----------
        slot, node
            Distinct devices, and the newest node at which each was on its way out, shape (n,).
        """

    @property
    def reciprocal(self) -> bool:
        """Whether all members of a group publish its region, and so hide each other."""

    def places(self, density: DensityMap) -> Int32Array:
        """Return the node at which each slot is counted, negative for none."""

    def kept(self, n_slots: int) -> BoolArray:
        """Return which slots must not be reused for other devices yet, shape (n_slots,)."""

    def n_waiting(self, density: DensityMap) -> int:
        """Return how many devices on the graph wait for a later tick to be grouped."""

    def set_rule(self, rule: DensityRule, *, k_extra: int) -> None:
        """Use this rule for groups formed from now on; existing groups do not change."""

    def retire(self, slot: Int32Array) -> None:
        """End the groups of these devices, because verification refused them."""

    @property
    def lasting(self) -> bool:
        """Whether groups live for longer than a tick."""

    def state(self) -> State:
        """Return what changes from tick to tick; a cloak that is restored from it goes on alike."""

    def restore(self, state: State) -> None:
        """Go on from a state."""


class MemorylessCloak:
    """Defaults for a cloak that keeps no state between ticks."""

    lasting = False

    def places(self, density: DensityMap) -> Int32Array:
        """Count every device at its newest position."""
        return density.node_of

    def kept(self, n_slots: int) -> BoolArray:
        """Keep no slot."""
        return np.zeros(n_slots, bool)

    def n_waiting(self, density: DensityMap) -> int:  # noqa: ARG002  the protocol's
        """Return 0: no device waits."""
        return 0

    def last_seen(self, slot: Int32Array, node: Int32Array) -> None:
        """Do nothing: a device that has left the graph is in no group."""

    def retire(self, slot: Int32Array) -> None:
        """Do nothing: no group lasts beyond its tick."""

    def state(self) -> State:
        """Return that there is none."""
        return {}

    def restore(self, state: State) -> None:
        """Do nothing: there is no state."""

    def set_rule(self, rule: DensityRule, *, k_extra: int) -> None:
        """Do nothing: the rule is fixed."""


def rotation_after(now: float, rotate_s: float) -> float:
    """Return when the pseudonyms of a memoryless cloak change next, unix seconds."""
    return (now // rotate_s + 1) * rotate_s
