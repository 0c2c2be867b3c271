"""A model of one's own, as one file: (k,e)-anonymity [1]_, an exercise; its criterion is another.

References
----------
.. [1] Q. Zhang et al., "Aggregate query answering on anonymized tables", 2007.
"""

from anonymizer.algorithms.models.kd import ABOUT_STREAMS, BLIND
from anonymizer.algorithms.models.model import Model

MODEL = Model(
    name="ke",
    promises=("k", "e"),
    needs_sensitive=True,
    methods={name: BLIND[name] for name in ("hilbert", "mondrian")},
    of_streams=("hilbert",),
    title="(k,e)-anonymity",
    explained="At least {k} vehicles share each row.",
    heading="(k,e) classes",
    meaning="k vehicles, of which the sensitive numbers are at least e apart.",
    in_streams=ABOUT_STREAMS,
)
