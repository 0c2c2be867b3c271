"""Owned zones: privacy zones that concern the positions of one device alone."""

from collections.abc import Sequence

import numpy as np

from anonymizer.algorithms.geodesy import unit_vectors
from anonymizer.algorithms.kernels import kernel
from anonymizer.algorithms.positions.protection.zones import Zones, encloses
from anonymizer.domain.arrays import BoolArray, FloatArray, IntArray, starts_of


class OwnedZones:
    """The zones of several owners; finds the positions inside a zone of their own.

    Parameters
    ----------
    zones
        Zones of each owner, possibly none.
    """

    def __init__(self, zones: Sequence[Zones] = ()) -> None:
        self._first_circle_of = starts_of(np.array([len(z.reach) for z in zones], np.int64))
        self._first_polygon_of = starts_of(np.array([z.n_polygons for z in zones], np.int64))
        n_corners = [np.diff(z.first_corner_of) for z in zones]
        self._first_corner_of = starts_of(np.concatenate([np.zeros(0, np.int64), *n_corners]))
        self._centre = np.concatenate([np.zeros((0, 3)), *(z.centre for z in zones)])
        self._reach = np.concatenate([np.zeros(0), *(z.reach for z in zones)])
        self._corner = np.concatenate([np.zeros((0, 2)), *(z.corner for z in zones)])

    def contains(self, owner: IntArray, lat: FloatArray, lon: FloatArray) -> BoolArray:
        """Return which positions are inside a zone of their owner, shape (n,).

        `owner`: index of the owner of each position; `lat`, `lon`: WGS84 degrees, shape (n,); not
        finite counts as inside. O(n x (circles + corners of polygons) of an owner).
        """
        known = np.isfinite(lat) & np.isfinite(lon)
        lat, lon = np.where(known, lat, 0.0), np.where(known, lon, 0.0)
        inside = _inside(
            owner,
            lat,
            lon,
            unit_vectors(lat, lon),
            self._first_circle_of,
            self._centre,
            self._reach,
            self._first_polygon_of,
            self._first_corner_of,
            self._corner,
        )
        return inside | ~known


@kernel
def _inside(
    owner: IntArray,
    lat: FloatArray,
    lon: FloatArray,
    place: FloatArray,
    first_circle_of: IntArray,
    centre: FloatArray,
    reach: FloatArray,
    first_polygon_of: IntArray,
    first_corner_of: IntArray,
    corner: FloatArray,
) -> BoolArray:
    inside = np.zeros(len(owner), np.bool_)
    for i in range(len(owner)):
        own = owner[i]
        for c in range(first_circle_of[own], first_circle_of[own + 1]):
            dx = place[i, 0] - centre[c, 0]
            dy = place[i, 1] - centre[c, 1]
            dz = place[i, 2] - centre[c, 2]
            if dx * dx + dy * dy + dz * dz <= reach[c] * reach[c]:
                inside[i] = True
        for p in range(first_polygon_of[own], first_polygon_of[own + 1]):
            corners = corner[first_corner_of[p] : first_corner_of[p + 1]]
            if not inside[i] and encloses(corners, lat[i], lon[i]):
                inside[i] = True
    return inside
