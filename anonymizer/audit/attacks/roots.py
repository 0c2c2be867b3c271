"""Centre and prefix: the node from which a region was grown."""

import numpy as np

from anonymizer.audit.attack import BLIND, Attack, Criterion, Question, Subject, SummaryWords
from anonymizer.audit.case import Case, mean
from anonymizer.audit.findings import Figure, Finding
from anonymizer.audit.guessing import SIGMAS
from anonymizer.audit.mathematics.clustered_shares import n_independent
from anonymizer.audit.mathematics.region_center import (
    centres,
    guess_success,
    prefix_roots,
    success_by_traffic,
    suspected_nodes,
)

CENTRE_SUCCESS = 0.15


CENTRE_RATIO = 2.0


PREFIX_RATIO = 1.25


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
        bar = _bar(ratio, also)
        findings.append(Finding(attack=attack, figures=figures, bar=bar, holds=holds))
    return findings


def _bar(ratio: float, also: str = "") -> str:
    return f"<= {ratio:g} x chance{also}, + {SIGMAS:g} sigma"


ATTACK = Attack(
    "centre and prefix",
    Subject.POSITIONS,
    roots,
    (
        Question(
            "centre",
            Criterion.INFERENCE,
            "Is a device at the centre of its area?",
            ("success",),
            ("one_in_n", "by_traffic"),
            "n_places",
            against=BLIND,
            bar=_bar(CENTRE_RATIO, f", <= {CENTRE_SUCCESS:.0%} or chance"),
            promised_by=("snapshot", "session"),
            summary=SummaryWords(
                question="where", words="centre of the region", figure="success", control="one_in_n"
            ),
        ),
        Question(
            "prefix",
            Criterion.INFERENCE,
            "Is a device where its area seems to have been begun?",
            ("success",),
            ("one_in_n", "by_traffic"),
            "n_places",
            against=BLIND,
            bar=_bar(PREFIX_RATIO),
            promised_by=("snapshot", "session"),
            summary=SummaryWords(
                question="where", words="order of the region", figure="success", control="one_in_n"
            ),
        ),
    ),
    needs_map=True,
    mount_in_short=roots,
)
