"""Demands of devices for more company or larger places, each shared with companions.

A device that is always in large groups would be known to have asked for them. A demand is therefore
shared: as many devices as the largest usual k are drawn by a secret, and all of them demand the
same from then on, until it is withdrawn. Who follows all groups finds these devices, but not which
of them has asked.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeAlias

import numpy as np

from anonymizer.algorithms.positions.district_routing import KeyArray
from anonymizer.domain.arrays import FloatArray, Int32Array

UNMET = 2**30
"""The k of a device whose demand cannot be met: no group has so many devices."""


class Demand(NamedTuple):
    """What a device demands.

    `k`: devices in its group, itself included; `road_m`: metres of road in its place; 0: as many as
    others demand.
    """

    k: int
    road_m: float


class Demanded(NamedTuple):
    """What devices demand, see `Demand`; both of shape (devices,)."""

    k: Int32Array
    road_m: FloatArray


Demands: TypeAlias = Callable[[Int32Array, Int32Array], Demanded]
"""Returns what the devices in some slots demand, given these slots and those of all present."""


class SharedDemands:
    """Finds companions for those who demand more.

    `shared_by` devices share each demand, the one that stated it included. `keys` returns a number
    for the device of each slot: a keyed hash, which nobody outside knows.

    Notes
    -----
    A mix of two keys ranks the devices present, so that companions are drawn uniformly, and others
    after a restart. While too few are present, the one that has stated the demand is in no group,
    and nobody else demands anything.
    """

    def __init__(self, shared_by: int, keys: Callable[[Int32Array], KeyArray]) -> None:
        self._shared_by = shared_by
        self._keys = keys
        self._companions_of: dict[int, KeyArray] = {}

    def among(
        self, stated: Mapping[int, Demand], slot: Int32Array, present: Int32Array
    ) -> Demanded:
        """Return what the devices in some slots demand.

        `stated` is the demand of each device that has stated one, by its key; `slot` has the shape
        (n,). O((present + n + demands * companions) log).
        """
        for gone in self._companions_of.keys() - stated.keys():
            del self._companions_of[gone]
        key_of_present = np.unique(self._keys(present))
        sharing, k, road_m = [], [], []
        for device, demand in stated.items():
            companions = self._companions(device, key_of_present)
            sharing.append(companions)
            lone = len(companions) < self._shared_by
            k += [UNMET if lone else demand.k] * len(companions)
            road_m += [demand.road_m] * len(companions)
        by_key = np.concatenate([np.zeros(0, np.uint64), *sharing])
        known, row = np.unique(by_key, return_inverse=True)
        # The last entry is of devices that demand nothing.
        most = Demanded(np.zeros(len(known) + 1, np.int32), np.zeros(len(known) + 1))
        np.maximum.at(most.k, row, np.array(k, np.int32))
        np.maximum.at(most.road_m, row, np.array(road_m, np.float64))
        key = self._keys(slot)
        at = np.searchsorted(known, key)
        at[np.append(known, np.uint64(0))[at] != key] = len(known)
        return Demanded(most.k[at], most.road_m[at])

    def _companions(self, device: int, present: KeyArray) -> KeyArray:
        """Return the keys of those who share a demand: of its device alone if there are too few."""
        alone = np.array([device], np.uint64)
        found = self._companions_of.get(device)
        if found is None:
            others = present[present != alone]
            if len(others) < self._shared_by - 1:
                return alone
            rank = _mixed(others ^ _mixed(alone))
            drawn = others[np.argsort(rank)[: self._shared_by - 1]]
            found = self._companions_of[device] = np.append(drawn, alone)
        return found


def _mixed(key: KeyArray) -> KeyArray:
    """Return a hash of each key, by the finalizer of SplitMix64."""
    mixed = (key ^ (key >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))
