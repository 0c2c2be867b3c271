"""(k,l,d)-diversity: (k,d)-anonymity with l values of every sensitive attribute in each class."""

from anonymizer.algorithms.models.kd import ABOUT_STREAMS, BLIND
from anonymizer.algorithms.models.model import Model
from anonymizer.algorithms.records.methods import methods_in

MODEL = Model(
    name="kld",
    promises=("k", "l", "d"),
    d=2,
    l=2,
    needs_sensitive=True,
    methods=BLIND | methods_in("anonymizer.algorithms.records.class_methods", "sighted", "printed"),
    of_streams=("hilbert", "best", "sighted"),
    title="(k,l,d)-diversity",
    explained="At least {k} vehicles share each row, as with (k,d) = ({k},{d}); and they have at"
    " least {l} different sensitive values, so that a row tells nobody's.",
    heading="(k,l,d) classes",
    meaning="l sensitive values as well.",
    in_streams=ABOUT_STREAMS,
)
