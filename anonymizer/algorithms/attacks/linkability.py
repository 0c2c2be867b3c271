"""The multi-source linkability attack: what one source's values reveal about another source's.

Algorithm 1 of [1]_, for two adversaries. Both know every label of the release and which rows share
a class.

- `Knowledge.VALUES`: he knows the true values that one source reported about his victim. His
  candidates are all classes whose labels cover these values.
- `Knowledge.LABELS`: he also knows which labels the values became, as in the paper's listing. His
  candidates are the classes with these labels. He learns at least as much as the first, so his
  count is the upper bound.

If all candidates allow only one value of another attribute, that is a leak: one cell of the
table. Both adversaries ignore the missing marker next to a single value.

References
----------
.. [1] "Efficient Multi-Source Anonymity for Aggregated Internet of Vehicles Datasets",
   Applied Sciences 14(8), 3230, 2024.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from anonymizer.algorithms.attacks.released_classes import (
    NOTHING,
    SEVERAL,
    Published,
    ReleasedLabels,
    identities,
    only_values,
)
from anonymizer.algorithms.kernels import kernel
from anonymizer.domain.arrays import BoolArray, Int32Array, IntArray
from anonymizer.domain.records import Records, Schema


class Knowledge(StrEnum):
    """What the adversary knows about his victim; see the module."""

    VALUES = "values"
    LABELS = "labels"


@dataclass(frozen=True, slots=True)
class Leak:
    """What an adversary who knows one source learns about another.

    Attributes
    ----------
    knows
        Which adversary.
    known
        The source that he knows, an index into `Schema.sources`.
    learned
        The source that he learns about; None: the sensitive attributes.
    n_cells_of
        Cells (values of a record) of each attribute of `learned` that he learns for certain.
    n_people
        Distinct persons about whom he learns at least one cell.
    """

    knows: Knowledge
    known: int
    learned: int | None
    n_cells_of: tuple[int, ...]
    n_people: int

    @property
    def n_cells(self) -> int:
        """Number of cells learned, over all attributes."""
        return sum(self.n_cells_of)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Inference:
    """What an adversary who knows one source learns, cell by cell.

    Attributes
    ----------
    knows, known
        Which adversary, and his source, as in `Leak`.
    learns
        Cells that he learns for certain: of each record that is published, in their order, and
        each quasi-identifier and then sensitive attribute, shape (published records, attributes).
    """

    knows: Knowledge
    known: int
    learns: BoolArray


@dataclass(frozen=True, slots=True)
class Homogeneity:
    """Numbers of classes that allow one value of a sensitive attribute, and of their persons."""

    n_classes: int
    n_people: int


def link(
    published: Published, schema: Schema, records: Records, class_of: Int32Array
) -> tuple[Leak, ...]:
    """Run the attack from each source against every other source and the sensitive attributes.

    Parameters
    ----------
    published
        The release, as the adversary sees it.
    schema, records
        The truth: the victims, and what the adversary knows about them.
    class_of
        Published class of each record, negative if it was left out, shape (n,). Records that
        were left out are not victims, because the release is not about them.

    Notes
    -----
    Deviation from the paper: its map from the labels of one source to those of the other has one
    entry for each key, so among classes with equal labels the last one wins. Here a key has all
    of them. A cell whose value is missing cannot leak.

    Linear in the records and labels. `Knowledge.VALUES` takes in addition a 64th of (classes
    times distinct tuples of the source that are still undecided); the first few classes decide
    most tuples.
    """
    person = records.person[class_of >= 0]
    targets: list[tuple[int | None, list[int]]] = [
        (s, list(source)) for s, source in enumerate(schema.sources)
    ]
    if schema.sensitive:
        first = len(schema.qis)
        targets.append((None, list(range(first, first + len(schema.sensitive)))))
    return tuple(
        _leak(inferred.knows, inferred.known, learned, inferred.learns[:, columns], person)
        for inferred in infer(published, schema, records, class_of)
        for learned, columns in targets
        if learned != inferred.known
    )


def infer(
    published: Published, schema: Schema, records: Records, class_of: Int32Array
) -> Iterator[Inference]:
    """Yield which cells each adversary learns from each source. Arguments and cost as of `link`."""
    kept = class_of >= 0
    victims, of = records.only(kept), class_of[kept]
    only_value = [
        only_values(labels, attribute.missing)
        for labels, attribute in zip(
            (*published.qi, *published.sensitive), (*schema.qis, *schema.sensitive), strict=True
        )
    ]
    revealed_by = (
        np.stack(only_value, axis=1) if only_value else np.zeros((published.n_classes, 0), np.int64)
    )
    truth = np.concatenate([victims.qi, victims.sensitive], axis=1)
    missing = np.array([a.missing for a in (*schema.qis, *schema.sensitive)], np.int64)
    for known, source in enumerate(schema.sources):
        for knows in Knowledge:
            learns = _learns(knows, published, list(source), revealed_by, victims.qi, of)
            learns &= truth != missing
            learns[:, list(source)] = False
            yield Inference(knows, known, learns)


def homogeneity(
    published: Published, schema: Schema, records: Records, class_of: Int32Array
) -> tuple[Homogeneity, ...]:
    """Count the classes that reveal a single value of each sensitive attribute. Linear."""
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
    revealed_by: IntArray,
    qi: Int32Array,
    class_of: Int32Array,
) -> BoolArray:
    """Return which cells of each victim are learned, shape (victims, columns)."""
    known = [published.qi[q] for q in source]
    if knows is Knowledge.LABELS:
        key_of, n_keys = identities(known)
        revealed = _revealed_by_key(key_of, n_keys, revealed_by)
        return np.asarray(revealed[key_of[class_of]] >= 0)
    tuples, tuple_of = _distinct(qi[:, source])
    return np.asarray(_revealed_by_values(tuples, known, revealed_by)[tuple_of] >= 0)


def _distinct(rows: Int32Array) -> tuple[Int32Array, IntArray]:
    """Return the distinct rows, in any order, and the index of each row among them."""
    n = len(rows)
    number = np.zeros(n, np.int64)
    for column in rows.T:
        paired = number * (int(column.max(initial=0)) + 1) + column
        if paired.max(initial=0) <= 8 * n + 1024:  # a lookup table is faster than sorting
            occurs = np.zeros(int(paired.max(initial=0)) + 1, bool)
            occurs[paired] = True
            number = (np.cumsum(occurs) - 1)[paired]
        else:
            number = np.unique(paired, return_inverse=True)[1]
    tuples = np.zeros((int(number.max(initial=-1)) + 1, rows.shape[1]), np.int32)
    tuples[number] = rows
    return tuples, number


@kernel
def _union(a: int, b: int) -> int:
    """Return what two candidates together allow: one value, `SEVERAL` or `NOTHING`."""
    if a == NOTHING:
        return b
    if b in (NOTHING, a):
        return a
    return SEVERAL


@kernel
def _revealed_by_key(key_of: IntArray, n_keys: int, revealed_by: IntArray) -> IntArray:
    """Return what the classes of each key together allow, shape (keys, columns)."""
    revealed = np.full((n_keys, revealed_by.shape[1]), NOTHING)
    for c in range(len(key_of)):
        for a in range(revealed_by.shape[1]):
            revealed[key_of[c], a] = _union(revealed[key_of[c], a], revealed_by[c, a])
    return revealed


def _revealed_by_values(
    tuples: Int32Array, known: list[ReleasedLabels], revealed_by: IntArray
) -> IntArray:
    """Return what the classes that cover each tuple together allow, shape (tuples, columns)."""
    rank = np.empty(tuples.shape, np.int64)
    first_rank, first_run, first_of, lo, hi = [0], 0, [], [], []
    for a, labels in enumerate(known):
        codes, rank[:, a] = np.unique(tuples[:, a], return_inverse=True)
        first_of.append(labels.first_of + first_run)
        lo.append(np.searchsorted(codes, labels.lo, side="left"))
        hi.append(np.searchsorted(codes, labels.hi, side="right"))
        first_run += len(labels.lo)
        first_rank.append(first_rank[-1] + len(codes) + 1)
    return _revealed_by_covering(
        rank,
        np.array(first_rank),
        np.stack(first_of),
        np.concatenate(lo),
        np.concatenate(hi),
        revealed_by,
    )


@kernel
def _revealed_by_covering(
    rank: IntArray,
    first_rank: IntArray,
    first_of: IntArray,
    lo: IntArray,
    hi: IntArray,
    revealed_by: IntArray,
) -> IntArray:
    """Combine the classes that cover each tuple, 64 classes at a time."""
    n_classes, n_columns = revealed_by.shape
    revealed = np.full((len(rank), n_columns), NOTHING)
    undecided = np.arange(len(rank))
    n_undecided = len(rank)
    covers = np.zeros(first_rank[-1], np.uint64)
    for first in range(0, n_classes, 64):
        _set_covers(covers, first, min(first + 64, n_classes), first_rank, first_of, lo, hi)
        n_left = 0
        for t in undecided[:n_undecided]:
            batch = covers[first_rank[0] + rank[t, 0]]
            for a in range(1, len(first_of)):
                batch &= covers[first_rank[a] + rank[t, a]]
            if _combine(revealed[t], batch, revealed_by[first:]):
                undecided[n_left] = t
                n_left += 1
        n_undecided = n_left
    return revealed


@kernel
def _set_covers(
    covers: NDArray[np.uint64],
    first: int,
    end: int,
    first_rank: IntArray,
    first_of: IntArray,
    lo: IntArray,
    hi: IntArray,
) -> None:
    """Set the bit of each class from `first` to `end` at the values that its labels cover.

    The bit is flipped at the start of each run and after its end; a running XOR fills the run.
    """
    covers[:] = 0
    for a in range(len(first_of)):
        base = first_rank[a]
        for c in range(first, end):
            bit = np.uint64(1) << np.uint64(c - first)
            for r in range(first_of[a, c], first_of[a, c + 1]):
                covers[base + lo[r]] ^= bit
                covers[base + hi[r]] ^= bit
        for v in range(base + 1, first_rank[a + 1]):
            covers[v] ^= covers[v - 1]


@kernel
def _combine(revealed: IntArray, batch: np.uint64, revealed_by: IntArray) -> bool:
    """Add the classes of the set bits in place; return whether a column is still undecided."""
    one = np.uint64(1)
    c, undecided = 0, True
    while batch != 0 and undecided:
        if batch & one:
            undecided = False
            for a in range(len(revealed)):
                revealed[a] = _union(revealed[a], revealed_by[c, a])
                undecided |= revealed[a] != SEVERAL
        batch >>= one
        c += 1
    return undecided
