"""Spread of every sensitive number, a criterion of (k,e)-anonymity [1]_.

References
----------
.. [1] Q. Zhang et al., "Aggregate query answering on anonymized tables", 2007.
"""

from anonymizer.domain.criteria.criterion import ClassCriterion, Of

CRITERION = ClassCriterion(
    name="e",
    of=Of.SENSITIVE,
    value=lambda held, leaving: held.spread(leaving),
    thresholds=lambda e, _margin: {"spread": e},
    neutral=0.0,
    default=0.0,
    meaning="Smallest distance between the ends of a sensitive number in a class.",
    row="spread of the sensitive {}",
    head="spread of a sensitive number",
    of_each=True,
    promised="sensitive numbers at least {:g} apart",
    finding="e",
    figure="sensitive_spread_min",
    danger="inference",
    question="Are the sensitive numbers of rows that look the same too close together?",
)
