"""Booking a tick: which positions go out with its release, which wait, which are settled."""

from typing import NamedTuple

import numpy as np

from anonymizer.algorithms.positions.operator import TickResult
from anonymizer.domain.arrays import FloatArray, Int32Array
from anonymizer.domain.outcomes import Outcome
from anonymizer.pipeline.accounting import Ledger

_NOT_THE_NEWEST = (Outcome.LATE, Outcome.DUPLICATE, Outcome.SUPPRESSED__SUPERSEDED)


class Carried(NamedTuple):
    """The positions that a release carries.

    Attributes
    ----------
    slot, at_s
        Whose each is and since when it has been here, shape (n,).
    n_direct
        The first so many came in this very tick; the rest had waited for a group.
    """

    slot: Int32Array
    at_s: FloatArray
    n_direct: int


class Accounts:
    """Settles what a tick decides, and remembers the positions that wait to be grouped."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._waiting = _WaitingRoom()

    @property
    def n_waiting(self) -> int:
        """Positions that wait, at most one a device."""
        return self._waiting.n

    def book(self, result: TickResult, slot: Int32Array, at_s: FloatArray) -> Carried:
        """Settle what is final; return what goes out.

        Parameters
        ----------
        result
            Of a tick.
        slot, at_s
            Device and arrival time of each of the tick's positions, shape (n,).
        """
        outcome = result.outcome
        newest = ~np.isin(outcome, _NOT_THE_NEWEST)
        displaced, _ = self._waiting.leave(slot[newest])
        self._ledger.settle(Outcome.SUPPRESSED__SUPERSEDED, len(displaced))
        out, waits = outcome == Outcome.PUBLISHED, outcome == Outcome.HELD
        self._waiting.enter(slot[waits], at_s[waits])
        self._ledger.settle_all(outcome[~out & ~waits])
        grouped, since_s = self._waiting.leave(result.release.member)
        gone, _ = self._waiting.leave(result.freed)
        self._ledger.settle(Outcome.SUPPRESSED__NEVER_GROUPED, len(gone))
        return Carried(
            np.concatenate([slot[out], grouped]),
            np.concatenate([at_s[out], since_s]),
            int(out.sum()),
        )

    def close(self) -> None:
        """Settle what still waits: no group will come."""
        self._ledger.settle(Outcome.SUPPRESSED__NEVER_GROUPED, self._waiting.close())


class _WaitingRoom:
    """Since when each waiting device's position has been here."""

    def __init__(self) -> None:
        self.n = 0
        self._since_s = np.full(0, np.nan)

    def enter(self, slot: Int32Array, at_s: FloatArray) -> None:
        """Let positions wait; none of these devices has one here."""
        if len(slot):
            more = int(slot.max()) + 1 - len(self._since_s)
            if more > 0:
                room = np.full(max(more, len(self._since_s)), np.nan)
                self._since_s = np.concatenate([self._since_s, room])
            self._since_s[slot] = at_s
            self.n += len(slot)

    def leave(self, slot: Int32Array) -> tuple[Int32Array, FloatArray]:
        """Take out what waits of these devices; return whose it was and since when."""
        known = slot[slot < len(self._since_s)]
        waiting = known[~np.isnan(self._since_s[known])]
        since_s = self._since_s[waiting]
        self._since_s[waiting] = np.nan
        self.n -= len(waiting)
        return waiting, since_s

    def close(self) -> int:
        """Take out everything; return how many positions waited."""
        n, self.n = self.n, 0
        self._since_s[:] = np.nan
        return n
