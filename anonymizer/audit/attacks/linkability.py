"""Linkability: what the data of one source, or who looks the same, tells of a person."""

from collections.abc import Iterator

from anonymizer.audit.attack import NOTHING, Attack, Criterion, Question, Subject
from anonymizer.audit.criteria_rows import names_of
from anonymizer.audit.findings import Finding
from anonymizer.audit.mathematics.linkability import Leak, homogeneity, link
from anonymizer.audit.table_case import TableCase
from anonymizer.domain.records import Schema


def linkability(case: TableCase) -> Iterator[Finding]:
    """Run the linkability attack from every source; under (k,d) and (k,l,d) it finds nothing."""
    promise = case.asked.promise
    leaks = link(case.seen, case.schema, case.records, case.class_of)
    for leak in leaks:
        required = promise.l >= 2 if leak.learned is None else promise.d >= 2
        yield Finding(
            attack=f"linkability ({leak.knows})",
            attribute=_direction(case.schema, leak),
            figures={"n_cells": leak.n_cells, "n_people": leak.n_people},
            bar="nothing" if required else None,
            holds=leak.n_cells == 0 if required else None,
            required=required,
        )
    found = homogeneity(case.seen, case.schema, case.records, case.class_of)
    for attribute, alike in zip(case.schema.sensitive, found, strict=True):
        yield Finding(
            attack="homogeneity",
            attribute=attribute.name,
            figures={"n_classes": alike.n_classes, "n_people": alike.n_people},
            bar="none" if promise.l >= 2 else None,
            holds=alike.n_classes == 0 if promise.l >= 2 else None,
            required=promise.l >= 2,
        )


def _direction(schema: Schema, leak: Leak) -> str:
    if leak.learned is None:
        learned = " + ".join(attribute.name for attribute in schema.sensitive)
    else:
        learned = names_of(schema, schema.sources[leak.learned])
    return f"{names_of(schema, schema.sources[leak.known])} -> {learned}"


ATTACK = Attack(
    "linkability",
    Subject.TABLE,
    linkability,
    (
        Question(
            "linkability",
            Criterion.LINKABILITY,
            "Does somebody who has the data of one source learn what other sources say of a "
            "person?",
            ("share_of_people",),
            chance=0,
            against=NOTHING,
            bar="nothing, where d or l of 2 is promised",
        ),
        Question(
            "homogeneity",
            Criterion.INFERENCE,
            "Is a person's sensitive value told, because all who look the same have it?",
            ("share_of_people",),
            chance=0,
            against=NOTHING,
            bar="none, where l of 2 is promised",
        ),
    ),
)
