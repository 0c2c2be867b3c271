"""What an operator or a device wants hidden: the shapes of privacy zones, and the ends of trips."""

from dataclasses import dataclass

from anonymizer.domain.fixes import on_earth


@dataclass(frozen=True, slots=True, repr=False)
class Circle:
    """All positions within a distance of a place.

    Raises `ValueError` if the centre is not on the earth, or the radius is not above 0.
    """

    lat: float
    lon: float
    """`lat`, `lon`: WGS84 degrees."""
    radius_m: float
    """Great-circle distance; the rim is inside."""

    def __post_init__(self) -> None:
        _check_place(self.lat, self.lon)
        if not self.radius_m > 0:
            raise ValueError("a circle needs a radius above 0")


@dataclass(frozen=True, slots=True, repr=False)
class Polygon:
    """The area enclosed by straight lines in the plane of longitude and latitude.

    Raises `ValueError` if there are fewer than three different corners, if one is not on the earth,
    or if they span more than 180 degrees of longitude, which would leave open on which side of the
    earth the inside is. A zone across the antimeridian is two polygons, one on each side.
    """

    corners: tuple[tuple[float, float], ...]
    """Latitude and longitude of each corner in WGS84 degrees; the last is joined to the first.
    Lines may cross: a point is inside if a ray from it crosses an odd number of them (even-odd
    rule). The lines themselves are inside."""

    def __post_init__(self) -> None:
        for lat, lon in self.corners:
            _check_place(lat, lon)
        if len(set(self.corners)) < 3:
            raise ValueError("a polygon needs three different corners")
        lons = [lon for _, lon in self.corners]
        if max(lons) - min(lons) > 180:
            raise ValueError(
                "a polygon must not span more than 180 degrees of longitude; "
                "split one across the antimeridian in two"
            )


@dataclass(frozen=True, slots=True)
class TripRule:
    """Which positions of a trip are suppressed, and what a trip is.

    Raises `ValueError` if the delay is too short to observe that a trip continues.
    """

    start_m: float = 200.0
    start_s: float = 60.0
    """`start_m`, `start_s`: a position is passed on only if it is at least this far from the start
    of its trip, and this long after it."""
    end_m: float = 200.0
    end_s: float = 60.0
    delay_s: float = 120.0
    """`end_m`, `end_s`, `delay_s`: a position is passed on only if, `delay_s` later, the device is
    at least this far from it and has travelled on for this long (until the start of its current
    stay)."""
    gap_s: float = 300.0
    """A device that was silent for longer is on another trip."""
    dwell_m: float = 50.0
    dwell_s: float = 120.0
    """`dwell_m`, `dwell_s`: reports within this distance of the first of them are a stay; a stay
    that lasts this long ends the trip."""
    max_held: int = 600
    """Most positions held for one device; beyond that the oldest are suppressed."""

    def __post_init__(self) -> None:
        if not self.delay_s >= self.end_s:
            raise ValueError("delay_s must not be below end_s")


def _check_place(lat: float, lon: float) -> None:
    if not on_earth(lat, lon):
        raise ValueError("a zone must lie on the earth, in WGS84 degrees")
