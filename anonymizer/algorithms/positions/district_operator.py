"""All districts of a network in one process, behind the interface of one operator."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeAlias

import numpy as np

from anonymizer.algorithms.positions.adka import DensityRule
from anonymizer.algorithms.positions.changing_ids import LASTS
from anonymizer.algorithms.positions.density import DensityMap
from anonymizer.algorithms.positions.district import District, DistrictTick, Message, Received
from anonymizer.algorithms.positions.district_routing import (
    NOWHERE,
    KeyArray,
    Router,
    Rows,
    no_rows,
)
from anonymizer.algorithms.positions.districts import Districts, Folds
from anonymizer.algorithms.positions.operator import Newest, TickResult, hidden_among, take_newest
from anonymizer.algorithms.positions.pace import Pace
from anonymizer.domain.arrays import BoolArray, FloatArray, Int32Array, IntArray, UInt8Array
from anonymizer.domain.network import RoadNetwork
from anonymizer.domain.outcomes import Outcome
from anonymizer.domain.release import Release, joined_releases

Keys: TypeAlias = Callable[[Int32Array], KeyArray]
"""Returns the key of the device in each slot: equal in every process, see `Rows.key`."""


def slots_as_keys(slot: Int32Array) -> KeyArray:
    """Return the slots themselves, where every device keeps its slot."""
    return slot.astype(np.uint64)


class Outcomes(NamedTuple):
    """What became of routed positions, as their districts report it.

    Attributes
    ----------
    of
        Outcome of each in the district whose territory it is in, shape (n,).
    published
        Whether any district has published it, shape (n,).
    """

    of: UInt8Array
    published: BoolArray

    @classmethod
    def held(cls, n: int) -> "Outcomes":
        """Return those of positions about which nothing was reported."""
        return cls(np.full(n, Outcome.HELD, np.uint8), np.zeros(n, bool))

    def take(self, row: IntArray | Int32Array, outcome: UInt8Array, its_own: BoolArray) -> None:
        """Take the report of a district.

        Parameters
        ----------
        row, outcome, its_own
            The positions that it was sent, what became of each there, and whether it is in its
            territory, all of the same shape.
        """
        self.of[row[its_own]] = outcome[its_own]
        self.published[row[outcome == Outcome.PUBLISHED]] = True

    def merged(self) -> UInt8Array:
        """Return the outcome of each position once all districts have reported."""
        return np.where(self.published, np.uint8(Outcome.PUBLISHED), self.of)


def rows_of(
    newest: Newest,
    slot: Int32Array,
    ts: FloatArray,
    node: Int32Array,
    *,
    keys: KeyArray,
    handle: IntArray,
    since: FloatArray | None = None,
) -> Rows:
    """Return the positions that moved their devices, to be routed.

    Parameters
    ----------
    newest
        What the batch changed.
    slot, ts, node
        Device, time and node of each position of the batch.
    keys, handle
        Of the devices that moved, see `Rows`.
    since
        Of each position of the batch, see `Rows`; None: no id changes.
    """
    who = slot[newest.moved]
    left_from = np.full(int(slot.max(initial=-1)) + 1, NOWHERE, np.int32)
    left_from[newest.left] = newest.left_from
    n = len(who)
    return Rows(
        keys,
        handle,
        ts[newest.moved],
        node[newest.moved],
        left_from[who],
        np.zeros(n, bool),
        np.full(n, LASTS) if since is None else since[newest.moved],
    )


class DistrictOperator:
    """Runs every district at every tick, and delivers the messages between them at the next.

    Parameters
    ----------
    network
        The network on which the devices move.
    districts
        Its cut.
    parts
        Every district, by number.
    folds
        Which of them lead.
    pace
        Of the whole network; says when devices are absent everywhere.
    keys
        Names the devices to the districts.
    """

    def __init__(
        self,
        network: RoadNetwork,
        districts: Districts,
        parts: Sequence[District],
        *,
        folds: Folds,
        pace: Pace,
        keys: Keys = slots_as_keys,
    ) -> None:
        self.density = DensityMap.empty(network)
        self.pace = pace
        self.parts = parts
        self._folds = folds
        self._keys = keys
        self._router = Router(districts, horizon_s=pace.longest_ttl_s)
        self._messages_to: dict[int, list[Message]] = {}

    def set_rule(self, rule: DensityRule, *, k_extra: int) -> None:
        """Use this rule for groups formed from now on."""
        for part in self.parts:
            part.operator.set_rule(rule, k_extra=k_extra)

    @property
    def holds_s(self) -> float:
        """How many seconds the word of a device holds: a reading, or that it has entered a zone.

        The longest time to live: no part of a cluster knows how often all devices report.
        """
        return self.pace.longest_ttl_s

    @property
    def n_waiting(self) -> int:
        """Number of devices on the graph that wait to be grouped."""
        return sum(part.operator.n_waiting for part in self.parts)

    @property
    def place_of(self) -> Int32Array:
        """The node at which each slot is counted, negative for none."""
        place_of = self.density.node_of.copy()
        for part in self.parts:
            handle, place = part.members()
            place_of[handle] = place
        return place_of

    def n_hidden_among(self, release: Release) -> IntArray:
        """Return the size of each group's anonymity set, shape (groups,)."""
        reciprocal = self.parts[0].operator.reciprocal
        return hidden_among(release, self.density.n_at, reciprocal=reciprocal)

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
        """Process a batch of positions, as `CloakingOperator.tick` does."""
        density = self.density
        newest = take_newest(density, slot, ts, node, stand_in=stand_in, since=since)
        outcome, moved = newest.outcome, newest.moved
        self.pace.advance(slot[moved], ts[moved], now=now)
        who = slot[moved]
        handle = who.astype(np.int64)
        rows = rows_of(newest, slot, ts, node, keys=self._keys(who), handle=handle, since=since)
        ticks, outcome_of = self._run(who, rows, now)
        on_graph = rows.node >= 0
        outcome[moved[on_graph]] = outcome_of[on_graph]
        release = self._disjoint(
            joined_releases(
                [
                    self._by_handle(tick, part.operator.until(tick.release, now=now))
                    for part, tick in zip(self.parts, ticks, strict=True)
                ]
            )
        )
        released = np.zeros(len(density.node_of), bool)
        released[release.member] = True
        inside = released[slot[moved]] & on_graph
        out = outcome[moved] == Outcome.PUBLISHED
        outcome[moved[out & ~inside]] = Outcome.SUPPRESSED__UNVERIFIED
        for part, tick in zip(self.parts, ticks, strict=True):
            self._folds.count(part.number, tick.n_in, now=now)
        known = np.zeros(len(density.node_of), bool)
        for part in self.parts:
            known[part.handles()] = True
        return TickResult(
            outcome, release, self._expire(known, now), lost=np.flatnonzero(~known).astype(np.int32)
        )

    def _expire(self, known: BoolArray, now: float) -> Int32Array:
        """Forget the devices that are absent; return the slots that others may have."""
        density, before = self.density, now - self.pace.ttl_s
        absent = (density.version_of < before) & (density.node_of >= 0) & ~known
        density.remove(np.flatnonzero(absent).astype(np.int32))
        kept = known | self._router.remembers(len(known))
        freed = density.expire(before, kept=kept)
        self.pace.forget(freed)
        return freed

    def _run(
        self, slot: Int32Array, rows: Rows, now: float
    ) -> tuple[list[DistrictTick], UInt8Array]:
        """Run the tick of every district; return also the outcome of each row on the graph."""
        leader_of = self._folds.leaders(now)
        sent = self._router.route(slot, rows, leader_of, now=now)
        row_of = dict(zip(sent.district, range(len(sent.district)), strict=True))
        outcome = Outcomes.held(len(slot))
        messages_to, self._messages_to = self._messages_to, {}
        ticks = []
        for part in self.parts:
            at = row_of.get(part.number)
            its_rows = no_rows() if at is None else sent.rows[at]
            received = Received(messages_to.get(part.number, []), complete=True)
            tick = part.tick(its_rows, received, leader_of, now=now)
            for to, message in tick.messages.items():
                self._messages_to.setdefault(to, []).append(message)
            if at is not None:
                source = sent.source[at]
                its_own = sent.leader[source] == part.number
                outcome.take(source, tick.outcome, its_own)
            ticks.append(tick)
        return ticks, outcome.merged()

    def until(self, release: Release, *, now: float) -> FloatArray:  # noqa: ARG002  as one operator
        """Return until when the region of each group holds, which its district has stated."""
        return np.zeros(0) if release.until is None else release.until

    @staticmethod
    def _by_handle(tick: DistrictTick, until: FloatArray) -> Release:
        return replace(tick.release, member=tick.handle.astype(np.int32), until=until)

    def _disjoint(self, release: Release) -> Release:
        """Return the groups that share no device with another; end the others."""
        shared = np.bincount(release.member, minlength=1) > 1
        if not shared.any():
            return release
        broken = np.logical_or.reduceat(shared[release.member], release.first_member_of[:-1])
        member = release.only(broken).member
        for part in self.parts:
            part.retire(member)
        return release.only(~broken)
