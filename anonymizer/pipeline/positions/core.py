"""Core of the positions flow: the columns of one tick in, a release and its accounts out.

The live service and `cloak` on a recorded trace both run this object. It knows no transport, no
payload and no clock: its callers decode, name pseudonyms and write.
"""

from collections.abc import Callable
from dataclasses import dataclass
from secrets import token_bytes
from typing import TypeAlias

import numpy as np

from anonymizer.algorithms.positions.district_operator import Keys, slots_as_keys
from anonymizer.algorithms.positions.id_succession import Succession
from anonymizer.algorithms.positions.map_matching import NodeLocator
from anonymizer.algorithms.positions.protection import IN_ZONE, ZonedNetwork
from anonymizer.domain.arrays import FloatArray, Int32Array, UInt8Array
from anonymizer.domain.release import Release
from anonymizer.pipeline.accounting import Ledger
from anonymizer.pipeline.positions.factory import cloaking_operator, density_rule
from anonymizer.pipeline.positions.group_readings import GroupReadings, GroupValues
from anonymizer.pipeline.positions.id_lives import IdLives
from anonymizer.pipeline.positions.tick_accounts import Accounts, Carried
from anonymizer.pipeline.positions.trip_guard import Positions, TripGuard
from anonymizer.pipeline.positions.zone_places import suppress_hidden, zone_places
from anonymizer.settings import Settings

