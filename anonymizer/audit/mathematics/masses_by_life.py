"""Masses of many owners by life: a region changes those of one life, and scales their owners.

An adversary who follows devices weighs the masses of all of them with every region. Each region
speaks of one life: it multiplies the masses in it by what it says of their places, or moves a part
of the free ones into it, and all masses of an owner are then divided by one number. That number is
kept for each owner until the step ends. So a region costs as much as its life has masses, and one
of a new life as many as are free at its nodes.
"""

from typing import NamedTuple

import numpy as np

from anonymizer.algorithms.kernels import kernel
from anonymizer.audit.mathematics.masses import FREE, Masses, only
from anonymizer.domain.arrays import BoolArray, FloatArray, Int32Array, IntArray, starts_of


class Weights(NamedTuple):
    """What a region says about owners."""

    piece_at: Int32Array
    """Piece of the region of each node, negative for none, shape (nodes,)."""
    likely: FloatArray
    """Probability that who is free at each node joins this life and no other, shape (nodes,)."""
    factor: FloatArray
    """What it is worth to be in each piece, shape (rows, pieces)."""
    total: FloatArray
    """What the masses of an owner add up to after it, shape (rows,)."""


class _Part(NamedTuple):
    """The masses of one life, by rising owner; `source` is their place in the listed ones."""

    owner: Int32Array
    state: Int32Array
    mass: FloatArray
    source: Int32Array


_NO_PART = _Part(np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(0), np.zeros(0, np.int32))


class MassesByLife:
    """Masses within a step.

    Parameters
    ----------
    masses
        By rising life and owner. They stay as they are.
    """

    def __init__(self, masses: Masses, n_owners: int) -> None:
        mass, source = masses.mass.copy(), np.arange(len(masses.mass), dtype=np.int32)
        lives = np.arange(FREE, int(masses.life.max(initial=FREE)) + 1, dtype=np.int32)
        first = np.searchsorted(masses.life, lives)
        ends = np.append(first[1:], len(mass))
        self._part_of = {
            life: _Part(masses.owner[a:b], masses.state[a:b], mass[a:b], source[a:b])
            for life, a, b in zip(lives.tolist(), first.tolist(), ends.tolist(), strict=True)
            if a < b
        }
        self._scale = np.ones(n_owners)
        # Sum of the masses of each owner, without the scale.
        self._sum = np.bincount(masses.owner, masses.mass, n_owners).astype(np.float64)
        self._free_at: tuple[IntArray, IntArray] | None = None

    @property
    def mass_of(self) -> FloatArray:
        """Sum of the masses of each owner."""
        return self._sum * self._scale

    def inside(
        self,
        life: int,
        node_of: Int32Array,
        piece_at: Int32Array,
        likely: FloatArray,
        n_pieces: int,
    ) -> tuple[Int32Array, FloatArray, FloatArray]:
        """Return the masses in a life by owner: what may be in each piece, and all of it.

        Returns
        -------
        owner, inside, total
            Owners who have masses in the life, rising, shape (n,), and these, shapes (n, pieces)
            and (n,). Of who is free, `total` has only what is in a piece.
        """
        part = self._part(life, node_of, piece_at)
        return _inside(part, self._scale, node_of, piece_at, likely, n_pieces)

    def _part(self, life: int, node_of: Int32Array, piece_at: Int32Array) -> _Part:
        """Return the masses of a life; of those that are free, the ones in a piece."""
        part = self._part_of.get(life, _NO_PART)
        if life != FREE:
            return part
        if self._free_at is None:
            node = node_of[part.state]
            counts = np.bincount(node, minlength=len(piece_at))
            self._free_at = np.argsort(node, kind="stable"), starts_of(counts)
        order, first = self._free_at
        nodes = np.flatnonzero(piece_at >= 0)
        sizes = first[nodes + 1] - first[nodes]
        at = np.arange(sizes.sum()) + np.repeat(first[nodes] - starts_of(sizes)[:-1], sizes)
        chosen = np.sort(order[at])
        return _Part(*(column[chosen] for column in part))

    def begin(self, life: int, node_of: Int32Array, said: Weights, row_of: IntArray) -> None:
        """Take in the first region of a life, which free owners may join or not.

        Parameters
        ----------
        row_of
            Row of each owner in what the region says, shape (owners,).
        """
        free = self._part(FREE, node_of, said.piece_at)
        mass = _begun(free, self._sum, node_of, said, row_of)
        self._join(life, free._replace(mass=mass))
        self._scale_by(said, row_of)

    def go_on(
        self, life: int, node_of: Int32Array, said: Weights, row_of: IntArray, slip: float
    ) -> None:
        """Take in a later region of a life; who is outside it is `slip` times as likely."""
        part = self._part_of.get(life, _NO_PART)
        _weigh(part, self._sum, node_of, said, row_of, slip)
        self._scale_by(said, row_of)

    def add(self, masses: Masses, n_owners: int) -> None:
        """Add masses of new owners in one life; there are now `n_owners`."""
        more = n_owners - len(self._scale)
        self._scale = np.append(self._scale, np.ones(more))
        self._sum = np.append(self._sum, np.zeros(more))
        self._sum += np.bincount(masses.owner, masses.mass, n_owners)
        if len(masses.life):
            nowhere = np.full(len(masses.life), -1, np.int32)
            part = _Part(masses.owner, masses.state, masses.mass, nowhere)
            self._join(int(masses.life[0]), part)

    def sums(self, group_of: IntArray, n_groups: int) -> FloatArray:
        """Return the sum of the masses of each group of owners, shape (n_groups,)."""
        sums = np.zeros(n_groups)
        for _, part in sorted(self._part_of.items()):
            _add_up(part, self._scale, group_of, sums)
        return sums

    def listed(self, unit: FloatArray, least: float) -> tuple[Masses, Int32Array]:
        """Return the larger masses by rising life and owner, and of which given ones they come.

        Parameters
        ----------
        unit
            In multiples of what the masses of each owner are returned, shape (owners,).
        least
            Masses of so many units, or fewer, are left out.
        """
        n_most = sum(len(part.mass) for part in self._part_of.values())
        owner, life = np.empty(n_most, np.int32), np.empty(n_most, np.int32)
        state, mass = np.empty(n_most, np.int32), np.empty(n_most)
        masses, source, n = Masses(owner, life, state, mass), np.empty(n_most, np.int32), 0
        for each, part in sorted(self._part_of.items()):
            n = _list(part, each, self._scale, unit, least, masses, source, n)
        # Copies, because most of the room is often unused.
        return only(masses, np.arange(n)), source[:n].copy()

    def _join(self, life: int, part: _Part) -> None:
        self._free_at = None if life == FREE else self._free_at
        earlier = self._part_of.get(life)
        if earlier is not None:
            order = np.argsort(np.append(earlier.owner, part.owner), kind="stable")
            part = _Part(
                np.append(earlier.owner, part.owner)[order],
                np.append(earlier.state, part.state)[order],
                np.append(earlier.mass, part.mass)[order],
                np.append(earlier.source, part.source)[order],
            )
        self._part_of[life] = part

    def _scale_by(self, said: Weights, row_of: IntArray) -> None:
        self._scale /= said.total[row_of]


