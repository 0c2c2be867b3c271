"""Largest share of a class's persons who have the same value of a quasi-identifier.

d = 2 alone still allows a class in which 99 of 100 persons have the same value, so the default is
a safe share there. d = 1 allows that all persons have it, so there it is 1.
"""

from anonymizer.domain.criteria.criterion import ClassCriterion, Of

SAFE_SHARE = 0.995

CRITERION = ClassCriterion(
    name="max_share",
    of=Of.QI,
    value=lambda held, leaving: held.most / (held.n_persons - leaving).clip(1e-9),
    thresholds=lambda share, _margin: {"share": share},
    is_most=True,
    neutral=1.0,
    default=1.0,
    most=1,
    above_least=True,
    safe=SAFE_SHARE,
    meaning="Largest share of a class with the same value of a quasi-identifier.",
    unstated=f"{SAFE_SHARE} where d is 2 or more, else 1",
    row="share of one value, at most",
    head="largest share",
    is_share=True,
    finding="share",
    figure="share_max",
    danger="linkability",
    question="Is one value too frequent among rows that look the same?",
)
