"""Rows of an audit for the criteria of a promise: what the worst class reaches, and its bound."""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from anonymizer.algorithms.records.measures import Measures
from anonymizer.audit.findings import Figure, Finding, required
from anonymizer.domain.criteria.criterion import ClassCriterion, Of
from anonymizer.domain.criteria.registry import CRITERIA, criteria_of
from anonymizer.domain.promises import Promise
from anonymizer.domain.records import Schema


class Reached(NamedTuple):
    """What the worst class reaches of a criterion in an attribute, None if it is the class."""

    criterion: ClassCriterion
    attribute: str | None
    value: Figure


def reached_of(schema: Schema, measures: Measures) -> Iterator[Reached]:
    """Yield what the worst class reaches of each criterion and attribute."""
    yield Reached(CRITERIA[0], None, measures.k)
    names = {
        Of.QI: [qi.name for qi in schema.qis],
        Of.SOURCE: [names_of(schema, s) if len(s) > 1 else "" for s in schema.sources],
    }
    for criterion in criteria_of(*names):
        of_each = zip(names[criterion.of], getattr(measures, criterion.name), strict=True)
        for name, reached in of_each:
            if name and reached is not None:
                yield Reached(criterion, name, reached)
    for j, attribute in enumerate(schema.sensitive):
        for criterion in criteria_of(Of.SENSITIVE):
            if (reached := getattr(measures, criterion.name)[j]) is not None:
                yield Reached(criterion, attribute.name, reached)


def criteria_rows(
    reached: Iterable[Reached], promise: Promise, n_broken: Mapping[tuple[str, str], int]
) -> Iterator[Finding]:
    """Yield a finding for each criterion and attribute: required where a bound is promised.

    `n_broken`: number of classes that break a part of the promise in an attribute, as `Violation`
    names them.
    """
    for criterion, attribute, value in reached:
        bound = criterion.bound_for(getattr(promise, criterion.name), attribute or "")
        n_classes = n_broken.get((criterion.name, attribute or ""), 0)
        figures: dict[str, Figure] = {criterion.figure: value, "n_classes_broken": n_classes}
        if bound == criterion.neutral:
            found = {criterion.figure: value}
            yield Finding(attack=criterion.finding, attribute=attribute, figures=found)
        else:
            bar = f"{'<=' if criterion.is_most else '>='} {bound:g}"
            yield required(criterion.finding, figures, bar, holds=not n_classes, of=attribute)


def names_of(schema: Schema, source: Iterable[int]) -> str:
    """Return the names of the quasi-identifiers of a source."""
    return " + ".join(schema.qis[j].name for j in source)
