"""l-diversity: every class has l distinct values of every sensitive attribute [1]_.

References
----------
.. [1] A. Machanavajjhala et al., "l-diversity: privacy beyond k-anonymity", 2007.
"""

from anonymizer.domain.criteria.criterion import ClassCriterion, Of

CRITERION = ClassCriterion(
    name="l",
    of=Of.SENSITIVE,
    value=lambda held, leaving: held.n_values(leaving),
    thresholds=lambda l, margin: {"distinct": l, "left": l if margin and l > 1 else 0},  # noqa: E741
    neutral=0,
    default=1,
    leaving=lambda margin, l: margin if l > 1 else 0,  # noqa: E741  the field's name for it
    is_read=True,
    counts_values=True,
    row="l, values of {}",
    head="l",
    of_each=True,
    promised="{:g} values of each sensitive attribute",
    finding="l",
    figure="values_min",
    danger="inference",
    question="Do rows that look the same have too few sensitive values, such as one illness?",
)
