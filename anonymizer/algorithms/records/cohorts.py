"""Cohorts: vehicles whose classes hold the values of their first company in every window [1]_.

A person who is published in many windows is in many classes, and an adversary who finds the person
in each of them can intersect what they say about lasting attributes. Here the intersection is
fixed in advance. Whoever is published for the first time joins a cohort. Its *cover* is a set of
values in each lasting quasi-identifier: those of at least k persons when it was founded. Every
later class of a member is published with labels that hold the cover, whoever of the k is present:
all classes of a person, intersected, leave the cover, which has at least d values.

- The classes of a window are formed of whoever is present, of one cohort or of several. The label
  of a class holds the covers of all its members' cohorts.
- Newcomers found cohorts, see `founding`. The others keep their own. Which labels earlier cohorts
  have plays no part in it: a newcomer that joined one, or did not, would say which values it has
  not.
- A vehicle whose value in one column is not in its label gets a new cover in this column alone. Its
  other columns keep theirs, so that what their classes have in common is not less than before.
- Departures take nothing away from those who stay: the cover remains.

An example with k = 2 and one lasting attribute. In the second window B and C are away::

    window   class     label                       covers in it
    1        A, B      {car, van}                  {car, van}
    1        C, D      {truck, bus}                {truck, bus}
    2        A, D      {car, van, truck, bus}      {car, van}, {truck, bus}

Both classes of A have {car, van} in common, both of D {truck, bus}. Had the second label held what
A and D have alone, {car, bus}, the intersection for A would have been *car*.

References
----------
.. [1] X. Xiao, Y. Tao, "m-invariance: towards privacy preserving re-publication of dynamic
   datasets", SIGMOD 2007. There the sensitive values of a group stay the same in every release;
   here the lasting quasi-identifiers do.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from anonymizer.algorithms.records.classes import SUPPRESSED, classes_of
from anonymizer.algorithms.records.cohort_labels import Labels
from anonymizer.algorithms.records.criteria import class_loss
from anonymizer.algorithms.records.cumulative import NO_COMPANY, LastingColumns, Memory
from anonymizer.algorithms.records.founding import WAITING, Founding, lasting_only
from anonymizer.algorithms.records.problem import Cost, Problem, make_problem, with_criteria
from anonymizer.domain.arrays import BoolArray, Int32Array, IntArray
from anonymizer.domain.promises import Promise
from anonymizer.domain.records import Records, Schema


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Cohorts:
    """The cohorts of the vehicles of a window."""

    of: Int32Array
    """Cohort of each record, 0 and up without a gap, `WAITING` where it has none, shape (n,)."""
    cover: tuple[tuple[Int32Array, ...], ...]
    """The codes of the cover of each cohort in each lasting quasi-identifier, rising."""
    company: IntArray
    """Number of each cohort over all windows; `NO_COMPANY`: it is founded in this window."""
    withheld: BoolArray
    """Which lasting quasi-identifiers of a record cannot be published yet, since the label of its
    cohort does not hold the value. Shape (n, lasting quasi-identifiers)."""

    @property
    def is_new(self) -> BoolArray:
        """Which records are in a cohort that is founded in this window, shape (n,)."""
        new: BoolArray = np.append(self.company == NO_COMPANY, False)[self.of]
        return new

    def shown(self, records: Records, schema: Schema, lasting: LastingColumns) -> Records:
        """Return the records, the values that are withheld missing."""
        qi = records.qi.copy()
        for a, j in enumerate(lasting.qis):
            qi[self.withheld[:, a], j] = schema.qis[j].missing
        return replace(records, qi=qi)


def assigned(
    memory: Memory,
    lasting: LastingColumns,
    records: Records,
    schema: Schema,
    found: Callable[[], Int32Array],
    *,
    promise: Promise,
    cost: Cost = Cost.RANGE,
) -> Cohorts:
    """Return the cohort of each record: its old one, or a new one.

    `memory`: of the person of each record; the rows of the lasting quasi-identifiers are the cover.
    `found` returns a class of every record: of each with newcomers the values are the cover of a
    new cohort, or part of it.

    Notes
    -----
    A vehicle whose value is not in its label has changed it, or never had a cover there: it moves
    to a new cohort that differs in this column alone. Where none can be founded its value is
    withheld. A missing value fits everywhere. O(newcomers times cohorts times columns).
    """
    cells = lasting.cells(records)[:, : len(lasting.qis)]
    at = np.flatnonzero(memory.company != NO_COMPANY)
    company, dense = np.unique(memory.company[at], return_inverse=True)
    of = np.full(records.n, WAITING, np.int32)
    of[at] = dense
    cover = _covers_of(memory, lasting, at, dense)
    attributes = [schema.qis[j] for j in lasting.qis]
    founding = Founding(
        lasting_only(schema, lasting.qis),
        promise,
        cost,
        Labels.of(attributes, cover, cost),
        cells,
        of.copy(),
    )
    if (of == WAITING).any():
        for joining, codes in founding.of_newcomers(found()):
            of[joining] = len(cover)
            cover.append(codes)
    withheld = founding.outside()
    for a in np.flatnonzero(withheld.any(axis=0)).tolist():
        for joining, of_column in founding.of_column(a, np.flatnonzero(withheld[:, a])):
            for cohort in np.unique(of[joining]).tolist():
                of[joining[of[joining] == cohort]] = len(cover)
                cover.append((*cover[cohort][:a], of_column, *cover[cohort][a + 1 :]))
            withheld[joining, a] = False
    n_new = len(cover) - len(company)
    numbers = np.concatenate([company, np.full(n_new, NO_COMPANY, np.int64)])
    return Cohorts(of, tuple(cover), numbers, withheld)


def formed(
    cohorts: Cohorts,
    lasting: LastingColumns,
    records: Records,
    schema: Schema,
    heard: tuple[Records, Schema],
    form: Callable[[Records, IntArray, Schema, Problem], Int32Array],
    *,
    promise: Promise,
    cost: Cost = Cost.RANGE,
) -> Int32Array:
    """Return classes of the records in cohorts, which keep the promise in this window.

    `heard`, `promise`: the same records with the attributes that are not silent in this window, and
    the promise about these. `form` forms classes that lose little by a problem, whose
    quasi-identifiers are those of the records and the schema that it gets as well, with the indices
    of these records.

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
    )
    qis = (*attributes, *attributes, *(all_heard.qis[c] for c in changing))
    columns = Schema(qis, all_heard.sensitive, ())
    lost = make_problem(shown, columns, Promise(k=promise.k, d=1), cost=cost)
    ends = lost.rule[: 2 * len(attributes)]
    ends["weight"] /= np.where(ends["form"] == Cost.RANGE, 2, 1)
    criteria = make_problem(present, all_heard, promise, cost=cost)
    class_of[at] = form(shown, at, columns, with_criteria(lost, criteria))
    return class_of


