"""Session: how many devices share the regions of a whole life."""

import numpy as np

from anonymizer.audit.attack import NOTHING, Attack, Criterion, Question, Subject, SummaryWords
from anonymizer.audit.case import Case, mean
from anonymizer.audit.findings import Figure, Finding
from anonymizer.audit.mathematics.clustered_shares import n_independent


def session(case: Case) -> list[Finding]:
    """Count the devices with the same regions for the whole life of each pseudonym."""
    n, k = case.n_twins(), case.observed.largest_k_of
    figures: dict[str, Figure] = {
        "twins_min": int(n.min()),
        "twins_median": float(np.median(n)),
        "twins_to_k_min": float((n / k).min()),
        "share_below_k": mean(n < k),
        "n_independent": n_independent(n < k, case.class_of),
    }
    return [Finding(attack="session", figures=figures, bar=">= k", holds=bool((n >= k).all()))]


ATTACK = Attack(
    "session",
    Subject.POSITIONS,
    session,
    (
        Question(
            "session",
            Criterion.SINGLING_OUT,
            "Do fewer than k made-up names share all their areas?",
            ("share_below_k",),
            exposed="twins_to_k_min",
            chance=0,
            against=NOTHING,
            bar=">= k",
            promised_by=("session",),
            summary=SummaryWords(
                question="k", words="k share a whole life", is_lack=True, figure="share_below_k"
            ),
        ),
    ),
    mount_in_short=session,
)
