"""Measures of a partition: information loss, class sizes, and the privacy reached.

Computed for all classes at once from the distinct values of each class, which are put in order by
counting instead of sorting. Global certainty penalty [1]_ and discernibility metric [2]_.

References
----------
.. [1] G. Ghinita et al., "Fast data anonymization with low information loss", 2007.
.. [2] R. J. Bayardo and R. Agrawal, "Data privacy through optimal k-anonymization", 2005.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from anonymizer.algorithms.kernels import copy_items, kernel, sort_in_place
from anonymizer.algorithms.records.criteria import ROUNDING
from anonymizer.algorithms.records.ordering import joint_code, stable_order
from anonymizer.algorithms.records.problem import Cost, form_of, whole_of
from anonymizer.algorithms.records.verification import NO_ATTRIBUTE, HeldValues
from anonymizer.domain.arrays import BoolArray, FloatArray, Int32Array, IntArray
from anonymizer.domain.criteria.criterion import ClassCriterion, Of
from anonymizer.domain.criteria.registry import CRITERIA, FURTHER, criteria_of, with_fields
from anonymizer.domain.records import Attribute, Records, Schema


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Runs:
    """Distinct values of each class, a run for each, rising within a class.

    `first_of`: index of the first run of each class, shape (classes,); `code`: value of each run;
    `n_persons`: distinct persons with that value, shape (runs,).
    """

    first_of: IntArray
    code: Int32Array | IntArray
    n_persons: IntArray

    def ends(self) -> IntArray:
        """Return the end of the runs of each class, shape (classes,)."""
        return np.append(self.first_of[1:], len(self.code))

    def sum_of(self, what: IntArray | FloatArray | BoolArray) -> FloatArray:
        """Return the sum over the runs of each class, shape (classes,)."""
        return np.asarray(np.add.reduceat(what.astype(np.float64), self.first_of))

    def most(self) -> IntArray:
        """Return the persons with the most frequent value of each class, shape (classes,)."""
        return np.asarray(np.maximum.reduceat(self.n_persons, self.first_of))


class GroupedRecords:
    """Records grouped by class, whose columns can be evaluated one by one.

    `size`: records of each class; `n_persons`: distinct persons; shape (classes,). ValueError if
    the numbers of the classes have a gap.

    Notes
    -----
    O(n) for a column: classes are small, and their values are sorted one class after the other.
    """

    def __init__(self, class_of: Int32Array, person: Int32Array) -> None:
        kept = np.flatnonzero(class_of >= 0)
        self.size = np.bincount(class_of[kept])
        if not self.size.all():
            raise ValueError("a class number has no records")
        # In the order of the classes: records that are counted together are adjacent in memory.
        self._record = in_order(kept, class_of, len(self.size))
        person = person[self._record]
        self._person = person if (np.bincount(person) > 1).any() else person[:0]
        self.n_persons = self.size
        if len(self._person):
            self.n_persons = self.runs(np.zeros(len(class_of), np.int32)).n_persons

    def __len__(self) -> int:
        """Return the number of classes."""
        return len(self.size)

    def runs(self, code: Int32Array | IntArray) -> Runs:
        """Return the distinct codes of each class; `code`: of each record, >= 0, shape (n,)."""
        code = code[self._record]
        if len(self._person):
            return self._runs_of_persons(code)
        return Runs(*_counted(code, self.size, int(code.max(initial=0)) + 1))

    def _runs_of_persons(self, code: Int32Array | IntArray) -> Runs:
        class_of = np.repeat(np.arange(len(self), dtype=np.int32), self.size)
        order = stable_order(code.astype(np.uint64), np.arange(len(code)))
        order = in_order(order, class_of, len(self))
        n_persons = int(self._person.max()) + 1
        first_of, record, count = _count(order, class_of, code, self._person, len(self), n_persons)
        return Runs(first_of, code[record], count)


@kernel
def _counted(
    code: Int32Array | IntArray, size: IntArray, n_codes: int
) -> tuple[IntArray, Int32Array | IntArray, IntArray]:
    """Return the runs of records that lie class by class, and the number of records in each.

    `size`: records of each class. Codes of a class are sorted, or counted where it is larger than
    the domain.
    """
    most = 0
    for m in size:
        most = max(most, m)
    some, times = np.empty(most, code.dtype), np.zeros(min(n_codes, most + 1), np.int64)
    first_of = np.empty(len(size), np.int64)
    found, count = np.empty(len(code), code.dtype), np.empty(len(code), np.int32)
    at, run = 0, 0
    for c in range(len(size)):
        m = size[c]
        first_of[c] = run
        if m >= n_codes:
            for i in range(at, at + m):
                times[code[i]] += 1
            for value in range(n_codes):
                if times[value] > 0:
                    found[run], count[run] = value, times[value]
                    times[value] = 0
                    run += 1
        else:
            copy_items(code[at : at + m], some, 0, m)
            sort_in_place(some[:m])
            for i in range(m):
                if i == 0 or some[i] != some[i - 1]:
                    found[run], count[run] = some[i], 0
                    run += 1
                count[run - 1] += 1
        at += m
    return first_of, found[:run].copy(), count[:run].astype(np.int64)


@kernel
def in_order(order: IntArray, key: Int32Array | IntArray, n_keys: int) -> IntArray:
    """Return `order` sorted stably by the key of each record, 0 and up. O(n + keys)."""
    first = np.zeros(n_keys + 1, np.int64)
    for i in order:
        first[key[i] + 1] += 1
    first = np.cumsum(first)
    ordered = np.empty_like(order)
    for i in order:
        ordered[first[key[i]]] = i
        first[key[i]] += 1
    return ordered


@kernel
def _count(
    order: IntArray,
    class_of: Int32Array,
    code: Int32Array | IntArray,
    person: Int32Array,
    n_classes: int,
    n_persons: int,
) -> tuple[IntArray, IntArray, IntArray]:
    """Count the distinct persons in each stretch of `order` with equal values."""
    first_of = np.zeros(n_classes, np.int64)
    record = np.empty(len(order), np.int64)
    count = np.zeros(len(order), np.int64)
    last_run_of = np.full(n_persons, -1, np.int64)
    run = -1
    for at in range(len(order)):
        i = order[at]
        new_class = at == 0 or class_of[order[at - 1]] != class_of[i]
        if new_class or code[order[at - 1]] != code[i]:
            run += 1
            record[run] = i
        if new_class:
            first_of[class_of[i]] = run
        if last_run_of[person[i]] != run:
            last_run_of[person[i]] = run
            count[run] += 1
    return first_of, record[: run + 1].copy(), count[: run + 1].copy()


@with_fields(lambda: {each.name: (tuple[float | None, ...], ()) for each in FURTHER})
@dataclass(frozen=True, slots=True, kw_only=True)
class Measures:
    """Utility and privacy of a release. Privacy is that of the worst class.

    If there is no class, every privacy measure and every share is 0.
    """

    n: int
    n_suppressed: int
    suppressed_share: float
    """`n`, `n_suppressed`, `suppressed_share`: records, suppressed records, and their share."""
    n_classes: int
    size_min: int
    size_median: float
    size_max: int
    """`n_classes`, `size_min`, `size_median`, `size_max`: equivalence classes, and their sizes in
    records."""
    k: int
    """Fewest distinct persons of a class."""
    ncp: Mapping[Cost, tuple[float, ...]]
    """Normalized certainty penalty of each QI, in each form: the mean over all records, where a
    suppressed record counts 1."""
    gcp: Mapping[Cost, float]
    gcp_published: Mapping[Cost, float]
    """`gcp`, `gcp_published`: global certainty penalty in each form, 0 to 1: the mean of `ncp`;
    over all records, and over the published ones alone."""
    dm: int
    dm_published: int
    """`dm`, `dm_published`: discernibility: sum of the squared class sizes. In the first, a
    suppressed record counts the number of all records."""
    d: tuple[int, ...]
    l: tuple[int, ...]  # noqa: E741  the field's name for it
    """`d`, `l`: fewest distinct values of each QI and of each sensitive attribute; the missing
    marker does not count. Likewise the value of each further criterion, in the worst class: of each
    column that it is about; None where it is about numbers alone."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...  # noqa: ANN401  of further criteria


