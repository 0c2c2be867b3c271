"""Trips with company: classes of trips from one place to another, at least k devices in each.

The network is cut into small cells, in an order in which halves of one area follow each other. The
trips of a window are divided, by where they began, where they ended and when they began, into
halves of these halves for as long as both hold k devices [1]_. So every trip is in exactly one
class, or there are too few of them at all. Of all classes, of one window or of several, two places
are the same, one is part of the other, or they have nothing in common: what two of them have in
common is never less than a cell.

References
----------
.. [1] K. LeFevre, D. J. DeWitt, R. Ramakrishnan, "Mondrian multidimensional k-anonymity", ICDE
   2006 (strict partitioning; here along fixed halves, so that no cut tells where somebody is).
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from anonymizer.algorithms.positions.secret_thresholds import SecretThresholds
from anonymizer.domain.arrays import IntArray
from anonymizer.domain.discreet import discreet
from anonymizer.domain.network import RoadNetwork

N_STARTS = 8
"""Steps of starts: a trip of a window began in it or in the one before, in one of so many equal
parts."""
_MOST_CELLS = 4096
_ALL, _BOX, _CLASS, _ROAD = range(4)
"""Kinds of figures that have thresholds."""
_JUNCTIONS_OF_K = 2
"""Nodes of a cell, in multiples of k: whoever knows in which cell a device was is right about the
node in one case of 2 k, if nothing else tells it."""


@discreet
class WindowTrips(NamedTuple):
    """The trips that ended in a window.

    `origin`, `destination`, `start`: cells where each began and ended, and the step of its start,
    shape (trips,); `roads`: arcs of its route, each once, outside the cells of its ends.
    """

    device: IntArray
    origin: IntArray
    destination: IntArray
    start: IntArray
    roads: Sequence[IntArray]

    def without(self, device: int) -> "WindowTrips":
        """Return the trips of all other devices."""
        kept = np.flatnonzero(self.device != device)
        return WindowTrips(
            self.device[kept],
            self.origin[kept],
            self.destination[kept],
            self.start[kept],
            [self.roads[i] for i in kept.tolist()],
        )


class CellSpan(NamedTuple):
    """Cells or steps from `first` to `last`: a half of a half of all of them."""

    first: int
    last: int


class Box(NamedTuple):
    """Where trips began, where they ended, and when they began."""

    origin: CellSpan
    destination: CellSpan
    start: CellSpan


class TripClass(NamedTuple):
    """What is published about some trips.

    `n_devices`: a multiple of k, so many devices made them, or up to k - 1 more; `roads`: arcs that
    at least k of these took, rising.
    """

    origin: CellSpan
    destination: CellSpan
    start: CellSpan
    n_devices: int
    roads: IntArray

    def holds(self, trips: WindowTrips) -> IntArray:
        """Return the trips that are in this class."""
        return np.flatnonzero(
            np.logical_and.reduce(
                [
                    (span.first <= at) & (at <= span.last)
                    for span, at in zip(self[:3], trips[1:4], strict=True)
                ]
            )
        )


def n_cells_of(network: RoadNetwork, k: int) -> int:
    """Return into how many cells trips divide a network: a power of two, of 2 k nodes at least."""
    n = min(network.n_nodes // (_JUNCTIONS_OF_K * k), _MOST_CELLS)
    return 1 << max(n.bit_length() - 1, 0)


def trip_classes(
    trips: WindowTrips, k: int, *, n_cells: int, thresholds: SecretThresholds | None = None
) -> list[TripClass]:
    """Return the classes of the trips of a window, in the order of their places.

    `k` distinct devices in each class, `n_cells` a power of two. None if all trips are of fewer
    than k devices. `thresholds`: of this window; None: they are sharp.

    Notes
    -----
    Of the origin, the destination and the start the one is divided next that was divided least.
    Whether a half that holds fewer than k is empty makes no difference: then there is no cut.
    O(n log n) a level.
    """
    thresholds = thresholds or SecretThresholds()
    n_all = np.array([len(np.unique(trips.device))])
    if not thresholds.passes([(_ALL,)], n_all, k)[0]:
        return []
    cells, steps = CellSpan(0, n_cells - 1), CellSpan(0, N_STARTS - 1)
    found: list[TripClass] = []
    todo = [(Box(cells, cells, steps), np.arange(len(trips.device)))]
    while todo:
        box, rows = todo.pop()
        halves = _divided(trips, rows, box, k, (n_cells, n_cells, N_STARTS), thresholds)
        todo += halves
        if not halves:
            n = np.array([_n_devices(trips, rows)])
            [level] = thresholds.levels([_key(_CLASS, box)], n, k).tolist()
            found.append(TripClass(*box, level, _shared_roads(trips, rows, box, k, thresholds)))
    return sorted(found, key=lambda each: each[:3])


def unkept(trips: WindowTrips, classes: Sequence[TripClass], k: int) -> list[int]:
    """Return the classes that break the promise, counted anew from the trips.

    A class must hold at least k devices and not count more than there are, in steps of k; k of them
    must have taken each road; and no trip may be in two classes.
    """
    n_told = np.zeros(len(trips.device), np.int64)
    rows_of: list[IntArray] = []
    broken: set[int] = set()
    for number, each in enumerate(classes):
        rows = each.holds(trips)
        rows_of.append(rows)
        n_told[rows] += 1
        took: dict[int, set[int]] = {}
        for i, device in zip(rows.tolist(), trips.device[rows].tolist(), strict=True):
            for road in trips.roads[i].tolist():
                took.setdefault(road, set()).add(device)
        n = len(set(trips.device[rows].tolist()))
        enough = all(len(took.get(road, ())) >= k for road in each.roads.tolist())
        if not (k <= each.n_devices <= n and each.n_devices % k == 0 and enough):
            broken.add(number)
    twice = {number for number, rows in enumerate(rows_of) if (n_told[rows] > 1).any()}
    return sorted(broken | twice)


def _divided(
    trips: WindowTrips,
    rows: IntArray,
    box: Box,
    k: int,
    sizes: tuple[int, ...],
    thresholds: SecretThresholds,
) -> list[tuple[Box, IntArray]]:
    """Return the halves of a box that hold k devices each, and their trips; none if it has none."""
    n_cuts = [size // (span.last - span.first + 1) for size, span in zip(sizes, box, strict=True)]
    for axis in sorted(range(3), key=lambda axis: (n_cuts[axis], axis)):
        halves = _halves(box[axis])
        is_first = (trips.origin, trips.destination, trips.start)[axis][rows] <= halves[0].last
        parts = rows[is_first], rows[~is_first]
        if len(halves) == 1:
            continue
        boxes = [box._replace(**{Box._fields[axis]: half}) for half in halves]
        n = np.array([_n_devices(trips, part) for part in parts])
        if thresholds.passes([_key(_BOX, each) for each in boxes], n, k).all():
            return list(zip(boxes, parts, strict=True))
    return []


def _halves(span: CellSpan) -> tuple[CellSpan, ...]:
    if span.first == span.last:
        return (span,)
    middle = (span.first + span.last) // 2
    return CellSpan(span.first, middle), CellSpan(middle + 1, span.last)


def _n_devices(trips: WindowTrips, rows: IntArray) -> int:
    return len(set(trips.device[rows].tolist()))  # for some dozens faster than np.unique


def _key(kind: int, box: Box) -> tuple[int, ...]:
    return (kind, *(each for span in box for each in span))


def _shared_roads(
    trips: WindowTrips, rows: IntArray, box: Box, k: int, thresholds: SecretThresholds
) -> IntArray:
    """Return the arcs that at least k devices of these trips took, rising."""
    roads = [trips.roads[i] for i in rows.tolist()]
    if not any(map(len, roads)):
        return np.zeros(0, np.int64)
    devices, maker = np.unique(trips.device[rows], return_inverse=True)
    by = np.repeat(maker, [len(each) for each in roads])
    taken = np.unique(np.concatenate(roads).astype(np.int64) * len(devices) + by)
    road, n = np.unique(taken // len(devices), return_counts=True)
    keys = [(*_key(_ROAD, box), each) for each in road.tolist()] if not thresholds.are_sharp else []
    return road[thresholds.passes(keys, n, k)]
