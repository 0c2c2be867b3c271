"""Attacks on the whole life of pseudonyms, and the bars for them.

What the values beside pseudonyms cost: who is found by them, and when.
"""

from dataclasses import replace

import numpy as np

from anonymizer.algorithms.attacks.indistinguishability import instants_of
from anonymizer.algorithms.attacks.intersection import NEVER, Intersection, intersect
from anonymizer.algorithms.attacks.linking import link
from anonymizer.algorithms.attacks.matching import match
from anonymizer.algorithms.attacks.reachability import surviving_share
from anonymizer.algorithms.attacks.value_linking import ValueLinks, link_values
from anonymizer.app.audit.case import Case, Values, mean, of_any
from anonymizer.app.audit.findings import Adversary, Figure, Finding
from anonymizer.domain.arrays import BoolArray, FloatArray

EFFECTIVE_MIN = 0.95
EFFECTIVE_P1 = 0.97
SIGMAS = 3.0
LINK_BEATS = 3.5
"""A successor is looked for within this many times the usual gap between two records. The half
keeps the limit off the beat, where rounding would decide."""


def session(case: Case) -> list[Finding]:
    """Count the devices that share the whole life of each pseudonym."""
    n, k = case.n_twins(), case.observed.largest_k_of
    figures: dict[str, Figure] = {
        "twins_min": int(n.min()),
        "twins_median": float(np.median(n)),
        "twins_to_k_min": float((n / k).min()),
        "share_below_k": mean(n < k),
    }
    return [Finding(attack="session", figures=figures, bar=">= k", holds=bool((n >= k).all()))]


def lasting(case: Case, adversary: Adversary) -> list[Finding]:
    """Find the devices that a pseudonym can be at all, and weigh them."""
    representatives = np.unique(case.class_of, return_index=True)[1]
    found = intersect(
        case.observed.of_pseudonyms(representatives),
        case.truth,
        n_nodes=case.network.n_nodes,
        assume_on_air=adversary == "on_air",
    )
    findings = [_intersection(case, found)]
    if case.has_map:
        findings += _matching(case, found)
    return [finding.model_copy(update={"adversary": adversary}) for finding in findings]


def linking(case: Case) -> list[Finding]:
    """Guess the successor of each ended pseudonym."""
    observed = case.observed
    gap_s = np.diff(observed.time[observed.tick_of])[np.diff(observed.pseudonym_of) == 0]
    within_s = LINK_BEATS * max(case.tick_s, float(np.median(gap_s)) if len(gap_s) else 0.0)
    links = link(
        observed,
        case.network,
        device_of=case.device_of,
        within_s=within_s,
        rng=np.random.default_rng(case.seed),
    )
    by_chance = 1 / observed.largest_k_of[links.ended]
    return [guessing("linking", links.guess == links.successor, by_chance, within_s=within_s)]


def velocity(case: Case) -> list[Finding]:
    """Measure what is left of a region when speeds are known."""
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
    return Finding(attack="intersection", figures=figures, bar="never below k", holds=holds)


def _matching(case: Case, found: Intersection) -> list[Finding]:
    matching = match(
        case.observed,
        class_of=case.class_of,
        candidates=found.candidates,
        device_of=case.device_of,
        rng=np.random.default_rng(case.seed),
    )
    judged = ~np.isnan(matching.largest)
    k = case.observed.largest_k_of[judged]
    effective = np.minimum(1 / matching.largest[judged], case.n_twins()[judged])
    # A percentile that lies between two pseudonyms is the worse one's.
    worst = np.sort(effective / k)[: len(k) // 100 + 1]
    figures: dict[str, Figure] = {
        "effective_min": of_any(np.min, effective),
        "effective_median": of_any(np.median, effective),
        "effective_to_k_min": of_any(np.min, worst),
        "effective_to_k_p1": of_any(np.max, worst),
        "posterior_of_truth_mean": of_any(np.mean, matching.of_truth[judged]),
        "n_pseudonyms": len(k),
    }
    holds = bool(worst[0] >= EFFECTIVE_MIN and worst[-1] >= EFFECTIVE_P1) if len(k) else None
    bar = f"min >= {EFFECTIVE_MIN:g} k, 1st percentile >= {EFFECTIVE_P1:g} k"
    return [
        Finding(attack="matching", figures=figures, bar=bar, holds=holds),
        guessing("re-identification", matching.guess[judged] == case.device_of[judged], 1 / k),
    ]


def guessing(
    attack: str, right: BoolArray | FloatArray, by_chance: FloatArray, **more: Figure
) -> Finding:
    """Hold the success of guesses (or its chance) to that of hiding among k, 1/k, and luck.

    The guesses of one group hang together. Of k pseudonyms that only chance can tell apart, the
    number guessed right has variance k * 1/k * (1 - 1/k) when each is guessed by itself, and
    1 = k * 1/k when they are guessed as a permutation. The variance of all is taken as the sum
    of 1/k, which covers both.
    """
    bar = f"<= mean(1/k) + {SIGMAS:g} sigma"
    figures: dict[str, Figure] = {"success": None, "expected": None, "sigma": None}
    holds = None
    n = len(right)
    if n:
        success, expected, sigma = mean(right), mean(by_chance), float(np.sqrt(by_chance.sum())) / n
        figures = {"success": success, "expected": expected, "sigma": sigma}
        holds = success <= expected + SIGMAS * sigma
    return Finding(attack=attack, figures=figures | {"n": n} | more, bar=bar, holds=holds)


def values(case: Case) -> list[Finding]:
    """Find each device among its twins by its values; by all attributes together at last.

    The bar is what guessing among the twins gives: values that meet it cost nothing. No mode
    promises it. Per-pseudonym values are the operator's own choice, and this is its price.
    Whoever has no twin is found without them, and is not counted.
    """
    looks: list[tuple[Values, ...]] = [(each,) for each in case.values]
    if len(case.values) > 1:
        looks.append(case.values)
    return [_found_by(case, look) for look in looks]


def _found_by(case: Case, look: tuple[Values, ...]) -> Finding:
    lives = _links(case, look)
    # At one instant: what is left to measure where lives differ, as under `snapshot`.
    instant = _links(case, look, at_once=True)
    finding = guessing(
        "values",
        lives.success,
        lives.by_chance,
        instant_success=of_any(np.mean, instant.success),
        instant_expected=of_any(np.mean, instant.by_chance),
        instant_n=len(instant.success),
    )
    attribute = " + ".join(each.attribute.name for each in look)
    return finding.model_copy(update={"attribute": attribute})


def _links(case: Case, look: tuple[Values, ...], *, at_once: bool = False) -> ValueLinks:
    """Link lives that have twins; or at once: each record as if it were a life of its own."""
    observed, class_of = case.observed, case.class_of
    if at_once:
        class_of = instants_of(observed).instant_of
        observed = replace(observed, first_record_of=np.arange(observed.n_records + 1))
    links = link_values(
        observed,
        class_of=class_of,
        published=np.stack([each.published for each in look], axis=1),
        true=np.stack([each.sensed for each in look], axis=1),
        span=np.array([each.attribute.hi - each.attribute.lo for each in look]),
    )
    hidden = links.by_chance < 1
    return ValueLinks(links.success[hidden], links.by_chance[hidden])
