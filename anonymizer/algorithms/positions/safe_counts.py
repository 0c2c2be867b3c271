"""Safe counts: how many devices are where, and where they came from, at least k in every figure.

The network is cut into small cells, in an order in which halves of one area follow each other. Runs
of cells that hold k devices each are counted together, so that every device present is in exactly
one run. Numbers are rounded down to multiples of k. So is every sum and every difference of them:
no two answers, of one interval or of several, differ by fewer than k devices.

References
----------
.. [1] L. H. Cox, "Suppression methodology and statistical disclosure control", Journal of the
   American Statistical Association 75, 1980 (why cells are merged and not left out one by one).
"""

from typing import NamedTuple

import numpy as np

from anonymizer.domain.arrays import BoolArray, FloatArray, IntArray

NO_CELL = -1


class Figures(NamedTuple):
    """What is published about one interval; all numbers of devices are multiples of k.

    Attributes
    ----------
    first_cell_of
        First cell of each run, and the number of cells at the end, shape (runs + 1,).
    n_devices
        Devices in each run, shape (runs,).
    speed_mps, dwell_s
        Means over the devices of each run, NaN where fewer than k have one, shape (runs,).
    flow_from, flow_to, n_flow
        Runs between which devices moved, and how many, shape (flows,). A run to itself: they
        stayed. The devices of a run that are in no flow came from elsewhere, or from nowhere: they
        are none, or at least k.
    """

    first_cell_of: IntArray
    n_devices: IntArray
    speed_mps: FloatArray
    dwell_s: FloatArray
    flow_from: IntArray
    flow_to: IntArray
    n_flow: IntArray


def runs_of(n_in: IntArray, k: int) -> IntArray:
    """Return where runs of cells begin that hold at least k devices each, and the end of the last.

    Parameters
    ----------
    n_in
        Devices in each cell, shape (cells,), a power of two; cells 2i and 2i + 1 are halves of one
        area, and so on.
    k
        At least 1.

    Returns
    -------
    first_cell_of
        Rising from 0 to the number of cells; only `[0]` if all cells together hold fewer than k.

    Notes
    -----
    An area is divided as long as both of its halves hold k devices. If only one does, it is divided
    further, and its run that is next to the other half takes that half in. Whether a half is empty
    or holds fewer than k therefore makes no difference. O(cells).
    """
    total = np.concatenate([[0], np.cumsum(n_in)])
    starts = [0]

    def divide(first: int, end: int) -> list[int]:
        """Return where runs begin inside an area that holds at least k, without its own start."""
        if end - first == 1:
            return []
        middle = (first + end) // 2
        left, right = total[middle] - total[first], total[end] - total[middle]
        if left >= k and right >= k:
            return [*divide(first, middle), middle, *divide(middle, end)]
        if left >= k:
            return divide(first, middle)
        if right >= k:
            return divide(middle, end)
        return []

    if total[-1] < k:
        return np.array(starts)
    return np.array([*starts, *divide(0, len(n_in)), len(n_in)])


def count(
    cell: IntArray,
    before: IntArray,
    *,
    n_cells: int,
    k: int,
    speed_mps: FloatArray,
    dwell_s: FloatArray,
) -> Figures:
    """Return the figures of one interval.

    Parameters
    ----------
    cell, before
        Cell of each device that was seen, and its cell at the end of the interval before
        (`NO_CELL`: it was not seen then), shape (devices,).
    speed_mps, dwell_s
        A value of each device, NaN for none, shape (devices,).
    """
    first = runs_of(np.bincount(cell, minlength=n_cells), k)
    n_runs = len(first) - 1
    if not n_runs:
        nothing = np.zeros(0, np.int64)
        return Figures(first, nothing, np.zeros(0), np.zeros(0), nothing, nothing, nothing)
    run = np.searchsorted(first, cell, side="right") - 1
    known = before != NO_CELL
    origin = np.searchsorted(first, before[known], side="right") - 1
    size = np.bincount(run, minlength=n_runs)
    pair, n_pair = np.unique(run[known] * n_runs + origin, return_counts=True)
    listed = _listed(pair // n_runs, n_pair, size, k)
    return Figures(
        first_cell_of=first,
        n_devices=size - size % k,
        speed_mps=_means(run, speed_mps, n_runs, k),
        dwell_s=_means(run, dwell_s, n_runs, k),
        flow_from=pair[listed] % n_runs,
        flow_to=pair[listed] // n_runs,
        n_flow=(n_pair - n_pair % k)[listed],
    )


def _listed(run: IntArray, n: IntArray, size: IntArray, k: int) -> BoolArray:
    """Return which flows are listed, so that what remains of each run is nobody or at least k.

    Parameters
    ----------
    run, n
        Run to which each flow leads, and its devices, shape (flows,).
    size
        Devices in each run.
    """
    listed: BoolArray = n >= k
    rest = size - np.bincount(run[listed], n[listed], len(size)).astype(np.int64)
    for r in np.flatnonzero((rest > 0) & (rest < k)).tolist():
        of_run = np.flatnonzero(listed & (run == r))
        # The smallest joins the rest; then there are at least k.
        smallest = of_run[np.argmin(n[of_run])]
        listed[smallest] = False
    return listed


def _means(run: IntArray, value: FloatArray, n_runs: int, k: int) -> FloatArray:
    there = ~np.isnan(value)
    n = np.bincount(run[there], minlength=n_runs)
    total = np.bincount(run[there], value[there], n_runs)
    return np.where(n >= k, total / np.maximum(n, 1), np.nan)
