"""The operator of the positions flow: one batch of located positions in, one release out.

A pure function of state, batch and time. Which regions are formed is the `Cloak` it is given;
what every one of them promises at the least is verified here, by code that shares nothing
with it.
"""

from dataclasses import dataclass

import numpy as np

from anonymizer.algorithms.positions.adka import DensityRule
from anonymizer.algorithms.positions.cloaks import Cloak
from anonymizer.algorithms.positions.density import DensityMap
from anonymizer.algorithms.positions.protection import IN_ZONE
from anonymizer.algorithms.positions.verification import Transcripts, groups_that_hold
from anonymizer.domain.arrays import BoolArray, FloatArray, Int32Array, IntArray, UInt8Array
from anonymizer.domain.network import RoadNetwork
from anonymizer.domain.outcomes import Outcome
from anonymizer.domain.release import Release


@dataclass(frozen=True, slots=True, eq=False)
class TickResult:
    """What one tick made of its batch.

    Attributes
    ----------
    outcome
        What became of each position, shape (n,). `PUBLISHED`: it is in the release and will be
        published, or not delivered. `HELD`: it waits for its device to be grouped; a newer
        position of the device takes its place.
    release
        Verified groups.
    freed
        Slots whose devices are no longer present.
    """

    outcome: UInt8Array
    release: Release
    freed: Int32Array


def classify_time(ts: FloatArray, now: float, *, ahead_s: float, behind_s: float) -> UInt8Array:
    """Return `HELD` for believable times, else why not, shape (n,). NaN is not believable.

    This bounds what a device with a wrong clock can do: were any future time accepted, one
    such message would make all its later ones stale.
    """
    outcome = np.full(len(ts), Outcome.INVALID__ANCIENT_TIME, np.uint8)
    outcome[ts >= now - behind_s] = Outcome.HELD
    outcome[ts > now + ahead_s] = Outcome.INVALID__FUTURE_TIME
    return outcome


class CloakingOperator:
    """Keeps the density map and cloaks each tick's positions against what the tick closes over.

    Parameters
    ----------
    network
        Where devices move.
    cloak
        How regions are formed.
    ttl_s
        A device not heard of for longer is not present.
    k_floor
        No group of fewer devices is ever published, whatever `cloak` says.
    transcripts
        Checks the promise over time where `cloak` makes one. None: it makes none.
    """

    def __init__(
        self,
        network: RoadNetwork,
        cloak: Cloak,
        *,
        ttl_s: float,
        k_floor: int,
        transcripts: Transcripts | None = None,
    ) -> None:
        self.density = DensityMap.empty(network)
        self._cloak = cloak
        self._ttl_s = ttl_s
        self._k_floor = k_floor
        self._transcripts = transcripts

    def set_rule(self, rule: DensityRule, *, k_extra: int) -> None:
        """Let groups that are formed from now on hold so many devices."""
        self._cloak.set_rule(rule, k_extra=k_extra)

    @property
    def n_waiting(self) -> int:
        """Devices on the graph that wait to be grouped."""
        return self._cloak.n_waiting(self.density)

    @property
    def place_of(self) -> Int32Array:
        """The node at which each slot counts as being, negative for nowhere."""
        return self._cloak.places(self.density)

    def n_hidden_among(self, release: Release) -> IntArray:
        """Return among how many devices each group hides its own, shape (groups,).

        The devices in its region; where members hide each other, the members.
        """
        if self._cloak.reciprocal:
            return np.diff(release.first_member_of)
        inside = self.density.n_at[release.node].astype(np.int64)
        return np.add.reduceat(inside, release.first_node_of[:-1])

    def tick(self, slot: Int32Array, ts: FloatArray, node: Int32Array, *, now: float) -> TickResult:
        """Take in a batch and release what may be published of it.

        Parameters
        ----------
        slot, ts, node
            Device slot, unix seconds (believable, see `classify_time`, and not older than
            `ttl_s`) and node (negative: off the graph) of each position, shape (n,), in any
            order.
        now
            Unix seconds that the tick closes at.
        """
        density = self.density
        outcome = density.advance(slot, ts, node)
        moved = np.flatnonzero(outcome == Outcome.HELD)
        on_graph = node[moved] >= 0
        outcome[moved[~on_graph]] = Outcome.SUPPRESSED__OFF_GRAPH
        outcome[moved[node[moved] == IN_ZONE]] = Outcome.SUPPRESSED__PRIVACY_ZONE
        freed = density.expire(now - self._ttl_s, kept=self._cloak.kept(len(density.node_of)))
        reporting = moved[on_graph]
        reporting = reporting[np.argsort(slot[reporting])]
        cloaked = self._cloak.cloak(density, slot[reporting], now=now)
        release, fate = cloaked.release, cloaked.fate
        holds = self._verified(release, slot[reporting], now)
        if not holds.all():
            self._cloak.retire(release.only(~holds).member)
            release = release.only(holds)
        released = np.zeros(len(density.node_of), bool)
        released[release.member] = True
        # What is in the release goes out, what is not does not, whatever the cloak says of it.
        inside = released[slot[reporting]]
        fate[~inside & (fate == Outcome.PUBLISHED)] = Outcome.SUPPRESSED__UNVERIFIED
        fate[inside] = Outcome.PUBLISHED
        outcome[reporting] = fate
        return TickResult(outcome, release, freed)

    def _verified(self, release: Release, reporting: Int32Array, now: float) -> BoolArray:
        """Return which groups keep their promise."""
        # Who is silent is where the cloak says, who reports is where it reports from.
        place_of = self.place_of.copy()
        place_of[reporting] = self.density.node_of[reporting]
        holds = groups_that_hold(
            release, place_of, n_nodes=self.density.network.n_nodes, k_floor=self._k_floor
        )
        if self._cloak.reciprocal:
            holds &= np.diff(release.first_member_of) >= release.k
        if self._transcripts is not None:
            holds &= self._transcripts.unbroken(release, now=now, n_slots=len(place_of))
        return holds
