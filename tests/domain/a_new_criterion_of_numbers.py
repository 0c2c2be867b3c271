"""A criterion of one's own that is stated for each sensitive number: (k,e)-anonymity [1]_.

An exercise, as one file. With so many distinct values as l asks for, which [1]_ calls k.

References
----------
.. [1] Q. Zhang et al., "Aggregate query answering on anonymized tables", 2007.
"""

from anonymizer.domain.criteria.criterion import ClassCriterion, Of

CRITERION = ClassCriterion(
    name="min_range",
    of=Of.SENSITIVE,
    value=lambda held, leaving: held.spread(leaving),
    thresholds=lambda e, _margin: {"spread": e},
    neutral=0.0,
    default={},
    per_attribute=True,
    is_read=True,
    meaning="Smallest distance between the ends of a sensitive number in a class.",
    row="range of {}",
    head="range of a sensitive number",
    of_each=True,
    promised="a range of {1} of {0:g} or more",
    finding="range",
    figure="range_min",
    danger="inference",
    question="Are sensitive numbers of rows that look the same too close together?",
    told_as="range",
)
