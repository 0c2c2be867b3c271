"""Own rows: who has some of the rows subtracts them from their classes."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from anonymizer.algorithms.records.verification import PARTS, verify_classes
from anonymizer.audit.attack import Attack, Criterion, Question, Subject
from anonymizer.audit.findings import Figure, Finding, required
from anonymizer.audit.mathematics import own_rows
from anonymizer.audit.table_case import TableCase
from anonymizer.domain.arrays import Int32Array
from anonymizer.domain.promises import Promise
from anonymizer.domain.records import Records, Schema


def owned_rows(case: TableCase) -> Iterator[Finding]:
    """Attack as somebody who has some of the rows; the control has none.

    Where the promise has a margin as large, nothing may be found.
    """
    n_own, promise, class_of = case.asked.n_own, case.asked.promise, case.class_of
    if not n_own:
        return
    records, schema = case.banded.records, case.banded.schema
    person, sensitive = records.person, records.sensitive
    who = np.unique(person[class_of >= 0])
    own = np.random.default_rng(case.asked.seed).permutation(who)[:n_own]
    attacks = {
        "own rows: none": own_rows.in_its_class(class_of, person, sensitive, 0),
        f"own rows: {n_own} drawn": own_rows.of_own(
            class_of, person, sensitive, np.isin(person, own)
        ),
        f"own rows: {n_own} in its class": own_rows.in_its_class(
            class_of, person, sensitive, n_own
        ),
    }
    margin = promise.margin >= n_own
    for attack, found in attacks.items():
        others: dict[str, Figure] = {"persons_min": found.persons_min, "n_alone": found.n_alone}
        if margin:
            holds = found.persons_min >= promise.k - n_own
            yield required(attack, others, f">= {promise.k - n_own} others", holds=holds)
        else:
            yield Finding(attack=attack, figures=others)
        for attribute, n_read in zip(schema.sensitive, found.n_read, strict=True):
            people: dict[str, Figure] = {"n_people": n_read}
            if margin and promise.l > 1:
                yield required(attack, people, "none", holds=not n_read, of=attribute.name)
            else:
                yield Finding(attack=attack, attribute=attribute.name, figures=people)
    if margin:
        yield from _without_own(records, class_of, schema, promise, n_own)


def _without_own(
    records: Records, class_of: Int32Array, schema: Schema, promise: Promise, n_own: int
) -> Iterator[Finding]:
    """Attack every criterion as somebody who has the worst `n_own` people of each class."""
    left = replace(promise, margin=n_own, k=promise.k - promise.margin + n_own)
    broken = verify_classes(records, schema, left, class_of)
    for part in PARTS:
        mine = {v.class_number for v in broken if v.part == part}
        figures: dict[str, Figure] = {"n_classes_broken": len(mine)}
        attack = f"own rows: {n_own} against {part.replace('_', ' ')}"
        yield required(attack, figures, "none", holds=not mine)


ATTACK = Attack(
    "own rows",
    Subject.TABLE,
    owned_rows,
    (
        Question(
            "own rows",
            Criterion.INFERENCE,
            "Does somebody to whom some of the rows belong learn about the others?",
            bar="every criterion, as far as k_extra promises it",
        ),
    ),
)
