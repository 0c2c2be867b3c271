"""Places and ends of trips of which nothing is published."""

from collections.abc import Sequence
from typing import Annotated, Self

from pydantic import Field, model_validator

from anonymizer.algorithms.positions.protection import Circle, Polygon, TripRule, Zones
from anonymizer.settings.group import Group

Latitude = Annotated[float, Field(ge=-90, le=90, allow_inf_nan=False)]
Longitude = Annotated[float, Field(ge=-180, le=180, allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class CircleSettings(Group):
    """All that is within a distance of a place."""

    lat: Latitude
    lon: Longitude
    radius_m: Positive


class ZoneSettings(Group):
    """One `[[zones]]` table: a place where nothing is published; a circle or a polygon."""

    # Where somebody wants to be left alone is nothing for a log.
    circle: CircleSettings | None = Field(default=None, repr=False)
    """`{lat, lon, radius_m}`."""
    polygon: tuple[tuple[Latitude, Longitude], ...] | None = Field(default=None, repr=False)
    """Corners `[lat, lon]`, three or more; not across the antimeridian."""

    @model_validator(mode="after")
    def _one_shape(self) -> Self:
        if (self.circle is None) == (self.polygon is None):
            raise ValueError("must have either circle or polygon")
        _ = self.shape
        return self

    @property
    def shape(self) -> Circle | Polygon:
        """What the algorithms know of it."""
        if self.circle is not None:
            return Circle(self.circle.lat, self.circle.lon, self.circle.radius_m)
        return Polygon(self.polygon or ())


def zones_of(settings: Sequence[ZoneSettings]) -> Zones:
    """Return all zones of the settings as one."""
    shapes = [zone.shape for zone in settings]
    return Zones(
        circles=[shape for shape in shapes if isinstance(shape, Circle)],
        polygons=[shape for shape in shapes if isinstance(shape, Polygon)],
    )


class TripSettings(Group):
    """Protected trip ends: the first and the last part of every trip is not published.

    A trip begins when a device appears, appears again after silence, or moves on after
    dwelling; it ends with the next silence or dwelling.
    """

    enabled: bool = False
    """Everything is published `delay_s` later where this is on."""
    start_m: NotNegative = 200.0
    start_s: NotNegative = 60.0
    """Published is what lies this far from where the trip began *and* this long after."""
    end_m: NotNegative = 200.0
    end_s: NotNegative = 60.0
    """And from where the device is this far, having travelled on for this long, when the
    delay is over."""
    delay_s: Positive = 120.0
    """How long a position waits; at least `end_s`, and better by twice the time between two
    reports of a device. Of one that reports too rarely, or is slower than `end_m` / `delay_s`
    (someone on foot), nothing is published."""
    gap_s: Positive = 300.0
    """A device that was silent for longer begins a new trip."""
    dwell_m: Positive = 50.0
    dwell_s: Positive = 120.0
    """A device seen for so long within so many metres of one place ends its trip there."""
    max_held: Annotated[int, Field(ge=1)] = 600
    """Positions of one device that wait; beyond them the oldest yield, counted as overload.
    At least the reports that a device sends within `delay_s`."""

    @model_validator(mode="after")
    def _ends_can_be_seen(self) -> Self:
        _ = self.rule
        return self

    @property
    def rule(self) -> TripRule:
        """What the algorithms know of it."""
        return TripRule(**self.model_dump(exclude={"enabled"}))
