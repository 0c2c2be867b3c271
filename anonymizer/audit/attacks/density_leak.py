"""Density leak: what the size of a region tells of the traffic around it."""

import numpy as np

from anonymizer.audit.attack import Attack, Criterion, Question, Subject
from anonymizer.audit.case import Case
from anonymizer.audit.findings import Figure, Finding
from anonymizer.audit.mathematics.presence import devices_near
from anonymizer.audit.mathematics.region_center import band_accuracy


def density_leak(case: Case) -> list[Finding]:
    """Guess the density band from the size of a region."""
    observed = case.observed
    records = np.argsort(observed.tick_of, kind="stable")
    node = case.true_node_of(records)
    records, node = records[node >= 0], node[node >= 0]
    near = devices_near(case.network, case.truth, tick=observed.tick_of[records], node=node)
    band = np.searchsorted(case.density_steps, near, side="right")
    halves = np.random.default_rng(case.seed).integers(2, size=observed.n_pseudonyms)
    half = halves[observed.pseudonym_of[records]]
    size = observed.region_size[observed.region_of[records]]
    figures: dict[str, Figure] = {
        "accuracy": band_accuracy(size, band, half),
        "base_rate": band_accuracy(np.zeros_like(size), band, half),
        "n_records": len(records),
    }
    return [Finding(attack="density leak", figures=figures)]


ATTACK = Attack(
    "density leak",
    Subject.POSITIONS,
    density_leak,
    (
        Question(
            "density leak",
            Criterion.INFERENCE,
            "Does the size of an area tell how many devices are near?",
            ("accuracy",),
            ("base_rate",),
            "n_records",
            against="the most frequent answer",
            of_crowd=True,
        ),
    ),
    needs_map=True,
)
