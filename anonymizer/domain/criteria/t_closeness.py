"""t-closeness: the distribution of a sensitive attribute is that of all records, but for t [1]_.

By the earth mover's distance, 0 to 1: numbers, dates and times are as far apart as their ranks
among the values that occur in all records (ordered distance, section 4.2), each two categories 1.

References
----------
.. [1] N. Li et al., "t-closeness: privacy beyond k-anonymity and l-diversity", 2007.
"""

from math import inf

from anonymizer.domain.criteria.criterion import ClassCriterion, Of

CRITERION = ClassCriterion(
    name="t",
    of=Of.SENSITIVE,
    value=lambda held, leaving: held.distance(leaving),
    thresholds=lambda t, _margin: {"closeness": t},
    is_most=True,
    neutral=inf,
    default=inf,
    most=1,
    above_least=True,
    meaning="Largest distance, 0 to 1, of a sensitive attribute's distribution in a class from that"
    " of all records.",
    unstated="no bound",
    row="t of {}, at most",
    head="t",
    of_each=True,
    promised="distributions at most {:g} from that of all",
    finding="t",
    figure="distance_max",
    danger="inference",
    question="Do the sensitive values of rows that look the same differ too much from all?",
)
