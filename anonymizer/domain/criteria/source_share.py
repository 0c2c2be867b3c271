"""Largest share of a class's persons with the same values of all quasi-identifiers of a source.

Of a source of several: that of a source of one is bounded by `max_share`.
"""

from anonymizer.domain.criteria.criterion import ClassCriterion, Of

SAFE_SOURCE_SHARE = 0.95

CRITERION = ClassCriterion(
    name="max_source_share",
    of=Of.SOURCE,
    value=lambda held, leaving: held.most / (held.n_persons - leaving).clip(1e-9),
    thresholds=lambda share, _margin: {"share": share},
    is_most=True,
    neutral=1.0,
    default=1.0,
    most=1,
    above_least=True,
    safe=SAFE_SOURCE_SHARE,
    meaning="Largest share of a class with the same values of all quasi-identifiers of a source of"
    " several.",
    unstated=f"{SAFE_SOURCE_SHARE} where d is 2 or more, else 1",
    row="share of one source's tuple, at most",
    head="largest share of one tuple",
    is_share=True,
    finding="source share",
    figure="share_max",
    danger="linkability",
    told_as="max_share",
    question="Is what one source knows too frequent among rows that look the same?",
)
