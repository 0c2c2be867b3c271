"""Criteria: every part of a promise, class by class."""

from collections.abc import Iterator

import numpy as np

from anonymizer.algorithms.records.measures import Measures
from anonymizer.algorithms.records.verification import PromisePart, verify_classes
from anonymizer.audit.attack import Attack, Criterion, Question, Subject
from anonymizer.audit.fewer_than_k import K
from anonymizer.audit.findings import Figure, Finding, required
from anonymizer.audit.table_case import TableCase, names_of
from anonymizer.domain.promises import Promise
from anonymizer.domain.records import Schema


def criteria(case: TableCase) -> Iterator[Finding]:
    """Check every part of the promise, class by class."""
    coded, promise = case.banded, case.asked.promise
    broken = verify_classes(coded.records, coded.schema, promise, case.class_of)
    for part, attribute, name, reached, bar in _reached(coded.schema, case.reached, promise):
        mine = [v for v in broken if (v.part, v.attribute) == (part, attribute or "")]
        figures: dict[str, Figure] = {name: reached, "n_classes_broken": len(mine)}
        if bar is None:
            yield Finding(attack=_words(part), attribute=attribute, figures={name: reached})
        else:
            yield required(_words(part), figures, bar, holds=not mine, of=attribute)


def _reached(
    schema: Schema, measures: Measures, promise: Promise
) -> Iterator[tuple[PromisePart, str | None, str, Figure, str | None]]:
    """Yield each part and attribute with the figure of the worst class, and the bar if required."""

    def least(required: float, neutral: float) -> str | None:
        return f">= {required:g}" if required > neutral else None

    def most(required: float) -> str | None:
        return f"<= {required:g}" if required < 1 else None

    yield PromisePart.K, None, "persons_min", measures.k, least(promise.k, 1)
    for j, qi in enumerate(schema.qis):
        yield PromisePart.D, qi.name, "values_min", measures.d[j], least(promise.d, 0)
    for j, qi in enumerate(schema.qis):
        yield (
            PromisePart.MAX_SHARE,
            qi.name,
            "share_max",
            measures.max_share[j],
            most(promise.max_share),
        )
    for s, source in enumerate(schema.sources):
        if len(source) > 1:
            name, share = names_of(schema, source), measures.max_source_share[s]
            yield (
                PromisePart.MAX_SOURCE_SHARE,
                name,
                "share_max",
                share,
                most(promise.max_source_share),
            )
    for j, qi in enumerate(schema.qis):
        if qi.numeric:
            bar = least(promise.min_spread.get(qi.name, 0), 0)
            yield PromisePart.MIN_SPREAD, qi.name, "spread_min", measures.spread[j], bar
    for j, attribute in enumerate(schema.sensitive):
        name = attribute.name
        yield PromisePart.L, name, "values_min", measures.l[j], least(promise.l, 0)
        bar = least(promise.entropy_l, 1)
        yield PromisePart.ENTROPY_L, name, "entropy_l_min", measures.entropy_l[j], bar
        bar = f"<= {promise.t:g}" if np.isfinite(promise.t) else None
        yield PromisePart.T, name, "distance_max", measures.t[j], bar


def _words(part: PromisePart) -> str:
    return part.value.replace("max_", "").replace("min_", "").replace("_", " ")


_AS_ASKED = "as the promise asks"
ATTACK = Attack(
    "criteria",
    Subject.TABLE,
    criteria,
    (
        K,
        Question(
            "d",
            Criterion.LINKABILITY,
            "Do rows that look the same agree too much in what another source knows?",
            bar=_AS_ASKED,
        ),
        Question(
            "share",
            Criterion.LINKABILITY,
            "Is one value too frequent among rows that look the same?",
            bar=_AS_ASKED,
        ),
        Question(
            "source share",
            Criterion.LINKABILITY,
            "Is what one source knows too frequent among rows that look the same?",
            bar=_AS_ASKED,
        ),
        Question(
            "spread",
            Criterion.INFERENCE,
            "Are the numbers behind rows that look the same too close together?",
            bar=_AS_ASKED,
        ),
        Question(
            "l",
            Criterion.INFERENCE,
            "Do rows that look the same have too few sensitive values, such as one illness?",
            bar=_AS_ASKED,
        ),
        Question(
            "entropy l",
            Criterion.INFERENCE,
            "Is one sensitive value too frequent among rows that look the same?",
            bar=_AS_ASKED,
        ),
        Question(
            "t",
            Criterion.INFERENCE,
            "Do the sensitive values of rows that look the same differ too much from all?",
            bar=_AS_ASKED,
        ),
        Question("one each", Criterion.TRUTH, "Does everybody have one row?", bar=_AS_ASKED),
    ),
)
