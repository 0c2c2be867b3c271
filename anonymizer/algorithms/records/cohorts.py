"""Cohorts: vehicles whose classes hold the values of their first company in every window [1]_.

A person who is published in many windows is in many classes, and an adversary who finds the person
in each of them can intersect what they say about lasting attributes. Here the intersection is
fixed in advance. Whoever is published for the first time joins a cohort. Its *cover* is a set of
values in each lasting quasi-identifier: those of at least k persons when it was founded. Every
later class of a member is published with labels that hold the cover, whoever of the k is present:
all classes of a person, intersected, leave the cover, which has at least d values.

- The classes of a window are formed of whoever is present, of one cohort or of several. The label
  of a class holds the covers of all its members' cohorts.
- Newcomers found cohorts. Their cover has the values of at least k vehicles that are present,
  newcomers or not, and is a class of them all by itself; the others keep their own cohorts. Which
  labels earlier cohorts have plays no part in it: a newcomer that joined one, or did not, would say
  which values it has not.
- A cover that holds a value because of one newcomer alone would say whose it is, so other founders
  must be able to have the value. Where none is, more classes found the cohort, and if all
  together do not suffice the newcomer waits.
- Departures take nothing away from those who stay: the cover remains.

References
----------
.. [1] X. Xiao, Y. Tao, "m-invariance: towards privacy preserving re-publication of dynamic
   datasets", SIGMOD 2007. There the sensitive values of a group stay the same in every release;
   here the lasting quasi-identifiers do.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from anonymizer.algorithms.records.classes import SUPPRESSED, classes_of
from anonymizer.algorithms.records.criteria import class_loss
from anonymizer.algorithms.records.cumulative import NO_COMPANY, Lasting, Memory
from anonymizer.algorithms.records.problem import Cost, Problem, make_problem, with_criteria
from anonymizer.domain.arrays import BoolArray, FloatArray, Int32Array, IntArray
from anonymizer.domain.promises import Promise
from anonymizer.domain.records import Attribute, Records, Schema

WAITING = -1
"""Cohort of a record that belongs to none."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Cohorts:
    """The cohorts of the vehicles of a window.

    Attributes
    ----------
    of
        Cohort of each record, 0 and up without a gap, `WAITING` where it has none, shape (n,).
    cover
        The codes of the cover of each cohort in each lasting quasi-identifier, rising.
    company
        Number of each cohort over all windows; `NO_COMPANY`: it is founded in this window.
    withheld
        Which lasting quasi-identifiers of a record cannot be published yet: none of its cohort has
        been, and too few have a value. Shape (n, lasting quasi-identifiers).
    """

    of: Int32Array
    cover: tuple[tuple[Int32Array, ...], ...]
    company: IntArray
    withheld: BoolArray

    def shown(self, records: Records, schema: Schema, lasting: Lasting) -> Records:
        """Return the records, the values that are withheld missing."""
        qi = records.qi.copy()
        for a, j in enumerate(lasting.qis):
            qi[self.withheld[:, a], j] = schema.qis[j].missing
        return replace(records, qi=qi)


