"""Drawn roads: their corners between the ends, and nodes added where they are long."""

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anonymizer.algorithms.geodesy import haversine_m, unit_vectors
from anonymizer.domain.arrays import BoolArray, FloatArray, IntArray
from anonymizer.domain.fixes import on_earth
from anonymizer.domain.network import CHARACTER_BYTES, NodeNames
from anonymizer.errors import InputError
from anonymizer.unfolding import check_width

MAX_SPACING_M = 100.0
"""Metres of drawn road between nodes, at most, unless a caller says otherwise."""

TWIN_M = 25.0
"""Two drawings between the same nodes whose middles are no farther apart are one road, unless a
caller says otherwise: the two directions of a street, as SUMO and directed graphs draw them."""

_LEAST_PIECE_M = 5.0
"""No road is cut in shorter pieces only because it would be parallel to another, or a loop."""
_OF_LOOP = 3
"""Pieces of a loop, at the least."""

_SAME_DEG = 1e-6
"""A decimetre: corners as close to the end of their road are that end."""


class Corners(NamedTuple):
    """Corners of roads between their ends, in the direction in which each road is drawn."""

    first_corner_of: IntArray
    """Compressed sparse rows, shape (roads + 1,)."""
    lat: FloatArray
    lon: FloatArray
    """`lat`, `lon`: WGS84 degrees, shape (corners,)."""


class Nodes(NamedTuple):
    """Nodes: their names and WGS84 degrees, shape (n,)."""

    node_id: NodeNames
    lat: FloatArray
    lon: FloatArray


class Arcs(NamedTuple):
    """Arcs of a network under construction, all of shape (arcs,)."""

    tail: IntArray
    head: IntArray
    length_m: FloatArray
    speed_mps: FloatArray
    drivable: BoolArray
    road_of: IntArray
    """The drawn road that each arc follows."""
    along: BoolArray
    """Whether it follows that road in the direction in which it is drawn."""
    way: IntArray
    """Way of OpenStreetMap, 0 for none."""


def no_corners(n_roads: int) -> Corners:
    """Return the corners of straight roads."""
    return Corners(np.zeros(n_roads + 1, np.int64), np.zeros(0), np.zeros(0))


def corners_of_lines(
    first_point_of: IntArray, lat: FloatArray, lon: FloatArray, nodes: Nodes, ends: IntArray
) -> Corners:
    """Return the corners of lines that may begin and end at their nodes, or near them.

    Parameters
    ----------
    first_point_of, lat, lon
        Points of each line, possibly none, in compressed sparse rows.
    nodes, ends
        The two nodes of each road, shape (roads, 2). A line that begins nearer to the second one
        is turned round.

    Raises
    ------
    InputError
        If a point is not on the earth.
    """
    if not on_earth(lat, lon).all():
        raise InputError("the shape of a road is not in WGS84 degrees")
    if np.isnan(nodes.lat).any():
        return no_corners(len(ends))
    drawn = np.flatnonzero(np.diff(first_point_of))
    first, last = first_point_of[:-1][drawn], first_point_of[1:][drawn] - 1
    u, v = ends[drawn].T
    near = _metres(nodes, u, lat[first], lon[first]) + _metres(nodes, v, lat[last], lon[last])
    far = _metres(nodes, v, lat[first], lon[first]) + _metres(nodes, u, lat[last], lon[last])
    turned = np.zeros(len(ends), np.bool_)
    turned[drawn] = far < near
    point = ranges(first_point_of[:-1], np.diff(first_point_of), turned)
    lat, lon = lat[point], lon[point]
    road = np.repeat(np.arange(len(ends)), np.diff(first_point_of))
    inner = np.ones(len(point), np.bool_)
    for node in ends[road].T:
        away = np.abs(lat - nodes.lat[node]) + np.abs(lon - nodes.lon[node])
        inner &= away > _SAME_DEG
    n_corners = np.bincount(road[inner], minlength=len(ends))
    return Corners(np.concatenate(([0], np.cumsum(n_corners))), lat[inner], lon[inner])


