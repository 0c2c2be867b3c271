"""Criteria: every part of a promise, class by class."""

from collections import Counter
from collections.abc import Iterator

from anonymizer.algorithms.records.verification import verify_classes
from anonymizer.audit.attack import Attack, Criterion, Question, Subject
from anonymizer.audit.criteria_rows import criteria_rows, reached_of
from anonymizer.audit.fewer_than_k import K
from anonymizer.audit.findings import Finding
from anonymizer.audit.table_case import TableCase
from anonymizer.domain.criteria.registry import CRITERIA


def criteria(case: TableCase) -> Iterator[Finding]:
    """Check every part of the promise, class by class."""
    coded, promise = case.banded, case.asked.promise
    broken = verify_classes(coded.records, coded.schema, promise, case.class_of)
    n_broken = Counter((each.part, each.attribute) for each in broken)
    yield from criteria_rows(reached_of(coded.schema, case.reached), promise, n_broken)


_AS_ASKED = "as the promise asks"
QUESTIONS = (
    K,
    *(
        Question(each.finding, Criterion(each.danger), each.question, bar=_AS_ASKED)
        for each in CRITERIA
        if each.question
    ),
)
ATTACK = Attack(
    "criteria",
    Subject.TABLE,
    criteria,
    (
        *QUESTIONS,
        Question("one each", Criterion.TRUTH, "Does everybody have one row?", bar=_AS_ASKED),
    ),
)
