"""An attack for the tests: a device that is published all alone at one node. One file, no more."""

import numpy as np

from anonymizer.audit.attack import BLIND, Attack, Criterion, Question, Subject
from anonymizer.audit.case import Case, mean
from anonymizer.audit.findings import Figure, Finding

NAME = "parked alone"
ASKS = "Is a device published alone, at one node?"


def parked_alone(case: Case) -> list[Finding]:
    """Count the records whose region is one node."""
    size = case.observed.region_size[case.observed.region_of]
    alone = mean(size == 1)
    figures: dict[str, Figure] = {
        "success": alone,
        "blind": mean(1 / np.maximum(size, 2)),
        "n": len(size),
    }
    return [Finding(attack=NAME, figures=figures, bar="none", holds=alone == 0)]


ATTACK = Attack(
    NAME,
    Subject.POSITIONS,
    parked_alone,
    (
        Question(
            NAME,
            Criterion.SINGLING_OUT,
            ASKS,
            ("success",),
            ("blind",),
            "n",
            against=BLIND,
            bar="none",
            promised_by=("session",),
        ),
    ),
)
