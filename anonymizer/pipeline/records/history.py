"""History of a stream: classes that stay safe together with those of earlier windows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from anonymizer.algorithms.records.classes import SUPPRESSED
from anonymizer.algorithms.records.cohorts import (
    Cohorts,
    assigned,
    formed,
    published_loss,
    remembered_covers,
    with_covers,
)
from anonymizer.algorithms.records.cumulative import (
    LastingColumns,
    Memory,
    advance,
    lasting_columns,
    pack,
    sensitive_part,
    short,
    unpack,
)
from anonymizer.algorithms.records.cumulative_enforcement import enforce, keep_company
from anonymizer.algorithms.records.founding import WAITING, founding_promise, lasting_only
from anonymizer.algorithms.records.problem import make_problem
from anonymizer.domain.arrays import BoolArray, Int32Array, IntArray
from anonymizer.domain.promises import Promise
from anonymizer.domain.records import Records
from anonymizer.pipeline.records.declaration import Stream
from anonymizer.pipeline.records.silence import Heard
from anonymizer.pipeline.records.window_model import Asked, cost_of, label_cost_of

_LEFT_BY_FOUNDING = 0.5
"""Share of the time for classes that is left when cohorts have been founded."""
_MOST_COHORTS = 2**20
"""Most cohorts founded in one window."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Kept:
    """Classes of a window that stay safe together with those of earlier windows.

    `class_of`: class of each record, or `SUPPRESSED`; `records`: without values that cannot be
    published yet; `left_out`: those suppressed for the sake of earlier or later windows; `cohorts`:
    of the vehicles, if any; `too_frequent`: those left out so that bounds on shares can be kept.
    """

    class_of: Int32Array
    records: Records
    left_out: BoolArray
    cohorts: Cohorts | None = None
    too_frequent: BoolArray | None = None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Remembered:
    """The memory of the vehicles of a window."""

    stream: Stream
    memory: Memory

    @property
    def lasting(self) -> LastingColumns:
        """The columns that last."""
        return _lasting(self.stream)

    def in_cohorts(
        self,
        records: Records,
        heard: Heard,
        found: Callable[[Records, IntArray, Asked, float], Int32Array],
    ) -> Kept:
        """Return classes of whole cohorts as far as possible; see `cohorts`.

        `found` forms classes of some records with other attributes, given their indices too, and
        leaves a share of the time that there is.
        """
        stream, lasting = self.stream, self.lasting
        schema, promise, cost = stream.schema, stream.promise, label_cost_of(stream)
        columns = [j for j in lasting.qis if j in heard.qis]
        learns = stream.settings.learned is not None
        founding = lasting_only(schema, columns)
        founded_with = founding_promise(promise, founding)

        def of_all() -> Int32Array:
            if records.n < promise.k or not columns:
                return np.full(records.n, SUPPRESSED, np.int32)
            qi = np.ascontiguousarray(records.qi[:, columns])
            some = replace(records, qi=qi, sensitive=records.sensitive[:, :0])
            return found(
                some,
                np.arange(records.n),
                Asked(founding, founded_with, by_loss=True),
                _LEFT_BY_FOUNDING,
            )

        cohorts = assigned(
            self.memory, lasting, records, schema, of_all, promise=promise, cost=cost
        )
        records = cohorts.shown(records, schema, lasting)
        class_of = formed(
            cohorts,
            lasting,
            records,
            schema,
            (heard.only(records), heard.schema),
            lambda some, at, columns, problem: found(
                some, at, Asked(columns, heard.promise, problem, by_loss=not learns), 0.0
            ),
            promise=heard.promise,
            cost=cost,
        )
        if lasting.sensitive:
            memory, only = sensitive_part(self.memory, lasting, heard.sensitive)
            criteria = heard.schema, heard.promise
            some = heard.only(records)
            class_of = enforce(memory, only, some, *criteria, class_of, cost=cost).class_of
        waiting = (cohorts.of == WAITING) & (records.n >= promise.k)
        return Kept(class_of, records, waiting, cohorts)

    def loss(self, records: Records, class_of: Int32Array, cohorts: Cohorts) -> float:
        """Return the information loss of what is published, 0 to 1."""
        rows, of_rows = with_covers(records, class_of, cohorts, self.lasting)
        only_loss, cost = Promise(k=self.stream.promise.k), cost_of(self.stream)
        problem = make_problem(rows, self.stream.schema, only_loss, cost=cost)
        return published_loss(problem, class_of, of_rows)

    def classes(self, records: Records, form: Callable[[Records, IntArray], Int32Array]) -> Kept:
        """Return classes that leave every vehicle enough values, and the records suppressed for it.

        `form` forms the classes of some of the records; it also gets their indices.

        Notes
        -----
        Vehicles that shared a class stay together where possible; the others are partitioned
        anew, and a vehicle without a class moves to the class whose loss grows least by it.
        """
        stream, lasting = self.stream, _lasting(self.stream)
        criteria = stream.schema, stream.promise
        class_of = keep_company(self.memory, lasting, records, *criteria)
        rest = np.flatnonzero(class_of == SUPPRESSED)
        if len(rest) >= stream.promise.k:
            fresh = form(_numbered(records, rest), rest)
            first = int(class_of.max(initial=-1)) + 1
            class_of[rest] = np.where(fresh == SUPPRESSED, fresh, fresh + first)
        unassigned = class_of == SUPPRESSED
        if records.n < stream.promise.k:
            return Kept(
                np.full(records.n, SUPPRESSED, np.int32), records, np.zeros(records.n, bool)
            )
        # They form one class: if it breaks the promise, enforcement moves its members to others.
        class_of[unassigned] = int(class_of.max(initial=-1)) + 1
        cost = cost_of(stream)
        enforced = enforce(self.memory, lasting, records, *criteria, class_of, cost=cost).class_of
        return Kept(enforced, records, (enforced == SUPPRESSED) & ~unassigned)

    def after(
        self,
        records: Records,
        class_of: Int32Array,
        cohorts: Cohorts | None,
        *,
        first_company: int,
    ) -> tuple[list[bytes | None], int]:
        """Return the memory of each vehicle after this window, and how many are below the floor.

        None where nothing is to be remembered: the vehicle is not published. If others are, a cover
        that it got in this window is remembered nevertheless.
        """
        lasting = _lasting(self.stream)
        memory = advance(self.memory, lasting, records, class_of, first_company=first_company)
        if cohorts is not None:
            memory = remembered_covers(
                memory, lasting, cohorts, first_company=first_company * _MOST_COHORTS
            )
        published = class_of != SUPPRESSED
        n_short = int((short(memory, lasting) & published).sum())
        kept = published.copy()
        if cohorts is not None and published.any():
            kept |= cohorts.is_new
        each = zip(pack(memory, lasting), kept.tolist(), strict=True)
        return [blob if is_kept else None for blob, is_kept in each], n_short


def remembered(stream: Stream, stored: Sequence[bytes | None]) -> Remembered | None:
    """Return the memory of vehicles from what is stored of each; None if no attribute lasts."""
    if not stream.lasting:
        return None
    return Remembered(stream, unpack(stored, _lasting(stream)))


def _lasting(stream: Stream) -> LastingColumns:
    return lasting_columns(stream.schema, stream.promise, stream.lasting)


def _numbered(records: Records, chosen: IntArray) -> Records:
    """Return the chosen records, their persons numbered from 0."""
    only = records.only(chosen)
    return Records(only.qi, only.sensitive, np.arange(len(chosen), dtype=np.int32))
