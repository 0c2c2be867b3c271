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

from anonymizer.algorithms.kernels import inner_kernel, kernel
from anonymizer.algorithms.releases.released_classes import (
    NOTHING,
    SEVERAL,
    Published,
    ReleasedLabels,
    identities,
    only_values,
)
from anonymizer.domain.arrays import BoolArray, Int32Array, IntArray
from anonymizer.domain.records import NO_CODE, Records, Schema


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
        for inferred in infer(published, schema, records, class_of)
        for learned, columns in targets
        if learned != inferred.known
    )


def infer(
    published: Published, schema: Schema, records: Records, class_of: Int32Array
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
    for known, source in enumerate(schema.sources):
        for knows in Knowledge:
            others = [a for a in range(len(truth)) if a not in source]
            learns = np.zeros((len(of), len(truth)), bool)
            learns[:, others] = _learns(
                knows, published, list(source), revealed_by[:, others].copy(), victims.qi, of
            )
            for a in others:
                if missing[a] != NO_CODE:
                    learns[:, a] &= truth[a] != missing[a]
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
        revealed = _revealed_by_key(key_of, np.arange(len(key_of)), n_keys, revealed_by)
        return np.asarray(revealed[key_of[class_of]] >= 0)
    some, tuple_of = _distinct(qi, source)
    is_candidate = np.ones(len(qi), bool)
    for labels, q in zip(known, source, strict=True):
        is_candidate &= labels.covers(class_of, qi[:, q].copy())
    # The victims' own classes are candidates, and most decide.
    own = class_of[is_candidate].astype(np.int64)
    revealed = _revealed_by_key(tuple_of[is_candidate], own, len(some), revealed_by)
    open_ = (revealed != SEVERAL).any(axis=1)
    tuples = qi[some[open_]][:, source]
    revealed[open_] = _revealed_by_values(tuples, known, revealed_by)
    return np.asarray(revealed[tuple_of] >= 0)


_MOST_KEYS = 2**62


def _distinct(rows: Int32Array, columns: Sequence[int]) -> tuple[IntArray, IntArray]:
    """Return a row for each distinct tuple of some columns, and the tuple of each row."""
    number, size = np.zeros(len(rows), np.int64), 1
    for column in rows.T[columns]:
        width = int(column.max(initial=0)) + 1
        if size > _MOST_KEYS // width:
            number, size = np.unique(number, return_inverse=True)[1], len(rows)
        number *= width
        number += column
        size *= width
    if size <= 8 * len(rows) + 1024:  # a lookup table is faster than sorting
        occurs = np.zeros(size, bool)
        occurs[number] = True
        number = (np.cumsum(occurs) - 1)[number]
    else:
        number = np.unique(number, return_inverse=True)[1]
    some = np.zeros(int(number.max(initial=-1)) + 1, np.int64)
    some[number] = np.arange(len(rows))
    return some, number


@inner_kernel
def _union(a: int, b: int) -> int:
    """Return what two candidates together allow: one value, `SEVERAL` or `NOTHING`."""
    if a == NOTHING:
        return b
    if b in (NOTHING, a):
        return a
    return SEVERAL


@kernel
def _revealed_by_key(
    key_of: IntArray, class_of: IntArray, n_keys: int, revealed_by: IntArray
) -> IntArray:
    """Return what the classes of each key together allow, shape (keys, columns)."""
    revealed = np.full((n_keys, revealed_by.shape[1]), NOTHING)
    for i in range(len(key_of)):
        _add(revealed[key_of[i]], revealed_by[class_of[i]])
    return revealed


def _revealed_by_values(
    tuples: Int32Array, known: list[ReleasedLabels], revealed_by: IntArray
) -> IntArray:
    """Return what the classes that cover each tuple together allow, shape (tuples, columns)."""
    rank = np.empty(tuples.shape, np.int64)
    first_run, first_of, lo, hi = 0, [], [], []
    for a, labels in enumerate(known):
        codes, rank[:, a] = np.unique(tuples[:, a], return_inverse=True)
        first_of.append(labels.first_of + first_run)
        lo.append(np.searchsorted(codes, labels.lo, side="left"))
        hi.append(np.searchsorted(codes, labels.hi, side="right"))
        first_run += len(labels.lo)
    return _revealed_by_covering(
        rank,
        np.stack(first_of),
        np.concatenate(lo),
        np.concatenate(hi),
        revealed_by,
    )


_LEAF = 16
"""Tuples that are compared with classes one by one."""
_HALVINGS = 31
"""Of a column, whose ranks are below 2^31; a box waits for each."""


@kernel
def _revealed_by_covering(
    rank: IntArray, first_of: IntArray, lo: IntArray, hi: IntArray, revealed_by: IntArray
) -> IntArray:
    """Combine the classes that cover each tuple.

    `rank`: distinct, shape (tuples, columns). Run r of class c in column a, from `first_of[a, c]`
    to `first_of[a, c + 1]`, covers the ranks from `lo[r]` to `hi[r]`, exclusive.

    Tuples are divided at the middle of their widest column, again and again. A box of tuples keeps
    the classes that meet it and would add something: those that cover all of it are combined at
    once, the others are left to its halves.
    """
    n_columns, n_classes = revealed_by.shape[1], len(revealed_by)
    revealed = np.full((len(rank), n_columns), NOTHING)
    if len(rank) == 0 or n_columns == 0:
        return revealed
    member = np.arange(len(rank))
    low, high = np.empty((2, rank.shape[1]), np.int64)
    # The classes that meet the boxes above one another, the uppermost first.
    seats = np.arange(2 * n_classes)
    boxes = [(0, len(rank), 0, n_classes)]
    allowed = np.full((_HALVINGS * rank.shape[1] + 2, n_columns), NOTHING)
    state = np.empty(n_columns, np.int64)
    while len(boxes) > 0:
        start, end, first, last = boxes.pop()
        state[:] = allowed[len(boxes)]
        box = member[start:end]
        _bounds(box, rank, low, high)
        if 2 * last - first > len(seats):
            seats = np.append(seats, seats)
        n_meeting = _combine(seats, first, last, state, low, high, first_of, lo, hi, revealed_by)
        if len(box) > _LEAF and n_meeting > last:
            n_low = _halve(box, rank, low, high)
            for half in ((start, start + n_low), (start + n_low, end)):
                allowed[len(boxes)] = state
                boxes.append((half[0], half[1], last, n_meeting))
            continue
        for t in box:
            revealed[t] = state
            low[:], high[:] = rank[t], rank[t]
            _combine(
                *(seats, last, n_meeting, revealed[t], low, high, first_of, lo, hi, revealed_by)
            )
    return revealed


@inner_kernel
def _combine(
    seats: IntArray,
    first: int,
    last: int,
    allowed: IntArray,
    low: IntArray,
    high: IntArray,
    first_of: IntArray,
    lo: IntArray,
    hi: IntArray,
    revealed_by: IntArray,
) -> int:
    """Add the classes from seat `first` to `last` that cover a box; return the seat after the last.

    Those that cover it partly, and would add something, are seated behind the others.
    """
    n_seats = last
    for seat in range(first, last):
        c = seats[seat]
        if not _adds(allowed, revealed_by[c]):
            continue
        met = _met(c, low, high, first_of, lo, hi)
        if met == _WHOLLY:
            _add(allowed, revealed_by[c])
        elif met == _PARTLY:
            seats[n_seats] = c
            n_seats += 1
    return n_seats


_APART, _PARTLY, _WHOLLY = range(3)


@inner_kernel
def _bounds(box: IntArray, rank: IntArray, low: IntArray, high: IntArray) -> None:
    """Set the least and the greatest rank of some tuples in each column."""
    for a in range(len(low)):
        low[a] = high[a] = rank[box[0], a]
    for t in box:
        for a in range(len(low)):
            low[a], high[a] = min(low[a], rank[t, a]), max(high[a], rank[t, a])


@inner_kernel
def _met(
    c: int, low: IntArray, high: IntArray, first_of: IntArray, lo: IntArray, hi: IntArray
) -> int:
    """Return whether the labels of a class cover a box wholly, or partly, or not at all."""
    whole = True
    for a in range(len(low)):
        meets, covers = False, False
        for r in range(first_of[a, c], first_of[a, c + 1]):
            meets |= lo[r] <= high[a] and hi[r] > low[a]
            covers |= lo[r] <= low[a] and hi[r] > high[a]
        if not meets:
            return _APART
        whole &= covers
    return _WHOLLY if whole else _PARTLY


@inner_kernel
def _adds(allowed: IntArray, by: IntArray) -> bool:
    """Return whether a candidate would change what others allow."""
    adds = False
    for a in range(len(allowed)):
        adds |= _union(allowed[a], by[a]) != allowed[a]
    return adds


@inner_kernel
def _add(allowed: IntArray, by: IntArray) -> None:
    """Add a candidate to what others allow, in place."""
    for a in range(len(allowed)):
        allowed[a] = _union(allowed[a], by[a])


@inner_kernel
def _halve(box: IntArray, rank: IntArray, low: IntArray, high: IntArray) -> int:
    """Order tuples by the half of their widest column that they lie in; return how many are low."""
    widest = 0
    for a in range(len(low)):
        if high[a] - low[a] > high[widest] - low[widest]:
            widest = a
    middle = (low[widest] + high[widest]) // 2
    n_low = 0
    for i in range(len(box)):
        if rank[box[i], widest] <= middle:
            box[i], box[n_low] = box[n_low], box[i]
            n_low += 1
    return n_low
