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

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from anonymizer.algorithms.kernels import inner_kernel, kernel
from anonymizer.algorithms.releases.released_classes import (
    NOTHING,
    SEVERAL,
    Published,
    ReleasedLabels,
    identities,
    only_values,
)
from anonymizer.domain.arrays import BoolArray, Int32Array, IntArray, starts_of
from anonymizer.domain.records import NO_CODE, Records, Schema


class Knowledge(StrEnum):
    """What the adversary knows about his victim; see the module."""

    VALUES = "values"
    LABELS = "labels"


@dataclass(frozen=True, slots=True)
class Leak:
    """What an adversary who knows one source learns about another."""

    knows: Knowledge
    """Which adversary."""
    known: int
    """The source that he knows, an index into `Schema.sources`."""
    learned: int | None
    """The source that he learns about; None: the sensitive attributes."""
    n_cells_of: tuple[int, ...]
    """Cells (values of a record) of each attribute of `learned` that he learns for certain."""
    n_people: int
    """Distinct persons about whom he learns at least one cell."""

    @property
    def n_cells(self) -> int:
        """Number of cells learned, over all attributes."""
        return sum(self.n_cells_of)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Inference:
    """What an adversary who knows one source learns, cell by cell."""

    knows: Knowledge
    known: int
    """`knows`, `known`: which adversary, and his source, as in `Leak`."""
    learns: BoolArray
    """Cells that he learns for certain: of each record that is published, in their order, and each
    quasi-identifier and then sensitive attribute, shape (published records, attributes)."""


@dataclass(frozen=True, slots=True)
class Homogeneity:
    """Numbers of classes that allow one value of a sensitive attribute, and of their persons."""

    n_classes: int
    n_people: int


def link(
    published: Published,
    schema: Schema,
    records: Records,
    class_of: Int32Array,
    known: Sequence[int] | None = None,
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
    known
        The sources from which it is run; None: all.

    Notes
    -----
    Deviation from the paper: its map from the labels of one source to those of the other has one
    entry for each key, so among classes with equal labels the last one wins. Here a key has all
    of them. A cell whose value is missing cannot leak.

    Linear in the records and labels, and for `Knowledge.VALUES` about O(n log n) of the distinct
    tuples and the classes.
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
        for inferred in infer(published, schema, records, class_of, known)
        for learned, columns in targets
        if learned != inferred.known
    )


def infer(
    published: Published,
    schema: Schema,
    records: Records,
    class_of: Int32Array,
    known: Sequence[int] | None = None,
) -> Iterator[Inference]:
    """Yield which cells each adversary learns from each source. Arguments and cost as of `link`."""
    kept = class_of >= 0
    victims, of = (records, class_of) if kept.all() else (records.only(kept), class_of[kept])
    only_value = [
        only_values(labels, attribute.missing)
        for labels, attribute in zip(
            (*published.qi, *published.sensitive), (*schema.qis, *schema.sensitive), strict=True
        )
    ]
    revealed_by = (
        np.stack(only_value, axis=1) if only_value else np.zeros((published.n_classes, 0), np.int64)
    )
    truth = (*victims.qi.T, *victims.sensitive.T)
    missing = [attribute.missing for attribute in (*schema.qis, *schema.sensitive)]
    for s in range(len(schema.sources)) if known is None else known:
        source = schema.sources[s]
        for knows in Knowledge:
            others = [a for a in range(len(truth)) if a not in source]
            learns = np.zeros((len(of), len(truth)), bool)
            learns[:, others] = _learns(
                knows, published, list(source), revealed_by[:, others].copy(), victims.qi, of
            )
            for a in others:
                if missing[a] != NO_CODE:
                    learns[:, a] &= truth[a] != missing[a]
            yield Inference(knows, s, learns)


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
        number, n_keys = identities(known)
        key_of = number.astype(np.int32)
        revealed = _revealed_by_key(
            key_of, np.arange(len(key_of), dtype=np.int32), n_keys, revealed_by
        )
        return np.asarray(revealed[key_of[class_of]] >= 0)
    some, tuple_of = _distinct(qi, source)
    is_candidate = np.ones(len(qi), bool)
    for labels, q in zip(known, source, strict=True):
        is_candidate &= labels.covers(class_of, qi[:, q].copy())
    # The victims' own classes are candidates, and most decide.
    own = class_of[is_candidate]
    revealed = _revealed_by_key(tuple_of[is_candidate], own, len(some), revealed_by)
    del own, is_candidate
    open_ = (revealed != SEVERAL).any(axis=1)
    tuples = qi[some[open_]][:, source]
    revealed[open_] = _revealed_by_values(tuples, known, revealed_by)
    return np.asarray(revealed[tuple_of] >= 0)


_MOST_KEYS = 2**62
_AT_ONCE = 1 << 16


def _distinct(rows: Int32Array, columns: Sequence[int]) -> tuple[Int32Array, Int32Array]:
    """Return a row for each distinct tuple of some columns, and the tuple of each row."""
    number, size = np.zeros(len(rows), np.int64), 1
    for column in rows.T[columns]:
        width = int(column.max(initial=0)) + 1
        if size > _MOST_KEYS // width:
            number, size = _ranks(number).astype(np.int64), len(rows)
        number *= width
        number += column
        size *= width
    if size <= 8 * len(rows) + 1024:  # a lookup table is faster than sorting
        occurs = np.zeros(size, bool)
        occurs[number] = True
        tuple_of = (np.cumsum(occurs, dtype=np.int32) - 1)[number]
    else:
        tuple_of = _ranks(number)
    some = np.zeros(int(tuple_of.max(initial=-1)) + 1, np.int32)
    some[tuple_of] = np.arange(len(rows), dtype=np.int32)
    return some, tuple_of


