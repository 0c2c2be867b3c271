"""The attack on cohorts by an adversary who knows all covers, and who was present [1]_.

What the labels of a vehicle have in common over all windows is fixed when it is first published: a
*cover*, made of values of vehicles that were present. The adversary knows the covers of all
vehicles, as far as their labels tell, and who was present in each window. The first and the last
value of a cover were each given by somebody who was present, and whose own cover holds the value.
If only one vehicle qualifies, its value is read, whether it got its cover in that window or long
before.

A vehicle whose label no longer holds its cover has another value, outside of it.

An example: A gets {van, bus} as its first cover while B and C are present, whose own covers are
{car, van} and {car, truck}. Neither of the two can have given *bus*, so A has: its value is read.

It reads published labels alone, and shares no code with what makes or protects them.

References
----------
.. [1] R. C.-W. Wong et al., "Minimality attack in privacy preserving data publishing", VLDB 2007:
   what is known about how a release was made is used against it.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

import numpy as np

from anonymizer.algorithms.releases.released_classes import ReleasedLabels
from anonymizer.audit.mathematics.window_intersection import Read, covers_of
from anonymizer.domain.arrays import BoolArray, Int32Array, IntArray
from anonymizer.domain.records import Attribute, Schema

_MOST_CELLS = 2**24
"""Vehicles times classes looked at in one step."""
_NEVER = 2**31


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Shown:
    """What a window leaves possible in one attribute."""

    possible: BoolArray
    """Which values each vehicle can have, shape (n, values)."""
    perhaps: BoolArray
    for_certain: BoolArray
    """`perhaps`, `for_certain`: whether the vehicle can have a cover in this attribute, and has one
    for certain. It can have one that is not published yet, and the attribute is withheld where it
    waits for one. Shape (n,)."""


@dataclass(slots=True, eq=False, repr=False)
class _Life:
    """A vehicle while it has one value.

    `first`, `sure`: the windows in which it first had a cover, perhaps and for certain. The cover
    is from one of them or from between. `before`: the life with another value.
    """

    vehicle: bytes
    truth: int = -1
    first: int = _NEVER
    sure: int = _NEVER
    left: BoolArray | None = None
    before: "_Life | None" = None

    def known(self) -> BoolArray | None:
        """Return the values that are left, without those of a label that it has visibly left."""
        left, before = self.left, self.before
        if left is None or before is None or before.left is None:
            return left
        outside = left & ~before.left
        return outside if (before.left & ~left).any() and outside[self.truth] else left


@dataclass(slots=True, eq=False, repr=False)
class _Column:
    attribute: Attribute
    by_node: bool
    lives: list[_Life] = field(default_factory=list)
    now: dict[bytes, int] = field(default_factory=dict)
    present: list[IntArray] = field(default_factory=list)
    """The lives of the vehicles that reported a value in each window."""

    @property
    def n_values(self) -> int:
        """Number of values, without the missing marker."""
        return self.attribute.size if self.attribute.missing < 0 else self.attribute.missing

    def given(self, left: BoolArray) -> IntArray:
        """Return the values of which a label with these values says that somebody has them."""
        codes = np.flatnonzero(left)
        if self.by_node:
            ends = [code for code in codes.tolist() if self._is_at_the_end(codes, code)]
            return np.array(ends, np.int64)
        return codes[[0, -1]] if self.attribute.numeric else codes

    def _is_at_the_end(self, codes: IntArray, code: int) -> bool:
        """Return whether the node above some codes is another one without this code."""
        tree, rest = self.attribute.hierarchy, codes[codes != code]
        if not len(rest) or tree is None:
            return True
        above = tree.ancestor[rest]
        common = (above == above[0]).all(axis=0)
        return not (common & (tree.ancestor[code] == above[0]))[np.argmax(common)]


class KnownCompany:
    """The attack, window by window.

    Parameters
    ----------
    lasting
        Names of the lasting quasi-identifiers.
    d
        Fewest values that must be left.
    by_hierarchy
        Whether labels of attributes with a hierarchy are its nodes.
    owned
        Vehicles of the adversary's own: their values are known, and they are no victims.
    """

    def __init__(
        self,
        schema: Schema,
        lasting: Sequence[str],
        *,
        d: int,
        by_hierarchy: bool = False,
        owned: Collection[bytes] = (),
    ) -> None:
        self._d, self._owned = d, frozenset(owned)
        self._columns = {
            j: _Column(qi, by_hierarchy and qi.hierarchy is not None)
            for j, qi in enumerate(schema.qis)
            if qi.name in lasting
        }
        self._missing = np.array([qi.missing for qi in schema.qis], np.int64)
        self._n_windows = 0

    def window(
        self, labels: Sequence[ReleasedLabels], vehicles: Sequence[bytes], qi: Int32Array
    ) -> None:
        """Take in a window.

        Parameters
        ----------
        labels
            What the label of each class allows, for each quasi-identifier.
        vehicles, qi
            All vehicles that reported anything, and the codes of what they reported, shape
            (n, qis). Those that no class covers were not published.
        """
        self.shown(vehicles, qi, _shown(labels, qi, self._columns, self._missing))

    def shown(self, vehicles: Sequence[bytes], qi: Int32Array, shown: Mapping[int, Shown]) -> None:
        """Take in a window of which this is known for each lasting quasi-identifier."""
        for j, column in self._columns.items():
            each, truth = shown[j], qi[:, j].tolist()
            lives = []
            for i, vehicle in enumerate(vehicles):
                real = truth[i] != column.attribute.missing
                life = column.lives[at] if (at := column.now.get(vehicle)) is not None else None
                if life is None or (real and life.truth not in {-1, truth[i]}):
                    at, life = len(column.lives), _Life(vehicle, before=life)
                    column.now[vehicle] = at
                    column.lives.append(life)
                if each.perhaps[i]:
                    life.first = min(life.first, self._n_windows)
                if real:
                    life.truth = truth[i]
                    lives.append(at)
                    if each.for_certain[i]:
                        life.sure = min(life.sure, self._n_windows)
                        left = each.possible[i]
                        life.left = left if life.left is None else life.left & left
            column.present.append(np.array(lives, np.int64))
        self._n_windows += 1

    def read(self) -> list[Read]:
        """Return what is read of each lasting attribute."""
        return [self._read(column) for column in self._columns.values()]

    def _read(self, column: _Column) -> Read:
        lives = column.lives
        left = np.ones((len(lives), column.n_values), bool)
        is_victim, read, short = np.zeros((3, len(lives)), bool)
        for i, life in enumerate(lives):
            if (known := life.known()) is not None:
                left[i], is_victim[i] = known, True
        victims = np.flatnonzero(is_victim).tolist()
        truth = np.array([life.truth for life in lives], np.int64)
        hit = is_victim & left[np.arange(len(lives)), truth]
        labels = left.copy()
        is_owned = np.array([life.vehicle in self._owned for life in lives], bool)
        known_values = is_owned & (truth >= 0)
        left[known_values] = np.arange(left.shape[1]) == truth[known_values, None]
        read[hit], short[hit] = (left[hit].sum(axis=1) == 1), (left[hit].sum(axis=1) < self._d)
        for (first, last), group in groupby(sorted(victims, key=_founded(lives)), _founded(lives)):
            there = np.unique(np.concatenate(column.present[first : last + 1]))
            there = there[left[there, truth[there]]]
            covers = np.unique(labels[[i for i in group if hit[i]]], axis=0)
            given = [column.given(cover) for cover in covers]
            n_left = _n_left(given, left[there], truth[there], d=self._d)
            read[there] |= hit[there] & (n_left == 1)
            short[there] |= hit[there] & (n_left < self._d)
        n_read, n_short = (int((found & ~is_owned).sum()) for found in (read, short))
        return Read(column.attribute.name, int((is_victim & ~is_owned).sum()), n_read, n_short)


def _n_left(given: Sequence[IntArray], can: BoolArray, truth: IntArray, *, d: int) -> IntArray:
    """Return how many values each vehicle can have if the codes of a cover were given by some.

    The fewest, if there are several covers.

    Parameters
    ----------
    given
        The codes of each cover.
    can, truth
        Which values each vehicle can have by itself, and its own, shapes (n, values) and (n,).

    Notes
    -----
    A vehicle has another value only if another one can have given its own, whose value another one
    has given, and so on, to a value that nobody has to have given, or that d vehicles have. Where
    fewer than d have a value, and with the other values of those who can have it they are no d, no
    more than these are left. O(vehicles times values), and for each cover O(bound times values plus
    the cube of the bound), where bound are those of its values that fewer than d vehicles have.
    """
    n: IntArray = np.bincount(truth, minlength=can.shape[1])
    owned, order = np.flatnonzero(n), np.argsort(truth, kind="stable")
    by = np.zeros((len(n), len(n)), bool)
    by[:, owned] = np.logical_or.reduceat(can[order], (np.cumsum(n) - n)[owned], axis=0).T
    n_givers = by.sum(axis=1) + n - 1
    least: IntArray = can.sum(axis=1)
    for codes in given:
        held = bound = codes[(n[codes] > 0) & (n[codes] < d)]
        is_free = np.ones(len(n), bool)
        is_free[bound] = False
        while (leads_out := by[held][:, is_free].any(axis=1)).any():
            is_free[held[leads_out]] = True
            held = held[~leads_out]
        reached = by[np.ix_(held, held)]
        for _ in range(len(held).bit_length()):
            reached = reached | (reached.astype(np.float32) @ reached.astype(np.float32) > 0)
        stuck = np.flatnonzero(~is_free[truth])
        n_left = (can[np.ix_(stuck, held)] & reached[np.searchsorted(held, truth[stuck])]).sum(
            axis=1
        )
        least[stuck] = np.minimum(least[stuck], n_left)
        is_bound = np.isin(truth, bound)
        least[is_bound] = np.minimum(least, n_givers[truth])[is_bound]
    return least


def _founded(lives: Sequence[_Life]) -> Callable[[int], tuple[int, int]]:
    return lambda i: (lives[i].first, lives[i].sure)


def _shown(
    labels: Sequence[ReleasedLabels],
    qi: Int32Array,
    columns: Mapping[int, _Column],
    missing: IntArray,
) -> dict[int, Shown]:
    """Return what the classes that cover the records of vehicles leave possible.

    A label with the missing marker covers any value, since it may be withheld.
    """
    n, n_classes = len(qi), len(labels[0].first_of) - 1
    marked = [
        covers_of(of, np.array([mark], np.int32))[0]
        for of, mark in zip(labels, missing.tolist(), strict=True)
    ]
    allowed = {
        j: covers_of(labels[j], np.arange(column.n_values, dtype=np.int32)).T
        for j, column in columns.items()
    }
    shown = {
        j: Shown(np.zeros((n, column.n_values), bool), np.ones(n, bool), np.zeros(n, bool))
        for j, column in columns.items()
    }
    step = max(_MOST_CELLS // max(n_classes, 1), 1)
    for first in range(0, n, step):
        some = slice(first, first + step)
        candidates = np.logical_and.reduce(
            [covers_of(of, qi[some, j]) | marked[j] for j, of in enumerate(labels)]
        )
        for j, each in shown.items():
            each.possible[some] = candidates.astype(np.float32) @ allowed[j].astype(np.float32) > 0
            each.for_certain[some] = candidates.any(axis=1) & ~(candidates & marked[j]).any(axis=1)
    return shown
