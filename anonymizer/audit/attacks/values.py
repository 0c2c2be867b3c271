"""Values: a device told from its twins by the readings that stand beside its pseudonym."""

from dataclasses import replace

import numpy as np

from anonymizer.audit.attack import ONE_IN_K, Attack, Criterion, Question, Subject
from anonymizer.audit.case import Case, RevealedValues, of_any
from anonymizer.audit.findings import Finding
from anonymizer.audit.guessing import GUESSING_BAR, guessing
from anonymizer.audit.mathematics.indistinguishability import instants_of
from anonymizer.audit.mathematics.value_linking import ValueLinks, link_values


def values(case: Case) -> list[Finding]:
    """Find each device among its twins by its published values, finally by all of them together.

    Twins are pseudonyms with the same regions for life. The bar is the success of guessing among
    them: values that meet it reveal nothing more. No mode promises it: per-pseudonym values are
    the operator's choice, and this is their cost. A device without a twin is identified without
    its values, and is not counted.
    """
    sets: list[tuple[RevealedValues, ...]] = [(each,) for each in case.values]
    if len(case.values) > 1:
        sets.append(case.values)
    return [_linked_by(case, attributes) for attributes in sets]


def _linked_by(case: Case, attributes: tuple[RevealedValues, ...]) -> Finding:
    lives = _links(case, attributes)
    # Also at single instants: under `snapshot` hardly any two pseudonyms share a whole life.
    instant = _links(case, attributes, at_once=True)
    finding = guessing(
        "values",
        lives.success,
        lives.by_chance,
        instant_success=of_any(np.mean, instant.success),
        instant_expected=of_any(np.mean, instant.by_chance),
        instant_n=len(instant.success),
    )
    names = " + ".join(each.attribute.name for each in attributes)
    return finding.model_copy(update={"attribute": names})


def _links(
    case: Case, attributes: tuple[RevealedValues, ...], *, at_once: bool = False
) -> ValueLinks:
    """Link pseudonyms that have twins; with `at_once`, each record as a pseudonym of its own."""
    observed, class_of = case.observed, case.class_of
    if at_once:
        class_of = instants_of(observed).instant_of
        observed = replace(observed, first_record_of=np.arange(observed.n_records + 1))
    links = link_values(
        observed,
        class_of=class_of,
        published=np.stack([each.published for each in attributes], axis=1),
        true=np.stack([each.sensed for each in attributes], axis=1),
        span=np.array([each.attribute.hi - each.attribute.lo for each in attributes]),
    )
    hidden = links.by_chance < 1
    return ValueLinks(links.success[hidden], links.by_chance[hidden])


def _has_values(case: Case) -> bool:
    return bool(case.values)


ATTACK = Attack(
    "values",
    Subject.POSITIONS,
    values,
    (
        Question(
            "values",
            Criterion.SINGLING_OUT,
            "Do readings tell a device from its group?",
            ("success",),
            ("expected",),
            "n",
            against=ONE_IN_K,
            bar=GUESSING_BAR,
        ),
    ),
    needs_map=True,
    applies=_has_values,
)
