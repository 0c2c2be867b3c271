"""Protected trip ends in the flow: positions wait until they are known not to be near one."""

from typing import NamedTuple

import numpy as np

from anonymizer.algorithms.positions.protection import TripEnds
from anonymizer.domain.arrays import BoolArray, FloatArray, Int32Array
from anonymizer.domain.outcomes import Outcome
from anonymizer.pipeline.accounting import Ledger
from anonymizer.settings import TripSettings


class Positions(NamedTuple):
    """Believed positions of devices with a slot, all of shape (n,)."""

    slot: Int32Array
    ts: FloatArray
    lat: FloatArray
    lon: FloatArray
    at_s: FloatArray

    def __repr__(self) -> str:
        """Say nothing of where."""
        return "Positions(...)"


class TripGuard:
    """Holds positions for the delay of the settings, and settles those near an end of a trip.

    What comes out is so much older: who takes it lives `delay_s` behind. Switched off, all is
    passed on at once.
    """

    def __init__(self, settings: TripSettings, ledger: Ledger) -> None:
        self.delay_s = settings.delay_s if settings.enabled else 0.0
        self._forget_s = max(settings.gap_s, settings.delay_s)
        self._ends = TripEnds(settings.rule) if settings.enabled else None
        self._ledger = ledger

    @property
    def n_held(self) -> int:
        """Positions that wait."""
        return 0 if self._ends is None else self._ends.n_held

    @property
    def next_due_s(self) -> float:
        """Unix seconds when the next position that waits is decided; inf: none waits."""
        return np.inf if self._ends is None else self._ends.next_due_s

    def pass_on(self, positions: Positions, *, now: float) -> Positions:
        """Take in a tick's positions; return those that are decided and may be published."""
        if self._ends is None:
            return positions
        slot, ts, lat, lon, at_s = positions
        tick = self._ends.tick(slot, ts, lat, lon, tag=at_s, now=now)
        for outcome, settled in (
            (Outcome.SUPPRESSED__TRIP_END, tick.trip_end),
            (Outcome.SUPPRESSED__OVERLOAD, tick.overflow),
            (Outcome.LATE, tick.late),
            (Outcome.DUPLICATE, tick.duplicate),
        ):
            self._ledger.settle(outcome, len(settled))
        passed = tick.passed
        return Positions(
            passed["slot"].astype(np.int32),
            passed["ts"].copy(),
            passed["lat"].copy(),
            passed["lon"].copy(),
            passed["tag"].copy(),
        )

    def gone(self, freed: Int32Array, *, now: float, present: BoolArray) -> Int32Array:
        """Return the slots that nobody needs any more.

        Parameters
        ----------
        freed
            What the operator has just let go of.
        now
            Unix seconds.
        present
            Slots that the operator still knows, shape (slots,).
        """
        if self._ends is None:
            return freed
        forgotten = self._ends.expire(now - self._forget_s, kept=present)
        self._ledger.settle(Outcome.SUPPRESSED__TRIP_END, len(forgotten.trip_end))
        return forgotten.slot

    def close(self) -> None:
        """Settle what waits: nobody will see whether its trip goes on."""
        if self._ends is not None:
            left = self._ends.expire(np.inf, kept=np.zeros(0, bool))
            self._ledger.settle(Outcome.SUPPRESSED__TRIP_END, len(left.trip_end))
