"""The cloaking operator of the positions flow: a batch of located positions in, a release out.

A pure function of state, batch and time. A `Cloak` forms the regions; the operator verifies their
minimum promise with code that is independent of the cloak.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from anonymizer.algorithms.positions.adka import DensityRule
from anonymizer.algorithms.positions.changing_ids import LASTS, Instant
from anonymizer.algorithms.positions.cloaks import Cloak, SessionCloak
from anonymizer.algorithms.positions.cloaks.protocol import State
from anonymizer.algorithms.positions.demands import SharedDemands
from anonymizer.algorithms.positions.density import DensityMap
from anonymizer.algorithms.positions.device_keys import Keys
from anonymizer.algorithms.positions.map_matching import OFF_GRAPH
from anonymizer.algorithms.positions.pace import Pace
from anonymizer.algorithms.positions.protection import IN_ZONE
from anonymizer.algorithms.positions.verification import (
    Transcripts,
    groups_of_vehicles,
    groups_that_hold,
)
from anonymizer.domain.arrays import BoolArray, FloatArray, Int32Array, IntArray, UInt8Array
from anonymizer.domain.discreet import discreet
from anonymizer.domain.network import RoadNetwork
from anonymizer.domain.outcomes import Outcome
from anonymizer.domain.release import Release


@dataclass(frozen=True, slots=True, eq=False)
class TickResult:
    """The result of one tick.

    `outcome`: of each position, shape (n,). `PUBLISHED`: it is in the release. `HELD`: it waits
    until its device is grouped; a newer position replaces it. `freed`: slots whose devices are no
    longer present. `lost`: slots whose devices are in no group, and will be in none where they
    were last. `present`: which members are where their group was formed, shape (members,): the
    others have left its district for another, which may have them in a group as well.
    """

    outcome: UInt8Array
    release: Release
    freed: Int32Array
    lost: Int32Array
    present: BoolArray


def classify_time(
    ts: FloatArray, now: float, *, ahead_s: float, behind_s: FloatArray | float
) -> UInt8Array:
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
    k_floor
        No group of fewer devices is ever published, whatever `cloak` returns.
    transcripts
        Verifies the promise of `cloak` over time; None if it makes no such promise.
    slack_s
        Of ids that change, see `changing_ids.on_air`.
    """

    def __init__(
        self,
        network: RoadNetwork,
        cloak: Cloak,
        *,
        pace: Pace,
        k_floor: int,
        transcripts: Transcripts | None = None,
        slack_s: float = 0.0,
    ) -> None:
        self.density = DensityMap.empty(network)
        self._instant = Instant(slack_s=slack_s)
        self._ids_change = False
        self._cloak = cloak
        self.pace = pace
        self._k_floor = k_floor
        self._transcripts = transcripts

    def set_rule(self, rule: DensityRule, *, k_extra: int) -> None:
        """Use this rule for groups formed from now on."""
        self._cloak.set_rule(rule, k_extra=k_extra)

    def name_devices(self, keys: Keys) -> None:
        """Take in what names the devices: what is formed does not depend on their slots."""
        if isinstance(self._cloak, SessionCloak):
            self._cloak.keys = keys

    def demand(self, demands: SharedDemands | None) -> None:
        """Take account of what devices demand of groups that are formed from now on.

        Raises
        ------
        TypeError
            If the cloak knows no demands.
        """
        if isinstance(self._cloak, SessionCloak):
            self._cloak.demands = demands
        elif demands is not None:
            raise TypeError("only session takes demands")

    def withdraw(self, slot: Int32Array) -> None:
        """Forget where these devices are; see `SessionCloak.withdraw` for members of groups."""
        slot = slot[slot < len(self.density.node_of)]
        self.density.remove(slot)
        if isinstance(self._cloak, SessionCloak):
            self._cloak.withdraw(slot)
        elif self._cloak.lasting:
            self._cloak.retire(slot)

    def leave(self, slot: Int32Array) -> BoolArray:
        """Count devices here no more, which report from elsewhere; return who is in no group.

        Distinct, shape (n,). A group that contains one covers it where it was last, as if it were
        silent. The others are grouped elsewhere as soon as groups are formed anywhere.
        """
        self.density.remove(slot[slot < len(self.density.node_of)])
        n_slots = max(len(self.density.node_of), int(slot.max(initial=-1)) + 1)
        goes: BoolArray = ~self._cloak.kept(n_slots)[slot]
        if isinstance(self._cloak, SessionCloak):
            self._cloak.hurry(slot[goes])
        return goes

    def state(self) -> State:
        """Return what changes from tick to tick; one that is restored from it goes on alike."""
        return {
            "density": self.density.state(),
            "pace": self.pace.state(),
            "cloak": self._cloak.state(),
            "instant": self._instant.state(),
            "transcripts": self._transcripts.state() if self._transcripts else None,
        }

    def restore(self, state: State) -> None:
        """Go on from a state of an operator with the same settings."""
        self.density.restore(state["density"])
        self.pace.restore(state["pace"])
        self._cloak.restore(state["cloak"])
        self._instant.restore(state["instant"])
        self._ids_change = bool((self.density.since_of > LASTS).any())
        if self._transcripts:
            self._transcripts.restore(state["transcripts"])

    @property
    def reciprocal(self) -> bool:
        """Whether all members of a group publish its region."""
        return self._cloak.reciprocal

    @property
    def holds_s(self) -> float:
        """For how many seconds a reading holds, or that a device has entered a zone."""
        return self.pace.ttl_s

    @property
    def n_waiting(self) -> int:
        """Number of devices on the graph that wait to be grouped."""
        return self._cloak.n_waiting(self.density)

    def n_ungrouped(self, slot: Int32Array) -> int:
        """Return how many of these devices, if they are on the graph, are in no lasting group."""
        kept = self._cloak.kept(len(self.density.node_of))
        slot = slot[slot < len(kept)]
        return int((~kept[slot] & (self.density.counted_at[slot] >= 0)).sum())

    @property
    def place_of(self) -> Int32Array:
        """The node at which each slot is counted, negative for none."""
        return self._cloak.places(self.density)

    def until(self, release: Release, *, now: float) -> FloatArray:
        """Return until when the region of each group holds, unix seconds, shape (groups,)."""
        return held_until(release, now=now, ttl_s=self.pace.ttl_s)

    def n_hidden_among(self, release: Release) -> IntArray:
        """Return the size of each group's anonymity set, shape (groups,).

        It is the number of members if they hide each other, else of the devices in the region.
        """
        return hidden_among(release, self.density.n_at, reciprocal=self._cloak.reciprocal)

    def tick(
        self,
        slot: Int32Array,
        ts: FloatArray,
        node: Int32Array,
        *,
        now: float,
        stand_in: Int32Array | None = None,
        since: FloatArray | None = None,
    ) -> TickResult:
        """Process a batch of positions; return the release and the outcome of each position.

        `slot`, `ts` (unix seconds, plausible), `node` (negative: off the graph): shape (n,), in any
        order. `stand_in`: node at which a device inside a privacy zone is covered, negative for
        positions in no zone; None: it is covered where it was before. `since`: unix seconds since
        when the id is heard, `LASTS` for one that does not change.
        """
        density = self.density
        newest = take_newest(density, slot, ts, node, stand_in=stand_in, since=since)
        outcome, moved = newest.outcome, newest.moved
        self._cloak.last_seen(newest.left, newest.left_from)
        self.pace.advance(slot[moved], ts[moved], now=now)
        freed = density.expire(now - self.pace.ttl_s, kept=self._cloak.kept(len(density.node_of)))
        self.pace.forget(freed)
        self._count_vehicles_once(since, now)
        on_graph = moved[node[moved] >= 0]
        reporting = on_graph[np.argsort(slot[on_graph])]
        if self._ids_change and not getattr(self._cloak, "lasting", False):
            # What does not count yet waits; a cloak whose groups last holds it by itself.
            reporting = reporting[density.is_counted[slot[reporting]]]
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
        present = np.ones(len(release.member), bool)
        return TickResult(outcome, release, freed, lost=freed, present=present)

    def _count_vehicles_once(self, since: FloatArray | None, now: float) -> None:
        """Let those ids count that are different vehicles."""
        self._ids_change |= since is not None and bool((since > LASTS).any())
        if self._ids_change:
            density = self.density
            density.count_only(self._instant.counted(density.since_of, density.version_of, now=now))

    def _verified(self, release: Release, now: float) -> BoolArray:
        """Return which groups keep their promise."""
        if not release.n_groups:
            return np.ones(0, bool)
        density = self.density
        # The cloak's word is taken only for devices that have left the graph or have expired.
        on_graph = density.node_of >= 0
        place_of = np.where(on_graph, density.node_of, self.place_of)
        if not self._cloak.reciprocal:
            place_of[~density.is_counted] = -1  # the region must hold k vehicles, not k ids
        holds = groups_that_hold(
            release, place_of, n_nodes=self.density.network.n_nodes, k_floor=self._k_floor
        )
        if self._cloak.reciprocal:
            holds &= np.diff(release.first_member_of) >= release.k
        if self._ids_change:
            holds &= groups_of_vehicles(
                release, density.since_of, density.version_of, slack_s=self._instant.slack_s
            )
        if self._transcripts is not None:
            holds &= self._transcripts.unbroken(release, now=now, n_slots=len(place_of))
        return holds


