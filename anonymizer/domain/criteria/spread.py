"""Smallest distance between the ends of a numeric quasi-identifier, by its name."""

from anonymizer.domain.criteria.criterion import ClassCriterion, Of

CRITERION = ClassCriterion(
    name="min_spread",
    of=Of.QI,
    value=lambda held, leaving: held.spread(leaving),
    thresholds=lambda spread, _margin: {"spread": spread},
    neutral=0.0,
    default={},
    per_attribute=True,
    meaning="Smallest distance between the ends of a numeric quasi-identifier in a class.",
    row="spread of {}",
    head="spread",
    of_each=True,
    promised="smallest and largest {1} at least {0:g} apart",
    finding="spread",
    figure="spread_min",
    danger="inference",
    question="Are the numbers behind rows that look the same too close together?",
    told_as="spread",
)
