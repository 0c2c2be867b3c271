"""Fleets: the devices that are hidden among each other, from what was decoded to messages.

Mobile devices are one, cloaked fixed devices another. A device that stands still is covered at the
same nodes for as long as its group lives. Whoever subtracts what never changes is left with the
members that move, so fixed devices have groups, a density map and a promise of their own.

A source of a cluster has the first half of a fleet alone, its `Admission`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np

from anonymizer.algorithms.positions.demands import SharedDemands
from anonymizer.algorithms.positions.protection import ZonedNetwork
from anonymizer.algorithms.positions.trust import Claims
from anonymizer.domain.arrays import BoolArray, FloatArray, Int32Array, IntArray, UInt8Array
from anonymizer.domain.outcomes import Outcome
from anonymizer.pipeline.devices import NO_SLOT, DeviceTable
from anonymizer.pipeline.ledger import Ledger, among
from anonymizer.pipeline.positions.counts.contributors import (
    Contributors,
    counter_of,
    counter_of_attribute,
)
from anonymizer.pipeline.positions.decode.decoded import Decoded, InputCounts, LocatedInputs
from anonymizer.pipeline.positions.decode.decoding import date_the_undated
from anonymizer.pipeline.positions.tick.device_zones import DeviceZones
from anonymizer.pipeline.positions.tick.engine import EngineParameters, PositionEngine, TickRelease
from anonymizer.pipeline.positions.tick.group_readings import GroupReadings
from anonymizer.pipeline.positions.tick.intake import (
    Intake,
    IntakeParameters,
    Lasting,
    LocatedPositions,
    MapMatching,
    matching_with,
)
from anonymizer.pipeline.positions.tick.mover_limits import MoverLimits
from anonymizer.pipeline.positions.tick.tick_accounts import TickPart, part_of
from anonymizer.pipeline.positions.tick.trip_guard import Positions

if TYPE_CHECKING:
    from anonymizer.algorithms.positions.adka import DensityRule
    from anonymizer.settings import DeviceZoneSettings, InputSettings, PresenceSettings

_IS_OLD = among((Outcome.LATE, Outcome.DUPLICATE))
_IS_IMPLAUSIBLE = among(
    (
        Outcome.LATE,
        Outcome.INVALID__FUTURE_TIME,
        Outcome.INVALID__ANCIENT_TIME,
        Outcome.INVALID__NO_ZONE,
        Outcome.INVALID__TIME_IN_S,
        Outcome.INVALID__TIME_IN_MS,
        Outcome.INVALID__TIME_IN_US,
        Outcome.INVALID__TIME_IN_NS,
        Outcome.INVALID__TIME_FORM,
    )
)
"""Shown in public. What trust refuses is not: a fix is vague, or far away, where a device is hidden
from the sky, and nobody need learn how often."""
_DEVICES_PER_ZONES = 100
"""Of so many devices that may be present, one may have zones of its own."""


@dataclass(frozen=True, slots=True)
class AdmissionParameters:
    """What admission needs to know.

    `inputs` have the limits of what is believed. Without `device_zones` devices state none;
    `most_k`: see `DeviceZones`. `layer_of_input`: on which of several networks the devices of each
    input move, negative where it does not matter; empty: there is one network.
    """

    presence: "PresenceSettings"
    intake: IntakeParameters
    inputs: "tuple[InputSettings, ...]" = ()
    device_zones: "DeviceZoneSettings | None" = None
    most_k: int = 0
    layer_of_input: tuple[int, ...] = ()


class Admission:
    """Gives devices their slots, notes what they say, and passes their positions to an intake.

    `ledger` is where positions are settled that do not get through, `lasting` the operator that
    will cloak the others; `leave`: see `DeviceLayers`.
    """

    def __init__(
        self,
        parameters: AdmissionParameters,
        matching: MapMatching,
        ledger: Ledger,
        *,
        devices: DeviceTable,
        readings: GroupReadings,
        lasting: Lasting,
        inputs: InputCounts | None = None,
        contributors: Contributors | None = None,
        leave: Callable[[Int32Array], BoolArray] | None = None,
    ) -> None:
        self._ledger = ledger
        self._contributors = contributors
        self._devices, self._readings = devices, readings
        self._inputs = None if inputs is None else LocatedInputs(inputs)
        self._limits = MoverLimits(parameters.inputs, parameters.presence)
        self._layer_of_input = np.array(parameters.layer_of_input, np.int8)
        zones = parameters.device_zones
        self.device_zones = (
            None
            if zones is None
            else DeviceZones(
                zones,
                devices,
                most_devices=max(1, parameters.presence.max_devices // _DEVICES_PER_ZONES),
                most_k=parameters.most_k,
            )
        )
        self.intake = Intake(
            parameters.intake,
            matching,
            ledger,
            lasting,
            keys=devices.keys,
            inputs=self._inputs,
            device_zones=self.device_zones,
            leave=leave,
        )

    def adopt(self, presence: "PresenceSettings") -> None:
        """Judge by these settings from now on which times are plausible; between two ticks."""
        self._limits.adopt(presence)

    def locate(self, decoded: Decoded, *, since: float, now: float) -> LocatedPositions:
        """Admit and locate the positions of a tick.

        `since`, `now`: unix seconds between which the tick was open.
        """
        positions, slot, ts = self._admitted(decoded, since=since, now=now)
        located = self.intake.locate(positions, now=now)
        row = decoded.reading_row
        if len(row):
            # What a device says in a zone or off the roads is as unknown as if it were silent.
            unheard = np.isin(slot[row], located.positions.slot[located.node < 0])
            self._readings.note(
                row[~unheard],
                decoded.reading_attribute[~unheard],
                decoded.reading_value[~unheard],
                slot=slot,
                ts=ts,
            )
        return located

    def _admitted(
        self, decoded: Decoded, *, since: float, now: float
    ) -> tuple[Positions, Int32Array, FloatArray]:
        """Return the admitted positions, tagged with their arrival times.

        And the slot and time of each position, `NO_SLOT` for those that are not admitted.
        """
        outcome = self._limits.plausible(decoded, now=now)
        slot = np.full(len(outcome), NO_SLOT, np.int32)
        timely = np.flatnonzero(outcome == Outcome.HELD)
        # Only accepted positions may take a slot: a rejected message must leave no trace.
        slot[timely], outcome[timely] = self._slots(decoded, timely)
        if self.intake.layers is not None and decoded.input is not None:
            rows = np.flatnonzero(slot != NO_SLOT)
            layer = self._layer_of_input[decoded.input[rows]]
            elsewhere = rows[self.intake.layers.mark(slot[rows], layer, now=now)]
            slot[elsewhere], outcome[elsewhere] = NO_SLOT, Outcome.SUPPRESSED__OFF_GRAPH
        ts = date_the_undated(decoded.ts, slot, since=since, now=now)
        self._distrust(decoded, slot, ts, outcome, now=now)
        if self._contributors is not None:
            self._note(self._contributors, decoded, slot, outcome)
        if decoded.id_changes is not None:
            self.intake.ids.mark(slot[decoded.id_changes & (slot != NO_SLOT)])
        kept = outcome == Outcome.HELD
        self._ledger.settle_all(outcome[~kept])
        if self._inputs is not None and decoded.input is not None:
            self._inputs.counts.settle_all(decoded.input[~kept], outcome[~kept])
            self._inputs.admit(slot[kept], decoded.input[kept])
        columns = (slot, ts, decoded.lat, decoded.lon, decoded.at_s)
        heading = None if decoded.heading is None else decoded.heading[kept]
        node = None if decoded.node is None else decoded.node[kept]
        found = Positions(*(column[kept] for column in columns))
        return found._replace(heading=heading, node=node), slot, ts

    def _slots(self, decoded: Decoded, rows: IntArray) -> tuple[Int32Array, UInt8Array]:
        """Return the slots of positions, and the outcomes of those that get none.

        Once half the table is used, newcomers off the roads get none: whoever makes up ids would
        keep out those who come after. They are company for nobody anyway.
        """
        are_near_roads = partial(self._are_near_roads, decoded)
        slot = decoded.slots(rows, self._devices, are_near_roads=are_near_roads)
        outcome = np.full(len(rows), Outcome.HELD, np.uint8)
        outside = np.flatnonzero(slot == NO_SLOT)
        if len(outside):
            near = are_near_roads(rows[outside])
            full, away = Outcome.SUPPRESSED__OVERLOAD, Outcome.SUPPRESSED__OFF_GRAPH
            outcome[outside] = np.where(near, full, away)
        return slot, outcome

    def _are_near_roads(self, decoded: Decoded, rows: IntArray) -> BoolArray:
        """Return which positions are near roads, before their devices have slots."""
        layer = None
        if self.intake.layers is not None:
            if decoded.input is None:
                return np.ones(len(rows), np.bool_)
            layer = self._layer_of_input[decoded.input[rows]]
        slot = np.zeros(len(rows), np.int32)  # which nobody asks for
        place = decoded.lat[rows], decoded.lon[rows]
        heading = None if decoded.heading is None else decoded.heading[rows]
        node = None if decoded.node is None else decoded.node[rows]
        return self.intake.are_near_roads(
            Positions(slot, decoded.ts[rows], *place, decoded.at_s[rows], heading, node, layer)
        )

    def _note(
        self, contributors: Contributors, decoded: Decoded, slot: Int32Array, outcome: UInt8Array
    ) -> None:
        """Note whose positions are not believed, and whose readings are out of range."""
        implausible = np.flatnonzero(_IS_IMPLAUSIBLE[outcome])
        if len(implausible):
            input_ = np.full(len(outcome), -1, np.int32) if decoded.input is None else decoded.input
            contributors.note_senders(
                decoded.senders,
                decoded.sender[implausible],
                counter_of(outcome[implausible], input_[implausible]),
                decoded.names,
            )
        if len(decoded.reading_row):
            of, attribute = slot[decoded.reading_row], decoded.reading_attribute
            outside = self._readings.are_outside(attribute, decoded.reading_value)
            outside &= of != NO_SLOT
            contributors.note(of[outside], counter_of_attribute(attribute[outside]))

    def _distrust(
        self,
        decoded: Decoded,
        slot: Int32Array,
        ts: FloatArray,
        outcome: UInt8Array,
        *,
        now: float,
    ) -> None:
        """Take the slots of positions away that are not believed, and set their outcomes."""
        if self.intake.trust is None:
            return
        n = len(slot)
        message = np.arange(n) if decoded.message is None else decoded.message
        undated = np.isnan(decoded.ts)
        place = decoded.lat, decoded.lon
        claims = Claims(slot, ts, *place, undated, decoded.hearsay, message)
        max_mps, rows = self._limits.max_mps(decoded.input, n), None
        if slot.min(initial=0) == NO_SLOT:
            rows = np.flatnonzero(slot != NO_SLOT)
            claims, max_mps = claims.only(rows), max_mps[rows]
        found = self.intake.trust.judge(claims, max_mps=max_mps, now=now)
        if found.any():
            refused = np.flatnonzero(found)
            at = refused if rows is None else rows[refused]
            outcome[at], slot[at] = found[refused], NO_SLOT

    def forget(self, freed: Int32Array, *, now: float, present: BoolArray) -> Int32Array:
        """Forget devices that are gone, see `Intake.forget`; return their slots."""
        n_too_many = max(0, -self._devices.n_for_all)
        freed = self.intake.forget(freed, now=now, present=present, n_too_many=n_too_many)
        if self._readings.names:
            self._readings.free(freed)
        self._devices.free(freed)
        return freed

    def state(self) -> dict[str, Any]:
        """Return what later ticks depend on. It holds positions: store it like raw ones."""
        return {name: part.state() for name, part in self._parts().items()}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state, between two ticks."""
        for name, part in self._parts().items():
            part.restore(state[name])

    def _parts(self) -> dict[str, Any]:
        return {"devices": self._devices, "readings": self._readings, "intake": self.intake}


