"""A criterion of one's own, as one file: (alpha,k)-anonymity [1]_, an exercise.

References
----------
.. [1] R. C.-W. Wong et al., "(alpha,k)-anonymity", 2006.
"""

from anonymizer.domain.criteria.criterion import ClassCriterion, Of

CRITERION = ClassCriterion(
    name="alpha",
    of=Of.SENSITIVE,
    value=lambda held, leaving: held.most / (held.n_persons - leaving).clip(1e-9),
    thresholds=lambda share, _margin: {"share": share},
    is_most=True,
    neutral=1.0,
    default=1.0,
    most=1,
    above_least=True,
    is_read=True,
    meaning="Largest share of a class with the same value of a sensitive attribute.",
    row="share of one value of {}, at most",
    head="largest share of a sensitive value",
    of_each=True,
    is_share=True,
    promised="one sensitive value at most {:g} of a class",
    finding="alpha",
    figure="share_max",
    danger="inference",
    question="Do too many rows that look the same have one sensitive value?",
)