def freed(masses: Masses, over: BoolArray) -> tuple[Masses, IntArray]:
    """Return the masses after those of ended lives became free, and the former index of each.

    Parameters
    ----------
    masses
        By rising life and owner, and so they stay.
    over
        Whether each life is over, shape (lives,).
    """
    lives = np.flatnonzero(over).astype(np.int32)
    first, ends = np.searchsorted(masses.life, lives), np.searchsorted(masses.life, lives + 1)
    if not (first < ends).any():
        return masses, np.arange(len(masses.mass))
    is_free = np.zeros(len(masses.mass), np.bool_)
    is_free[: np.searchsorted(masses.life, FREE, "right")] = True
    for a, b in zip(first.tolist(), ends.tolist(), strict=True):
        is_free[a:b] = True
    free = np.flatnonzero(is_free)
    free = free[np.argsort(masses.owner[free], kind="stable")]
    order = np.concatenate([free, np.flatnonzero(~is_free)])
    found = only(masses, order)
    found.life[: len(free)] = FREE
    return found, order


def by_life(masses: Masses) -> tuple[Masses, IntArray]:
    """Return the masses by rising life and owner, and which they were."""
    order = np.argsort((masses.life + 1).astype(np.int64) << 32 | masses.owner, kind="stable")
    return only(masses, order), order


@kernel
def _inside(
    part: _Part,
    scale: FloatArray,
    node_of: Int32Array,
    piece_at: Int32Array,
    likely: FloatArray,
    n_pieces: int,
) -> tuple[Int32Array, FloatArray, FloatArray]:
    """Return what `MassesByLife.inside` does."""
    n = 0
    for i in range(len(part.mass)):
        n += i == 0 or part.owner[i] != part.owner[i - 1]
    owner, inside, total = np.empty(n, np.int32), np.zeros((n, n_pieces)), np.zeros(n)
    row = -1
    for i in range(len(part.mass)):
        a, v = part.owner[i], node_of[part.state[i]]
        if i == 0 or a != part.owner[i - 1]:
            row += 1
            owner[row] = a
        mass = part.mass[i] * scale[a]
        total[row] += mass
        if piece_at[v] >= 0:
            inside[row, piece_at[v]] += mass * likely[v]
    return owner, inside, total


@kernel
def _begun(
    free: _Part, sums: FloatArray, node_of: Int32Array, said: Weights, row_of: IntArray
) -> FloatArray:
    """Return the masses that may have joined a life, and add them to those of each owner."""
    mass = np.empty(len(free.mass))
    for i in range(len(mass)):
        a, v = free.owner[i], node_of[free.state[i]]
        mass[i] = free.mass[i] * said.factor[row_of[a], said.piece_at[v]] * said.likely[v]
        sums[a] += mass[i]
    return mass


@kernel
def _weigh(
    part: _Part,
    sums: FloatArray,
    node_of: Int32Array,
    said: Weights,
    row_of: IntArray,
    slip: float,
) -> None:
    """Weigh the masses in a life, in place, and change those of each owner."""
    for i in range(len(part.mass)):
        a, p = part.owner[i], said.piece_at[node_of[part.state[i]]]
        before = part.mass[i]
        part.mass[i] = before * (said.factor[row_of[a], p] if p >= 0 else slip)
        sums[a] += part.mass[i] - before


@kernel
def _add_up(part: _Part, scale: FloatArray, group_of: IntArray, sums: FloatArray) -> None:
    """Add the masses of a life to those of the groups of their owners."""
    for i in range(len(part.mass)):
        a = part.owner[i]
        sums[group_of[a]] += part.mass[i] * scale[a]


@kernel
def _list(
    part: _Part,
    life: int,
    scale: FloatArray,
    unit: FloatArray,
    least: float,
    masses: Masses,
    source: Int32Array,
    n: int,
) -> int:
    """Write the larger masses of a life behind the `n` first ones; return how many there are."""
    for i in range(len(part.mass)):
        a = part.owner[i]
        mass = part.mass[i] * scale[a] / unit[a]
        if mass > least:
            masses.owner[n], masses.life[n] = a, life
            masses.state[n], masses.mass[n] = part.state[i], mass
            source[n] = part.source[i]
            n += 1
    return n