@dataclass(frozen=True, slots=True)
class FleetParameters:
    """What a fleet needs to know.

    Positions farther than `snap_limit_m` from every road are off the graph. `demands_shared_by`
    devices share a demand, see `SharedDemands`; 0: nobody can demand anything.
    """

    admission: AdmissionParameters
    engine: EngineParameters
    snap_limit_m: float
    demands_shared_by: int = 0


class Fleet:
    """A table of devices, and the intake and the engine that they pass."""

    def __init__(
        self,
        parameters: FleetParameters,
        zoned: ZonedNetwork,
        ledger: Ledger,
        *,
        secret: bytes,
        inputs: InputCounts | None = None,
        has_public_figures: bool = False,
    ) -> None:
        most = parameters.admission.presence.max_devices
        under = parameters.engine.formed_under
        self.devices = DeviceTable(secret=secret, max_devices=most, under=under)
        self.engine = PositionEngine(
            parameters.engine, zoned.network, ledger, keys=self.devices.keys
        )
        self.contributors = None
        if has_public_figures:
            self.contributors = Contributors(
                self.devices,
                delay_s=parameters.admission.intake.trips.latency_s,
                kept_s=self.engine.operator.pace.longest_ttl_s,
                most_devices=most,
            )
        self._admission = Admission(
            parameters.admission,
            matching_with(zoned, snap_limit_m=parameters.snap_limit_m, secret=secret),
            ledger,
            devices=self.devices,
            readings=self.engine.readings,
            lasting=self.engine.operator,
            inputs=inputs,
            contributors=self.contributors,
            leave=getattr(self.engine.operator, "leave", None),  # not with districts
        )
        self.device_zones = self._admission.device_zones
        self._demands = None
        if self.device_zones is not None and parameters.demands_shared_by:
            self._demands = SharedDemands(
                parameters.demands_shared_by, self.devices.keys, self.devices.publishers
            )
        self.intake = self._admission.intake

    @property
    def n_held(self) -> int:
        """Positions that wait for their trip to go on, or for a group."""
        return self.intake.n_held + self.engine.n_held

    @property
    def n_shut_out(self) -> int:
        """Devices about which nothing is published although they state that they take part.

        Their statements cannot be used, they must wait because they took no part before, or their
        demands are not met, be it only until the next groups are formed.
        """
        zones = self.device_zones
        if zones is None:
            return 0
        found = np.array([self.devices.find(each) for each in zones.demands], np.int32)
        return zones.n_refused + self.engine.operator.n_ungrouped(found[found != NO_SLOT])

    def adopt(self, presence: "PresenceSettings", rule: "DensityRule", *, k_extra: int) -> None:
        """Use these from now on, the rule for k for groups that are formed from now on."""
        self._admission.adopt(presence)
        self.engine.operator.set_rule(rule, k_extra=k_extra)

    def locate(self, decoded: Decoded, *, since: float, now: float) -> LocatedPositions:
        """Admit and locate the positions of a tick.

        `since`, `now`: unix seconds between which the tick was open.
        """
        located = self._admission.locate(decoded, since=since, now=now)
        if self._demands is not None and self.device_zones is not None:
            self._demands.stated = self.device_zones.demands
            self.engine.operator.demand(self._demands or None)
        return located

    def publish(self, tick: TickRelease, *, wall_ahead_s: float) -> TickPart:
        """Return the messages of a release; before `forget`.

        `wall_ahead_s`: added to published times.
        """
        messages, message_of_member = self.engine.messages(
            tick, self.devices.pseudonyms, wall_ahead_s=wall_ahead_s
        )
        return part_of(messages, message_of_member, tick.release, tick.carried)

    def contribute(self, located: LocatedPositions, tick: TickRelease) -> None:
        """Let the devices of a tick contribute to public counters; before `forget`."""
        if self.contributors is not None:
            old = np.flatnonzero(_IS_OLD[tick.outcome])
            if len(old):
                self.contributors.note(located.positions.slot[old], counter_of(tick.outcome[old]))
            self.contributors.tick(located)

    def forget(self, tick: TickRelease, *, now: float) -> Int32Array:
        """Forget the devices that are gone after a tick; return their slots."""
        present = self.engine.operator.density.is_known
        freed = self._admission.forget(tick.freed, now=now, present=present)
        if self.contributors is not None:
            self.contributors.free(freed)
        return freed

    def close(self) -> None:
        """Settle the positions that are held; after the last tick."""
        self.intake.close()
        self.engine.close()

    def state(self) -> dict[str, Any]:
        """Return what later ticks depend on. It holds positions: store it like raw ones."""
        return {
            "admission": self._admission.state(),
            "engine": self.engine.state(),
            "demands": None if self._demands is None else self._demands.state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state of a fleet with the same settings, between two ticks."""
        self._admission.restore(state["admission"])
        self.engine.restore(state["engine"])
        if self._demands is not None and state["demands"] is not None:
            self._demands.restore(state["demands"])


def secret_of_fixed(secret: bytes) -> bytes:
    """Return the key of the pseudonyms of fixed devices, given that of mobile ones."""
    return blake2b(secret, digest_size=32, person=b"fixed").digest()
