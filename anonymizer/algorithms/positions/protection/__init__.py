"""Protection beyond k-anonymity: privacy zones and protected trip ends."""

from anonymizer.algorithms.positions.protection.owned_zones import OwnedZones
from anonymizer.algorithms.positions.protection.stand_ins import NO_ZONE, StandIns
from anonymizer.algorithms.positions.protection.trips import TripEnds, TripRule, TripTick
from anonymizer.algorithms.positions.protection.zones import (
    IN_ZONE,
    Circle,
    Polygon,
    ZonedNetwork,
    Zones,
    keep_out,
)

__all__ = [
    "IN_ZONE",
    "NO_ZONE",
    "Circle",
    "OwnedZones",
    "Polygon",
    "StandIns",
    "TripEnds",
    "TripRule",
    "TripTick",
    "ZonedNetwork",
    "Zones",
    "keep_out",
]
