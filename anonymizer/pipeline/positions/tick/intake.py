"""Intake of positions: what was decoded in, the located columns of those that may be cloaked out.

Positions get the slots of their devices, wait where they are near the ends of trips, and are
matched with roads; those in privacy zones are hidden. Mobile devices, fixed devices, `cloak` on
recorded traces and each source of a cluster have one.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from anonymizer.algorithms.positions.device_keys import KeyArray, Keys, slots_as_keys
from anonymizer.algorithms.positions.id_succession import Succession
from anonymizer.algorithms.positions.map_matching import OFF_GRAPH, LayeredLocator
from anonymizer.algorithms.positions.operator import classify_time
from anonymizer.algorithms.positions.pace import Pace
from anonymizer.algorithms.positions.protection import IN_ZONE, ZonedNetwork
from anonymizer.domain.arrays import BoolArray, FloatArray, Int32Array, UInt8Array
from anonymizer.domain.network import RoadNetwork
from anonymizer.domain.outcomes import Outcome
from anonymizer.pipeline.ledger import Ledger
from anonymizer.pipeline.positions.decode.decoded import LocatedInputs
from anonymizer.pipeline.positions.tick.device_layers import DeviceLayers
from anonymizer.pipeline.positions.tick.device_zones import DeviceZones
from anonymizer.pipeline.positions.tick.id_lives import IdLives
from anonymizer.pipeline.positions.tick.last_on_road import LastOnRoad
from anonymizer.pipeline.positions.tick.learned_stops import LearnedStops
from anonymizer.pipeline.positions.tick.trip_guard import Positions, TripGuard
from anonymizer.pipeline.positions.tick.trusted_devices import TrustedDevices
from anonymizer.pipeline.positions.tick.zone_places import ZonePlaces, zone_places

if TYPE_CHECKING:
    from anonymizer.settings import TripSettings

Locate: TypeAlias = Callable[[Positions], Int32Array]
"""Returns the node of each position, negative for none, shape (n,)."""

_MAX_AHEAD_S = 5.0
"""How far a device's clock may be ahead of the gateway's."""
_IDS_KEPT_S = 900.0
"""An id is remembered for so long at least: who reports every ten minutes stays the same device."""


class Lasting(Protocol):
    """How long what devices say remains valid."""

    @property
    def holds_s(self) -> float:
        """Seconds for which a reading holds, or that a device has been seen outside a zone."""

    @property
    def pace(self) -> Pace:
        """How long devices count as present."""


@dataclass(frozen=True, slots=True)
class IntakeParameters:
    """What an intake needs to know.

    Stops of at most `most_devices` are remembered. `watches_ids`: whether to watch if ids change
    that are not declared to, which takes all devices that a new one may continue. `ttl_s`: after
    how many seconds of silence a device that was never believed is forgotten; None: all that
    devices say is believed, because a registry tells where they are, or they do not move.
    `stays_after_s`: until an id has been heard over so long, it may be one that changes; 0: all
    that are not declared to change stay.
    """

    trips: "TripSettings"
    interval_s: float
    most_devices: int
    watches_ids: bool = True
    ttl_s: float | None = None
    stays_after_s: float = 0.0


class MapMatching(NamedTuple):
    """How positions are matched with a network; several intakes may share it.

    `locate` finds the nodes of positions; `make_places` returns where some devices count in privacy
    zones; None: there are none.
    """

    locate: Locate
    make_places: Callable[[Keys], ZonePlaces] | None
    network: RoadNetwork


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LocatedPositions:
    """The positions of a tick that may be cloaked now, as columns of shape (n,)."""

    positions: Positions
    """Each with the slot of its device and a plausible time."""
    node: Int32Array
    counted_at: Int32Array
    """`node`, `counted_at`: where each is, `IN_ZONE` in a privacy zone; and where it counts:
    passers-by count inside. What leaves is `UNMOVED` at first."""
    hidden: BoolArray
    """Which are in a privacy zone."""
    trip_node: Int32Array
    """Where each is for trips: a place that its device has made known by its stops is no zone, and
    a device that asked for no trips is in one everywhere."""
    id_since: FloatArray | None
    """Since when the id of each is heard, see `IdLives.since`."""
    withdrawn: Int32Array
    withdrawn_key: KeyArray
    """`withdrawn`, `withdrawn_key`: slots and keys of devices that take no part from this tick on:
    what is held of them is dropped. One that has been silent for long has only a key."""
    any_shut_out: bool
    """Whether a publisher was shut out since the tick before. Which devices were its own is not
    known of those that have left: nothing may follow from what they all did before."""
    now: float
    event_s: float
    """`now`, `event_s`: unix seconds at which the tick closes, and at which the positions were
    current: the same, less the delay of protected trip ends."""


class Intake:
    """Trip ends, map matching and privacy zones of the devices of one engine.

    `ledger` is where positions are settled that do not get through, `lasting` the operator that
    will cloak the others. `delay_s`: by how much releases are behind, for protected trip ends.
    `leave`: see `DeviceLayers`. `succession`: whether ids that are not declared to change seem to.
    In `ids` the caller marks devices whose ids change, before `locate`, and in `layers` on which of
    several networks devices move (None: there is one); by `trust` it judges what they claim (None:
    all is believed).
    """

    def __init__(
        self,
        parameters: IntakeParameters,
        matching: MapMatching,
        ledger: Ledger,
        lasting: Lasting,
        *,
        keys: Keys = slots_as_keys,
        inputs: LocatedInputs | None = None,
        device_zones: DeviceZones | None = None,
        leave: Callable[[Int32Array], BoolArray] | None = None,
    ) -> None:
        self._lasting, self._ledger = lasting, ledger
        kept_s = max(lasting.pace.longest_ttl_s, _IDS_KEPT_S) + parameters.interval_s
        self.ids = IdLives(keys, kept_s=kept_s)
        self.succession = Succession()
        self.trust = None
        if parameters.ttl_s is not None:
            kept_s = lasting.pace.longest_ttl_s + parameters.interval_s
            self.trust = TrustedDevices(keys, kept_s=kept_s)
        self._ttl_s = parameters.ttl_s or 0.0
        self._stays_after_s = parameters.stays_after_s
        self._watches_ids = parameters.watches_ids
        trips = parameters.trips
        self._trips = TripGuard(trips, ledger) if trips.enabled else None
        self.delay_s = trips.latency_s
        self._trips_last_s = 0.0 if self._trips is None else self._trips.forget_s
        self._find = matching.locate
        self._places = matching.make_places(keys) if matching.make_places else None
        # Trust forgets by itself who is silent, whether it has ever been on a road or not.
        self._on_road = LastOnRoad(math.inf if self.trust else lasting.pace.longest_ttl_s)
        self._keys = keys
        self.layers = None
        if matching.network.layers:
            # Until nothing of it is held, and it is nobody's company any more.
            lasts_s = max(self._trips_last_s, self.delay_s + lasting.pace.longest_ttl_s)
            self.layers = DeviceLayers(
                keys,
                kept_s=lasts_s + parameters.interval_s,
                leave=None if self._trips else leave,
            )
        self._stops = None
        if trips.learn_days:
            self._stops = LearnedStops(
                trips.rule,
                trips.learn_days,
                matching.network,
                keys=keys,
                most_devices=parameters.most_devices,
            )
        self._inputs, self._device_zones = inputs, device_zones

    @property
    def n_held(self) -> int:
        """Positions that wait for their trip to go on."""
        return 0 if self._trips is None else self._trips.n_held

    def nodes_early(self, positions: Positions) -> Int32Array | None:
        """Return the nodes of positions whose tick is not over; None if trips decide first.

        `locate` takes them as `Positions.node`, so that less is left to do when the tick ends.
        """
        several = self.layers is not None  # and who has sent what is not known yet
        return None if self._trips is not None or several else self._find(positions)

    def are_near_roads(self, positions: Positions) -> BoolArray:
        """Return which positions are on a road of their network or in a zone of the settings."""
        node = self._find(positions) if positions.node is None else positions.node
        near: BoolArray = node != OFF_GRAPH
        return near

    def locate(self, positions: Positions, *, now: float) -> LocatedPositions:
        """Hold back positions near the ends of trips; locate those that may be cloaked.

        Each has a slot and a plausible time; the tick closes at `now`, unix seconds.
        """
        if self._watches_ids:
            self._follow_ids(positions, now)
        zones = self._device_zones
        withdrawn, gone = np.zeros(0, np.int32), np.zeros(0, np.uint64)
        if zones is not None:
            withdrawn, gone = zones.withdrawn(now=now)
        if self._stops is not None:
            node = self._nodes_of(positions)
            positions = positions._replace(node=node)
            self._learn(self._stops, positions, node, gone, now=now)
        if self._trips is not None:
            positions = self._trips.pass_on(positions, now=now)
            self._trips.drop(withdrawn)
        slot, ts, event_s = positions.slot, positions.ts, now - self.delay_s
        node = self._nodes_of(positions)
        if self._inputs is not None:
            self._inputs.locate(slot, node)
        absent, trip_node = None, node
        if zones is not None:
            node, absent = zones.keep_out(positions, node)
            trip_node = np.where(zones.no_trips(slot), np.int32(IN_ZONE), node)
        if self._stops is not None:
            node = self._stops.keep_out(positions, node)
        hidden, counted_at = node == IN_ZONE, node
        if self._places is not None:
            counted_at = self._places.cover(
                self._in_layers(positions), node, now=event_s, passing_s=self._lasting.holds_s
            )
            if absent is not None:  # nothing follows from where it goes
                counted_at = np.where(absent, np.int32(IN_ZONE), counted_at)
        counted_at = self._stay(positions, node, counted_at, absent, now=event_s)
        return LocatedPositions(
            positions,
            node,
            counted_at,
            hidden,
            trip_node,
            self._id_since(slot, ts, now=event_s),
            withdrawn,
            gone,
            zones is not None and zones.shut_out(),
            now,
            event_s,
        )

    def _id_since(self, slot: Int32Array, ts: FloatArray, *, now: float) -> FloatArray | None:
        """Return since when the id of each position is heard; None: all ids stay."""
        stays_after_s = math.inf if self.succession.ids_change else self._stays_after_s
        if not (self.ids.any_change or stays_after_s):
            return None
        return self.ids.since(slot, ts, now=now, stays_after_s=stays_after_s)

    def _stay(
        self,
        positions: Positions,
        node: Int32Array,
        counted_at: Int32Array,
        absent: BoolArray | None,
        *,
        now: float,
    ) -> Int32Array:
        """Return where positions count if those that leave count where they were, as if silent."""
        leaves = counted_at < 0
        if self._places is not None:  # in a zone of the settings there is a place to count at
            leaves &= (node != IN_ZONE) | (False if absent is None else absent)
        return self._on_road.stay(positions.slot, positions.ts, counted_at, leaves=leaves, now=now)

    def _learn(
        self,
        stops: LearnedStops,
        positions: Positions,
        node: Int32Array,
        gone: KeyArray,
        *,
        now: float,
    ) -> None:
        """Learn where devices stop; nothing about those that take no part."""
        stops.withdraw(gone)
        if self._device_zones is not None:
            absent = self._device_zones.keep_out(positions, node)[1]
            node = np.where(absent, np.int32(IN_ZONE), node)
        stops.learn(positions, node, now=now)

    def _nodes_of(self, positions: Positions) -> Int32Array:
        if positions.node is not None:
            return positions.node
        return self._find(self._in_layers(positions))

    def _in_layers(self, positions: Positions) -> Positions:
        """Return positions with the network of each device, where there are several."""
        if self.layers is None:
            return positions
        return positions._replace(layer=self.layers.of(positions.slot))

    def _follow_ids(self, positions: Positions, now: float) -> None:
        """Watch whether ids that are said to stay change."""
        slot, ts, lat, lon = positions[:4]
        if self.ids.any_change:
            stays = ~self.ids.change(slot)
            slot, ts, lat, lon = slot[stays], ts[stays], lat[stays], lon[stays]
        pace = self._lasting.pace
        self.succession.tick(
            slot,
            ts,
            lat,
            lon,
            now=now,
            known_after_s=self._lasting.holds_s + pace.epoch_s + self._trips_last_s,
            ttl_s=pace.ttl_s,
        )

    def forget(
        self, freed: Int32Array, *, now: float, present: BoolArray, n_too_many: int = 0
    ) -> Int32Array:
        """Forget devices that are gone; return the slots that may be given to others.

        `freed`: slots that the operator has freed in the tick; `present`: those that it still uses,
        shape (slots,); `now`: unix seconds; `n_too_many`: how many make room, as far as nothing is
        lost with them.
        """
        if self.trust is not None:
            unseen = self._unseen(self.trust, before=now - self._ttl_s, present=present)
            freed = np.union1d(freed, unseen).astype(np.int32) if len(unseen) else freed
            if n_too_many > len(freed):
                room = self._making_room(self.trust, n_too_many, freed, present=present)
                freed = np.union1d(freed, room).astype(np.int32)
        if self._trips is not None:
            freed = self._trips.freed(freed, now=now, present=present)
        if not len(freed):
            return freed
        self.ids.forget(freed)
        if self._watches_ids:
            self.succession.free(freed, silent_since=now - self._silent_s)
        self._on_road.forget(freed)
        for part in (self.trust, self._places, self._device_zones, self.layers):
            if part is not None:
                part.forget(freed)
        if self._stops is not None:
            self._stops.free(freed)
        return freed

    @property
    def _silent_s(self) -> float:
        """A device that is freed because it is silent has been so for as long at least."""
        ttl_s = self._lasting.pace.ttl_s
        return ttl_s if self._trips is None else min(ttl_s, self._trips.forget_s)

    def _making_room(
        self, trust: TrustedDevices, n: int, freed: Int32Array, *, present: BoolArray
    ) -> Int32Array:
        """Return devices that count nowhere and wait for nothing, with those freed at most `n`.

        Their secret keys choose among them: when they come, or how often, changes nothing.
        """
        idle = np.setdiff1d(self._unseen(trust, before=math.inf, present=present), freed)
        if self._trips is not None:
            idle = idle[~self._trips.knows(idle)]
        return idle[np.argsort(self._keys(idle), kind="stable")[: n - len(freed)]]

    def _unseen(self, trust: TrustedDevices, *, before: float, present: BoolArray) -> Int32Array:
        """Return slots of devices that trust alone has heard of, and nothing since a time."""
        unheard = trust.unheard(before=before)
        stays = np.zeros(len(unheard), np.bool_)
        known = unheard < len(present)
        stays[known] = present[unheard[known]]
        return unheard[~stays]

    def close(self) -> None:
        """Settle the positions that are held; after the last tick."""
        if self._trips is not None:
            self._trips.close()

    def state(self) -> dict[str, Any]:
        """Return what later ticks depend on. It holds positions: store it like raw ones.

        Where devices stop again and again is never written.
        """
        parts = self._parts()
        return {name: None if part is None else part.state() for name, part in parts.items()}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state, between two ticks. Whether ids change is watched anew.

        Positions that wait for their trips are suppressed if trips are protected no more.
        """
        if self._trips is None and state["trips"] is not None:
            self._ledger.settle(Outcome.SUPPRESSED__TRIP_END, state["trips"]["n_held"])
        for name, part in self._parts().items():
            if part is not None and state.get(name) is not None:
                part.restore(state[name])

    def _parts(self) -> dict[str, Any]:
        return {
            "ids": self.ids,
            "trust": self.trust,
            "trips": self._trips,
            "places": self._places,
            "on_road": self._on_road,
            "device_zones": self._device_zones,
            "layers": self.layers,
        }


