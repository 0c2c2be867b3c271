"""Linking: which pseudonym follows one that has ended."""

import numpy as np

from anonymizer.audit.attack import ONE_IN_K, Attack, Criterion, Question, Subject, SummaryWords
from anonymizer.audit.case import Case, of_any
from anonymizer.audit.findings import Finding
from anonymizer.audit.guessing import GUESSING_BAR, guessing
from anonymizer.audit.mathematics.clustered_shares import n_independent
from anonymizer.audit.mathematics.pseudonym_linking import chain_lengths, link

LINK_BEATS = 3.5
"""A successor is searched for within this many times the usual gap between two records. It is not
a whole number, so that rounding cannot decide."""


def successor_within_s(case: Case) -> float:
    """Return for how long a device that changes its pseudonym may be out of sight."""
    observed = case.observed
    gap_s = np.diff(observed.time[observed.tick_of])[np.diff(observed.pseudonym_of) == 0]
    return LINK_BEATS * max(case.tick_s, float(np.median(gap_s)) if len(gap_s) else 0.0)


def linking(case: Case) -> list[Finding]:
    """Guess the successor of each ended pseudonym."""
    observed = case.observed
    within_s = successor_within_s(case)
    links = link(
        observed,
        case.network,
        device_of=case.device_of,
        within_s=within_s,
        rng=np.random.default_rng(case.seed),
    )
    by_chance = 1 / observed.largest_k_of[links.ended]
    chain = chain_lengths(links)
    right = links.guess == links.successor
    return [
        guessing(
            "linking",
            right,
            by_chance,
            n_independent=n_independent(right, case.class_of[links.ended]),
            within_s=within_s,
            chain_mean=of_any(np.mean, chain),
            chain_max=of_any(np.max, chain),
        )
    ]


ATTACK = Attack(
    "linking",
    Subject.POSITIONS,
    linking,
    (
        Question(
            "linking",
            Criterion.LINKABILITY,
            "Is the next made-up name of a device recognized?",
            ("success",),
            ("expected",),
            "n",
            against=ONE_IN_K,
            bar=GUESSING_BAR,
            promised_by=("session",),
            summary=SummaryWords(
                question="who", words="next pseudonym", figure="success", control="expected"
            ),
        ),
    ),
    needs_map=True,
    mount_in_short=linking,
)
