"""Ways of OpenStreetMap: which ones a kind of device uses, how fast, and in which directions."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

KMH = 1 / 3.6
"""Metres per second in a kilometre per hour."""

CLASS_SPEED_KMH = {
    "motorway": 110,
    "motorway_link": 60,
    "trunk": 90,
    "trunk_link": 50,
    "primary": 60,
    "primary_link": 40,
    "secondary": 50,
    "secondary_link": 40,
    "tertiary": 40,
    "tertiary_link": 30,
    "unclassified": 40,
    "residential": 30,
    "living_street": 10,
    "service": 15,
    "road": 40,
}
"""Highway classes for cars, with the speed of a road without a `maxspeed`.

Our choice: urban limits, or a little less where junctions are dense.
"""

_FAST = {"motorway", "motorway_link", "trunk", "trunk_link"}
_SLOW = {name: kmh for name, kmh in CLASS_SPEED_KMH.items() if name not in _FAST}
_PATHS_KMH = {
    "pedestrian": 5,
    "footway": 5,
    "steps": 3,
    "path": 5,
    "track": 15,
    "bridleway": 5,
    "cycleway": 18,
}


class Profile(NamedTuple):
    """The ways that a kind of device uses."""

    key: str
    """Tag that classifies ways."""
    speed_kmh: Mapping[str, float]
    """Speed by class; ways of other classes are left out."""
    limit_kmh: float
    """Nothing of this kind is faster."""
    one_way: bool
    """Whether it keeps to one-way roads."""


DRIVE = Profile("highway", CLASS_SPEED_KMH, 200, one_way=True)
PROFILES = {
    "drive": DRIVE,
    "walk": Profile("highway", {**_SLOW, **_PATHS_KMH}, 5, one_way=False),
    "cycle": Profile("highway", {**_SLOW, **_PATHS_KMH}, 18, one_way=True),
    "streets": Profile("highway", {**CLASS_SPEED_KMH, **_PATHS_KMH}, 200, one_way=True),
    "water": Profile("waterway", {"river": 15, "canal": 10, "fairway": 20}, 20, one_way=False),
}
"""By name. `streets` is for phones, whose owners drive, cycle and walk."""

DEFAULT_SPEED_KMH = 40
"""Speed if neither the class nor the limit is known."""

_NAMED_KMH = {"walk": 5, "living_street": 10, "urban": 50, "rural": 90, "motorway": 120}
_UNIT_KMH = {"": 1.0, "km/h": 1.0, "kmh": 1.0, "kph": 1.0, "mph": 1.609344, "knots": 1.852}
_LIMIT = re.compile(r"(?:[a-z]{2}:)?(?:zone:?)?(\d+(?:\.\d+)?)\s*([a-z/]*)")
_PLAUSIBLE_KMH = (1, 200)

FORWARD_ONLY = frozenset({"yes", "true", "1", "1.0", "y", "forward"})
BACKWARD_ONLY = frozenset({"-1", "-1.0", "reverse", "backward"})
"""Values of `oneway`, lower case. With any other (`no`, `reversible`, ...) both ways are open."""
BOTH_WAYS = frozenset({
    "no", "false", "0", "0.0", "n", "both", "none", "nan", "", "reversible", "alternating",
})  # fmt: skip
"""Others are words that nobody knows here: `T` is true, or against the line."""


def free_flow_mps(kind: str | None, maxspeed: str | None, profile: Profile = DRIVE) -> float:
    """Return the speed of a way from its class and its limit: the limit, else that of its class."""
    kmh = limit_kmh(maxspeed) if maxspeed else None
    if kmh is None:
        kmh = profile.speed_kmh.get(kind or "", DEFAULT_SPEED_KMH)
    return min(kmh, profile.limit_kmh) * KMH


@lru_cache(maxsize=4096)
def limit_kmh(maxspeed: str) -> float | None:
    """Return the limit of a `maxspeed` tag in km/h; None if it states no usable limit.

    Of several limits (`90;30;90`) the lowest counts. `walk` and implicit limits (`DE:urban`) have
    conventional values; `none`, `signals` and implausible values are not usable.
    """
    limits = [_one_limit_kmh(part.strip()) for part in re.split("[;|]", maxspeed.lower())]
    return min((limit for limit in limits if limit is not None), default=None)


def _one_limit_kmh(text: str) -> float | None:
    named = _NAMED_KMH.get(text.rpartition(":")[2])
    if named is not None:
        return named
    match = _LIMIT.fullmatch(text)
    if match is None or match[2] not in _UNIT_KMH:
        return None
    kmh = float(match[1]) * _UNIT_KMH[match[2]]
    slowest, fastest = _PLAUSIBLE_KMH
    return kmh if slowest <= kmh <= fastest else None


def directions(
    oneway: str | None, *, highway: str | None = None, junction: str | None = None
) -> tuple[bool, bool]:
    """Return whether a road may be driven in its drawing direction and in the opposite one.

    Motorways and roundabouts are one-way unless tagged otherwise.
    """
    implied = highway == "motorway" or junction in {"roundabout", "circular"}
    value = oneway.strip().lower() if oneway else ("yes" if implied else "no")
    return value not in BACKWARD_ONLY, value not in FORWARD_ONLY


def is_odd_direction(oneway: str | None) -> bool:
    """Return whether a value of `oneway` is a word that is not known: both ways are open."""
    return (oneway or "").strip().lower() not in FORWARD_ONLY | BACKWARD_ONLY | BOTH_WAYS
