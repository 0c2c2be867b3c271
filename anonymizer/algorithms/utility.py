"""Utility of a release: how close counts made from it are to the true ones.

All measures compare two tables of numbers of devices, true and published, shape (times, cells).

References
----------
.. [1] Y. Hu et al., "Real-Time Trajectory Synthesis with Local Differential Privacy" (RetraSyn),
   ICDE 2024: density error, query error, hotspots and Kendall's tau as used here.
.. [2] J. Lin, "Divergence measures based on the Shannon entropy", IEEE Transactions on Information
   Theory 37(1), 1991.
.. [3] K. Järvelin, J. Kekäläinen, "Cumulated gain-based evaluation of IR techniques", ACM TOIS
   20(4), 2002 (NDCG).
"""

import numpy as np

from anonymizer.domain.arrays import FloatArray

_SANITY = 0.01
"""A query error is relative to the answer, or to this share of all devices if that is more."""

_DIGITS = 9


def divergence(true: FloatArray, published: FloatArray) -> FloatArray:
    """Return the Jensen-Shannon divergence of rows of numbers, in bits, 0 to 1, shape (rows,).

    A row of zeros is the farthest from any other row but itself.
    """
    p, q = _shares(true), _shares(published)
    middle = (p + q) / 2
    found = (_kullback_leibler(p, middle) + _kullback_leibler(q, middle)) / 2
    empty_p, empty_q = true.sum(axis=1) == 0, published.sum(axis=1) == 0
    found[empty_p != empty_q] = 1.0
    found[empty_p & empty_q] = 0.0
    return np.maximum(found, 0.0)


def density_error(true: FloatArray, published: FloatArray) -> float:
    """Return the mean divergence of the two distributions over the cells, over all times."""
    return float(divergence(true, published).mean())


def query_error(
    true: FloatArray,
    published: FloatArray,
    *,
    sides: tuple[int, int],
    n_queries: int,
    rng: np.random.Generator,
) -> float:
    """Return the mean relative error of random range queries.

    Parameters
    ----------
    sides
        Rows and columns of the grid; cell = row x columns + column.
    n_queries
        Each asks for the devices in a random box of cells at a random time.

    Notes
    -----
    The error is relative to the true answer, but to at least `_SANITY` of all devices.
    """
    rows, columns = sides
    true, published = (table.reshape(-1, rows, columns) for table in (true, published))
    least = np.maximum(_SANITY * true.sum(axis=(1, 2)), 1e-9)
    errors = np.empty(n_queries)
    for i in range(n_queries):
        t = int(rng.integers(len(true)))
        top, bottom = np.sort(rng.integers(0, rows + 1, 2))
        left, right = np.sort(rng.integers(0, columns + 1, 2))
        box = (t, slice(top, bottom + 1), slice(left, right + 1))
        answer = true[box].sum()
        errors[i] = abs(published[box].sum() - answer) / max(answer, least[t])
    return float(errors.mean())


def hotspot_gain(true: FloatArray, published: FloatArray, *, n: int = 10) -> float:
    """Return the mean NDCG of the n cells that seem to hold the most devices, over all times."""
    n = min(n, true.shape[1])
    discount = 1 / np.log2(np.arange(2, n + 2))
    # Ties go to the first cell, as they do for a reader who sorts.
    chosen = np.argsort(-published, axis=1, kind="stable")[:, :n]
    best = -np.sort(-true, axis=1)[:, :n]
    gain = (np.take_along_axis(true, chosen, axis=1) * discount).sum(axis=1)
    ideal = (best * discount).sum(axis=1)
    there = ideal > 0
    return float((gain[there] / ideal[there]).mean()) if there.any() else 1.0


def popularity_tau(true: FloatArray, published: FloatArray) -> float:
    """Return Kendall's tau-b of the cells by their devices over all times; NaN without an order."""
    from scipy.stats import kendalltau  # noqa: PLC0415  a third of a second, for this alone

    # Equal shares of devices must be ties, in whatever order they were added up.
    totals = (table.sum(axis=0).round(_DIGITS) for table in (true, published))
    return float(kendalltau(*totals).statistic)


def speed_error(true: FloatArray, published: FloatArray, weight: FloatArray) -> float | None:
    """Return the mean absolute error of speeds at places, weighted, in their unit.

    Parameters
    ----------
    true, published
        Mean speed at each place, NaN for none, shape (places,). Where none is published, a reader
        takes the mean of the places where one is. A place without a true speed is left out.
    weight
        Of each place, at least 0, shape (places,).

    Returns
    -------
    error
        None if no speed is published, or none is true.
    """
    shown, there = ~np.isnan(published), ~np.isnan(true) & (weight > 0)
    if not shown.any() or not there.any():
        return None
    read = np.where(shown, published, published[shown].mean())
    return float(np.average(np.abs(read - true)[there], weights=weight[there]))


def _shares(table: FloatArray) -> FloatArray:
    total = table.sum(axis=1, keepdims=True)
    shares: FloatArray = np.divide(
        table, total, out=np.zeros_like(table, np.float64), where=total > 0
    )
    return shares


def _kullback_leibler(p: FloatArray, q: FloatArray) -> FloatArray:
    ratio = np.divide(p, q, out=np.ones_like(p), where=p > 0)
    found: FloatArray = (p * np.log2(ratio)).sum(axis=1)
    return found
