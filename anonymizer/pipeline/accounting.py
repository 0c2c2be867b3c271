"""The accounting of the positions flow.

received = published + suppressed{reason} + invalid{reason} + late + duplicate + held,
at every moment. `held` is not the difference: it is counted where things are held, so that a
position lost on the way shows as an imbalance.

Histograms that take whole batches: one observation a message would cost more than decoding.

The accounts of one stream, which outlive the process. The unit is the part: one message.

received = published + suppressed{reason} + invalid{reason} + late + duplicate + held, in what is
stored after every transaction: what an open window holds and what waits for the broker is held.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

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


class BatchHistogram:
    """Counts of values by upper edge, as Prometheus has them.

    Parameters
    ----------
    edges
        Rising upper edges, inclusive; values beyond the last count towards infinity.
    """

    def __init__(self, edges: Sequence[float]) -> None:
        self.edges = tuple(edges)
        self.total = 0.0
        self._n: IntArray = np.zeros(len(self.edges) + 1, np.int64)

    def observe(self, values: ArrayLike) -> None:
        """Take in a batch of values, any shape."""
        batch = np.asarray(values, np.float64).ravel()
        self._n += np.bincount(
            np.searchsorted(self.edges, batch, side="left"), minlength=len(self._n)
        )
        self.total += float(batch.sum())

    @property
    def n(self) -> int:
        """Number of values taken in."""
        return int(self._n.sum())

    def cumulative(self) -> list[int]:
        """Return how many values are at or below each edge; the last item is for infinity."""
        counts: list[int] = np.cumsum(self._n).tolist()
        return counts

    def quantile(self, q: float) -> float:
        """Return the upper edge under which a share `q` of the values lies; NaN when empty.

        As exact as the edges are close; infinity beyond the last.
        """
        counts = self.cumulative()
        if counts[-1] == 0:
            return float("nan")
        at = next(i for i, count in enumerate(counts) if count >= q * counts[-1])
        return self.edges[at] if at < len(self.edges) else float("inf")


RECEIVED = "received"


def label_of(outcome: Outcome) -> str:
    """Return an outcome as it stands in the accounts: `late`, `suppressed/overload`."""
    return "/".join(filter(None, outcome.label))


_OUTCOME_OF = {label_of(outcome): outcome for outcome in Outcome}


class StreamAccounts(Ledger):
    """A ledger that goes on where the stored accounts end.

    Parameters
    ----------
    stored
        Counts by label.
    """

    def __init__(self, stored: Mapping[str, int]) -> None:
        super().__init__()
        self.receive(stored.get(RECEIVED, 0))
        for label, n in stored.items():
            if label != RECEIVED:
                self.settle(_OUTCOME_OF[label], n)
        self._booked = self._all()

    def news(self) -> dict[str, int]:
        """Return what was counted since the last time, to be added to what is stored."""
        now, before = self._all(), self._booked
        self._booked = now
        return {
            label: n - before.get(label, 0) for label, n in now.items() if n != before.get(label)
        }

    def _all(self) -> dict[str, int]:
        counts = {label_of(outcome): n for outcome, n in self.counts().items() if n}
        return {RECEIVED: self.n_received} | counts if self.n_received else counts
