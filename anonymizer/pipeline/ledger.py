"""Ledgers of both flows: what was received, and what became of it.

received = published + suppressed{reason} + invalid{reason} + late + duplicate + held holds at
every moment for positions, and after every transaction of the store for parts of records. `held`
is counted where things are held, not derived as the difference, so that anything lost shows as
an imbalance.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from anonymizer.domain.arrays import BoolArray, IntArray, UInt8Array
from anonymizer.domain.outcomes import Outcome

FINAL = tuple(outcome for outcome in Outcome if outcome is not Outcome.HELD)
_FINAL: IntArray = np.array(FINAL, np.int64)


class Ledger:
    """Counts of what was received, and of its final outcomes. Counts only grow."""

    def __init__(self) -> None:
        self.n_received = 0
        self._n_of: IntArray = np.zeros(256, np.int64)

    def receive(self, n: int) -> None:
        """Count arrivals. A message counts as one position until it is decoded."""
        self.n_received += n

    def settle(self, outcome: Outcome, n: int = 1) -> None:
        """Count `n` with this final outcome."""
        self._n_of[outcome] += n

    def settle_all(self, outcome: UInt8Array) -> None:
        """Count a batch of final outcomes."""
        self._n_of += np.bincount(outcome, minlength=256)

    def add(self, other: "Ledger") -> None:
        """Add the counts of another ledger, which stay there as well."""
        self.n_received += other.n_received
        self._n_of += other._n_of  # noqa: SLF001  of the same class

    def absorb(self, other: "Ledger") -> None:
        """Move the counts of another ledger to this one."""
        self.add(other)
        other.n_received = 0
        other._n_of[:] = 0  # noqa: SLF001  of the same class

    def state(self) -> dict[str, Any]:
        """Return all counts."""
        return {"received": self.n_received, "of": self._n_of}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self.n_received, self._n_of = state["received"], state["of"]

    def n(self, outcome: Outcome) -> int:
        """Return the count of an outcome."""
        return int(self._n_of[outcome])

    @property
    def n_settled(self) -> int:
        """Sum of the counts of all final outcomes."""
        return int(self._n_of.sum())

    def counts(self) -> dict[Outcome, int]:
        """Return the count of every final outcome, in order, zeros included."""
        return dict(zip(FINAL, self._n_of[_FINAL].tolist(), strict=True))


RECEIVED = "received"


def label_of(outcome: Outcome) -> str:
    """Return the label of an outcome in the stored accounts: `late`, `suppressed/overload`."""
    return "/".join(filter(None, outcome.label))


_LABEL_OF = {outcome: label_of(outcome) for outcome in Outcome}
_OUTCOME_OF = {label: outcome for outcome, label in _LABEL_OF.items()}


class StreamAccounts(Ledger):
    """The ledger of one stream, which continues the stored accounts; it counts parts of records.

    `stored`: counts by label.
    """

    def __init__(self, stored: Mapping[str, int]) -> None:
        super().__init__()
        self.receive(stored.get(RECEIVED, 0))
        for label, n in stored.items():
            if label != RECEIVED:
                self.settle(_OUTCOME_OF[label], n)
        self._booked = self._all()

    def news(self) -> dict[str, int]:
        """Return the counts since the previous call, to be added to the stored accounts."""
        now, before = self._all(), self._booked
        self._booked = now
        return {
            label: n - before.get(label, 0) for label, n in now.items() if n != before.get(label)
        }

    def _all(self) -> dict[str, int]:
        counts = {_LABEL_OF[outcome]: n for outcome, n in self.counts().items() if n}
        return {RECEIVED: self.n_received} | counts if self.n_received else counts


def among(outcomes: Iterable[Outcome]) -> BoolArray:
    """Return whether each outcome is one of these, shape (256,)."""
    chosen = np.zeros(256, bool)  # to be indexed: of a few outcomes, isin takes 50 times as long
    chosen[list(outcomes)] = True
    return chosen


NOT_THE_NEWEST = among((Outcome.LATE, Outcome.DUPLICATE, Outcome.SUPPRESSED__SUPERSEDED))
"""Whether each outcome is one of positions than which a newer one is known, shape (256,)."""
NOT_PUBLISHED = among(
    outcome
    for outcome in Outcome
    if outcome.label[0] == "suppressed" and outcome is not Outcome.SUPPRESSED__SUPERSEDED
)
"""Whether each is one of positions in place of which nothing newer was published either."""