def held_until(release: Release, *, now: float, ttl_s: float) -> FloatArray:
    """Return until when the region of each group of a tick holds, unix seconds, shape (groups,).

    Its members count as present for `ttl_s` from now on; a group that publishes again or ends says
    so itself.
    """
    present = np.full(release.n_groups, now + ttl_s)
    return present if release.until is None else np.minimum(present, release.until)


def hidden_among(release: Release, n_at: Int32Array, *, reciprocal: bool) -> IntArray:
    """Return the size of each group's anonymity set, shape (groups,).

    It is the number of members if they hide each other, else of the devices in the region.
    """
    if reciprocal:
        return np.diff(release.first_member_of)
    inside = n_at[release.node].astype(np.int64)
    return np.add.reduceat(inside, release.first_node_of[:-1])


UNMOVED = -2
"""Added to `OFF_GRAPH` or `IN_ZONE`: the device counts where it was, as if it were silent."""


@discreet
class Newest(NamedTuple):
    """What a batch of positions changed.

    `outcome`: of each position, shape (n,), `HELD` for one that moved its device on the graph.
    `moved`: rows of the positions that moved their devices, on the graph or off it. `left`,
    `left_from`: devices that left the graph or entered a privacy zone, and the node at which each
    is covered from now on, if it is in a group.
    """

    outcome: UInt8Array
    moved: IntArray
    left: Int32Array
    left_from: Int32Array