def assigned(
    memory: Memory,
    lasting: Lasting,
    records: Records,
    schema: Schema,
    found: Callable[[IntArray], Int32Array],
    *,
    promise: Promise,
    cost: Cost = Cost.RANGE,
) -> Cohorts:
    """Return the cohort of each record: its old one, or a new one.

    Parameters
    ----------
    memory
        The memory of the person of each record, in their order; the rows of the lasting
        quasi-identifiers are the cover.
    found
        Returns a class of every record: of each with newcomers, whose indices it gets, the values
        are the cover of a new cohort, or part of it.
    promise
        A cohort has at least k vehicles and d values in each column of its cover.

    Notes
    -----
    A value outside the cover has changed or was missing before: its vehicle is a newcomer. A
    missing value fits everywhere. A cohort without any value of a column, because a source was
    silent when it was founded, gets its cover when at least k members have d values; until then
    they are withheld. O(newcomers times cohorts times columns).
    """
    cells = lasting.cells(records)[:, : len(lasting.qis)].copy()
    withheld = np.zeros(cells.shape, bool)
    at = np.flatnonzero(memory.company != NO_COMPANY)
    company, dense = np.unique(memory.company[at], return_inverse=True)
    of = np.full(records.n, WAITING, np.int32)
    of[at] = dense
    attributes = [schema.qis[j] for j in lasting.qis]
    cover = []
    covers = _covers_of(memory, lasting, at, dense)
    for those, codes in zip(_members(of, len(company)), covers, strict=True):
        for a in np.flatnonzero([not len(of_column) for of_column in codes]).tolist():
            has = those[cells[those, a] != attributes[a].missing]
            found_now = np.unique(cells[has, a]).astype(np.int32)
            if len(has) >= promise.k and len(found_now) >= promise.d:
                codes[a] = found_now
            else:
                withheld[has, a] = True
                cells[has, a] = attributes[a].missing
        cover.append(tuple(codes))
    labels = Labels.of(attributes, cover, cost)
    if len(company):
        fits = labels.admits(cells[at], dense)
        of[at[~fits]] = WAITING
    new = np.flatnonzero(of == WAITING)
    class_of = found(new) if len(new) else np.full(records.n, SUPPRESSED, np.int32)
    members = _members(class_of, int(class_of.max(initial=SUPPRESSED)) + 1)
    classes = Labels.of(attributes, [_codes(attributes, cells[each]) for each in members], cost)
    before = of.copy()
    for c in np.setdiff1d(class_of[new], [SUPPRESSED]).tolist():
        for founders, joining in _founded(
            labels, classes, members, c, cells, before, cost=cost, d=promise.d
        ):
            of[joining] = len(cover)
            cover.append(_codes(attributes, cells[founders]))
    n_new = len(cover) - len(company)
    numbers = np.concatenate([company, np.full(n_new, NO_COMPANY, np.int64)])
    return Cohorts(of, tuple(cover), numbers, withheld)


def formed(
    cohorts: Cohorts,
    lasting: Lasting,
    records: Records,
    schema: Schema,
    heard: tuple[Records, Schema],
    form: Callable[[Records, Schema, Problem], Int32Array],
    *,
    promise: Promise,
    cost: Cost = Cost.RANGE,
) -> Int32Array:
    """Return classes of the records in cohorts, which keep the promise in this window.

    Parameters
    ----------
    records, schema
        As `assigned` takes them.
    heard, promise
        The same records with the attributes that are not silent in this window, and the promise
        about these.
    form
        Forms classes that lose little by a problem. Its quasi-identifiers are those of the records
        and the schema that `form` gets as well.

    Notes
    -----
    The class of a record is any superset of its cohort's label, so every choice here is safe over
    windows; it only costs information. What a class loses in a lasting attribute follows from the
    ends of its members' labels. A column of first ends and one of last ends stand for it. Where
    ranges are the cost each counts half: labels of equal width become wider together by the mean
    distance of their ends. The criteria are those of the values themselves.
    """
    at, class_of = np.flatnonzero(cohorts.of != WAITING), np.full(records.n, SUPPRESSED, np.int32)
    if len(at) < promise.k:
        return class_of
    present, all_heard = heard[0].only(at), heard[1]
    attributes = [schema.qis[j] for j in lasting.qis]
    changing = [c for c, qi in enumerate(all_heard.qis) if qi not in attributes]
    labels = Labels.of(attributes, cohorts.cover, cost)
    own, of = records.qi[at][:, list(lasting.qis)], cohorts.of[at]
    first, last = np.minimum(labels.lo[of], own), np.maximum(labels.hi[of], own)
    shown = replace(
        present,
        qi=np.ascontiguousarray(np.column_stack([first, last, present.qi[:, changing]])),
        sensitive=present.sensitive[:, :0],
    )
    columns = Schema((*attributes, *attributes, *(all_heard.qis[c] for c in changing)), (), ())
    lost = make_problem(shown, columns, Promise(k=promise.k, d=1), cost=cost)
    ends = lost.rule[: 2 * len(attributes)]
    ends["span"] *= np.where(ends["form"] == Cost.RANGE, 2, 1)
    criteria = make_problem(present, all_heard, promise, cost=cost)
    class_of[at] = form(shown, columns, with_criteria(lost, criteria))
    return class_of


