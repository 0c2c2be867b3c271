"""Fleets: the devices that are hidden among each other, from what was decoded to messages.

Mobile devices are one, cloaked fixed devices another. A device that stands still is covered at the
same nodes for as long as its group lives. Whoever subtracts what never changes is left with the
members that move, so fixed devices have groups, a density map and a promise of their own.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from anonymizer.algorithms.positions.protection import ZonedNetwork
from anonymizer.domain.arrays import Int32Array
from anonymizer.pipeline.accounting import Ledger
from anonymizer.pipeline.devices import DeviceTable
from anonymizer.pipeline.positions.decode.decoded import Decoded
from anonymizer.pipeline.positions.decode.input_counts import InputCounts, LocatedInputs
from anonymizer.pipeline.positions.tick.device_zones import DeviceZones
from anonymizer.pipeline.positions.tick.engine import EngineParameters, PositionEngine, TickRelease
from anonymizer.pipeline.positions.tick.intake import (
    Intake,
    IntakeParameters,
    LocatedPositions,
    admit,
)
from anonymizer.pipeline.positions.tick.tick_accounts import TickPart, part_of

if TYPE_CHECKING:
    from anonymizer.algorithms.positions.adka import DensityRule
    from anonymizer.settings import DeviceZoneSettings, PresenceSettings


@dataclass(frozen=True, slots=True)
class FleetParameters:
    """What a fleet needs to know.

    Attributes
    ----------
    presence
        How many devices there may be, and which times are plausible.
    intake, engine
        See there.
    device_zones
        Of zones that devices state; None: they state none.
    """

    presence: "PresenceSettings"
    intake: IntakeParameters
    engine: EngineParameters
    device_zones: "DeviceZoneSettings | None" = None


class Fleet:
    """A table of devices, and the intake and the engine that they pass.

    Parameters
    ----------
    parameters
        What it needs to know.
    zoned
        A network with coordinates, and its privacy zones.
    ledger
        Where positions are settled.
    secret
        Key of the pseudonyms.
    inputs
        Where positions are counted by input.
    """

    def __init__(
        self,
        parameters: FleetParameters,
        zoned: ZonedNetwork,
        ledger: Ledger,
        *,
        secret: bytes,
        inputs: InputCounts,
    ) -> None:
        self._presence, self._ledger = parameters.presence, ledger
        self._inputs = LocatedInputs(inputs)
        self.devices = DeviceTable(secret=secret, max_devices=parameters.presence.max_devices)
        keys, zones = self.devices.keys, parameters.device_zones
        self.device_zones = None if zones is None else DeviceZones(zones, self.devices)
        self.engine = PositionEngine(parameters.engine, zoned.network, ledger, keys=keys)
        self.intake = Intake(
            parameters.intake,
            zoned,
            ledger,
            self.engine.operator,
            secret=secret,
            keys=keys,
            inputs=self._inputs,
            device_zones=self.device_zones,
        )

    @property
    def n_held(self) -> int:
        """Positions that wait for their trip to go on, or for a group."""
        return self.intake.n_held + self.engine.n_held

    def adopt(self, presence: "PresenceSettings", rule: "DensityRule", *, k_extra: int) -> None:
        """Use these from now on, the rule for k for groups that are formed from now on."""
        self._presence = presence
        self.engine.operator.set_rule(rule, k_extra=k_extra)

    def locate(self, decoded: Decoded, *, since: float, now: float) -> LocatedPositions:
        """Admit and locate the positions of a tick.

        Parameters
        ----------
        since, now
            Unix seconds between which the tick was open.
        """
        positions = admit(
            decoded,
            presence=self._presence,
            devices=self.devices,
            readings=self.engine.readings,
            ids=self.intake.ids,
            ledger=self._ledger,
            since=since,
            now=now,
            inputs=self._inputs,
        )
        return self.intake.locate(positions, now=now)

    def publish(self, tick: TickRelease, *, wall_ahead_s: float) -> TickPart:
        """Return the messages of a release; before `forget`.

        Parameters
        ----------
        wall_ahead_s
            Added to published times.
        """
        messages, message_of_member = self.engine.messages(
            tick, self.devices.pseudonyms, wall_ahead_s=wall_ahead_s
        )
        return part_of(messages, message_of_member, tick.release, tick.carried)

    def forget(self, tick: TickRelease, *, now: float) -> Int32Array:
        """Forget the devices that are gone after a tick; return their slots."""
        present = self.engine.operator.density.is_known
        freed = self.intake.forget(tick.freed, now=now, present=present)
        if self.engine.readings.names:
            self.engine.readings.free(freed)
        self.devices.free(freed)
        return freed

    def close(self) -> None:
        """Settle the positions that are held; after the last tick."""
        self.intake.close()
        self.engine.close()
