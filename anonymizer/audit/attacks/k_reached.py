"""k: how many devices are in each published region."""

import numpy as np

from anonymizer.audit.attack import Attack, Subject
from anonymizer.audit.case import Case, mean
from anonymizer.audit.fewer_than_k import LEAST_K, K
from anonymizer.audit.findings import Figure, Finding
from anonymizer.audit.mathematics.clustered_shares import n_independent
from anonymizer.audit.mathematics.indistinguishability import instants_of
from anonymizer.audit.mathematics.presence import devices_inside


def k_reached(case: Case) -> list[Finding]:
    """Count the distinct devices in every region."""
    instants = instants_of(case.observed)
    n = devices_inside(
        case.observed,
        case.counted,
        tick=instants.tick,
        region=instants.region,
        n_nodes=case.network.n_nodes,
    )
    enough = n >= np.maximum(instants.k, LEAST_K)
    figures: dict[str, Figure] = {
        "devices_min": int(n.min()),
        "devices_median": float(np.median(n[instants.instant_of])),
        "k_mean": mean(case.observed.k),
        "share_below_k": mean(~enough[instants.instant_of]),
        "n_independent": n_independent(
            enough[instants.instant_of], case.group_of, instants.instant_of
        ),
    }
    return [Finding(attack="k", figures=figures, bar=K.bar, holds=bool(enough.all()))]


ATTACK = Attack("k", Subject.POSITIONS, k_reached, (K,), mount_in_short=k_reached)
