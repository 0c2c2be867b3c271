"""All districts of a network in one process, behind the interface of one operator."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from anonymizer.algorithms.positions.adka import DensityRule
from anonymizer.algorithms.positions.changing_ids import LASTS
from anonymizer.algorithms.positions.cloaks.protocol import State
from anonymizer.algorithms.positions.demands import SharedDemands
from anonymizer.algorithms.positions.density import DensityMap
from anonymizer.algorithms.positions.device_keys import KeyArray, Keys, slots_as_keys
from anonymizer.algorithms.positions.district import District, DistrictTick
from anonymizer.algorithms.positions.district_routing import (
    NOWHERE,
    Router,
    Rows,
    no_rows,
)
from anonymizer.algorithms.positions.districts import Districts
from anonymizer.algorithms.positions.operator import Newest, TickResult, hidden_among, take_newest
from anonymizer.algorithms.positions.pace import Pace
from anonymizer.domain.arrays import FloatArray, Int32Array, IntArray
from anonymizer.domain.network import RoadNetwork
from anonymizer.domain.release import Release, joined_releases


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
    """Return the positions that moved their devices, to be routed."""
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
        np.full(n, LASTS) if since is None else since[newest.moved],
    )


class DistrictOperator:
    """Runs every district at every tick."""

    def __init__(
        self,
        network: RoadNetwork,
        districts: Districts,
        parts: Sequence[District],
        *,
        pace: Pace,
        keys: Keys = slots_as_keys,
    ) -> None:
        self.density = DensityMap.empty(network)
        self.pace = pace
        self.parts = parts
        self._keys = keys
        self._router = Router(districts)
        self._absent_before = -np.inf

    def set_rule(self, rule: DensityRule, *, k_extra: int) -> None:
        """Use this rule for groups formed from now on."""
        for part in self.parts:
            part.operator.set_rule(rule, k_extra=k_extra)

    def demand(self, demands: SharedDemands | None) -> None:
        """Take no demands: the devices that share one may be in different districts."""
        if demands is not None:
            raise TypeError("districts take no demands")

    def n_ungrouped(self, slot: Int32Array) -> int:
        """Return 0: nobody has demands that are met or not."""
        del slot
        return 0

    def withdraw(self, slot: Int32Array) -> None:
        """Forget where these devices are, in every district."""
        slot = slot[slot < len(self.density.node_of)]
        self.density.remove(slot)
        for part in self.parts:
            part.withdraw(slot.astype(np.int64))

    @property
    def holds_s(self) -> float:
        """For how many seconds what a device said holds: a reading, or that it entered a zone.

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
            handle, place = part.places()
            here = self._router.homes(handle) == part.number
            place_of[handle[here]] = place[here]
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
        newest = take_newest(self.density, slot, ts, node, stand_in=stand_in, since=since)
        outcome, moved = newest.outcome, newest.moved
        who = slot[moved]
        self.pace.advance(who, ts[moved], now=now)
        handle = who.astype(np.int64)
        rows = rows_of(newest, slot, ts, node, keys=self._keys(who), handle=handle, since=since)
        sent = self._router.route(who, rows)
        row_of = dict(zip(sent.district, zip(sent.rows, sent.source, strict=True), strict=True))
        none = no_rows(), np.zeros(0, np.int64)
        releases, present, lost = [], [], []
        for part in self.parts:
            its_rows, source = row_of.get(part.number, none)
            tick = part.tick(its_rows, now=now)
            here = its_rows.node >= 0
            outcome[moved[source[here]]] = tick.outcome[here]
            releases.append(self._by_handle(tick, part.operator.until(tick.release, now=now)))
            present.append(self._router.homes(tick.handle) == part.number)
            lost.append(tick.ended[self._router.homes(tick.ended) == part.number])
        # A tick later than the districts: the last one that knows a device forgets it before.
        freed = self.density.expire(self._absent_before)
        self._absent_before = now - self.pace.longest_ttl_s
        self.pace.forget(freed)
        self._router.forget(freed)
        return TickResult(
            outcome,
            joined_releases(releases),
            freed,
            lost=np.union1d(np.concatenate(lost), freed).astype(np.int32),
            present=np.concatenate(present),
        )

    def state(self) -> State:
        """Return what changes from tick to tick; one that is restored from it goes on alike."""
        return {
            "density": self.density.state(),
            "pace": self.pace.state(),
            "router": self._router.state(),
            "absent_before": self._absent_before,
            "parts": [part.state() for part in self.parts],
        }

    def restore(self, state: State) -> None:
        """Go on from a state of an operator with the same settings."""
        self.density.restore(state["density"])
        self.pace.restore(state["pace"])
        self._router.restore(state["router"])
        self._absent_before = state["absent_before"]
        for part, its_state in zip(self.parts, state["parts"], strict=True):
            part.restore(its_state)

    def until(self, release: Release, *, now: float) -> FloatArray:  # noqa: ARG002  as one operator
        """Return until when the region of each group holds, which its district has stated."""
        return np.zeros(0) if release.until is None else release.until

    @staticmethod
    def _by_handle(tick: DistrictTick, until: FloatArray) -> Release:
        return replace(tick.release, member=tick.handle.astype(np.int32), until=until)
