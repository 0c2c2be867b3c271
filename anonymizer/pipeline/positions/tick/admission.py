"""Admission of positions: what was decoded in, those of devices that have a slot out.

One process has a table of devices, an intake and an engine together, see `Fleet`. A source of a
cluster has the first two alone.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from anonymizer.algorithms.positions.operator import classify_time
from anonymizer.domain.arrays import BoolArray, FloatArray, Int32Array, UInt8Array
from anonymizer.domain.outcomes import Outcome
from anonymizer.pipeline.accounting import Ledger
from anonymizer.pipeline.devices import NO_SLOT, DeviceTable
from anonymizer.pipeline.positions.decode.decoded import Decoded
from anonymizer.pipeline.positions.decode.decoding import date_the_undated
from anonymizer.pipeline.positions.decode.input_counts import InputCounts, LocatedInputs
from anonymizer.pipeline.positions.tick.device_zones import DeviceZones
from anonymizer.pipeline.positions.tick.group_readings import GroupReadings
from anonymizer.pipeline.positions.tick.intake import (
    Intake,
    IntakeParameters,
    Lasting,
    LocatedPositions,
    Matching,
)
from anonymizer.pipeline.positions.tick.trip_guard import Positions

if TYPE_CHECKING:
    from anonymizer.settings import DeviceZoneSettings, PresenceSettings

_MAX_AHEAD_S = 5.0
"""How far a device's clock may be ahead of the gateway's."""


@dataclass(frozen=True, slots=True)
class AdmissionParameters:
    """What admission needs to know.

    Attributes
    ----------
    presence
        How many devices there may be, and which times are plausible.
    intake
        See there.
    device_zones
        Of zones that devices state; None: they state none.
    """

    presence: "PresenceSettings"
    intake: IntakeParameters
    device_zones: "DeviceZoneSettings | None" = None


class Admission:
    """Gives devices their slots, notes what they say, and passes their positions to an intake.

    Parameters
    ----------
    parameters
        What it needs to know.
    matching
        With the network on which the devices move.
    ledger
        Where positions are settled that do not get through.
    devices, readings
        Where the devices get their slots, and where their readings are noted.
    lasting
        The operator that will cloak them.
    inputs
        Where positions are counted by input.

    Attributes
    ----------
    presence
        Which times are plausible; may be set between two ticks.
    """

    def __init__(
        self,
        parameters: AdmissionParameters,
        matching: Matching,
        ledger: Ledger,
        *,
        devices: DeviceTable,
        readings: GroupReadings,
        lasting: Lasting,
        inputs: InputCounts | None = None,
    ) -> None:
        self.presence, self._ledger = parameters.presence, ledger
        self._devices, self._readings = devices, readings
        self._inputs = None if inputs is None else LocatedInputs(inputs)
        zones = parameters.device_zones
        self.device_zones = None if zones is None else DeviceZones(zones, devices)
        self.intake = Intake(
            parameters.intake,
            matching,
            ledger,
            lasting,
            keys=devices.keys,
            inputs=self._inputs,
            device_zones=self.device_zones,
        )

    def locate(self, decoded: Decoded, *, since: float, now: float) -> LocatedPositions:
        """Admit and locate the positions of a tick.

        Parameters
        ----------
        since, now
            Unix seconds between which the tick was open.
        """
        return self.intake.locate(self._admitted(decoded, since=since, now=now), now=now)

    def _admitted(self, decoded: Decoded, *, since: float, now: float) -> Positions:
        """Return the admitted positions, tagged with their arrival times; note their readings."""
        outcome = timeliness(decoded.ts, self.presence, now=now)
        slot = np.full(len(outcome), NO_SLOT, np.int32)
        timely = np.flatnonzero(outcome == Outcome.HELD)
        # Only accepted positions may take a slot: a rejected message must leave no trace.
        slot[timely] = decoded.slots(timely, self._devices)
        outcome[timely[slot[timely] == NO_SLOT]] = Outcome.SUPPRESSED__OVERLOAD
        ts = date_the_undated(decoded.ts, slot, since=since, now=now)
        if len(decoded.reading_row):
            self._readings.note(
                decoded.reading_row,
                decoded.reading_attribute,
                decoded.reading_value,
                slot=slot,
                ts=ts,
            )
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
        return found._replace(heading=heading, node=node)

    def forget(self, freed: Int32Array, *, now: float, present: BoolArray) -> Int32Array:
        """Forget devices that are gone, see `Intake.forget`; return their slots."""
        freed = self.intake.forget(freed, now=now, present=present)
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


def timeliness(ts: FloatArray, presence: "PresenceSettings", *, now: float) -> UInt8Array:
    """Return `HELD` or why a time is not plausible, shape (n,); NaN, no time, is.

    Parameters
    ----------
    ts
        Unix seconds.
    presence
        Which times are plausible.
    now
        Unix seconds at which the tick closes.
    """
    stated = np.where(np.isnan(ts), now, ts)
    return classify_time(stated, now, ahead_s=_MAX_AHEAD_S, behind_s=presence.max_behind_s)