def read_wkt(lines: Sequence[str]) -> tuple[IntArray, FloatArray, FloatArray]:
    """Return the points of lines in well-known text, longitude first; empty text has none.

    Raises `InputError` if a text is not a LINESTRING.
    """
    first_point_of = np.zeros(len(lines) + 1, np.int64)
    numbers: list[str] = []
    for i, text in enumerate(lines):
        found = _LINE.fullmatch(text)
        if text and found is None:
            raise InputError("the geometry of a road is not a LINESTRING")
        points = found[1].split(",") if found is not None else []
        first_point_of[i + 1] = len(points)
        numbers.extend(number for point in points for number in point.split()[:2])
    try:
        lon, lat = np.array(numbers, np.float64).reshape(-1, 2).T
    except ValueError as error:
        raise InputError("the geometry of a road is not a LINESTRING of numbers") from error
    points_before = np.cumsum(first_point_of)
    if points_before[-1] != len(lat):
        raise InputError("the geometry of a road has a point without a latitude")
    return points_before, lat.copy(), lon.copy()


_LINE = re.compile(r"\s*LINESTRING(?: ?Z| ?M| ?ZM)?\s*\((.*)\)\s*", re.IGNORECASE)


def are_points(nodes: Nodes, ends: IntArray, corners: Corners) -> BoolArray:
    """Return which drawn roads lead from a node to itself and are too short for nodes in between.

    `ends`: the nodes of each, shape (n, 2).
    """
    is_short: BoolArray = _Line.of(nodes, ends, corners).length_m < _OF_LOOP * _LEAST_PIECE_M
    is_loop: BoolArray = ends[:, 0] == ends[:, 1]
    return np.logical_and(is_short, is_loop)


def with_nodes_between(
    nodes: Nodes, arcs: Arcs, corners: Corners, *, max_spacing_m: float, twin_m: float = TWIN_M
) -> tuple[Nodes, Arcs, Corners]:
    """Return the nodes and arcs after cutting roads into pieces of equal length.

    Parameters
    ----------
    nodes, arcs, corners
        The network as drawn. Each road is listed as an arc from both of its ends.
    max_spacing_m
        Length of a piece along the drawn road, at most; 0: roads stay whole.
    twin_m
        As `TWIN_M`.

    Returns
    -------
    nodes
        The given ones, and the new ones behind them. Where names are integers, new nodes have
        negative ones, as editors of OpenStreetMap number nodes that are not in its database.
    arcs
        In the order of the given ones, each replaced by its pieces; `road_of` is the piece.
    corners
        Of each piece.

    Notes
    -----
    A network has neither loops nor parallel roads. So a loop is cut in three at least, and a road
    in two where a shorter one joins its ends, unless a piece would be shorter than
    `_LEAST_PIECE_M`. O(arcs log arcs + corners), vectorized.
    """
    ends = np.zeros((len(corners.first_corner_of) - 1, 2), np.int64)
    ends[arcs.road_of[arcs.along]] = np.stack((arcs.tail, arcs.head), axis=1)[arcs.along]
    line = _Line.of(nodes, ends, corners)
    arcs = _with_twins_joined(arcs, ends, line, twin_m)
    arcs = arcs._replace(
        length_m=np.where(np.isnan(arcs.length_m), line.length_m[arcs.road_of], arcs.length_m)
    )
    n_pieces = np.ones(len(ends), np.int64)
    if max_spacing_m:
        used = np.unique(arcs.road_of)
        n_pieces[used] = np.maximum(np.ceil(line.length_m[used] / max_spacing_m - 1e-9), 1)
        n_pieces = np.maximum(n_pieces, _fewest_pieces(arcs, ends, n_pieces, line.length_m))
    road = np.repeat(np.arange(len(ends)), n_pieces - 1)
    before = np.cumsum(n_pieces - 1) - (n_pieces - 1)
    place = np.arange(len(road)) - before[road] + 1
    lat, lon = line.at(road, line.length_m[road] * place / n_pieces[road])
    whole = Nodes(
        _with_new_names(nodes.node_id, len(road)),
        np.concatenate((nodes.lat, lat)),
        np.concatenate((nodes.lon, lon)),
    )
    first_new = len(nodes.node_id) + before
    return whole, _cut(arcs, n_pieces, first_new), line.cut(n_pieces)


