"""Multi-source linkability: what one source's values of a record tell of another's (Algorithm 1).

Two adversaries, both of whom know every label of the release, and which rows share a class:

- `Knows.VALUES` holds the true values that one source tells of his victim. His candidates are
  all classes whose labels cover them.
- `Knows.LABELS` knows besides which labels they became, as the listing has it: his candidates
  are the classes of these labels. He sees at least as much, so that his count is the bound.

Where all candidates leave one value of another attribute, that is a leak: one cell of the table.
Both take a single value beside the missing marker for the value.
"""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from anonymizer.algorithms.attacks.released_classes import (
    NOTHING,
    SEVERAL,
    Labels,
    Published,
    identities,
    only_values,
)
from anonymizer.algorithms.kernels import kernel
from anonymizer.domain.arrays import BoolArray, Int32Array, IntArray
from anonymizer.domain.records import Records, Schema


class Knowledge(StrEnum):
    """What the adversary holds of his victim; see the module."""

    VALUES = "values"
    LABELS = "labels"


@dataclass(frozen=True, slots=True)
class Leak:
    """What one adversary learns who holds one source.

    Attributes
    ----------
    knows
        Which adversary.
    known
        The source he holds, an index into `Schema.sources`.
    learned
        The source he learns of; None: the sensitive attributes.
    n_cells_of
        Cells (a record's value) of each attribute of `learned` that he learns for certain.
    n_people
        Distinct persons of whom he learns one at least.
    """

    knows: Knowledge
    known: int
    learned: int | None
    n_cells_of: tuple[int, ...]
    n_people: int

    @property
    def n_cells(self) -> int:
        """Cells learned, over all attributes."""
        return sum(self.n_cells_of)


@dataclass(frozen=True, slots=True)
class Homogeneity:
    """Classes whose members share one value of a sensitive attribute, and who is in them."""

    n_classes: int
    n_people: int


def link(
    published: Published, schema: Schema, records: Records, class_of: Int32Array
) -> tuple[Leak, ...]:
    """Mount the attack from each source on each other one, and on the sensitive attributes.

    Parameters
    ----------
    published
        The release, as the adversary sees it.
    schema, records
        The truth: the victims, and what he holds of them.
    class_of
        Published class of each record, negative where it was left out: those are no victims, for
        what the release tells is not told of them. Shape (n,).

    Notes
    -----
    The paper's map from the labels of one source to those of the other holds one entry a key, so
    that of classes with equal labels the last one wins; here a key holds them all. A cell whose
    value is missing cannot leak.

    Linear in the records and in the labels, but for `Knows.VALUES`: that takes in addition a
    64th of (classes times the distinct tuples of the source that are not yet excluded); most are
    by the first few classes.

    References
    ----------
    .. [1] "Efficient Multi-Source Anonymity for Aggregated Internet of Vehicles Datasets",
       Applied Sciences 14(8), 3230, 2024, Algorithm 1.
    """
    kept = class_of >= 0
    victims, of = records.only(kept), class_of[kept]
    told = [
        only_values(labels, attribute.missing)
        for labels, attribute in zip(
            (*published.qi, *published.sensitive), (*schema.qis, *schema.sensitive), strict=True
        )
    ]
    told_of = np.stack(told, axis=1) if told else np.zeros((published.n_classes, 0), np.int64)
    truth = np.concatenate([victims.qi, victims.sensitive], axis=1)
    missing = np.array([a.missing for a in (*schema.qis, *schema.sensitive)], np.int64)
    targets: list[tuple[int | None, list[int]]] = [
        (s, list(source)) for s, source in enumerate(schema.sources)
    ]
    if schema.sensitive:
        first = len(schema.qis)
        targets.append((None, list(range(first, first + len(schema.sensitive)))))
    leaks = []
    for known, source in enumerate(schema.sources):
        others = [(learned, columns) for learned, columns in targets if learned != known]
        for knows in Knowledge:
            learns = _learns(knows, published, list(source), told_of, victims.qi, of)
            learns &= truth != missing
            leaks += [
                _leak(knows, known, learned, learns[:, columns], victims.person)
                for learned, columns in others
            ]
    return tuple(leaks)


def homogeneity(
    published: Published, schema: Schema, records: Records, class_of: Int32Array
) -> tuple[Homogeneity, ...]:
    """Count the classes that tell one value of each sensitive attribute. Linear."""
    kept = class_of >= 0
    of, person = class_of[kept], records.person[kept]
    found = []
    for labels, attribute in zip(published.sensitive, schema.sensitive, strict=True):
        alike = only_values(labels, attribute.missing) >= 0
        found.append(Homogeneity(int(alike.sum()), len(np.unique(person[alike[of]]))))
    return tuple(found)


def _leak(
    knows: Knowledge, known: int, learned: int | None, learns: BoolArray, person: Int32Array
) -> Leak:
    n_cells_of = tuple(learns.sum(axis=0).tolist())
    return Leak(knows, known, learned, n_cells_of, len(np.unique(person[learns.any(axis=1)])))


