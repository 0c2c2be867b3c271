"""Classes range by range, for a table that is anonymized in parts.

The whole table is cut into ranges of about equal size, see `division`. Each range is anonymized on
its own, by any method, and verified. Records that find no class there meet at the borders: with
those of neighbouring ranges and with the classes next to them they are anonymized once more. So no
class is below its promise, and a record is suppressed only if no class is found for it there
either.

What the ranges must agree on is in `Former`: the domains, in which information loss and distances
are measured, and the distribution of sensitive attributes, from which t-closeness measures.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import ceil

import numpy as np

from anonymizer.algorithms.records.classes import SUPPRESSED, without_gaps
from anonymizer.algorithms.records.criteria import why_impossible
from anonymizer.algorithms.records.former import Former
from anonymizer.algorithms.records.hilbert import hilbert_order
from anonymizer.algorithms.records.ordering import arranged
from anonymizer.algorithms.records.task import ModelTarget
from anonymizer.domain.arrays import BoolArray, Int32Array
from anonymizer.domain.records import Records, Schema

NO_GROUP = -1
"""Group of a range that has nothing to settle."""


def form(
    records: Records,
    former: Former,
    *,
    open_code: Int32Array | None = None,
    target: ModelTarget | None = None,
    time_left: Callable[[], float] | None = None,
    work_per_record: float | None = None,
) -> Int32Array:
    """Return the class of each record of one range, `SUPPRESSED` where it has none, shape (n,).

    `open_code`: what is published of each record beside its quasi-identifiers, see `arranged`; by
    default the sensitive attributes. `work_per_record`: of a search, in place of the time, see
    `Task`. GuaranteeError if independent verification finds that a class
    does not meet the criteria.
    """
    if not records.n:
        return np.zeros(0, np.int32)
    order = arranged(records, records.sensitive if open_code is None else open_code)
    placed = records.only(order)
    person = np.unique(placed.person, return_inverse=True)[1].astype(np.int32)
    placed = replace(placed, person=person)
    problem = former.problem(placed)
    class_of = np.full(records.n, SUPPRESSED, np.int32)
    if why_impossible(problem, former.schema) is None:
        placed_target = None if target is None else target.only(order)
        work = None if work_per_record is None else ceil(work_per_record * records.n)
        found = former.classes(
            placed, problem, target=placed_target, time_left=time_left, work=work
        )
        class_of[order] = without_gaps(found)
    former.verify(records, class_of)
    return class_of


def at_borders(records: Records, schema: Schema, class_of: Int32Array) -> BoolArray:
    """Return which records are in the first or the last class of a range along its order."""
    order = hilbert_order(records.qi, [qi.size for qi in schema.qis])
    along = class_of[order]
    along = along[along != SUPPRESSED]
    return np.isin(class_of, along[[0, -1]]) if len(along) else np.zeros(records.n, bool)


def meetings(n_left: Sequence[int], n_classes: Sequence[int]) -> Int32Array:
    """Return the group of ranges that settle together, for each range; `NO_GROUP`: none.

    `n_left`, `n_classes`: records without a class, and classes, of each range, in their order.

    Notes
    -----
    A range with such records meets the nearest one on either side that has classes, and those
    between. Ranges that meet a common one are one group.
    """
    n = len(n_left)
    group = np.full(n, NO_GROUP, np.int32)
    settled = np.flatnonzero(np.asarray(n_classes) > 0)
    number = NO_GROUP
    for at in np.flatnonzero(np.asarray(n_left) > 0).tolist():
        before, after = settled[settled < at], settled[settled > at]
        first = int(before[-1]) if len(before) else 0
        last = int(after[0]) if len(after) else n - 1
        if group[first] == NO_GROUP:
            number += 1
        group[first : last + 1] = number
    return group


def settle(
    records: Records,
    former: Former,
    class_of: Int32Array,
    *,
    open_code: Int32Array | None = None,
    target: ModelTarget | None = None,
    time_left: Callable[[], float] | None = None,
    work_per_record: float | None = None,
) -> Int32Array:
    """Return the classes of records that meet at borders, numbered from 0 without a gap.

    `records`: those without a class of some ranges, and the border classes of these ranges;
    `class_of`: of each record in its range, numbered so that no two ranges share one, and
    `SUPPRESSED`. GuaranteeError as for `form`.

    Notes
    -----
    The former classes stay where new ones would suppress no fewer records.
    """
    found = form(
        records,
        former,
        open_code=open_code,
        target=target,
        time_left=time_left,
        work_per_record=work_per_record,
    )
    better = (found == SUPPRESSED).sum() < (class_of == SUPPRESSED).sum()
    return without_gaps(found if better else class_of)