def _fewest_pieces(
    arcs: Arcs, ends: IntArray, n_pieces: IntArray, length_m: FloatArray
) -> IntArray:
    """Return in how many pieces each road must be cut at least, or it would be left out."""
    low, high = np.sort(ends, axis=1).T
    pair = low * (int(ends.max(initial=-1)) + 1) + high
    is_used, is_driven = np.zeros((2, len(ends)), np.bool_)
    is_used[arcs.road_of] = True
    is_driven[arcs.road_of[arcs.drivable]] = True
    # One road stays whole between two nodes: the shortest that may be driven.
    whole = np.flatnonzero(is_used & (n_pieces == 1))
    whole = whole[np.lexsort((length_m[whole], ~is_driven[whole], pair[whole]))]
    stays = n_pieces > 1
    stays[whole[np.flatnonzero(np.diff(pair[whole], prepend=-1))]] = True
    fewest = np.where(stays, 1, 2)
    fewest[ends[:, 0] == ends[:, 1]] = _OF_LOOP
    fewest[length_m < fewest * _LEAST_PIECE_M] = 1
    return np.where(is_used, fewest, 1)


def corners_of_arcs(corners: Corners, arcs: Arcs, kept: IntArray) -> Corners:
    """Return the corners of those arcs whose tail is below their head, in their own direction."""
    road = arcs.road_of[kept]
    n_corners = np.diff(corners.first_corner_of)[road]
    n_corners[arcs.tail[kept] > arcs.head[kept]] = 0
    corner = ranges(corners.first_corner_of[:-1][road], n_corners, ~arcs.along[kept])
    first = np.concatenate(([0], np.cumsum(n_corners)))
    return Corners(first, corners.lat[corner], corners.lon[corner])


def ranges(first: IntArray, n: IntArray, turned: BoolArray | None = None) -> IntArray:
    """Return the indices of consecutive items, range after range; turned ranges backwards."""
    which = np.repeat(np.arange(len(n)), n)
    step = np.arange(len(which)) - (np.cumsum(n) - n)[which]
    if turned is not None:
        step = np.where(turned[which], n[which] - 1 - step, step)
    return first[which] + step


