"""Attacks on privacy zones: where a release has holes, or has lost traffic, or devices vanish.

They are mounted if the settings that the auditor gives declare the zones.
"""

from collections.abc import Iterable

import numpy as np

from anonymizer.algorithms.geodesy import haversine_m
from anonymizer.algorithms.positions.protection import Circle, Polygon
from anonymizer.audit.attack import Attack, Criterion, Question, Subject
from anonymizer.audit.attacks.linking import successor_within_s
from anonymizer.audit.case import Case, mean
from anonymizer.audit.findings import Figure, Finding
from anonymizer.audit.mathematics.zone_search import (
    SELDOM,
    GuessedPlaces,
    error_radii,
    find_drops,
    find_ends,
    find_holes,
    find_vanishing,
    n_covering,
)
from anonymizer.domain.arrays import FloatArray

LEAST_RADII = 3.0
_N_CHANCE = 100
"""Random guesses at all zones, for the error by chance."""


def zone_holes(case: Case) -> list[Finding]:
    """Guess the centres of the zones from the nodes that are never, or seldom, published."""
    if not case.zones:
        return []
    n = len(case.zones)
    covering = n_covering(case.observed, case.network.n_nodes)
    guesses = [find_holes(covering, case.network, n=n, seldom=seldom) for seldom in SELDOM]
    return [_finding(case, "zone holes", guesses)]


def zone_drops(case: Case) -> list[Finding]:
    """Guess the centres of the zones from where less is published than in an earlier release.

    The adversary knows the median radius of the zones.
    """
    if not case.zones or case.earlier is None:
        return []
    guess = find_drops(
        case.observed, case.earlier, case.network, radius_m=_radius_m(case), n=len(case.zones)
    )
    return [_finding(case, "zone drops", [guess])]


def zone_ends(case: Case) -> list[Finding]:
    """Guess the centres of the zones from where devices vanish and appear.

    The adversary knows the pseudonyms of every device, and the median radius of the zones.
    """
    if not case.zones:
        return []
    observed = case.observed
    ends = find_ends(observed, case.device_of, silent_s=successor_within_s(case))
    guess = find_vanishing(
        observed, ends, case.network, radius_m=_radius_m(case), n=len(case.zones)
    )
    return [_finding(case, "zone ends", [guess])]


def discs_of(shapes: Iterable[Circle | Polygon]) -> tuple[Circle, ...]:
    """Return a circle for each zone: itself, or one that contains the polygon."""
    return tuple(each if isinstance(each, Circle) else _disc_of(each) for each in shapes)


def _disc_of(polygon: Polygon) -> Circle:
    """Return the circle around the middle of the bounding box that contains all corners."""
    corners = np.array(polygon.corners)
    lat, lon = (corners.min(axis=0) + corners.max(axis=0)) / 2
    reach_m = haversine_m(lat, lon, corners[:, 0], corners[:, 1])
    return Circle(float(lat), float(lon), float(reach_m.max()))


def _finding(case: Case, attack: str, guesses: list[GuessedPlaces]) -> Finding:
    """Report the guesses with the smallest median error."""
    error = min((_error(case, guess) for guess in guesses), key=lambda each: float(np.median(each)))
    seen = np.unique(case.observed.node)
    rng = np.random.default_rng(case.seed)
    by_chance = [
        float(
            np.median(_error(case, GuessedPlaces(case.network.lat[nodes], case.network.lon[nodes])))
        )
        for nodes in rng.choice(seen, (_N_CHANCE, len(case.zones)))
    ]
    median = float(np.median(error))
    guessed = bool(np.isfinite(median))
    figures: dict[str, Figure] = {
        "centre_error_radii_median": median if guessed else None,
        "centre_error_radii_min": float(error.min()) if guessed else None,
        "share_within_1_radius": mean(error <= 1),
        "centre_error_radii_by_chance": mean(np.array(by_chance)),
        "n_zones": len(case.zones),
    }
    return Finding(attack=attack, figures=figures, bar=_BAR, holds=median >= LEAST_RADII)


def _radius_m(case: Case) -> float:
    return float(np.median([zone.radius_m for zone in case.zones]))


def _error(case: Case, guess: GuessedPlaces) -> FloatArray:
    centres = np.array([(zone.lat, zone.lon, zone.radius_m) for zone in case.zones])
    return error_radii(guess, *centres.T)


_BAR = f"median >= {LEAST_RADII:g} radii"


def _has_zones(case: Case) -> bool:
    return bool(case.zones)


HOLES = Attack(
    "zone holes",
    Subject.POSITIONS,
    zone_holes,
    (
        Question(
            "zone holes",
            Criterion.INFERENCE,
            "Are privacy zones found as holes?",
            ("share_within_1_radius",),
            n="n_zones",
            bar=_BAR,
        ),
    ),
    applies=_has_zones,
)
DROPS = Attack(
    "zone drops",
    Subject.POSITIONS,
    zone_drops,
    (
        Question(
            "zone drops",
            Criterion.INFERENCE,
            "Are privacy zones found by comparison with an earlier release?",
            ("share_within_1_radius",),
            n="n_zones",
            bar=_BAR,
        ),
    ),
    applies=_has_zones,
)
ENDS = Attack(
    "zone ends",
    Subject.POSITIONS,
    zone_ends,
    (
        Question(
            "zone ends",
            Criterion.INFERENCE,
            "Are privacy zones found where devices vanish?",
            ("share_within_1_radius",),
            n="n_zones",
            bar=_BAR,
        ),
    ),
    needs_map=True,
    applies=_has_zones,
)