def measure(
    records: Records, schema: Schema, class_of: Int32Array, *, costs: Collection[Cost] = tuple(Cost)
) -> Measures:
    """Measure the classes of records.

    `records`: suppressed ones included, since t-closeness compares with their distribution;
    `class_of`: 0 and up without a gap, negative where suppressed, shape (n,); `costs`: those by
    which losses are told.

    Notes
    -----
    O((n + codes) columns), and O(classes times codes) for the t of a sensitive attribute. Memory:
    32 bytes for each record, and for each distinct value of each class and column.

    Losses are defined in `criteria.column_loss`, the criteria in `domain.criteria`.
    """
    survey = GroupedRecords(class_of, records.person)
    size = survey.size
    n, n_out = records.n, records.n - int(size.sum())
    reached: dict[str, Any] = {each.name: [] for each in CRITERIA[1:]}
    lost: dict[Cost, list[float]] = {cost: [] for cost in costs}
    # The values of one column at a time: in small classes those of all take more than the table.
    for source in schema.sources:
        runs = survey.runs(joint_code(records.qi[:, list(source)]))
        _reach(reached, Of.SOURCE, runs, survey)
    for qi, column in zip(schema.qis, records.qi.T, strict=True):
        runs = survey.runs(column)
        for cost in costs:
            lost[cost].append(float(size @ _loss(runs, qi, cost)))
        _reach(reached, Of.QI, runs, survey, qi)
    for attribute, column in zip(schema.sensitive, records.sensitive.T, strict=True):
        usual = np.bincount(column, minlength=attribute.size)
        _reach(reached, Of.SENSITIVE, survey.runs(column), survey, attribute, usual)
    squares = int(size @ size)
    return Measures(
        n=n,
        n_suppressed=n_out,
        suppressed_share=n_out / max(n, 1),
        n_classes=len(size),
        size_min=int(size.min()) if len(size) else 0,
        size_median=float(np.median(size)) if len(size) else 0.0,
        size_max=int(size.max(initial=0)),
        k=int(survey.n_persons.min()) if len(size) else 0,
        ncp={form: tuple((x + n_out) / max(n, 1) for x in of) for form, of in lost.items()},
        gcp={form: _mean([x + n_out for x in of], n) for form, of in lost.items()},
        gcp_published={form: _mean(of, n - n_out) for form, of in lost.items()},
        dm=squares + n_out * n,
        dm_published=squares,
        **{name: tuple(values) for name, values in reached.items()},
    )


