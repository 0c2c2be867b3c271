"""Privacy zones: places of which nothing is published.

A position inside is suppressed and its device leaves the density map, as if off the graph. The
nodes inside are taken out of the network that regions are made of (`anonymizer.networks`), so
that no region contains one or passes through.

Not promised: that nobody sees where a zone lies. Devices vanish at its border; a zone around
one address should be drawn off its centre, and large enough to hold others.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from anonymizer.algorithms.geodesy import chord_of_m, unit_vectors
from anonymizer.algorithms.kernels import kernel
from anonymizer.domain.arrays import BoolArray, FloatArray, Int32Array, IntArray
from anonymizer.domain.release import starts_of

IN_ZONE = -2
"""Stands for the node of a position inside a zone; negative, and so off the graph."""

_ROUNDING = 1e-15
"""Added to the chords of circles, on the unit sphere (6 nm): the rim is inside."""


@dataclass(frozen=True, slots=True, repr=False)
class Circle:
    """All that is within a distance of a place.

    Attributes
    ----------
    lat, lon
        WGS84 degrees.
    radius_m
        Along the great circle; what lies on the rim is inside.

    Raises
    ------
    ValueError
        If the centre is not on the earth or the radius not above 0.
    """

    lat: float
    lon: float
    radius_m: float

    def __post_init__(self) -> None:
        _check_place(self.lat, self.lon)
        if not self.radius_m > 0:
            raise ValueError("a circle needs a radius above 0")


@dataclass(frozen=True, slots=True, repr=False)
class Polygon:
    """What straight lines in the plane of longitude and latitude enclose.

    Attributes
    ----------
    corners
        Latitude and longitude of each, in WGS84 degrees; the last is joined to the first. Lines
        may cross: inside is what a ray leaves through an odd number of them (even-odd rule).
        What lies on a line is inside.

    Raises
    ------
    ValueError
        If there are fewer than three different corners, one is not on the earth, or they span
        more than 180 degrees of longitude: it could not be told on which side of the earth the
        inside is. A zone across the antimeridian is two polygons, one on each side.
    """

    corners: tuple[tuple[float, float], ...]

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


class Zones:
    """Tells which positions are inside any of several zones.

    Parameters
    ----------
    circles, polygons
        They may overlap.
    """

    def __init__(self, circles: Sequence[Circle] = (), polygons: Sequence[Polygon] = ()) -> None:
        self._centre = unit_vectors([c.lat for c in circles], [c.lon for c in circles])
        self._reach = np.array([chord_of_m(c.radius_m) for c in circles]) + _ROUNDING
        self._first_corner_of = starts_of(np.array([len(p.corners) for p in polygons], np.int64))
        corners = chain.from_iterable(p.corners for p in polygons)
        self._corner = np.array(list(corners), np.float64).reshape(-1, 2)

    def __len__(self) -> int:
        """Count the zones; with none, nothing is inside."""
        return len(self._reach) + len(self._first_corner_of) - 1

    def contains(self, lat: FloatArray, lon: FloatArray) -> BoolArray:
        """Return which positions are inside, shape (n,).

        Parameters
        ----------
        lat, lon
            WGS84 degrees, longitude from -180 to 180, shape (n,). What is not finite is inside
            as soon as there is a zone: doubt means suppress.

        Notes
        -----
        O(n x (circles + polygons)), and the corners of a polygon only for positions in its
        bounding box. Lines are straight in degrees, as a map in longitude and latitude draws
        them, not great circles: 3 m off on a side of 10 km at 60 degrees
        of latitude.
        """
        inside = np.zeros(len(lat), np.bool_)
        if not len(self):
            return inside
        known = np.isfinite(lat) & np.isfinite(lon)
        inside |= ~known
        lat, lon = np.where(known, lat, 0.0), np.where(known, lon, 0.0)
        _mark_in_circles(unit_vectors(lat, lon), self._centre, self._reach, inside)
        _mark_in_polygons(lat, lon, self._first_corner_of, self._corner, inside)
        return inside


def keep_out(node: Int32Array, *, closed: BoolArray, inside: BoolArray | None = None) -> Int32Array:
    """Return the node of each position, `IN_ZONE` for those of which nothing may be said.

    Parameters
    ----------
    node
        Nearest node, negative where off the graph, shape (n,).
    closed
        Which nodes are inside a zone, shape (nodes,).
    inside
        Which positions are, shape (n,); None where positions are known by their nodes alone.

    Notes
    -----
    A position outside whose nearest node is inside is kept out as well: were it counted at that
    node, the node by itself could become a region.
    """
    hidden = (node >= 0) & closed[np.maximum(node, 0)]
    if inside is not None:
        hidden |= inside
    return np.where(hidden, np.int32(IN_ZONE), node)


def _check_place(lat: float, lon: float) -> None:
    if not (-90 <= lat <= 90 and -180 <= lon <= 180):
        raise ValueError("a zone must lie on the earth, in WGS84 degrees")


@kernel
def _mark_in_circles(
    place: FloatArray, centre: FloatArray, reach: FloatArray, inside: BoolArray
) -> None:
    for i in range(len(place)):
        for c in range(len(reach)):
            dx = place[i, 0] - centre[c, 0]
            dy = place[i, 1] - centre[c, 1]
            dz = place[i, 2] - centre[c, 2]
            if dx * dx + dy * dy + dz * dz <= reach[c] * reach[c]:
                inside[i] = True
                break


@kernel
def _mark_in_polygons(
    lat: FloatArray,
    lon: FloatArray,
    first_corner_of: IntArray,
    corner: FloatArray,
    inside: BoolArray,
) -> None:
    for p in range(len(first_corner_of) - 1):
        own = corner[first_corner_of[p] : first_corner_of[p + 1]]
        south, north = own[:, 0].min(), own[:, 0].max()
        west, east = own[:, 1].min(), own[:, 1].max()
        for i in range(len(lat)):
            boxed = south <= lat[i] <= north and west <= lon[i] <= east
            if boxed and not inside[i]:
                inside[i] = _encloses(own, lat[i], lon[i])


@kernel
def _encloses(corner: FloatArray, lat: float, lon: float) -> bool:
    """Whether a point is on a line between corners or an odd number of them lie east of it."""
    odd = False
    lat_a, lon_a = corner[-1, 0], corner[-1, 1]
    for i in range(len(corner)):
        lat_b, lon_b = corner[i, 0], corner[i, 1]
        # Twice the signed area of a, b and the point: no division, so exact where products are.
        area = (lon_b - lon_a) * (lat - lat_a) - (lon - lon_a) * (lat_b - lat_a)
        if (
            area == 0
            and min(lat_a, lat_b) <= lat <= max(lat_a, lat_b)
            and min(lon_a, lon_b) <= lon <= max(lon_a, lon_b)
        ):
            return True
        if (lat_a > lat) != (lat_b > lat) and (area > 0) == (lat_b > lat_a):
            odd = not odd
        lat_a, lon_a = lat_b, lon_b
    return odd
