"""Settings of what analysts get besides regions: their shapes, the network, and counts."""

import re
from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from anonymizer.settings.base import AtLeastOne, Group, NotNegative, Positive

_SHAPE = re.compile(r"nodes|roads|bbox|h3(:(1[0-5]|[0-9]))?")
_SHORTEST_S = 21_600.0
"""Of an interval in which trips begin and end: in an hour, many of 20 minutes do not."""
_RESTARTS = 1
"""Restarts of the gateway in a period for which the budget of `device_intervals` suffices."""


class ShapeSettings(Group):
    """What messages say of the place of a region, besides the names of its nodes.

    `nodes`: nothing more. `roads`: `geometry`, the roads between its nodes as a GeoJSON
    MultiLineString. `h3`: `cells`, the H3 cells of its nodes (extra `h3`), of resolution 9, with
    edges of about 200 m; `h3:8`: of another resolution. `bbox`: the box around its nodes, as west,
    south, east and north.
    """

    regions: str = "nodes"
    """Of the regions of mobile and of fixed devices."""

    @field_validator("regions")
    @classmethod
    def _is_a_shape(cls, regions: str) -> str:
        if _SHAPE.fullmatch(regions) is None:
            raise ValueError('must be "nodes", "roads", "bbox", "h3" or "h3:RESOLUTION", 0 to 15')
        return regions


class PublicNetworkSettings(Group):
    """The road network, published for those who read regions.

    It is retained beside `broker.status_topic`: a description on `anonymizer/network`, and GeoJSON
    on `anonymizer/network/parts/0`, ... It is public in any case: privacy zones are not shown.
    """

    enabled: bool = True


class CurrentSettings(Group):
    """The groups that live now, retained, for subscribers that come later.

    They are on `cloaked/current/0`, `cloaked/current/1`, ..., beside `output.topic`.
    """

    every_s: NotNegative = 0.0
    """How often they are published. 0: never."""


class TripsOutSettings(Group):
    """Trips with company: from which place to which, when, and on which roads.

    They are on `cloaked/trips`, beside `output.topic`. `[trips]` says what a trip is.
    """

    every_s: NotNegative = 0.0
    """Length of a window: each is published once, when the trips that ended in it are known. 3600
    is usual: the longer, the smaller the places. Longer trips are left out. 0: never. At least
    `counts.k` devices made the trips of a class, and took each of its roads; a place has at least
    twice as many nodes of the network."""


class CountSettings(Group):
    """Counts by cells: how many devices were where, and where they came from.

    They need no pseudonyms. They are made of true positions, so they add to what the regions
    reveal. With `privacy = "k"`, each figure is about at least k devices, and numbers of devices
    are multiples of k. With `dp` and `w-event` they have differential privacy (extra `dp`); `k`,
    speeds and dwell are then not used. They are on `cloaked/counts`, beside `output.topic`, and the
    cells are retained on `cloaked/counts/cells`, as GeoJSON.
    """

    privacy: Literal["k", "dp", "w-event"] | None = None
    """What the counts promise. `k`: at least k devices in each figure and in each difference. `dp`:
    whoever sees all counts of a period learns hardly more than if a device had not been there.
    `w-event`: likewise for any `period_s` in a row, wherever it begins, for counts without end.
    None: nothing is counted."""
    every_s: Positive = 60.0
    """Length of an interval, in seconds."""
    k: Annotated[int, Field(ge=2)] = 10
    """Fewest devices in any figure, and in any class of `trips_out`; `region.k_extra` is added."""
    streets_s: Annotated[NotNegative, Field(multiple_of=60)] = 0.0
    """Length of an hour, for traffic by street: 3600. `presence.ttl_s` and `max_behind_s` after its
    end, how many devices passed on each street, how fast, is at `/api/streets` (not with noise).
    Publish no hour by `anonymizer traffic` as well. An hour with more than five million passages (a
    device on a road) is left out. 0: never."""
    cells: Literal[1, 2, 4, 8, 16, 32, 64, 128, 256, 512] = 128
    """Number of cells of the network, of equally many nodes each. With `privacy = "k"`,
    neighbouring cells in which too few devices are seen are counted together."""
    epsilon: Annotated[float, Field(gt=0, le=100)] = 1.0
    """With `dp` and `w-event`: budget of a device for all counts of a period together. What is
    spent is kept in a file beside `store.path`, `anonymizer-budget.sqlite`, so that a restart does
    not renew it: do not delete it."""
    delta: Annotated[float, Field(gt=0, lt=1)] = 1e-6
    """Probability with which more than `epsilon` may be lost; well below 1 / devices."""
    period_s: Positive = 86_400.0
    """Period of the budget, in seconds, a multiple of `every_s`; a day begins at midnight UTC. With
    `w-event` it begins with every interval."""
    device_intervals: AtLeastOne | None = None
    """Most intervals of a period in which a device is counted: the first ones in which it is seen.
    Not where ids change, and not with `w-event`. The noise grows with the square root of it. The
    budget suffices for one restart of the gateway in a period, which forgets who was counted how
    often; after more, counts may be suppressed until the period ends. None: all."""
    trip_areas: Literal[0, 2, 4, 8, 16, 32] = 0
    """Number of areas between which trips are counted with `dp` and `w-event`, each of neighbouring
    cells. All noise is then larger, by 1.4 or (Laplace) 2. 0: trips are not counted."""
    trip_durations: bool = False
    """With `dp` and `w-event`: whether to count how long trips take that begin and end in an
    interval (6 h at least); with `trips.enabled` without both ends, `trips.ends_s` or more each.
    Makes all noise larger, as areas do, and with them by 1.7 or (Laplace) 3."""

    @model_validator(mode="after")
    def _periods_are_whole_intervals(self) -> Self:
        n = self.period_s / self.every_s
        if self.has_noise and (n < 1 or n != round(n)):
            raise ValueError("counts: period_s must be a multiple of every_s")
        if self.slides and self.device_intervals is not None:
            raise ValueError(
                'counts: with privacy = "w-event" every interval counts each device: leave out'
                " device_intervals"
            )
        if self.streets_s and self.has_noise:
            raise ValueError('counts: streets_s needs privacy = "k"')
        if self.trip_areas > self.cells:
            raise ValueError("counts: trip_areas must not exceed cells")
        if self.times_trips and self.every_s < _SHORTEST_S:
            raise ValueError(
                "counts: trip_durations tells of trips that begin and end in an interval: every_s"
                f" must be at least {_SHORTEST_S:g}"
            )
        return self

    @property
    def enabled(self) -> bool:
        """Whether anything is counted."""
        return self.privacy is not None

    @property
    def has_noise(self) -> bool:
        """Whether the counts have differential privacy."""
        return self.privacy in {"dp", "w-event"}

    @property
    def slides(self) -> bool:
        """Whether the budget is for any `period_s` in a row, wherever it begins."""
        return self.privacy == "w-event"

    @property
    def times_trips(self) -> bool:
        """Whether it is counted how long trips take."""
        return self.has_noise and self.trip_durations

    @property
    def intervals_of_device(self) -> int:
        """Intervals of a period in which a device is counted, at most (`dp` and `w-event`)."""
        n = self._n_intervals
        return n if self.device_intervals is None else min(n, self.device_intervals)

    @property
    def intervals_of_budget(self) -> int:
        """Intervals of a period in which a device may be counted for all that is known on disk."""
        return min(self._n_intervals, self.intervals_of_device * (1 + _RESTARTS))

    @property
    def _n_intervals(self) -> int:
        return round(self.period_s / self.every_s)
