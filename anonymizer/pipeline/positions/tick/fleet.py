"""Fleets: the devices that are hidden among each other, from what was decoded to messages.

Mobile devices are one, cloaked fixed devices another. A device that stands still is covered at the
same nodes for as long as its group lives. Whoever subtracts what never changes is left with the
members that move, so fixed devices have groups, a density map and a promise of their own.
"""

from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from anonymizer.algorithms.positions.protection import ZonedNetwork
from anonymizer.domain.arrays import Int32Array
from anonymizer.pipeline.accounting import Ledger
from anonymizer.pipeline.devices import DeviceTable
from anonymizer.pipeline.positions.decode.decoded import Decoded
from anonymizer.pipeline.positions.decode.input_counts import InputCounts
from anonymizer.pipeline.positions.tick.admission import Admission, AdmissionParameters
from anonymizer.pipeline.positions.tick.engine import EngineParameters, PositionEngine, TickRelease
from anonymizer.pipeline.positions.tick.intake import LocatedPositions, matching_with
from anonymizer.pipeline.positions.tick.tick_accounts import TickPart, part_of

if TYPE_CHECKING:
    from anonymizer.algorithms.positions.adka import DensityRule
    from anonymizer.settings import PresenceSettings


@dataclass(frozen=True, slots=True)
class FleetParameters:
    """What a fleet needs to know.

    Attributes
    ----------
    admission, engine
        See there.
    snap_limit_m
        Positions farther than this from every road are off the graph.
    """

    admission: AdmissionParameters
    engine: EngineParameters
    snap_limit_m: float


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
        inputs: InputCounts | None = None,
    ) -> None:
        most = parameters.admission.presence.max_devices
        self.devices = DeviceTable(secret=secret, max_devices=most)
        self.engine = PositionEngine(
            parameters.engine, zoned.network, ledger, keys=self.devices.keys
        )
        self._admission = Admission(
            parameters.admission,
            matching_with(zoned, snap_limit_m=parameters.snap_limit_m, secret=secret),
            ledger,
            devices=self.devices,
            readings=self.engine.readings,
            lasting=self.engine.operator,
            inputs=inputs,
        )
        self.device_zones = self._admission.device_zones
        self.intake = self._admission.intake

    @property
    def n_held(self) -> int:
        """Positions that wait for their trip to go on, or for a group."""
        return self.intake.n_held + self.engine.n_held

    def adopt(self, presence: "PresenceSettings", rule: "DensityRule", *, k_extra: int) -> None:
        """Use these from now on, the rule for k for groups that are formed from now on."""
        self._admission.presence = presence
        self.engine.operator.set_rule(rule, k_extra=k_extra)

    def locate(self, decoded: Decoded, *, since: float, now: float) -> LocatedPositions:
        """Admit and locate the positions of a tick.

        Parameters
        ----------
        since, now
            Unix seconds between which the tick was open.
        """
        return self._admission.locate(decoded, since=since, now=now)

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
        return self._admission.forget(tick.freed, now=now, present=present)

    def close(self) -> None:
        """Settle the positions that are held; after the last tick."""
        self.intake.close()
        self.engine.close()

    def state(self) -> dict[str, Any]:
        """Return what later ticks depend on. It holds positions: store it like raw ones."""
        return {"admission": self._admission.state(), "engine": self.engine.state()}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state of a fleet with the same settings, between two ticks."""
        self._admission.restore(state["admission"])
        self.engine.restore(state["engine"])


def secret_of_fixed(secret: bytes) -> bytes:
    """Return the key of the pseudonyms of fixed devices, given that of mobile ones."""
    return blake2b(secret, digest_size=32, person=b"fixed").digest()
