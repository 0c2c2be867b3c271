"""Attacks on pseudonyms over their whole life, and on the values published with them."""

from dataclasses import replace

import numpy as np

from anonymizer.audit.case import Case, RevealedValues, mean, of_any
from anonymizer.audit.findings import Adversary, Figure, Finding
from anonymizer.audit.mathematics.clustered_shares import n_independent
from anonymizer.audit.mathematics.indistinguishability import instants_of
from anonymizer.audit.mathematics.intersection import NEVER, Intersection, intersect
from anonymizer.audit.mathematics.matching import match
from anonymizer.audit.mathematics.pseudonym_linking import chain_lengths, link
from anonymizer.audit.mathematics.reachability import surviving_share
from anonymizer.audit.mathematics.subtraction import (
    covered_throughout,
    subtract_nodes,
    subtract_unchanged,
)
from anonymizer.audit.mathematics.value_linking import ValueLinks, link_values
from anonymizer.domain.arrays import BoolArray, FloatArray, IntArray

EFFECTIVE_MIN = 0.95
EFFECTIVE_P1 = 0.97
SIGMAS = 3.0
SUBTRACTION_RATIO = 2.0
SUBTRACTED_SHARES = (1.0, 0.5)
"""Nodes are subtracted that at least this share of a pseudonym's regions contains."""
COVERED_EVERY_S = 60.0
"""Length of a stretch, seconds. Nodes that some region covers in every stretch are subtracted from
all regions. With the defaults every group publishes at least as often."""
LINK_BEATS = 3.5
"""A successor is searched for within this many times the usual gap between two records. It is not
a whole number, so that rounding cannot decide."""


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


def subtraction(case: Case) -> list[Finding]:
    """Find moving devices among parked ones: subtract from their regions what never changes.

    Only pseudonyms are attacked whose device moves during their life, because the adversary looks
    for a device that does. What is subtracted is the same for a whole group: with few groups
    (`n_groups`) the finding is chance, however many records. `throughout_*` are of an adversary who
    subtracts what is covered throughout the release, from the regions of devices that move at any
    time; they have no bar.
    """
    observed = case.observed
    chosen = np.flatnonzero(_moves(case))
    bar = f"<= {SUBTRACTION_RATIO:g} x 1/nodes"
    throughout = _throughout(case)
    if not len(chosen):
        return [Finding(attack="subtraction", figures={"n_records": 0} | throughout, bar=bar)]
    life = observed.of_pseudonyms(chosen)
    size = life.region_size[life.region_of]
    left_of = {
        share: subtract_unchanged(
            life,
            case.truth,
            device_of=case.device_of[chosen],
            n_nodes=case.network.n_nodes,
            least_share=share,
        )
        for share in SUBTRACTED_SHARES
    }
    success_of = {share: mean(left.holds_device / left.n_nodes) for share, left in left_of.items()}
    # The adversary knows the kind of fleet, and therefore which of these succeeds more often.
    least_share = max(SUBTRACTED_SHARES, key=lambda share: success_of[share])
    left, success = left_of[least_share], success_of[least_share]
    one_in_n = mean(1 / size)
    figures: dict[str, Figure] = {
        "success": success,
        "one_in_n": one_in_n,
        "least_share": least_share,
        "nodes_median": float(np.median(size)),
        "nodes_left_median": float(np.median(left.n_nodes)),
        "share_alone": mean(left.holds_device & (left.n_devices == 1)),
        "share_below_k": mean(left.holds_device & (left.n_devices < life.k)),
        "n_records": life.n_records,
        "n_groups": len(np.unique(case.class_of[chosen])),
    }
    holds = success <= SUBTRACTION_RATIO * one_in_n
    return [Finding(attack="subtraction", figures=figures | throughout, bar=bar, holds=holds)]


def _throughout(case: Case) -> dict[str, Figure]:
    """Subtract what is covered throughout the release; None if that is nothing."""
    observed, n_nodes = case.observed, case.network.n_nodes
    subtracted = covered_throughout(observed, n_nodes, every_s=COVERED_EVERY_S)
    n_left, holds_device = subtract_nodes(
        observed, subtracted=subtracted, true_node=case.true_node_of(np.arange(observed.n_records))
    )
    chosen = _moving_devices(case)[case.device_of[observed.pseudonym_of]] & subtracted.any()
    size = observed.region_size[observed.region_of]
    return {
        "throughout_success": of_any(np.mean, (holds_device / n_left)[chosen]),
        "throughout_one_in_n": of_any(np.mean, (1 / size)[chosen]),
        "throughout_n_records": int(chosen.sum()),
    }


