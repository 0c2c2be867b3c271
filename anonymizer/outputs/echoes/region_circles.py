"""The circles around regions, for formats that know no roads."""

from collections.abc import Sequence
from math import ceil
from typing import NamedTuple

import numpy as np

from anonymizer.algorithms.geodesy import haversine_m
from anonymizer.domain.arrays import FloatArray, IntArray
from anonymizer.domain.network import NodeIndex, RoadNetwork

_DIGITS = 5
"""Decimals of a degree, 1.1 m."""


class RegionCircle(NamedTuple):
    """A circle on the map: its centre in WGS84 degrees, and its radius in whole metres."""

    lat: float
    lon: float
    radius_m: int


class RegionCircles:
    """The circles around regions.

    Notes
    -----
    The centre is that of the box around the nodes of the region. The radius reaches every place on
    a road from which a node of the region is the nearer end: half of the longest road of each node
    is added to its distance. A device can be farther away by as much as its position is off the
    road (`network.snap_limit_m`).
    """

    def __init__(self, network: RoadNetwork) -> None:
        self._index = NodeIndex(network.node_id)
        self._lat = network.lat
        # From the first node, so that no region is cut by the date line.
        self._lon_0 = float(network.lon[0])
        self._lon = _wrapped(network.lon - self._lon_0)
        tail = np.repeat(np.arange(network.n_nodes), np.diff(network.first_arc_of))
        self._reach_m = np.zeros(network.n_nodes)
        np.maximum.at(self._reach_m, tail, network.length_m / 2)

    def of(self, region: Sequence[int | str]) -> RegionCircle:
        """Return the circle of a region, given the names of its nodes in any order."""
        node: IntArray = self._index.find(np.array(region))
        lat, lon = self._lat[node], self._lon[node]
        centre_lat = round(float(lat.min() + lat.max()) / 2, _DIGITS)
        middle = np.array([(lon.min() + lon.max()) / 2 + self._lon_0])
        centre_lon = round(float(_wrapped(middle)[0]), _DIGITS)
        distance_m = haversine_m(centre_lat, centre_lon, lat, lon + self._lon_0)
        radius_m = max(1, ceil(float((distance_m + self._reach_m[node]).max())))
        return RegionCircle(centre_lat, centre_lon, radius_m)


def _wrapped(degrees: FloatArray) -> FloatArray:
    """Return longitudes from -180 up to 180, same shape."""
    return (degrees + 180.0) % 360.0 - 180.0
