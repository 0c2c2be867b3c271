"""Settings of privacy zones and of protected trip ends."""

from collections.abc import Sequence
from math import ceil
from typing import TYPE_CHECKING, Annotated, Self

from pydantic import Field, field_validator, model_validator

from anonymizer.domain.protection import Circle, Polygon, TripRule
from anonymizer.settings.base import (
    Group,
    Latitude,
    Longitude,
    NotNegative,
    OutputTopic,
    Positive,
    check_filter,
    id_levels,
)

if TYPE_CHECKING:
    from anonymizer.algorithms.positions.protection import Zones

_REPORTS_HZ = 10.0
_FEWEST_HELD = 600
"""Positions of a device that may wait for the end of `trips.delay_s`: all, of ten a second."""


class CircleSettings(Group):
    """A circle around a place."""

    lat: Latitude
    lon: Longitude
    radius_m: Positive


class ZoneSettings(Group):
    """One `[[zones]]` table: an area about which nothing is published; a circle or a polygon."""

    # A log must not show where somebody wants privacy.
    circle: CircleSettings | None = Field(default=None, repr=False)
    """`{lat, lon, radius_m}`."""
    polygon: tuple[tuple[Latitude, Longitude], ...] | None = Field(default=None, repr=False)
    """Corners `[lat, lon]`, three or more. It must not cross the antimeridian."""

    @model_validator(mode="after")
    def _one_shape(self) -> Self:
        if (self.circle is None) == (self.polygon is None):
            raise ValueError("must have either circle or polygon")
        _ = self.shape
        return self

    @property
    def shape(self) -> Circle | Polygon:
        """The zone as the algorithms take it."""
        if self.circle is not None:
            return Circle(self.circle.lat, self.circle.lon, self.circle.radius_m)
        return Polygon(self.polygon or ())


def zones_of(settings: Sequence[ZoneSettings]) -> "Zones":
    """Return all zones of the settings as one object."""
    from anonymizer.algorithms.positions.protection import Zones  # noqa: PLC0415  with kernels

    shapes = [zone.shape for zone in settings]
    return Zones(
        circles=[shape for shape in shapes if isinstance(shape, Circle)],
        polygons=[shape for shape in shapes if isinstance(shape, Polygon)],
    )


class DeviceZoneSettings(Group):
    """Privacy zones that devices state themselves: each its own, in a retained message.

    Positions of a device inside a zone of its own are not published. A device may also take no
    part, or demand more company or larger places than others. Nothing about this is ever published.
    The broker stores it, and must let nobody but the gateway read it; in a cluster Kafka does, too.

    At most one in a hundred of `presence.max_devices` has zones of its own, in a cluster for each
    source. Beyond that, publishers with most of them yield first (a publisher is the first level of
    the id), and nothing is published about the devices left out, until there is room. A publisher
    of twenty times as many is hidden whole, until the gateway restarts or the cluster begins anew;
    what was counted and published before is not withdrawn, and no trips of windows under way are
    published, whoever made them.
    """

    topic: OutputTopic | None = None
    """`zones/{device}`, for example. `{device}` stands for the id of the device. Where several
    levels of an input's topic are the id, the same levels are named here:
    `zones/{user}/{device}`. None: devices state nothing. An empty retained message withdraws the
    zones of a device. While its message is not valid, is larger than 8 KiB or has more than 20
    zones, nothing is published about the device."""

    @field_validator("topic")
    @classmethod
    def _the_topic_names_the_device(cls, topic: str | None) -> str | None:
        if topic is None:
            return None
        check_filter(topic, "device")
        if not id_levels(topic):
            raise ValueError("topic: {device} is needed")
        return topic

    @property
    def enabled(self) -> bool:
        """Whether devices state anything."""
        return self.topic is not None

    @property
    def filter_topic(self) -> str:
        """The topic; empty if devices state nothing."""
        return self.topic or ""


class TripSettings(Group):
    """Protected trip ends: the first and the last part of every trip is not published.

    A trip begins when a device appears, reappears after a silence, or moves on after dwelling.
    It ends at the next silence or dwelling.
    """

    enabled: bool = False
    """Whether trip ends are protected; everything is then published `delay_s` later."""
    ends_m: NotNegative = 200.0
    ends_s: NotNegative = 60.0
    """A position is published only if it is this far from where the trip began *and* this long
    after it began; and only if, when the delay is over, the device is this far from it and has
    travelled on for this long."""
    delay_s: NotNegative = 120.0
    """How long a position waits: at least `ends_s`, better with twice the time between two reports
    of a device added. Nothing is published about a device that reports too rarely, or that is
    slower than `ends_m` / `delay_s` (a pedestrian). 0: nothing waits, and the starts of trips alone
    are protected."""
    gap_s: Positive = 300.0
    """A device that was silent for longer than this begins a new trip."""
    dwell_s: Positive = 120.0
    """A device that stays this long within 50 m of one place ends its trip there."""
    learn_days: Annotated[int, Field(ge=0, le=30)] = 0
    """A place where a device stopped on so many of the last 30 days is hidden as if the device had
    declared it (`device_zones`): 2 hides homes and workplaces from the third day on. It is learned
    in memory, also where `enabled` is false, and never written. 0: nothing is learned."""

    @model_validator(mode="after")
    def _ends_can_be_seen(self) -> Self:
        if 0 < self.delay_s < self.ends_s:
            raise ValueError("delay_s must be 0, or at least ends_s")
        return self

    @property
    def latency_s(self) -> float:
        """Seconds by which everything is published later."""
        return self.delay_s if self.enabled else 0.0

    @property
    def rule(self) -> TripRule:
        """The rule as the algorithms take it; a device may report ten times a second."""
        ends = (self.ends_m, self.ends_s) if self.delay_s else (0.0, 0.0)
        return TripRule(
            self.ends_m,
            self.ends_s,
            *ends,
            delay_s=self.delay_s,
            gap_s=self.gap_s,
            dwell_s=self.dwell_s,
            max_held=max(_FEWEST_HELD, ceil(_REPORTS_HZ * self.delay_s)),
        )

    @property
    def published_rule(self) -> TripRule:
        """What a trip is among positions that are passed on.

        Where the ends of trips are protected, a stop is a silence.
        """
        if not self.enabled:
            return self.rule
        gap_s = min(self.gap_s, self.dwell_s)
        return TripRule(gap_s=gap_s, dwell_s=self.dwell_s)
