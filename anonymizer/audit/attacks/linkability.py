"""Linkability: what the data of one or two sources, or who looks the same, tells of a person."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations

from anonymizer.audit.attack import NOTHING, Attack, Criterion, Question, Subject
from anonymizer.audit.criteria_rows import names_of
from anonymizer.audit.findings import Figure, Finding
from anonymizer.audit.mathematics.linkability import Leak, homogeneity, link
from anonymizer.audit.table_case import TableCase
from anonymizer.domain.records import Schema

_MOST_SOURCES = 4
"""Of which every two are put together, those of most columns: a pair costs as much as a source."""


def linkability(case: TableCase) -> Iterator[Finding]:
    """Attack from every source and every two; under (k,d) and (k,l,d) it finds nothing.

    The control of two sources is the one of them that tells more.
    """
    promise, schema = case.asked.promise, case.schema
    n_people: dict[tuple[str, tuple[int, ...], str], int] = {}
    for together, parts in _adversaries(schema):
        known = [0] if parts else None
        for leak in link(case.seen, together, case.records, case.class_of, known):
            required = promise.l >= 2 if leak.learned is None else promise.d >= 2
            source, learned = together.sources[leak.known], _learned(together, leak)
            figures: dict[str, Figure] = {"n_cells": leak.n_cells, "n_people": leak.n_people}
            if parts:
                of_one = (n_people[leak.knows, part, learned] for part in parts)
                figures["n_people_of_one"] = max(of_one)
            n_people[leak.knows, source, learned] = leak.n_people
            yield Finding(
                attack=f"linkability ({leak.knows})",
                attribute=f"{names_of(schema, source)} -> {learned}",
                figures=figures,
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


def _adversaries(schema: Schema) -> Iterator[tuple[Schema, tuple[tuple[int, ...], ...]]]:
    """Yield the schema, and that in which two of its sources are the first one, with these."""
    yield schema, ()
    widest = sorted(schema.sources, key=len, reverse=True)[:_MOST_SOURCES]
    for parts in combinations(widest, 2):
        others = [source for source in schema.sources if source not in parts]
        yield replace(schema, sources=((*parts[0], *parts[1]), *others)), parts


def _learned(schema: Schema, leak: Leak) -> str:
    if leak.learned is None:
        return " + ".join(attribute.name for attribute in schema.sensitive)
    return names_of(schema, schema.sources[leak.learned])


ATTACK = Attack(
    "linkability",
    Subject.TABLE,
    linkability,
    (
        Question(
            "linkability",
            Criterion.LINKABILITY,
            "Does somebody who has the data of one source, or of two, learn what other sources say "
            "of a person?",
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