def with_covers(
    records: Records, class_of: Int32Array, cohorts: Cohorts, lasting: Lasting
) -> tuple[Records, Int32Array]:
    """Return the records with rows for the covers of their classes, and the class of each row.

    The additional rows have, in the lasting quasi-identifiers, every code of the covers of the
    class's members, and in the others the codes of a member. Labels made of all rows are those to
    publish. The persons of the additional rows are those of members.
    """
    rows, of, like = [], [], []
    pairs = np.unique(
        np.column_stack([class_of, cohorts.of])[(class_of != SUPPRESSED) & (cohorts.of >= 0)],
        axis=0,
    )
    there, at = np.unique(class_of, return_index=True)
    first_of = dict(zip(there.tolist(), at.tolist(), strict=True))
    for c, cohort in pairs.tolist():
        cover = cohorts.cover[cohort]
        n = max((len(codes) for codes in cover), default=0)
        added = np.repeat(records.qi[first_of[c]][None, :], n, axis=0)
        for j, codes in zip(lasting.qis, cover, strict=True):
            if len(codes):
                added[:, j] = codes[np.arange(n) % len(codes)]
        rows.append(added)
        of.append(np.full(n, c, np.int32))
        like.append(np.full(n, first_of[c]))
    if not rows:
        return records, class_of
    source = np.concatenate(like)
    return Records(
        np.ascontiguousarray(np.concatenate([records.qi, *rows])),
        np.concatenate([records.sensitive, records.sensitive[source]]),
        np.concatenate([records.person, records.person[source]]),
    ), np.concatenate([class_of, *of])


def published_loss(problem: Problem, class_of: Int32Array, class_of_rows: Int32Array) -> float:
    """Return the information loss of the published records, 0 to 1.

    Parameters
    ----------
    problem
        Made of all rows of `with_covers`.
    class_of, class_of_rows
        Class of each record, and of each row.
    """
    sizes = np.bincount(class_of[class_of != SUPPRESSED])
    classes = classes_of(class_of_rows)
    total = sum(
        int(n) * class_loss(problem.arrays, problem.n_qis, classes[c]) for c, n in enumerate(sizes)
    )
    return float(total / max(int(sizes.sum()) * problem.n_qis, 1))


def remembered_covers(
    memory: Memory, lasting: Lasting, cohorts: Cohorts, published: BoolArray, *, first_company: int
) -> Memory:
    """Return the memory with the cover and the cohort of every published record.

    Parameters
    ----------
    memory
        As `advance` returns it: its rows of sensitive attributes are kept. One person a record.
    first_company
        A number above those of all earlier cohorts.
    """
    n, m = len(lasting), len(lasting.qis)
    member = np.flatnonzero(published & (cohorts.of != WAITING))
    cohort = cohorts.of[member].astype(np.int64)
    company = memory.company.copy()
    n_known = int((cohorts.company != NO_COMPANY).sum())
    known = cohorts.company[cohort]
    company[member] = np.where(known == NO_COMPANY, first_company + cohort - n_known, known)
    covers = [codes for cover in cohorts.cover for codes in cover]
    n_codes = np.array([len(codes) for codes in covers], np.int64)
    starts = len(memory.code) + np.cumsum(n_codes) - n_codes
    start = memory.first_of[:-1].reshape(-1, n).copy()
    size = np.diff(memory.first_of).reshape(-1, n)
    start[member, :m] = starts.reshape(-1, m)[cohort]
    size[member, :m] = n_codes.reshape(-1, m)[cohort]
    first_of = np.concatenate([np.zeros(1, np.int64), np.cumsum(size, dtype=np.int64)])
    pool = np.concatenate([memory.code, *covers])
    return Memory(first_of, pool[_spread(start.ravel(), size.ravel())], company)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Labels:
    """What the labels of cohorts hold in the lasting quasi-identifiers.

    Attributes
    ----------
    attributes, forms
        The attributes, and how the loss of each is measured.
    lo, hi
        First and last code of each label, shape (cohorts, columns); of an empty one the last is
        below the first.
    held
        For each column that is published as a set, which codes are in it, shape (cohorts, size).
    """

    attributes: Sequence[Attribute]
    forms: Sequence[Cost]
    lo: Int32Array
    hi: Int32Array
    held: tuple[BoolArray | None, ...]

    @classmethod
    def of(
        cls, attributes: Sequence[Attribute], cover: Sequence[Sequence[Int32Array]], cost: Cost
    ) -> "Labels":
        """Return the labels of covers."""
        shape = (len(cover), len(attributes))
        lo, hi = np.full(shape, 2**30, np.int32), np.full(shape, -1, np.int32)
        forms, held = [], []
        for a, attribute in enumerate(attributes):
            by_node = cost is Cost.TAXONOMY and attribute.hierarchy is not None
            is_set = not attribute.numeric and not by_node
            mask = np.zeros((len(cover), attribute.size), bool) if is_set else None
            forms.append(
                Cost.TAXONOMY if by_node else cost if is_set and cost is Cost.SET else Cost.RANGE
            )
            for c, codes in enumerate(cover):
                if len(codes[a]):
                    lo[c, a], hi[c, a] = _ends(attribute, codes[a], by_node=by_node)
                    if mask is not None:
                        mask[c, codes[a]] = True
            held.append(mask)
        return cls(attributes, forms, lo, hi, tuple(held))

    def admits(self, cells: Int32Array, of: IntArray) -> BoolArray:
        """Return whether label `of[i]` holds the values `cells[i]`; missing ones fit always."""
        fits = np.ones(len(cells), bool)
        for a in range(len(self.attributes)):
            fits &= self.holds(a, cells[:, a], of)
        return fits

    def holds(self, a: int, code: Int32Array, of: IntArray) -> BoolArray:
        """Return whether label `of[i]` holds the value `code[i]` of column a, or it is missing."""
        inside = (self.lo[of, a] <= code) & (code <= self.hi[of, a])
        mask = self.held[a]
        if mask is not None:
            inside &= mask[of, code]
        held: BoolArray = inside | (code == self.attributes[a].missing)
        return held

    def nearest(self, c: int) -> IntArray:
        """Return all labels, first c, then by what a label loses that holds c as well."""
        lo, hi = np.minimum(self.lo, self.lo[c]), np.maximum(self.hi, self.hi[c])
        held = tuple(None if mask is None else mask | mask[c] for mask in self.held)
        loss = replace(self, lo=lo, hi=hi, held=held).loss()
        loss[c] = -1.0
        return np.argsort(loss, kind="stable")

    def loss(self) -> FloatArray:
        """Return the loss of each label, summed over the columns, shape (cohorts,)."""
        lo, hi, held = self.lo, self.hi, self.held
        total = np.zeros(len(lo))
        for a, (attribute, form) in enumerate(zip(self.attributes, self.forms, strict=True)):
            some, first, last = hi[:, a] > lo[:, a], lo[:, a], np.maximum(hi[:, a], 0)
            first = np.minimum(first, last)
            mask, tree = held[a], attribute.hierarchy
            if form is Cost.SET and mask is not None:
                loss = (mask.sum(axis=1) - 1) / max(attribute.size - 1, 1)
            elif form is Cost.TAXONOMY and tree is not None:
                level = np.argmax(tree.ancestor[first] == tree.ancestor[last], axis=1)
                loss = tree.n_leaves[tree.ancestor[first, level]] / attribute.size
            else:
                position = attribute.position
                loss = (position[last] - position[first]) / (attribute.span or 1.0)
            total += np.where(some, loss, 0.0)
        return total


