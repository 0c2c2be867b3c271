"""The cloaking operator of the positions flow: a batch of located positions in, a release out.

A pure function of state, batch and time. A `Cloak` forms the regions; the operator verifies their
minimum promise with code that is independent of the cloak.
"""

from dataclasses import dataclass

import numpy as np

from anonymizer.algorithms.positions.adka import DensityRule
from anonymizer.algorithms.positions.cloaks import Cloak
from anonymizer.algorithms.positions.density import DensityMap
from anonymizer.algorithms.positions.pace import Pace
from anonymizer.algorithms.positions.protection import IN_ZONE
from anonymizer.algorithms.positions.verification import Transcripts, groups_that_hold
from anonymizer.domain.arrays import BoolArray, FloatArray, Int32Array, IntArray, UInt8Array
from anonymizer.domain.network import RoadNetwork
from anonymizer.domain.outcomes import Outcome
from anonymizer.domain.release import Release


@dataclass(frozen=True, slots=True, eq=False)
class TickResult:
    """The result of one tick.

    Attributes
    ----------
    outcome
        Outcome of each position, shape (n,). `PUBLISHED`: it is in the release. `HELD`: it waits
        until its device is grouped; a newer position of the device replaces it.
    release
        Verified groups.
    freed
        Slots whose devices are no longer present.
    """

    outcome: UInt8Array
    release: Release
    freed: Int32Array


def classify_time(ts: FloatArray, now: float, *, ahead_s: float, behind_s: float) -> UInt8Array:
    """Return `HELD` for plausible times, else the reason, shape (n,). NaN is not plausible.

    This limits the damage of a wrong clock: if any future time were accepted, one such message
    would make all later messages of the device stale.
    """
    outcome = np.full(len(ts), Outcome.INVALID__ANCIENT_TIME, np.uint8)
    outcome[ts >= now - behind_s] = Outcome.HELD
    outcome[ts > now + ahead_s] = Outcome.INVALID__FUTURE_TIME
    return outcome


class CloakingOperator:
    """Keeps the density map, and cloaks the positions of a tick against the density at its end.

    Parameters
    ----------
    network
        The network on which the devices move.
    cloak
        Forms the groups and their regions.
    pace
        How long a silent device counts as present.
    k_floor
        No group of fewer devices is ever published, whatever `cloak` returns.
    transcripts
        Verifies the promise of `cloak` over time; None if it makes no such promise.
    """

    def __init__(
        self,
        network: RoadNetwork,
        cloak: Cloak,
        *,
        pace: Pace,
        k_floor: int,
        transcripts: Transcripts | None = None,
    ) -> None:
        self.density = DensityMap.empty(network)
        self._cloak = cloak
        self.pace = pace
        self._k_floor = k_floor
        self._transcripts = transcripts

    def set_rule(self, rule: DensityRule, *, k_extra: int) -> None:
        """Use this rule for groups formed from now on."""
        self._cloak.set_rule(rule, k_extra=k_extra)

    @property
    def n_waiting(self) -> int:
        """Number of devices on the graph that wait to be grouped."""
        return self._cloak.n_waiting(self.density)

    @property
    def place_of(self) -> Int32Array:
        """The node at which each slot is counted, negative for none."""
        return self._cloak.places(self.density)

    def n_hidden_among(self, release: Release) -> IntArray:
        """Return the size of each group's anonymity set, shape (groups,).

        It is the number of members if they hide each other, else of the devices in the region.
        """
        if self._cloak.reciprocal:
            return np.diff(release.first_member_of)
        inside = self.density.n_at[release.node].astype(np.int64)
        return np.add.reduceat(inside, release.first_node_of[:-1])

    def tick(
        self,
        slot: Int32Array,
        ts: FloatArray,
        node: Int32Array,
        *,
        now: float,
        stand_in: Int32Array | None = None,
    ) -> TickResult:
        """Process a batch of positions; return the release and the outcome of each position.

        Parameters
        ----------
        slot, ts, node
            Device slot, unix seconds (plausible, see `classify_time`, and of a device that is
            still present) and node (negative: off the graph) of each position, shape (n,), in any
            order.
        now
            Unix seconds at which the tick closes.
        stand_in
            Node at which a device inside a privacy zone is covered, negative for positions that
            are in no zone, shape (n,); None: it is covered where it was before.
        """
        density = self.density
        outcome = density.advance(slot, ts, node)
        moved = np.flatnonzero(outcome == Outcome.HELD)
        on_graph = node[moved] >= 0
        outcome[moved[~on_graph]] = Outcome.SUPPRESSED__OFF_GRAPH
        outcome[moved[node[moved] == IN_ZONE]] = Outcome.SUPPRESSED__PRIVACY_ZONE
        self._cloak.last_seen(*_last_seen(slot, ts, node, moved[~on_graph], outcome))
        if stand_in is not None:
            inside = moved[~on_graph & (stand_in[moved] >= 0)]
            self._cloak.last_seen(slot[inside], stand_in[inside])
        self.pace.advance(slot[moved], ts[moved], now=now)
        freed = density.expire(now - self.pace.ttl_s, kept=self._cloak.kept(len(density.node_of)))
        self.pace.forget(freed)
        reporting = moved[on_graph]
        reporting = reporting[np.argsort(slot[reporting])]
        cloaked = self._cloak.cloak(density, slot[reporting], now=now)
        release, cloaked_outcome = cloaked.release, cloaked.outcome
        holds = self._verified(release, now)
        if not holds.all():
            self._cloak.retire(release.only(~holds).member)
            release = release.only(holds)
        released = np.zeros(len(density.node_of), bool)
        released[release.member] = True
        # The verified release decides what is published, not the outcome that the cloak reports.
        inside = released[slot[reporting]]
        refused = ~inside & (cloaked_outcome == Outcome.PUBLISHED)
        cloaked_outcome[refused] = Outcome.SUPPRESSED__UNVERIFIED
        cloaked_outcome[inside] = Outcome.PUBLISHED
        outcome[reporting] = cloaked_outcome
        return TickResult(outcome, release, freed)

    def _verified(self, release: Release, now: float) -> BoolArray:
        """Return which groups keep their promise."""
        # The cloak's word is taken only for devices that have left the graph or have expired.
        on_graph = self.density.node_of >= 0
        place_of = np.where(on_graph, self.density.node_of, self.place_of)
        holds = groups_that_hold(
            release, place_of, n_nodes=self.density.network.n_nodes, k_floor=self._k_floor
        )
        if self._cloak.reciprocal:
            holds &= np.diff(release.first_member_of) >= release.k
        if self._transcripts is not None:
            holds &= self._transcripts.unbroken(release, now=now, n_slots=len(place_of))
        return holds


def _last_seen(
    slot: Int32Array, ts: FloatArray, node: Int32Array, left: IntArray, outcome: UInt8Array
) -> tuple[Int32Array, Int32Array]:
    """Return the devices that left the graph in a batch after positions on it, and the last node.

    Parameters
    ----------
    left
        Positions by which devices left the graph.
    outcome
        Outcome of each position so far, shape (n,).
    """
    before = (outcome == Outcome.SUPPRESSED__SUPERSEDED) & (node >= 0)
    before &= np.isin(slot, slot[left])
    rows = np.flatnonzero(before)
    rows = rows[np.lexsort((node[rows], ts[rows], slot[rows]))]
    last = np.append(slot[rows[1:]] != slot[rows[:-1]], np.ones(min(len(rows), 1), bool))
    return slot[rows[last]], node[rows[last]]
