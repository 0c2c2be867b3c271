"""Engine of positions: located columns of a tick in; groups, outcomes and messages out.

The gateway runs one for mobile devices and one for fixed devices, and `cloak` one for a recorded
trace: they differ in their parameters alone. It knows no transport, no payload and no clock.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from anonymizer.algorithms.positions.device_keys import Keys, slots_as_keys
from anonymizer.domain.arrays import FloatArray, Int32Array, IntArray, UInt8Array
from anonymizer.domain.network import RoadNetwork
from anonymizer.domain.release import Release
from anonymizer.pipeline.ledger import Ledger
from anonymizer.pipeline.ports import Outgoing
from anonymizer.pipeline.positions.out.encoding import (
    Contract,
    Pseudonyms,
    ReleaseEncoder,
    round_time,
)
from anonymizer.pipeline.positions.tick.group_readings import GroupReadings, GroupValues
from anonymizer.pipeline.positions.tick.intake import LocatedPositions
from anonymizer.pipeline.positions.tick.tick_accounts import Accounts, Carried
from anonymizer.pipeline.positions.tick.zone_places import suppress_hidden

if TYPE_CHECKING:
    from anonymizer.pipeline.positions.tick.factory import Operator
    from anonymizer.settings import ReadingSettings


@dataclass(frozen=True, slots=True)
class EngineParameters:
    """What an engine needs to know."""

    make_operator: "Callable[[Keys], Operator]"
    """Returns the operator that forms the groups, given what names the devices."""
    groups_last: bool
    """Whether a group publishes for longer than its members report."""
    readings: "Sequence[ReadingSettings]"
    topic: str
    form: Literal["group", "device"]
    contract: Contract | None
    time_step_s: float
    formed_under: bytes = b""
    """See `meaning.formed_under`."""


@dataclass(frozen=True, slots=True, eq=False)
class TickRelease:
    """The release of one tick, and what became of its positions."""

    release: Release
    values: GroupValues | None
    """`release`, `values`: verified groups, and their published readings; None if no reading is
    declared."""
    event_s: float
    """Unix seconds at which the positions were current: the end of the tick, less the delay of
    protected trip ends."""
    published_s: float
    """The time to publish: `event_s` rounded down to a multiple of `time_step_s`."""
    until_s: FloatArray
    """Unix seconds until which the region of each group holds, shape (groups,); by `event_s`."""
    outcome: UInt8Array
    """Outcome of each located position of the tick, shape (n,)."""
    carried: Carried
    """The positions to be published with the release, of this tick and of earlier ones."""
    freed: Int32Array
    """Slots that the operator has freed."""


class PositionEngine:
    """Cloaking, verification, readings, accounts and encoding, tick by tick.

    All positions that are not in `TickRelease.carried` are settled or held when `tick` returns.

    The caller notes the declared readings of a tick in `readings`, before `tick`.
    """

    def __init__(
        self,
        parameters: EngineParameters,
        network: RoadNetwork,
        ledger: Ledger,
        *,
        keys: Keys = slots_as_keys,
    ) -> None:
        self.network = network
        self.operator = parameters.make_operator(keys)
        self.readings = GroupReadings(parameters.readings, keys)
        self._accounts = Accounts(ledger)
        self._encoder = ReleaseEncoder(
            network,
            topic=parameters.topic,
            form=parameters.form,
            contract=parameters.contract,
            time_step_s=parameters.time_step_s,
        )
        self._groups_last = parameters.groups_last
        self._time_step_s = parameters.time_step_s

    @property
    def n_held(self) -> int:
        """Positions that wait for a group."""
        return self._accounts.n_waiting

    @property
    def publishes_for_s(self) -> float:
        """Seconds after the last position in which releases may still follow, at most."""
        return self._groups_last * self.operator.pace.ttl_s

    def tick(self, located: LocatedPositions) -> TickRelease:
        """Make the release of one tick."""
        slot, event_s = located.positions.slot, located.event_s
        if len(located.withdrawn):
            self.operator.withdraw(located.withdrawn)
            self.readings.forget(located.withdrawn)
            self._accounts.withdraw(located.withdrawn)
        result = self.operator.tick(
            slot, located.positions.ts, located.counted_at, now=event_s, since=located.id_since
        )
        if located.hidden.any():
            suppress_hidden(result.outcome, located.hidden)
            if located.event_s < located.now:  # which zone it was in is known late
                self.readings.forget(slot[located.hidden])
        values = None
        if self.readings.names:
            since = located.now - self.operator.holds_s
            values = self.readings.summarize(result.release, since=since, present=result.present)
        return TickRelease(
            release=result.release,
            values=values,
            event_s=event_s,
            published_s=round_time(event_s, self._time_step_s),
            until_s=self.operator.until(result.release, now=event_s),
            outcome=result.outcome,
            carried=self._accounts.book(
                result.outcome,
                slot,
                located.positions.tag,
                grouped=result.release.member[result.present],
                lost=result.lost,
            ),
            freed=result.freed,
        )

    def messages(
        self, tick: TickRelease, pseudonyms: Pseudonyms, *, wall_ahead_s: float = 0.0
    ) -> tuple[list[Outgoing], IntArray]:
        """Return the messages of a release, and the message that contains each member."""
        return self._encoder.encode(
            tick.release,
            time=tick.event_s + wall_ahead_s,
            pseudonyms=pseudonyms,
            values=tick.values,
            until=tick.until_s + wall_ahead_s,
        )

    def close(self) -> None:
        """Settle the positions that are held; after the last tick."""
        self._accounts.close()

    def state(self) -> dict[str, Any]:
        """Return what later ticks depend on; the readings have a state of their own."""
        return {"operator": self.operator.state(), "accounts": self._accounts.state()}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state of an engine with the same parameters, between two ticks."""
        self.operator.restore(state["operator"])
        self._accounts.restore(state["accounts"])