def lasting_only(schema: Schema, columns: Sequence[int]) -> Schema:
    """Return the schema of some quasi-identifiers alone, in their order."""
    place = {j: at for at, j in enumerate(columns)}
    sources = (tuple(place[j] for j in source if j in place) for source in schema.sources)
    return Schema(
        tuple(schema.qis[j] for j in columns), (), tuple(source for source in sources if source)
    )


def founding_promise(promise: Promise, schema: Schema) -> Promise:
    """Return the part of a promise that a new cohort keeps: what concerns the lasting columns."""
    names = {qi.name for qi in schema.qis}
    spread = {name: least for name, least in promise.min_spread.items() if name in names}
    return replace(promise, l=1, entropy_l=1.0, t=np.inf, min_spread=spread)


def _founded(
    labels: Labels,
    classes: Labels,
    members: Sequence[IntArray],
    c: int,
    cells: Int32Array,
    of: Int32Array,
    *,
    cost: Cost,
    d: int,
) -> Iterator[tuple[IntArray, IntArray]]:
    """Yield the founders of each cohort for the newcomers of class c, and those whom it takes."""
    waiting = members[c][of[members[c]] == WAITING]
    for founders in _growing(classes, members, c):
        new = np.isin(founders, waiting)
        hidden = _hidden(labels, cells[founders], of[founders], new, cost=cost, d=d)
        if not hidden[new].all():
            nobody = np.zeros_like(new)
            hidden = _hidden(labels, cells[founders], of[founders], nobody, cost=cost, d=d)
        if hidden[new].any():
            yield founders, founders[new & hidden]
        waiting = founders[new & ~hidden]
        if not len(waiting):
            return


def _growing(classes: Labels, members: Sequence[IntArray], c: int) -> Iterator[IntArray]:
    """Yield the members of class c, then those of the 2, 4, ... nearest classes and of all."""
    yield members[c]
    if len(members) > 1:
        near, n = classes.nearest(c), 1
        while n < len(near):
            n *= 2
            yield np.concatenate([members[each] for each in near[:n].tolist()])


