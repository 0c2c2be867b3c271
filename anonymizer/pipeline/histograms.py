"""Histograms that take whole batches."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from anonymizer.domain.arrays import IntArray


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
        self._edges = np.array(self.edges, np.float64)
        self.total = 0.0
        self._interpolate = interpolate
        self.counts: IntArray = np.zeros(len(self.edges) + 1, np.int64)

    def observe(self, values: ArrayLike) -> None:
        """Take in a batch of values, any shape."""
        batch = np.asarray(values, np.float64).ravel()
        self.total += float(batch.sum())
        # To sort 400 values and look edges up takes a quarter of the time of looking values up.
        n_up_to = np.sort(batch).searchsorted(self._edges, side="right")
        self.counts[:-1] += n_up_to
        self.counts[1:] -= n_up_to
        self.counts[-1] += len(batch)

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
