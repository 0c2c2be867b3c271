"""(k,d)-anonymity: every class has d distinct original values of every quasi-identifier [1]_.

The missing marker, a range and padding do not count.

References
----------
.. [1] "Efficient Multi-Source Anonymity for Aggregated Internet of Vehicles Datasets", Applied
   Sciences 14(8), 3230, 2024.
"""

from anonymizer.domain.criteria.criterion import ClassCriterion, Of

CRITERION = ClassCriterion(
    name="d",
    of=Of.QI,
    value=lambda held, leaving: held.n_values(leaving),
    thresholds=lambda d, _margin: {"distinct": d},
    neutral=0,
    default=1,
    leaving=lambda _margin, _bound: 0,  # given with d
    row="d, values of every quasi-identifier",
    head="d",
    promised="{:g} values of each quasi-identifier",
    finding="d",
    figure="values_min",
    danger="linkability",
    question="Do rows that look the same agree too much in what another source knows?",
)
