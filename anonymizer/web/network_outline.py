"""Drawing of a road network for the live map: compact binary, simplified where it is too large.

All numbers are little-endian int32. Coordinates are millionths of a degree (11 cm). Roads have one
of four ranks by their speed, so that the map can draw motorways and side streets differently.
"""

from dataclasses import dataclass
from threading import Lock
from typing import NamedTuple, TypeAlias

import numpy as np

from anonymizer.domain.arrays import BoolArray, Int32Array, IntArray
from anonymizer.domain.longitudes import unwrapped, west_east
from anonymizer.domain.network import RoadNetwork

MOST_ROADS = 40_000
"""Largest number of roads in one answer; more are simplified."""

_MICRO = 1e6
_RANK_FROM_MPS = (9.0, 12.5, 15.5)
"""Lowest speeds of the ranks 1, 2 and 3: about 35, 45 and 55 km/h."""
_FIRST_CELL = 256
"""Side of the finest cell in millionths of a degree, about 30 m; each level doubles it."""
_EXACT, _SIMPLIFIED = 0, 1


class Bounds(NamedTuple):
    """A box in WGS84 degrees."""

    south: float
    west: float
    north: float
    east: float


@dataclass(frozen=True, slots=True, eq=False)
class _Level:
    """Roads as lines: `end` holds lat and lon of both ends, shape (roads, 4); `rank` (roads,)."""

    end: Int32Array
    rank: Int32Array

    def within(self, box: IntArray) -> BoolArray:
        """Return which lines may meet the box (south, west, north, east), shape (roads,)."""
        lat, lon = self.end[:, 0::2], self.end[:, 1::2]
        met: BoolArray = (lat.max(axis=1) >= box[0]) & (lat.min(axis=1) <= box[2])
        met &= (lon.max(axis=1) >= box[1]) & (lon.min(axis=1) <= box[3])
        return met


_Levels: TypeAlias = list[_Level]


class Outline:
    """The drawing of one network.

    Parameters
    ----------
    network
        With coordinates.
    most_roads
        Largest number of roads in one answer.

    Notes
    -----
    The simplified levels are made once, on demand, in O(m log m); thread-safe.
    """

    def __init__(self, network: RoadNetwork, *, most_roads: int = MOST_ROADS) -> None:
        self._most = most_roads
        # No road is drawn around the world: east of the date line, longitudes go on beyond 180.
        lon = unwrapped(network.lon, west_east(network.lon)[0])
        self._place = np.rint(np.column_stack([network.lat, lon]) * _MICRO).astype(np.int32)
        self._road, self._rank = _roads(network)
        self._levels: _Levels = []
        self._building = Lock()
        self.nodes = _bytes(self._place)
        """Latitude and longitude of every node, in order; regions refer to them."""
        south, west = self._place.min(axis=0) / _MICRO
        north, east = self._place.max(axis=0) / _MICRO
        self.bounds = Bounds(float(south), float(west), float(north), float(east))
        """Box around all nodes."""

    @property
    def is_small(self) -> bool:
        """Whether all roads fit into one answer."""
        return len(self._road) <= self._most

    def roads(self, bounds: Bounds | None = None) -> bytes:
        """Return the roads that meet a box, simplified until they fit into one answer.

        Parameters
        ----------
        bounds
            None: the whole network.

        Returns
        -------
        roads
            0 and then (node, node, rank) for each exact road, or 1 and then (lat, lon, lat, lon,
            rank) for each line of a simplified drawing.
        """
        if self.is_small:
            return self._exact(np.ones(len(self._road), bool))
        box = (np.array(bounds or self.bounds) * _MICRO).astype(np.int64)
        levels = self._simplified()
        chosen = levels[0].within(box)
        if chosen.sum() <= self._most:
            return self._exact(chosen)
        level = levels[0]
        for level in levels[1:]:
            chosen = level.within(box)
            if chosen.sum() <= self._most:
                break
        lines = np.column_stack([level.end[chosen], level.rank[chosen]])
        return _bytes(np.array([_SIMPLIFIED]), lines)

    def _exact(self, chosen: BoolArray) -> bytes:
        triples = np.column_stack([self._road[chosen], self._rank[chosen]])
        return _bytes(np.array([_EXACT]), triples)

    def _simplified(self) -> _Levels:
        """Return the drawings, the exact one first, each coarser than the one before."""
        with self._building:
            if not self._levels:
                levels = [_Level(self._place[self._road].reshape(-1, 4), self._rank)]
                cell = _FIRST_CELL
                while len(levels[-1].rank) > self._most:
                    levels.append(_coarser(self._place, self._road, self._rank, cell))
                    cell *= 2
                self._levels = levels
            return self._levels


def _roads(network: RoadNetwork) -> tuple[Int32Array, Int32Array]:
    """Return the two nodes of each road, shape (roads, 2), and its rank, shape (roads,)."""
    tail = np.repeat(np.arange(network.n_nodes, dtype=np.int32), np.diff(network.first_arc_of))
    once = tail < network.neighbour_of
    road = np.column_stack([tail[once], network.neighbour_of[once]])
    rank = np.searchsorted(_RANK_FROM_MPS, network.speed_mps[once], side="right")
    return road, rank.astype(np.int32)


def _coarser(place: Int32Array, road: Int32Array, rank: Int32Array, cell: int) -> _Level:
    """Return the drawing in which all nodes of a cell are merged into their mean.

    References
    ----------
    .. [1] J. Rossignac, P. Borrel, "Multi-resolution 3D approximations for rendering complex
       scenes", 1993: vertex clustering.
    """
    at = place.astype(np.int64) // cell
    key = (at[:, 0] << 32) + at[:, 1]
    _, cluster, size = np.unique(key, return_inverse=True, return_counts=True)
    middle = np.column_stack(
        [np.bincount(cluster, place[:, axis]) / size for axis in (0, 1)]
    ).astype(np.int32)
    ends = np.sort(cluster[road], axis=1)
    between = ends[:, 0] != ends[:, 1]
    pair, line = np.unique(ends[between], axis=0, return_inverse=True)
    highest = np.zeros(len(pair), np.int32)
    np.maximum.at(highest, line.ravel(), rank[between])
    return _Level(middle[pair].reshape(-1, 4), highest)


def _bytes(*arrays: Int32Array | IntArray) -> bytes:
    return b"".join(np.ascontiguousarray(array, "<i4").tobytes() for array in arrays)
