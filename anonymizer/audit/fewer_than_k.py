"""The question whether fewer than k are told of, which is asked of regions and of tables."""

from anonymizer.audit.attack import EVERY_MODE, NOTHING, Criterion, Question, SummaryWords

LEAST_K = 2
_BAR = f">= k and >= {LEAST_K} devices"
K = Question(
    "k",
    Criterion.SINGLING_OUT,
    "Is an area or group of rows published that holds too few (fewer than k)?",
    ("share_below_k",),
    chance=0,
    against=NOTHING,
    bar=_BAR,
    promised_by=EVERY_MODE,
    summary=SummaryWords(
        question="k", words="k in the region", is_lack=True, figure="share_below_k"
    ),
)