def _moving_devices(case: Case) -> BoolArray:
    """Return whether each device ever moves, as in `_moves`, shape (devices,)."""
    place = case.truth.place
    first = place[(place >= 0).argmax(axis=0), np.arange(place.shape[1])].astype(np.int64)
    code = np.unique(np.arange(place.shape[1]) * (case.network.n_nodes + 1) + place + 1)
    device, node = np.divmod(code, case.network.n_nodes + 1)
    away = (node > 0) & _is_away(case, first[device], node - 1)
    return np.bincount(device[away], minlength=place.shape[1]) > 0


def _moves(case: Case) -> BoolArray:
    """Return whether the device of each pseudonym moves during its life, shape (pseudonyms,).

    It moves if it is ever neither at its first node nor at a neighbour: a receiver's noise alone
    puts a device that stands still at one or the other.
    """
    observed = case.observed
    node = case.true_node_of(np.arange(observed.n_records)).astype(np.int64)
    starts = observed.first_record_of[:-1]
    first = np.repeat(node[starts], np.diff(observed.first_record_of))
    return np.logical_or.reduceat(_is_away(case, first, node), starts)


def _is_away(case: Case, first: IntArray, node: IntArray) -> BoolArray:
    """Return whether nodes are neither the first ones nor their neighbours, same shape."""
    network = case.network
    tail = np.repeat(np.arange(network.n_nodes), np.diff(network.first_arc_of))
    roads = tail * network.n_nodes + network.neighbour_of
    away: BoolArray = (node != first) & ~np.isin(first * network.n_nodes + node, roads)
    return away


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
    bar = f"min >= {EFFECTIVE_MIN:g} k, 1st percentile >= {EFFECTIVE_P1:g} k"
    right = matching.guess[known] == device_of[known]
    worth = n_independent(right, case.class_of[known])
    return [
        Finding(attack="matching", figures=figures, bar=bar, holds=holds),
        guessing("re-identification", right, 1 / k, n_independent=worth),
    ]


def guessing(
    attack: str, right: BoolArray | FloatArray, by_chance: FloatArray, **more: Figure
) -> Finding:
    """Compare the success of guesses (or its probability) with chance among k devices, 1/k.

    The guesses within one group depend on each other. Of k pseudonyms that cannot be
    distinguished, the number of right guesses has variance k * 1/k * (1 - 1/k) if each is guessed
    independently, and 1 = k * 1/k if they are guessed as a permutation. The variance over all is
    taken as the sum of 1/k, which covers both.
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
    """Find each device among its twins by its published values, finally by all of them together.

    Twins are pseudonyms with the same regions for life. The bar is the success of guessing among
    them: values that meet it reveal nothing more. No mode promises it: per-pseudonym values are
    the operator's choice, and this is their cost. A device without a twin is identified without
    its values, and is not counted.
    """
    sets: list[tuple[RevealedValues, ...]] = [(each,) for each in case.values]
    if len(case.values) > 1:
        sets.append(case.values)
    return [_linked_by(case, attributes) for attributes in sets]


def _linked_by(case: Case, attributes: tuple[RevealedValues, ...]) -> Finding:
    lives = _links(case, attributes)
    # Also at single instants: under `snapshot` hardly any two pseudonyms share a whole life.
    instant = _links(case, attributes, at_once=True)
    finding = guessing(
        "values",
        lives.success,
        lives.by_chance,
        instant_success=of_any(np.mean, instant.success),
        instant_expected=of_any(np.mean, instant.by_chance),
        instant_n=len(instant.success),
    )
    names = " + ".join(each.attribute.name for each in attributes)
    return finding.model_copy(update={"attribute": names})


def _links(
    case: Case, attributes: tuple[RevealedValues, ...], *, at_once: bool = False
) -> ValueLinks:
    """Link pseudonyms that have twins; with `at_once`, each record as a pseudonym of its own."""
    observed, class_of = case.observed, case.class_of
    if at_once:
        class_of = instants_of(observed).instant_of
        observed = replace(observed, first_record_of=np.arange(observed.n_records + 1))
    links = link_values(
        observed,
        class_of=class_of,
        published=np.stack([each.published for each in attributes], axis=1),
        true=np.stack([each.sensed for each in attributes], axis=1),
        span=np.array([each.attribute.hi - each.attribute.lo for each in attributes]),
    )
    hidden = links.by_chance < 1
    return ValueLinks(links.success[hidden], links.by_chance[hidden])
