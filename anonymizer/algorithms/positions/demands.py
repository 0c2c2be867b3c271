"""Demands of devices for more company or larger places, each shared with a population of holders.

A device that is always in large groups would be known to have asked for them. A demand is therefore
shared with others, its *companions*, and outlives whoever has stated it: for as long as it lasts, a
secret decides of each device, and for its whole stay, whether it holds the demand. Those who leave
are followed by others who arrive. Neither that the author stays, nor that it leaves, comes back or
asks for less, makes it differ from the other holders.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from anonymizer.algorithms.positions.device_keys import KeyArray
from anonymizer.domain.arrays import BoolArray, FloatArray, Int32Array

TERM_S = 86_400.0
"""A demand is held for so long after it was stated, and again if its author was there meanwhile."""
_TIMES = 1.5
"""So many times the largest usual k are to hold each demand: how many are there varies."""
_MOST_SHARED = 0.5
"""Share of the devices that hold demands of others, at most, and of one publisher a quarter of it;
the first of each publisher is exempt from the latter."""
_MOST_POPULATIONS = 256


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


@dataclass(slots=True)
class _Population:
    """Those who hold a demand: its author, and each other device with the probability `share`.

    `until_s`: when it ends unless `wanted`: unless its author has been served since it began.
    """

    demand: Demand
    publisher: int
    share: float
    until_s: float
    wanted: bool


class SharedDemands:
    """Finds companions for those who demand more.

    `shared_by` devices at least are expected to hold each demand, the author included; `keys` and
    `publishers` return a number for the device of each slot, and for who speaks for it: keyed
    hashes, which nobody outside knows. `stated` is what devices demand, by their keys.

    Notes
    -----
    Which devices hold a demand follows from two keys alone, so that nothing is remembered about
    any of them. The share of a population never falls, because whoever was released from a demand
    did not state it. Authors for whom there are too few devices, or no share left, are not served:
    others do not pay for them. O(present + demands) for each forming of groups, and O(n) for each
    population.
    """

    def __init__(
        self,
        shared_by: int,
        keys: Callable[[Int32Array], KeyArray],
        publishers: Callable[[Int32Array], KeyArray] | None = None,
    ) -> None:
        self._shared_by = shared_by
        self._keys = keys
        self._publishers = publishers or keys
        self._populations: dict[int, _Population] = {}
        self.stated: Mapping[int, Demand] = {}

    def __bool__(self) -> bool:
        """Return whether anybody demands anything."""
        return bool(self.stated or self._populations)

    def own(self, slot: Int32Array) -> Demanded:
        """Return what the devices in some slots have stated, shape (n,)."""
        own = Demanded(np.zeros(len(slot), np.int32), np.zeros(len(slot)))
        stated = np.fromiter(self.stated, np.uint64, len(self.stated))
        key = self._keys(slot)
        for row in np.flatnonzero(np.isin(key, stated)).tolist():
            own.k[row], own.road_m[row] = self.stated[int(key[row])]
        return own

    def serve(self, slot: Int32Array, *, n_present: int, now: float) -> BoolArray:
        """Return for which of these authors enough others hold their demands, shape (n,).

        Their demands could be met; `n_present` devices are there, at `now`, unix seconds.
        """
        self._go_on(n_present, now)
        keys, publishers = self._keys(slot).tolist(), self._publishers(slot).tolist()
        found = [
            self._serve(key, publisher, n_present, now)
            for key, publisher in zip(keys, publishers, strict=True)
        ]
        return np.array(found, np.bool_)

    def shared(self, slot: Int32Array) -> Demanded:
        """Return what the devices in some slots hold, of their own and of others, shape (n,)."""
        held = Demanded(np.zeros(len(slot), np.int32), np.zeros(len(slot)))
        key = self._keys(slot)
        for author, population in self._populations.items():
            holds = _hold(key, author, population.share)
            np.maximum(held.k, population.demand.k, out=held.k, where=holds)
            np.maximum(held.road_m, population.demand.road_m, out=held.road_m, where=holds)
        return held

    def state(self) -> list[Any]:
        """Return the populations."""
        return [
            [author, *each.demand, each.publisher, each.share, each.until_s, each.wanted]
            for author, each in self._populations.items()
        ]

    def restore(self, state: list[Any]) -> None:
        """Go on from a state."""
        self._populations = {
            author: _Population(Demand(k, road_m), *rest) for author, k, road_m, *rest in state
        }

    def _serve(self, author: int, publisher: int, n_present: int, now: float) -> bool:
        demand = self.stated[author]
        found = self._populations.get(author)
        if found is None:
            share = self._share_for(n_present)
            of_publisher = self._sum(publisher)
            if (
                len(self._populations) >= _MOST_POPULATIONS
                or self._sum() + share > _MOST_SHARED
                or (of_publisher and of_publisher + share > _MOST_SHARED / 4)
            ):
                return False
            found = _Population(demand, publisher, share, now + TERM_S, wanted=True)
            self._populations[author] = found
        # Until the term is over all hold the most that was asked for: only its author would change.
        found.demand = Demand(
            max(found.demand.k, demand.k), max(found.demand.road_m, demand.road_m)
        )
        found.wanted = True
        return self._is_shared(found, n_present)

    def _go_on(self, n_present: int, now: float) -> None:
        """End populations whose term is over, and let those grow that have become too few."""
        for author, each in list(self._populations.items()):
            if each.until_s <= now:
                if not each.wanted or author not in self.stated:
                    del self._populations[author]
                    continue
                each.until_s, each.wanted = now + TERM_S, False
                each.demand = self.stated[author]
            if not self._is_shared(each, n_present):
                more = self._share_for(n_present) - each.share
                each.share += max(0.0, min(more, _MOST_SHARED - self._sum()))

    def _is_shared(self, population: _Population, n_present: int) -> bool:
        return population.share * (n_present - 1) >= self._shared_by - 1

    def _share_for(self, n_present: int) -> float:
        companions = _TIMES * self._shared_by - 1
        return companions / max(n_present - 1, 1) if self._shared_by > 1 else 0.0

    def _sum(self, publisher: int | None = None) -> float:
        found = self._populations.values()
        return sum(each.share for each in found if publisher in (None, each.publisher))


def _hold(key: KeyArray, author: int, share: float) -> BoolArray:
    """Return which devices hold a demand; the same ones whenever it is asked, shape (n,)."""
    by = np.array([author], np.uint64)
    holds: BoolArray = (_mixed(key ^ _mixed(by)) * 2.0**-64 < share) | (key == by)
    return holds


def _mixed(key: KeyArray) -> KeyArray:
    """Return a hash of each key, by the finalizer of SplitMix64."""
    mixed = (key ^ (key >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))
