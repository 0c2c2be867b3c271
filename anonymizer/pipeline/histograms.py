"""Histograms that take whole batches."""

import math
from collections import deque
from collections.abc import Sequence
from threading import Lock

import numpy as np
from numpy.typing import ArrayLike

from anonymizer.domain.arrays import FloatArray, IntArray

_MOST_BATCHES, _MANY = 64, 256
"""So many batches wait to be counted at most, of fewer than so many values each."""


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
    counts, total
        Of values taken in before.

    Notes
    -----
    Small batches are counted when somebody looks, or many at once: one of a few values takes as
    long as one of hundreds. One thread may take in batches while another looks.
    """

    def __init__(
        self,
        edges: Sequence[float],
        *,
        interpolate: bool = False,
        counts: IntArray | None = None,
        total: float = 0.0,
    ) -> None:
        self.edges = tuple(edges)
        self._edges = np.array(self.edges, np.float64)
        self._interpolate = interpolate
        self._total = total
        self._counts = np.zeros(len(self.edges) + 1, np.int64) if counts is None else counts
        self._waiting: deque[FloatArray] = deque()
        self._counting = Lock()

    def observe(self, values: ArrayLike) -> None:
        """Take in a batch of values, any shape."""
        batch = np.array(values, np.float64).ravel()
        if len(batch):
            self._waiting.append(batch)
        if len(batch) >= _MANY or len(self._waiting) >= _MOST_BATCHES:
            self._count()

    def _count(self) -> None:
        """Count the batches that wait."""
        with self._counting:
            if not self._waiting:
                return
            batch = np.concatenate([self._waiting.popleft() for _ in range(len(self._waiting))])
            self._total += float(batch.sum())
            # To sort 400 values and look edges up takes a quarter of the time of looking values up.
            n_up_to = np.sort(batch).searchsorted(self._edges, side="right")
            self._counts[:-1] += n_up_to
            self._counts[1:] -= n_up_to
            self._counts[-1] += len(batch)

    @property
    def total(self) -> float:
        """Sum of all values taken in."""
        self._count()
        return self._total

    @property
    def counts(self) -> IntArray:
        """Number of values between each two edges, and beyond the last, shape (edges + 1,)."""
        self._count()
        return self._counts

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
        return self._with(self.counts.copy(), self.total)

    def since(self, earlier: "BatchHistogram") -> "BatchHistogram":
        """Return a histogram of the values taken in after `earlier`, a copy of this one."""
        return self._with(self.counts - earlier.counts, self.total - earlier.total)

    def plus(self, other: "BatchHistogram") -> "BatchHistogram":
        """Return a histogram of the values of both, which have the same edges."""
        return self._with(self.counts + other.counts, self.total + other.total)

    def _with(self, counts: IntArray, total: float) -> "BatchHistogram":
        return BatchHistogram(self.edges, interpolate=self._interpolate, counts=counts, total=total)
