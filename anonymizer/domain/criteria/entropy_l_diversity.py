"""Entropy l-diversity: the entropy of every sensitive attribute is at least log(l) [1]_.

References
----------
.. [1] A. Machanavajjhala et al., "l-diversity: privacy beyond k-anonymity", 2007.
"""

from math import log

from anonymizer.domain.criteria.criterion import ClassCriterion, Of

CRITERION = ClassCriterion(
    name="entropy_l",
    of=Of.SENSITIVE,
    value=lambda held, leaving: held.diversity(leaving),
    thresholds=lambda l, _margin: {"entropy": log(l)},  # noqa: E741  the field's name for it
    neutral=1.0,
    default=1.0,
    least=1,
    is_read=True,
    counts_values=True,
    meaning="Smallest exp(entropy) of a sensitive attribute in a class.",
    row="entropy-l of {}",
    head="entropy-l",
    of_each=True,
    promised="entropy l of {:g}",
    finding="entropy l",
    figure="entropy_l_min",
    danger="inference",
    question="Is one sensitive value too frequent among rows that look the same?",
)