def matching_with(
    zoned: ZonedNetwork,
    *,
    snap_limit_m: float,
    secret: bytes,
    node_of_row: Int32Array | None = None,
) -> MapMatching:
    """Return how positions are matched with a network.

    Positions farther than `snap_limit_m` from every road are off the graph; `secret` is the key of
    the stand-ins. `node_of_row`: node of each row of a trace, the tags of positions being rows;
    None: by coordinate and heading.
    """
    if node_of_row is not None:
        locate = row_locator(zoned, node_of_row)
    else:
        locate = coordinate_locator(zoned, snap_limit_m=snap_limit_m)
    return MapMatching(locate, zone_places(zoned, secret=secret), zoned.network)


def timeliness(
    ts: FloatArray,
    *,
    behind_s: FloatArray | float,
    now: float,
    zoneless: BoolArray | None = None,
) -> UInt8Array:
    """Return `HELD` or why a time is not plausible, shape (n,); NaN, no time, is.

    `ts`, `now`: unix seconds; `behind_s`: how old positions may be; `zoneless`: see `Decoded`.
    """
    least_s = behind_s if isinstance(behind_s, float) else behind_s.min(initial=np.inf)
    if ts.min(initial=now) >= now - least_s and ts.max(initial=now) <= now + _MAX_AHEAD_S:
        return np.full(len(ts), Outcome.HELD, np.uint8)
    stated = np.where(np.isnan(ts), now, ts)
    outcome = classify_time(stated, now, ahead_s=_MAX_AHEAD_S, behind_s=behind_s)
    if zoneless is not None:
        outcome[zoneless & (outcome != Outcome.HELD)] = Outcome.INVALID__NO_ZONE
    return outcome


def coordinate_locator(zoned: ZonedNetwork, *, snap_limit_m: float) -> Locate:
    """Return a function that matches positions by coordinate and heading, none in a zone."""
    nodes, has_zones = LayeredLocator(zoned.network, limit_m=snap_limit_m), len(zoned.zones) > 0

    def locate(positions: Positions) -> Int32Array:
        node = nodes.locate(positions.lat, positions.lon, positions.heading, positions.layer)
        return zoned.keep_out(node, positions.lat, positions.lon) if has_zones else node

    return locate


def row_locator(zoned: ZonedNetwork, node_of_row: Int32Array) -> Locate:
    """Return a function for positions whose tags are rows of an array of nodes."""
    node_of_row = zoned.keep_out(node_of_row)
    return lambda positions: node_of_row[positions.tag.astype(np.int64)]
