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

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from anonymizer.algorithms.positions.secret_thresholds import SecretThresholds
from anonymizer.domain.arrays import BoolArray, FloatArray, IntArray
from anonymizer.domain.discreet import discreet

NO_CELL = -1
_AREA, _RUN, _LISTED, _FLOW, _REST, _SPEED, _DWELL = range(7)
"""Kinds of figures that have thresholds."""
_STEP = 1e-4
"""Of speeds and dwells in a tally; published means are rounded to more."""


@discreet
class CellTally(NamedTuple):
    """How many devices were seen in each cell of an interval, without any protection.

    Its sums are of integers: those of parts of the devices add up to the sums of all.

    `n_in`: devices in each cell, shape (cells,), a power of two. `pair`, `n_of_pair`: cell * cells
    + cell at the end of the interval before, rising, and how many devices that were seen in both
    intervals are in it, shape (pairs,). `n_speed`, `speed`, `n_dwell`, `dwell`: devices in each
    cell that have one, and the sums in steps of 0.0001 m/s and s.
    """

    n_in: IntArray
    pair: IntArray
    n_of_pair: IntArray
    n_speed: IntArray
    speed: IntArray
    n_dwell: IntArray
    dwell: IntArray


class SafeFigures(NamedTuple):
    """What is published about one interval; all numbers of devices are multiples of k.

    `first_cell_of`: first cell of each run, and the number of cells at the end; `n_devices`: in
    each run; `speed_mps`, `dwell_s`: means over them, NaN where fewer than k have one, shape
    (runs,). `flow_from`, `flow_to`, `n_flow`: runs between which devices moved, and how many, shape
    (flows,). A run to itself: they stayed. The devices of a run that are in no flow came from
    elsewhere, or from nowhere: they are none, or at least k.
    """

    first_cell_of: IntArray
    n_devices: IntArray
    speed_mps: FloatArray
    dwell_s: FloatArray
    flow_from: IntArray
    flow_to: IntArray
    n_flow: IntArray


def runs_of(n_in: IntArray, k: int, thresholds: SecretThresholds | None = None) -> IntArray:
    """Return where runs of cells begin that hold at least k devices each, and the end of the last.

    `n_in`: devices in each cell, shape (cells,), a power of two; cells 2i and 2i + 1 are halves of
    one area, and so on. The result rises from 0 to the number of cells; only `[0]` if all together
    hold fewer than k.

    Notes
    -----
    An area is divided as long as both of its halves hold k devices. If only one does, it is divided
    further, and its run that is next to the other half takes that half in. Whether a half is empty
    or holds fewer than k therefore makes no difference. O(cells).
    """
    halves = [n_in]
    while len(halves[-1]) > 1:
        halves.append(halves[-1][0::2] + halves[-1][1::2])
    # All areas, each before its halves: those of area i are 2 i and 2 i + 1.
    n = np.concatenate([np.zeros(1, n_in.dtype), *reversed(halves)])
    keys = [(_AREA, i) for i in range(len(n))]
    enough = (thresholds or SecretThresholds()).passes(keys, n, k).tolist()

    def divide(area: int, first: int, end: int) -> list[int]:
        """Return where runs begin inside an area that holds at least k, without its own start."""
        if end - first == 1:
            return []
        middle, left, right = (first + end) // 2, 2 * area, 2 * area + 1
        inside = divide(left, first, middle) if enough[left] else []
        if enough[left] and enough[right]:
            inside.append(middle)
        return inside + (divide(right, middle, end) if enough[right] else [])

    if not enough[1]:
        return np.array([0])
    return np.array([0, *divide(1, 0, len(n_in)), len(n_in)])


def tally(
    cell: IntArray,
    before: IntArray,
    *,
    n_cells: int,
    speed_mps: FloatArray,
    dwell_s: FloatArray,
) -> CellTally:
    """Return the tally of some devices in one interval.

    `cell`, `before`: of each device that was seen, and at the end of the interval before
    (`NO_CELL`: not seen then); `speed_mps`, `dwell_s`: NaN for none; shape (devices,).
    """
    known = before != NO_CELL
    pair, n = np.unique(cell[known] * n_cells + before[known], return_counts=True)
    return CellTally(
        np.bincount(cell, minlength=n_cells),
        pair,
        n,
        *_sums(cell, speed_mps, n_cells),
        *_sums(cell, dwell_s, n_cells),
    )


