"""A table anonymized range by range in one process: the steps of `anonymizer.spark`."""

import numpy as np

from anonymizer.algorithms.records.classes import SUPPRESSED, without_gaps
from anonymizer.algorithms.records.division import divide
from anonymizer.algorithms.records.former import Former
from anonymizer.algorithms.records.ranges import (
    NO_GROUP,
    at_borders,
    form,
    meetings,
    settle,
)
from anonymizer.algorithms.records.task import ModelTarget
from anonymizer.domain.arrays import Int32Array
from anonymizer.domain.records import Records


def in_ranges(
    records: Records,
    former: Former,
    *,
    n_ranges: int,
    open_code: Int32Array | None = None,
    target: ModelTarget | None = None,
    work_per_record: float | None = None,
) -> Int32Array:
    """Return the class of each record of a table, formed range by range, shape (n,).

    Parameters
    ----------
    n_ranges
        See `divide`.
    open_code, target, work_per_record
        See `form`.

    Notes
    -----
    In one process. `anonymizer.spark` takes the same steps, each range on any machine.

    Raises
    ------
    GuaranteeError
        As for `form`.
    """
    if not records.n:
        return np.zeros(0, np.int32)
    division = divide(records.qi, former, n_ranges=n_ranges, target=target)
    range_of = division.ranges_of(records.qi, records.person.astype(np.int64))
    n_ranges = division.n_ranges
    open_code = records.sensitive if open_code is None else open_code
    class_of, border = np.full(records.n, SUPPRESSED, np.int64), np.zeros(records.n, bool)
    n_left, n_classes = [0] * n_ranges, [0] * n_ranges

    total = 0
    for r in range(n_ranges):
        member = np.flatnonzero(range_of == r)
        own = records.only(member)
        wanted = None if target is None else target.only(member)
        found = form(
            own,
            former,
            open_code=open_code[member],
            target=wanted,
            work_per_record=work_per_record,
        )
        border[member] = at_borders(own, former.schema, found)
        n_left[r], n_classes[r] = int((found == SUPPRESSED).sum()), int(found.max(initial=-1)) + 1
        class_of[member] = np.where(found == SUPPRESSED, SUPPRESSED, total + found)
        total += n_classes[r]
    group_of = meetings(n_left, n_classes)[range_of]
    for group in range(group_of.max(initial=NO_GROUP) + 1):
        member = np.flatnonzero((group_of == group) & (border | (class_of == SUPPRESSED)))
        wanted = None if target is None else target.only(member)
        found = settle(
            records.only(member),
            former,
            class_of[member].astype(np.int32),
            open_code=open_code[member],
            target=wanted,
            work_per_record=work_per_record,
        )
        class_of[member] = np.where(found == SUPPRESSED, SUPPRESSED, total + found)
        total += int(found.max(initial=-1)) + 1
    numbered = without_gaps(class_of.astype(np.int32))
    former.verify(records, numbered)
    return numbered