def _reach(
    reached: Mapping[str, list[float | None]],
    of: Of,
    runs: Runs,
    survey: GroupedRecords,
    attribute: Attribute = NO_ATTRIBUTE,
    usual: IntArray | None = None,
) -> None:
    """Add what each criterion of a column is in the class that is nearest to breaking it."""
    owner = np.repeat(np.arange(len(survey), dtype=np.int32), runs.ends() - runs.first_of)
    held = HeldValues(owner, runs.code, runs.n_persons, survey.n_persons, attribute, usual)
    for criterion in criteria_of(of):
        reached[criterion.name].append(_worst(criterion, held))


def _worst(criterion: ClassCriterion, held: HeldValues) -> float | None:
    if criterion.per_attribute and not held.attribute.numeric:
        return None
    if not len(held.n_persons):
        return 0
    values = criterion.value(held, 0)
    worst: float = (values.max() if criterion.is_most else values.min()).item()
    return max(worst, 0)


class BriefMeasures(NamedTuple):
    """The least that is said of a release; the fields as of `Measures`."""

    n: int
    n_suppressed: int
    n_classes: int
    k: int
    d: tuple[int, ...]
    l: tuple[int, ...]  # noqa: E741  the field's name for it
    gcp_published: float


def measure_briefly(
    records: Records, schema: Schema, class_of: Int32Array, cost: Cost
) -> BriefMeasures:
    """Return some of what `measure` does, for a third of its time in a small table."""
    survey, n = GroupedRecords(class_of, records.person), records.n
    if not len(survey):
        return BriefMeasures(n, n, 0, 0, (0,) * len(schema.qis), (0,) * len(schema.sensitive), 0.0)
    size = survey.size
    qis = [(survey.runs(records.qi[:, j]), a) for j, a in enumerate(schema.qis)]
    sensitive = [(survey.runs(records.sensitive[:, j]), a) for j, a in enumerate(schema.sensitive)]
    n_published = int(size.sum())
    return BriefMeasures(
        n=n,
        n_suppressed=n - n_published,
        n_classes=len(size),
        k=int(survey.n_persons.min()),
        d=tuple(_fewest(*of) for of in qis),
        l=tuple(_fewest(*of) for of in sensitive),
        gcp_published=_mean([float(size @ _loss(r, a, cost)) for r, a in qis], n_published),
    )


