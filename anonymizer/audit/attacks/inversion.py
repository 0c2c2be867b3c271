"""Inversion: how many devices publish the identical region at one instant."""

import numpy as np

from anonymizer.audit.attack import NOTHING, Attack, Criterion, Question, Subject, SummaryWords
from anonymizer.audit.case import Case, mean
from anonymizer.audit.findings import Figure, Finding
from anonymizer.audit.mathematics.clustered_shares import n_independent
from anonymizer.audit.mathematics.indistinguishability import instants_of


def inversion(case: Case) -> list[Finding]:
    """Count the devices that publish the identical region at one instant."""
    instants = instants_of(case.observed)
    n = instants.n_sharing(case.identity_of[case.observed.pseudonym_of])
    k = case.observed.k
    figures: dict[str, Figure] = {
        "sharing_min": int(n.min()),
        "sharing_median": float(np.median(n)),
        "sharing_to_k_min": float((n / k).min()),
        "share_below_k": mean(n < k),
        "n_independent": n_independent(n < k, case.group_of, instants.instant_of),
    }
    return [Finding(attack="inversion", figures=figures, bar=">= k", holds=bool((n >= k).all()))]


ATTACK = Attack(
    "inversion",
    Subject.POSITIONS,
    inversion,
    (
        Question(
            "inversion",
            Criterion.SINGLING_OUT,
            "Do fewer than k devices get the same area, for somebody who knows how areas are made?",
            ("share_below_k",),
            exposed="sharing_to_k_min",
            chance=0,
            against=NOTHING,
            bar=">= k",
            promised_by=("snapshot", "session"),
            summary=SummaryWords(
                question="k", words="k share the region", is_lack=True, figure="share_below_k"
            ),
        ),
    ),
    mount_in_short=inversion,
)
