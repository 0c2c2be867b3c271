"""The problem of partitioning records: cells, criteria and cost as arrays that kernels read."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import IntEnum
from math import inf
from typing import NamedTuple

import numpy as np

from anonymizer.algorithms.records.ordering import numbered
from anonymizer.domain.arrays import BoolArray, FloatArray, Int32Array, IntArray, RecordArray
from anonymizer.domain.criteria.criterion import Of
from anonymizer.domain.criteria.registry import criteria_of
from anonymizer.domain.promises import Promise
from anonymizer.domain.records import Attribute, Records, Schema


class Cost(IntEnum):
    """How the information loss of a quasi-identifier is measured (normalized certainty penalty).

    A number costs the width of its range, over that of the domain, in every form but `TAXONOMY`
    where it has a hierarchy. Domains are those of values, without the missing marker. Where members
    of a class have a value and others have none, the label says nothing of theirs, and costs 1;
    where none has one, nothing is lost.
    """

    RANGE = 0
    """Distance between the first and the last category, in the order of the taxonomy, over the
    greatest there is."""
    SET = 1
    """Categories present, less one, over those of the domain, less one."""
    TAXONOMY = 2
    """Leaves below the lowest node above all, over all leaves; nothing for a single value.
    Where an attribute has no hierarchy, as `SET`."""


RULE = np.dtype(
    [
        ("size", np.int64),
        ("missing", np.int64),
        ("first_position", np.int64),
        ("first_ancestor", np.int64),
        ("height", np.int64),
        ("first_leaves", np.int64),
        ("form", np.int64),
        ("span", np.float64),
        ("whole", np.float64),
        ("weight", np.float64),
        ("distinct", np.int64),
        ("share", np.float64),
        ("spread", np.float64),
        ("entropy", np.float64),
        ("closeness", np.float64),
        ("numeric", np.int64),
        ("margin", np.int64),
        ("left", np.int64),
    ],
    align=True,
)
"""The thresholds that criteria ask of one column, and its cost.

size, missing
    Number of codes, and the code of the missing marker (-1: none).
first_position, first_ancestor, height, first_leaves
    Start of the column in `Problem.position`, `ancestor` and `n_leaves`.
form, whole, weight
    How its loss is measured (a `Cost`), over what, see `whole_of`, and how much its loss counts.
    The mean weight of the quasi-identifiers is 1.
span
    The width of its axis, the missing marker included.
distinct, share, spread, entropy, closeness
    Least values, largest share of one, least distance between the ends, least entropy in nats, and
    largest distance from the usual distribution: what `ClassCriterion.thresholds` states.
numeric
    1 if distances between codes are meaningful.
margin, left
    Whichever so many members leave, the others meet the criteria too, with `left` values in place
    of `distinct`.
