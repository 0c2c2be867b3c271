"""Protection beyond k-anonymity: privacy zones, protected trip ends and rounded times."""

from anonymizer.algorithms.positions.protection.rounding import round_time
from anonymizer.algorithms.positions.protection.trips import TripEnds, TripRule, TripTick
from anonymizer.algorithms.positions.protection.zones import (
    IN_ZONE,
    Circle,
    Polygon,
    Zones,
    keep_out,
)

__all__ = [
    "IN_ZONE",
    "Circle",
    "Polygon",
    "TripEnds",
    "TripRule",
    "TripTick",
    "Zones",
    "keep_out",
    "round_time",
]
