"""Intersection and matching: who fits all regions of a pseudonym."""

from functools import partial

import numpy as np

from anonymizer.audit.attack import (
    NOTHING,
    ONE_IN_K,
    Attack,
    Criterion,
    Question,
    Subject,
    SummaryWords,
)
from anonymizer.audit.case import Case, mean, of_any
from anonymizer.audit.findings import Adversary, Figure, Finding
from anonymizer.audit.guessing import GUESSING_BAR, guessing
from anonymizer.audit.mathematics.clustered_shares import n_independent
from anonymizer.audit.mathematics.intersection import NEVER, Intersection, intersect
from anonymizer.audit.mathematics.matching import match
from anonymizer.domain.arrays import IntArray

EFFECTIVE_MIN = 0.95


EFFECTIVE_P1 = 0.97


def lasting(case: Case, adversary: Adversary) -> list[Finding]:
    """Find the possible devices of each pseudonym (intersection), and their probabilities."""
    representatives = np.unique(case.class_of, return_index=True)[1]
    found = intersect(
        case.observed.of_pseudonyms(representatives),
        case.local,
        n_nodes=case.network.n_nodes,
        assume_on_air=adversary == "on_air",
    )
    findings = [_intersection(case, found)]
    if case.local.device_of is not None:
        findings += _matching(case, case.local.device_of, found)
    return [finding.model_copy(update={"adversary": adversary}) for finding in findings]


def _intersection(case: Case, found: Intersection) -> Finding:
    time, observed = case.observed.time, case.observed
    figures: dict[str, Figure] = {}
    for what, at in (("below_k", found.below_k_at), ("alone", found.alone_at)):
        tick = at[case.class_of]
        ever = tick != NEVER
        age_s = time[tick[ever]] - time[observed.first_tick_of[ever]]
        figures[f"share_{what}"] = mean(ever)
        figures[f"age_{what}_s_min"] = of_any(np.min, age_s)
        figures[f"age_{what}_s_median"] = of_any(np.median, age_s)
    holds = bool((found.below_k_at == NEVER).all())
    return Finding(attack="intersection", figures=figures, bar=_BAR, holds=holds)


def _matching(case: Case, device_of: IntArray, found: Intersection) -> list[Finding]:
    matching = match(
        case.observed,
        class_of=case.class_of,
        candidates=found.candidates,
        device_of=device_of,
        rng=np.random.default_rng(case.seed),
    )
    known = ~np.isnan(matching.largest)
    k = case.observed.largest_k_of[known]
    effective = np.minimum(1 / matching.largest[known], case.n_twins()[known])
    # A percentile between two pseudonyms is that of the worse one.
    worst = np.sort(effective / k)[: len(k) // 100 + 1]
    figures: dict[str, Figure] = {
        "effective_min": of_any(np.min, effective),
        "effective_median": of_any(np.median, effective),
        "effective_to_k_min": of_any(np.min, worst),
        "effective_to_k_p1": of_any(np.max, worst),
        "posterior_of_truth_mean": of_any(np.mean, matching.of_truth[known]),
        "n_pseudonyms": len(k),
    }
    holds = bool(worst[0] >= EFFECTIVE_MIN and worst[-1] >= EFFECTIVE_P1) if len(k) else None
    right = matching.guess[known] == device_of[known]
    worth = n_independent(right, case.class_of[known])
    return [
        Finding(attack="matching", figures=figures, bar=_MATCHING_BAR, holds=holds),
        guessing("re-identification", right, 1 / k, n_independent=worth),
    ]


_BAR = "never below k"
_MATCHING_BAR = f"min >= {EFFECTIVE_MIN:g} k, 1st percentile >= {EFFECTIVE_P1:g} k"
_QUESTIONS = (
    Question(
        "intersection",
        Criterion.SINGLING_OUT,
        "Do the areas of a made-up name, taken together, leave fewer than k devices?",
        ("share_below_k",),
        chance=0,
        against=NOTHING,
        bar=_BAR,
        promised_by=("session",),
    ),
    Question(
        "matching",
        Criterion.SINGLING_OUT,
        "Does somebody who knows where all devices were find the one behind a made-up name?",
        ("posterior_of_truth_mean",),
        n="n_pseudonyms",
        exposed="effective_to_k_min",
        against=ONE_IN_K,
        bar=_MATCHING_BAR,
        promised_by=("session",),
        needs_map=True,
        borrows=("re-identification", "expected"),
    ),
    Question(
        "re-identification",
        Criterion.SINGLING_OUT,
        "Does the best guess find the device behind a made-up name?",
        ("success",),
        ("expected",),
        "n",
        against=ONE_IN_K,
        bar=GUESSING_BAR,
        promised_by=("session",),
        needs_map=True,
        summary=SummaryWords(
            question="who", words="own pseudonym", figure="success", control="expected"
        ),
    ),
)
_ON_AIR, _OFF_AIR = (partial(lasting, adversary=each) for each in ("on_air", "off_air"))
ON_AIR = Attack(
    "intersection and matching, on air",
    Subject.POSITIONS,
    _ON_AIR,
    _QUESTIONS,
    mount_in_short=_ON_AIR,
)
OFF_AIR = Attack(
    "intersection and matching, off air",
    Subject.POSITIONS,
    _OFF_AIR,
    _QUESTIONS,
    mount_in_short=_OFF_AIR,
)
