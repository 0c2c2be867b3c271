"""Attacks on classes of trips by an adversary who knows where and when somebody set out.

An adversary who knows where and when somebody set out looks at the classes that hold such trips.
What it believes about the destination is compared with what it would believe if that device were
not in the release at all: what the others alone reveal does not count.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from anonymizer.algorithms.positions.trip_classes import N_STARTS, TripClass, WindowTrips
from anonymizer.domain.arrays import FloatArray, IntArray

_WITHOUT_ROADS = 0.1
"""What a cell of a destination at which no road of the class ends weighs beside one such road."""


class ReadClasses(NamedTuple):
    """The classes of a window as an adversary reads them."""

    origin: FloatArray
    start: FloatArray
    """`origin`, `start`: whether each class holds trips from each cell, and at each step, shape
    (classes, cells) and (classes, steps)."""
    weight: FloatArray
    """Devices of each class for each cell and step of origin and start, shape (classes,)."""
    ends: FloatArray
    """Belief in the destination of its trips, shape (classes, cells); rows add up to 1."""


def read_classes(
    classes: Sequence[TripClass], *, n_cells: int, beside: IntArray | None = None
) -> ReadClasses:
    """Return how an adversary reads the classes of a window.

    Parameters
    ----------
    beside
        A cell that begins where each arc ends, negative for none, shape (arcs,): roads of a class
        that lead to such a cell of its destinations say that some went there. None: roads are not
        read.
    """
    shape = (len(classes), n_cells)
    origin, ends = np.zeros(shape), np.zeros(shape)
    start, weight = np.zeros((len(classes), N_STARTS)), np.zeros(len(classes))
    for i, each in enumerate(classes):
        origin[i, each.origin.first : each.origin.last + 1] = 1
        start[i, each.start.first : each.start.last + 1] = 1
        weight[i] = each.n_devices / (origin[i].sum() * start[i].sum())
        there = np.arange(each.destination.first, each.destination.last + 1)
        ends[i, there] = 1.0 / len(there)
        if beside is not None:
            cells = beside[each.roads]
            leads = np.bincount(cells[cells >= 0], minlength=n_cells)[there] + _WITHOUT_ROADS
            ends[i, there] = leads / leads.sum()
    return ReadClasses(origin, start, weight, ends)


def believed_destination(read: ReadClasses, origin: int, start: int) -> FloatArray:
    """Return the belief in each cell as the destination of a trip, shape (cells,).

    Parameters
    ----------
    origin, start
        Cell and step where and when it is known to have begun. If no class holds such trips, all
        cells are believed alike.
    """
    weight = read.weight * read.origin[:, origin] * read.start[:, start]
    n_cells = read.origin.shape[1]
    if not weight.any():
        return np.full(n_cells, 1 / n_cells)
    belief: FloatArray = weight @ read.ends / weight.sum()
    return belief


def fewest_makers(trips: WindowTrips, classes: Sequence[TripClass]) -> tuple[IntArray, IntArray]:
    """Return how many devices may have made the trips of each class, and have taken each road.

    Whoever knows the true trips of all devices tries them all: a trip fits a class if it began and
    ended in its places and began in its time.

    Returns
    -------
    n_makers
        Distinct devices with a trip that fits, shape (classes,).
    n_takers
        The same of each published road of each class, in their order.
    """
    makers, takers = [], []
    for each in classes:
        rows = [
            i
            for i in range(len(trips.device))
            if each.origin.first <= trips.origin[i] <= each.origin.last
            and each.destination.first <= trips.destination[i] <= each.destination.last
            and each.start.first <= trips.start[i] <= each.start.last
        ]
        makers.append(len({int(trips.device[i]) for i in rows}))
        took: dict[int, set[int]] = {}
        for i in rows:
            for road in trips.roads[i].tolist():
                took.setdefault(road, set()).add(int(trips.device[i]))
        takers += [len(took.get(road, ())) for road in each.roads.tolist()]
    return np.array(makers, np.int64), np.array(takers, np.int64)