"""


_AT_MOST = {"share", "closeness"}
"""Thresholds of which the lower one is the stricter."""


class Codes(NamedTuple):
    """The codes of all columns, as kernels take them; see `Problem`."""

    position: FloatArray
    usual: FloatArray
    ancestor: Int32Array
    n_leaves: Int32Array


class ProblemArrays(NamedTuple):
    """A `Problem` as kernels take it. Columns without criteria and cost may be left out."""

    cells: Int32Array
    rule: RecordArray
    person: Int32Array
    codes: Codes


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Problem:
    """Records, and the criteria and the cost of their classes."""

    cells: Int32Array
    """Code of each record in each column: the quasi-identifiers, then, where their share is
    bounded, the joint tuple of each source of several, then the sensitive attributes; C order,
    shape (n, columns)."""
    rule: RecordArray
    """The rule of each column, a record array of `RULE`, shape (columns,)."""
    n_qis: int
    """Number of columns, the first ones, that are generalized and have a cost."""
    plain: BoolArray
    """Which columns are the values of one attribute, shape (columns,)."""
    person: Int32Array
    """Person of each record, 0 and up, shape (n,); empty if no person has two records."""
    n_persons: int
    """Number of persons."""
    k: int
    """Least number of persons in a class."""
    position: FloatArray
    ancestor: Int32Array
    n_leaves: Int32Array
    """`position`, `ancestor`, `n_leaves`: for the codes of all columns, concatenated (`ancestor`
    row by row)."""
    usual: FloatArray
    """Share of each code in the whole table, laid out as `position`."""

    @property
    def n(self) -> int:
        """Number of records."""
        return len(self.cells)

    @property
    def arrays(self) -> ProblemArrays:
        """The arrays, as kernels take them."""
        codes = Codes(self.position, self.usual, self.ancestor, self.n_leaves)
        return ProblemArrays(self.cells, self.rule, self.person, codes)

    def only(self, rows: IntArray) -> "Problem":
        """Return the problem of some records; `usual` stays that of all."""
        person = self.person[rows] if len(self.person) else self.person
        return replace(self, cells=np.ascontiguousarray(self.cells[rows]), person=person)


def make_problem(
    records: Records,
    schema: Schema,
    promise: Promise,
    *,
    cost: Cost = Cost.RANGE,
    weights: Mapping[str, float] | None = None,
    table: Records | None = None,
) -> Problem:
    """Return the problem of generalizing `records` so that every class keeps `promise`.

    `weights`: how much the loss of a quasi-identifier counts, by name; of others, 1. Only the
    ratios matter. `table`: the whole table, where `records` are some of it: t-closeness compares
    with all of it. ValueError if there is a margin and a person has several records.

    Notes
    -----
    O(n columns); O(n columns log n) where the share of joint tuples is bounded and their domain is
    much larger than the table.
    """
    if promise.margin and _repeats(records.person):
        raise ValueError("a margin is for one record of each person")
    of_sources = (each.is_asked(getattr(promise, each.name)) for each in criteria_of(Of.SOURCE))
    bounded = [source for source in schema.sources if len(source) > 1] if any(of_sources) else []
    joint = [numbered(records.qi[:, list(s)]).astype(np.int32) for s in bounded]
    tuples = [Attribute(name="", position=np.arange(j.max(initial=0) + 1.0)) for j in joint]
    attributes = (*schema.qis, *tuples, *schema.sensitive)
    cells = np.ascontiguousarray(
        np.column_stack([records.qi, *joint, records.sensitive]), dtype=np.int32
    )
    trees = [a.hierarchy for a in attributes if a.hierarchy is not None]
    all_ = records if table is None else table
    columns = (*all_.qi.T, *joint, *all_.sensitive.T)
    usual = [
        np.bincount(column, minlength=a.size) / max(len(column), 1)
        for column, a in zip(columns, attributes, strict=True)
    ]
    return Problem(
        cells=cells,
        rule=_rules(attributes, schema, promise, cost, weights or {}),
        n_qis=len(schema.qis),
        plain=~np.isin(np.arange(len(attributes)), len(schema.qis) + np.arange(len(joint))),
        person=records.person if _repeats(records.person) else np.zeros(0, np.int32),
        n_persons=int(records.person.max(initial=-1)) + 1,
        k=promise.k,
        position=np.concatenate([np.zeros(0), *(a.position for a in attributes)]),
        ancestor=np.concatenate([np.zeros(0, np.int32), *(t.ancestor.ravel() for t in trees)]),
        n_leaves=np.concatenate([np.zeros(0, np.int32), *(t.n_leaves for t in trees)]),
        usual=np.concatenate([np.zeros(0), *usual]),
    )


def with_criteria(lost: Problem, criteria: Problem) -> Problem:
    """Return the problem of losing little by one problem in classes that meet another's criteria.

    Of `lost` only the quasi-identifiers and their cost are taken, of `criteria`, about the same
    records, everything but that.
    """
    price = lost.rule[: lost.n_qis].copy()
    price["distinct"], price["share"], price["spread"] = 0, 1.0, 0.0
    price["entropy"], price["closeness"], price["margin"] = 0.0, inf, 0
    rule = criteria.rule.copy()
    n_codes = int(price["size"].sum())  # the codes of its other columns go
    rule["first_position"] += n_codes
    rule["first_ancestor"] += len(lost.ancestor)
    rule["first_leaves"] += len(lost.n_leaves)
    return replace(
        criteria,
        cells=np.ascontiguousarray(np.column_stack([lost.cells[:, : lost.n_qis], criteria.cells])),
        rule=np.concatenate([price, rule]),
        n_qis=lost.n_qis,
        plain=np.concatenate([np.zeros(lost.n_qis, bool), criteria.plain]),
        position=np.concatenate([lost.position[:n_codes], criteria.position]),
        ancestor=np.concatenate([lost.ancestor, criteria.ancestor]),
        n_leaves=np.concatenate([lost.n_leaves, criteria.n_leaves]),
        usual=np.concatenate([lost.usual[:n_codes], criteria.usual]),
    )


def _rules(
    attributes: tuple[Attribute, ...],
    schema: Schema,
    promise: Promise,
    cost: Cost,
    weights: Mapping[str, float],
) -> RecordArray:
    """Return the rule of each column: QIs, joint tuples, sensitive attributes."""
    rule = np.zeros(len(attributes), RULE)
    rule["share"], rule["closeness"] = 1.0, inf
    rule["size"] = [a.size for a in attributes]
    rule["missing"] = [a.missing for a in attributes]
    rule["numeric"] = [a.numeric for a in attributes]
    rule["span"] = [a.span for a in attributes]
    rule["first_position"] = _starts([a.size for a in attributes])
    trees = [a.hierarchy for a in attributes]
    rule["height"] = [0 if t is None else t.ancestor.shape[1] for t in trees]
    rule["first_ancestor"] = _starts([0 if t is None else t.ancestor.size for t in trees])
    rule["first_leaves"] = _starts([0 if t is None else len(t.n_leaves) for t in trees])
    rule["form"] = [form_of(a, cost) for a in attributes]
    rule["whole"] = [whole_of(a, cost) for a in attributes]
    weight = np.array([weights.get(a.name, 1.0) for a in schema.qis])
    rule["weight"][: len(weight)] = weight * len(weight) / weight.sum() if len(weight) else weight
    rule["margin"] = promise.margin
    n_tuples = len(attributes) - len(schema.qis) - len(schema.sensitive)
    kinds = [Of.QI] * len(schema.qis) + [Of.SOURCE] * n_tuples
    kinds += [Of.SENSITIVE] * len(schema.sensitive)
    for one, attribute, kind in zip(rule, attributes, kinds, strict=True):
        for criterion in criteria_of(kind):
            bound = criterion.bound_for(getattr(promise, criterion.name), attribute.name)
            for name, value in criterion.thresholds(bound, promise.margin).items():
                strictest = min if name in _AT_MOST else max
                one[name] = strictest(one[name], value)
    return rule


def form_of(attribute: Attribute, cost: Cost) -> Cost:
    """Return how the loss of an attribute is measured where the given form is asked for."""
    if cost is Cost.TAXONOMY and attribute.hierarchy is not None:
        return Cost.TAXONOMY
    return Cost.RANGE if attribute.numeric or cost is Cost.RANGE else Cost.SET


def whole_of(attribute: Attribute, cost: Cost) -> float:
    """Return what a label of all values comes to, and losses are divided by; 0 if there is one."""
    n_values, form = attribute.n_values, form_of(attribute, cost)
    if form is Cost.TAXONOMY:
        return n_values
    if form is Cost.SET or n_values < 2:
        return max(n_values - 1, 0)
    return float(attribute.position[n_values - 1] - attribute.position[0])


def _repeats(person: Int32Array) -> bool:
    return bool(np.bincount(person, minlength=1).max() > 1) if len(person) else False


def _starts(sizes: list[int]) -> list[int]:
    return [0, *np.cumsum(sizes).tolist()][:-1]
