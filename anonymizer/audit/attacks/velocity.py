"""Velocity: how much of a region is in reach."""

import numpy as np

from anonymizer.audit.attack import Attack, Criterion, Question, Subject
from anonymizer.audit.case import Case, of_any
from anonymizer.audit.findings import Figure, Finding
from anonymizer.audit.mathematics.reachability import surviving_share


def velocity(case: Case) -> list[Finding]:
    """Measure the share of a region that is reachable if speeds are known."""
    lived = np.diff(case.observed.first_record_of)[case.sampled]
    observed = case.observed.of_pseudonyms(case.sampled[lived > 1])
    share = surviving_share(observed, case.network)
    figures: dict[str, Figure] = {
        "surviving_share_mean": of_any(np.mean, share),
        "surviving_share_min": of_any(np.min, share),
        "surviving_nodes_mean": of_any(np.mean, share * observed.region_size[observed.region_of]),
        "n_records": len(share),
    }
    return [Finding(attack="velocity", figures=figures)]


ATTACK = Attack(
    "velocity",
    Subject.POSITIONS,
    velocity,
    (
        Question(
            "velocity",
            Criterion.INFERENCE,
            "How much of an area is out of reach at possible speeds?",
        ),
    ),
)
