"""The intersection attack on windows of records: what all classes of a vehicle leave possible.

The adversary [1]_ knows, of every window, what all sources but one reported about the victim, and
that the victim is in the release. The candidates are the classes whose labels cover that. What they
allow together in a lasting attribute of the other source is what the window leaves possible; the
adversary intersects the windows. One value left is a value read. Who wants a lasting sensitive
attribute knows what all sources reported, and reads the lists of the candidates.

It reads published labels alone, and shares no code with what makes or protects them.

References
----------
.. [1] S. Ganta et al., "Composition attacks and auxiliary information in data privacy", 2008.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from anonymizer.algorithms.releases.released_classes import ReleasedLabels
from anonymizer.domain.arrays import BoolArray, Int32Array, IntArray
from anonymizer.domain.records import Schema

_MOST_CELLS = 2**24
"""Victims times classes looked at in one step."""


@dataclass(frozen=True, slots=True)
class Read:
    """What the attack reads of one attribute."""

    attribute: str
    """Its name."""
    n_victims: int
    """Vehicles that were published with a value of it."""
    n_read: int
    """Vehicles of which one value is left, the true one."""
    n_short: int
    """Vehicles of which fewer values than d, or l, are left, the true one among them."""

    @property
    def share(self) -> float:
        """Vehicles read, as a share of the victims."""
        return self.n_read / max(self.n_victims, 1)


class WindowIntersection:
    """The attack, window by window.

    Parameters
    ----------
    schema
        The attributes and the sources of the stream.
    lasting
        Names of the lasting attributes.
    d, l
        Fewest values that must be left of a quasi-identifier, and of a sensitive attribute.
    """

    def __init__(self, schema: Schema, lasting: Sequence[str], *, d: int, l: int = 1) -> None:  # noqa: E741  the field's
        self._schema = schema
        self._attributes = (*schema.qis, *schema.sensitive)
        self._least = [d] * len(schema.qis) + [l] * len(schema.sensitive)
        self._columns = [j for j, a in enumerate(self._attributes) if a.name in lasting]
        self._left: dict[int, dict[bytes, BoolArray]] = {j: {} for j in self._columns}
        self._truth: dict[int, dict[bytes, int]] = {j: {} for j in self._columns}

    def window(
        self, labels: Sequence[ReleasedLabels], vehicles: Sequence[bytes], cells: Int32Array
    ) -> None:
        """Take in a window.

        Parameters
        ----------
        labels
            What each class allows: the label of each quasi-identifier, and the list of each
            sensitive attribute.
        vehicles, cells
            Vehicles, and the codes of what was reported about them, shape (n, attributes). Those
            that no class covers are left out: they were not published.
        """
        n_classes = len(labels[0].first_of) - 1
        step = max(_MOST_CELLS // max(n_classes, 1), 1)
        for first in range(0, len(vehicles), step):
            self._take(labels, vehicles[first : first + step], cells[first : first + step])

    def read(self) -> list[Read]:
        """Return what is read of each lasting attribute so far."""
        return [self._read(j) for j in self._columns]

    def _read(self, j: int) -> Read:
        n_left = [
            int(left.sum())
            for vehicle, left in self._left[j].items()
            if left[self._truth[j][vehicle]]
        ]
        n_short = sum(n < self._least[j] for n in n_left)
        return Read(self._attributes[j].name, len(self._left[j]), n_left.count(1), n_short)

    def _take(
        self, labels: Sequence[ReleasedLabels], vehicles: Sequence[bytes], cells: Int32Array
    ) -> None:
        n_qis = len(self._schema.qis)
        covers = [covers_of(labels[j], cells[:, j]) for j in range(n_qis)]
        published = np.flatnonzero(np.logical_and.reduce(covers).any(axis=1))
        vehicles, cells = [vehicles[i] for i in published.tolist()], cells[published]
        covers = [of_column[published] for of_column in covers]
        for source in (*self._schema.sources, range(n_qis, len(self._attributes))):
            learned = [j for j in source if j in self._left]
            if not learned:
                continue
            known = [j for j in range(len(covers)) if j not in source]
            candidates = np.ones((len(vehicles), len(labels[0].first_of) - 1), bool)
            for j in known:
                candidates &= covers[j]
            for j in learned:
                self._learn(j, labels[j], candidates, vehicles, cells[:, j])

    def _learn(
        self,
        j: int,
        labels: ReleasedLabels,
        candidates: BoolArray,
        vehicles: Sequence[bytes],
        truth: Int32Array,
    ) -> None:
        attribute = self._attributes[j]
        n_real = attribute.size if attribute.missing < 0 else attribute.missing
        allowed = covers_of(labels, np.arange(n_real, dtype=np.int32)).T  # (classes, codes)
        possible = candidates.astype(np.float32) @ allowed.astype(np.float32) > 0
        for i, vehicle in enumerate(vehicles):
            if truth[i] == attribute.missing:
                continue
            if self._truth[j].get(vehicle) != truth[i]:  # new, or the value has changed
                self._left[j][vehicle] = possible[i]
                self._truth[j][vehicle] = int(truth[i])
            else:
                self._left[j][vehicle] = self._left[j][vehicle] & possible[i]


def covers_of(labels: ReleasedLabels, code: Int32Array) -> BoolArray:
    """Return whether each label allows each code, shape (codes, classes)."""
    n_classes = len(labels.first_of) - 1
    of: IntArray = np.repeat(np.arange(n_classes), np.diff(labels.first_of))
    different, at = np.unique(code, return_inverse=True)
    first = np.searchsorted(different, labels.lo)
    end = np.searchsorted(different, labels.hi, side="right")
    edges = np.zeros((len(different) + 1, n_classes), np.int32)
    np.add.at(edges, (first, of), 1)
    np.add.at(edges, (end, of), -1)
    inside: BoolArray = np.cumsum(edges, axis=0)[:-1] > 0
    return inside[at]