def take_newest(
    density: DensityMap,
    slot: Int32Array,
    ts: FloatArray,
    node: Int32Array,
    *,
    stand_in: Int32Array | None = None,
    since: FloatArray | None = None,
) -> Newest:
    """Move devices to the newest of their positions; parameters as for `CloakingOperator.tick`."""
    outcome = density.advance(slot, moving(ts, node), node, since=since)
    return newest_of(outcome, slot, ts, node, stand_in=stand_in)


def moving(ts: FloatArray, node: Int32Array) -> FloatArray:
    """Return the times by which positions move their devices, same shape; `UNMOVED`: not at all."""
    if node.min(initial=0) >= UNMOVED:
        return ts
    return np.where(node < UNMOVED, -np.inf, ts)


def newest_of(
    outcome: UInt8Array,
    slot: Int32Array,
    ts: FloatArray,
    node: Int32Array,
    *,
    stand_in: Int32Array | None = None,
) -> Newest:
    """Return what a batch of positions changed, given which of them moved their devices.

    `outcome` is as `DensityMap.advance` returns it, and refined in place.
    """
    if node.min(initial=0) >= 0:
        return Newest(outcome, np.flatnonzero(outcome == Outcome.HELD), slot[:0], node[:0])
    outcome[node == UNMOVED + OFF_GRAPH] = Outcome.SUPPRESSED__OFF_GRAPH
    outcome[node == UNMOVED + IN_ZONE] = Outcome.SUPPRESSED__PRIVACY_ZONE
    moved = np.flatnonzero(outcome == Outcome.HELD)
    on_graph = node[moved] >= 0
    outcome[moved[~on_graph]] = Outcome.SUPPRESSED__OFF_GRAPH
    outcome[moved[node[moved] == IN_ZONE]] = Outcome.SUPPRESSED__PRIVACY_ZONE
    left, left_from = _last_seen(slot, ts, node, moved[~on_graph], outcome)
    if stand_in is not None:
        inside = moved[~on_graph & (stand_in[moved] >= 0)]
        zoned = np.isin(left, slot[inside])
        left = np.concatenate([left[~zoned], slot[inside]])
        left_from = np.concatenate([left_from[~zoned], stand_in[inside]])
    return Newest(outcome, moved, left, left_from)


def _last_seen(
    slot: Int32Array, ts: FloatArray, node: Int32Array, left: IntArray, outcome: UInt8Array
) -> tuple[Int32Array, Int32Array]:
    """Return the devices that left the graph after positions on it, and the last node."""
    before = (outcome == Outcome.SUPPRESSED__SUPERSEDED) & (node >= 0)
    if not before.any():
        return slot[:0], node[:0]
    before &= np.isin(slot, slot[left])
    rows = np.flatnonzero(before)
    rows = rows[np.lexsort((node[rows], ts[rows], slot[rows]))]
    last = np.append(slot[rows[1:]] != slot[rows[:-1]], np.ones(min(len(rows), 1), bool))
    return slot[rows[last]], node[rows[last]]
