"""Minimality: whether a row is where it is for its sensitive value, which tells it."""

from collections.abc import Iterator
from dataclasses import replace

from anonymizer.audit.attack import Attack, Criterion, Question, Subject
from anonymizer.audit.findings import Finding
from anonymizer.audit.mathematics.minimality import minimality
from anonymizer.audit.table_case import TableCase
from anonymizer.domain.promises import bounds_sensitive

_BAR = "below twice that without the release, but for chance"


def named_owners(case: TableCase) -> Iterator[Finding]:
    """Yield a finding for each sensitive attribute of which something is promised.

    The original is needed: it says what would be lost otherwise, and whose the values are. The
    method that made the release is not.
    """
    coded, promise = case.banded, case.asked.promise
    if not bounds_sensitive(promise):
        return
    promise = replace(promise, k=promise.k if promise.k > 1 else case.reached.k)
    for column, attribute in enumerate(coded.schema.sensitive):
        found = minimality(
            coded.records, coded.schema, promise, case.class_of, column, seed=case.asked.seed
        )
        yield Finding(
            attack="minimality",
            attribute=attribute.name,
            figures={
                "average": found.success,
                "average_alike": found.alike,
                "guess": found.blind,
                "n": found.n,
                "n_classes_tried": found.n_tried,
            },
            bar=_BAR,
            holds=not found.names if found.n_tried else None,
        )


ATTACK = Attack(
    "minimality",
    Subject.TABLE,
    named_owners,
    (
        Question(
            "minimality",
            Criterion.INFERENCE,
            "Is the only person of a class with a sensitive value named, because the release would "
            "lose less if it were anybody else's?",
            ("average",),
            ("guess", "average_alike"),
            "n",
            against="a blind guess, or who is most like others with the value",
            bar=_BAR,
        ),
    ),
)