@dataclass(frozen=True, slots=True)
class ModalShares:
    """Records in classes of which one value has more than a share."""

    share: float
    table: tuple[float, ...]
    """Share of the most frequent value of each QI, then of each sensitive attribute, in the
    table."""
    n_above: tuple[int, ...]
    """Published records in classes of which one value has more than `share`, in the same order."""
    n_above_any: int
    """Likewise, of any attribute whose `table` share is not above `share`."""


def modal_shares(records: Records, class_of: Int32Array, share: float) -> ModalShares:
    """Return how many records are in classes of which one value has more than `share`.

    Shares are those of records. O((n + codes) columns).
    """
    survey = GroupedRecords(class_of, np.arange(records.n, dtype=np.int32))
    table, n_above, any_above = [], [], np.zeros(len(survey), bool)
    for column in (*records.qi.T, *records.sensitive.T):
        usual = np.bincount(column, minlength=1).max() / max(records.n, 1)
        runs = survey.runs(column)
        above = np.zeros(len(survey), bool)
        if len(survey):
            above = runs.most() > share * survey.size + ROUNDING
        table.append(float(usual))
        n_above.append(int(survey.size[above].sum()))
        if usual <= share + ROUNDING:
            any_above |= above
    return ModalShares(share, tuple(table), tuple(n_above), int(survey.size[any_above].sum()))


def _mean(lost: Sequence[float], n: int) -> float:
    return sum(lost) / max(n * len(lost), 1)


def _fewest(runs: Runs, attribute: Attribute) -> int:
    """Return the fewest distinct values in a class, the missing marker not counted."""
    if not len(runs.first_of):
        return 0
    return int(runs.sum_of(runs.code != attribute.missing).min())


def _loss(runs: Runs, attribute: Attribute, cost: Cost) -> FloatArray:
    """Return the loss in each class."""
    if not len(runs.first_of):
        return np.zeros(0)
    lo, hi = runs.code[runs.first_of], runs.code[runs.ends() - 1]
    return losses(attribute, cost, runs.ends() - runs.first_of, lo, hi)


def losses(
    attribute: Attribute,
    cost: Cost,
    n_codes: IntArray,
    lo: Int32Array | IntArray,
    hi: Int32Array | IntArray,
) -> FloatArray:
    """Return the loss of a quasi-identifier in classes, see `criteria.column_loss`.

    `n_codes`, `lo`, `hi`: number of codes in each class, the first and the last of them; the
    missing marker is one.
    """
    tree, form = attribute.hierarchy, form_of(attribute, cost)
    extent: IntArray | FloatArray
    if form is Cost.TAXONOMY and tree is not None:
        level = np.argmax(tree.ancestor[lo] == tree.ancestor[hi], axis=1)
        extent = tree.n_leaves[tree.ancestor[lo, level]]
    elif form is Cost.RANGE:
        extent = attribute.position[hi] - attribute.position[lo]
    else:
        extent = n_codes - 1
    loss = np.where(hi == attribute.missing, 1.0, extent / (whole_of(attribute, cost) or 1.0))
    return np.where(lo == hi, 0.0, loss)
