"""What the values beside pseudonyms cost: who is found by them, and when."""

from dataclasses import replace

import numpy as np

from anonymizer.algorithms.attacks.indistinguishability import instants_of
from anonymizer.algorithms.attacks.value_linking import ValueLinks, link_values
from anonymizer.app.audit.case import Case, Values, of_any
from anonymizer.app.audit.findings import Finding
from anonymizer.app.audit.pseudonym_attacks import guessing


def values(case: Case) -> list[Finding]:
    """Find each device among its twins by its values; by all attributes together at last.

    The bar is what guessing among the twins gives: values that meet it cost nothing. No mode
    promises it. Per-pseudonym values are the operator's own choice, and this is its price.
    Whoever has no twin is found without them, and is not counted.
    """
    looks: list[tuple[Values, ...]] = [(each,) for each in case.values]
    if len(case.values) > 1:
        looks.append(case.values)
    return [_found_by(case, look) for look in looks]


def _found_by(case: Case, look: tuple[Values, ...]) -> Finding:
    lives = _links(case, look)
    # At one instant: what is left to measure where lives differ, as under `snapshot`.
    instant = _links(case, look, at_once=True)
    finding = guessing(
        "values",
        lives.success,
        lives.by_chance,
        instant_success=of_any(np.mean, instant.success),
        instant_expected=of_any(np.mean, instant.by_chance),
        instant_n=len(instant.success),
    )
    attribute = " + ".join(each.attribute.name for each in look)
    return finding.model_copy(update={"attribute": attribute})


def _links(case: Case, look: tuple[Values, ...], *, at_once: bool = False) -> ValueLinks:
    """Link lives that have twins; or at once: each record as if it were a life of its own."""
    observed, class_of = case.observed, case.class_of
    if at_once:
        class_of = instants_of(observed).instant_of
        observed = replace(observed, first_record_of=np.arange(observed.n_records + 1))
    links = link_values(
        observed,
        class_of=class_of,
        published=np.stack([each.published for each in look], axis=1),
        true=np.stack([each.sensed for each in look], axis=1),
        span=np.array([each.attribute.hi - each.attribute.lo for each in look]),
    )
    hidden = links.by_chance < 1
    return ValueLinks(links.success[hidden], links.by_chance[hidden])
