"""Soundness: whether each device is in its published region."""

import numpy as np

from anonymizer.audit.attack import EVERY_MODE, Attack, Criterion, Question, Subject, SummaryWords
from anonymizer.audit.case import Case, mean
from anonymizer.audit.findings import Figure, Finding
from anonymizer.audit.mathematics.clustered_shares import n_independent
from anonymizer.audit.mathematics.presence import OUTSIDE, slot_in_region


def soundness(case: Case) -> list[Finding]:
    """Check that each device is inside its published region, or was when it left its district.

    Or when it was last believed: two vehicles that share an id are where they claim to be only in
    turn. `share_elsewhere` has them all.
    """
    records = np.arange(case.observed.n_records)
    node = case.local_node_of(records)
    inside = slot_in_region(case.observed, node, region=case.observed.region_of) != OUTSIDE
    figures: dict[str, Figure] = {
        "share_inside": mean(inside),
        "n_outside": int((~inside).sum()),
        "share_elsewhere": mean(node != case.true_node_of(records)),
        "n_independent": n_independent(inside, case.group_of),
    }
    return [Finding(attack="soundness", figures=figures, bar=_BAR, holds=bool(inside.all()))]


_BAR = "100 %"
ATTACK = Attack(
    "soundness",
    Subject.POSITIONS,
    soundness,
    (
        Question(
            "soundness",
            Criterion.TRUTH,
            "Is every device within its published area?",
            bar=_BAR,
            promised_by=EVERY_MODE,
            summary=SummaryWords(
                question="sound", words="inside its region", figure="share_inside"
            ),
        ),
    ),
    needs_map=True,
    mount_in_short=soundness,
)
