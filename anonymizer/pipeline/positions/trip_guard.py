"""Protected trip ends in the flow: positions are held until they are known to be far from one."""

from typing import NamedTuple

import numpy as np

from anonymizer.algorithms.positions.protection import TripEnds
from anonymizer.domain.arrays import BoolArray, FloatArray, Int32Array
from anonymizer.domain.outcomes import Outcome
from anonymizer.pipeline.accounting import Ledger
from anonymizer.settings import TripSettings


class Positions(NamedTuple):
    """Positions of devices that have a slot, with plausible times; all of shape (n,).

    Attributes
    ----------
    tag
        Carried along unchanged: the arrival time in the live flow, the row in a trace.
    heading
        Degrees clockwise from north, NaN for none. None: no position has one.
    """

    slot: Int32Array
    ts: FloatArray
    lat: FloatArray
    lon: FloatArray
    tag: FloatArray
    heading: FloatArray | None = None

    def __repr__(self) -> str:
        """Reveal no place."""
        return "Positions(...)"


class TripGuard:
    """Holds positions for the delay of the settings; suppresses those near the end of a trip.

    Positions leave it `delay_s` later. If it is switched off, they pass at once.
    """

    def __init__(self, settings: TripSettings, ledger: Ledger) -> None:
        self.delay_s = settings.delay_s if settings.enabled else 0.0
        self._forget_s = max(settings.gap_s, settings.delay_s)
        self._ends = TripEnds(settings.rule) if settings.enabled else None
        self._ledger = ledger

    @property
    def n_held(self) -> int:
        """Positions that are held."""
        return 0 if self._ends is None else self._ends.n_held

    def pass_on(self, positions: Positions, *, now: float) -> Positions:
        """Take the positions of a tick; return those, of any tick, that may now be published."""
        if self._ends is None:
            return positions
        slot, ts, lat, lon, tag, heading = positions
        tick = self._ends.tick(slot, ts, lat, lon, tag=tag, now=now, heading=heading)
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
            passed["heading"].copy(),
        )

    def freed(self, freed: Int32Array, *, now: float, present: BoolArray) -> Int32Array:
        """Return the slots that may be given to other devices.

        Parameters
        ----------
        freed
            Slots that the operator has just freed.
        now
            Unix seconds.
        present
            Slots that the operator still uses, shape (slots,).
        """
        if self._ends is None:
            return freed
        forgotten = self._ends.expire(now - self._forget_s, kept=present)
        self._ledger.settle(Outcome.SUPPRESSED__TRIP_END, len(forgotten.trip_end))
        return forgotten.slot

    def close(self) -> None:
        """Suppress the held positions: it will not be known whether their trips continued."""
        if self._ends is not None:
            left = self._ends.expire(np.inf, kept=np.zeros(0, bool))
            self._ledger.settle(Outcome.SUPPRESSED__TRIP_END, len(left.trip_end))
