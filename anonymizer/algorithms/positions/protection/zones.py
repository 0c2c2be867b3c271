"""Privacy zones: places about which nothing is published.

A position inside is suppressed. What is published does not depend on where inside it was. A device
that passes through is counted and covered at a random node of the zone (see `stand_ins`); one that
stays leaves the density map, as if it were off the graph. The nodes inside stay in the network: a
zone that no region enters is a hole that anybody can find, and one through which nobody drives is a
place with too little traffic.

Not promised: that the zone itself stays secret. Devices that stay vanish in it, so a zone around
an address should be off centre and large enough to contain other addresses.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from anonymizer.algorithms.geodesy import chord_of_m, unit_vectors
from anonymizer.algorithms.kernels import kernel
from anonymizer.domain.arrays import BoolArray, FloatArray, Int32Array, IntArray, starts_of
from anonymizer.domain.network import RoadNetwork
from anonymizer.domain.protection import Circle, Polygon

IN_ZONE = -2
"""Node of a position inside a zone; negative, so it counts as off the graph."""

_ROUNDING = 1e-15
"""Added to the chords of circles on the unit sphere (6 nm), so that the rim is inside."""


class Zones:
    """Several zones; finds the positions that are inside any of them.

    Parameters
    ----------
    circles, polygons
        They may overlap.
    """

    def __init__(self, circles: Sequence[Circle] = (), polygons: Sequence[Polygon] = ()) -> None:
        self.centre = unit_vectors([c.lat for c in circles], [c.lon for c in circles])
        self.reach = np.array([chord_of_m(c.radius_m) for c in circles]) + _ROUNDING
        """`centre`, `reach`: unit vector of each circle's centre, and the chord of its radius."""
        self.first_corner_of = starts_of(np.array([len(p.corners) for p in polygons], np.int64))
        corners = chain.from_iterable(p.corners for p in polygons)
        self.corner = np.array(list(corners), np.float64).reshape(-1, 2)
        """`first_corner_of`, `corner`: corners of polygon p:
        `corner[first_corner_of[p]:first_corner_of[p + 1]]`, latitude and longitude."""

    @classmethod
    def joined(cls, parts: Sequence["Zones"]) -> "Zones":
        """Return the zones of all parts, of which there is one at least."""
        if len(parts) == 1:
            return parts[0]
        zones = cls()
        zones.centre = np.concatenate([each.centre for each in parts])
        zones.reach = np.concatenate([each.reach for each in parts])
        n_corners = np.concatenate([np.diff(each.first_corner_of) for each in parts])
        zones.first_corner_of = starts_of(n_corners)
        zones.corner = np.concatenate([each.corner for each in parts])
        return zones

    def __len__(self) -> int:
        """Return the number of zones."""
        return len(self.reach) + self.n_polygons

    @property
    def n_polygons(self) -> int:
        """Number of polygons."""
        return len(self.first_corner_of) - 1

    def contains(self, lat: FloatArray, lon: FloatArray) -> BoolArray:
        """Return which positions are inside, shape (n,).

        `lat`, `lon`: WGS84 degrees, longitude from -180 to 180, shape (n,). If there is any zone,
        coordinates that are not finite count as inside.

        Notes
        -----
        O(n x (circles + polygons)); the corners of a polygon are visited only for positions in
        its bounding box. Lines are straight in degrees, as drawn on a map of longitude and
        latitude. They differ from great circles by 3 m on a side of 10 km at 60 degrees latitude.
        """
        inside = np.zeros(len(lat), np.bool_)
        if not len(self):
            return inside
        known = np.isfinite(lat) & np.isfinite(lon)
        inside |= ~known
        lat, lon = np.where(known, lat, 0.0), np.where(known, lon, 0.0)
        _mark_in_circles(unit_vectors(lat, lon), self.centre, self.reach, inside)
        _mark_in_polygons(lat, lon, self.first_corner_of, self.corner, inside)
        return inside


def keep_out(node: Int32Array, *, closed: BoolArray, inside: BoolArray | None = None) -> Int32Array:
    """Return the node of each position, `IN_ZONE` for positions that must not be published.

    `node`: nearest node of each position, negative off the graph; `inside`: which positions are
    inside a zone, None if only their nodes are known, shape (n,) each; `closed`: which nodes are,
    shape (nodes,).

    Notes
    -----
    A position outside a zone whose nearest node is inside is kept out as well: by its region alone,
    it could not be distinguished from one inside.
    """
    hidden = (node >= 0) & closed[np.maximum(node, 0)]
    if inside is not None:
        hidden |= inside
    return np.where(hidden, np.int32(IN_ZONE), node)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ZonedNetwork:
    """A road network and its privacy zones; built by `anonymizer.networks.privacy_zones`.

    `network` includes nodes inside zones. `zone_of`: zone of each node inside one, negative
    outside, shape (nodes,). Zones that touch are one.
    """

    network: RoadNetwork
    zones: Zones
    zone_of: Int32Array

    @property
    def closed(self) -> BoolArray:
        """Which nodes are inside a zone, shape (nodes,)."""
        return self.zone_of >= 0

    @property
    def beside(self) -> Int32Array:
        """Zone of each node inside one or next to one, negative for the others, shape (nodes,).

        The nearest node of a position at the rim of a zone may be outside.
        """
        network, zone_of = self.network, self.zone_of
        tail = np.repeat(np.arange(network.n_nodes), np.diff(network.first_arc_of))
        entering = (zone_of[tail] < 0) & (zone_of[network.neighbour_of] >= 0)
        beside = zone_of.copy()
        beside[tail[entering]] = zone_of[network.neighbour_of[entering]]
        return beside

    def keep_out(
        self, node: Int32Array, lat: FloatArray | None = None, lon: FloatArray | None = None
    ) -> Int32Array:
        """Return the node of each position, `IN_ZONE` for positions that must not be published.

        `node` as above; `lat`, `lon`: WGS84 degrees, None if only the nodes are known, shape (n,).
        """
        inside = None if lat is None or lon is None else self.zones.contains(lat, lon)
        return keep_out(node, closed=self.closed, inside=inside)


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
                inside[i] = encloses(own, lat[i], lon[i])


@kernel
def encloses(corner: FloatArray, lat: float, lon: float) -> bool:
    """Whether a point is on a side of the polygon, or has an odd number of sides to its east."""
    odd = False
    lat_a, lon_a = corner[-1, 0], corner[-1, 1]
    for i in range(len(corner)):
        lat_b, lon_b = corner[i, 0], corner[i, 1]
        # Twice the signed area of a, b and the point. Without a division it is exact whenever
        # the products are.
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