class _Line(NamedTuple):
    """The drawn lines of roads with their ends, and the metres from the beginning to each point."""

    first_point_of: IntArray
    lat: FloatArray
    lon: FloatArray
    from_start_m: FloatArray
    length_m: FloatArray

    @classmethod
    def of(cls, nodes: Nodes, ends: IntArray, corners: Corners) -> "_Line":
        n_corners = np.diff(corners.first_corner_of)
        first_point_of = np.concatenate(([0], np.cumsum(n_corners + 2)))
        first, last = first_point_of[:-1], first_point_of[1:] - 1
        inner = np.ones(int(first_point_of[-1]), np.bool_)
        inner[first] = inner[last] = False
        lat, lon = np.empty(len(inner)), np.empty(len(inner))
        for points, of_node, of_corner in (
            (lat, nodes.lat, corners.lat),
            (lon, nodes.lon, corners.lon),
        ):
            points[first], points[last] = of_node[ends].T
            points[inner] = of_corner
        step_m = np.zeros(len(lat))
        step_m[1:] = haversine_m(lat[:-1], lon[:-1], lat[1:], lon[1:])
        step_m[first] = 0.0
        passed_m = np.cumsum(step_m)
        from_start_m = passed_m - np.repeat(passed_m[first], n_corners + 2)
        return cls(first_point_of, lat, lon, from_start_m, from_start_m[last])

    def at(self, road: IntArray, metres: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the places so many metres along roads, 0 to their lengths, shape (n,)."""
        # Searches one rising column: roads one behind the other, with room between them.
        room_m = self.length_m + 1.0
        offset_m = np.cumsum(room_m) - room_m
        column = self.from_start_m + np.repeat(offset_m, np.diff(self.first_point_of))
        a = np.searchsorted(column, offset_m[road] + metres, side="right") - 1
        a = np.clip(a, self.first_point_of[road], self.first_point_of[road + 1] - 2)
        gap_m = self.from_start_m[a + 1] - self.from_start_m[a]
        share = (metres - self.from_start_m[a]) / np.where(gap_m > 0, gap_m, 1.0)
        share = np.clip(share, 0.0, 1.0)[:, None]
        start = unit_vectors(self.lat[a], self.lon[a])
        end = unit_vectors(self.lat[a + 1], self.lon[a + 1])
        x, y, z = (start + share * (end - start)).T
        return np.degrees(np.arctan2(z, np.hypot(x, y))), np.degrees(np.arctan2(y, x))

    def cut(self, n_pieces: IntArray) -> Corners:
        """Return the corners of the pieces, road by road."""
        inner = np.ones(len(self.lat), np.bool_)
        inner[self.first_point_of[:-1]] = inner[self.first_point_of[1:] - 1] = False
        road = np.repeat(np.arange(len(n_pieces)), np.diff(self.first_point_of))[inner]
        length_m = np.where(self.length_m > 0, self.length_m, 1.0)[road]
        share = self.from_start_m[inner] / length_m * n_pieces[road]
        first_piece = np.cumsum(n_pieces) - n_pieces
        piece = first_piece[road] + np.minimum(share.astype(np.int64), n_pieces[road] - 1)
        n_corners = np.bincount(piece, minlength=int(n_pieces.sum()))
        first = np.concatenate(([0], np.cumsum(n_corners)))
        return Corners(first, self.lat[inner], self.lon[inner])


def _with_twins_joined(arcs: Arcs, ends: IntArray, line: _Line, twin_m: float) -> Arcs:
    """Return the arcs, in which drawings of one road refer to one of these (see `TWIN_M`)."""
    n_roads = len(ends)
    pair = np.sort(ends, axis=1)
    order = np.lexsort((line.length_m, pair[:, 1], pair[:, 0]))
    lat, lon = line.at(np.arange(n_roads), line.length_m / 2)
    a, b = order[:-1], order[1:]
    joined = np.zeros(n_roads, np.bool_)
    joined[1:] = (pair[a] == pair[b]).all(axis=1)
    joined[1:] &= haversine_m(lat[a], lon[a], lat[b], lon[b]) <= twin_m
    leader = np.empty(n_roads, np.int64)
    leader[order] = order[np.maximum.accumulate(np.where(joined, 0, np.arange(n_roads)))]
    turned = ends[:, 0] != ends[leader, 0]
    return arcs._replace(road_of=leader[arcs.road_of], along=arcs.along ^ turned[arcs.road_of])


def _cut(arcs: Arcs, n_pieces: IntArray, first_new: IntArray) -> Arcs:
    """Return the arcs cut into the pieces of their roads, whose inner nodes are consecutive."""
    n = n_pieces[arcs.road_of]
    arc = np.repeat(np.arange(len(n)), n)
    step = np.arange(len(arc)) - (np.cumsum(n) - n)[arc]
    road, along, last = arcs.road_of[arc], arcs.along[arc], n[arc] - 1
    piece = np.where(along, step, last - step)
    # Inner node j lies between the pieces j and j + 1 of the road.
    behind = first_new[road] + np.where(along, piece - 1, piece)
    ahead = first_new[road] + np.where(along, piece, piece - 1)
    first_piece = np.cumsum(n_pieces) - n_pieces
    return Arcs(
        np.where(step == 0, arcs.tail[arc], behind),
        np.where(step == last, arcs.head[arc], ahead),
        arcs.length_m[arc] / n[arc],
        arcs.speed_mps[arc],
        arcs.drivable[arc],
        first_piece[road] + piece,
        along,
        arcs.way[arc],
    )


def _with_new_names(node_id: NodeNames, n_new: int) -> NodeNames:
    """Return the names followed by so many new ones: integers below 0, or text with a tilde."""
    number = np.arange(1, n_new + 1)
    if np.issubdtype(node_id.dtype, np.integer):
        numbers = node_id.astype(np.int64)
        return np.concatenate((numbers, min(int(numbers.min(initial=0)), 0) - number))
    names = node_id.astype(np.str_)
    check_width(len(names) + n_new, names.dtype.itemsize // CHARACTER_BYTES)
    mark = "~"
    while np.char.startswith(names, mark).any():
        mark += "~"
    new: NDArray[np.str_] = np.array([f"{mark}{n}" for n in number.tolist()], np.str_)
    return np.concatenate((names, new))


def _metres(nodes: Nodes, node: IntArray, lat: FloatArray, lon: FloatArray) -> FloatArray:
    return haversine_m(nodes.lat[node], nodes.lon[node], lat, lon)
