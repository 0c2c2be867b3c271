"""Independent verification before publishing: whether classes keep the promise.

Shares no code with what forms classes and checks them on the way (`criteria`, `problem`, `tally`);
an import contract enforces it. A result is trusted where both agree.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from anonymizer.domain.arrays import BoolArray, FloatArray, Int32Array, IntArray
from anonymizer.domain.promises import Promise
from anonymizer.domain.records import Attribute, Records, Schema

_TOLERANCE = 1e-9
"""Tolerance for rounding errors by which a limit may be missed."""
_MOST_CELLS = 2**22
"""Shares held at a time, to limit the memory."""


class PromisePart(StrEnum):
    """A part of a promise, as `Promise` names it."""

    K = "k"
    ONE_EACH = "one_each"
    D = "d"
    L = "l"
    MAX_SHARE = "max_share"
    MAX_SOURCE_SHARE = "max_source_share"
    MIN_SPREAD = "min_spread"
    ENTROPY_L = "entropy_l"
    T = "t"


@dataclass(frozen=True, slots=True, order=True)
class Violation:
    """A part of the promise that a class breaks.

    `attribute` is the name of the one concerned; those of a source joined by ` + `; empty for k and
    `ONE_EACH`: a person of the class has several records, here or in other classes.
    """

    class_number: int
    part: PromisePart
    attribute: str = ""


def verify_classes(
    records: Records,
    schema: Schema,
    promise: Promise,
    class_of: Int32Array,
    *,
    usual: Sequence[IntArray] | None = None,
) -> tuple[Violation, ...]:
    """Return every violation of `promise`, by class.

    `records`: all, since t-closeness compares with the distribution over them; `class_of`: negative
    where suppressed, shape (n,); `usual`: where the records are a part of a table, how often each
    code of each sensitive attribute occurs in all of it. ValueError if the shapes differ, a code is
    outside its domain, or the promise names an attribute that is not a numeric QI: no result could
    be trusted.

    Notes
    -----
    Callers suppress these classes completely and count them. O(n columns log n), and
    O(classes times codes) for t.

    A margin is tried by the members that leave the least: those with the rarest values, those at
    the ends of an axis, those without the most frequent value. For t, whatever leaves moves the
    share of any set of values by no more than is added here.
    """
    _refuse_nonsense(records, schema, promise, class_of)
    kept = np.flatnonzero(class_of >= 0)
    if not len(kept):
        return ()
    found: list[Violation] = []
    margin = promise.margin
    number, dense = np.unique(class_of[kept], return_inverse=True)
    of, person = dense.astype(np.int64), records.person[kept]
    is_repeated = np.bincount(person)[person] > 1
    if not is_repeated.any():
        person = person[:0]
    crowd = _persons(of, np.zeros_like(of), person)
    n_persons = crowd.n_persons

    def note(part: PromisePart, attribute: str, fails: BoolArray) -> None:
        found.extend(Violation(int(c), part, attribute) for c in number[fails])

    note(PromisePart.K, "", n_persons < promise.k)
    note(PromisePart.ONE_EACH, "", np.bincount(of, is_repeated) > 0)
    for attribute, column in zip(schema.qis, records.qi.T, strict=True):
        held = _persons(of, column[kept].astype(np.int64), person)
        note(PromisePart.D, attribute.name, _n_real(held, attribute, len(number)) < promise.d)
        fails = _is_modal_above(held, promise.max_share, n_persons - margin)
        note(PromisePart.MAX_SHARE, attribute.name, fails)
        if (least := promise.min_spread.get(attribute.name, 0.0)) > 0:
            fails = ~(_spread(held, attribute, len(number), margin) >= least - _TOLERANCE)
            note(PromisePart.MIN_SPREAD, attribute.name, fails)
    for name, tuples in _joint(records, schema, kept):
        held = _persons(of, tuples, person)
        fails = _is_modal_above(held, promise.max_source_share, n_persons - margin)
        note(PromisePart.MAX_SOURCE_SHARE, name, fails)
    everybody = _counts(records, schema) if usual is None else usual
    columns = records.sensitive.T
    for attribute, column, counts in zip(schema.sensitive, columns, everybody, strict=True):
        held = _persons(of, column[kept].astype(np.int64), person)
        n_values = _n_real(held, attribute, len(number), margin if promise.l > 1 else 0)
        note(PromisePart.L, attribute.name, n_values < promise.l)
        fails = _entropy(held, margin, len(number)) < np.log(promise.entropy_l) - _TOLERANCE
        note(PromisePart.ENTROPY_L, attribute.name, fails)
        if np.isfinite(promise.t):
            fails = ~(_distances(held, attribute, counts, margin) <= promise.t + _TOLERANCE)
            note(PromisePart.T, attribute.name, fails)
    return tuple(sorted(found))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Held:
    """What the classes hold: a row for each value of a class, sorted, with its persons."""

    class_number: IntArray
    value: IntArray
    n: IntArray

    @property
    def first(self) -> IntArray:
        return np.flatnonzero(np.diff(self.class_number, prepend=-1))

    @property
    def n_persons(self) -> IntArray:
        """Pairs of a person and a value, of each class."""
        return np.asarray(np.add.reduceat(self.n, self.first))


def short_classes(class_of: Int32Array, person: Int32Array, k: int) -> IntArray:
    """Return the classes of fewer than k distinct persons, rising.

    Parameters
    ----------
    class_of, person
        Class and person of each record, the class below 0 where it has none, shape (n,).
    """
    order = np.lexsort((person, class_of))
    c, who = class_of[order], person[order]
    new = np.ones(len(c), bool)
    new[1:] = (c[1:] != c[:-1]) | (who[1:] != who[:-1])
    found, n_persons = np.unique(c[new], return_counts=True)
    return found[(n_persons < k) & (found >= 0)].astype(np.int64)


def _refuse_nonsense(
    records: Records, schema: Schema, promise: Promise, class_of: Int32Array
) -> None:
    n = len(class_of)
    shapes = (records.qi.shape, records.sensitive.shape, records.person.shape)
    if shapes != ((n, len(schema.qis)), (n, len(schema.sensitive)), (n,)):
        raise ValueError("records, schema and classes differ in their shapes")
    table = np.column_stack([records.qi, records.sensitive])
    size = np.array([a.size for a in (*schema.qis, *schema.sensitive)], np.int64)
    if ((table < 0) | (table >= size)).any() or (records.person < 0).any():
        raise ValueError("a code or a person lies outside its domain")
    if set(promise.min_spread) - {a.name for a in schema.qis if a.numeric}:
        raise ValueError("min_spread names what is no numeric quasi-identifier")


def _persons(of: IntArray, value: IntArray, person: Int32Array) -> _Held:
    """Count the distinct persons of each class that have each value.

    `person` is empty where no two records are one person's: then records are counted, which
    takes a tenth of the time.
    """
    n_values = int(value.max()) + 1
    if not len(person):
        cell, n = np.unique(of * n_values + value, return_counts=True)
        return _Held(cell // n_values, cell % n_values, n)
    order = np.lexsort((person, value, of))
    c, v, p = of[order], value[order], person[order]
    new_value = np.ones(len(c), bool)
    new_value[1:] = (c[1:] != c[:-1]) | (v[1:] != v[:-1])
    new_person = new_value.copy()
    new_person[1:] |= p[1:] != p[:-1]
    starts = np.flatnonzero(new_value)
    return _Held(c[starts], v[starts], np.add.reduceat(new_person.astype(np.int64), starts))


def _n_real(held: _Held, attribute: Attribute, n_classes: int, margin: int = 0) -> IntArray:
    left = _without_rarest(_only_real(held, attribute), margin)
    return np.bincount(left.class_number, minlength=n_classes)


def _is_modal_above(held: _Held, share: float, n_persons: IntArray) -> BoolArray:
    above: BoolArray = np.maximum.reduceat(held.n, held.first) > share * n_persons + _TOLERANCE
    return above & (share < 1)


def _only_real(held: _Held, attribute: Attribute) -> _Held:
    real = held.value != attribute.missing
    return _Held(held.class_number[real], held.value[real], held.n[real])


def _without_rarest(held: _Held, margin: int) -> _Held:
    """Return what is left of each class when `margin` persons with the rarest values leave."""
    if not margin:
        return held
    order = np.lexsort((held.n, held.class_number))
    c, n = held.class_number[order], held.n[order]
    before = np.cumsum(n) - n
    rarer = before - before[np.searchsorted(c, c)]
    left = n - np.clip(margin - rarer, 0, n)
    some = left > 0
    return _Held(c[some], held.value[order][some], left[some])


def _spread(held: _Held, attribute: Attribute, n_classes: int, margin: int) -> FloatArray:
    """Return the least distance between the ends of each class if `margin` persons leave.

    Minus infinity where no value might be left.
    """
    real = _only_real(held, attribute)
    place = np.repeat(attribute.position[real.value], real.n)  # values rise within a class
    n = np.bincount(real.class_number, real.n, n_classes).astype(np.int64)
    wide, start = np.full(n_classes, np.inf), np.cumsum(n) - n
    enough = np.flatnonzero(n > margin)
    for n_low in range(margin + 1):
        low = place[start[enough] + n_low]
        high = place[start[enough] + n[enough] - 1 - (margin - n_low)]
        wide[enough] = np.minimum(wide[enough], high - low)
    wide[n <= margin] = -np.inf
    return wide


def _entropy(held: _Held, margin: int, n_classes: int) -> FloatArray:
    """Return the entropy of each class if `margin` persons leave; below 0 if all might."""
    left = _without_rarest(held, margin)
    n = np.bincount(left.class_number, left.n, n_classes)
    share = left.n / n[left.class_number]
    entropy = -np.bincount(left.class_number, share * np.log(share), n_classes).astype(np.float64)
    entropy[n == 0] = -1.0
    return entropy


def _joint(records: Records, schema: Schema, kept: IntArray) -> Iterator[tuple[str, IntArray]]:
    """Yield the name of each source of several QIs, and a number for each record's tuple."""
    for source in schema.sources:
        if len(source) > 1:
            columns = list(source)
            rows = records.qi[kept][:, columns]
            order = np.lexsort(rows.T)
            differs = (np.diff(rows[order], axis=0) != 0).any(axis=1)
            number = np.zeros(len(rows), np.int64)
            number[order[1:]] = np.cumsum(differs)
            yield " + ".join(schema.qis[j].name for j in columns), number


