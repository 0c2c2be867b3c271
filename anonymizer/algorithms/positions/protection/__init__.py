"""Protection beyond k-anonymity: privacy zones and protected trip ends."""

from anonymizer.algorithms.positions.protection.owned_zones import OwnedZones
from anonymizer.algorithms.positions.protection.stand_ins import NO_ZONE, StandIns
from anonymizer.algorithms.positions.protection.trips import TripEnds, TripTick
from anonymizer.algorithms.positions.protection.zones import (
    IN_ZONE,
    ZonedNetwork,
    Zones,
    keep_out,
)
from anonymizer.domain.protection import Circle, Polygon, TripRule

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