def _hidden(
    labels: Labels,
    cells: Int32Array,
    of: Int32Array,
    same_cover: BoolArray,
    *,
    cost: Cost,
    d: int,
) -> BoolArray:
    """Return which newcomers can have the values of all founders as their cover, shape (n,).

    Parameters
    ----------
    labels
        Those of the earlier cohorts.
    cells, of
        The lasting values of the founders, and their cohorts; `WAITING`: a newcomer.
    same_cover
        The newcomers that get this cover for certain.

    Notes
    -----
    If the label of the cover holds a value because of one newcomer alone, and no other vehicle can
    have it, then an adversary who knows who is present reads it. So founders with d - 1 other
    values must be able to have it: those whose labels hold it, or that get the same cover.
    """
    hidden, old = np.ones(len(of), bool), np.flatnonzero(of != WAITING)
    for a, attribute in enumerate(labels.attributes):
        codes = cells[:, a]
        real, n = np.unique(codes[codes != attribute.missing], return_counts=True)
        if same_cover.all():
            hidden &= (len(real) >= d) | (codes == attribute.missing)
            continue
        for code in np.intersect1d(real[n == 1], codes[of == WAITING]):
            label = Labels.of([attribute], [[real[real != code]]], cost)
            if not label.holds(0, np.array([code]), np.zeros(1, np.int64))[0]:
                can = same_cover.copy()
                can[old] = labels.holds(a, np.full(len(old), code), of[old].astype(np.int64))
                others = np.setdiff1d(codes[can], [code, attribute.missing])
                hidden[codes == code] &= len(others) >= d - 1
    return hidden


def _covers_of(
    memory: Memory, lasting: Lasting, persons: IntArray, cohort: IntArray
) -> list[list[Int32Array]]:
    """Return the codes of each cohort's cover in each lasting quasi-identifier, rising.

    `cohort` is that of each of the `persons`, 0 and up without a gap.
    """
    n, m = len(lasting), len(lasting.qis)
    row = (persons[:, None] * n + np.arange(m)).ravel()
    size = np.diff(memory.first_of)[row]
    code = memory.code[_spread(memory.first_of[row], size)]
    of = np.repeat((cohort[:, None] * m + np.arange(m)).ravel(), size)
    width = int(code.max(initial=0)) + 1
    there = np.unique(of * width + code)
    n_cohorts = int(cohort.max(initial=-1)) + 1
    first = np.searchsorted(there, np.arange(n_cohorts * m + 1) * width).tolist()
    codes = (there % width).astype(np.int32)
    return [
        [codes[first[i] : first[i + 1]] for i in range(c * m, (c + 1) * m)]
        for c in range(n_cohorts)
    ]


def _spread(start: IntArray, size: IntArray) -> IntArray:
    """Return the indices `start[i]`, `start[i] + 1`, ... of each row, one row after the other."""
    before = np.cumsum(size) - size
    indices: IntArray = np.arange(size.sum()) + np.repeat(start - before, size)
    return indices


def _members(of: Int32Array, n: int) -> list[IntArray]:
    """Return the records of each cohort, rising."""
    order = np.argsort(of, kind="stable")
    first = np.searchsorted(of[order], np.arange(n + 1))
    return [order[first[c] : first[c + 1]] for c in range(n)]


def _codes(attributes: Sequence[Attribute], cells: Int32Array) -> tuple[Int32Array, ...]:
    """Return the values in each column, rising."""
    columns = zip(attributes, cells.T, strict=True)
    return tuple(_real(attribute, np.unique(column)) for attribute, column in columns)


def _real(attribute: Attribute, codes: Int32Array) -> Int32Array:
    real: Int32Array = codes[codes != attribute.missing].astype(np.int32)
    return real


def _ends(attribute: Attribute, codes: Int32Array, *, by_node: bool) -> tuple[int, int]:
    """Return the first and the last code that the label of some codes holds."""
    tree = attribute.hierarchy
    lo, hi = int(codes[0]), int(codes[-1])
    if not by_node or tree is None:
        return lo, hi
    level = int(np.argmax(tree.ancestor[lo] == tree.ancestor[hi]))
    below = np.flatnonzero((tree.ancestor == tree.ancestor[lo, level]).any(axis=1))
    real = below[below != attribute.missing]
    return int(real[0]), int(real[-1])
