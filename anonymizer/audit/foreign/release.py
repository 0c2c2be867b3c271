"""Releases of others, as arrays: points of ids, and counts by area and time."""

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np

from anonymizer.algorithms.geodesy import EARTH_RADIUS_M
from anonymizer.domain.arrays import FloatArray, IntArray
from anonymizer.domain.network import RoadNetwork
from anonymizer.domain.trace import Trace

_TURN = 360.0
_MOST_CELLS = 20_000_000


class Plane(NamedTuple):
    """A plane that touches the earth: metres to the east and north of `lat`, `lon` in degrees."""

    lat: float
    lon: float

    def of(self, lat: FloatArray, lon: FloatArray) -> FloatArray:
        """Return positions in metres, shape (n, 2)."""
        east = (lon - self.lon + _TURN / 2) % _TURN - _TURN / 2
        shrunk = np.cos(np.radians(self.lat))
        metres: FloatArray = EARTH_RADIUS_M * np.radians(
            np.stack([east * shrunk, lat - self.lat], axis=-1)
        )
        return metres


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PointRelease:
    """Positions with ids."""

    trace: Trace
    """Who was published where and when; of cells, their centres."""
    form: str
    """What it was read as, in words."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BareRelease:
    """Positions without ids."""

    trace: Trace
    """Who was published where and when; its ids are runs that were joined here."""
    form: str
    """What it was read as, in words."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CountRelease:
    """Counts by area and time."""

    area_of: IntArray
    time_of: IntArray
    """`area_of`, `time_of`: index of the area and of the time of each count, shape (n,); -1 is the
    total over all."""
    count: FloatArray
    """NaN where it is struck out, shape (n,)."""
    n_areas: int
    n_times: int
    """`n_areas`, `n_times`: numbers of both; times rise."""
    struck: tuple[int, int]
    """Least and greatest count that is struck out."""
    place: FloatArray | None = None
    """Latitude and longitude of the middle of each area in degrees, shape (areas, 2); None:
    unknown."""
    start_s: FloatArray | None = None
    """When each time begins, unix seconds, shape (times,); None: unknown."""

    @property
    def is_noisy(self) -> bool:
        """Whether some count is below 0 or no whole number, as with differential privacy."""
        shown = self.count[~np.isnan(self.count)]
        return bool(((shown < 0) | (shown != np.round(shown))).any())

    def table(self) -> FloatArray | None:
        """Return counts without totals, shape (areas, times): 0 where none is listed.

        None: it would be too large.
        """
        if self.n_areas * self.n_times > _MOST_CELLS:
            return None
        parts = (self.area_of >= 0) & (self.time_of >= 0)
        table = np.zeros((self.n_areas, self.n_times))
        np.add.at(table, (self.area_of[parts], self.time_of[parts]), self.count[parts])
        return table


AnyRelease: TypeAlias = PointRelease | BareRelease | CountRelease
"""A release of any form."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ForeignCase:
    """What attacks are mounted on."""

    release: AnyRelease
    """What was published."""
    truth: Trace | None
    """Where its persons were; None: nobody knows."""
    network: RoadNetwork | None
    """The roads; None: nobody knows."""
    near_m: float = 200.0
    """A place is found if the guess is no farther from it."""
    seed: int = 0
    """Equal cases give equal findings."""
    owner: IntArray | None = None
    """Person of the truth of each id, -1 for none, as the publisher knows it, shape (ids,); None:
    it is found by where they were."""

    @property
    def points(self) -> Trace:
        """Who was published where and when, of a release of points."""
        if isinstance(self.release, PointRelease | BareRelease):
            return self.release.trace
        raise TypeError("a release of counts has no points")

    @property
    def counts(self) -> CountRelease:
        """The release, if it is one of counts."""
        if isinstance(self.release, CountRelease):
            return self.release
        raise TypeError("a release of points has no counts")

    @property
    def people(self) -> Trace:
        """Where the persons were, where that is known."""
        if self.truth is None:
            raise TypeError("nobody knows the truth")
        return self.truth


def plane_of(trace: Trace) -> Plane:
    """Return the plane that touches the earth in the middle of a trace."""
    lon = np.radians(trace.lon)
    middle = np.degrees(np.arctan2(np.sin(lon).mean(), np.cos(lon).mean()))
    return Plane(float(np.median(trace.lat)), float(middle))
