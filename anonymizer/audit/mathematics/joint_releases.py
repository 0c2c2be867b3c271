"""The intersection attack on two releases of the same vehicles.

The adversary [1]_ knows what all topics but one said about a victim, and that the victim is in both
releases. In each, the candidates are the classes whose labels cover that knowledge. An attribute
that is in both releases has one value, so candidates of one release whose labels share no value
with those of the other are dropped. Those that remain leave fewer values, also of attributes that
only one of the releases has.

It reads published labels alone, and shares no code with what makes or protects them.

References
----------
.. [1] S. Ganta et al., "Composition attacks and auxiliary information in data privacy", 2008.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from anonymizer.algorithms.releases.released_classes import ReleasedLabels
from anonymizer.audit.mathematics.window_intersection import covers_of
from anonymizer.domain.arrays import BoolArray, Int32Array, IntArray
from anonymizer.domain.records import Attribute


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Side:
    """One of two releases, in one window."""

    qis: Sequence[Attribute]
    """The quasi-identifiers."""
    labels: Sequence[ReleasedLabels]
    """What the label of each class allows, for each of them."""
    codes: Int32Array
    """What was reported of each victim, shape (victims, qis)."""
    learned: Sequence[int]
    """Indices of the quasi-identifiers that the adversary does not know."""

    def candidates(self) -> BoolArray:
        """Return the classes that cover what is known of each victim, shape (victims, classes)."""
        n_classes = len(self.labels[0].first_of) - 1
        found = np.ones((len(self.codes), n_classes), np.bool_)
        for j in range(len(self.qis)):
            if j not in self.learned:
                found &= covers_of(self.labels[j], self.codes[:, j])
        return found

    def published(self) -> BoolArray:
        """Return which victims some class covers in everything, shape (victims,)."""
        covers = [covers_of(each, self.codes[:, j]) for j, each in enumerate(self.labels)]
        found: BoolArray = np.logical_and.reduce(covers).any(axis=1)
        return found

    def only(self, rows: BoolArray | IntArray) -> "Side":
        """Return the same with some of the victims, or with others in their place."""
        return Side(self.qis, self.labels, self.codes[rows], self.learned)

    def allowed(self, j: int) -> BoolArray:
        """Return the codes that each class allows but the missing marker, shape (classes, m)."""
        qi = self.qis[j]
        n_real = qi.size if qi.missing < 0 else qi.missing
        return covers_of(self.labels[j], np.arange(n_real, dtype=np.int32)).T

    def left(self, candidates: BoolArray, j: int) -> BoolArray:
        """Return the values that candidates leave of an attribute, shape (victims, m)."""
        found: BoolArray = candidates.astype(np.float32) @ self.allowed(j).astype(np.float32) > 0
        return found

    def meeting(self, candidates: BoolArray, j: int, values: BoolArray) -> BoolArray:
        """Return the candidates whose labels allow any of the victims' values."""
        found: BoolArray = candidates & (
            values.astype(np.float32) @ self.allowed(j).T.astype(np.float32) > 0
        )
        return found


def left_alone(side: Side) -> dict[int, BoolArray]:
    """Return what a release leaves of each learned attribute, shape (victims, values) each."""
    candidates = side.candidates()
    return {j: side.left(candidates, j) for j in side.learned}


def left_together(
    one: Side, other: Side, shared: Sequence[tuple[int, int]]
) -> tuple[dict[int, BoolArray], dict[int, BoolArray]]:
    """Return what two releases leave of each learned attribute of either.

    Parameters
    ----------
    one, other
        The releases, of the same victims in the same order.
    shared
        Learned attributes that both tell, as their indices in either. Their codes mean the same.

    Notes
    -----
    A victim whose truth some label does not cover can be left without any value.
    """
    first, second = one.candidates(), other.candidates()
    before = -1
    while before != (before := int(first.sum() + second.sum())):
        for i, j in shared:
            both = one.left(first, i) & other.left(second, j)
            first, second = one.meeting(first, i, both), other.meeting(second, j, both)
    alone = (
        {i: one.left(first, i) for i in one.learned},
        {j: other.left(second, j) for j in other.learned},
    )
    for i, j in shared:
        alone[0][i] = alone[1][j] = alone[0][i] & alone[1][j]
    return alone


@dataclass(slots=True)
class JointReading:
    """What is read of one attribute, window by window or over all of them."""

    lasting: bool
    """Whether windows are intersected."""
    n_left_of: dict[int, int] = field(default_factory=dict)
    """How often so many values were left, the true one among them."""
    n_victims: int = 0
    """Victims: vehicles if the attribute lasts, else vehicles in a window."""
    _left: dict[bytes, BoolArray] = field(default_factory=dict, repr=False)
    _truth: dict[bytes, int] = field(default_factory=dict, repr=False)

    def take(self, vehicles: Sequence[bytes], left: BoolArray, truth: Int32Array) -> None:
        """Take in a window; victims whose value is missing are left out."""
        for i in np.flatnonzero(truth < left.shape[1]).tolist():
            vehicle, code = vehicles[i], int(truth[i])
            if not self.lasting:
                self._count(left[i], code)
            elif self._truth.get(vehicle) == code:
                self._left[vehicle] = self._left[vehicle] & left[i]
            else:  # new, or the value has changed
                self._left[vehicle], self._truth[vehicle] = left[i], code

    def end(self) -> None:
        """Count what all windows together leave."""
        for vehicle, left in self._left.items():
            self._count(left, self._truth[vehicle])
        self._left.clear()

    def n_below(self, n: int) -> int:
        """Return the victims of which fewer values than `n` are left, the true one among them."""
        return sum(times for n_left, times in self.n_left_of.items() if n_left < n)

    @property
    def mean_left(self) -> float:
        """Values that are left where the true one is among them, in the mean."""
        times = sum(self.n_left_of.values())
        return sum(n * times for n, times in self.n_left_of.items()) / max(times, 1)

    def _count(self, left: BoolArray, truth: int) -> None:
        self.n_victims += 1
        if left[truth]:
            n_left = int(left.sum())
            self.n_left_of[n_left] = self.n_left_of.get(n_left, 0) + 1
