"""Accounting of both flows: ledgers of outcomes, and histograms.

received = published + suppressed{reason} + invalid{reason} + late + duplicate + held holds at
every moment for positions, and after every transaction of the store for parts of records. `held`
is counted where things are held, not derived as the difference, so that anything lost shows as
an imbalance.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from anonymizer.domain.arrays import IntArray, UInt8Array
from anonymizer.domain.outcomes import Outcome

FINAL = tuple(outcome for outcome in Outcome if outcome is not Outcome.HELD)


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
        return {outcome: int(self._n_of[outcome]) for outcome in FINAL}


class BatchHistogram:
    """Histogram that takes whole batches: counts of values by upper edge, as in Prometheus.

    Parameters
    ----------
    edges
        Rising upper edges, inclusive; values beyond the last count towards infinity.
    interpolate
        Whether values may lie anywhere between two edges (> 0), as durations do. Quantiles are
        then interpolated, evenly in the logarithm. Otherwise a quantile is an upper edge, which
        is exact for whole numbers with edges at each.
    """

    def __init__(self, edges: Sequence[float], *, interpolate: bool = False) -> None:
        self.edges = tuple(edges)
        self.total = 0.0
        self._interpolate = interpolate
        self.counts: IntArray = np.zeros(len(self.edges) + 1, np.int64)

    def observe(self, values: ArrayLike) -> None:
        """Take in a batch of values, any shape."""
        batch = np.asarray(values, np.float64).ravel()
        self.counts += np.bincount(
            np.searchsorted(self.edges, batch, side="left"), minlength=len(self.counts)
        )
        self.total += float(batch.sum())

    @property
    def n(self) -> int:
        """Number of values taken in."""
        return int(self.counts.sum())

    @property
    def mean(self) -> float:
        """Mean of all values; NaN if there are none."""
        return self.total / self.n if self.n else math.nan

    def cumulative(self) -> list[int]:
        """Return how many values are at or below each edge; the last item is for infinity."""
        counts: list[int] = np.cumsum(self.counts).tolist()
        return counts

    def quantile(self, q: float) -> float:
        """Return the value at or below which a share `q` of the values lies; NaN if empty.

        Beyond the last edge it is that edge, as in Prometheus.
        """
        counts = self.cumulative()
        n = counts[-1]
        if n == 0:
            return math.nan
        at = next(i for i, count in enumerate(counts) if count and count >= q * n)
        if not (self._interpolate and 0 < at < len(self.edges)):
            return self.edges[min(at, len(self.edges) - 1)]
        low, high = self.edges[at - 1], self.edges[at]
        share = (q * n - counts[at - 1]) / (counts[at] - counts[at - 1])
        return float(low * (high / low) ** share)

    def copy(self) -> "BatchHistogram":
        """Return a histogram with the same values."""
        return self.since(BatchHistogram(self.edges))

    def since(self, earlier: "BatchHistogram") -> "BatchHistogram":
        """Return a histogram of the values taken in after `earlier`, a copy of this one."""
        rest = BatchHistogram(self.edges, interpolate=self._interpolate)
        rest.total = self.total - earlier.total
        rest.counts = self.counts - earlier.counts
        return rest

    def plus(self, other: "BatchHistogram") -> "BatchHistogram":
        """Return a histogram of the values of both, which have the same edges."""
        both = self.copy()
        both._interpolate = self._interpolate  # noqa: SLF001  of the same class
        both.total += other.total
        both.counts = both.counts + other.counts
        return both

    def in_steps(self, step: int) -> "BatchHistogram":
        """Return a histogram with its cumulative counts rounded down to multiples of `step`.

        The total is that of these counts, as if each value lay in the middle of its edges: an
        exact one would change with every single value.
        """
        rest = BatchHistogram(self.edges, interpolate=self._interpolate)
        cumulative = np.cumsum(self.counts)
        rest.counts = np.diff(cumulative - cumulative % step, prepend=0)
        middles = np.append(self.edges, self.edges[-1])
        if self._interpolate:
            middles[1:-1] = np.sqrt(middles[:-2] * middles[1:-1])
        rest.total = float(rest.counts @ middles)
        return rest


RECEIVED = "received"


def label_of(outcome: Outcome) -> str:
    """Return the label of an outcome in the stored accounts: `late`, `suppressed/overload`."""
    return "/".join(filter(None, outcome.label))


_OUTCOME_OF = {label_of(outcome): outcome for outcome in Outcome}


class StreamAccounts(Ledger):
    """The ledger of one stream, which continues the stored accounts; it counts parts of records.

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
        """Return the counts since the previous call, to be added to the stored accounts."""
        now, before = self._all(), self._booked
        self._booked = now
        return {
            label: n - before.get(label, 0) for label, n in now.items() if n != before.get(label)
        }

    def _all(self) -> dict[str, int]:
        counts = {label_of(outcome): n for outcome, n in self.counts().items() if n}
        return {RECEIVED: self.n_received} | counts if self.n_received else counts
