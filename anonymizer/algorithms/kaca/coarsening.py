"""Coarsening: answers for a larger k and for several windows from published classes alone.

A window is anonymized once. Its classes are cells. A larger k is answered by joining cells along a
fixed ladder: every rung joins two cells of the rung below, so the cells of a larger k are unions of
those of any smaller k. A range of windows is answered window by window, and cells with equal values
are added up. The difference or intersection of two answers is thus a union of cells of the smaller
of the two k: empty, or at least that many persons.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush
from itertools import pairwise
from typing import Any, NamedTuple

from anonymizer.algorithms.records.generalized_values import JoinableValue


class Total(NamedTuple):
    """Total of a measure: the number of records with a value, and their sum."""

    n: int
    sum: float

    def plus(self, other: "Total") -> "Total":
        """Return the total of both, rounded so that cents stay exact."""
        return Total(self.n + other.n, round(self.sum + other.sum, 6))


@dataclass(frozen=True, slots=True)
class Cell:
    """One or several published classes."""

    values: tuple[JoinableValue, ...]
    """The generalized value of each quasi-identifier."""
    n_persons: int
    """Distinct persons of each class, added up: a person in two classes counts twice."""
    own: int
    """Lower bound on its own persons: no other cell of the window counts them as own."""
    most: int
    """Distinct persons of its largest class."""
    n_records: int
    """Number of records."""
    totals: tuple[Total | None, ...] = ()
    """Total of each measure; None where no class publishes it."""

    @property
    def certain(self) -> int:
        """Lower bound on its distinct persons: the own persons of its classes are distinct."""
        return max(self.own, self.most)

    def coarser(self, other: "Cell") -> "Cell":
        """Return both as one cell, with values that cover both."""
        values = tuple(a.join(b) for a, b in zip(self.values, other.values, strict=True))  # type: ignore[arg-type]
        return replace(self.plus(other), values=values)

    def plus(self, other: "Cell") -> "Cell":
        """Return the sum of two cells with equal values."""
        return Cell(
            values=self.values,
            n_persons=self.n_persons + other.n_persons,
            own=self.own + other.own,
            most=max(self.most, other.most),
            n_records=self.n_records + other.n_records,
            totals=tuple(_plus(a, b) for a, b in zip(self.totals, other.totals, strict=True)),
        )


class Ladder:
    """All coarser partitions of the cells of one window, each made of the one before.

    Notes
    -----
    The cells are in the order of their values. On each rung the cell with the fewest certain
    persons joins the neighbour with the lower cost. Equal input gives an equal ladder. O(n log n).
    """

    def __init__(self, cells: Sequence[Cell]) -> None:
        self._number = sorted(range(len(cells)), key=lambda i: (_order_key(cells[i]), i))
        self._base = [cells[i] for i in self._number]
        self._joined: list[tuple[int, int]] = []
        self._least: list[int] = []
        self._climb()

    def cells(self, k: int) -> list[Cell]:
        """Return the finest cells that each certainly hold k distinct persons.

        Empty if not even all of them together do.
        """
        found = []
        for group in self._groups(k):
            cell = self._base[group[0]]
            for i in group[1:]:
                cell = cell.coarser(self._base[i])
            found.append(cell)
        return found

    def groups(self, k: int) -> list[list[int]]:
        """Return, for each of these cells, the numbers of the cells that it is made of."""
        return [[self._number[i] for i in group] for group in self._groups(k)]

    def _groups(self, k: int) -> list[list[int]]:
        n_rungs = bisect_left(self._least, k)
        if n_rungs == len(self._least):
            return []
        of = {i: [i] for i in range(len(self._base))}
        for kept, gone in self._joined[:n_rungs]:
            of[kept] += of.pop(gone)
        return list(of.values())

    def _climb(self) -> None:
        """Record the two cells joined on each rung, and the fewest certain persons below it."""
        after = dict(pairwise(range(len(self._base))))
        before = {right: left for left, right in after.items()}
        now = dict(enumerate(self._base))
        cost = _Cost(self._base)
        heap = [(cell.certain, i) for i, cell in now.items()]
        heapify(heap)
        while heap:
            certain, i = heappop(heap)
            if i not in now or now[i].certain != certain:
                continue  # it has been joined to another, or has grown
            self._least.append(certain)
            neighbours = [j for j in (before.get(i), after.get(i)) if j is not None]
            if not neighbours:
                return
            other = min(neighbours, key=lambda j: (cost.of(now[i], now[j]), neighbours.index(j)))
            kept, gone = (other, i) if before.get(i) == other else (i, other)
            self._joined.append((kept, gone))
            now[kept] = now[kept].coarser(now.pop(gone))
            if gone in after:
                after[kept] = after.pop(gone)
                before[after[kept]] = kept
            else:
                del after[kept]
            heappush(heap, (now[kept].certain, kept))


class _Cost:
    """Cost of joining two cells: the increase of the spread of their records' values."""

    def __init__(self, cells: Sequence[Cell]) -> None:
        spreads = [[value.spread for value in cell.values] for cell in cells]
        ends = [(min(column), max(column)) for column in zip(*spreads, strict=True)]
        self._unit = [(hi - lo) or 1.0 for lo, hi in ends]

    def of(self, one: Cell, other: Cell) -> float:
        cost = 0.0
        for a, b, unit in zip(one.values, other.values, self._unit, strict=True):
            if a != b:
                both = a.join(b).spread  # type: ignore[arg-type]
                increase = one.n_records * (both - a.spread) + other.n_records * (both - b.spread)
                cost += increase / unit
        return cost


def add_up(cells: Iterable[Cell]) -> list[Cell]:
    """Return the cells with those of equal values added up, in the order of the values."""
    of: dict[tuple[JoinableValue, ...], Cell] = {}
    for cell in cells:
        known = of.get(cell.values)
        of[cell.values] = cell if known is None else known.plus(cell)
    return sorted(of.values(), key=_order_key)


def _order_key(cell: Cell) -> tuple[Any, ...]:
    """Return the sort key of a cell."""
    return tuple(value.order_key for value in cell.values)


def _plus(one: Total | None, other: Total | None) -> Total | None:
    if one is None or other is None:
        return other if one is None else one
    return one.plus(other)
