"""k-anonymity: every class has k distinct persons [1]_.

References
----------
.. [1] L. Sweeney, "k-anonymity: a model for protecting privacy", 2002.
"""

from anonymizer.domain.criteria.criterion import ClassCriterion, Of

CRITERION = ClassCriterion(
    name="k",
    of=Of.CLASS,
    value=lambda held, _leaving: held.n_persons,
    thresholds=lambda _bound, _margin: {},  # `Problem.k`
    neutral=1,
    leaving=lambda _margin, _bound: 0,  # given with k
    row="k, distinct persons",
    head="k",
    finding="k",
    figure="persons_min",
    danger="singling out",
    question="",  # asked of regions, too
)
