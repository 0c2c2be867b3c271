"""Histograms that take whole batches: one observation a message would cost more than decoding."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from anonymizer.domain.arrays import IntArray


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
