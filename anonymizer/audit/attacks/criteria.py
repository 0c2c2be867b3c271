"""Criteria: every part of a promise, class by class."""

from collections.abc import Iterator

from anonymizer.algorithms.records.measures import Measures
from anonymizer.algorithms.records.verification import verify_classes
from anonymizer.audit.attack import Attack, Criterion, Question, Subject
from anonymizer.audit.fewer_than_k import K
from anonymizer.audit.findings import Figure, Finding, required
from anonymizer.audit.table_case import TableCase, names_of
from anonymizer.domain.criteria.criterion import ClassCriterion, Of
from anonymizer.domain.criteria.registry import CRITERIA, criteria_of
from anonymizer.domain.records import Schema


def criteria(case: TableCase) -> Iterator[Finding]:
    """Check every part of the promise, class by class."""
    coded, promise = case.banded, case.asked.promise
    broken = verify_classes(coded.records, coded.schema, promise, case.class_of)
    for criterion, attribute, reached in _reached(coded.schema, case.reached):
        mine = [v for v in broken if (v.part, v.attribute) == (criterion.name, attribute or "")]
        bound = criterion.bound_for(getattr(promise, criterion.name), attribute or "")
        figures: dict[str, Figure] = {criterion.figure: reached, "n_classes_broken": len(mine)}
        if bound == criterion.neutral:
            found = {criterion.figure: reached}
            yield Finding(attack=criterion.finding, attribute=attribute, figures=found)
        else:
            bar = f"{'<=' if criterion.is_most else '>='} {bound:g}"
            yield required(criterion.finding, figures, bar, holds=not mine, of=attribute)


def _reached(
    schema: Schema, measures: Measures
) -> Iterator[tuple[ClassCriterion, str | None, Figure]]:
    """Yield each criterion and attribute with the figure of the worst class."""
    yield CRITERIA[0], None, measures.k
    names = {
        Of.QI: [qi.name for qi in schema.qis],
        Of.SOURCE: [names_of(schema, s) if len(s) > 1 else "" for s in schema.sources],
    }
    for criterion in criteria_of(*names):
        of_each = zip(names[criterion.of], getattr(measures, criterion.name), strict=True)
        for name, reached in of_each:
            if name and reached is not None:
                yield criterion, name, reached
    for j, attribute in enumerate(schema.sensitive):
        for criterion in criteria_of(Of.SENSITIVE):
            if (reached := getattr(measures, criterion.name)[j]) is not None:
                yield criterion, attribute.name, reached


_AS_ASKED = "as the promise asks"
ATTACK = Attack(
    "criteria",
    Subject.TABLE,
    criteria,
    (
        K,
        *(
            Question(each.finding, Criterion(each.danger), each.question, bar=_AS_ASKED)
            for each in CRITERIA
            if each.question
        ),
        Question("one each", Criterion.TRUTH, "Does everybody have one row?", bar=_AS_ASKED),
    ),
)