def together(tallies: Sequence[CellTally]) -> CellTally:
    """Return the tally of all devices of some tallies of one interval, at least one."""
    pair, of = np.unique(np.concatenate([each.pair for each in tallies]), return_inverse=True)
    n = np.zeros(len(pair), np.int64)
    np.add.at(n, of, np.concatenate([each.n_of_pair for each in tallies]))
    sums = {
        name: np.sum([getattr(each, name) for each in tallies], axis=0)
        for name in CellTally._fields
        if name not in {"pair", "n_of_pair"}
    }
    return CellTally(pair=pair, n_of_pair=n, **sums)


def figures(counted: CellTally, k: int, thresholds: SecretThresholds | None = None) -> SafeFigures:
    """Return what is published about the devices of a tally.

    `thresholds`: of this interval; None: they are sharp.
    """
    n_cells = len(counted.n_in)
    thresholds = thresholds or SecretThresholds()
    first = runs_of(counted.n_in, k, thresholds)
    n_runs = len(first) - 1
    if not n_runs:
        nothing = np.zeros(0, np.int64)
        return SafeFigures(first, nothing, np.zeros(0), np.zeros(0), nothing, nothing, nothing)
    run_of = np.repeat(np.arange(n_runs), np.diff(first))
    cell, before = np.divmod(counted.pair, n_cells)
    size = np.add.reduceat(counted.n_in, first[:-1])
    pair, of = np.unique(run_of[cell] * n_runs + run_of[before], return_inverse=True)
    n_pair = np.zeros(len(pair), np.int64)
    np.add.at(n_pair, of, counted.n_of_pair)
    spans = list(pairwise(first.tolist()))
    flows = [(*spans[to], *spans[origin]) for to, origin in zip(*divmod(pair, n_runs), strict=True)]
    listed = _listed(spans, flows, n_pair, size, k, thresholds)
    keys = [(_FLOW, *flows[i]) for i in listed.tolist()]
    speed = thresholds.passes([(_SPEED, *span) for span in spans], _sum(counted.n_speed, first), k)
    dwell = thresholds.passes([(_DWELL, *span) for span in spans], _sum(counted.n_dwell, first), k)
    return SafeFigures(
        first_cell_of=first,
        n_devices=thresholds.levels([(_RUN, *span) for span in spans], size, k),
        speed_mps=_means(first, counted.n_speed, counted.speed, speed),
        dwell_s=_means(first, counted.n_dwell, counted.dwell, dwell),
        flow_from=pair[listed] % n_runs,
        flow_to=pair[listed] // n_runs,
        n_flow=thresholds.levels(keys, n_pair[listed], k),
    )


def _listed(
    spans: Sequence[tuple[int, int]],
    flows: Sequence[tuple[int, int, int, int]],
    n: IntArray,
    size: IntArray,
    k: int,
    thresholds: SecretThresholds,
) -> IntArray:
    """Return which flows are listed, so that what remains of each run is nobody or at least k.

    With secret thresholds it is at least k: if it could be nobody, the first one would be seen.
    """
    number = {span: r for r, span in enumerate(spans)}
    run = np.array([number[flow[:2]] for flow in flows], np.int64)
    listed = thresholds.passes([(_LISTED, *flow) for flow in flows], n, k)
    rest = size - np.bincount(run[listed], n[listed], len(size)).astype(np.int64)
    enough = thresholds.passes([(_REST, *span) for span in spans], rest, k)
    if thresholds.are_sharp:
        enough |= rest == 0
    for r in np.flatnonzero(~enough).tolist():
        of_run = np.flatnonzero(listed & (run == r))
        if len(of_run):  # the smallest joins the rest; then there are at least k
            listed[of_run[np.argmin(n[of_run])]] = False
    return np.flatnonzero(listed)


def _sums(cell: IntArray, value: FloatArray, n_cells: int) -> tuple[IntArray, IntArray]:
    """Return how many devices of each cell have a value, and the sum in steps of `_STEP`."""
    there = ~np.isnan(value)
    total = np.zeros(n_cells, np.int64)
    np.add.at(total, cell[there], np.rint(value[there] / _STEP).astype(np.int64))
    return np.bincount(cell[there], minlength=n_cells), total


def _sum(of_cell: IntArray, first: IntArray) -> IntArray:
    total: IntArray = np.add.reduceat(of_cell, first[:-1])
    return total


def _means(
    first: IntArray, n_of_cell: IntArray, total_of_cell: IntArray, told: BoolArray
) -> FloatArray:
    n, total = _sum(n_of_cell, first), _sum(total_of_cell, first) * _STEP
    return np.where(told, total / np.maximum(n, 1), np.nan)
