"""(k,d)-anonymity: k persons and d values of every quasi-identifier in each class."""

from anonymizer.algorithms.models.model import Model
from anonymizer.algorithms.records.methods import methods_in

BLIND = methods_in("anonymizer.algorithms.records.blind_classes", "best", "hilbert", "mondrian")
ABOUT_STREAMS = (
    "`hilbert`, the published algorithm, takes milliseconds; `best` searches for up to `budget_s`;"
    " `auto` is `best` where `budget_s` is long enough for the window's records, else `hilbert`,"
    " and ends when the next window is due or others wait; `sighted` (`kld`) sees all values."
)
MODEL = Model(
    name="kd",
    promises=("k", "d"),
    d=2,
    methods=BLIND,
    of_streams=("hilbert", "best"),
    title="(k,d)-anonymity",
    explained="At least {k} vehicles share each row, and at least {d} different values stand behind"
    " each value in it, so that whoever knows one column learns no other.",
    heading="(k,d) classes",
    meaning="k vehicles and d values.",
    in_streams=ABOUT_STREAMS,
)
