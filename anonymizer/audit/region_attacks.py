"""Attacks on single records: what one published region reveals, and the bars for it."""

import numpy as np

from anonymizer.audit.case import Case, mean
from anonymizer.audit.findings import Figure, Finding
from anonymizer.audit.mathematics.clustered_shares import n_independent
from anonymizer.audit.mathematics.indistinguishability import instants_of
from anonymizer.audit.mathematics.presence import (
    OUTSIDE,
    devices_inside,
    devices_near,
    slot_in_region,
)
from anonymizer.audit.mathematics.region_center import (
    band_accuracy,
    centres,
    guess_success,
    prefix_roots,
    success_by_traffic,
    suspected_nodes,
)
from anonymizer.domain.arrays import IntArray

LEAST_K = 2
CENTRE_SUCCESS = 0.15
CENTRE_RATIO = 2.0
PREFIX_RATIO = 1.25
SIGMAS = 3.0


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
        "n_independent": n_independent(inside, _group_of(case)),
    }
    return [Finding(attack="soundness", figures=figures, bar="100 %", holds=bool(inside.all()))]


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
            enough[instants.instant_of], _group_of(case), instants.instant_of
        ),
    }
    bar = f">= k and >= {LEAST_K} devices"
    return [Finding(attack="k", figures=figures, bar=bar, holds=bool(enough.all()))]


def _group_of(case: Case) -> IntArray:
    """Return the group of each record: pseudonyms that share their regions are no cases alone."""
    return case.class_of[case.observed.pseudonym_of]


def roots(case: Case) -> list[Finding]:
    """Guess the node from which a region was grown.

    A region and the node of a device in it count once, however often they are published: a car park
    with a thousand reports shows once whether the guess is right, not a thousand times.

    By chance, the guess is right as often as blindly, or as often as it would be about the other
    devices, which are at busy nodes, whichever is more often. A guess among n suspects that is
    right with probability p has a variance of at most p / n. The guesses about a device that stays
    at one node count as one, because the regions of successive moments have nearly the same
    suspects.
    """
    observed, truth = case.observed, case.truth
    records = np.flatnonzero(np.isin(observed.pseudonym_of, case.sampled))
    places = np.stack((observed.region_of[records], case.true_node_of(records)))
    (region, node), first = np.unique(places, axis=1, return_index=True)
    pseudonym = observed.pseudonym_of[records[first]]
    device, group = case.device_of[pseudonym], case.class_of[pseudonym]
    stay_of = np.unique(np.stack((device, node)), axis=1, return_inverse=True)[1]
    distinct = np.unique(region)
    blind = 1 / observed.region_size[region]
    attacks = (
        (
            "centre",
            centres,
            CENTRE_RATIO,
            CENTRE_SUCCESS,
            f", <= {CENTRE_SUCCESS:.0%} or chance",
        ),
        ("prefix", prefix_roots, PREFIX_RATIO, 1.0, ""),
    )
    findings = []
    for attack, suspects_of, ratio, most, also in attacks:
        suspect = suspects_of(observed, case.network, regions=distinct)
        found = guess_success(observed, suspect, region=region, node=node)
        by_traffic = success_by_traffic(
            observed, suspect, truth.place, region=region, device=device
        )
        success, chance = mean(found), max(mean(blind), mean(by_traffic))
        n = suspected_nodes(observed, suspect)[region]
        most_of = np.where(n > 0, np.maximum(blind, by_traffic) / np.maximum(n, 1), 0.0)
        deviation = np.bincount(stay_of, np.sqrt(most_of))
        sigma = float(np.sqrt((deviation**2).sum())) / len(region)
        figures: dict[str, Figure] = {
            "success": success,
            "one_in_n": mean(blind),
            "by_traffic": mean(by_traffic),
            "sigma": sigma,
            "n_records": len(records),
            "n_places": len(region),
            "n_independent": n_independent(found, group, region),
        }
        holds = success <= min(max(most, chance), ratio * chance) + SIGMAS * sigma
        bar = f"<= {ratio:g} x chance{also}, + {SIGMAS:g} sigma"
        findings.append(Finding(attack=attack, figures=figures, bar=bar, holds=holds))
    return findings


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
        "n_independent": n_independent(n < k, _group_of(case), instants.instant_of),
    }
    return [Finding(attack="inversion", figures=figures, bar=">= k", holds=bool((n >= k).all()))]


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
