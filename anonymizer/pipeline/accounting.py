"""The accounting of the positions flow.

received = published + suppressed{reason} + invalid{reason} + late + duplicate + held,
at every moment. `held` is not the difference: it is counted where things are held, so that a
position lost on the way shows as an imbalance.
"""

import numpy as np

from anonymizer.domain.arrays import IntArray, UInt8Array
from anonymizer.domain.outcomes import Outcome

FINAL = tuple(outcome for outcome in Outcome if outcome is not Outcome.HELD)


class Ledger:
    """Counts of positions received and settled; grows only."""

    def __init__(self) -> None:
        self.n_received = 0
        self._n_of: IntArray = np.zeros(256, np.int64)

    def receive(self, n: int) -> None:
        """Count positions that arrived. An unread message counts as one until it is read."""
        self.n_received += n

    def settle(self, outcome: Outcome, n: int = 1) -> None:
        """Count positions that met their final outcome."""
        self._n_of[outcome] += n

    def settle_all(self, outcome: UInt8Array) -> None:
        """Count a batch of final outcomes."""
        self._n_of += np.bincount(outcome, minlength=256)

    def n(self, outcome: Outcome) -> int:
        """Return how many positions met an outcome."""
        return int(self._n_of[outcome])

    @property
    def n_settled(self) -> int:
        """How many positions met any final outcome."""
        return int(self._n_of.sum())

    def counts(self) -> dict[Outcome, int]:
        """Return the count of every final outcome, in order, zeros included."""
        return {outcome: int(self._n_of[outcome]) for outcome in FINAL}
