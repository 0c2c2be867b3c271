"""Founding: the cover that a vehicle is given when it is published for the first time.

A newcomer gets a cover in every lasting quasi-identifier that it has a value of. A vehicle that
has a cohort gets one in a single column if its value there is not in its label: it never had one,
because a source was silent, or the value has changed. Its other columns keep their cover, since
what its classes had in common would not be left by another one.

- The cover of a newcomer has the values of a class of all who are present, newcomers or not. The
  cover of a single column has those of a class formed by this column alone, so it reveals nothing
  about the other columns.
- A cover that shows that somebody has a value may say who it is. So a vehicle gives its value only
  if d values remain possible for it, to an adversary who knows who may be a founder, what their
  labels hold, and that each value that shows is one of theirs. That holds for newcomers and for
  those who stay. Others are left out. A newcomer that is left out asks the founders of more
  classes that are near, and if they do not suffice it waits; a column waits by itself.
- Who knows that a label no longer holds the old cover knows that the value is outside. So the new
  cover of a changed value has d values that the old label does not hold, and its vehicle does not
  count as one that can have a value of the old label.

An example with k = 2 and d = 2, where E is new and the three are one class of all present::

    vehicle   value   label of its cohort   can have given
    A         car     {car, van}            car, van
    D         bus     {truck, bus}          bus
    E         van     none yet              car, van, bus

Were the cover of E all three values, somebody would have given each of them. Nobody gave *truck*,
so D could only have given *bus*: D would be read, although D has had its cover for long. So D does
not give its value. A and E remain, and E gets {car, van}: each of the two may be the car.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from anonymizer.algorithms.records.classes import SUPPRESSED
from anonymizer.algorithms.records.cohort_labels import Labels, values_in
from anonymizer.algorithms.records.criteria import class_keeps
from anonymizer.algorithms.records.hilbert import hilbert_order
from anonymizer.algorithms.records.problem import Cost, Problem, make_problem
from anonymizer.algorithms.records.sweep import sweep
from anonymizer.domain.arrays import BoolArray, Int32Array, IntArray
from anonymizer.domain.partial_promises import promise_about
from anonymizer.domain.promises import Promise
from anonymizer.domain.records import Records, Schema

WAITING = -1
"""Cohort of a record that belongs to none."""
_MOST_FOUNDERS = 512
"""Vehicles whose values are looked at together; or four times k, if that is more. In a large fleet,
whose value is exposed among so many that are near waits."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Founding:
    """Everybody who is present in a window, and the earlier cohorts."""

    schema: Schema
    """The lasting quasi-identifiers alone."""
    promise: Promise
    """A cover has the values of at least k vehicles and, in each column, at least d."""
    cost: Cost
    """How loss is measured."""
    labels: Labels
    """Those of the earlier cohorts."""
    cells: Int32Array
    """The lasting values of each record, shape (n, columns)."""
    of: Int32Array
    """Earlier cohort of each record; `WAITING`: none. Shape (n,)."""

    def outside(self) -> BoolArray:
        """Return which values the labels of their cohorts do not hold, shape (n, columns)."""
        outside = np.zeros(self.cells.shape, bool)
        at = np.flatnonzero(self.of != WAITING)
        if len(at):
            for a in range(len(self.schema.qis)):
                outside[at, a] = ~self.labels.holds(a, self.cells[at, a], self.of[at])
        return outside

    def of_newcomers(
        self, class_of: Int32Array
    ) -> Iterator[tuple[IntArray, tuple[Int32Array, ...]]]:
        """Yield newcomers and the cover that they get, formed by a class of every record.

        A column is empty for those without a value there: they get a cover when they have one.
        """
        new = self.of == WAITING
        every = range(len(self.schema.qis))
        missing = np.array([qi.missing for qi in self.schema.qis], np.int32)
        for founders, joining in self.founded(class_of, new, every):
            values = values_in(self.schema.qis, self.cells[founders])
            gaps = self.cells[joining] == missing
            for gap in np.unique(gaps, axis=0):
                codes = zip(values, gap.tolist(), strict=True)
                cover = tuple(of[:0] if is_gap else of for of, is_gap in codes)
                yield joining[(gaps == gap).all(axis=1)], cover

    def of_column(self, a: int, those: IntArray) -> Iterator[tuple[IntArray, Int32Array]]:
        """Yield some of those vehicles and the cover that they get in column a alone."""
        has = np.flatnonzero(self.cells[:, a] != self.schema.qis[a].missing)
        if len(has) < self.promise.k:
            return
        alone = lasting_only(self.schema, [a])
        codes = np.ascontiguousarray(self.cells[has, a][:, None])
        person = np.arange(len(has), dtype=np.int32)
        some = Records(codes, np.zeros((len(has), 0), np.int32), person)
        promise = founding_promise(self.promise, alone)
        class_of = np.full(len(self.of), SUPPRESSED, np.int32)
        problem = make_problem(some, alone, promise, cost=self.cost)
        class_of[has] = sweep(problem, hilbert_order(codes, [alone.qis[0].size]))
        joining = np.zeros(len(self.of), bool)
        joining[those] = True
        for founders, joined in self.founded(class_of, joining, [a]):
            yield joined, values_in(alone.qis, self.cells[founders, a][:, None])[0]

    def founded(
        self, class_of: Int32Array, joining: BoolArray, columns: Sequence[int]
    ) -> Iterator[tuple[IntArray, IntArray]]:
        """Yield founders, and those of `joining` that get their values as a cover."""
        members = members_of(class_of, int(class_of.max(initial=SUPPRESSED)) + 1)
        attributes = [self.schema.qis[a] for a in columns]
        values = [values_in(attributes, self.cells[each][:, columns]) for each in members]
        classes = Labels.of(attributes, values, self.cost)
        outside, criteria = self.outside(), self._criteria(columns)
        for c in np.setdiff1d(class_of[joining], [SUPPRESSED]).tolist():
            waiting = members[c][joining[members[c]]]
            for group in self._growing(classes, members, c):
                founders = self._hidden_founders(group, columns, outside, waiting, criteria)
                joined = np.intersect1d(founders, waiting)
                if len(joined):
                    yield founders, joined
                waiting = np.setdiff1d(waiting, joined)
                if not len(waiting):
                    break

    def _growing(self, classes: Labels, members: Sequence[IntArray], c: int) -> Iterator[IntArray]:
        """Yield the members of class c, then those of it and the 1, 3, 7, ... nearest classes."""
        yield members[c]
        near, n = classes.nearest(c), 1
        while n < len(near):
            n *= 2
            group = np.concatenate([members[each] for each in near[:n].tolist()])
            if len(group) > max(_MOST_FOUNDERS, 4 * self.promise.k):
                return
            yield group

    def _criteria(self, columns: Sequence[int]) -> Problem:
        """Return the promise that founders must keep in the columns with any known values."""
        missing = np.array([qi.missing for qi in self.schema.qis], np.int32)
        known = [a for a in columns if (self.cells[:, a] != missing[a]).any()]
        schema, n = lasting_only(self.schema, known), len(self.cells)
        cells = np.ascontiguousarray(self.cells[:, known])
        records = Records(cells, np.zeros((n, 0), np.int32), np.arange(n, dtype=np.int32))
        return make_problem(records, schema, founding_promise(self.promise, schema), cost=self.cost)

    def _hidden_founders(
        self,
        group: IntArray,
        columns: Sequence[int],
        outside: BoolArray,
        waiting: IntArray,
        criteria: Problem,
    ) -> IntArray:
        """Return those of a group whose values can be a cover; none if they break the promise.

        Whoever would be read by it is left out, again and again, since that may expose others.
        """
        founders = group
        while class_keeps(criteria.arrays, criteria.k, founders):
            new = np.isin(founders, waiting)
            hidden = np.ones(len(founders), bool)
            for a in columns:
                hidden &= self._hidden(a, founders, outside[founders, a], new)
            if hidden.all() or not new.any():
                return founders
            founders = founders[hidden]
        return founders[:0]

    def _hidden(self, a: int, founders: IntArray, outside: BoolArray, new: BoolArray) -> BoolArray:
        """Return the founders of whom nothing is read in column a if all their values form a cover.

        `outside`: whether the old labels of the founders do not hold their values; `new`: the
        founders that get the cover; shape (n,) each.

        Notes
        -----
        The adversary knows who may be a founder, all covers and the rules they meet. It knows of a
        value at an end of the label, of each in a set, and of all where they are no more than d,
        that a founder has it. Founders *can* have the values that their labels hold, or the new
        label if they get it, but not those of an old label that they have left. So a founder has
        another value only if somebody else can take over its own, whose value is taken over in
        turn, and so on until the first has one of these, or until a value is left that d founders
        have, or that does not show. At least d values must be possible. And those who have a value
        that shows, and the other values of those who can have it, must be d together.
        O(founders times values, plus the cube of those values that show and from which no such
        chain leads to one that does not).

        Who stays may be no founder at all, with a value outside of the new label: this counts.
        """
        attribute, d, of = self.schema.qis[a], self.promise.d, self.of[founders]
        hidden = np.ones(len(founders), bool)
        has = np.flatnonzero(self.cells[founders, a] != attribute.missing)
        real, own, n = np.unique(
            self.cells[founders[has], a], return_inverse=True, return_counts=True
        )
        is_known, gets, left = of[has] != WAITING, new[has], outside[has]
        is_own = own[:, None] == np.arange(len(real))
        in_label = np.zeros((len(has), len(real)), bool)
        in_label[is_known] = self.labels.holds(a, real[None, :], of[has[is_known]][:, None])
        can = np.where(
            (gets | (is_known & ~left))[:, None],
            ~is_known[:, None] | (in_label != left[:, None]),
            is_own,
        )
        few = np.flatnonzero(n < d)
        rest = Labels.of([attribute], [[np.delete(real, c)] for c in few.tolist()], self.cost)
        shows = few[(len(real) <= d) | ~rest.holds(0, real[few], np.arange(len(few)))]
        # Which values those have who can take over a value; everybody can have its own.
        first = np.cumsum(n) - n
        follows = np.logical_or.reduceat(can[np.argsort(own, kind="stable")], first, axis=0).T
        is_open = follows.sum(axis=1) + n > d
        is_free = np.ones(len(real), bool)
        is_free[shows] = False
        is_open |= is_free
        while (more := follows[:, is_free].any(axis=1) > is_free).any():
            is_free |= more
        held = np.flatnonzero(~is_free)
        chains = follows[np.ix_(held, held)]
        for _ in range(len(held).bit_length()):
            chains = chains.astype(np.float32) @ chains.astype(np.float32) > 0
        reached = np.broadcast_to(is_free[:, None], follows.shape).copy()
        reached[np.ix_(held, held)] = chains
        possible = can & reached[own]
        has_enough = (possible.sum(axis=1) >= d) | (is_free[own] & ~gets)
        hidden[has] = has_enough & is_open[own]
        return hidden


def lasting_only(schema: Schema, columns: Sequence[int]) -> Schema:
    """Return the schema of some quasi-identifiers alone, in their order."""
    place = {j: at for at, j in enumerate(columns)}
    sources = (tuple(place[j] for j in source if j in place) for source in schema.sources)
    return Schema(
        tuple(schema.qis[j] for j in columns), (), tuple(source for source in sources if source)
    )


def founding_promise(promise: Promise, schema: Schema) -> Promise:
    """Return the part of a promise that a new cohort keeps: what concerns the lasting columns."""
    return promise_about(promise, {qi.name for qi in schema.qis}, sensitive=False)


def members_of(of: Int32Array, n: int) -> list[IntArray]:
    """Return the records of each class or cohort, rising."""
    order = np.argsort(of, kind="stable")
    first = np.searchsorted(of[order], np.arange(n + 1))
    return [order[first[c] : first[c + 1]] for c in range(n)]
