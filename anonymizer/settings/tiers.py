"""Tiers of settings: the few that every operator meets, and those that may still change.

All others are for experts: their defaults are right until somebody knows why not.
"""

from typing import Literal

Tier = Literal["essential", "expert", "experimental"]

ESSENTIAL = (
    "network.source",
    "broker.url",
    "broker.username",
    "broker.password_file",
    "broker.ca_file",
    "inputs.topic",
    "inputs.codec",
    "adka.k_values",
    "adka.k_floor",
    "region.mode",
    "session.beat_s",
    "trips.enabled",
    "http.port",
    "http.token_file",
    "http.run_by",
)
"""In the order of the settings file."""
EXPERIMENTAL = (
    "current",
    "output.forms",
    "region.districts",
    "watch",
)
"""Keys and whole tables: what they mean may change between two versions."""


def tier_of(key: str) -> Tier:
    """Return the tier of a key, written with its tables: `broker.url`."""
    if key in ESSENTIAL:
        return "essential"
    if any(f"{key}.".startswith(f"{each}.") for each in EXPERIMENTAL):
        return "experimental"
    return "expert"
