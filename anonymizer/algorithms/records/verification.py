"""Independent verification before publishing: whether classes keep the promise.

Shares no code with what forms classes and checks them on the way (`criteria`, `problem`, `tally`);
an import contract enforces it. A result is trusted where both agree.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from anonymizer.domain.arrays import FloatArray, Int32Array, IntArray
from anonymizer.domain.criteria.criterion import Of
from anonymizer.domain.criteria.registry import CRITERIA
from anonymizer.domain.promises import Promise, asked_of, check_numbers
from anonymizer.domain.records import Attribute, Records, Schema
from anonymizer.errors import GuaranteeError

NO_ATTRIBUTE = Attribute("", np.zeros(1))
"""Stands where a column is of no single attribute."""
_MOST_CELLS = 2**22
"""Shares held at a time, to limit the memory."""
_MOST_KEYS = 2**62
_CELLS_EACH = 4
"""Cells of a table of counts, for each record, up to which one is made."""


ONE_EACH = "one_each"
"""Part of every promise: nobody has several records."""
PARTS = (CRITERIA[0].name, ONE_EACH, *(each.name for each in CRITERIA[1:]))
"""Everything that classes may break."""


@dataclass(frozen=True, slots=True, order=True)
class Violation:
    """A part of the promise that a class breaks.

    `part` is the name of a criterion, or `ONE_EACH`: a person of the class has several records,
    here or in other classes. `attribute` is the name of the one concerned; those of a source
    joined by ` + `; empty if it is the class.
    """

    class_number: int
    part: str
    attribute: str = ""


def check_classes(
    records: Records,
    schema: Schema,
    promise: Promise,
    class_of: Int32Array,
    *,
    usual: Sequence[IntArray] | None = None,
) -> None:
    """Raise `GuaranteeError` if a class breaks the promise; see `verify_classes`."""
    if broken := verify_classes(records, schema, promise, class_of, usual=usual):
        raise GuaranteeError(
            f"{len(broken)} breaches of the promise were found in the classes: nothing is published"
        )


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
    outside its domain, SettingsError if the promise names what is no number of the criterion's
    kind: no result could be trusted.

    Notes
    -----
    Callers suppress these classes completely and count them. O(n columns log n), and
    O(classes times codes) for t.

    A margin is tried by the members that leave the least: those with the rarest values, those at
    the ends of an axis, those without the most frequent value.
    """
    _refuse_nonsense(records, schema, promise, class_of)
    kept = np.flatnonzero(class_of >= 0)
    if not len(kept):
        return ()
    number, of = _numbered(class_of[kept])
    person = records.person[kept]
    is_repeated = np.bincount(person)[person] > 1
    more_than_one = number[np.bincount(of, is_repeated) > 0]
    found = [Violation(int(c), ONE_EACH) for c in more_than_one]
    if not is_repeated.any():
        person = person[:0]
    everybody = _counts(records, schema) if usual is None else usual
    crowd = held_by(of, np.zeros_like(of), person)
    for kind, attribute, column, counts in _columns(records, schema, everybody):
        asked = asked_of(promise, kind, attribute.name)
        held = crowd
        if asked and kind is not Of.CLASS:
            held = held_by(of, column[kept].astype(np.int64), person, attribute, counts)
            held = replace(held, n_persons=crowd.n_persons)
        for criterion, bound in asked:
            fails = number[criterion.fails(held, bound, promise.margin)]
            found += [Violation(int(c), criterion.name, attribute.name) for c in fails]
    return tuple(sorted(found))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class HeldValues:
    """What classes hold of a column, as criteria ask for it (`Holding`).

    A row for each value of a class, sorted, with the persons who have it. `n_persons`: persons of
    each class; `usual`: how often each code occurs in all records.
    """

    class_number: Int32Array | IntArray
    value: Int32Array | IntArray
    n: IntArray
    n_persons: IntArray
    attribute: Attribute = NO_ATTRIBUTE
    usual: IntArray | None = None

    @property
    def first(self) -> IntArray:
        """First row of each class."""
        return np.flatnonzero(np.diff(self.class_number, prepend=-1))

    @property
    def most(self) -> IntArray:
        """Persons with the most frequent value, shape (classes,)."""
        return np.asarray(np.maximum.reduceat(self.n, self.first))

    def n_values(self, leaving: int) -> IntArray:
        """Return the distinct values, the missing marker left out."""
        left = self._only_real().without_rarest(leaving)
        return np.bincount(left.class_number, minlength=len(self.n_persons))

    def spread(self, leaving: int) -> FloatArray:
        """Return the distance between the ends; minus infinity where no value might be left."""
        real, n_classes = self._only_real(), len(self.n_persons)
        place = np.repeat(self.attribute.position[real.value], real.n)  # values rise in a class
        n = np.bincount(real.class_number, real.n, n_classes).astype(np.int64)
        wide, start = np.full(n_classes, np.inf), np.cumsum(n) - n
        enough = np.flatnonzero(n > leaving)
        for n_low in range(leaving + 1):
            low = place[start[enough] + n_low]
            high = place[start[enough] + n[enough] - 1 - (leaving - n_low)]
            wide[enough] = np.minimum(wide[enough], high - low)
        wide[n <= leaving] = -np.inf
        return wide

    def diversity(self, leaving: int) -> FloatArray:
        """Return exp(entropy); 0 if all might leave."""
        left, n_classes = self.without_rarest(leaving), len(self.n_persons)
        n = np.bincount(left.class_number, left.n, n_classes)
        share = left.n / n[left.class_number]
        entropy = np.bincount(left.class_number, -share * np.log(share), n_classes)
        return np.where(n > 0, np.exp(entropy), 0.0)

    def distance(self, leaving: int) -> FloatArray:
        """Return the earth mover's distance of each class from all records, 0 to 1.

        Categories are all at distance 1 from each other: half the sum of the differences. Numbers
        are as far apart as their ranks among those that occur in the table, or in a class: the
        excess to the left of each gap crosses it. Whatever leaves moves the share of any set of
        values by no more than is added here; infinite if all might leave.
        """
        assert self.usual is not None  # noqa: S101  the whole table is known
        occurs = self.usual > 0
        occurs[self.value] = True
        usual, rank = (self.usual / max(self.usual.sum(), 1))[occurs], np.cumsum(occurs) - 1
        n_left = np.add.reduceat(self.n, self.first) - leaving
        share = self.n / np.maximum(n_left, 1)[self.class_number]
        first, n_classes = self.first, len(self.n_persons)
        distance = np.empty(n_classes)
        step = max(_MOST_CELLS // len(usual), 1)
        for at in range(0, n_classes, step):
            to = min(at + step, n_classes)
            rows = slice(first[at], first[to] if to < n_classes else None)
            table = np.tile(-usual, (to - at, 1))
            table[self.class_number[rows] - at, rank[self.value[rows]]] += share[rows]
            if self.attribute.numeric:
                excess = np.cumsum(table, axis=1)[:, :-1]
                crossing = np.abs(excess)
                if leaving:
                    lacking = (leaving / np.maximum(n_left[at:to], 1))[:, None] - excess
                    full = np.cumsum(usual)[:-1]
                    crossing = np.maximum(np.minimum(excess, 1 - full), np.minimum(lacking, full))
                distance[at:to] = crossing.sum(axis=1) / max(len(usual) - 1, 1)
            elif leaving:
                distance[at:to] = table.clip(min=0).sum(axis=1)
            else:
                distance[at:to] = np.abs(table).sum(axis=1) / 2
        distance[n_left <= 0] = np.inf
        return distance

    def _only_real(self) -> "HeldValues":
        real = self.value != self.attribute.missing
        return self._of(self.class_number[real], self.value[real], self.n[real])

    def without_rarest(self, leaving: int) -> "HeldValues":
        """Return what is left of each class when persons with the rarest values leave."""
        if not leaving:
            return self
        order = np.lexsort((self.n, self.class_number))
        c, n = self.class_number[order], self.n[order]
        before = np.cumsum(n) - n
        rarer = before - before[np.searchsorted(c, c)]
        left = n - np.clip(leaving - rarer, 0, n)
        some = left > 0
        return self._of(c[some], self.value[order][some], left[some])

    def _of(self, class_number: IntArray, value: IntArray, n: IntArray) -> "HeldValues":
        return replace(self, class_number=class_number, value=value, n=n)


def short_classes(class_of: Int32Array, person: Int32Array, k: int) -> IntArray:
    """Return the classes of fewer than k distinct persons, rising.

    Parameters
    ----------
    class_of, person
        Class and person of each record, the class below 0 where it has none, shape (n,).
    """
    c, who = class_of[class_of >= 0], person[class_of >= 0]
    if not len(c):
        return np.zeros(0, np.int64)
    if (np.bincount(who) > 1).any():
        order = np.lexsort((who, c))
        c, who = c[order], who[order]
        new = np.ones(len(c), bool)
        new[1:] = (c[1:] != c[:-1]) | (who[1:] != who[:-1])
        c = c[new]
    found, n_persons = _times_of(c)
    return found[n_persons < k].astype(np.int64)


def _refuse_nonsense(
    records: Records, schema: Schema, promise: Promise, class_of: Int32Array
) -> None:
    n = len(class_of)
    shapes = (records.qi.shape, records.sensitive.shape, records.person.shape)
    if shapes != ((n, len(schema.qis)), (n, len(schema.sensitive)), (n,)):
        raise ValueError("records, schema and classes differ in their shapes")
    columns = zip(
        (*records.qi.T, *records.sensitive.T), (*schema.qis, *schema.sensitive), strict=True
    )
    outside = (n and (code.min() < 0 or code.max() >= a.size) for code, a in columns)
    if any(outside) or (n and records.person.min() < 0):
        raise ValueError("a code or a person lies outside its domain")
    check_numbers(promise, schema.qis, schema.sensitive)


def held_by(
    of: IntArray,
    value: IntArray,
    person: Int32Array,
    attribute: Attribute = NO_ATTRIBUTE,
    usual: IntArray | None = None,
) -> HeldValues:
    """Count the distinct persons of each class that have each value.

    `person` is empty where no two records are one person's: then records are counted, which
    takes a tenth of the time.
    """
    n_values = int(value.max()) + 1
    if not len(person):
        cell, n = _times_of(of * n_values + value)
        c, v = cell // n_values, cell % n_values
    else:
        order = np.lexsort((person, value, of))
        c, v, p = of[order], value[order], person[order]
        new_value = np.ones(len(c), bool)
        new_value[1:] = (c[1:] != c[:-1]) | (v[1:] != v[:-1])
        new_person = new_value.copy()
        new_person[1:] |= p[1:] != p[:-1]
        starts = np.flatnonzero(new_value)
        c, v, n = c[starts], v[starts], np.add.reduceat(new_person.astype(np.int64), starts)
    n_persons = np.add.reduceat(n, np.flatnonzero(np.diff(c, prepend=-1)))
    return HeldValues(c, v, n, n_persons, attribute, usual)


def _times_of(cell: Int32Array | IntArray) -> tuple[IntArray, IntArray]:
    """Return the distinct numbers, rising, and how often each occurs; a table beats sorting."""
    if int(cell.max()) >= _CELLS_EACH * len(cell):
        return np.unique(cell, return_counts=True)
    times = np.bincount(cell)
    there = np.flatnonzero(times)
    return there, times[there]


def _numbered(class_of: Int32Array) -> tuple[IntArray, IntArray]:
    """Return the class numbers that occur, rising, and the place of each record's among them."""
    number, _ = _times_of(class_of)
    if int(number[-1]) >= _CELLS_EACH * len(class_of):
        return number, np.searchsorted(number, class_of)
    place = np.zeros(int(number[-1]) + 1, np.int64)
    place[number] = np.arange(len(number))
    return number, place[class_of]


def _columns(
    records: Records, schema: Schema, everybody: Sequence[IntArray]
) -> Iterator[tuple[Of, Attribute, Int32Array | IntArray, IntArray | None]]:
    """Yield what criteria are about: the kind, the attribute, its values, and how often each is."""
    yield Of.CLASS, NO_ATTRIBUTE, records.person, None
    for attribute, column in zip(schema.qis, records.qi.T, strict=True):
        yield Of.QI, attribute, column, None
    for source in schema.sources:
        if len(source) > 1:
            name = " + ".join(schema.qis[j].name for j in source)
            tuples = _joint(records.qi[:, list(source)])
            yield Of.SOURCE, replace(NO_ATTRIBUTE, name=name), tuples, None
    columns = zip(schema.sensitive, records.sensitive.T, everybody, strict=True)
    for attribute, column, counts in columns:
        yield Of.SENSITIVE, attribute, column, counts


def _joint(rows: Int32Array) -> IntArray:
    """Return a number for each record's tuple, shape (n,)."""
    number, n_keys = np.zeros(len(rows), np.int64), 1
    for column in rows.T:
        width = int(column.max(initial=0)) + 1
        if n_keys > _MOST_KEYS // width:
            number, n_keys = np.unique(number, return_inverse=True)[1], len(rows)
        number, n_keys = number * width + column, n_keys * width
    return np.unique(number, return_inverse=True)[1]


def _counts(records: Records, schema: Schema) -> list[IntArray]:
    """Return how often each code of each sensitive attribute occurs."""
    columns = zip(records.sensitive.T, schema.sensitive, strict=True)
    return [np.bincount(column, minlength=a.size) for column, a in columns]