def _ranks(number: IntArray) -> Int32Array:
    """Return the rank of each number among the different ones; `np.unique` takes more memory."""
    order = np.argsort(number)
    rank, n_below = np.empty(len(number), np.int32), -1
    for at in range(0, len(order), _AT_ONCE):
        rising = number[order[max(at - 1, 0) : at + _AT_ONCE]]
        is_new = np.diff(rising) > 0 if at else np.diff(rising, prepend=rising[0] - 1) > 0
        up_to = n_below + np.cumsum(is_new, dtype=np.int32)
        rank[order[at : at + _AT_ONCE]] = up_to
        n_below = int(up_to[-1])
    return rank


@inner_kernel
def _union(a: int, b: int) -> int:
    """Return what two candidates together allow: one value, `SEVERAL` or `NOTHING`."""
    if a == NOTHING:
        return b
    if b in (NOTHING, a):
        return a
    return SEVERAL


def _revealed_by_key(
    key_of: Int32Array, class_of: Int32Array, n_keys: int, revealed_by: IntArray
) -> IntArray:
    """Return what the classes of each key together allow, shape (keys, columns)."""
    revealed = np.full((n_keys, revealed_by.shape[1]), NOTHING)
    _add(revealed, key_of, class_of, revealed_by)
    return revealed


@kernel
def _add(
    revealed: IntArray, key_of: Int32Array, class_of: Int32Array, revealed_by: IntArray
) -> None:
    """Add classes to what the key of each one allows, in place."""
    for i in range(len(key_of)):
        for a in range(revealed.shape[1]):
            revealed[key_of[i], a] = _union(revealed[key_of[i], a], revealed_by[class_of[i], a])


_TUPLES = 4096
"""That are compared with the classes together: a column's bits for them stay in the cache."""
_FIRST, _MOST = 64, 4096
"""Classes that are looked at together, at first and at most. The first ones decide most tuples."""


def _revealed_by_values(
    tuples: Int32Array, known: list[ReleasedLabels], revealed_by: IntArray
) -> IntArray:
    """Return what the classes that cover each tuple together allow, shape (tuples, columns).

    A bit for each tuple and class says whether a label covers the tuple's value; the columns'
    bits are combined word by word. O(tuples times classes / 64), of those that are apart in no
    column.
    """
    revealed = np.full((len(tuples), revealed_by.shape[1]), NOTHING)
    order = np.lexsort(tuples.T)
    for first in range(0, len(order), _TUPLES):
        some = order[first : first + _TUPLES]
        revealed[some] = _revealed_to_some(tuples[some], known, revealed_by)
    return revealed


def _revealed_to_some(
    tuples: Int32Array, known: list[ReleasedLabels], revealed_by: IntArray
) -> IntArray:
    ranked = [_in_ranks(*each) for each in zip(tuples.T, known, strict=True)]
    meets = np.logical_and.reduce([_covers_any(labels) for _, labels in ranked])
    candidates = np.flatnonzero(meets).astype(np.int32)
    revealed = np.full((len(tuples), revealed_by.shape[1]), NOTHING)
    left, at, size = np.arange(len(tuples), dtype=np.int32), 0, _FIRST
    while at < len(candidates) and len(left):
        classes = candidates[at : at + size]
        covered = np.full((len(left), -(-len(classes) // 64)), ~np.uint64(0))
        for rank, labels in ranked:
            covered &= _covering(labels.only(classes), int(rank.max()) + 1)[rank[left]]
        key, seat = _set_bits(covered)
        _add(revealed, left[key], classes[seat], revealed_by)
        left = left[(revealed[left] != SEVERAL).any(axis=1)]
        at, size = at + size, min(4 * size, _MOST)
    return revealed


def _in_ranks(codes: Int32Array, labels: ReleasedLabels) -> tuple[IntArray, ReleasedLabels]:
    """Return the rank of each code among those that occur, and labels as runs of these ranks.

    A run ends before its last rank here, and one that holds none of the codes is empty.
    """
    last = max(int(codes.max()), int(labels.hi.max(initial=0)))
    occurs = np.zeros(last + 1, np.int64)
    occurs[codes] = 1
    n_below = starts_of(occurs)
    return n_below[codes], ReleasedLabels(
        labels.first_of, n_below[labels.lo], n_below[labels.hi + 1]
    )


def _covers_any(labels: ReleasedLabels) -> BoolArray:
    """Return whether any run of each class holds a rank, shape (classes,)."""
    n_runs = starts_of((labels.lo < labels.hi).astype(np.int64))
    return np.asarray(n_runs[labels.first_of[1:]] > n_runs[labels.first_of[:-1]])


def _covering(labels: ReleasedLabels, n_ranks: int) -> NDArray[np.uint64]:
    """Return a bit for each rank and class: whether the class covers it, shape (ranks, words)."""
    n_classes = len(labels.first_of) - 1
    changes = np.zeros((n_ranks + 1, -(-n_classes // 64)), np.uint64)
    owner = np.repeat(np.arange(n_classes), np.diff(labels.first_of))
    word, bit = owner // 64, np.uint64(1) << (owner % 64).astype(np.uint64)
    np.bitwise_xor.at(changes, (labels.lo, word), bit)
    np.bitwise_xor.at(changes, (labels.hi, word), bit)
    return np.asarray(np.bitwise_xor.accumulate(changes, axis=0))


def _set_bits(words: NDArray[np.uint64]) -> tuple[IntArray, IntArray]:
    """Return the row and the position of each bit that is set."""
    row, word = np.nonzero(words)
    octets = words[row, word].astype("<u8").view(np.uint8).reshape(-1, 8)
    at, bit = np.nonzero(np.unpackbits(octets, axis=1, bitorder="little"))
    return row[at], 64 * word[at] + bit