def _counts(records: Records, schema: Schema) -> list[IntArray]:
    """Return how often each code of each sensitive attribute occurs."""
    columns = zip(records.sensitive.T, schema.sensitive, strict=True)
    return [np.bincount(column, minlength=a.size) for column, a in columns]


def _distances(held: _Held, attribute: Attribute, everybody: IntArray, margin: int) -> FloatArray:
    """Return the earth mover's distance of each class from all records, 0 to 1.

    Categories are all at distance 1 from each other: half the sum of the differences. Numbers lie
    on a line as long as their span: the excess to the left of each gap crosses it. With a margin,
    the most that the distance can be when so many persons leave; infinite if all might.
    """
    usual = everybody / everybody.sum()
    n_left = held.n_persons - margin
    share = held.n / np.maximum(n_left, 1)[held.class_number]
    first, n_classes = held.first, int(held.class_number[-1]) + 1
    distance = np.empty(n_classes)
    step = max(_MOST_CELLS // attribute.size, 1)
    for at in range(0, n_classes, step):
        to = min(at + step, n_classes)
        rows = slice(first[at], first[to] if to < n_classes else None)
        table = np.tile(-usual, (to - at, 1))
        table[held.class_number[rows] - at, held.value[rows]] += share[rows]
        if attribute.numeric:
            gaps = np.diff(attribute.position)
            excess = np.cumsum(table, axis=1)[:, :-1]
            crossing = np.abs(excess)
            if margin:
                lacking = (margin / np.maximum(n_left[at:to], 1))[:, None] - excess
                full = np.cumsum(usual)[:-1]
                crossing = np.maximum(np.minimum(excess, 1 - full), np.minimum(lacking, full))
            distance[at:to] = (crossing * gaps).sum(axis=1) / max(gaps.sum(), np.finfo(float).tiny)
        elif margin:
            distance[at:to] = table.clip(min=0).sum(axis=1)
        else:
            distance[at:to] = np.abs(table).sum(axis=1) / 2
    distance[n_left <= 0] = np.inf
    return distance
