"""Protected trip ends in the flow: positions are held until they are known to be far from one."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from anonymizer.algorithms.positions.protection import TripEnds
from anonymizer.domain.arrays import BoolArray, FloatArray, Int8Array, Int32Array, IntArray
from anonymizer.domain.discreet import discreet
from anonymizer.domain.outcomes import Outcome
from anonymizer.pipeline.ledger import Ledger

if TYPE_CHECKING:
    from anonymizer.settings import TripSettings


@discreet
class Positions(NamedTuple):
    """Positions of devices that have a slot, with plausible times; all of shape (n,).

    `tag` is carried along unchanged: the arrival time, or the row in a trace. `heading`: degrees
    clockwise from north, NaN for none. `node`: where it is known already. `layer`: on which of
    several networks the device moves, negative where it does not matter; None: there is one.
    """

    slot: Int32Array
    ts: FloatArray
    lat: FloatArray
    lon: FloatArray
    tag: FloatArray
    heading: FloatArray | None = None
    node: Int32Array | None = None
    layer: Int8Array | None = None

    def only(self, chosen: BoolArray | IntArray) -> "Positions":
        """Return the chosen positions: a mask of shape (n,), or rows."""
        return Positions(
            self.slot[chosen],
            self.ts[chosen],
            self.lat[chosen],
            self.lon[chosen],
            self.tag[chosen],
            None if self.heading is None else self.heading[chosen],
            None if self.node is None else self.node[chosen],
            None if self.layer is None else self.layer[chosen],
        )


class TripGuard:
    """Holds positions for the delay of the settings; suppresses those near the end of a trip.

    Positions leave it a delay later, `latency_s` of the settings.
    """

    def __init__(self, settings: "TripSettings", ledger: Ledger) -> None:
        self.forget_s = max(settings.gap_s, settings.delay_s)
        """A device that is silent for longer is forgotten."""
        self._ends = TripEnds(settings.rule)
        self._ledger = ledger
        self._dropped: Int32Array = np.zeros(0, np.int32)

    @property
    def n_held(self) -> int:
        """Positions that are held."""
        return self._ends.n_held

    def pass_on(self, positions: Positions, *, now: float) -> Positions:
        """Take the positions of a tick; return those, of any tick, that may now be published."""
        slot, ts, lat, lon, tag, heading = positions[:6]
        tick = self._ends.tick(slot, ts, lat, lon, tag=tag, now=now, heading=heading)
        # Of several of a device all but one are superseded, as they would be elsewhere: public
        # counts rely on it.
        n_ends = len(np.unique(tick.trip_end["slot"]))
        for outcome, n in (
            (Outcome.SUPPRESSED__TRIP_END, n_ends),
            (Outcome.SUPPRESSED__SUPERSEDED, len(tick.trip_end) - n_ends),
            (Outcome.SUPPRESSED__OVERLOAD, len(tick.overflow)),
            (Outcome.LATE, len(tick.late)),
            (Outcome.DUPLICATE, len(tick.duplicate)),
        ):
            self._ledger.settle(outcome, n)
        passed = tick.passed
        return Positions(
            passed["slot"].astype(np.int32),
            passed["ts"].copy(),
            passed["lat"].copy(),
            passed["lon"].copy(),
            passed["tag"].copy(),
            passed["heading"].copy(),
        )

    def drop(self, slot: Int32Array) -> None:
        """Forget the trips of devices that take no part any more, and what is held of them."""
        gone = self._ends.drop(slot)
        self._ledger.settle(Outcome.SUPPRESSED__PRIVACY_ZONE, len(gone))
        self._dropped = np.union1d(self._dropped, slot).astype(np.int32)

    def knows(self, slot: Int32Array) -> BoolArray:
        """Return which devices are on a trip or may begin one, shape (n,)."""
        return self._ends.knows(slot)

    def freed(self, freed: Int32Array, *, now: float, present: BoolArray) -> Int32Array:
        """Forget devices that are silent; return the slots that may be given to other devices.

        A trip is forgotten by its own reports alone, whoever else still uses the slot.

        `freed`: slots that the caller has just freed; `present`: those that it still uses, shape
        (slots,); `now`: unix seconds.
        """
        forgotten = self._ends.expire(now - self.forget_s)
        self._ledger.settle(Outcome.SUPPRESSED__TRIP_END, len(forgotten.trip_end))
        gone = np.union1d(forgotten.slot, self._dropped)
        self._dropped = self._dropped[:0]
        slot = np.union1d(freed, gone).astype(np.int32)
        used = self._ends.knows(slot)
        used[slot < len(present)] |= present[slot[slot < len(present)]]
        return slot[~used]

    def state(self) -> dict[str, Any]:
        """Return what changes from tick to tick. It holds positions: store it like raw ones."""
        return self._ends.state()

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self._ends.restore(state)

    def close(self) -> None:
        """Suppress the held positions: it will not be known whether their trips continued."""
        left = self._ends.expire(np.inf)
        self._ledger.settle(Outcome.SUPPRESSED__TRIP_END, len(left.trip_end))