def with_covers(
    records: Records, class_of: Int32Array, cohorts: Cohorts, lasting: LastingColumns
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

    `problem` is made of all rows of `with_covers`; `class_of`, `class_of_rows`: of each record, and
    of each row.
    """
    sizes = np.bincount(class_of[class_of != SUPPRESSED])
    classes = classes_of(class_of_rows)
    total = sum(
        int(n) * class_loss(problem.arrays, problem.n_qis, classes[c]) for c, n in enumerate(sizes)
    )
    return float(total / max(int(sizes.sum()) * problem.n_qis, 1))


def remembered_covers(
    memory: Memory, lasting: LastingColumns, cohorts: Cohorts, *, first_company: int
) -> Memory:
    """Return the memory with the cover and the cohort of every record that has one.

    `memory`: as `advance` returns it, one person a record; its rows of sensitive attributes are
    kept. `first_company`: a number above those of all earlier cohorts.

    Notes
    -----
    A record that is not published keeps its new cover too: those who founded the cohort with it
    are hidden because it can have their values.
    """
    n, m = len(lasting), len(lasting.qis)
    member = np.flatnonzero(cohorts.of != WAITING)
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


def _covers_of(
    memory: Memory, lasting: LastingColumns, persons: IntArray, cohort: IntArray
) -> list[tuple[Int32Array, ...]]:
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
        tuple(codes[first[i] : first[i + 1]] for i in range(c * m, (c + 1) * m))
        for c in range(n_cohorts)
    ]


def _spread(start: IntArray, size: IntArray) -> IntArray:
    """Return the indices `start[i]`, `start[i] + 1`, ... of each row, one row after the other."""
    before = np.cumsum(size) - size
    indices: IntArray = np.arange(size.sum()) + np.repeat(start - before, size)
    return indices