Locate: TypeAlias = Callable[[Positions], Int32Array]
"""Returns the node of each position, negative for none, shape (n,)."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LocatedPositions:
    """The positions of a tick that may be cloaked now, and their nodes, shape (n,)."""

    positions: Positions
    node: Int32Array


@dataclass(frozen=True, slots=True, eq=False)
class TickRelease:
    """The release of one tick, and what became of its positions.

    Attributes
    ----------
    release, values
        Verified groups, and their published readings; None if no reading is declared.
    event_s
        Unix seconds at which the positions were current: the end of the tick, less the delay of
        protected trip ends.
    published_s
        The time to publish: `event_s` rounded down to `output.time_step_s`.
    until_s
        Unix seconds until which the region of each group holds, shape (groups,); by `event_s`.
    slot, outcome
        Device and outcome of each located position of the tick, shape (n,).
    carried
        The positions to be published with the release, of this tick and of earlier ones.
    freed
        Slots whose devices are forgotten.
    id_since
        Since when the id of each located position is heard, see `IdLives.since`.
    """

    release: Release
    values: GroupValues | None
    event_s: float
    published_s: float
    until_s: FloatArray
    slot: Int32Array
    outcome: UInt8Array
    carried: Carried
    freed: Int32Array
    id_since: FloatArray | None


class FlowCore:
    """Trip ends, map matching, cloaking, verification, readings and accounts, tick by tick.

    A tick is `locate` and then `cloak`. All positions that are not in `TickRelease.carried` are
    settled or held when `cloak` returns.

    Parameters
    ----------
    settings
        The whole settings; clocks and transports are not used.
    zoned
        The network and its privacy zones.
    ledger
        Where positions are settled.
    locate
        Finds the nodes of positions. None: by their coordinates.
    secret
        Key of the stand-ins of devices in privacy zones. None: from the operating system.
    keys
        Names the devices to districts; by default for callers whose devices keep their slots.

    Attributes
    ----------
    readings
        The caller notes the declared readings of a tick here, before `cloak`.
    succession
        Whether ids that are not declared to change seem to.
    ids
        The caller marks devices here whose ids change, before `cloak`.
    """

    def __init__(
        self,
        settings: Settings,
        zoned: ZonedNetwork,
        ledger: Ledger,
        *,
        locate: Locate | None = None,
        secret: bytes | None = None,
        keys: Keys = slots_as_keys,
    ) -> None:
        self.network = zoned.network
        self.readings = GroupReadings(settings.readings, keys)
        self.succession = Succession()
        self.operator = cloaking_operator(settings, zoned.network, keys=keys)
        self.ids = IdLives(kept_s=self.operator.pace.longest_ttl_s + settings.tick.interval_s)
        self._trips = TripGuard(settings.trips, ledger)
        self._accounts = Accounts(ledger)
        self._find = locate or coordinate_locator(zoned, snap_limit_m=settings.network.snap_limit_m)
        make_places = zone_places(zoned, secret=secret or token_bytes(32))
        self._zones = make_places(keys) if make_places else None
        self._time_step_s = settings.output.time_step_s
        self._groups_last = settings.region.mode == "session"

    @property
    def n_held(self) -> int:
        """Positions that wait for their trip to continue, or for a group."""
        return self._trips.n_held + self._accounts.n_waiting

    @property
    def delay_s(self) -> float:
        """Seconds by which releases are behind, for protected trip ends."""
        return self._trips.delay_s

    @property
    def quiet_after_s(self) -> float:
        """Seconds after the last position in which releases may still follow, at most."""
        return self.delay_s + self._groups_last * self.operator.pace.ttl_s

    def set_rule(self, settings: Settings) -> None:
        """Use the density rule of other settings for groups that are formed from now on."""
        self.operator.set_rule(density_rule(settings), k_extra=settings.region.k_extra)

    def nodes_early(self, positions: Positions) -> Int32Array | None:
        """Return the nodes of positions whose tick is not over; None if trips decide first.

        `locate` takes them as `Positions.node`, so that less is left to do when the tick ends.
        """
        return None if self._trips.is_on else self._find(positions)

    def locate(self, positions: Positions, *, now: float) -> LocatedPositions:
        """Hold back positions near the ends of trips; locate those that may be cloaked.

        Parameters
        ----------
        positions
            Those of one tick, each with a slot and a plausible time.
        now
            Unix seconds at which the tick closes.
        """
        self._follow_ids(positions, now)
        positions = self._trips.pass_on(positions, now=now)
        node = positions.node if positions.node is not None else self._find(positions)
        return LocatedPositions(positions, node)

    def _follow_ids(self, positions: Positions, now: float) -> None:
        """Watch whether ids that are said to stay change."""
        slot, ts, lat, lon = positions[:4]
        stays = ~self.ids.change(slot)
        pace = self.operator.pace
        self.succession.tick(
            slot[stays],
            ts[stays],
            lat[stays],
            lon[stays],
            now=now,
            known_after_s=self.operator.holds_s + pace.epoch_s + self._trips.forget_s,
            ttl_s=pace.ttl_s,
        )

    def cloak(self, located: LocatedPositions, *, now: float) -> TickRelease:
        """Make the release of one tick."""
        positions = located.positions
        slot, ts = positions.slot, positions.ts
        event_s = now - self._trips.delay_s
        hidden, node = located.node == IN_ZONE, located.node
        if self._zones is not None:
            node = self._zones.cover(positions, node, now=event_s, passing_s=self.operator.holds_s)
        id_since = self.ids.since(slot, ts, now=event_s)
        result = self.operator.tick(slot, ts, node, now=event_s, since=id_since)
        suppress_hidden(result.outcome, hidden)
        self.readings.forget(slot[hidden])
        since = now - self.operator.holds_s
        values = self.readings.summarize(result.release, since=since)
        carried = self._accounts.book(
            result.outcome, slot, positions.tag, grouped=result.release.member, lost=result.lost
        )
        present = self.operator.density.is_known
        freed = self._trips.freed(result.freed, now=now, present=present)
        self.readings.free(freed)
        self.ids.forget(freed)
        self.succession.free(freed)
        if self._zones is not None:
            self._zones.forget(freed)
        return TickRelease(
            release=result.release,
            values=values,
            event_s=event_s,
            published_s=round_time(event_s, self._time_step_s),
            until_s=self.operator.until(result.release, now=event_s),
            slot=slot,
            outcome=result.outcome,
            carried=carried,
            freed=freed,
            id_since=id_since,
        )

    def close(self) -> None:
        """Settle the positions that are held; after the last tick."""
        self._trips.close()
        self._accounts.close()


def coordinate_locator(zoned: ZonedNetwork, *, snap_limit_m: float) -> Locate:
    """Return a function that matches positions by coordinate and heading, none in a zone."""
    nodes = NodeLocator(zoned.network, limit_m=snap_limit_m)

    def locate(positions: Positions) -> Int32Array:
        node = nodes.locate(positions.lat, positions.lon, positions.heading)
        return zoned.keep_out(node, positions.lat, positions.lon)

    return locate


def row_locator(zoned: ZonedNetwork, node_of_row: Int32Array) -> Locate:
    """Return a function for positions whose tags are rows of an array of nodes."""
    node_of_row = zoned.keep_out(node_of_row)
    return lambda positions: node_of_row[positions.tag.astype(np.int64)]


def round_up(ts: FloatArray, step_s: float) -> FloatArray:
    """Return times rounded up to a multiple of a step, same shape; 0 leaves them unchanged."""
    return np.ceil(ts / step_s) * step_s if step_s else ts


def round_time(ts: float, step_s: float) -> float:
    """Return a time rounded down to a multiple of a step.

    Parameters
    ----------
    ts
        Unix seconds.
    step_s
        Seconds, >= 0; 0 leaves the time unchanged.

    Raises
    ------
    ValueError
        If the step is negative.

    Notes
    -----
    Exact for steps of whole seconds. If the step exceeds the tick, several ticks have the same
    time. A pseudonym can then appear twice at one time with two regions, so a consumer must not
    use (pseudonym, time) as a key, sort by time only, or divide distances by time differences.
    Rounding keeps exact times out of stored data; a live subscriber still sees the arrival times.
    """
    if step_s < 0:
        raise ValueError("the step of a published time must not be negative")
    return ts - ts % step_s if step_s else ts