def _learns(
    knows: Knowledge,
    published: Published,
    source: list[int],
    told_of: IntArray,
    qi: Int32Array,
    class_of: Int32Array,
) -> BoolArray:
    """Return of which cells of each victim a value is learned, shape (victims, columns)."""
    known = [published.qi[q] for q in source]
    if knows is Knowledge.LABELS:
        key_of, n_keys = identities(known)
        by_key = _told_by_key(key_of, n_keys, told_of)
        return np.asarray(by_key[key_of[class_of]] >= 0)
    tuples, tuple_of = _distinct(qi[:, source])
    return np.asarray(_told_by_values(tuples, known, told_of)[tuple_of] >= 0)


def _distinct(rows: Int32Array) -> tuple[Int32Array, IntArray]:
    """Return the distinct rows, in any order, and which one each row is."""
    n = len(rows)
    number = np.zeros(n, np.int64)
    for column in rows.T:
        paired = number * (int(column.max(initial=0)) + 1) + column
        if paired.max(initial=0) <= 8 * n + 1024:  # a table is faster than to sort
            there = np.zeros(int(paired.max(initial=0)) + 1, bool)
            there[paired] = True
            number = (np.cumsum(there) - 1)[paired]
        else:
            number = np.unique(paired, return_inverse=True)[1]
    tuples = np.zeros((int(number.max(initial=-1)) + 1, rows.shape[1]), np.int32)
    tuples[number] = rows
    return tuples, number


@kernel
def _joined(a: int, b: int) -> int:
    """Return what two candidates leave together."""
    if a == NOTHING:
        return b
    if b in (NOTHING, a):
        return a
    return SEVERAL


@kernel
def _told_by_key(key_of: IntArray, n_keys: int, told_of: IntArray) -> IntArray:
    told = np.full((n_keys, told_of.shape[1]), NOTHING)
    for c in range(len(key_of)):
        for a in range(told_of.shape[1]):
            told[key_of[c], a] = _joined(told[key_of[c], a], told_of[c, a])
    return told


def _told_by_values(tuples: Int32Array, known: list[Labels], told_of: IntArray) -> IntArray:
    """Return what all classes that cover a tuple leave of each column."""
    place = np.empty(tuples.shape, np.int64)
    first_place, first_run, first_of, lo, hi = [0], 0, [], [], []
    for a, labels in enumerate(known):
        codes, place[:, a] = np.unique(tuples[:, a], return_inverse=True)
        first_of.append(labels.first_of + first_run)
        lo.append(np.searchsorted(codes, labels.lo, side="left"))
        hi.append(np.searchsorted(codes, labels.hi, side="right"))
        first_run += len(labels.lo)
        first_place.append(first_place[-1] + len(codes) + 1)
    return _covering(
        place,
        np.array(first_place),
        np.stack(first_of),
        np.concatenate(lo),
        np.concatenate(hi),
        told_of,
    )


@kernel
def _covering(
    place: IntArray,
    first_place: IntArray,
    first_of: IntArray,
    lo: IntArray,
    hi: IntArray,
    told_of: IntArray,
) -> IntArray:
    """Join what the classes tell that cover each tuple, 64 classes at a time."""
    n_classes, n_columns = told_of.shape
    told = np.full((len(place), n_columns), NOTHING)
    undecided = np.arange(len(place))
    n_undecided = len(place)
    covers = np.zeros(first_place[-1], np.uint64)
    for first in range(0, n_classes, 64):
        _fill(covers, first, min(first + 64, n_classes), first_place, first_of, lo, hi)
        n_left = 0
        for t in undecided[:n_undecided]:
            batch = covers[first_place[0] + place[t, 0]]
            for a in range(1, len(first_of)):
                batch &= covers[first_place[a] + place[t, a]]
            if _join(told[t], batch, told_of[first:]):
                undecided[n_left] = t
                n_left += 1
        n_undecided = n_left
    return told


@kernel
def _fill(
    covers: NDArray[np.uint64],
    first: int,
    end: int,
    first_place: IntArray,
    first_of: IntArray,
    lo: IntArray,
    hi: IntArray,
) -> None:
    """Set the bit of each class, `first` and up, at the values that its labels cover.

    It is flipped where each run begins and behind its end, and carried along between.
    """
    covers[:] = 0
    for a in range(len(first_of)):
        base = first_place[a]
        for c in range(first, end):
            bit = np.uint64(1) << np.uint64(c - first)
            for r in range(first_of[a, c], first_of[a, c + 1]):
                covers[base + lo[r]] ^= bit
                covers[base + hi[r]] ^= bit
        for v in range(base + 1, first_place[a + 1]):
            covers[v] ^= covers[v - 1]


@kernel
def _join(told: IntArray, batch: np.uint64, told_of: IntArray) -> bool:
    """Join what the classes of the set bits tell; say whether a column is still undecided."""
    one = np.uint64(1)
    c, undecided = 0, True
    while batch != 0 and undecided:
        if batch & one:
            undecided = False
            for a in range(len(told)):
                told[a] = _joined(told[a], told_of[c, a])
                undecided |= told[a] != SEVERAL
        batch >>= one
        c += 1
    return undecided
